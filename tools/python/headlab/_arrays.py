# SPDX-License-Identifier: Apache-2.0
"""Arrays of any library as NumPy arrays on the host, in the memory they have where possible."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import ScenarioError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_HOST = (1, 3)  # DLPack's CPU and pinned memory
_PLAIN = (str, bytes, bool, int, float, list, tuple, dict, type(None))


def is_array(value: Any) -> bool:
    """True for arrays and numbers of NumPy, PyTorch, JAX and others that speak DLPack."""
    return not isinstance(value, _PLAIN) and (
        hasattr(value, "__dlpack__") or hasattr(value, "__array__")
    )


def host_array(value: Any, key: str) -> NDArray[Any]:
    """The numbers of an array; ScenarioError, naming `key`, for those on a device or not real."""
    import numpy as np

    if isinstance(value, _PLAIN):
        short = repr(value) if isinstance(value, str) and len(value) <= 60 else f"of type {type(value).__name__}"
        raise ScenarioError(f"{key}: is {short}, needs an array of numbers")
    if not isinstance(value, np.ndarray):
        device = getattr(value, "__dlpack_device__", None)
        try:
            on_host = device is None or int(device()[0]) in _HOST
        except Exception:  # a device that DLPack has no number for
            on_host = False
        if not on_host:
            where = getattr(value, "device", "a device")
            raise ScenarioError(f"{key}: is an array on {where} - copy it to the host, as .cpu() does")
        if hasattr(value, "detach"):
            value = value.detach()
        try:
            value = np.asarray(value) if hasattr(value, "__array__") else np.from_dlpack(value)
        except Exception as error:
            raise ScenarioError(f"{key}: is an array that cannot be read ({error})") from None
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ScenarioError(f"{key}: has masked numbers - fill them, or leave their rows out")
    if value.dtype.kind == "f":
        wanted: type[Any] = np.float32 if value.dtype.itemsize <= 4 else np.float64
    elif value.dtype.kind in "iu":
        if value.dtype == np.uint64 and value.size and value.max() > np.iinfo(np.int64).max:
            raise ScenarioError(f"{key}: has a whole number beyond 64 bits")
        wanted = np.int64
    elif value.dtype.kind == "b":
        wanted = np.bool_
    else:
        raise ScenarioError(f"{key}: is an array of {value.dtype}, needs real numbers")
    array: NDArray[Any] = np.ascontiguousarray(value, dtype=wanted)
    return array.reshape(value.shape)  # ascontiguousarray makes a number a vector


def array_of_lists(value: Any, key: str) -> NDArray[Any]:
    """Nested lists of numbers, or lists of arrays, as an array."""
    import numpy as np

    try:
        array = np.asarray([host_array(one, key) if is_array(one) else one for one in value])
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(error, ScenarioError):
            raise
        raise ScenarioError(f"{key}: is a list that makes no array ({error})") from None
    if array.dtype.kind not in "fiub":
        raise ScenarioError(f"{key}: is a list that makes no array of numbers")
    return array


def as_rows(value: Any, key: str) -> NDArray[np.floating[Any]]:
    """The same as float32 or float64, whole numbers as float64."""
    import numpy as np

    array = host_array(value, key)
    return array if array.dtype.kind == "f" else array.astype(np.float64)

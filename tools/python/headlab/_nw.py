# SPDX-License-Identifier: Apache-2.0
"""The fused estimator on arrays: ``hl.nw``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from . import _engine
from ._arrays import host_array
from ._errors import ScenarioError, translated
from ._jobs import wait
from ._run import whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_MOST = 2**31 - 1


def nw(
    X: Any,
    Y: Any,
    queries: Any,
    heads: Any,
    kernel: str | dict[str, Any] = "gaussian",
    *,
    query_heads: Any = None,
    threads: int | None = None,
    **parameters: float,
) -> NDArray[np.float32]:
    """Nadaraya-Watson estimates of every head at every query, from the arrays given.

    f_h(x) = sum_i K(W_h^T x, W_h^T X_i) Y_i / sum_i K(W_h^T x, W_h^T X_i), in float32, without a
    matrix of weights in memory: what KeOps or scaled_dot_product_attention would be used for.

    Parameters
    ----------
    X, Y
        Points [n, d] and responses [n].
    queries
        Points x [Q, d].
    heads
        Any matrices W_h [H, d, k]; their columns need not be orthonormal.
    kernel
        Name of a kernel law with its parameters as further arguments,
        ``hl.nw(X, Y, x, W, "gaussian", bandwidth=0.5)``, or a dict
        ``{"law": "softmax", "temperature": 2.0}`` (docs/laws.md).
    query_heads
        Matrices [H, d, k] that project the queries instead of `heads`; softmax alone.
    threads
        All processors without. The result has the same bits for any number.

    Returns
    -------
    Estimates [H, Q], float32, within about 1e-6 of the largest abs(Y).

    Raises
    ------
    ScenarioError
        For shapes that do not fit, numbers that are not finite, coordinates beyond 1e6, arrays on
        a device, an unknown kernel or parameter.

    Example
    -------
    >>> import headlab as hl, numpy as np
    >>> X = np.array([[0.0, 0.0], [2.0, 0.0]])
    >>> hl.nw(X, [1.0, 3.0], [[1.0, 5.0]], np.eye(2)[None], bandwidth=1.0)
    array([[2.]], dtype=float32)
    """
    import numpy as np

    def floats(key: str, value: Any, axes: int) -> NDArray[np.float32]:
        try:
            given = np.array(value, dtype=float) if isinstance(value, list | tuple) else value
        except (TypeError, ValueError):
            raise ScenarioError(f"{key}: is no array of numbers") from None
        if not hasattr(given, "__array__") and not hasattr(given, "__dlpack__"):
            raise ScenarioError(f"{key}: is of type {type(value).__name__}, needs an array")
        array = host_array(given, key)
        if array.ndim != axes or array.size == 0:
            raise ScenarioError(f"{key}: has shape {array.shape}, needs {axes} axes with numbers")
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(array, dtype=np.float32)

    x, y, q = floats("X", X, 2), floats("Y", Y, 1), floats("queries", queries, 2)
    w = floats("heads", heads, 3)
    v = np.empty((0, 0, 0), np.float32) if query_heads is None else floats("query_heads", query_heads, 3)
    n, d = x.shape
    if y.shape != (n,):
        raise ScenarioError(f"Y: has shape {y.shape}, X has {n} points")
    if q.shape[1] != d:
        raise ScenarioError(f"queries: have {q.shape[1]} coordinates, X has {d}")
    if w.shape[1] != d:
        raise ScenarioError(f"heads: have shape {w.shape}, need H x d x k with d = {d}")
    if query_heads is not None and v.shape != w.shape:
        raise ScenarioError(f"query_heads: have shape {v.shape}, heads have {w.shape}")
    if w.shape[2] > 4096 or w.shape[0] > 65536 or d > 65536 or w.shape[0] * q.shape[0] > _MOST:
        raise ScenarioError("nw: too large (allowed: k to 4096, H and d to 65536, H Q below 2^31)")
    law: dict[str, Any] = {"law": kernel} if isinstance(kernel, str) else dict(kernel)
    with translated():
        job = _engine.nw(x, y, q, w, v, {**law, **parameters}, whole(threads))
    return cast("NDArray[np.float32]", wait(job))

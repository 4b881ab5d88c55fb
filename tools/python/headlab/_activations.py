# SPDX-License-Identifier: Apache-2.0
"""Queries, keys, values and outputs of attention layers: hl.heads.from_attention and open_activations."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import _engine as engine
from ._arguments import flag, index, text
from ._arguments import path as path_text
from ._arrays import array_of_lists, host_array
from ._carried import bytes_of, write_bytes
from ._errors import ScenarioError, translated, warn
from ._labelled import suggestion

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ARRAYS = (
    "q", "k", "v", "W_O", "b_O", "z", "residual", "grad_z", "grad_output", "W_V", "attention",
    "output", "bias", "alibi", "sink", "valid", "length", "document", "tokens", "target",
)  # fmt: skip
_NUMBERS = ("scale", "window", "softcap")
_LAYOUTS = ("bhtk", "bthk")


class Activations:
    """Queries, keys, values and outputs of attention layers, in memory or in a file."""

    def __init__(self, given: engine.Activations) -> None:
        self._engine = given
        self._name = given.source
        self.alone = False  # arrays of one layer, whose names have no number
        # Of a capture: the model, and of each layer the name of its output map and whether that is [H e, d].
        self._model: Any = None
        self._targets: dict[int, tuple[str, bool]] | None = None
        self._folded = False  # the output maps are not those of a checkpoint

    def __reduce__(self) -> tuple[Any, ...]:
        kept = {name: value for name, value in vars(self).items() if name not in ("_engine", "_folder")}
        return _activations_of_bytes, (bytes_of(self.save), kept)

    @property
    def layers(self) -> list[int]:
        """Numbers of the layers."""
        with translated():
            return list(self._engine.layers)

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes NetCDF (.nc), as ``headlab import-activations``.

        :param path (path): A file that ends in .nc.
        :raises ScenarioError: The file is there already, or cannot be written.
        """
        with translated():
            self._engine.save(path_text("path", path), flag("overwrite", overwrite))

    def __repr__(self) -> str:
        return f"{self._name}: layers {', '.join(map(str, self.layers))}"


@contextmanager
def users_names(alone: bool) -> Iterator[None]:
    """Names arrays in messages as the user does, and not as a file: without the layer where it is `alone`."""
    try:
        yield
    except ScenarioError as error:
        pattern = r"^activations: (layers\.\d+\.)?" if alone else "^activations: "
        raise type(error)(re.sub(pattern, "", str(error))) from None


def _activations_of_bytes(content: bytes, kept: dict[str, Any]) -> Activations:
    """Activations that were pickled, in a file of their own as they are read a sequence at a time."""
    folder = tempfile.TemporaryDirectory(prefix="headlab-")
    found = open_activations(write_bytes(content, folder.name))
    vars(found).update(kept, _folder=folder)
    return found


def _host(value: Any, name: str) -> tuple[NDArray[Any], bool]:
    """The numbers on the host, and whether they are floats of 16 bits."""
    if isinstance(value, list | tuple):
        value = array_of_lists(value, name)
    kind = str(getattr(value, "dtype", ""))
    half = kind.endswith("float16")  # bfloat16 too
    if hasattr(value, "detach"):
        value = value.detach()
        if kind == "torch.bfloat16":  # NumPy has none
            value = value.float()
        if not str(getattr(value, "device", "cpu")).startswith("cpu"):
            warn(f"arrays on {value.device} are copied to the host")
        value = value.cpu()
    elif kind == "bfloat16":
        value = value.astype("float32")
    return host_array(value, name), half


def _put_layer(prefix: str, given: Mapping[str, Any], arrays: dict[str, Any], texts: dict[str, str]) -> None:
    import numpy as np

    for name, value in given.items():
        if name not in (*_ARRAYS, *_NUMBERS, "mask", "precision"):
            known = (*_ARRAYS, *_NUMBERS, "mask")
            raise ScenarioError(f"{name}: no such array of a layer{suggestion(name, known)}")
        if value is None:
            continue
        if name in _NUMBERS:
            arrays[prefix + name] = np.array(float(value))
        elif name in ("mask", "precision") and isinstance(value, str):
            texts[prefix + name] = value
        else:
            array, half = _host(value, name)
            if name == "mask" and array.dtype != np.bool_:
                raise ScenarioError('mask: is not an array of booleans (or "causal", "full") - what is added to logits is bias')
            if half and name in ("q", "k", "v"):
                texts[prefix + "precision"] = "half"
            arrays[prefix + name] = array


def _heads_second(given: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays [B, T, H, k] as [B, H, T, k]."""
    by_head = ("q", "k", "v", "z", "grad_z")
    return {name: one.swapaxes(1, 2) if name in by_head and one is not None else one for name, one in given.items()}


def from_attention(
    q: Any = None,
    k: Any = None,
    v: Any = None,
    W_O: Any = None,  # noqa: N803 - the names of the files
    *,
    layer: int = 0,
    mask: Any = "causal",
    layout: str = "bhtk",
    **given: Any,
) -> Activations:
    """Activations from arrays of NumPy, PyTorch, JAX and others (docs/heads-on-text.md).

    `q` [B, H, T, k], `k` [B, G, S, k], `v` [B, G, S, e] as the attention sees them, `W_O` [H, e, d].
    By name: `scale` (k**-0.5), `window`, `softcap`, `bias`, `alibi`, `sink`, `z`, `residual`,
    `grad_z`, `grad_output`, `W_V`, `b_O`, `attention`, `output`, `document`, `tokens`, `target`, `length`,
    `valid`. `mask` is "causal", "full" or booleans [B or 1, H or 1, T, S]. Several layers: a dict of
    their numbers with dicts of these in the place of `q`.

    :param q (array [B, H, T, k], or dict of layers): Queries as the attention sees them.
    :param k (array [B, G, S, k]): Keys; G groups, G divides H.
    :param v (array [B, G, S, e]): Values.
    :param W_O (array [H, e, d]): Output map of each head.
    :param layer (int): Its number.
    :param mask ("causal", "full" or booleans [B or 1, H or 1, T, S]): True where a key is seen.
    :param layout ("bhtk" or "bthk"): With "bthk" q, k, v, z and grad_z have heads third.
    :param **given (arrays): The others, by name.
    :returns Activations: For ``hl.heads.measure``. Arrays of PyTorch on a GPU are copied to the host.
    :raises ScenarioError: Shapes that do not fit, numbers that are not finite, unknown names.
    """
    layers: Mapping[int, Mapping[str, Any]]
    if isinstance(q, Mapping):
        if any(one is not None for one in (k, v, W_O)) or given:
            raise ScenarioError("q: is a dict of layers, which have all arrays")
        layers = {index("layer", number): one for number, one in q.items()}
    else:
        layers = {index("layer", layer): {"q": q, "k": k, "v": v, "W_O": W_O, "mask": mask, **given}}
    if text("layout", layout) not in _LAYOUTS:
        raise ScenarioError(f"layout: {layout!r} is none{suggestion(layout, _LAYOUTS)}")
    arrays: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for number, one in layers.items():
        if number < 0:
            raise ScenarioError(f"layer: is {number}, layers count from 0")
        if not isinstance(one, Mapping):
            raise ScenarioError(f"layer {number}: is {type(one).__name__}, needs a dict of arrays")
        _put_layer(f"layers.{number}.", one if layout == "bhtk" else _heads_second(one), arrays, texts)
    alone = not isinstance(q, Mapping)
    with users_names(alone), translated():
        found = Activations(engine.activations_of(arrays, texts))
    found.alone = alone
    return found


def open_activations(*paths: str | os.PathLike[str]) -> Activations:
    """Activations of files: NetCDF of ``headlab import-activations``, NPZ or safetensors.

    :param *paths (paths): One NetCDF file, or files of layers.
    :returns Activations: Read a sequence at a time.
    :raises ScenarioError: A file that is missing or does not fit.
    """
    if not paths:
        raise ScenarioError("paths: none is given")
    with translated():
        return Activations(engine.open_activations([path_text("paths", one) for one in paths]))

# SPDX-License-Identifier: Apache-2.0
"""Heads of trained models and of arrays: ``hl.heads.from_safetensors(folder)``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

from . import _engine as engine
from ._activations import Activations as Activations
from ._activations import from_attention as from_attention
from ._activations import open_activations as open_activations
from ._arrays import array_of_lists, host_array
from ._arguments import assign, flag, index, text, whole
from ._arguments import path as path_text
from ._documented import documented_like
from ._carried import bytes_of, file_of
from ._errors import ScenarioError, counted, translated
from ._capture import Capture as Capture
from ._capture import capture as capture
from ._jobs import Progress, wait
from ._measured import Measured as Measured
from ._measured import measure as measure
from ._measured import open_measured as open_measured
from ._transformer_lens import from_transformer_lens as from_transformer_lens

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Heads:
    """Subspaces of the heads of every layer, with what they come from.

    ``h[layer]`` is an array [H, d, k] of orthonormal bases, ready for ``heads.subspaces`` of a
    scenario; ``h.w_q(layer)`` and ``h.w_k(layer)`` are the projections, where they are known.
    """

    def __init__(self, given: engine.Heads) -> None:
        self._engine = given

    @property
    def layers(self) -> list[int]:
        """Numbers of the layers in the model."""
        return list(self._engine.layers)

    @property
    def temperature(self) -> float | None:
        """t of the softmax exp(q.k/t), where the file says it."""
        return self._engine.temperature

    @property
    def architecture(self) -> str:
        """The family of the model, empty where the file does not say."""
        return self._engine.architecture

    @property
    def rotary(self) -> bool:
        """Queries and keys are turned by their position first."""
        return self._engine.rotary

    @property
    def left_out(self) -> str:
        """What the heads lack of the model's logits; empty where the file does not say."""
        return self._engine.left_out

    def __getitem__(self, layer: int) -> NDArray[Any]:
        layer = index("layer", layer)
        with translated():
            return cast("NDArray[Any]", self._engine.subspaces(layer))

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[layer] for layer in self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def _ipython_key_completions_(self) -> list[int]:
        return self.layers

    def w_q(self, layer: int) -> NDArray[Any] | None:
        """Projections of queries [H, d, k].

        :param layer (int): Number of the layer in the model.
        :returns array [H, d, k] or None: None where the file has none.
        :raises ScenarioError: No such layer.
        """
        layer = index("layer", layer)
        with translated():
            return cast("NDArray[Any] | None", self._engine.w_q(layer))

    @documented_like(w_q)
    def w_k(self, layer: int) -> NDArray[Any] | None:
        """Projections of keys [H, d, k]."""
        layer = index("layer", layer)
        with translated():
            return cast("NDArray[Any] | None", self._engine.w_k(layer))

    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes NetCDF (.nc), or NPY (.npy) of a single layer, as ``headlab import-heads``.

        :param path (path): Ends in .nc, or in .npy.
        :raises ScenarioError: The file is there already, or cannot hold several layers.
        """
        with translated():
            self._engine.save(path_text("path", path), flag("overwrite", overwrite))

    def __reduce__(self) -> tuple[Any, ...]:
        return _heads_of_bytes, (bytes_of(self.save), self._engine.name)

    def __eq__(self, other: object) -> bool:
        """The same layers with the same bases and projections."""
        import numpy as np

        if not isinstance(other, Heads):
            return NotImplemented
        return self.layers == other.layers and all(
            np.array_equal(mine, theirs) if mine is not None and theirs is not None else mine is theirs
            for layer in self.layers
            for mine, theirs in (
                (self[layer], other[layer]),
                (self.w_q(layer), other.w_q(layer)),
                (self.w_k(layer), other.w_k(layer)),
            )
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        first = self[self.layers[0]]
        what = f"{self.architecture}, " if self.architecture else ""
        return (
            f"{self._engine.name}: {what}{counted(len(self), 'layer')}, H {first.shape[0]}, "
            f"d {first.shape[1]}, k {first.shape[2]}"
        )


def _heads_of_bytes(content: bytes, name: str) -> Heads:
    with file_of(content) as path, translated():
        return Heads(engine.read_heads(path, name))


def from_safetensors(
    checkpoint: str | os.PathLike[str],
    layer: int | None = None,
    *,
    arch: str = "auto",
    config: str | os.PathLike[str] | None = None,
    heads: int | None = None,
    kv_heads: int | None = None,
    query: str | None = None,
    key: str | None = None,
    gain: str | None = None,
    biases: bool = False,
    threads: int | None = None,
    progress: Progress = False,
) -> Heads:
    """Heads of a model checkpoint: a safetensors file, the index of several, or their folder.

    The family comes from config.json beside it, or from `arch` with `heads` (docs/real-heads.md).
    All layers, or one.

    :param checkpoint (path): A safetensors file, the index of several, or their folder.
    :param arch (str): A family of ``headlab list architectures``; "auto" as config.json says.
    :param config (path, optional): config.json, where it lies elsewhere.
    :param heads (int, optional): Heads of a layer, without config.json.
    :param kv_heads (int, optional): Groups of heads that share keys, likewise.
    :param query (str, optional): Name of the query projections of a model of no family, with # for the layer.
    :param key (str, optional): Of the key projections; the same where queries, keys and values are one tensor.
    :param gain (str, optional): Of the gain of the norm in front, likewise.
    :param biases (bool): Keep biases, as weights of a last input that is always 1: d grows by one.
    :returns Heads: Bases, projections and the temperature of each layer.
    :raises ScenarioError: A family that is not known, tensors that are missing or of another shape: the message says
        what to pass.
    :raises MissingFileError: There is no such file: a FileNotFoundError too.
    """
    layer = None if layer is None else index("layer", layer)
    if layer is not None and not 0 <= layer < 4096:
        raise ScenarioError(f"layer: is {layer} (allowed: 0 to 4095)")
    arguments = engine.ImportHeadsArguments()
    assign(
        arguments, checkpoint=path_text("checkpoint", checkpoint), arch=text("arch", arch),
        config=None if config is None else path_text("config", config), heads=whole(heads),
        kv_heads=whole(kv_heads), query=query, key=key, gain=gain,
        biases=flag("biases", biases), threads=whole(threads),
    )  # fmt: skip
    with translated():
        job = engine.import_heads(arguments, layer)
    return Heads(wait(job, progress))


def read(path: str | os.PathLike[str]) -> Heads:
    """Heads of a file of ``headlab import-heads`` or of an NPY file [H, d, k].

    :param path (path): NetCDF or NPY.
    :returns Heads: Of every layer in the file.
    :raises ScenarioError: A file that is missing or holds no heads.
    """
    with translated():
        return Heads(engine.read_heads(path_text("path", path)))


def from_array(array: Any) -> Heads:
    """Heads [H, d, k] of any matrices of rank k, whose column spaces count.

    :param array (array [H, d, k]): One matrix a head.
    :returns Heads: One layer, number 0.
    :raises ScenarioError: Another shape, or numbers that are not finite.
    """
    import numpy as np

    if isinstance(array, list | tuple):
        array = array_of_lists(array, "heads")
    numbers = host_array(array, "heads").astype(np.float64)
    if numbers.ndim != 3:
        raise ScenarioError(f"heads: have shape {numbers.shape}, need H x d x k")
    with translated():
        return Heads(engine.heads_of_array(numbers))


def as_heads(given: Any) -> Heads:
    """Heads of whatever they were given as.

    :param given (array [H, d, k], path or Heads): What they are given as.
    :returns Heads: As `read` and `from_array` make them.
    :raises ScenarioError: As there.
    """
    if isinstance(given, Heads):
        return given
    if isinstance(given, str | os.PathLike):
        return read(given)
    return from_array(given)

# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in safetensors with other output maps, every other byte kept."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ._arguments import path as path_text
from ._errors import ScenarioError

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Layer to the name of its module and whether its weight is [H e, d], as Conv1D of transformers has it.
Targets = Mapping[int, tuple[str, bool]]


def _bytes_of(numbers: NDArray[Any], kind: str) -> bytes:
    """Numbers in the type of a tensor."""
    import numpy as np

    types = {"F64": np.float64, "F32": np.float32, "F16": np.float16}
    if kind in types:
        return numbers.astype(types[kind]).tobytes()
    if kind == "BF16":  # to nearest, halves to even
        bits = numbers.astype(np.float32).view(np.uint32).astype(np.uint64)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16).tobytes()
    raise ScenarioError(f"checkpoint: has an output map of type {kind} (allowed: F64, F32, F16, BF16)")


def _numbers_of(data: bytes, kind: str) -> NDArray[Any]:
    import numpy as np

    if kind == "BF16":
        return (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).astype(float)
    types = {"F64": np.float64, "F32": np.float32, "F16": np.float16}
    if kind not in types:
        raise ScenarioError(f"checkpoint: has a bias of type {kind} (allowed: F64, F32, F16, BF16)")
    return np.frombuffer(data, types[kind]).astype(float)


class _Tensors:
    """One safetensors file, read whole."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.data = bytearray(path.read_bytes())
        size = int.from_bytes(self.data[:8], "little")
        try:
            header = json.loads(self.data[8 : 8 + size])
            self.tensors = {name: one for name, one in header.items() if name != "__metadata__"}
        except (ValueError, AttributeError):
            raise ScenarioError(f"{path}: is not a safetensors file") from None
        self.first = 8 + size

    def part(self, name: str) -> slice:
        begin, end = self.tensors[name]["data_offsets"]
        return slice(self.first + begin, self.first + end)


def _name_in(files: list[_Tensors], wanted: str) -> tuple[_Tensors, str]:
    """The tensor of that name, with or without the prefix of the model."""
    found = [
        (file, name) for file in files for name in file.tensors
        if name == wanted or name.endswith("." + wanted) or wanted.endswith("." + name)
    ]  # fmt: skip
    if len(found) != 1:
        raise ScenarioError(f"checkpoint: has {len(found) or 'no'} tensor{'s' if found else ''} {wanted}")
    return found[0]


def _put(files: list[_Tensors], name: str, numbers: NDArray[Any], add: bool = False) -> None:
    file, tensor = _name_in(files, name)
    about, part = file.tensors[tensor], file.part(tensor)
    if add:
        numbers = _numbers_of(bytes(file.data[part]), about["dtype"]) + numbers
    if list(numbers.shape) != about["shape"]:
        raise ScenarioError(f"checkpoint: {tensor} has shape {about['shape']}, the plan has {list(numbers.shape)}")
    file.data[part] = _bytes_of(numbers, about["dtype"])


def write_checkpoint(
    checkpoint: str | os.PathLike[str], out: str | os.PathLike[str],
    maps: Mapping[int, tuple[NDArray[Any], NDArray[Any] | None]], targets: Targets,
    record: Mapping[str, Any], overwrite: bool,
) -> None:  # fmt: skip
    """The folder `checkpoint` as the folder `out`, there whole or not at all."""
    source, target = Path(path_text("checkpoint", checkpoint)), Path(path_text("out", out))
    if not source.is_dir():
        raise ScenarioError(f"checkpoint: {source} is no folder")
    if target.exists() and not overwrite:
        raise ScenarioError(f"out: {target} is there already - write overwrite=True, or choose another place")
    if target.exists() and target.samefile(source):
        raise ScenarioError(f"out: {target} is the checkpoint itself")
    files = [_Tensors(path) for path in sorted(source.glob("*.safetensors"))]
    if not files:
        raise ScenarioError(f"checkpoint: {source} has no safetensors file")
    for layer, (w, constant) in maps.items():
        name, by_input = targets[layer]
        flat = w.reshape(-1, w.shape[2])
        _put(files, name + ".weight", flat if by_input else flat.T)
        if constant is not None:
            _put(files, name + ".bias", constant, add=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
        made = Path(folder, "made")
        shutil.copytree(source, made, ignore=shutil.ignore_patterns("*.safetensors"))
        for file in files:
            (made / file.path.name).write_bytes(file.data)
        (made / "headlab.json").write_text(json.dumps(record, indent=1) + "\n")
        if target.exists():
            target.rename(Path(folder, "before"))
        made.rename(target)

# SPDX-License-Identifier: Apache-2.0
"""Checkpoints in safetensors with other output maps, every other byte kept."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import _engine as engine
from ._arguments import path as path_text
from ._errors import translated

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Layer to the name of its module and whether its weight is [H e, d], as Conv1D of transformers has it.
Targets = Mapping[int, tuple[str, bool]]


def write_checkpoint(
    checkpoint: str | os.PathLike[str], out: str | os.PathLike[str],
    maps: Mapping[int, tuple[NDArray[Any], NDArray[Any] | None]], targets: Targets,
    record: Mapping[str, Any], overwrite: bool, cut: Mapping[int, list[int]] | None = None,
) -> None:  # fmt: skip
    """The folder `checkpoint` as the folder `out`, there whole or not at all; `cut`: heads by the layer."""
    import numpy as np

    changes: list[tuple[str, NDArray[Any], bool]] = []
    for layer, (w, constant) in maps.items():
        name, by_input = targets[layer]
        flat = w.reshape(-1, w.shape[2])
        changes.append((name + ".weight", np.ascontiguousarray(flat if by_input else flat.T), False))
        if constant is not None:
            changes.append((name + ".bias", np.ascontiguousarray(constant), True))
    with translated():
        engine.write_changed_checkpoint(
            path_text("checkpoint", checkpoint), path_text("out", out), changes,
            json.dumps(record, indent=1) + "\n", overwrite, cut,
        )  # fmt: skip

# SPDX-License-Identifier: Apache-2.0
"""Training sets in DataLoaders, and what travels to other processes."""

from __future__ import annotations

import multiprocessing
import pickle
from typing import Any

import headlab as hl
import numpy as np
import pytest

torch = pytest.importorskip("torch")


@pytest.mark.parametrize("context", ["spawn", "fork"])
def test_workers_draw_the_training_sets_of_the_run(small: dict[str, Any], context: str) -> None:
    t = hl.dataset(small, 10)
    loader = torch.utils.data.DataLoader(
        t.torch(batch=3), batch_size=None, num_workers=2, multiprocessing_context=context
    )
    drawn = torch.cat([batch["X"] for batch in loader])
    assert drawn.shape == t["X"].shape
    assert {one.tobytes() for one in drawn.numpy()} == {one.tobytes() for one in t["X"]}


def test_tensors_have_one_type(small: dict[str, Any]) -> None:
    t = hl.dataset(small, 4, estimates=True)
    for dtype in (None, torch.float64):
        (batch,) = t.torch(dtype=dtype)
        real = {one.dtype for one in batch.values() if one.dtype.is_floating_point}
        assert real == {dtype or torch.get_default_dtype()}


def _first_head(given: tuple[hl.Heads, Any]) -> tuple[Any, Any]:
    heads, sets = given
    return heads[heads.layers[0]], sets["X"]


def test_heads_and_training_sets_travel_to_spawned_processes(small: dict[str, Any], subspaces: np.ndarray) -> None:
    heads = hl.heads.from_safetensors("scenarios/data/small_model", layer=2)
    small["heads"]["subspaces"] = subspaces  # an array in memory goes along
    sets = hl.dataset(small, 3, seed=5)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        first, drawn = pool.map(_first_head, [(heads, sets)])[0]
    assert np.array_equal(first, heads[2])
    assert np.array_equal(drawn, sets["X"])


@pytest.mark.parametrize("which", ["model", "array"])
def test_heads_can_be_pickled(which: str, tmp_path: Any) -> None:
    if which == "model":
        heads = hl.heads.from_safetensors("scenarios/data/small_model")
    else:
        w = np.random.default_rng(1).normal(size=(3, 5, 2))
        heads = hl.heads.from_array(w)
    again = pickle.loads(pickle.dumps(heads))
    assert again == heads and repr(again) == repr(heads)
    assert (again.temperature, again.rotary) == (heads.temperature, heads.rotary)
    assert again != hl.heads.from_array(np.eye(5)[None, :, :2])


def test_compress_is_the_command(program: str, tmp_path: Any) -> None:
    import json
    import subprocess

    heads = hl.heads.from_safetensors("scenarios/data/small_model", layer=1)
    heads.save(tmp_path / "h.nc")
    c = hl.compress(heads, 3, n=32, replicates=16, seed=4)
    command = [program, "compress", "h.nc", "--rank", "3", "--n", "32", "--replicates", "16", "--seed", "4", "--out", "c.nc"]
    shown = subprocess.run([*command, "--json", "-"], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    assert c.summary["layers"] == json.loads(shown)["layers"]
    assert c.heads == hl.heads.read(tmp_path / "c.nc")
    assert "total variation" in str(c)
    rows = np.random.default_rng(0).normal(size=(50, 64))
    assert hl.compress(heads, 3, data=rows, n=32, replicates=16).summary["rows"] == 50
    for arguments, line in (
        ({"rank": 8}, "rank"), ({"rank": 0}, "rank: is 0"), ({"rank": 3, "by": "svd"}, "by: "),
        ({"rank": 3, "layer": 7}, "layer: is 7"), ({"rank": 3, "data": np.zeros(4)}, r"data: has shape \(4,\)"),
        ({"rank": 3, "n": 1}, r"n: is 1 \(allowed: 2 to 65536\)"),
    ):  # fmt: skip
        with pytest.raises(hl.ScenarioError, match=line):
            hl.compress(heads, **arguments)  # type: ignore[arg-type]

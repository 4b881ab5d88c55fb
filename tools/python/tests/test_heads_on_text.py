# SPDX-License-Identifier: Apache-2.0
"""hl.heads.from_attention and hl.heads.measure: arrays of any library, frames, files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headlab as hl

CAPTURED = "validation/testdata/real-llama-layer1.npz"


@pytest.fixture
def layer() -> dict[str, Any]:
    return dict(np.load(CAPTURED))


def made(documents: int = 10, seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    b, h, g, t, k, e, d = documents, 4, 2, 20, 3, 2, 6
    return {
        "q": random.normal(size=(b, h, t, k)), "k": random.normal(size=(b, g, t, k)),
        "v": random.normal(size=(b, g, t, e)), "W_O": random.normal(size=(h, e, d)),
        "residual": random.normal(size=(b, t, d)),
    }  # fmt: skip


def test_arrays_and_their_file_have_the_same_figures(layer: dict[str, Any]) -> None:
    of_file = hl.heads.measure(CAPTURED)
    of_arrays = hl.heads.measure(layer)
    assert of_arrays == of_file
    assert hl.heads.measure(hl.heads.from_attention(**layer), threads=1) == of_file
    layer["v"] = layer["v"] * 1.001
    assert hl.heads.measure({n: a for n, a in layer.items() if n != "z"}) != of_file


def test_archives_may_have_another_order_of_axes_in_memory(tmp_path: Path, layer: dict[str, Any]) -> None:
    turned = {n: np.asfortranarray(a) if a.ndim > 1 else a for n, a in layer.items()}
    assert turned["q"].flags.f_contiguous and not turned["q"].flags.c_contiguous
    np.savez(tmp_path / "a.npz", **turned)
    assert hl.heads.measure(tmp_path / "a.npz") == hl.heads.measure(CAPTURED)


def test_figures_are_those_of_their_definition() -> None:
    given = made()
    m = hl.heads.measure(given)
    q, k, v, w_o = (given[name] for name in ("q", "k", "v", "W_O"))
    group = [0, 0, 1, 1]
    logits = np.einsum("bhtk,bhsk->bhts", q, k[:, group]) / np.sqrt(3)
    logits = np.where(np.tril(np.ones((20, 20), bool)), logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    o = np.einsum("bhts,bhse,hed->bthd", weights, v[:, group], w_o).reshape(-1, 4, 6)
    spread = np.einsum("nhd,nhd->h", o - o.mean(0), o - o.mean(0)) / len(o)
    np.testing.assert_allclose(m["spread"][0], spread, rtol=1e-12)
    one = np.einsum("bts,bse,ed->btd", weights[:, 1] - weights[:, 0], v[:, 0], w_o[0])
    np.testing.assert_allclose(m["exchange_error"][0, 0, 1], (one**2).sum(-1).mean(), rtol=1e-12)


def test_frames_have_a_row_each() -> None:
    pytest.importorskip("pandas")
    m = hl.heads.measure({3: made(), 5: made(seed=1)})
    assert list(m.heads["layer"]) == [3] * 4 + [5] * 4
    assert list(m.heads["head"]) == [0, 1, 2, 3] * 2
    assert len(m.pairs) == 2 * 4 * 3
    assert {"exchange_share", "exchange_share_se"} <= set(m.pairs.columns)
    assert list(m.layers["layer"]) == [3, 5]
    values = m.noise("values")
    assert {"layer", "variance", "variance_se", "covariance", "correlation"} <= set(values.columns)
    np.testing.assert_array_equal(values["correlation"], m["noise_values_correlation"])
    assert np.isnan(m.identity[3]["total_variation_mean"])
    assert len(m.summary["layers"]) == 2
    with pytest.raises(hl.ScenarioError, match="^kind: noise of kind 'input' needs W_V"):
        m.noise("input")
    with pytest.raises(hl.ScenarioError, match='^kind: .*did you mean "values"'):
        m.noise("value")


def test_what_is_saved_reads_back(tmp_path: Path, layer: dict[str, Any]) -> None:
    m = hl.heads.measure(layer)
    m.save(tmp_path / "m.nc")
    back = hl.heads.open_measured(tmp_path / "m.nc")
    assert back == m
    assert back.words == m.words and repr(back.identity) == repr(m.identity)
    with pytest.raises(hl.ScenarioError, match="overwrite"):
        m.save(tmp_path / "m.nc")
    acts = hl.heads.from_attention(**layer)
    acts.save(tmp_path / "a.nc")
    assert hl.heads.measure(tmp_path / "a.nc") == m
    with pytest.raises(hl.ScenarioError, match="has no figures of heads"):
        hl.heads.open_measured(tmp_path / "a.nc")


def test_the_table_is_that_of_the_program(program: str) -> None:
    import subprocess

    done = subprocess.run([program, "heads", CAPTURED], capture_output=True, text=True, check=True)
    assert hl.heads.measure(CAPTURED).table() == done.stdout


class Bfloat16:
    """A tensor of PyTorch's, of a type that NumPy lacks, on another device."""

    dtype = "torch.bfloat16"
    device = "cuda:0"

    def __init__(self, numbers: Any, plain: bool = False) -> None:
        short = np.asarray(numbers, np.float32).view(np.uint32) & np.uint32(0xFFFF0000)
        self.numbers, self.plain = short.view(np.float32), plain

    def detach(self) -> Bfloat16:
        return self

    def float(self) -> Bfloat16:
        return Bfloat16(self.numbers, True)

    def cpu(self) -> Any:
        if not self.plain:
            raise TypeError("NumPy has no bfloat16")
        return self.numbers


def test_rounded_numbers_are_compared_with_room_for_their_rounding(layer: dict[str, Any]) -> None:
    given = {n: layer[n] for n in ("q", "k", "v", "W_O", "attention", "document")}
    rounded = {n: Bfloat16(given[n]) for n in ("q", "k", "v")}
    with pytest.warns(hl.HeadlabWarning, match="arrays on cuda:0 are copied to the host"):
        m = hl.heads.measure({**given, **rounded})
    assert 1e-3 < m.identity[0]["total_variation_mean"] < 1e-2
    plain = {n: one.numbers for n, one in rounded.items()}
    with pytest.raises(hl.ScenarioError, match="not what this model attends with"):
        hl.heads.measure({**given, **plain})


@pytest.mark.parametrize(
    "change, message",
    [
        ({"w_o": np.zeros(3)}, 'w_o: no such array of a layer (there are q, k, v, W_O, '),
        ({"mask": np.zeros((1, 1, 20, 20))}, "mask: is not an array of booleans"),
        ({"mask": "casual"}, 'mask: is "casual" (allowed: causal, full, or an array)'),
        ({"scale": -1.0}, "scale: needs a number above 0"),
        ({"q": np.zeros((10, 4, 20, 3), np.int64)}, "q: has whole numbers, needs floats"),
        ({"v": np.full((10, 2, 20, 2), np.inf)}, "v: is not finite at [0][0][0][0] of sequence 0"),
        ({"W_O": np.full((4, 2, 6), np.nan)}, "W_O: is not finite at [0][0][0]"),
        ({"document": np.arange(9)}, "document: has shape 9: its axis sequence needs 10"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(hl.ScenarioError, match=re.escape(message)):
        hl.heads.measure({**made(), **change})


def test_hidden_keys_of_a_bias_are_those_of_a_mask() -> None:
    given = made()
    seen = np.tril(np.ones((1, 1, 20, 20), bool))
    by_mask = hl.heads.measure({**given, "mask": seen})
    for lowest in (-np.inf, float(np.finfo(np.float32).min)):
        by_bias = hl.heads.measure({**given, "mask": "full", "bias": np.where(seen, 0, lowest)})
        assert by_bias == by_mask
    np.testing.assert_allclose(by_mask["overlap"], hl.heads.measure(given)["overlap"], rtol=1e-12)


def test_several_files_are_one(tmp_path: Path, layer: dict[str, Any]) -> None:
    some = ("q", "k", "v", "scale")
    np.savez_compressed(tmp_path / "a.npz", **{n: layer[n] for n in some}, mask="causal")
    np.savez(tmp_path / "b.npz", **{n: a for n, a in layer.items() if n not in some})
    acts = hl.heads.open_activations(tmp_path / "a.npz", tmp_path / "b.npz")
    assert hl.heads.measure(acts) == hl.heads.measure(CAPTURED)
    np.savez(tmp_path / "c.npz", mask="full")
    with pytest.raises(hl.ScenarioError, match="says mask full, another file says causal"):
        hl.heads.open_activations(tmp_path / "a.npz", tmp_path / "b.npz", tmp_path / "c.npz")
    np.savez(tmp_path / "a.npz", **{n: layer[n] for n in some}, mask="full")
    with pytest.raises(hl.ScenarioError, match=r'with mask="causal" it is'):
        hl.heads.measure(hl.heads.open_activations(tmp_path / "a.npz", tmp_path / "b.npz"))
    (tmp_path / "d.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:-40])
    with pytest.raises(hl.ScenarioError, match="is not a ZIP archive, or is cut short"):
        hl.heads.open_activations(tmp_path / "d.npz")

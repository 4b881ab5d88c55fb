# SPDX-License-Identifier: Apache-2.0
"""Plans of removal against least squares, and checkpoints written without heads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headlab as hl


def made(bias: bool, layers: int = 1) -> dict[int, dict[str, Any]]:
    random = np.random.default_rng(3)
    found: dict[int, dict[str, Any]] = {}
    for layer in range(layers):
        b, h, t, e, d = 30, 4, 16, 3, 7
        mixed = random.normal(size=(h * e, h * e)) + 2 * np.eye(h * e)
        z = (random.normal(size=(b, t, h * e)) @ mixed + 1).reshape(b, t, h, e).transpose(0, 2, 1, 3)
        found[layer] = {
            "z": z, "W_O": random.normal(size=(h, e, d)), "residual": random.normal(size=(b, t, d)),
            "grad_z": random.normal(size=z.shape) / 100,
        }  # fmt: skip
        if bias:
            found[layer]["b_O"] = random.normal(size=d)
    return found


def columns(z: np.ndarray, heads: list[int]) -> np.ndarray:
    return np.concatenate([z[:, h].reshape(-1, z.shape[3]) for h in heads], 1)


@pytest.mark.parametrize("bias", [True, False])
def test_refits_are_least_squares(bias: bool) -> None:
    given = made(bias)[0]
    z, w = given["z"], given["W_O"]
    plan = hl.heads.measure(given).prune([(0, 2), (0, 0)])
    everything = columns(z, [0, 1, 2, 3])
    mean = everything.mean(0)
    ridge = 1e-6 * np.square(everything - bias * mean).mean()
    # The ridge as rows of their own, each of which says that W stays as it is.
    rows = np.sqrt(ridge * len(everything)) * np.eye(12)
    output = np.r_[(everything - bias * mean) @ w.reshape(12, 7), rows @ w.reshape(12, 7)]
    kept = [3, 4, 5, 9, 10, 11]
    inputs = np.r_[everything - bias * mean, rows][:, kept]
    fitted, *_ = np.linalg.lstsq(inputs, output, rcond=None)
    found, constant = plan.maps()[0]
    np.testing.assert_allclose(found[[1, 3]].reshape(6, -1), fitted, rtol=1e-9, atol=1e-9)
    assert not found[[0, 2]].any()
    assert (constant is None) != bias
    if constant is not None:
        np.testing.assert_allclose(constant, mean @ w.reshape(12, 7) - mean[kept] @ fitted, rtol=1e-9, atol=1e-9)
    error = ((output - inputs @ fitted) ** 2).sum() / len(everything)
    share = error / (given["residual"] ** 2).sum(-1).mean()
    np.testing.assert_allclose(plan._predicted[-1]["predicted_share"], share, rtol=1e-9)


def test_the_greedy_order_takes_the_least_added_error() -> None:
    m = hl.heads.measure(made(True, 2))
    plan = m.prune(3)
    alone = {
        (layer, head): m.prune([(layer, head)])._predicted[0]["predicted_share"] for layer in (0, 1) for head in range(4)
    }
    assert plan.order[0] == min(alone, key=lambda one: alone[one])
    second = {one: m.prune([plan.order[0], one])._predicted[1]["predicted_share"] for one in alone if one != plan.order[0]}
    assert plan.order[1] == min(second, key=lambda one: second[one])


def test_other_orders_follow_their_figures() -> None:
    m = hl.heads.measure(made(True, 2))
    assert m.prune(3, by="spread").order[0] == min(
        ((layer, head) for layer in (0, 1) for head in range(4)),
        key=lambda one: m["spread"][one] / m["stream"][one[0]],
    )
    flat = [(float(m["second_order"][i, h]), (i, h)) for i in (0, 1) for h in range(4)]
    assert m.prune(3, by="second_order").order == [one for _, one in sorted(flat)[:3]]
    assert m.prune(3, by="random", seed=1).order != m.prune(3, by="random", seed=2).order
    assert m.prune(3, by="random", seed=1).order == m.prune(3, by="random", seed=1).order


def safetensors(tensors: dict[str, tuple[str, list[int], bytes]]) -> bytes:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, (kind, shape, raw) in tensors.items():
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def test_a_checkpoint_keeps_every_other_byte(tmp_path: Path) -> None:
    given = made(False)[0]
    weight = np.concatenate(given["W_O"]).T.astype(np.float32)  # [d, H e]
    folder = tmp_path / "model"
    folder.mkdir()
    other = np.random.default_rng(0).bytes(64)
    (folder / "config.json").write_text("{}")
    short = (weight.view(np.uint32) >> 16).astype(np.uint16)
    (folder / "model.safetensors").write_bytes(
        safetensors({"model.a": ("I8", [64], other), "model.o_proj.0.weight": ("BF16", [7, 12], short.tobytes())})
    )
    plan = hl.heads.measure(given).prune([(0, 1)])
    plan.write(folder, tmp_path / "out", output_name="o_proj.{}.weight")
    before, after = (p.joinpath("model.safetensors").read_bytes() for p in (folder, tmp_path / "out"))
    assert len(after) == len(before) and other in after
    numbers = np.frombuffer(after[-7 * 12 * 2 :], np.uint16).reshape(7, 12)
    found = (numbers.astype(np.uint32) << 16).view(np.float32)
    wanted = plan.maps()[0][0].reshape(12, 7).T
    np.testing.assert_allclose(found, wanted, rtol=2**-8)
    assert not numbers[:, 3:6].any()
    assert json.loads((tmp_path / "out/headlab.json").read_text())["removed"] == [[0, 1]]
    assert (tmp_path / "out/config.json").read_text() == "{}"
    with pytest.raises(hl.ScenarioError, match="is there already"):
        plan.write(folder, tmp_path / "out", output_name="o_proj.{}.weight")
    with pytest.raises(hl.ScenarioError, match="has no tensor p_proj.0.weight"):
        plan.write(folder, tmp_path / "none", output_name="p_proj.{}.weight")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["model", "out"]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"remove": 1.5}, "^remove: is 1.5"),
        ({"remove": 4}, "^remove: is 4 heads of 4 .allowed: 1 to 3"),
        ({"remove": [(0, 9)]}, r"^remove: \(0, 9\) is not a head"),
        ({"by": "refits"}, '^by: .*did you mean "refit"'),
        ({"layers": [2]}, "^layers: 2 was not measured"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(hl.ScenarioError, match=message):
        hl.heads.measure(made(True)[0]).prune(**arguments)


def test_losses_may_be_tensors_and_have_to_be_one_a_sequence() -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("pandas")
    given = made(True)[0]
    plan = hl.heads.measure(given).prune([(0, 1)])
    child = torch.nn.Linear(12, 7)
    plan.targets, model = {0: ("0", False)}, torch.nn.Sequential(child)
    z = torch.from_numpy(given["z"]).transpose(1, 2).flatten(2).float()
    found = plan.evaluate(lambda: model(z).square().sum((1, 2)), model=model, random=1)
    assert np.isfinite(found["cost"][0])
    with pytest.raises(hl.ScenarioError, match="^loss: needs a finite number for each sequence"):
        plan.evaluate(lambda: 1.0, model=model)


def test_refits_need_tokens_and_plans_what_they_order_by() -> None:
    few = {name: array[:10] if array.shape[0] == 30 else array for name, array in made(True)[0].items()}
    with pytest.raises(hl.ScenarioError, match="^refit: needs 192 tokens and 8 documents, there are 160 and 10"):
        hl.heads.measure(few).prune(1)
    two = made(True, 2)
    for one in two.values():
        del one["residual"], one["grad_z"]
    m = hl.heads.measure(two)
    with pytest.raises(hl.ScenarioError, match="^by: ranks hold within layers"):
        m.prune(1)
    assert len(m.prune(1, layers=[1]).order) == 1
    with pytest.raises(hl.ScenarioError, match="^by: second_order needs gradients"):
        m.prune(1, by="second_order")


@pytest.mark.parametrize("bias", [True, False])
def test_maps_of_lower_rank_have_the_least_error(bias: bool) -> None:
    given = made(bias)[0]
    m = hl.heads.measure(given)
    low = m.low_rank(2)
    maps, constant = low.maps()[0]
    for head in range(4):
        z = columns(given["z"], [head])
        z = z - bias * z.mean(0)
        w = given["W_O"][head]
        error = np.square(z @ (w - maps[head])).sum(1).mean()
        found = low._errors[0][head]
        np.testing.assert_allclose(found, (error, np.square(z @ w).sum(1).mean()), rtol=1e-9)
        assert np.linalg.matrix_rank(maps[head]) == 2
        # The singular values of the outputs themselves, which no map of rank 2 does better than.
        s = np.linalg.svd(z @ w, compute_uv=False)
        np.testing.assert_allclose(error, (s[2:] ** 2).sum() / len(z), rtol=1e-9)
    assert (constant is None) != bias
    whole, _ = m.low_rank(3).maps()[0]
    np.testing.assert_allclose(whole, given["W_O"], rtol=1e-12, atol=1e-12)
    with pytest.raises(hl.ScenarioError, match="^rank: is 4 .allowed: 1 to 3"):
        m.low_rank(4)

# SPDX-License-Identifier: Apache-2.0
"""Terms across contexts and heads as predictors, from their definitions; layouts and limits of words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headlab as hl
from test_heads_on_text import made


def with_tokens(documents: int = 12) -> dict[str, Any]:
    tokens = np.random.default_rng(1).integers(0, 4, (documents, 21))
    return {**made(documents), "tokens": tokens}


def outputs(given: dict[str, Any]) -> np.ndarray:
    """Outputs of the heads [B, H, T, d], and their weights are found on the way."""
    q, k, v = (given[name] for name in ("q", "k", "v"))
    group = [0, 0, 1, 1]
    logits = np.einsum("bhtk,bhsk->bhts", q, k[:, group]) / np.sqrt(q.shape[3])
    logits = np.where(np.tril(np.ones(logits.shape[2:], bool)), logits, -np.inf)
    weights = np.exp(logits - logits.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    return np.einsum("bhts,bhse,hed->bhtd", weights, v[:, group], given["W_O"])


def terms(o: np.ndarray, y: np.ndarray, stratum: np.ndarray, document: np.ndarray) -> dict[str, float]:
    """Of tokens [N, H, p] and targets [N, p], by all pairs of tokens of different documents."""

    def k_and_u(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
        u = m = used = 0.0
        for c in np.unique(stratum):
            here = np.flatnonzero(stratum == c)
            other = document[here][:, None] != document[here]
            if not other.any():
                continue
            products = a[here] @ b[here].T
            u += len(here) * products[other].mean()
            m += np.trace(products)
            used += len(here)
        return (m - u) / used, u / used

    heads = range(o.shape[1])
    f = o.sum(1)
    variance = sum(k_and_u(o[:, h], o[:, h])[0] for h in heads)
    return {
        "bias_squared": k_and_u(y - f, y - f)[1], "variance": variance,
        "covariance": k_and_u(f, f)[0] - variance, "target_variance": k_and_u(y, y)[0],
        "alignment": -2 * k_and_u(y, f)[0], "mse": np.square(y - f).sum(1).mean(),
    }  # fmt: skip


def found(m: hl.heads.Measured, start: str = "contexts_") -> dict[str, float]:
    return {name.removeprefix(start): float(m[name][0]) for name in m if name.startswith(start)}


@pytest.mark.parametrize("strata", ["token", "none"])
def test_terms_of_the_next_token_are_their_definition(strata: str) -> None:
    given = with_tokens()
    m = hl.heads.measure(given, target="next_token", strata=strata, float64=True)
    o = outputs(given).transpose(0, 2, 1, 3)  # [B, T, H, d]
    y = np.eye(4)[given["tokens"][:, 1:]]
    fitted, f, target = o[::2].reshape(-1, 4, 6), o[::2].sum(2).reshape(-1, 6), y[::2].reshape(-1, 4)
    centred = f - f.mean(0)
    squares = centred.T @ centred / len(f)
    squares += 1e-3 * np.trace(squares) / 6 * np.eye(6)
    readout = np.linalg.solve(squares, centred.T @ (target - target.mean(0)) / len(f))
    stratum = given["tokens"][1::2, :-1].ravel() if strata == "token" else np.zeros(6 * 20)
    expected = terms(
        (o[1::2].reshape(-1, 4, 6) - fitted.mean(0)) @ readout, y[1::2].reshape(-1, 4) - target.mean(0), stratum,
        np.repeat(np.arange(6), 20),
    )  # fmt: skip
    values = found(m)
    for name, value in expected.items():
        assert abs(values[name] - value) < 1e-9 * expected["mse"], name
    parts = ("bias_squared", "variance", "covariance", "target_variance", "alignment")
    assert abs(sum(values[name] for name in parts) - values["mse"]) < 1e-9 * values["mse"]
    assert any("bias², variance and covariance alone are not the error" in words for words in m.words)


def test_frames_and_files_have_them(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    m = hl.heads.measure(with_tokens(), target="output", strata="none", leave_one_out=True)
    row = m.contexts().iloc[0]
    assert abs(row["mse"]) < 1e-12 * row["variance"]
    assert row["variance_se"] > 0 and row["tokens_used"] == 1
    ambiguity = m.leave_one_out().iloc[0]
    assert abs(ambiguity["mean_head_mse"] - ambiguity["ambiguity"] - ambiguity["mse"]) < 1e-12
    assert {"loo_head_mse", "loo_weight"} <= set(m.heads.columns) and "loo_error" in m.pairs
    m.save(tmp_path / "m.nc")
    assert hl.heads.open_measured(tmp_path / "m.nc").contexts().equals(m.contexts())
    with pytest.raises(hl.ScenarioError, match="^measured: has none of these figures"):
        hl.heads.measure(with_tokens()).contexts()


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"target": "next_tokens"}, '^target: "next_tokens" is unknown'),
        ({"strata": "tokens", "target": "output"}, '^strata: "tokens" is unknown'),
        ({"target": "array"}, "has no array target"),
        ({"little": 1.5}, "^little: is 1.5"),
    ],
)
def test_what_does_not_fit_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(hl.ScenarioError, match=message):
        hl.heads.measure(with_tokens(), **arguments)


def test_heads_may_be_third() -> None:
    given = with_tokens()
    turned = {name: one.swapaxes(1, 2) if name in ("q", "k", "v") else one for name, one in given.items()}
    assert hl.heads.measure(hl.heads.from_attention(**turned, layout="bthk")) == hl.heads.measure(given)
    with pytest.raises(hl.ScenarioError, match="its heads are third - give another layout"):
        hl.heads.from_attention(**turned)
    with pytest.raises(hl.ScenarioError, match="^layout: 'bkth' is none"):
        hl.heads.from_attention(**turned, layout="bkth")


def test_limits_of_words_can_be_given() -> None:
    given = with_tokens()
    assert not any("exchangeable" in words for words in hl.heads.measure(given).words)
    share = hl.heads.measure(given)["exchange_share"][0]
    pairs = share[~np.eye(4, dtype=bool)]
    assert pairs.min() > 0.1
    m = hl.heads.measure(given, exchangeable=0.99)
    below = share + 2 * m["exchange_share_se"][0] < 0.99
    assert any("exchangeable" in words for words in m.words) == bool(below[~np.eye(4, dtype=bool)].any())

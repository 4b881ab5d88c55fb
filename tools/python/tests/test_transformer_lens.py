# SPDX-License-Identifier: Apache-2.0
"""hl.heads.from_transformer_lens on a cache and a model that have its names and shapes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import headlab as hl


def lens(rotary: bool = False) -> tuple[dict[str, Any], Any, dict[str, Any]]:
    """A cache, its model, and what from_attention takes."""
    given = dict(np.load("validation/testdata/real-llama-layer1.npz"))
    name = "hook_rot_" if rotary else "hook_"
    cache = {
        f"blocks.0.attn.{name}q": given["q"].swapaxes(1, 2), f"blocks.0.attn.{name}k": given["k"].swapaxes(1, 2),
        "blocks.0.attn.hook_v": given["v"].swapaxes(1, 2), "blocks.0.attn.hook_z": given["z"].swapaxes(1, 2),
        "blocks.0.attn.hook_pattern": given["attention"], "blocks.0.hook_resid_pre": given["residual"],
    }  # fmt: skip
    attention = SimpleNamespace(W_O=given["W_O"], b_O=np.zeros(64, np.float32), attn_scale=8**0.5)
    cfg = SimpleNamespace(positional_embedding_type="rotary" if rotary else "standard", attn_scores_soft_cap=-1.0)
    model = SimpleNamespace(blocks=[SimpleNamespace(attn=attention)], cfg=cfg)
    wanted = {name: given[name] for name in ("q", "k", "v", "z", "attention", "residual", "W_O", "document")}
    return cache, model, {**wanted, "scale": 8**-0.5}


@pytest.mark.parametrize("rotary", [False, True])
def test_a_cache_has_the_bits_of_its_arrays(rotary: bool) -> None:
    cache, model, given = lens(rotary)
    m = hl.heads.measure(hl.heads.from_transformer_lens(cache, model, document=given["document"]))
    assert m == hl.heads.measure(given)
    assert m.identity[0]["total_variation_max"] < 1e-6


def test_settings_are_those_of_the_model() -> None:
    cache, model, given = lens()
    model.cfg.attn_types, model.cfg.window_size = ["local"], 5
    model.cfg.attn_scores_soft_cap = 30.0
    del cache["blocks.0.attn.hook_pattern"], cache["blocks.0.attn.hook_z"]
    m = hl.heads.measure(hl.heads.from_transformer_lens(cache, model, document=given["document"]))
    alone = {name: one for name, one in given.items() if name not in ("z", "attention")}
    assert m == hl.heads.measure({**alone, "window": 5, "softcap": 30.0})
    assert m != hl.heads.measure(alone)


def test_what_is_missing_is_named() -> None:
    cache, model, _ = lens()
    model.cfg.positional_embedding_type = "rotary"
    with pytest.raises(hl.ScenarioError, match="^cache: has no blocks.0.attn.hook_rot_q"):
        hl.heads.from_transformer_lens(cache, model)
    with pytest.raises(hl.ScenarioError, match="^layers: 1 is not a layer"):
        hl.heads.from_transformer_lens(cache, model, [1])


def test_folded_weights_are_written_to_no_checkpoint() -> None:
    cache, model, given = lens()
    acts = hl.heads.from_transformer_lens(cache, model, document=given["document"])
    plan = hl.heads.measure(acts).prune([(0, 1)], refit=False)
    with pytest.raises(hl.ScenarioError, match="folded"):
        plan.write("model", "out", output_name="o_proj.{}.weight")

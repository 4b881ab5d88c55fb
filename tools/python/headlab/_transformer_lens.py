# SPDX-License-Identifier: Apache-2.0
"""hl.heads.from_transformer_lens: activations from a cache of TransformerLens."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ._activations import Activations, from_attention
from ._arguments import index
from ._errors import ScenarioError


def _heads_second(tensor: Any) -> Any:
    """[B, T, H, k] as [B, H, T, k]."""
    return tensor.swapaxes(1, 2)


def _layer(cache: Any, model: Any, number: int) -> dict[str, Any]:
    start, attention, cfg = f"blocks.{number}.", model.blocks[number].attn, model.cfg

    def hook(*names: str) -> Any:
        for name in names:
            if start + name in cache:
                return cache[start + name]
        raise ScenarioError(f"cache: has no {start}{names[0]} - add it to names_filter of run_with_cache")

    rotary = getattr(cfg, "positional_embedding_type", "") == "rotary"
    given: dict[str, Any] = {
        "q": _heads_second(hook("attn.hook_rot_q") if rotary else hook("attn.hook_q")),
        "k": _heads_second(hook("attn.hook_rot_k") if rotary else hook("attn.hook_k")),
        "v": _heads_second(hook("attn.hook_v")),
        "W_O": attention.W_O,
        "b_O": attention.b_O,
        "scale": 1 / float(attention.attn_scale) if getattr(cfg, "use_attn_scale", True) else 1.0,
        "mask": "full" if getattr(cfg, "attention_dir", "causal") == "bidirectional" else "causal",
    }
    for name, own in (("z", "attn.hook_z"), ("attention", "attn.hook_pattern"), ("residual", "hook_resid_pre")):
        if start + own in cache:
            given[name] = _heads_second(cache[start + own]) if name == "z" else cache[start + own]
    cap = float(getattr(cfg, "attn_scores_soft_cap", -1) or -1)
    if cap > 0:  # -1 is none
        given["softcap"] = cap
    types = getattr(cfg, "attn_types", None)
    if types is not None and types[number] == "local":
        given["window"] = int(cfg.window_size)
    alibi = getattr(attention, "alibi", None)
    if alibi is not None:
        given["bias"] = alibi[None, :, : given["q"].shape[2], : given["k"].shape[2]]
    return given


def from_transformer_lens(
    cache: Any, model: Any, layers: Iterable[int] | None = None, *, document: Any = None
) -> Activations:
    """Activations from ``_, cache = model.run_with_cache(tokens)`` of TransformerLens.

    A rotary model needs its ``hook_rot_q`` and ``hook_rot_k``. All layers, or some; `document` numbers
    the document of each sequence. Where its weights were folded or centred, as they are by default,
    they are not those of a checkpoint: a plan of removal is not written to one.

    :param cache (ActivationCache or dict): Arrays by the names of their hooks.
    :param model (HookedTransformer): The model they are of.
    :returns Activations: Arrays of every layer, axes in the order of headlab.
    :raises ScenarioError: A hook that is missing, by its name.
    """
    numbers = range(len(model.blocks)) if layers is None else [index("layers", one) for one in layers]
    found = {}
    for number in numbers:
        if not 0 <= number < len(model.blocks):
            raise ScenarioError(f"layers: {number} is not a layer (allowed: 0 to {len(model.blocks) - 1})")
        found[number] = {**_layer(cache, model, number), "document": document}
    acts = from_attention(found)
    acts._folded = True
    return acts

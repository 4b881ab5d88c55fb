# SPDX-License-Identifier: Apache-2.0
"""hl.heads.capture on small random models of transformers, where it is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headlab as hl

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

FAMILIES = (
    "cohere", "gemma", "gemma2", "gemma3_text", "glm4", "gpt2", "gpt_neox", "gpt_oss", "granite", "gptj", "llama",
    "mistral", "mixtral", "olmo2", "opt", "phi", "phi3", "qwen2", "qwen3", "smollm3", "stablelm", "starcoder2",
)  # fmt: skip
SIZES: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
    "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
OWN_SIZES: dict[str, dict[str, Any]] = {
    "gpt2": {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    "gptj": {"n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4},
    "opt": {"ffn_dim": 48, "word_embed_proj_dim": 32},
    "gpt_oss": {"num_local_experts": 2, "num_experts_per_tok": 1},
    "mixtral": {"num_local_experts": 2},
}


def model_of(family: str, **more: Any) -> Any:
    torch.manual_seed(0)
    own = OWN_SIZES.get(family, {})
    sizes = {k: v for k, v in SIZES.items() if k == "vocab_size" or "token_id" in k} if family == "gpt2" else SIZES
    if family in ("gpt_neox", "opt", "gptj"):
        sizes = {k: v for k, v in SIZES.items() if k not in ("head_dim", "num_key_value_heads")}
    config = transformers.AutoConfig.for_model(family, **sizes, **own, **more)
    return transformers.AutoModelForCausalLM.from_config(config).eval()


def ids_of(sequences: int = 4, tokens: int = 12) -> Any:
    return torch.from_numpy(np.random.default_rng(1).integers(3, 50, (sequences, tokens)))


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_attends_as_it_does_itself(family: str) -> None:
    model = model_of(family)
    own = model.config._attn_implementation
    with hl.heads.capture(model) as c, torch.no_grad():
        model(input_ids=ids_of())
    assert model.config._attn_implementation == own
    m = hl.heads.measure(c)
    assert list(m["layer"]) == [0, 1]
    for distances in m.identity.values():
        assert distances["total_variation_max"] < 1e-5
        assert distances["z_relative"] < 1e-5
        assert distances["output_relative"] < 1e-5
    assert ("spread_share" in m) == (family not in ("gemma2", "gemma3_text", "glm4", "granite", "olmo2"))


def test_encoders_of_images_attend_to_all() -> None:
    config = transformers.ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=16, patch_size=4
    )
    model = transformers.ViTModel(config).eval()
    with hl.heads.capture(model, layers=[1]) as c, torch.no_grad():
        model(pixel_values=torch.randn(3, 3, 16, 16, generator=torch.Generator().manual_seed(0)))
    m = hl.heads.measure(c)
    assert list(m["layer"]) == [1] and list(m["tokens"]) == [3 * 17]
    assert m.identity[1]["total_variation_max"] < 1e-5


def test_models_without_the_interface_are_refused() -> None:
    model = model_of("mpt", d_model=32, n_heads=4, n_layers=2)
    with pytest.raises(hl.ScenarioError, match="^model: MptForCausalLM does not use transformers' attention"):
        with hl.heads.capture(model), torch.no_grad():
            model(input_ids=ids_of())
    with pytest.raises(hl.ScenarioError, match="pass q, k, v to hl.heads.from_attention$"):
        hl.heads.measure(model, [ids_of()])
    config = transformers.AutoConfig.for_model("t5", d_model=32, num_layers=1, num_heads=4)
    with pytest.raises(hl.ScenarioError, match="^model: is an encoder with a decoder, .* - pass q, k, v to hl.heads"):
        hl.heads.capture(transformers.AutoModel.from_config(config).eval())
    with pytest.raises(hl.ScenarioError, match=r"call model.eval\(\)"):
        hl.heads.capture(model_of("llama").train())
    # Its map of outputs is beside its attention, in another module.
    bert = transformers.BertModel(transformers.BertConfig(**SIZES)).eval()
    with pytest.raises(hl.ScenarioError, match="^model: no module of the attention of layer 0 .* - pass q, k, v to"):
        hl.heads.measure(bert, [ids_of()], labels=None)


@pytest.mark.parametrize(
    "batches, arguments, message",
    [
        ([], {}, "^capture: nothing was run in it"),
        (ids_of(), {}, r"^batches: each needs token ids \[B, T\], whole numbers, one is \[12\] of int64"),
        ([ids_of().float()], {}, "one is .* of float32"),
        ([[[1, 2], [3]]], {}, "^batches: token ids .* of one length"),
        ([ids_of()[:, :1]], {}, "^batches: losses of next tokens need two tokens"),
        ([ids_of()], {"layer": 9}, "^layer: the model has none of that number .there are 2"),
        ([ids_of()], {"document": [1, 2]}, "document: has shape 2: its axis sequence needs 4"),
    ],
)
def test_batches_that_do_not_fit_are_refused(batches: Any, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(hl.ScenarioError, match=message):
        hl.heads.measure(model_of("gpt2"), batches, **arguments)


def test_batches_may_be_lists_and_arrays() -> None:
    model, ids = model_of("gpt2", initializer_range=0.3), ids_of(4)
    m = hl.heads.measure(model, [ids])
    assert hl.heads.measure(model, [ids.numpy()]) == m == hl.heads.measure(model, [ids.tolist()])


def test_tokens_are_there_for_targets() -> None:
    model, ids = model_of("gpt2", initializer_range=0.3), ids_of(20, 16)
    m = hl.heads.measure(model, ids.split(6), labels=None, target="next_token", strata="none", leave_one_out=True)
    assert 0 < m["contexts_mse"][0] < 2 and 0 < m["loo_mse"][0] < 2


def test_another_attention_than_the_models_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from headlab import _capture

    def wrong(*args: Any, **kwargs: Any) -> Any:
        return _capture._attend(*args, **{**kwargs, "scaling": 1.7})

    real = _capture.Capture.__enter__

    def enter(self: Any) -> Any:
        found = real(self)
        transformers.AttentionInterface.register("headlab", wrong)
        return found

    monkeypatch.setattr(_capture.Capture, "__enter__", enter)
    model = model_of("llama", initializer_range=0.5)
    with pytest.raises(hl.ScenarioError, match="^model: has other logits in the capture"):
        with hl.heads.capture(model), torch.no_grad():
            model(input_ids=ids_of())
    assert model.config._attn_implementation != "headlab"


def captured(model: Any, ids: Any) -> hl.heads.Measured:
    with hl.heads.capture(model) as c:
        for some in ids.split(5):
            (model(input_ids=some, labels=some).loss * some[:, 1:].numel()).backward()
    return hl.heads.measure(c)


def test_gradients_are_those_of_the_loss() -> None:
    """A head scaled by 1 + h changes the loss by h times sum grad.z."""
    model, ids = model_of("gpt2", initializer_range=0.3).double(), ids_of(10)
    m = captured(model, ids)
    rows = model.transformer.h[1].attn.c_proj.weight.detach()[8:16]

    def losses() -> Any:
        with torch.no_grad():
            logits = model(input_ids=ids).logits[:, :-1].log_softmax(-1)
        return -logits.gather(-1, ids[:, 1:, None])[..., 0].sum(1)

    step, before = 1e-5, rows.clone()
    rows.mul_(1 + step)
    up = losses()
    rows.copy_(before * (1 - step))
    down = losses()
    rows.copy_(before)
    derivative = (up - down) / (2 * step)
    np.testing.assert_allclose(m["sensitivity"][1, 1], float(derivative.abs().sum()) / ids.numel(), rtol=1e-4)


def test_a_model_with_batches_is_what_a_capture_has() -> None:
    model, ids = model_of("gpt2", initializer_range=0.3), ids_of(10)
    by_hand = captured(model, ids)
    model.zero_grad()
    m = hl.heads.measure(model, ids.split(5))
    assert all(one.grad is None for one in model.parameters())
    for name in ("spread", "overlap"):
        assert np.array_equal(m[name], by_hand[name])
    # The same numbers through another sum: 120 terms of a float32 loss.
    np.testing.assert_allclose(m["sensitivity"], by_hand["sensitivity"], rtol=120 * 2**-23)
    drawn = hl.heads.measure(model, ids.split(5), labels="model", seed=1)
    assert drawn == hl.heads.measure(model, ids.split(5), labels="model", seed=1)
    assert drawn != hl.heads.measure(model, ids.split(5), labels="model", seed=2)
    assert "second_order" not in hl.heads.measure(model, [{"input_ids": ids}], labels=None)
    numbered = hl.heads.measure(model, [ids], labels=None, document=np.arange(10) // 5)
    assert list(numbered["documents"]) == [2, 2]
    with pytest.raises(hl.ScenarioError, match="^batches: are needed with a model"):
        hl.heads.measure(model)
    with pytest.raises(hl.ScenarioError, match="^model: its parameters ask for no gradient"):
        hl.heads.measure(model.requires_grad_(False), [ids])


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_a_pruned_checkpoint_is_the_model_that_was_evaluated(family: str, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    model, ids = model_of(family, initializer_range=0.3), ids_of(60)
    plan = captured(model, ids).prune(0.25)
    before = {name: one.clone() for name, one in model.named_parameters()}

    def loss_of(of: Any) -> Any:
        with torch.no_grad():
            logits = of(input_ids=ids).logits[:, :-1].log_softmax(-1)
        return -logits.gather(-1, ids[:, 1:, None])[..., 0].mean(1).numpy()

    found = plan.evaluate(lambda: loss_of(model), random=2)
    assert all(torch.equal(before[name], one) for name, one in model.named_parameters())
    model.save_pretrained(tmp_path / "model")
    plan.write(tmp_path / "model", tmp_path / "pruned")
    pruned = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "pruned").eval()
    cost = float((loss_of(pruned) - loss_of(model)).mean())
    assert abs(cost - found["cost"][0]) < 1e-6


CUTTABLE = (
    "gemma", "gemma2", "gemma3_text", "glm4", "gpt_oss", "granite", "llama", "mistral", "mixtral", "phi", "phi3",
    "qwen2", "qwen3", "smollm3", "starcoder2",
)  # fmt: skip


@pytest.mark.parametrize("family", CUTTABLE)
@pytest.mark.parametrize("heads", [[(0, 0), (0, 3), (1, 1), (1, 2)], [(0, 0), (0, 1), (1, 2), (1, 3)]])
def test_heads_are_cut_out_of_a_checkpoint(family: str, heads: list[tuple[int, int]], tmp_path: Path) -> None:
    """One of each group, or a whole group: the model is the one with their output maps at 0."""
    model, ids = model_of(family, initializer_range=0.3), ids_of(60)
    with torch.no_grad():
        for name, bias in model.named_parameters():
            if name.endswith("proj.bias") or name.endswith("sinks"):
                bias.normal_()
    with hl.heads.capture(model) as c, torch.no_grad():
        model(input_ids=ids)
    plan = hl.heads.measure(c).prune(heads, shrink=True)
    model.save_pretrained(tmp_path / "model")
    plan.write(tmp_path / "model", tmp_path / "small")
    small = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "small").eval()
    assert small.config.num_attention_heads == 2
    assert small.config.num_key_value_heads == (2 if heads[1] == (0, 3) else 1)
    assert small.num_parameters() < model.num_parameters()
    with torch.no_grad(), plan.applied():
        wanted, found = model(input_ids=ids).logits, small(input_ids=ids).logits
    # Sums of fewer terms, the others 0, in another order: of 48 at most, through two layers.
    torch.testing.assert_close(found, wanted, rtol=0, atol=100 * 48 * 2**-24 * float(wanted.abs().max()))


def test_heads_are_cut_evenly_or_not_at_all(tmp_path: Path) -> None:
    model = model_of("llama", initializer_range=0.3)
    m = captured(model, ids_of(60))
    plan = m.prune(0.5, shrink=True)
    assert sorted((layer, head // 2) for layer, head in plan.order) == [(0, 0), (0, 1), (1, 0), (1, 1)]
    model.save_pretrained(tmp_path / "model")
    with pytest.raises(hl.ScenarioError, match="model: layer 0 keeps . heads? of group ., . of another"):
        plan.write(tmp_path / "model", tmp_path / "out", steps=3)
    with pytest.raises(hl.ScenarioError, match="^remove: 2 heads do not come evenly from 2 layers with 4 groups"):
        m.prune(0.25, shrink=True)
    # Heads of different layers are not compared.
    scaled = captured(model_of("gemma2", initializer_range=0.3), ids_of(60))
    assert len(scaled.prune(0.5, shrink=True).order) == 4
    with pytest.raises(hl.ScenarioError, match="^by: ranks hold within layers"):
        scaled.prune(0.5)
    other = model_of("gpt2", initializer_range=0.3)
    other.save_pretrained(tmp_path / "gpt2")
    plan = captured(other, ids_of(60)).prune(0.5, shrink=True)
    with pytest.raises(hl.ScenarioError, match="gpt2: models of type gpt2 have no size of a head of their own"):
        plan.write(tmp_path / "gpt2", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_padding_is_left_out() -> None:
    model, ids = model_of("llama"), ids_of(4)
    kept = torch.ones_like(ids)
    kept[1, 7:] = 0
    with hl.heads.capture(model) as c, torch.no_grad():
        model(input_ids=ids, attention_mask=kept)
        model(input_ids=ids[:2, :9], attention_mask=kept[:2, :9])
    m = hl.heads.measure(c)
    assert list(m["tokens"]) == [4 * 12 - 5 + 9 + 7] * 2

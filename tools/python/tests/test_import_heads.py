# SPDX-License-Identifier: Apache-2.0
"""Attention computed from imported heads against that of random tiny models of transformers.

With random biases and gains. What is left out of the file (positions, masks, soft caps, sinks, norms of
queries and keys) is applied here as the model does it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import headlab as hl
import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

#: Logits of size 1 to 10 from sums of some ten products in float32.
CLOSE = 1e-5
TOKENS = 12
SMALL: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "attention_dropout": 0.0, "hidden_dropout": 0.0, "attn_implementation": "eager",
}  # fmt: skip
GROUPED = {**SMALL, "num_key_value_heads": 2}
HEADS_OF_16 = {**GROUPED, "head_dim": 16}
EXPERTS = {"num_experts_per_tok": 1, "moe_intermediate_size": 8}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 1e4}
LONG = {
    "rope_type": "longrope", "short_factor": [1.0] * 4, "long_factor": [2.0] * 4, "rope_theta": 1e4,
    "original_max_position_embeddings": 16,
}  # fmt: skip
#: (class of the configuration, its members)
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertConfig", SMALL),
    "bloom": ("BloomConfig", {**SMALL, "n_head": 4, "n_layer": 2}),
    "camembert": ("CamembertConfig", SMALL),
    "deit": ("DeiTConfig", {**SMALL, "image_size": 8, "patch_size": 2}),
    "distilbert": ("DistilBertConfig", {"vocab_size": 50, "dim": 32, "hidden_dim": 24, "n_heads": 4, "n_layers": 2,
                                        "dropout": 0.0, "attention_dropout": 0.0, "attn_implementation": "eager"}),
    "falcon-7b": ("FalconConfig", {**SMALL, "multi_query": True, "new_decoder_architecture": False, "bias": True}),
    "falcon-40b": ("FalconConfig", {**SMALL, "new_decoder_architecture": True, "num_kv_heads": 2, "bias": True}),
    "falcon-rw": ("FalconConfig", {**SMALL, "multi_query": False, "new_decoder_architecture": False}),
    "gemma": ("GemmaConfig", HEADS_OF_16),
    "gemma2": ("Gemma2Config", {**HEADS_OF_16, "query_pre_attn_scalar": 5, "attn_logit_softcapping": 3.0}),
    "gemma3": ("Gemma3TextConfig", {**HEADS_OF_16, "query_pre_attn_scalar": 5}),
    "glm4": ("Glm4Config", {**GROUPED, "head_dim": 8, "attention_bias": True}),
    "gpt2": ("GPT2Config", {**SMALL, "n_embd": 32, "n_head": 4, "n_layer": 2}),
    "gpt_neox": ("GPTNeoXConfig", SMALL),
    "gpt_oss": ("GptOssConfig", {**HEADS_OF_16, "num_local_experts": 2, "num_experts_per_tok": 1, "attention_bias": True,
                                 "rope_parameters": YARN}),
    "granite": ("GraniteConfig", {**GROUPED, "attention_multiplier": 0.21, "attention_bias": True}),
    "llama": ("LlamaConfig", {**GROUPED, "attention_bias": True}),
    "llama-yarn": ("LlamaConfig", {**GROUPED, "rope_parameters": YARN}),
    "mistral": ("MistralConfig", {**GROUPED, "head_dim": 8}),
    "mixtral": ("MixtralConfig", {**GROUPED, **EXPERTS, "num_local_experts": 2}),
    "olmo2": ("Olmo2Config", GROUPED),
    "opt": ("OPTConfig", {**SMALL, "ffn_dim": 24, "word_embed_proj_dim": 32}),
    "phi": ("PhiConfig", SMALL),
    "phi3": ("Phi3Config", {**GROUPED, "original_max_position_embeddings": 64}),
    "phi3-longrope": ("Phi3Config", {**GROUPED, "original_max_position_embeddings": 16, "rope_parameters": LONG}),
    "qwen2": ("Qwen2Config", GROUPED),
    "qwen2_moe": ("Qwen2MoeConfig", {**GROUPED, **EXPERTS, "num_experts": 2}),
    "qwen3": ("Qwen3Config", HEADS_OF_16),
    "qwen3_moe": ("Qwen3MoeConfig", {**HEADS_OF_16, **EXPERTS, "num_experts": 2}),
    "roberta": ("RobertaConfig", SMALL),
    "smollm3": ("SmolLM3Config", {**GROUPED, "no_rope_layers": [1, 0]}),
    "stablelm": ("StableLmConfig", {**GROUPED, "use_qkv_bias": True}),
    "starcoder2": ("Starcoder2Config", {**GROUPED, "use_bias": True}),
    "vit": ("ViTConfig", {**SMALL, "image_size": 8, "patch_size": 2}),
    "xlm_roberta": ("XLMRobertaConfig", SMALL),
}  # fmt: skip


def random_model(name: str) -> Any:
    """With biases and gains of any size, in float32."""
    kind, members = MODELS[name]
    torch.manual_seed(0)
    config = getattr(transformers, kind)(**members)
    return changed(transformers.AutoModel.from_config(config))


def changed(model: Any) -> Any:
    """With other numbers in every parameter, biases and gains among them."""
    model.eval()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in model.parameters():
            size = 0.3 if parameter.ndim == 1 else 0.5 * parameter.shape[-1] ** -0.5
            parameter.add_(size * torch.randn(parameter.shape, generator=generator))
    return model


def norm_in_front(name: str, model: Any, n: int) -> Any:
    """The module of the norm that layer n sees tokens through; None where there is none."""
    family = name.split("-")[0]
    before = f"encoder.layer.{n - 1}.output.LayerNorm" if n else "embeddings.LayerNorm"
    path = {
        "bert": before, "camembert": before, "roberta": before, "xlm_roberta": before, "bloom": f"h.{n}.input_layernorm", "gpt2": f"h.{n}.ln_1", "olmo2": "",
        "distilbert": f"transformer.layer.{n - 1}.output_layer_norm" if n else "embeddings.LayerNorm",
        "falcon": f"h.{n}.ln_attn" if name == "falcon-40b" else f"h.{n}.input_layernorm",
        "opt": f"decoder.layers.{n}.self_attn_layer_norm", "vit": f"layers.{n}.layernorm_before", "deit": f"layers.{n}.layernorm_before",
    }.get(family, f"layers.{n}.input_layernorm")  # fmt: skip
    return model.get_submodule(path) if path else None


def normalised(x: Any, norm: Any) -> Any:
    """Tokens in front of the gain of a norm; its eps is kept."""
    eps = next(getattr(norm, key) for key in ("eps", "variance_epsilon") if hasattr(norm, key))
    if isinstance(norm, torch.nn.LayerNorm):
        x = x - x.mean(-1, keepdim=True)
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt()


def rotated(model: Any, q: Any, k: Any, n: int) -> tuple[Any, Any]:
    """Turned by positions as the model does it, without what it multiplies by besides."""
    rotary = getattr(model, "rotary_emb", None)
    rotates = not (getattr(model.config, "no_rope_layers", None) and not model.config.no_rope_layers[n])
    if rotary is None or not rotates:
        return q, k
    import importlib

    own = importlib.import_module(type(model).__module__)
    plain = importlib.import_module("transformers.models.llama.modeling_llama")
    turn = getattr(own, "apply_rotary_pos_emb", plain.apply_rotary_pos_emb)
    places = torch.arange(q.shape[1])[None]
    if turn is plain.apply_rotary_pos_emb:  # three positions, which are the same in text
        places = places.expand(3, 1, -1)
    kinds = getattr(model.config, "layer_types", None) or ["full_attention"]
    try:
        cos, sin = rotary(q, places)
        scaling = rotary.attention_scaling
    except (TypeError, AttributeError, KeyError):  # a table for each kind of layer
        cos, sin = rotary(q, places, kinds[n])
        scaling = getattr(rotary, f"{kinds[n]}_attention_scaling")
    if cos.ndim == 4:
        cos, sin = cos[0], sin[0]
    cos, sin, width = cos / scaling, sin / scaling, cos.shape[-1]
    if type(model).__name__.startswith(("Glm4", "GptOss")):  # which turn a part themselves
        return tuple(one[0] for one in turn(q[None], k[None], cos, sin))
    turned = turn(q[None, ..., :width], k[None, ..., :width], cos, sin)
    return tuple(torch.cat((one[0], of[..., width:]), -1) for one, of in zip(turned, (q, k), strict=True))


def divided(model: Any, q: Any, k: Any, n: int) -> tuple[Any, Any]:
    """By the norms of queries and keys, whose gains are in the weights already."""
    attention = getattr(getattr(model, "layers", [None] * 9)[n], "self_attn", None)
    if not hasattr(attention, "q_norm"):
        return q, k
    found = []
    for one, norm in ((q, attention.q_norm), (k, attention.k_norm)):
        gain = norm.weight + (1 if type(model).__name__.startswith("Gemma3") else 0)
        groups = len(gain) // one.shape[-1]  # 1: each head alone; else all that differ, side by side
        step = len(one) // groups
        whole = one if groups == 1 else one[::step].transpose(0, 1).reshape(1, one.shape[1], -1)
        eps = norm.eps if hasattr(norm, "eps") else norm.variance_epsilon
        found.append(one / ((whole / gain).square().mean(-1, keepdim=True) + eps).sqrt())
    return found[0], found[1]


def difference(name: str, model: Any, heads: hl.Heads, change: float = 0) -> float:
    """The largest difference of attention weights, over all layers."""
    inputs: dict[int, Any] = {}
    for n in range(2):
        norm = norm_in_front(name, model, n)
        module = model.layers[n].self_attn.q_proj if norm is None else norm
        module.register_forward_pre_hook(lambda _, given, n=n: inputs.__setitem__(n, given[0].detach()[0]))
    given = torch.arange(3, 3 + TOKENS)[None]
    image = torch.randn(1, 3, 8, 8, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        of_images = name in ("deit", "vit")
        out = model(pixel_values=image, output_attentions=True) if of_images else model(given, output_attentions=True)
        worst = 0.0
        for n, wanted in enumerate(out.attentions):
            x = inputs[n].reshape(-1, inputs[n].shape[-1])
            norm = norm_in_front(name, model, n)
            x = x if norm is None else normalised(x, norm)
            w_q, w_k = (torch.tensor(one, dtype=torch.float32) for one in (heads.w_q(n), heads.w_k(n)))
            if w_q.shape[1] == x.shape[1] + 1:
                x = torch.cat((x, torch.ones(len(x), 1)), 1)
            q, k = rotated(model, *divided(model, x @ w_q, x @ w_k, n), n)
            u = q @ k.transpose(1, 2) / (heads.temperature + change)
            cap = getattr(model.config, "attn_logit_softcapping", None)
            u = cap * torch.tanh(u / cap) if cap else u
            if name == "bloom":
                slopes = 2.0 ** (-8 / len(u) * torch.arange(1, len(u) + 1))
                u = u + slopes[:, None, None] * torch.arange(u.shape[-1])
            if not (of_images or name in ("bert", "camembert", "distilbert", "roberta", "xlm_roberta")):
                u = u.masked_fill(torch.ones(u.shape[1:], dtype=torch.bool).triu(1), -torch.inf)
            if name == "gpt_oss":
                sinks = model.layers[n].self_attn.sinks[:, None, None].expand(*u.shape[:2], 1)
                weights = torch.cat((u, sinks), -1).softmax(-1)[..., :-1]
            else:
                weights = u.softmax(-1)
            worst = max(worst, float((weights - wanted[0]).abs().max()))
    return worst


@pytest.mark.parametrize("name", MODELS)
def test_attention_from_the_file_is_that_of_the_model(name: str, tmp_path: Path) -> None:
    model = random_model(name)
    model.save_pretrained(tmp_path)
    heads = hl.heads.from_safetensors(tmp_path, biases=True)
    assert difference(name, model, heads) <= CLOSE
    # The check sees a temperature that is 1 % off, and biases that are left out.
    assert difference(name, model, heads, 0.01 * (heads.temperature or 1)) > 10 * CLOSE
    without = hl.heads.from_safetensors(tmp_path)
    assert (without.left_out != heads.left_out) == (without[0].shape[1] != heads[0].shape[1])
    if without[0].shape[1] != heads[0].shape[1]:
        assert difference(name, model, without) > 10 * CLOSE


def test_a_model_of_text_and_images_has_its_text_model_inside(tmp_path: Path) -> None:
    text = {**MODELS["gemma3"][1], "model_type": "gemma3_text"}
    del text["attn_implementation"]
    model = random_model("gemma3")
    tensors = {f"model.language_model.{name}": one for name, one in model.state_dict().items()}
    import safetensors.torch

    safetensors.torch.save_file(tensors, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "gemma3", "text_config": text}))
    assert difference("gemma3", model, hl.heads.from_safetensors(tmp_path, biases=True)) <= CLOSE


TEXT: dict[str, Any] = {
    "vocab_size": 50, "hidden_size": 32, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "head_dim": 8, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
    "eos_token_id": 2,
}  # fmt: skip
VISION = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
          "image_size": 8, "patch_size": 4}  # fmt: skip
OF_QWEN = {"depth": 1, "hidden_size": 16, "num_heads": 2, "intermediate_size": 16, "out_hidden_size": 32}
#: (family of the text model, its class and members, those of the model of images)
WITH_IMAGES: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "Gemma3": ("gemma3", {"model_type": "gemma3_text", "query_pre_attn_scalar": 5}, {"model_type": "siglip_vision_model", **VISION}),
    "Idefics3": ("llama", {"model_type": "llama"}, VISION),
    "InternVL": ("qwen2", {"model_type": "qwen2"}, VISION),
    "Llava": ("llama", {"model_type": "llama", "attention_bias": True}, {"model_type": "clip_vision_model", **VISION}),
    "Mistral3": ("mistral", {"model_type": "mistral"}, {"model_type": "pixtral", **VISION}),
    "PaliGemma": ("gemma", {"model_type": "gemma"}, {"model_type": "siglip_vision_model", **VISION}),
    "Qwen2_5_VL": ("qwen2", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}}, OF_QWEN),
    "Qwen2VL": ("qwen2", {"rope_parameters": {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [1, 1, 2]}},
                {"depth": 1, "embed_dim": 16, "num_heads": 2, "hidden_size": 32}),
    "SmolVLM": ("llama", {"model_type": "llama"}, VISION),
}


@pytest.mark.parametrize("name", WITH_IMAGES)
def test_models_of_text_and_images_as_transformers_saves_them(name: str, tmp_path: Path) -> None:
    family, members, vision = WITH_IMAGES[name]
    torch.manual_seed(0)
    config = getattr(transformers, f"{name}Config")(text_config={**TEXT, **members}, vision_config=vision)
    model = changed(getattr(transformers, f"{name}ForConditionalGeneration")(config))
    model.save_pretrained(tmp_path)
    text = model.model.text_model if hasattr(model.model, "text_model") else model.model.language_model
    text.set_attn_implementation("eager")
    heads = hl.heads.from_safetensors(tmp_path, biases=True)
    assert difference(family, text, heads) <= CLOSE
    assert difference(family, text, heads, 0.01 * (heads.temperature or 1)) > 10 * CLOSE


def test_every_accepted_family_has_its_model_here(tmp_path: Path) -> None:
    import safetensors.torch

    safetensors.torch.save_file({"a": torch.zeros(2)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "another"}))
    with pytest.raises(hl.ScenarioError) as refused:
        hl.heads.from_safetensors(tmp_path)
    accepted = str(refused.value).partition("(allowed: ")[2].partition(")")[0].split(", ")
    types = {getattr(transformers, kind).model_type for kind, _ in MODELS.values()}
    for name, (_, members, _) in WITH_IMAGES.items():
        config = getattr(transformers, f"{name}Config")(text_config={**TEXT, **members})
        types |= {config.model_type, config.text_config.model_type}
    assert len(accepted) > 20
    assert not set(accepted) - types


def attended(x: Any, norm: Any, heads: hl.Heads) -> Any:
    """Attention weights over all tokens, of heads with their biases."""
    plain = torch.cat((normalised(x, norm), torch.ones(len(x), 1)), 1)
    q, k = (plain @ torch.tensor(one, dtype=torch.float32) for one in (heads.w_q(0), heads.w_k(0)))
    return (q @ k.transpose(1, 2) / heads.temperature).softmax(-1)


def test_tensors_of_no_family_are_named(tmp_path: Path) -> None:
    import safetensors.torch

    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(32, 4, 24, batch_first=True, norm_first=True)
    encoder = changed(torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)).requires_grad_(False)
    safetensors.torch.save_file(dict(encoder.state_dict()), tmp_path / "model.safetensors")
    heads = hl.heads.from_safetensors(
        tmp_path / "model.safetensors", query="layers.#.self_attn.in_proj_weight",
        key="layers.#.self_attn.in_proj_weight", gain="layers.#.norm1.weight", heads=4, biases=True,
    )  # fmt: skip
    x = torch.randn(1, TOKENS, 32)
    first = encoder.layers[0]
    seen = first.norm1(x)
    _, wanted = first.self_attn(seen, seen, seen, average_attn_weights=False)
    assert float((attended(x[0], first.norm1, heads) - wanted[0]).abs().max()) <= CLOSE


@pytest.mark.parametrize(
    ("block", "norm", "projection"),
    [("transformer.h.#.", "ln_1", "attn.c_attn"), ("blocks.#.", "norm1", "attn.qkv")], ids=["nanoGPT", "timm"],
)  # fmt: skip
def test_queries_keys_and_values_in_one_linear_map(block: str, norm: str, projection: str, tmp_path: Path) -> None:
    """Names and layout of nanoGPT and of timm: nn.Linear(d, 3 d), whose rows are queries, keys, values."""
    import safetensors.torch

    torch.manual_seed(0)
    parts = changed(torch.nn.ModuleDict({"norm": torch.nn.LayerNorm(32), "qkv": torch.nn.Linear(32, 96)})).requires_grad_(False)
    start = block.replace("#", "0")
    tensors = {f"{start}{name}.{kind}": getattr(parts[of], kind)
               for name, of in ((norm, "norm"), (projection, "qkv")) for kind in ("weight", "bias")}  # fmt: skip
    safetensors.torch.save_file(tensors, tmp_path / "model.safetensors")
    heads = hl.heads.from_safetensors(
        tmp_path / "model.safetensors", query=f"{block}{projection}.weight", key=f"{block}{projection}.weight",
        gain=f"{block}{norm}.weight", heads=4, biases=True,
    )  # fmt: skip
    x = torch.randn(TOKENS, 32)
    # As both models have it: [tokens, 3, heads, k].
    q, k, _ = parts["qkv"](parts["norm"](x)).reshape(TOKENS, 3, 4, 8).permute(1, 2, 0, 3)
    wanted = (q @ k.transpose(1, 2) * 8**-0.5).softmax(-1)
    assert float((attended(x, parts["norm"], heads) - wanted).abs().max()) <= CLOSE


@pytest.mark.parametrize(("said", "line"), [
    (True, "pruned_heads: is not empty: layers have fewer heads than this file says"),
    (False, "encoder.layer.0.attention.self.query.weight has heads of dimension 6, not 8 as config.json says"),
])  # fmt: skip
def test_heads_that_were_pruned_are_refused(said: bool, line: str, tmp_path: Path) -> None:
    """As prune_heads of transformers 4 left them: rows of heads 1 .. 3 in layer 0."""
    import safetensors.torch

    model = random_model("bert")
    model.save_pretrained(tmp_path)
    file = tmp_path / "model.safetensors"
    tensors = safetensors.torch.load_file(file)
    for name in ("query", "key", "value"):
        for kind in ("weight", "bias"):
            key = f"encoder.layer.0.attention.self.{name}.{kind}"
            tensors[key] = tensors[key][8:].clone()
    safetensors.torch.save_file(tensors, file)
    if said:
        config = json.loads((tmp_path / "config.json").read_text())
        (tmp_path / "config.json").write_text(json.dumps({**config, "pruned_heads": {"0": [0]}}))
    with pytest.raises(hl.ScenarioError, match=line):
        hl.heads.from_safetensors(tmp_path)


#: Families whose attention is another one: latent keys, states, relative positions, two streams of tokens.
REFUSED = ("albert", "codegen", "cohere", "deberta-v2", "deepseek_v3", "electra", "gpt_bigcode", "gptj", "llama4",
           "mamba", "modernbert", "mpt", "nemotron", "qwen3_next", "rwkv", "t5", "whisper", "xlnet")  # fmt: skip


@pytest.mark.parametrize("family", REFUSED)
def test_other_families_are_refused_with_what_to_pass(family: str, tmp_path: Path) -> None:
    import safetensors.torch

    safetensors.torch.save_file({"a": torch.zeros(2)}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    with pytest.raises(hl.ScenarioError, match=f'model_type: is "{family}".*in other ways: .* with query and key$'):
        hl.heads.from_safetensors(tmp_path)

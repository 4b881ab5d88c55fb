#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Takes small random models of every architecture through headlab, and compares them with NumPy.

models_check.py HEADLAB: writes each model in shards (with the package safetensors where it is
installed) and its config.json, imports the folder, and compares weights, subspaces and indices with
those that NumPy finds in the matrices the model was made of; then runs a scenario with the heads and
asks allocate for others. Runs the commands of docs/real-heads.md and docs/hdi.md too. Exit code 77 where NumPy
or netCDF4 is not installed.
"""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from heads_check import check_layer, close, must_fail, netCDF4, np, write_safetensors
from small_model import small_model

try:
    from safetensors.numpy import save_file
except ImportError:
    save_file = None

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHIPPED = ROOT / "scenarios/data/small_model"
LAYERS, D, HEADS, K = 2, 16, 4, 4
SCENARIO = """[scenario]
name = "heads of a small model"
[data]
n = 30
design = {{ law = "normal", dim = {d} }}
regression = {{ law = "random_cosines", length_scale = 3.0, terms = 20 }}
noise = {{ law = "normal", sd = 0.5 }}
[heads]
count = {heads}
dim = {k}
subspaces = {{ law = "file", path = "heads.nc", layer = 1 }}
kernel = {{ law = "softmax", temperature = 2.0 }}
[queries]
law = "design"
count = 4
[run]
seed = 1
replicates = 64
"""


class Layer:
    """What a layer is made of: gain [d], projections [d][H k] of queries and [d][G k] of keys."""

    def __init__(self, random, groups):
        def weight(columns):
            shape = (D, columns * K)
            return (random.standard_normal(shape) * np.exp(0.5 * random.standard_normal(shape[1]))
                    ).astype(np.float32)

        self.groups = groups
        self.gain = np.exp(0.5 * random.standard_normal(D)).astype(np.float32)
        self.query, self.key, self.value = weight(HEADS), weight(groups), weight(groups)
        self.query_gain = np.exp(random.standard_normal(K)).astype(np.float32)
        self.key_gain = np.exp(random.standard_normal(K)).astype(np.float32)

    def heads(self, offset, head_norms):
        """W_Q and W_K [H][d][k] in float64; without an offset there is no norm in front."""
        gain = np.ones(D) if offset is None else offset + self.gain.astype(np.float64)
        if offset == 1:
            query_gain, key_gain = 1 + self.query_gain.astype(np.float64), 1 + self.key_gain.astype(np.float64)
        else:
            query_gain, key_gain = self.query_gain, self.key_gain
        query = np.split(gain[:, None] * self.query, HEADS, axis=1)
        key = np.split(gain[:, None] * self.key, self.groups, axis=1)
        key = [key[h * self.groups // HEADS] for h in range(HEADS)]
        query, key = np.array(query), np.array(key)
        return (query * query_gain, key * key_gain) if head_norms else (query, key)


def bert_like(prefix):
    def store(tensors, n, layer):
        name = f"{prefix}.encoder.layer.{n}.attention.self."
        norm = "embeddings" if n == 0 else f"encoder.layer.{n - 1}.output"
        tensors[f"{prefix}.{norm}.LayerNorm.weight"] = layer.gain
        for part, weight in (("query", layer.query), ("key", layer.key), ("value", layer.value)):
            tensors[name + part + ".weight"] = weight.T
            tensors[name + part + ".bias"] = weight[0]
    return store


def distilbert(tensors, n, layer):
    norm = "embeddings.LayerNorm" if n == 0 else f"transformer.layer.{n - 1}.output_layer_norm"
    tensors[f"distilbert.{norm}.weight"] = layer.gain
    name = f"distilbert.transformer.layer.{n}.attention."
    tensors[name + "q_lin.weight"], tensors[name + "k_lin.weight"] = layer.query.T, layer.key.T


def vit(tensors, n, layer):
    tensors[f"vit.encoder.layer.{n}.layernorm_before.weight"] = layer.gain
    name = f"vit.encoder.layer.{n}.attention.attention."
    tensors[name + "query.weight"], tensors[name + "key.weight"] = layer.query.T, layer.key.T


def gpt2(tensors, n, layer):
    tensors[f"transformer.h.{n}.ln_1.weight"] = layer.gain
    tensors[f"transformer.h.{n}.attn.c_attn.weight"] = np.hstack(
        [layer.query, layer.key, layer.value])


def by_group(layer):
    """Queries, key and value of group after group, [out][in]."""
    parts = [np.split(weight, layer.groups, axis=1) for weight in (layer.query, layer.key, layer.value)]
    return np.hstack([part[g] for g in range(layer.groups) for part in parts]).T


def gpt_neox(tensors, n, layer):
    tensors[f"gpt_neox.layers.{n}.input_layernorm.weight"] = layer.gain
    tensors[f"gpt_neox.layers.{n}.attention.query_key_value.weight"] = by_group(layer)


def bloom(tensors, n, layer):
    tensors[f"transformer.h.{n}.input_layernorm.weight"] = layer.gain
    tensors[f"transformer.h.{n}.self_attention.query_key_value.weight"] = by_group(layer)


def falcon(tensors, n, layer):
    tensors[f"transformer.h.{n}.ln_attn.weight"] = layer.gain
    tensors[f"transformer.h.{n}.self_attention.query_key_value.weight"] = by_group(layer)


def opt(tensors, n, layer):
    name = f"model.decoder.layers.{n}."
    tensors[name + "self_attn_layer_norm.weight"] = layer.gain
    tensors[name + "self_attn.q_proj.weight"] = layer.query.T
    tensors[name + "self_attn.k_proj.weight"] = layer.key.T


def llama(tensors, n, layer):
    name = f"model.layers.{n}."
    tensors[name + "input_layernorm.weight"] = layer.gain
    tensors[name + "self_attn.q_proj.weight"] = layer.query.T
    tensors[name + "self_attn.k_proj.weight"] = layer.key.T


def qwen2(tensors, n, layer):
    llama(tensors, n, layer)
    tensors[f"model.layers.{n}.self_attn.q_proj.bias"] = layer.query[0]
    tensors[f"model.layers.{n}.self_attn.k_proj.bias"] = layer.key[0]


def qwen3(tensors, n, layer):
    llama(tensors, n, layer)
    tensors[f"model.layers.{n}.self_attn.q_norm.weight"] = layer.query_gain
    tensors[f"model.layers.{n}.self_attn.k_norm.weight"] = layer.key_gain


def olmo2(tensors, n, layer):
    qwen3(tensors, n, layer)
    del tensors[f"model.layers.{n}.input_layernorm.weight"]
    for part, gain, count in (("q", layer.query_gain, HEADS), ("k", layer.key_gain, layer.groups)):
        tensors[f"model.layers.{n}.self_attn.{part}_norm.weight"] = np.tile(gain, count)


def phi3(tensors, n, layer):
    tensors[f"model.layers.{n}.input_layernorm.weight"] = layer.gain
    tensors[f"model.layers.{n}.self_attn.qkv_proj.weight"] = np.hstack(
        [layer.query, layer.key, layer.value]).T


USUAL = {"num_attention_heads": HEADS, "num_hidden_layers": LAYERS, "hidden_size": D}
GROUPED = {**USUAL, "num_key_value_heads": 2, "head_dim": K}
# What is added to a gain; None: no norm stands in front.
OFFSETS = {"gemma": 1, "gemma2": 1, "gemma3": 1, "olmo2": None}
HEAD_NORMS = {"gemma3", "olmo2", "qwen3"}
# model_type: (how a layer is stored, config.json, groups of keys, rotary)
MODELS = {
    "bert": (bert_like("bert"), USUAL, HEADS, False),
    "bloom": (bloom, {**USUAL, "n_head": HEADS, "n_layer": LAYERS}, HEADS, False),
    "distilbert": (distilbert, {"n_heads": HEADS, "n_layers": LAYERS, "dim": D}, HEADS, False),
    "falcon": (falcon, {**USUAL, "new_decoder_architecture": True, "num_kv_heads": 2}, 2, True),
    "gemma": (llama, GROUPED, 2, True),
    "gemma2": (llama, {**GROUPED, "query_pre_attn_scalar": K}, 2, True),
    "gemma3": (qwen3, {**GROUPED, "query_pre_attn_scalar": K}, 2, True),
    "glm4": (qwen2, GROUPED, 2, True),
    "gpt2": (gpt2, {"n_head": HEADS, "n_layer": LAYERS, "n_embd": D}, HEADS, False),
    "gpt_neox": (gpt_neox, USUAL, HEADS, True),
    "gpt_oss": (qwen2, GROUPED, 2, True),
    "granite": (llama, {**GROUPED, "attention_multiplier": K**-0.5}, 2, True),
    "llama": (llama, GROUPED, 2, True),
    "olmo2": (olmo2, GROUPED, 2, True),
    "opt": (opt, USUAL, HEADS, False),
    "phi": (qwen2, GROUPED, 2, True),
    "phi3": (phi3, {**USUAL, "num_key_value_heads": 2}, 2, True),
    "qwen2": (qwen2, GROUPED, 2, True),
    "qwen3": (qwen3, GROUPED, 2, True),
    "roberta": (bert_like("roberta"), USUAL, HEADS, False),
    "smollm3": (llama, GROUPED, 2, True),
    "stablelm": (qwen2, GROUPED, 2, True),
    "starcoder2": (qwen2, GROUPED, 2, True),
    "vit": (vit, USUAL, HEADS, False),
}


def write_shards(folder, tensors, count):
    index = {}
    for s in range(count):
        name = f"model-{s + 1:05}-of-{count:05}.safetensors"
        part = {tensor: np.ascontiguousarray(tensors[tensor], dtype=np.float32)
                for tensor in sorted(tensors)[s::count]}
        if save_file:
            save_file(part, folder / name)
        else:
            write_safetensors(folder / name, part)
        index.update({tensor: name for tensor in part})
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": 0}, "weight_map": index}))


def call(folder, *arguments, code=0):
    run = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
    if run.returncode != code:
        sys.exit(f"{arguments}: exit code {run.returncode}\n{run.stderr}")
    return run


def check_model(headlab, folder, model_type, random):
    store, config, groups, rotary = MODELS[model_type]
    layers = [Layer(random, groups) for _ in range(LAYERS)]
    tensors = {}
    for n, layer in enumerate(layers):
        store(tensors, n, layer)
    model = folder / "model"
    model.mkdir()
    write_shards(model, tensors, 3)
    (model / "config.json").write_text(json.dumps({"model_type": model_type, **config}))
    shown = call(folder, headlab, "import-heads", "model", "--out", "heads.nc").stdout
    if f"\n{model_type}, {LAYERS} layers, H {HEADS}, d {D}, k {K}" not in shown:
        sys.exit(f"{model_type}: import-heads shows\n{shown}")
    if ("rotary" in shown) != rotary:
        sys.exit(f"{model_type}: import-heads does not say what is left out\n{shown}")
    figures = json.loads(call(folder, headlab, "hdi", "heads.nc", "--json", "-").stdout)
    file = netCDF4.Dataset(folder / "heads.nc")
    worst = 0.0
    offset, head_norms = OFFSETS.get(model_type, 0), model_type in HEAD_NORMS
    for n, layer in enumerate(layers):
        query, key = layer.heads(offset, head_norms)
        worst = max(worst, check_layer(figures["layers"][n], file, n, query, key, groups, rotary))
        wrong = layer.heads(0 if offset == 1 else 1, head_norms)
        must_fail("w_k", file["w_k"][n], wrong[1])
    file.close()

    (folder / "s.toml").write_text(SCENARIO.format(d=D, heads=HEADS, k=K))
    summary = json.loads(call(folder, headlab, "run", "s.toml", "--quiet", "--json", "-").stdout)
    bases = [np.linalg.svd(w, full_matrices=False)[0] for w in key]
    squares = [np.mean(np.linalg.svd(a.T @ b, compute_uv=False)**2)
               for h, a in enumerate(bases) for b in bases[:h]]
    close("chordal of the run", summary["conditions"][0]["indices"]["chordal"]["value"],
          1 - np.sum(squares) / len(squares))
    advice = ["allocate", "--data", "s.toml", "--budget", "8", "--dims", "2,4", "--replicates",
              "1024", "--bandwidth-rule", "sqrt_dim", "--quiet"]
    refusal = call(folder, headlab, *advice, code=2).stderr
    instead = "heads.subspaces={law=\"haar\"}"
    if f"write --set '{instead}'" not in refusal:
        sys.exit(f"{model_type}: allocate refuses with\n{refusal}")
    found = json.loads(call(folder, headlab, *advice, "--set", instead, "--json", "-").stdout)
    if [row["dim"] for row in found["allocations"]] != [2, 4]:
        sys.exit(f"{model_type}: --dims 2,4 is not what is compared")
    print(f"{model_type}: principal cosines within {worst:.1e} of NumPy's")


def check_shipped():
    for name, content in small_model().items():
        if (SHIPPED / name).read_bytes() != content:
            sys.exit(f"{SHIPPED / name}: tools/check/small_model.py writes something else")


def check_page(headlab, page):
    """Every command of the page runs as it stands there, in a copy of scenarios/."""
    lines = (ROOT / page).read_text().splitlines()
    commands = [line.strip() for line in lines if line.startswith("    headlab ")]
    if len(commands) < 3:
        sys.exit(f"{page}: its commands are not found")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        shutil.copytree(ROOT / "scenarios", folder / "scenarios")
        (folder / "bin").mkdir()
        (folder / "bin/headlab").symlink_to(headlab)
        for command in commands:
            call(folder, "bash", "-c", f'PATH="{folder}/bin:$PATH"; {command}')
    print(f"{page}: {len(commands)} commands run")


def main():
    headlab = pathlib.Path(sys.argv[1]).resolve()
    listed = call(".", headlab, "list", "architectures").stdout
    known = [line.split()[0] for line in listed.splitlines()[1:] if line[2] != " "]
    if known != sorted(MODELS):
        sys.exit(f"{known}: are not the architectures that this file checks")
    check_shipped()
    check_page(headlab, "docs/real-heads.md")
    check_page(headlab, "docs/hdi.md")
    random = np.random.default_rng(3)
    for model_type in MODELS:
        with tempfile.TemporaryDirectory() as name:
            check_model(headlab, pathlib.Path(name), model_type, random)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares import-heads and hdi with NumPy, on checkpoints that it writes itself.

heads_check.py HEADLAB [CHECKPOINT.safetensors CONFIG.json]: runs HEADLAB in a temporary folder on
small random checkpoints of each architecture, or on the BERT checkpoint given, and compares the heads
in scenarios/data/ with those of the checkpoint they come from. Exit code 77 where NumPy or netCDF4 is
not installed.
heads_check.py HEADLAB --write FILE.nc: writes the heads of that checkpoint.
"""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile

try:
    import netCDF4
    import numpy as np
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TOLERANCE = 1e-10
SHIPPED = pathlib.Path(__file__).resolve().parent.parent.parent / "scenarios/data/small_bert_heads.nc"


def write_safetensors(path, tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, array in tensors.items():
        array = np.ascontiguousarray(array, dtype="<f4")
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + array.nbytes]}
        data += array.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            numbers = np.frombuffer(content[8 + length + begin:8 + length + end], dtype="<f4")
            tensors[name] = numbers.reshape(entry["shape"])
    return tensors


def random_checkpoint(arch, layers, d, heads, kv_heads, random):
    def weight(*shape):
        # Columns of very different size, as trained weights have them.
        return random.standard_normal(shape) * np.exp(random.standard_normal(shape[-1]))

    def gain():
        return np.exp(0.5 * random.standard_normal(d))

    tensors = {}
    if arch == "bert":
        tensors["bert.embeddings.LayerNorm.weight"] = gain()
    for n in range(layers):
        if arch == "bert":
            name = f"bert.encoder.layer.{n}."
            tensors[name + "attention.self.query.weight"] = weight(d, d)
            tensors[name + "attention.self.key.weight"] = weight(d, d)
            tensors[name + "output.LayerNorm.weight"] = gain()
        elif arch == "gpt2":
            tensors[f"transformer.h.{n}.attn.c_attn.weight"] = weight(d, 3 * d)
            tensors[f"transformer.h.{n}.ln_1.weight"] = gain()
        else:
            name = f"model.layers.{n}."
            tensors[name + "self_attn.q_proj.weight"] = weight(d, d)
            tensors[name + "self_attn.k_proj.weight"] = weight(d // heads * kv_heads, d)
            tensors[name + "input_layernorm.weight"] = gain()
    return tensors


def shipped_heads(headlab, folder, out):
    """Imports the heads of a small BERT: 2 layers of 4 heads, d = 16, logits of unit variance."""
    random = np.random.default_rng(7)
    tensors = {"bert.embeddings.LayerNorm.weight": np.ones(16)}
    for n in range(2):
        name = f"bert.encoder.layer.{n}."
        for part in ("query", "key"):
            tensors[f"{name}attention.self.{part}.weight"] = random.standard_normal((16, 16)) / 4
        tensors[name + "output.LayerNorm.weight"] = np.ones(16)
    write_safetensors(folder / "model.safetensors", tensors)
    (folder / "config.json").write_text(json.dumps(
        {"model_type": "bert", "num_attention_heads": 4, "num_hidden_layers": 2,
         "hidden_size": 16}))
    subprocess.run([headlab, "import-heads", "model.safetensors", "--arch", "bert", "--config",
                    "config.json", "--out", out, "--overwrite"], cwd=folder, check=True, capture_output=True)


def check_shipped(headlab, folder):
    out = folder / "shipped.nc"
    shipped_heads(headlab, folder, out)
    made, kept = netCDF4.Dataset(out), netCDF4.Dataset(SHIPPED)
    for name in ("subspaces", "w_q", "w_k", "temperature"):
        close(f"shipped {name}", kept[name][...], np.asarray(made[name][...]), 1e-13)
    must_fail("shipped w_q", kept["w_q"][...], np.asarray(made["w_k"][...]))


def expected_heads(arch, tensors, n, heads, kv_heads):
    """W_Q and W_K [H][d][k] of layer n with the gains folded in, in float64."""
    tensors = {name: array.astype(np.float64) for name, array in tensors.items()}
    if arch == "bert":
        prefix = "bert." if "bert.embeddings.LayerNorm.weight" in tensors else ""
        norm = "embeddings" if n == 0 else f"encoder.layer.{n - 1}.output"
        gain = tensors[f"{prefix}{norm}.LayerNorm.weight"]
        name = f"{prefix}encoder.layer.{n}.attention.self."
        query, key = tensors[name + "query.weight"].T, tensors[name + "key.weight"].T
    elif arch == "gpt2":
        gain = tensors[f"transformer.h.{n}.ln_1.weight"]
        query, key, _ = np.split(tensors[f"transformer.h.{n}.attn.c_attn.weight"], 3, axis=1)
    else:
        gain = tensors[f"model.layers.{n}.input_layernorm.weight"]
        query = tensors[f"model.layers.{n}.self_attn.q_proj.weight"].T
        key = tensors[f"model.layers.{n}.self_attn.k_proj.weight"].T
    query = np.split(gain[:, None] * query, heads, axis=1)
    key = np.split(gain[:, None] * key, kv_heads, axis=1)
    key = [key[h * kv_heads // heads] for h in range(heads)]
    return np.array(query), np.array(key)


def close(what, value, wanted, tolerance=TOLERANCE):
    """Fails unless |value - wanted| <= tolerance everywhere, so that NaN fails."""
    error = np.max(np.abs(np.asarray(value, dtype=float) - wanted))
    if not error <= tolerance:
        sys.exit(f"{what}: off by {error}")
    return error


def must_fail(what, value, wrong):
    """The comparison above can fail: it does for a wrong formula."""
    if np.max(np.abs(np.asarray(value, dtype=float) - wrong)) <= TOLERANCE:
        sys.exit(f"{what}: a wrong formula passes")


def check_layer(layer, file, n, query, key, kv_heads, rotary):
    heads, d, k = key.shape
    t = np.sqrt(k)
    bases = [np.linalg.svd(w, full_matrices=False)[0] for w in key]
    spread = [np.linalg.svd(w, compute_uv=False) for w in key]
    condition = np.array([s[0] / s[-1] for s in spread])
    close("w_q", file["w_q"][n], query, 1e-12)
    close("w_k", file["w_k"][n], key, 1e-12)
    for h in range(heads):
        own = np.asarray(file["subspaces"][n][h])
        close("orthonormal", own.T @ own, np.eye(k), 1e-13)
        close("subspace", own @ own.T, bases[h] @ bases[h].T)
        if not rotary:
            u, s, _ = np.linalg.svd(query[h] @ key[h].T)
            mine = np.asarray(file["query_subspaces"][n][h])
            close("singular values", file["singular_values"][n][h] / s[0], s[:k] / s[0])
            close("query subspace", mine @ mine.T, u[:, :k] @ u[:, :k].T)
            must_fail("query subspace", mine @ mine.T, bases[h] @ bases[h].T)
    close("condition number", np.array(layer["condition_number"]) / condition, 1)

    cosines = np.array([[np.linalg.svd(a.T @ b, compute_uv=False) for a in bases] for b in bases])
    worst = close("principal cosines", layer["principal_cosines"], np.minimum(cosines, 1))
    must_fail("principal cosines", layer["principal_cosines"], cosines**2)
    others = ~np.eye(heads, dtype=bool)
    indices = layer["indices"]
    close("chordal", indices["chordal"]["value"], 1 - np.mean(cosines[others]**2))
    # Of random heads, and of the most diverse, those of a group share their subspace too.
    apart = (heads - heads / kv_heads) / (heads - 1)
    close("chordal, random", indices["chordal"]["random_mean"], apart * (1 - k / d), 1e-14)
    close("chordal, ceiling", indices["chordal"]["ceiling"],
          heads / (heads - 1) * (1 - k / min(kv_heads * k, d)), 1e-14)
    p = np.linalg.eigvalsh(np.mean([b @ b.T for b in bases], axis=0)) / k
    p = p[p > 0]
    cover = np.exp(-np.sum(p * np.log(p)))
    close("spectral", indices["spectral"]["value"], (cover - k) / (min(heads * k, d) - k))
    gamma2 = t * (2 + t)  # b^2 = t
    rho = np.prod(1 + np.maximum(1 - cosines**2, 0) / gamma2, axis=-1)**-0.5
    close("overlap", indices["overlap"]["value"], 1 - np.mean(rho[others]))
    close("rho", np.array(layer["correlations"]["gaussian"])[others], rho[others])
    if rotary:
        if indices["qk"]["value"] is not None:
            sys.exit("qk: is there with rotary positions")
        return worst
    m = np.array([a @ b.T for a, b in zip(key, query)])
    mean, log_mean = np.eye(heads), np.zeros((heads, heads))
    for h in range(heads):
        for l in range(heads):
            if h != l:
                s = np.linalg.svd(m[h] - m[l], compute_uv=False)
                mean[h, l] = np.exp(-0.5 * np.sum(np.log1p((s / t)**2)))
                log_mean[h, l] = -np.sum(s**2) / (2 * t * t)
    close("qk", indices["qk"]["value"], 1 - np.mean(mean[others]))
    close("E rho", layer["correlations"]["query_key"], mean)
    close("E log rho", np.array(layer["correlations"]["log_query_key"]) / log_mean.min(),
          log_mean / log_mean.min())
    return worst


def check(headlab, folder, arch, checkpoint, tensors, layers, heads, kv_heads, counts):
    out = folder / "heads.nc"
    subprocess.run([headlab, "import-heads", checkpoint, "--arch", arch, *counts, "--out", out, "--overwrite"],
                   check=True, capture_output=True)
    run = subprocess.run([headlab, "hdi", out, "--json", "-"], check=True, capture_output=True)
    figures = json.loads(run.stdout)
    file = netCDF4.Dataset(out)
    worst = 0.0
    for n in range(layers):
        query, key = expected_heads(arch, tensors, n, heads, kv_heads)
        close("temperature", file["temperature"][...], np.sqrt(key.shape[2]), 1e-14)
        worst = max(worst, check_layer(figures["layers"][n], file, n, query, key, kv_heads,
                                       arch == "llama"))
    print(f"{arch}: {layers} layers, principal cosines within {worst:.1e} of NumPy's")


def main():
    headlab = pathlib.Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        if sys.argv[2:3] == ["--write"]:
            shipped_heads(headlab, folder, pathlib.Path(sys.argv[3]).resolve())
            return
        if len(sys.argv) > 2:
            checkpoint, config = (pathlib.Path(p) for p in sys.argv[2:4])
            counts = json.loads(config.read_text())
            heads = counts["num_attention_heads"]
            check(headlab, folder, "bert", checkpoint, read_safetensors(checkpoint),
                  counts["num_hidden_layers"], heads, heads, ["--config", config])
            return
        random = np.random.default_rng(5)
        for arch, kv_heads in (("bert", 4), ("gpt2", 4), ("llama", 2)):
            checkpoint = folder / "model.safetensors"
            # As headlab reads them: rounded to float32.
            tensors = {name: array.astype(np.float32) for name, array in
                       random_checkpoint(arch, 2, 48, 4, kv_heads, random).items()}
            write_safetensors(checkpoint, tensors)
            counts = ["--heads", "4", "--kv-heads", str(kv_heads)]
            check(headlab, folder, arch, checkpoint, tensors, 2, 4, kv_heads, counts)
        check_shipped(headlab, folder)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes scenarios/data/small_model, a random model in the shape of Llama 3, in two shards.

small_model.py FOLDER: 4 layers of 8 heads in 4 groups that share keys, d = 64, k = 8, bfloat16; only
the tensors that import-heads reads. Every number is a sum of 12 uniform ones of Python's generator,
seed 11, so that the files are the same on all machines. In layer 0 group 1 resembles group 0.
"""
import json
import pathlib
import random
import struct
import sys

LAYERS, HEADS, GROUPS, D, K = 4, 8, 4, 64, 8


def bfloat16(numbers):
    """Rounded to the nearest bfloat16, ties to even."""
    words = []
    for number in numbers:
        (bits,) = struct.unpack("<I", struct.pack("<f", number))
        words.append((bits + 0x7FFF + (bits >> 16 & 1)) >> 16)
    return struct.pack(f"<{len(words)}H", *words)


def safetensors(tensors):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, (shape, numbers) in tensors.items():
        raw = bfloat16(numbers)
        header[name] = {"dtype": "BF16", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def small_model():
    """{file name: bytes}"""
    source = random.Random(11)

    def normal():
        return sum(source.random() for _ in range(12)) - 6

    def weight(rows):
        return [normal() / D**0.5 for _ in range(rows * D)]

    shards = [{}, {}]
    for n in range(LAYERS):
        name = f"model.layers.{n}."
        keys = weight(GROUPS * K)
        if n == 0:
            size = K * D
            for i in range(size):
                keys[size + i] = keys[i] + 0.3 * keys[size + i]
        shards[n // 2][name + "input_layernorm.weight"] = ([D], [1 + 0.2 * normal() for _ in range(D)])
        shards[n // 2][name + "self_attn.q_proj.weight"] = ([HEADS * K, D], weight(HEADS * K))
        shards[n // 2][name + "self_attn.k_proj.weight"] = ([GROUPS * K, D], keys)
    files, index = {}, {"metadata": {}, "weight_map": {}}
    for s, shard in enumerate(shards):
        file = f"model-{s + 1:05}-of-00002.safetensors"
        files[file] = safetensors(shard)
        for tensor in shard:
            index["weight_map"][tensor] = file
    index["metadata"]["total_size"] = 2 * sum(
        len(numbers) for shard in shards for _, numbers in shard.values())
    files["model.safetensors.index.json"] = (json.dumps(index, indent=2) + "\n").encode()
    files["config.json"] = (json.dumps(
        {"model_type": "llama", "hidden_size": D, "num_hidden_layers": LAYERS,
         "num_attention_heads": HEADS, "num_key_value_heads": GROUPS, "head_dim": K,
         "rope_theta": 500000.0, "torch_dtype": "bfloat16"}, indent=2) + "\n").encode()
    return files


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in small_model().items():
        (folder / name).write_bytes(content)


if __name__ == "__main__":
    main()

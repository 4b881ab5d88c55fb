#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes files of numbers that tests read.

    write_input.py bert FILE [ZEROS]       a checkpoint of two layers, d = 12, 3 heads of k = 4, under BERT's names, of
                                           whose keys in layer 1 the last ZEROS numbers are 0
    write_input.py activations FILE        two attention layers on 10 documents of 24 random tokens: 4 heads in 2 groups,
                                           k = e = 2, d = 8; head 3 of layer 0 writes nothing
    write_input.py llama FILE              a checkpoint with the output maps of these layers and an embedding
    write_input.py whole_llama FILE        the same with queries, keys and values
    write_input.py npy FILE SHAPE NUMBERS  float64, as 1x3x2 and 1,0,0,1,0,0
"""
import json
import math
import random
import struct
import sys


def safetensors(arrays):
    """Bytes of float32 arrays {name: (shape, numbers)}."""
    header, data = {}, b""
    for name, (shape, numbers) in arrays.items():
        raw = struct.pack(f"<{len(numbers)}f", *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def layers():
    source = random.Random(2)
    arrays = {}
    for layer in (0, 1):
        shapes = {"q": [10, 4, 24, 2], "k": [10, 2, 24, 2], "v": [10, 2, 24, 2], "W_O": [4, 2, 8],
                  "residual": [10, 24, 8], "grad_z": [10, 4, 24, 2]}
        for name, shape in shapes.items():
            numbers = [source.gauss(0, 0.01 if name == "grad_z" else 1) for _ in range(math.prod(shape))]
            if (layer, name) == (0, "W_O"):
                numbers[3 * 2 * 8:] = [0.0] * 16
            arrays[f"layers.{layer}.{name}"] = (shape, numbers)
    return arrays


def activations():
    return safetensors(layers())


def llama(projections=()):
    arrays = {"model.embed_tokens.weight": ([5, 8], [0.5] * 40)}
    for layer in (0, 1):
        rows = layers()[f"layers.{layer}.W_O"][1]  # [H e, d]
        turned = [rows[i * 8 + j] for j in range(8) for i in range(8)]
        arrays[f"model.layers.{layer}.self_attn.o_proj.weight"] = ([8, 8], turned)
        for name, count in projections:
            arrays[f"model.layers.{layer}.self_attn.{name}.weight"] = ([count, 8], [0.5] * 8 * count)
    return safetensors(arrays)


def whole_llama():
    return llama([("q_proj", 8), ("k_proj", 4), ("v_proj", 4)])


def bert(zeros="0"):
    source = random.Random(1)
    shapes = {"bert.embeddings.LayerNorm.weight": [12]}
    for layer in ("bert.encoder.layer.0.", "bert.encoder.layer.1."):
        shapes |= {layer + "attention.self.query.weight": [12, 12], layer + "attention.self.key.weight": [12, 12],
                   layer + "attention.self.key.bias": [12], layer + "output.LayerNorm.weight": [12]}
    arrays = {}
    for name, shape in shapes.items():
        count = math.prod(shape)
        numbers = [source.uniform(0.5, 1.5) if "Norm" in name else source.uniform(-1, 1) for _ in range(count)]
        if name.endswith("1.attention.self.key.weight"):
            numbers[count - int(zeros):] = [0.0] * int(zeros)
        arrays[name] = (shape, numbers)
    return safetensors(arrays)


def npy(shape, numbers):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape.replace('x', ', ')}), }}"
    header = header.ljust(127 - 10) + "\n"
    values = [float(number) for number in numbers.split(",")]
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}d", *values)


def main():
    kind, path, *rest = sys.argv[1:]
    with open(path, "wb") as file:
        file.write({"activations": activations, "bert": bert, "llama": llama, "npy": npy, "whole_llama": whole_llama}[kind](*rest))


main()

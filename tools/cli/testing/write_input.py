#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes files of numbers that tests read.

    write_input.py bert FILE [ZEROS]       a checkpoint of two layers, d = 12, 3 heads of k = 4, under BERT's names, of
                                           whose keys in layer 1 the last ZEROS numbers are 0
    write_input.py npy FILE SHAPE NUMBERS  float64, as 1x3x2 and 1,0,0,1,0,0
"""
import json
import math
import random
import struct
import sys


def bert(zeros="0"):
    source = random.Random(1)
    shapes = {"bert.embeddings.LayerNorm.weight": [12]}
    for layer in ("bert.encoder.layer.0.", "bert.encoder.layer.1."):
        shapes |= {layer + "attention.self.query.weight": [12, 12], layer + "attention.self.key.weight": [12, 12],
                   layer + "attention.self.key.bias": [12], layer + "output.LayerNorm.weight": [12]}
    header, data = {}, b""
    for name, shape in shapes.items():
        count = math.prod(shape)
        numbers = [source.uniform(0.5, 1.5) if "Norm" in name else source.uniform(-1, 1) for _ in range(count)]
        if name.endswith("1.attention.self.key.weight"):
            numbers[count - int(zeros):] = [0.0] * int(zeros)
        raw = struct.pack(f"<{count}f", *numbers)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def npy(shape, numbers):
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape.replace('x', ', ')}), }}"
    header = header.ljust(127 - 10) + "\n"
    values = [float(number) for number in numbers.split(",")]
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}d", *values)


def main():
    kind, path, *rest = sys.argv[1:]
    with open(path, "wb") as file:
        file.write({"bert": bert, "npy": npy}[kind](*rest))


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""say EXPRESSION...: prints what Python makes of each, with `j` for the JSON on standard input, load("FILE") for that
of a file, and `math`."""
import json
import math
import sys


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


text = sys.stdin.read()
names = {"j": json.loads(text) if text else None, "load": load, "math": math, "json": json}
for expression in sys.argv[1:]:
    print(eval(expression, names))

# SPDX-License-Identifier: Apache-2.0
"""Reads mutated scenarios: python fuzz_reader.py [NUMBER] [SEED]. Each is read or rejected with a
ScenarioError; anything else ends the program."""

from __future__ import annotations

import copy
import random
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import headlab as hl
import numpy as np
from headlab import _engine
from headlab._errors import translated
from headlab._jobs import wait
from headlab._scenario import Source

SCENARIOS = Path(__file__).resolve().parents[3] / "scenarios"


def odd_value(rng: random.Random) -> Any:
    return rng.choice(
        [
            0, 1, -1, 2, 3, 1e-300, 1e300, 0.5, -0.0, float("nan"), float("inf"), 2**62, 2**70, True,
            None, "", "normal", "\x00", "a.b", "é" * 100, "\ud800", [], {}, [[]], [1, [2]], [{}], {"law": "file"},
            {"law": "normal", "dim": 3}, b"bytes", 1j, object(), np.float32(2), np.int8(3), np.zeros(3),
            np.zeros((2, 3)), np.zeros((2, 3, 2)), np.eye(4)[None], np.full(4, np.nan), np.array("x"),
            np.array(None), np.zeros((0, 3)), np.zeros((1,) * 20), {"linspace": [0, 1, 3]}, {"linspace": [0, 1, 10**9]},
            {"": 1}, {"law": []}, [0.1] * 50,
        ]
    )  # fmt: skip


def places(tree: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    if isinstance(tree, dict):
        members = list(tree.items())
    elif isinstance(tree, list):
        members = list(enumerate(tree))
    else:
        return found
    for key, value in members:
        found.append((tree, key))
        places(value, found)
    return found


def mutated(tree: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    tree = copy.deepcopy(tree)
    for _ in range(rng.choice([1, 1, 2, 4])):
        all_places = places(tree, [])
        if not all_places:
            break
        inside, key = rng.choice(all_places)
        action = rng.randrange(5)
        if action == 0 and isinstance(inside, dict):
            del inside[key]
        elif action == 1 and isinstance(inside, dict):
            inside[rng.choice(["law", "dim", "n", "seed", "x", "sweep", "data.n", "path", 3])] = odd_value(rng)
        elif action == 2:
            other, name = rng.choice(all_places)
            inside[key] = copy.deepcopy(other[name])
        elif action == 3 and isinstance(inside[key], int | float):
            inside[key] = type(inside[key])(min(abs(inside[key] * rng.choice([0, -1, 2, 10])), 1e9))
        else:
            inside[key] = odd_value(rng)
    return tree


def small(tree: dict[str, Any]) -> dict[str, Any]:
    """Without the sweep's many conditions and without large files."""
    tree.pop("sweep", None)
    return tree


def run(number: int, seed: int = 0) -> Counter[str]:
    rng = random.Random(seed)
    files = [p for p in sorted(SCENARIOS.rglob("*.toml")) if "data" not in p.parts]
    trees = [small(hl.scenario(p).tree) for p in files]
    counts: Counter[str] = Counter()
    for _ in range(number):
        tree = mutated(rng.choice(trees), rng)
        try:
            source = Source(tree)
            with translated():
                job = _engine.read(source.engine)
            wait(job)
            counts["read"] += 1
        except hl.ScenarioError as error:
            assert "\n" not in str(error)
            counts["rejected"] += 1
    return counts


if __name__ == "__main__":
    asked = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    print(dict(run(asked, int(sys.argv[2]) if len(sys.argv) > 2 else 0)))

# SPDX-License-Identifier: Apache-2.0
"""Memory of many runs in one process: python leak.py [RUNS] prints what resident memory grew by."""

from __future__ import annotations

import gc
import sys

import headlab as hl
import numpy as np

from conftest import SMALL


def resident() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * 4096


def once(subspaces: np.ndarray) -> None:
    r = hl.run({**SMALL, "heads": {**SMALL["heads"], "subspaces": subspaces}})
    assert r["mse"].shape == (1,)
    assert repr(r)
    try:
        hl.run({**SMALL, "heads": {}})
    except hl.ScenarioError:
        pass


def growth(runs: int, first: int = 100) -> int:
    """Bytes that memory grows by in `runs` runs after the `first` ones."""
    subspaces = np.linalg.qr(np.random.default_rng(0).normal(size=(2, 6, 2)))[0]
    for _ in range(first):
        once(subspaces)
    gc.collect()
    before = resident()
    for _ in range(runs):
        once(subspaces)
    gc.collect()
    return resident() - before


if __name__ == "__main__":
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    print(f"{number} runs: {growth(number) / 1e6:.2f} MB")

# SPDX-License-Identifier: Apache-2.0
"""Scenarios that the tests change, and the program where it is built."""

from __future__ import annotations

import copy
import os
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

# Ctrl-C is tested: a shell that starts the tests in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[3]
SMALL: dict[str, Any] = {
    "scenario": {"name": "small"},
    "data": {
        "n": 40,
        "design": {"law": "normal", "dim": 6},
        "regression": {"law": "linear", "coefficients": [1.0, 0.5, 0.0, 0.0, 0.0, 0.0]},
        "noise": {"law": "normal", "sd": 1.0},
    },
    "heads": {
        "count": 2,
        "dim": 2,
        "subspaces": {"law": "haar"},
        "kernel": {"law": "gaussian", "bandwidth": 1.5},
    },
    "queries": {"law": "points", "points": [[0.0] * 6, [0.5] * 6]},
    "run": {"seed": 1, "replicates": 64},
}


@pytest.fixture(autouse=True)
def in_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.fixture
def small() -> dict[str, Any]:
    return copy.deepcopy(SMALL)


@pytest.fixture
def subspaces() -> np.ndarray:
    """Heads [2, 6, 2] with orthonormal columns."""
    return np.linalg.qr(np.random.default_rng(0).normal(size=(2, 6, 2)))[0]


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch) -> str:
    # Its tables have the characters of the package's, which knows no locale.
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    path = os.environ.get("HEADLAB_BINARY", str(ROOT / "build/release/headlab"))
    if not Path(path).exists():
        pytest.skip("the program is not built: HEADLAB_BINARY")
    # Its advice calls it as the package's does.
    monkeypatch.setenv("PATH", str(Path(path).parent) + os.pathsep + os.environ["PATH"])
    return path

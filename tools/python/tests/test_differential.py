# SPDX-License-Identifier: Apache-2.0
"""tools/check/differential draws the laws of the program, and finds the faults that it plants."""

from __future__ import annotations

import subprocess
import sys

import pytest
from headlab import _engine

from conftest import ROOT


def test_it_draws_every_law(monkeypatch: pytest.MonkeyPatch) -> None:
    hypothesis = pytest.importorskip("hypothesis")
    monkeypatch.syspath_prepend(str(ROOT / "tools/check/differential"))
    import strategies

    for family, reasons in strategies.NOT_DRAWN.items():
        assert reasons.keys() <= _engine.laws()[family].keys(), f"{family}: no such law"
    # One that the strategies do not know has the parameters of its example, in the dimension of the study.
    new = {"coefficients": [1, 2, 3, 4], "centres": [[0, 0, 0, 0]], "dim": 4, "width": 2}
    for family, strategy in (
        ("design", strategies.designs(3, False)), ("regression", strategies.regressions(3)),
        ("noise", strategies.noises(3)),
    ):  # fmt: skip
        monkeypatch.setitem(strategies.LAWS, family, {"new": new})
        made = hypothesis.find(strategy, lambda one: one["law"] == "new")
        assert {key: made[key] for key in new} == {**new, "coefficients": [0] * 3, "centres": [[0] * 3], "dim": 3}
    monkeypatch.setitem(strategies.LAWS, "kernel", {"new": {"cutoff": 1}})
    assert hypothesis.find(strategies.kernels(False), lambda one: True) == {"law": "new", "cutoff": 1.0}


def test_planted_faults_are_found() -> None:
    pytest.importorskip("hypothesis")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/check/differential"), "--self-test"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr

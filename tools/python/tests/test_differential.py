# SPDX-License-Identifier: Apache-2.0
"""tools/check/differential draws the laws of the program, and finds the faults that it plants."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from conftest import ROOT


def test_it_draws_every_law(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("hypothesis")
    monkeypatch.syspath_prepend(str(ROOT / "tools/check/differential"))
    from strategies import LAWS, NOT_DRAWN

    known: dict[str, set[str]] = {}
    laws_of_family: set[str] = set()
    listed = subprocess.run([program, "list", "laws"], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        if heading := re.match(r"\w+", line):
            laws_of_family = known[heading[0]] = set()
        elif law := re.match(r"  (\w+)", line):
            laws_of_family.add(law[1])
    for family, laws in LAWS.items():
        undrawn = known[family] - set(laws)
        assert undrawn == set(NOT_DRAWN.get(family, {})), f"{family}: draw it in strategies.py, or say why not"
        assert set(laws) <= known[family], f"{family}: no such law"


def test_planted_faults_are_found() -> None:
    pytest.importorskip("hypothesis")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/check/differential"), "--self-test"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr

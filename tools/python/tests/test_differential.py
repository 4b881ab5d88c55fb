# SPDX-License-Identifier: Apache-2.0
"""tools/check/differential finds the faults that it plants."""

from __future__ import annotations

import subprocess
import sys

import pytest

from conftest import ROOT


def test_planted_faults_are_found() -> None:
    pytest.importorskip("hypothesis")
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools/check/differential"), "--self-test"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr

# SPDX-License-Identifier: Apache-2.0
"""Threads, shards, parts and sweeps give the same bits."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import headlab as hl
from registry import of_depth, of_regression, skip_if
from runner import Tree, changed, is_time, near, require, same_bits, simulate

PROGRAM = os.environ.get("HEADLAB_BINARY", str(Path(__file__).resolve().parents[3] / "build/release/headlab"))


def swept(tree: Tree) -> dict[str, list[Any]]:
    if "tokens" in tree:
        return {"layers.skip": [0.5, 0.25, 1.0]}
    kernel = tree["heads"]["kernel"]
    key = "bandwidth" if "bandwidth" in kernel else "temperature"
    return {f"heads.kernel.{key}": [kernel[key], 0.75, 3.0]}


def threads(tree: Tree, examples: int) -> None:
    same_bits(simulate(tree), simulate(tree, threads=2), "one thread and two")


def resumed(tree: Tree, examples: int) -> None:
    """A run that goes on with more replicates."""
    whole = simulate(tree)
    half = 8 * (tree["run"]["replicates"] // 16) or 8
    with tempfile.TemporaryDirectory() as folder:
        simulate(tree, out=folder, replicates=half)
        same_bits(whole, simulate(tree, out=folder, resume=True, threads=2), "whole and resumed")


def alone(tree: Tree, examples: int) -> None:
    """Conditions of a sweep in two orders, and one alone."""
    ((key, values),) = swept(tree).items()
    a = simulate(changed(tree, {key: None, "sweep": {key: values}}))
    b = simulate(changed(tree, {key: None, "sweep": {key: values[::-1]}}))
    c = simulate(changed(tree, {key: values[1]}))
    for name in sorted(set(a) & set(c)):
        if a[name].ndim and a[name].dtype.kind == "f" and not is_time(name) and name not in a.result.swept:
            near(a[name], b[name][::-1], 0, f"{name} of a sweep and of the reversed one")
            near(a[name][1], c[name][0], 0, f"{name} of a condition in a sweep and alone")


def shards(tree: Tree, examples: int) -> None:
    """Two shards by the program, merged, against the package."""
    skip_if(not Path(PROGRAM).exists(), "the program is not built")
    skip_if(tree["run"]["seed"] % 2 != 0, "every other one, to save time")
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "s.toml", str(Path(folder) / "out")
        hl.scenario(tree).save(file)
        for one in ("1/2", "2/2"):
            program("run", str(file), "--shard", one, "--out", out, "--quiet", "--threads", "1")
        program("merge", out, "--out", out + "-merged", "--quiet")
        merged = hl.open(out + "-merged")
        a = simulate(tree)
        for name in sorted(set(a) & set(merged)):
            if a[name].dtype.kind == "f" and not is_time(name):
                near(a[name], merged[name], 0, f"{name} of a run and merged shards")


def program(*arguments: str) -> None:
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    require(done.returncode == 0, f"headlab {arguments[0]} ends with {done.returncode}: {done.stderr[-500:]}")


for layout in (threads, resumed, alone, shards):
    of_regression(layout)
    of_depth(layout)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws scenarios from the whole grammar and holds every run to relations that need no known answer.

    python tools/check/differential [--examples N] [--seed S] [--fault NAME] [--self-test]

Without --seed the examples are the same each time. A failure is shrunk and printed as TOML with the relation that
broke. --fault plants a fault in what runs return, and --self-test demands that each is found. Backends are cpu and
reference; the package has no emulation of a GPU, whose kernels C++ tests compare.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from typing import Any

import depth  # noqa: F401 - relations register themselves
import headlab as hl
import hypothesis
import layout  # noqa: F401
import numpy as np
import relations  # noqa: F401
import runner
import symmetries  # noqa: F401
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from registry import DEPTH, REGRESSION, Relation
from runner import FAULTS, Broken, Skipped, Tree
from strategies import regression_studies, stacks

#: Relations that one example is held to.
AT_ONCE = 5


class Tally:
    """How often each relation was checked, and why it was skipped."""

    def __init__(self) -> None:
        self.examples = 0
        self.rejected: Counter[str] = Counter()
        self.checked: Counter[str] = Counter()
        self.skipped: dict[str, Counter[str]] = {}
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def table(self, only: list[str]) -> str:
        rows = [f"{'relation':<26}{'checked':>8}{'skipped':>8}{'seconds':>9}  most often skipped for"]
        for prefix, group in (("", REGRESSION), ("depth ", DEPTH)):
            for name in group:
                key = prefix + name
                if only and name not in only:
                    continue
                why = self.skipped.get(key, Counter())
                most = ", ".join(f"{reason} {count}" for reason, count in why.most_common(2))
                spent = self.seconds[key]
                rows.append(f"{key:<26}{self.checked[key]:>8}{why.total():>8}{spent:>9.1f}  {most}".rstrip())
        declined = f"{self.examples} examples, {self.rejected.total()} scenarios declined by the reader"
        return "\n".join([*rows, declined])


def of_tree(tree: Tree) -> tuple[str, dict[str, Relation]]:
    return ("depth ", DEPTH) if "tokens" in tree else ("", REGRESSION)


def printed(tree: Tree) -> str:
    """The scenario as TOML, with the rows of its file."""
    rows = tree["data" if "data" in tree else "tokens"]["design"].get("path")
    below = "" if rows is None else "\n# the file has the rows\n" + "\n".join(
        "# " + ",".join(map(repr, row)) for row in np.asarray(rows).tolist())
    return f"{hl.scenario(tree)}{below}"


def accepted(tree: Tree, tally: Tally) -> Tree:
    """The scenario, without controls where its laws have none."""
    try:
        runner.simulate(runner.changed(tree, {"run.controls": None, "run.replicates": 8}))
    except hl.ScenarioError as error:
        tally.rejected[str(error).split(" - ")[0]] += 1
        hypothesis.reject()
    tally.examples += 1
    if "controls" in tree.get("run", {}):
        try:
            runner.simulate(runner.changed(tree, {"run.replicates": 8}))
        except hl.ScenarioError:
            return runner.changed(tree, {"run.controls": None})
    return tree


def check(tree: Tree, name: str, tally: Tally, examples: int) -> None:
    prefix, all_relations = of_tree(tree)
    key = prefix + name
    begun = time.monotonic()
    try:
        all_relations[name](tree, examples)
        tally.checked[key] += 1
    except Broken as broken:
        raise Broken(f"{key}: {broken}\n\n{printed(tree)}") from None
    except Skipped as skipped:
        tally.skipped.setdefault(key, Counter())[str(skipped)] += 1
    except hl.RunError as error:
        # Whether a head that is drawn in the run suits its stages is known there.
        if ": in draw " in str(error):
            tally.skipped.setdefault(key, Counter())["a draw of heads is declined"] += 1
            return
        raise Broken(f"{key}: {error}\n\n{printed(tree)}") from None
    except hl.ScenarioError as error:
        # A relation may ask for what the scenario's laws do not have, as controls.
        reason = "declined: " + str(error).split(" - ")[0][:60]
        tally.skipped.setdefault(key, Counter())[reason] += 1
    finally:
        tally.seconds[key] += time.monotonic() - begun


def search(examples: int, seed: int | None, tally: Tally, *, shrink: bool, only: list[str]) -> str:
    """What broke, or nothing."""

    drawn = st.one_of(regression_studies(), regression_studies(), regression_studies(), stacks())
    turn: Counter[str] = Counter()
    failing: list[str] = []

    def in_turn(tree: Tree) -> list[str]:
        """The next relations, and while a failure shrinks the one that broke.

        Hypothesis repeats parts of earlier examples: drawn relations would be far from equally frequent.
        """
        prefix, all_relations = of_tree(tree)
        if failing:
            return [name for name in failing if name in all_relations]
        names = [name for name in all_relations if not only or name in only]
        count = min(AT_ONCE, len(names))
        turn[prefix] += count
        return [names[(turn[prefix] + i) % len(names)] for i in range(count)]

    phases = [Phase.generate, *([Phase.shrink] if shrink else [])]

    @settings(max_examples=examples, derandomize=seed is None, database=None, deadline=None, phases=phases,
              suppress_health_check=list(HealthCheck), report_multiple_bugs=False, print_blob=False)
    @given(drawn)
    def run(tree: Tree) -> None:
        tree = accepted(tree, tally)
        for name in in_turn(tree):
            try:
                check(tree, name, tally, examples)
            except Broken:
                failing[:] = [name]
                raise

    if seed is not None:
        run = hypothesis.seed(seed)(run)
    try:
        run()
    except Broken as broken:
        return str(broken)
    return ""


def self_test() -> int:
    """Every planted fault is found in few examples, and none without one."""
    # The relation that is meant to find it; other relations may.
    found_by = {"sign": "sum_of_terms", "control-mean": "theory", "float32": "sum_of_terms", "seed": "seed"}
    missed = []
    for relation in sorted(set(found_by.values())):
        runner.planted = ""
        if broken := search(30, None, Tally(), shrink=False, only=[relation]):
            missed.append(f"without a fault: {broken}")
    for runner.planted in FAULTS:
        begun = time.monotonic()
        broken = search(60, None, Tally(), shrink=False, only=[found_by[runner.planted]])
        found = broken.splitlines()[0] if broken else "is not found"
        print(f"{runner.planted}: {found} ({time.monotonic() - begun:.1f} s)")
        if not broken:
            missed.append(f"{runner.planted}: is not found")
    print("\n".join(missed), file=sys.stderr)
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="differential", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--examples", type=int, default=300)
    parser.add_argument("--seed", type=int, help="draw other examples")
    parser.add_argument("--fault", choices=sorted(FAULTS), help="plant a fault in what runs return")
    names = sorted({*REGRESSION, *DEPTH})
    parser.add_argument("--relation", action="append", default=[], choices=names, help="only this one")
    parser.add_argument("--self-test", action="store_true", help="demand that each fault is found")
    given_options: Any = parser.parse_args()
    if given_options.self_test:
        return self_test()
    runner.planted = given_options.fault or ""
    tally = Tally()
    begun = time.monotonic()
    broken = search(given_options.examples, given_options.seed, tally, shrink=True, only=given_options.relation)
    print(tally.table(given_options.relation))
    print(f"{time.monotonic() - begun:.0f} s")
    if broken:
        print(f"\n{broken}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

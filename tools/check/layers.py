#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the order of the rooms: layers.py ROOT exits with 1 and one line per fault.

A room is a folder, with the folders below it that are not rooms of their own. A file includes files of
its own room and of rooms above it in the list, never of one below it; two modules (x.h with x.cpp and
x-inl.h, or one of the Python package) never include one another in a circle; helpers of tests are
included by tests alone. What a machine is like is asked in one file, kernels/host.cpp, where tests can
answer in its place; and folders are listed and removed in one, which survives a lack of memory.
"""
import glob
import os
import re
import sys

ROOMS = """
kernels
kernels/cpu
kernels/cuda
kernels/backends
engine/files
engine/moments
engine/scenario
engine/results
engine/run
engine/shards
engine/dataset
engine/replay
engine/activations
validation/theory/model
validation/theory/exact
validation/theory/population
validation/theory/first_order
validation/theory/controls
validation/theory/mechanisms
validation/theory/depth
validation/theory
validation/statistics
validation/curves
validation/difference
validation/diversity
validation/compression
validation/heads
validation/claims
validation/literature
validation/verdicts
validation/allocation
tools/cli
tools/report
tools/tables
tools/cli/commands
tools/mpi
tools/bench
tools/example
tools/fuzz
tools/python
""".split()
FLOORS = ["kernels", "engine", "validation", "tools"]
APART = {("kernels/cpu", "kernels/cuda"), ("kernels/cuda", "kernels/cpu")}  # neither knows the other
SOURCE = re.compile(r"\.(h|cpp|cu)$")
# What one file does for all: what it does, how that looks, and whether tests may do it themselves.
ALONE = {
    "kernels/host.cpp": ("asks the machine", re.compile(  # of memory available_memory.cpp asks
        r"\bgetenv\b|hardware_concurrency|gethostname|get_nprocs|_SC_NPROCESSORS|system_clock|\bgetpw|/proc/cpuinfo"), False),
    "engine/files/folder.cpp": ("goes through a folder", re.compile(r"directory_iterator|remove_all|opendir"), True),
}
# Libraries of their own, loaded into a program from outside.
PRELOADED = ("tools/check/faults/injector.cpp", "tools/check/damage/forks.cpp")
INCLUDE = re.compile(r'\s*#\s*include\s*["<]([^">]+)[">]')
PACKAGE = "tools/python/headlab"
IMPORT = re.compile(r"\s*from \.(\w*) import (.+)")


def module(path):
    return re.sub(r"(-inl)?\.(h|cpp|cu)$", "", path)


def room(path):
    """The longest room that the path is in."""
    inside = [r for r in ROOMS if path.startswith(r + "/") or module(path) == r]
    return max(inside, key=len, default=None)


def is_test(path):
    return ".test." in path or "/testing/" in path or path.startswith(("tools/bench/", "tools/fuzz/", "tools/check/"))


def read_includes(root):
    """{path: [(line, included path)]} of every source file on the four floors."""
    found = {}
    for floor in FLOORS:
        for folder, _, names in os.walk(os.path.join(root, floor)):
            for name in filter(SOURCE.search, names):
                path = os.path.relpath(os.path.join(folder, name), root)
                with open(os.path.join(root, path), encoding="utf-8") as file:
                    lines = [INCLUDE.match(line) for line in file]
                found[path] = [line[1] for line in lines if line and line[1].split("/")[0] in FLOORS]
    return found


def read_imports(root):
    """{module: [imported modules]} of the Python package, by paths without endings."""
    found = {}
    for path in glob.glob(os.path.join(root, PACKAGE, "*.py")):
        with open(path, encoding="utf-8") as file:
            lines = [line for line in map(IMPORT.match, file) if line]
        names = [one for line in lines for one in ([line[1]] if line[1] else re.findall(r"(\w+)(?: as \w+)?", line[2]))]
        found[f"{PACKAGE}/{os.path.basename(path)[:-3]}"] = [f"{PACKAGE}/{one}" for one in names]
    return found


def done_elsewhere(root, paths):
    """What one file does for all, in another one."""
    for path in paths:
        with open(os.path.join(root, path), encoding="utf-8") as file:
            lines = [line.split("//")[0] for line in file]
        for place, (what, pattern, tests_may) in ALONE.items():
            if path in (place, *PRELOADED) or tests_may and is_test(path):
                continue
            for number, line in enumerate(lines, 1):
                if found := pattern.search(line):
                    yield f"{path}:{number}: {what} ({found[0]}), which {place} alone does"


def against_the_order(includes):
    for path, all_included in includes.items():
        floor = FLOORS.index(path.split("/")[0])
        for included in all_included:
            if FLOORS.index(included.split("/")[0]) > floor:
                yield f"{path}: includes {included}, of a floor above"
                continue
            if is_test(path):
                continue
            if "/testing/" in included:
                yield f"{path}: includes {included}, a helper of tests"
                continue
            here, there = room(path), room(included)
            if here is None:
                yield f"{path}: is in no room"
            elif there is None:
                yield f"{path}: includes {included}, which is in no room"
            elif ROOMS.index(there) > ROOMS.index(here) or (here, there) in APART:
                yield f"{path}: includes {included}, but {here} comes before {there}"


def circles(includes):
    """One line per knot of modules that include one another (strongly connected components)."""
    graph = {}
    for path, all_included in includes.items():
        if ".test." not in path:
            targets = graph.setdefault(module(path), set())
            targets |= {module(i) for i in all_included if module(i) != module(path)}

    def reached(start):
        seen, todo = set(), [start]
        while todo:
            for target in graph.get(todo.pop(), ()):
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return seen

    reach = {name: reached(name) for name in graph}
    knots = {frozenset(b for b in reach[a] if a in reach.get(b, ())) for a in graph if a in reach[a]}
    for knot in sorted(knots, key=sorted):
        yield "modules include one another in a circle: " + ", ".join(sorted(knot))


def main():
    if len(sys.argv) != 2:
        sys.exit("layers.py: usage: layers.py ROOT")
    includes = read_includes(sys.argv[1])
    if not includes:
        sys.exit(f"layers.py: no source file under {sys.argv[1]}")
    faults = [
        *against_the_order(includes),
        *circles({**includes, **read_imports(sys.argv[1])}),
        *done_elsewhere(sys.argv[1], includes),
    ]
    for fault in faults:
        print(fault)
    print(f"{len(includes)} files, {len(faults)} faults")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

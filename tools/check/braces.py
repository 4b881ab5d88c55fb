#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for braces that make GCC 12 destroy an object twice.

    struct Machine { std::string name; int threads = 1; };
    struct Checkpoint { Machine machine; int precision; };
    Checkpoint{.machine = {.name = text()}, .precision = may_throw()};     // destroys the name twice
    Checkpoint{.machine = Machine{.name = text()}, .precision = may_throw()};  // right

Where a nested brace has no type, some of its members are constants (numbers, and whatever is left out) and some
are not, and a later initialiser throws, GCC 12 destroys the members and then the object that they are in. So
a nested brace names its type wherever it holds something to destroy; a member's own initialiser (`Machine m =
Machine{...}` in a struct) is not even right with the type, and calls a function that returns the object.
A member that is left out is not looked at: what it is by default holds no memory, or a text of at most 15 letters.
Types are known to clang-query, which reads each unit that the preset release compiles.

    braces.py BUILD_FOLDER             units of the product, those changed since they were last found right
    braces.py BUILD_FOLDER --tests     those of tests too
    braces.py --control FILE           expects finds in the lines of FILE that say "// fault", and in no other
"""
import argparse
import concurrent.futures
import hashlib
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
QUERY = os.path.join(HERE, "braces.query")
ADVICE = {"nested": "write the type in front of the brace",
          "member": "have a function return what the member is made of"}
FOUND = re.compile(r'^(\S+?):(\d+):\d+: note: "(\w+)" binds here', re.M)


def arguments_of(command):
    """What clang needs to read a unit as GCC does, without what GCC has precompiled."""
    words = shlex.split(command)
    kept = [word for word in words if re.match(r"-[DI]|-std=", word)]
    for word, following in zip(words, words[1:]):
        if word == "-isystem":
            kept += [word, following]
    # One SIMD target: the same source for all. Clang 14 has _Float16, which the emulator needs, under this option alone.
    half = ["-mavx512fp16"] if platform.machine() == "x86_64" else []
    return kept + half + ["-DHWY_COMPILE_ONLY_SCALAR", "-x", "c++", "-w"]


def ask(path, arguments):
    """[(file, line, kind)] of one unit."""
    run = subprocess.run(["clang-query", "-f", QUERY, path, "--", *arguments], capture_output=True, text=True)
    output = run.stdout + run.stderr
    problem = re.search(r".*\berror: .*", output)
    if run.returncode != 0 or problem or "match" not in output:
        sys.exit(f"braces.py: {path}: {problem[0] if problem else output.strip()[-300:]}")
    return sorted({(os.path.realpath(found[1]), int(found[2]), found[3]) for found in FOUND.finditer(output)})


class Unit:
    def __init__(self, command, folder):
        self.path = os.path.join(command["directory"], command["file"])
        self.arguments = arguments_of(command["command"])
        words = shlex.split(command["command"])
        self.name = words[words.index("-o") + 1]
        self.object = os.path.join(command["directory"], self.name)
        self.stamp = os.path.join(folder, hashlib.sha256(self.name.encode()).hexdigest()[:16])

    def is_right(self):
        """Whether it was found right after it was last compiled, by the same query."""
        if not os.path.exists(self.stamp) or not os.path.exists(self.object):
            return False
        since = os.path.getmtime(self.stamp)
        return all(os.path.getmtime(path) < since for path in (self.object, QUERY))

    def finds(self):
        found = ask(self.path, self.arguments)
        if not found:
            with open(self.stamp, "w", encoding="utf-8"):
                pass
        return found


def check(build, with_tests):
    with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as file:
        commands = json.load(file)
    folder = os.path.join(build, "braces")
    os.makedirs(folder, exist_ok=True)
    units = []
    for command in commands:
        unit = Unit(command, folder)
        # Headers alone, the control, and what clang 14 does not read: CUDA, and the Python module, where a vector
        # of pairs of a type is a member of that type. The object's name is relative to the build folder: where
        # the tree lies does not matter.
        if re.search(r"header_checks\.dir|braces_control\.dir|cmake_pch|\.cu\.o$|^tools/python/", unit.name):
            continue
        if with_tests or not re.search(r"_tests\.dir|(^|/)(fuzz|bench)/", unit.name):
            units.append(unit)
    if not units:
        sys.exit(f"braces.py: no unit in {build}")
    todo = [unit for unit in units if not unit.is_right()]
    found = set()
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        for finds in pool.map(Unit.finds, todo):
            found.update(finds)
    for path, line, kind in sorted(found):
        print(f"{os.path.relpath(path)}:{line}: a brace that GCC 12 may destroy twice - {ADVICE[kind]}")
    print(f"{len(units)} units, {len(todo)} read, {len(found)} faults")
    return 1 if found else 0


def control(path):
    with open(path, encoding="utf-8") as file:
        expected = {number for number, line in enumerate(file, 1) if line.rstrip().endswith("// fault")}
    found = {line for _, line, _ in ask(path, ["-std=c++20", "-x", "c++"])}
    for line in sorted(expected ^ found):
        print(f"{path}:{line}: {'not found' if line in expected else 'found, and right'}")
    print(f"{len(expected)} faults, {len(found & expected)} found")
    return 0 if expected and expected == found else 1


def main():
    parser = argparse.ArgumentParser(prog="braces.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?")
    parser.add_argument("--tests", action="store_true")
    parser.add_argument("--control", metavar="FILE")
    arguments = parser.parse_args()
    if shutil.which("clang-query") is None:
        sys.exit("braces.py: no clang-query here - apt-get install clang-tools")
    if (arguments.build is None) == (arguments.control is None):
        parser.error("needs a build folder or --control")
    sys.exit(control(arguments.control) if arguments.control else check(arguments.build, arguments.tests))


if __name__ == "__main__":
    main()

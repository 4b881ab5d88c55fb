#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""behaviour.py HEADLAB FILE...: tests of the program that are text.

    behaviour.py HEADLAB FILE... --write    writes what the program says now in place of what differs

A file has tests; each begins with a line "== what it shows" and an empty folder. Their lines:

    # comment
    use world                     the files of tools/cli/testing/world, a.toml and s.toml
    --- NAME                      the file NAME, of the lines up to a line "---"
    $ COMMAND                     a step: bash runs it, with the program as `headlab`, the source tree as
                                  $SOURCE, no standard input and no GPU, and what functions.sh there adds
                                  say EXPRESSION... prints Python's values; j is the JSON on standard input
    | text                        a line that it writes to standard output
    ! text                        a line that it writes to standard error
    [2]                           its exit code, where that is not 0

A step writes these lines and no others. In a line "..." stands for any text, and <n> for a number; "..." alone stands
for any lines. A command that begins with `headlab` and ends with code 2 was rejected before it began: it makes,
changes and removes no file. That an output lacks something, a step says with grep: `$ headlab run a.toml | grep z`
and `[1]`.

Prints each fault and ends with 1 where there is one.
"""
import argparse
import difflib
import re
import shutil
import sys
from pathlib import Path

import commands

SOURCE = Path(__file__).resolve().parents[2]
WORLDS = SOURCE / "tools/cli/testing"
STREAMS = {"stdout": "|", "stderr": "!"}


class Step:
    """A command and what it is expected to do; `first` and `last` are its lines in the file."""

    def __init__(self, first, command):
        self.first = self.last = first
        self.command = command
        self.code = 0
        self.mended = False
        self.expected = {"stdout": [], "stderr": []}

    def lines(self):
        yield f"$ {self.command}"
        for stream, mark in STREAMS.items():
            yield from (f"{mark} {line}" if line else mark for line in self.expected[stream])
        if self.code:
            yield f"[{self.code}]"


def read(path):
    """Tests of a file as (name, parts), where a part is a Step, ("use", world) or ("file", name, text)."""
    lines = path.read_text(encoding="utf-8").split("\n")
    tests, i = [], 0
    while i < len(lines):
        line, step = lines[i], tests[-1][1][-1] if tests and tests[-1][1] else None
        i += 1
        mark = next((stream for stream, mark in STREAMS.items() if line == mark or line.startswith(mark + " ")), None)
        if not line or line.startswith("#"):
            continue
        if line.startswith("== "):
            tests.append((line[3:], []))
        elif not tests:
            sys.exit(f"{path.name}:{i}: stands before the first test - begin one with == NAME")
        elif line.startswith("$ "):
            tests[-1][1].append(Step(i, line[2:]))
        elif line.startswith("use ") and (WORLDS / line[4:]).is_dir():
            tests[-1][1].append(("use", line[4:]))
        elif line.startswith("--- "):
            if "---" not in lines[i:]:
                sys.exit(f"{path.name}:{i}: the file {line[4:]} has no end - write --- below it")
            end = lines.index("---", i)
            tests[-1][1].append(("file", line[4:], "".join(text + "\n" for text in lines[i:end])))
            i = end + 1
        elif isinstance(step, Step) and mark:
            step.expected[mark].append(line[2:])
            step.last = i
        elif isinstance(step, Step) and re.fullmatch(r"\[[1-9]\d*\]", line):
            step.code, step.last = int(line[1:-1]), i
        else:
            sys.exit(f"{path.name}:{i}: not a line of a test: {line}")
    return tests


def pattern(line):
    parts = re.split(r"(\.\.\.|<n>)", line)
    return "".join({"...": ".*", "<n>": commands.NUMBER}.get(part) or re.escape(part) for part in parts)


def alike(expected, seen):
    """Whether the lines seen are those expected, of which "..." alone stands for any."""
    blocks = [[]]
    for line in expected:
        if line == "...":
            blocks.append([])
        else:
            blocks[-1].append(pattern(line))

    def is_at(block, at):
        return 0 <= at <= len(seen) - len(block) and all(map(re.fullmatch, block, seen[at:]))

    if len(blocks) == 1:
        return len(seen) == len(blocks[0]) and is_at(blocks[0], 0)
    end = len(seen) - len(blocks[-1])
    if not is_at(blocks[0], 0) or not is_at(blocks[-1], end):
        return False
    at = len(blocks[0])
    for block in blocks[1:-1]:
        while not is_at(block, at):
            at += 1
            if at > end:
                return False
        at += len(block)
    return at <= end


def state(folder):
    """What is in a folder: each name with the size and the time of its last change."""
    return {str(path.relative_to(folder)): path.is_dir() or (path.lstat().st_size, path.lstat().st_mtime_ns)
            for path in folder.rglob("*")}


def kept(expected, seen):
    """The lines seen; one that fits an expected line with marks, in their order, is that line."""
    lines, left = [], [line for line in expected if line != "..."]
    for one in seen:
        at = next((i for i, line in enumerate(left) if re.fullmatch(pattern(line), one)), None)
        lines.append(one if at is None else left[at])
        left = left if at is None else left[at + 1:]
    return lines


def faults_of(step, work, environment):
    """Runs a step; yields what is not as expected, and how to mend the step where it can be mended."""
    before = state(work)
    done = commands.run(step.command, work, environment)
    if done.returncode != step.code:
        yield f"exit code {done.returncode} for {step.code}", lambda: setattr(step, "code", done.returncode)
    for stream in STREAMS:
        seen = getattr(done, stream).split("\n")
        seen = seen[:-1] if not seen[-1] else [*seen[:-1], seen[-1] + "<no newline>"]
        expected = step.expected[stream]
        if not alike(expected, seen):
            changes = list(difflib.unified_diff(expected, kept(expected, seen), lineterm="", n=1))[2:]
            yield "\n    ".join([f"{stream} is another:", *changes]), \
                lambda stream=stream, lines=kept(expected, seen): step.expected.update({stream: lines})
    after = state(work)
    if done.returncode == 2 and re.match(r"(\w+=\S* )*headlab\b", step.command) and before != after:
        names = sorted(name for name in before.keys() | after.keys() if before.get(name) != after.get(name))
        yield f"rejected, and yet there appeared, changed or went: {', '.join(names)}", None


def check(path, headlab, write):
    """Runs the tests of a file: the number of steps, and the faults that are left."""
    steps, faults = [], []
    for name, parts in read(path):
        # Without the machine's GPUs the program says the same everywhere.
        with commands.scratch(headlab, SOURCE=SOURCE, COLUMNS=None, CUDA_VISIBLE_DEVICES="",
                              BASH_ENV=WORLDS / "functions.sh") as (work, environment):
            (work.parent / "bin/say").symlink_to(WORLDS / "say.py")
            for part in parts:
                if isinstance(part, Step):
                    steps.append(part)
                    for fault, mend in faults_of(part, work, environment):
                        if write and mend:
                            mend()
                            part.mended = True
                        else:
                            faults.append(f"{path.name}:{part.first}: {name}: $ {part.command}\n  {fault}")
                elif part[0] == "use":
                    shutil.copytree(WORLDS / part[1], work, dirs_exist_ok=True)
                else:
                    Path(work, part[1]).parent.mkdir(parents=True, exist_ok=True)
                    Path(work, part[1]).write_text(part[2], encoding="utf-8")
    if not steps:
        faults.append(f"{path.name}: no command")
    if write:
        lines = path.read_text(encoding="utf-8").split("\n")
        for step in reversed([step for step in steps if step.mended]):
            # Comments between the lines of a step stay above it.
            comments = [line for line in lines[step.first:step.last] if line.startswith("#")]
            lines[step.first - 1:step.last] = [*comments, *step.lines()]
        path.write_text("\n".join(lines), encoding="utf-8")
    return len(steps), faults


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headlab", type=Path)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    found = [check(path, arguments.headlab.resolve(), arguments.write) for path in arguments.files]
    faults = [fault for _, of_file in found for fault in of_file]
    print("\n".join(faults) if faults else f"{sum(steps for steps, _ in found)} commands do what the tests say")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""doc_commands.py [--no-numbers] HEADLAB SOURCE PAGE...: runs the commands of pages as a reader would.

Each page is read in a scratch folder of its own, with HEADLAB on the path as `headlab`, also as build/release/headlab,
this Python as `python`, and SOURCE/scenarios and SOURCE/tools there. A fenced block that opens with a comment naming a
file ("# mine.toml", "# mine.py") becomes that file. A line of an indented block that starts with one of these names, or
with `$ ` and one of them, is run; it has to end with exit code 0, or with N where the line ends in the comment
"# exit code N". What follows a line with `$ ` up to the end of the block is the output that the page promises: its
words have to appear in this order, `...` at the end of a line stands for anything, and a number with a standard error
has to lie within six of them. Other numbers (times, rates) and the SIMD target are not compared; with --no-numbers none is, for a
page that trains a model.

Prints one line for each fault and ends with 1 where there is one.
"""

import math
import re
import shlex
import sys
from pathlib import Path

import commands
from commands import NUMBER


def steps_of(page):
    """Yields (line, "file", (name, text)) and (line, "run", (command, exit code, promised lines))."""
    lines = page.read_text().splitlines()
    i = 0
    while i < len(lines):
        if lines[i].startswith("```"):
            first = i + 1
            i = first
            while lines[i] != "```":
                i += 1
            name = re.fullmatch(r"#\s*([\w./-]+\.(?:toml|py))", lines[first]) if first < i else None
            if name:
                yield first, "file", (name[1], "\n".join(lines[first:i]) + "\n")
        elif lines[i].startswith("    ") and (i == 0 or not lines[i - 1].strip()):
            block = i
            while i < len(lines) and (lines[i].startswith("    ") or not lines[i].strip()):
                i += 1
            yield from commands_of(block, [line[4:].rstrip() for line in lines[block:i]])
            continue
        i += 1


def commands_of(start, block):
    i = 0
    while i < len(block):
        command = block[i]
        number = start + i + 1
        i += 1
        promises = command.startswith("$ ")
        command = command.removeprefix("$ ")
        if command.split()[:1] not in (["headlab"], ["build/release/headlab"], ["python"]):
            continue
        while command.endswith("\\"):
            command = command[:-1] + block[i].strip()
            i += 1
        code = re.search(r"#.*exit code (\d+)", command)
        promised = []
        while promises and i < len(block) and not block[i].startswith("$ "):
            promised.append(block[i])
            i += 1
        yield number, "run", (command, int(code[1]) if code else 0, promised)


def tokens(text):
    """Words, and numbers as (value, standard error); the error is NaN where none stands behind."""
    text = re.sub(r"\bcpu/[\w-]+", "cpu", text)
    found = []
    for match in re.finditer(rf"(?P<value>{NUMBER})(?:\s*±\s*(?P<error>{NUMBER}))?|(?P<word>[^\s\d]+?(?=\s|\d|$))", text):
        word = match["word"]
        value, error = (float((match[key] or "nan").replace(",", "")) for key in ("value", "error"))
        found.append(word or (value, error))
    return found


def alike(numbers, promised, seen):
    if isinstance(promised, str) or isinstance(seen, str):
        return promised == seen
    if not numbers:
        return True
    (value, error), (other, other_error) = promised, seen
    if math.isnan(error) or math.isnan(other_error):
        return math.isnan(error) == math.isnan(other_error)  # a time or a rate, or a count
    return abs(value - other) <= 6 * max(error, other_error)


def without_errors(text):
    return re.sub(rf" /1e-?\d+|(?<=\d)\(\d+\)|\s*±\s*{NUMBER}", "", text)


def missing(promised, output, numbers):
    """The first promised part (up to "..." at the end of a line) that the output lacks, or None."""
    if not numbers:  # nor how they are written, as 0.982 ± 0.003, 0.982(3), or below a unit of 1e-3
        promised = [without_errors(line) for line in promised]
        output = without_errors(output)
    seen = tokens(output)
    at = 0
    for part in re.split(r"(?:^|\s)\s*\.\.\.\s*$", "\n".join(promised), flags=re.MULTILINE):
        wanted = tokens(part)
        while at + len(wanted) <= len(seen) and not all(alike(numbers, *one) for one in zip(wanted, seen[at:])):
            at += 1
        if at + len(wanted) > len(seen):
            return " ".join(part.split())
        at += len(wanted)
    return None


def check(page, headlab, source, numbers):
    faults, runs = [], 0
    with commands.scratch(headlab) as (work, environment):
        for name in ("scenarios", "tools"):
            Path(work, name).symlink_to(source / name)
        Path(work, "build/release").mkdir(parents=True)
        Path(work, "build/release/headlab").symlink_to(headlab)
        # A link to an interpreter would leave its packages behind.
        python = work.parent / "bin/python"
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        python.chmod(0o755)
        for number, kind, content in steps_of(page):
            if kind == "file":
                Path(work, content[0]).write_text(content[1])
                continue
            command, code, promised = content
            runs += 1
            # A terminal as wide as what the page promises.
            columns = {"COLUMNS": str(max([110, *map(len, promised)]))}
            done = commands.run(command, work, environment | columns)
            where = f"{page.name}:{number}: {shlex.join(shlex.split(command, comments=True))}"
            if done.returncode != code:
                said = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:] or [""]
                faults.append(f"{where}: exit code {done.returncode} for {code}: {said[0]}")
            elif lacking := missing(promised, done.stdout + done.stderr, numbers):
                faults.append(f"{where}: the output lacks: {lacking}")
    if runs == 0:
        faults.append(f"{page.name}: no command")
    return faults


def main():
    given = [one for one in sys.argv[1:] if one != "--no-numbers"]
    if len(given) < 3:
        sys.exit("usage: doc_commands.py [--no-numbers] HEADLAB SOURCE PAGE...")
    headlab, source = Path(given[0]).resolve(), Path(given[1]).resolve()
    numbers = "--no-numbers" not in sys.argv
    faults = [fault for page in given[2:] for fault in check(Path(page), headlab, source, numbers)]
    print("\n".join(faults) if faults else f"{len(given) - 2} pages: every command does what its page says")
    sys.exit(1 if faults else 0)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""laws_page.py HEADLAB PAGE [--write]: holds the tables of laws of a page to what `headlab list laws` says.

Family, law and parameters of a row are those of the program, in its order. A formula is the page's; that of a row which
the page lacks is the summary of the law. With --write the tables are written so.

Prints a diff and ends with 1 where they differ.
"""
import argparse
import difflib
import re
import subprocess
from pathlib import Path

TITLE = "| family | law | formula | parameters |"
STACKS = ", of studies of depth"


def laws_of(listed):
    """(family, name, summary, required parameters, optional ones) of each law of `headlab list laws`."""
    found, family = [], ""
    for line in listed.splitlines():
        if law := re.match(r"  (\w+) +(.*)", line):
            found.append((family, law[1], law[2], [], []))
        elif parameter := re.match(r" {6}(?!for example)(\w+) +(optional\b)?", line):
            found[-1][4 if parameter[2] else 3].append(parameter[1])
        elif line and not line[0].isspace():
            family = line
    return found


def formulas_of(rows):
    """Formulas of a table by family and law."""
    found, family = {}, ""
    for row in rows:
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]]
        family = cells[0] or family
        found[family, cells[1].strip("`")] = cells[2]
    return found


def table(laws, formulas):
    rows, above = [], None
    for family, name, summary, required, optional in laws:
        formula = formulas.get((family, name), summary.replace("|", r"\|"))
        parameters = "; ".join(filter(None, [", ".join(required), ", ".join(f"[{one}]" for one in optional)]))
        cells = ["" if family == above else family, f"`{name}`", formula, parameters]
        rows.append("|" + "".join(f" {cell} |" if cell else " |" for cell in cells))
        above = family
    return rows


def written(page, laws):
    """The lines of the page with its tables as they should be: that of regression, then that of depth."""
    lines, at = page.copy(), 0
    for of_stacks in (False, True):
        first = lines.index(TITLE, at) + 2
        at = next(i for i in range(first, len(lines) + 1) if i == len(lines) or not lines[i].startswith("|"))
        some = [(law[0].removesuffix(STACKS), *law[1:]) for law in laws if law[0].endswith(STACKS) == of_stacks]
        rows = table(some, formulas_of(lines[first:at]))
        lines[first:at] = rows
        at = first + len(rows)
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headlab")
    parser.add_argument("page", type=Path)
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    listed = subprocess.run([arguments.headlab, "list", "laws"], capture_output=True, text=True, check=True).stdout
    page = arguments.page.read_text(encoding="utf-8").split("\n")
    lines = written(page, laws_of(listed))
    if arguments.write:
        arguments.page.write_text("\n".join(lines), encoding="utf-8")
        return 0
    changes = list(difflib.unified_diff(page, lines, str(arguments.page), "headlab list laws", lineterm="", n=0))
    if changes:
        print(*changes, "laws_page.py HEADLAB PAGE --write enters this", sep="\n")
    return 1 if changes else 0


if __name__ == "__main__":
    raise SystemExit(main())

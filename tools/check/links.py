#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""links.py ROOT: every page that README.md, docs/ and scenarios/ link to is there, and has the section of a #anchor.

Pages that sources and messages name as docs/NAME.md have to be there too, and commits that records (docs/measured) name
have to be among those that led here, unless git knows none of them, as in a snapshot. Prints one line for each find and ends with 1 where there
is one.
"""
import re
import subprocess
import sys
from pathlib import Path

FENCE = re.compile(r"^```.*?^```", re.M | re.S)
CODE = re.compile(r"(`+)[^`].*?\1")
LINK = re.compile(r"\]\(([^)\s]+)\)")
COMMIT = re.compile(r"\b(?=[0-9]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{7,8}\b")
NAMED = re.compile(r"\bdocs/[\w/-]+\.md\b")
SOURCES = {"", ".h", ".cpp", ".cu", ".py", ".cmake", ".txt", ".toml", ".md"}
LEFT_OUT = {".git", "build", "out"}


def prose(text):
    """The text without its code blocks, each line where it was."""
    return FENCE.sub(lambda m: "\n" * m[0].count("\n"), text)


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for heading in re.findall(r"^#+\s+(.*?)\s*$", prose(page.read_text(encoding="utf-8")), re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 0
        while (name := anchor if number == 0 else f"{anchor}-{number}") in found:
            number += 1
        found.add(name)
    return found


def faults_of_page(page, root):
    text = CODE.sub("", prose(page.read_text(encoding="utf-8")))
    for match in LINK.finditer(text):
        target, _, anchor = match[1].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        where = f"{page.relative_to(root)}:{text.count(chr(10), 0, match.start()) + 1}"
        file = (page.parent / target).resolve() if target else page
        if not file.exists():
            yield f"{where}: {match[1]}: is not there"
        elif anchor and file.suffix == ".md" and anchor not in anchors(file):
            yield f"{where}: {match[1]}: has no such section"


def faults_of_source(path, root):
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return
    for number, line in enumerate(lines, 1):
        for name in NAMED.findall(line):
            if not (root / name).exists():
                yield f"{path.relative_to(root)}:{number}: {name}: is not there"


def faults_of_records(pages, root):
    try:
        done = subprocess.run(["git", "-C", root, "log", "--format=%H"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return []
    commits = done.stdout.split()
    named = [(f"{page.relative_to(root)}:{number}", name) for page in pages
             for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
             for name in COMMIT.findall(line)]
    unknown = [f"{where}: {name}: is no commit that led here" for where, name in named
               if not any(commit.startswith(name) for commit in commits)]
    return unknown if len(unknown) < len(named) else []


def main():
    if len(sys.argv) != 2:
        sys.exit("usage: links.py ROOT")
    root = Path(sys.argv[1]).resolve()
    files = [path for top in root.iterdir() if top.name not in LEFT_OUT
             for path in ([top] if top.is_file() else top.rglob("*"))
             if path.is_file() and path.suffix in SOURCES and path.name != "links.py"]
    pages = sorted(path for path in files if path.suffix == ".md")
    if not pages:
        sys.exit(f"links.py: no page under {root}")
    found = [fault for page in pages for fault in faults_of_page(page, root)]
    found += [fault for path in sorted(files) for fault in faults_of_source(path, root)]
    found += faults_of_records([page for page in pages if page.is_relative_to(root / "docs" / "measured")], root)
    print("\n".join([*found, f"{len(pages)} pages, {len(found)} finds"]))
    sys.exit(1 if found else 0)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for names that were replaced: retired_names.py LIST ROOT exits with 1 and one line per find.

Comments count, string literals do not: file formats keep their words. Of the documents, types in `code` count.
"""
import os
import re
import sys

FOLDERS = ["kernels", "engine", "validation", "tools", "docs"]
SOURCE = re.compile(r"\.(h|cpp|cu|md)$")
CODE = re.compile(r"```[^`]*```|`[^`\n]*`|[^`]+")
LITERAL = re.compile(r'R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"')


def searched(path, text):
    """The text without what does not count, each line where it was."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found)
    if path.endswith(".md"):
        return CODE.sub(lambda m: m[0] if re.fullmatch("`[A-Z][A-Za-z:]*`", m[0]) else blank(m[0]), text)
    return LITERAL.sub(lambda m: blank(m[0]), text)


def main():
    if len(sys.argv) != 3:
        sys.exit("retired_names.py: usage: retired_names.py LIST ROOT")
    with open(sys.argv[1], encoding="utf-8") as file:
        rows = [line.split() for line in file if line.strip() and not line.startswith("#")]
    new_name = dict(rows)
    retired = re.compile(r"\b(?:" + "|".join(f"({old})" for old in new_name) + r")\b")
    names = list(new_name.values())
    files = finds = 0
    for folder in FOLDERS:
        for where, _, found in os.walk(os.path.join(sys.argv[2], folder)):
            for path in sorted(os.path.join(where, name) for name in filter(SOURCE.search, found)):
                with open(path, encoding="utf-8") as file:
                    text = searched(path, file.read())
                files += 1
                for match in retired.finditer(text):
                    line = text.count("\n", 0, match.start()) + 1
                    print(f"{path}:{line}: {match[0]} is {names[match.lastindex - 1]} now")
                    finds += 1
    if files == 0:
        sys.exit(f"retired_names.py: no source file under {sys.argv[2]}")
    print(f"{files} files, {len(names)} retired names, {finds} finds")
    sys.exit(1 if finds else 0)


if __name__ == "__main__":
    main()

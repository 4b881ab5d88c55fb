#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for absolute paths that files are compiled with without need.

path_definitions.py COMPILE_COMMANDS ROOT exits with 1 and one line per macro with a path below ROOT that the
file compiled does not name itself. A compiler cache misses each such file when the tree lies elsewhere.
"""
import json
import os
import re
import shlex
import sys


def faults(commands, root):
    for command in commands:
        path = os.path.join(command["directory"], command["file"])
        with open(path, encoding="utf-8") as file:
            text = file.read()
        for argument in shlex.split(command["command"]):
            macro = re.match(r"-D(\w+)=(.*)", argument)
            if macro and root in macro[2] and not re.search(rf"\b{macro[1]}\b", text):
                yield f"{os.path.relpath(path, root)}: does not use {macro[1]}, a path"


def main():
    if len(sys.argv) != 3:
        sys.exit("path_definitions.py: usage: path_definitions.py COMPILE_COMMANDS ROOT")
    with open(sys.argv[1], encoding="utf-8") as file:
        commands = json.load(file)
    found = sorted(set(faults(commands, sys.argv[2])))
    for fault in found:
        print(fault)
    print(f"{len(commands)} commands, {len(found)} faults")
    sys.exit(1 if found or not commands else 0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds the tree to the sizes in budget.toml.

    budget.py ROOT             exits with 1 and one line per fault
    budget.py ROOT --archives FILE...  the second copies of functions in the libraries FILE
    budget.py ROOT --write     writes what is there into ROOT/tools/check/budget.toml

Sizes: lines and files of each room (product, and tests apart), pages of docs/ and their words without docs/measured,
files of the largest folder, product sources that reach the headers named, sources that may include what is dear to
compile, modules that tests alone include, and names that several tests have. What grows is entered in the same change; what shrinks by a fiftieth too, so that
the numbers stay those of the tree.
"""
import argparse
import collections
import os
import pathlib
import re
import subprocess
import sys
import tomllib

import layers

BUDGET = "tools/check/budget.toml"
BEHAVIOUR = "tools/cli/behaviour/"  # tests that are text
SLACK = 0.02
TEST = re.compile(r"^TEST(?:_F|_P)?\((\w+), (\w+)\)", re.M)
INCLUDED = re.compile(r'^\s*#\s*include\s*["<]([^">]+)[">]', re.M)
HEAD = """# SPDX-License-Identifier: Apache-2.0
# Sizes of the tree, which tools/check/budget.py holds it to: a change that makes one grow edits it here.
"""


def kind(path):
    """"checks" of the tree, "tests", or the room of the product that the file is in."""
    if path.startswith(("tools/bench/", "tools/fuzz/", "tools/check/", "tools/example/")):
        return "checks and benchmarks"
    if layers.is_test(path) or path.startswith(("tools/python/tests/", BEHAVIOUR)):
        return "tests of " + path.split("/")[0]
    return layers.room(path) or os.path.dirname(path)


class Tree:
    def __init__(self, root):
        self.texts = {}
        for floor in layers.FLOORS:
            for folder, _, names in os.walk(os.path.join(root, floor)):
                for name in names:
                    path = os.path.relpath(os.path.join(folder, name), root)
                    if not re.search(r"\.(h|cpp|cu|py)$", name) and not path.startswith(BEHAVIOUR):
                        continue
                    with open(os.path.join(root, path), encoding="utf-8") as file:
                        self.texts[path] = file.read()
        self.documents = [page.read_text(encoding="utf-8") for page in sorted(pathlib.Path(root, "docs").glob("*.md"))]
        self.includes = {path: set(INCLUDED.findall(text)) for path, text in self.texts.items()}
        self.products = [path for path in self.texts if path.endswith((".cpp", ".cu")) and not layers.is_test(path)]

    def rooms(self):
        lines, files = collections.Counter(), collections.Counter()
        for path, text in self.texts.items():
            lines[kind(path)] += text.count("\n")
            files[kind(path)] += 1
        return {name: {"lines": lines[name], "files": files[name]} for name in sorted(lines)}

    def pages(self):
        return {"pages": len(self.documents), "words": sum(len(text.split()) for text in self.documents)}

    def largest_folder(self):
        counts = collections.Counter(os.path.dirname(path) for path in self.texts)
        return max(counts.values(), default=0)

    def reached(self, path):
        seen, todo = set(), [path]
        while todo:
            for target in self.includes.get(todo.pop(), ()):
                if target in self.texts and target not in seen:
                    seen.add(target)
                    todo.append(target)
        return seen

    def reach(self, headers):
        counts = dict.fromkeys(headers, 0)
        for path in self.products:
            for header in self.reached(path) & counts.keys():
                counts[header] += 1
        return counts

    def sources_of(self, headers):
        """Files of the product that include a header, which an include of a whole folder ("CLI/") may name."""
        return {header: sorted(path for path in self.texts if not layers.is_test(path) and
                               any(i == header or header.endswith("/") and i.startswith(header)
                                   for i in self.includes[path])) for header in headers}

    def for_tests_alone(self):
        """Modules that no file of the product includes, other than those with a main or for others to include."""
        users = collections.defaultdict(set)
        for path, included in self.includes.items():
            for header in included:
                users[header].add(path)
        return sorted(
            path for path in self.texts
            if path.endswith(".h") and not layers.is_test(path) and
            not any(layers.module(user) != layers.module(path) and not layers.is_test(user) for user in users[path])
            and any(layers.is_test(user) for user in users[path]))

    def tests_of_one_name(self):
        names = collections.Counter(name for path, text in self.texts.items() if ".test." in path
                                    for name in TEST.findall(text))
        cases = collections.Counter(case for _, case in names)
        return sum(1 for count in cases.values() if count > 1)


def measured(tree, budget):
    return {
        "largest_folder": tree.largest_folder(),
        "tests_of_one_name": tree.tests_of_one_name(),
        "docs": tree.pages(),
        "rooms": tree.rooms(),
        "reach": tree.reach(budget.get("reach", {})),
        "sources": tree.sources_of(budget.get("sources", {})),
        "for_tests_alone": tree.for_tests_alone(),
    }


def compare(what, now, allowed):
    if now > allowed:
        yield f"{what}: {now}, and {BUDGET} has {allowed} - make it smaller, or enter it with budget.py . --write"
    elif now < allowed * (1 - SLACK) - 1:
        yield f"{what}: {now}, and {BUDGET} has {allowed} - enter what is left of it with budget.py . --write"


def faults(found, budget):
    for name in ("largest_folder", "tests_of_one_name"):
        yield from compare(name.replace("_", " "), found[name], budget.get(name, 0))
    for unit, size in found["docs"].items():
        yield from compare(f"{unit} of docs/", size, budget.get("docs", {}).get(unit, 0))
    for name, size in found["rooms"].items():
        allowed = budget["rooms"].get(name)
        if allowed is None:
            yield f"{name}: {size['lines']} lines, and {BUDGET} does not have it"
            continue
        for unit in ("lines", "files"):
            yield from compare(f"{name}, {unit}", size[unit], allowed[unit])
    for name in budget["rooms"].keys() - found["rooms"].keys():
        yield f"{name}: not in the tree, and {BUDGET} has it"
    for name, count in found["reach"].items():
        yield from compare(f"sources that reach {name}", count, budget["reach"][name])
    for name, sources in found["sources"].items():
        for path in sorted(set(sources) - set(budget["sources"][name])):
            yield f"{path}: includes {name}, which {', '.join(budget['sources'][name]) or 'no source'} alone does"
    for path in sorted(set(found["for_tests_alone"]) - set(budget.get("for_tests_alone", []))):
        yield f"{path}: tests alone include it"


def toml_text(found, budget):
    def rows(table):
        return "\n".join(f'"{key}" = {value}' for key, value in table.items())

    def names(values):
        return "[" + ", ".join(f'"{value}"' for value in values) + "]"

    rooms = {key: f'{{ lines = {size["lines"]}, files = {size["files"]} }}' for key, size in found["rooms"].items()}
    return (f"{HEAD}largest_folder = {found['largest_folder']}  # files\n"
            f"tests_of_one_name = {found['tests_of_one_name']}\n"
            f"second_copies = {budget.get('second_copies', 0)}  # bytes of functions that a library has before\n"
            f"for_tests_alone = {names(found['for_tests_alone'])}\n\n"
            f"[docs]  # without docs/measured\n{rows(found['docs'])}\n\n"
            f"[rooms]\n{rows(rooms)}\n\n"
            f"[reach]  # sources of the product that see a header\n{rows(found['reach'])}\n\n"
            "[sources]  # that may include what is dear to compile\n" +
            rows({key: names(value) for key, value in found["sources"].items()}) + "\n")


def second_copies(archives):
    """Bytes of weak functions that stand in several objects of the archives, without the largest of each."""
    total, largest = collections.Counter(), collections.Counter()
    for archive in archives:
        listing = subprocess.run(["nm", "-S", "--defined-only", archive], capture_output=True, text=True, check=True)
        for line in listing.stdout.splitlines():
            parts = line.split()
            if len(parts) == 4 and parts[2] in "WVwvu":
                size = int(parts[1], 16)
                total[parts[3]] += size
                largest[parts[3]] = max(largest[parts[3]], size)
    return sum(total[name] - largest[name] for name in total)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root")
    parser.add_argument("--archives", nargs="+", metavar="FILE")
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    path = os.path.join(arguments.root, BUDGET)
    with open(path, "rb") as file:
        budget = tomllib.load(file)
    if arguments.archives:
        size = second_copies(arguments.archives)
        if arguments.write:
            budget["second_copies"] = size
        else:
            found = [fault for fault in compare("bytes of second copies", size, budget["second_copies"]) if size > budget["second_copies"]]
            print("\n".join(found) or f"{size} bytes of second copies")
            sys.exit(1 if found else 0)
    tree = Tree(arguments.root)
    found = measured(tree, budget)
    if arguments.write:
        with open(path, "w", encoding="utf-8") as file:
            file.write(toml_text(found, budget))
        return
    lines = list(faults(found, budget))
    for line in lines:
        print(line)
    print(f"{len(tree.texts)} files, {len(lines)} faults")
    sys.exit(1 if lines else 0)


if __name__ == "__main__":
    main()

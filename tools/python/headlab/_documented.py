# SPDX-License-Identifier: Apache-2.0
"""Docstrings in a short form, with fields of reST, and their sections of numpydoc, which `help` shows.

A field is a line and those indented below it: ``:param NAME (TYPE): WORDS``, ``:returns TYPE: WORDS``, and likewise
``:raises`` and ``:warns``. Arguments that many functions take are described once, in SHARED.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

#: What an argument is that a docstring leaves out: its type and its words.
SHARED = {
    "ax": ("matplotlib Axes, optional", "Where to draw; new ones without it."),
    "backend": ('"auto", "reference", "cpu" or "cuda"', 'What computes; "auto" takes the GPU where there is one.'),
    "document": ("array [B], optional", "The document of each sequence; each its own without it."),
    "figure": ("str", "Name of a figure, as list(r) has them."),
    "layer": ("int, optional", "One layer, by its number in the model; all without it."),
    "layers": ("list of int, optional", "Layers by their numbers in the model; all without it."),
    "max_time": ("float or str, optional", 'Seconds, or a text as "30m", after which the work stops.'),
    "model": ("PyTorch model, optional", "The captured one without it."),
    "over": ("str, optional", "The swept key along the axis, where there are several."),
    "overwrite": ("bool", "True replaces what is there; otherwise it stays."),
    "progress": ("bool or callable", "True shows a bar; a function is called with a dict ten times a second, and what it raises ends the work."),
    "replicates": ("int, optional", "Training sets, instead of the scenario's."),
    "scenario": ("path, TOML text, dict or Scenario", "What to simulate (docs/scenario.md)."),
    "seed": ("int, optional", "Instead of the scenario's."),
    "set": ('dict or list of "KEY=VALUE", optional', "Keys to set, over those of the scenario."),
    "steps": ("int, optional", "How many steps of the plan; all without it."),
    "threads": ("int, optional", "All of the machine without it. The bits do not depend on it."),
}


def documented(function: Function) -> Function:
    """Writes the sections of a docstring, with the arguments that it leaves out, in the order of the call."""
    if function.__doc__:  # none with python -OO
        words, sections = _parts(function.__doc__)
        _write(function, words, sections, _entries(sections))
    return function


def document(modules: Mapping[str, Any]) -> None:
    """Writes those of public functions and methods that have fields, of modules by their names."""
    for name, module in modules.items():
        for home in [module, *(one for one in vars(module).values() if inspect.isclass(one))]:
            for own, member in vars(home).items():
                is_own = inspect.isfunction(member) and member.__module__ == name and not own.startswith("_")
                if is_own and _FIELD.search(inspect.cleandoc(member.__doc__ or "")):
                    documented(member)


def documented_like(other: Callable[..., Any]) -> Callable[[Function], Function]:
    """Has the sections of another function, as far as the arguments are there, under words of its own."""

    def decorate(function: Function) -> Function:
        if function.__doc__ and other.__doc__:
            words, own = _parts(function.__doc__)
            _, sections = _parts(other.__doc__)
            taken = _names(function)
            entries = {name: entry for name, entry in _entries(sections).items() if name in taken}
            _write(function, words, {**sections, **own}, {**entries, **_entries(own)})
        return function

    return decorate


def _names(function: Callable[..., Any]) -> list[str]:
    """Arguments as numpydoc writes them."""
    stars: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    given = inspect.signature(function).parameters.values()
    return [stars.get(one.kind, "") + one.name for one in given if one.name != "self"]


_SECTIONS = {"param": "Parameters", "returns": "Returns", "raises": "Raises", "warns": "Warns"}
_FIELD = re.compile(rf"^:({'|'.join(_SECTIONS)}) ", re.MULTILINE)


def _parts(text: str) -> tuple[str, dict[str, str]]:
    """What stands in front of the sections, and the sections by their headings."""
    found, name = {"": ""}, ""
    lines = inspect.cleandoc(text).splitlines()
    for line, below in zip(lines, [*lines[1:], ""], strict=True):
        if line and below == "-" * len(line):
            found[name := line] = ""
        elif not line or set(line) != {"-"}:
            found[name] += line + "\n"
    words, *fields = _FIELD.split(found.pop(""))
    made: dict[str, str] = {}
    for kind, field in zip(fields[::2], fields[1::2], strict=True):
        head, _, what = field.partition("): " if kind == "param" else ": ")
        body = textwrap.fill(what, 96, initial_indent="    ", subsequent_indent="    ", break_on_hyphens=False)
        section = _SECTIONS[kind]
        made[section] = made.get(section, "") + (head.replace(" (", " : ", 1) if kind == "param" else head) + f"\n{body}\n"
    return words.strip(), {name: body.strip("\n") for name, body in {**made, **found}.items()}


def _entries(sections: dict[str, str]) -> dict[str, str]:
    """Entries of the parameters by every name that they are for."""
    found: dict[str, str] = {}
    names: list[str] = []
    for line in sections.get("Parameters", "").splitlines():
        if line and not line[0].isspace():
            names = line.split(" : ")[0].split(", ")
        for name in names:
            found[name] = found.get(name, "") + line.rstrip() + "\n"
    return found


def _write(function: Callable[..., Any], words: str, sections: dict[str, str], entries: dict[str, str]) -> None:
    taken = _names(function)
    if unknown := entries.keys() - set(taken):
        raise ValueError(f"{function.__qualname__}: describes {', '.join(sorted(unknown))}, which it does not take")
    written: list[str] = []
    for name in taken:
        kind, what = SHARED.get(name, ("", ""))
        entry = entries.get(name) or (f"{name} : {kind}\n    {what}\n" if kind else "")
        if entry not in written:
            written.append(entry)
    sections = {"Parameters": "".join(written).rstrip("\n"), **{n: b for n, b in sections.items() if n != "Parameters"}}
    parts = [words, *(f"{name}\n{'-' * len(name)}\n{body}" for name, body in sections.items() if body)]
    function.__doc__ = "\n\n".join(parts) + "\n"

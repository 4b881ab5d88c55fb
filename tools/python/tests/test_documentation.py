# SPDX-License-Identifier: Apache-2.0
"""Every public function says what it takes, gives and raises, in the sections of numpydoc."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import headlab as hl


#: Modules of helpers, which public modules import.
INNER = {f"headlab.{name}" for name in ("_arguments", "_arrays", "_carried", "_documented", "_errors", "_jobs")}


def sections(text: str) -> dict[str, str]:
    """The sections of a docstring by their headings."""
    found, name = {"": ""}, ""
    lines = inspect.cleandoc(text).splitlines()
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and line and lines[i + 1] == "-" * len(line):
            found[name := line] = ""
        elif set(line) != {"-"}:
            found[name] += line + "\n"
    return found


def complaints(name: str, function: Callable[..., Any]) -> list[str]:
    found = sections(function.__doc__ or "")
    if not found[""].strip():
        return [f"{name}: has no docstring"]
    signature = inspect.signature(function)
    missing = []
    for parameter in signature.parameters.values():
        if parameter.name == "self":
            continue
        stars = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        lines = found.get("Parameters", "").splitlines()
        heads = [line.split(" : ")[0] for line in lines if line.strip() and not line[0].isspace()]
        if stars + parameter.name not in ", ".join(heads).split(", "):
            missing.append(f"{name}: does not say what {parameter.name} is")
    gives = signature.return_annotation not in ("None", None, inspect.Signature.empty)
    if gives and not {"Returns", "Yields"} & found.keys():
        missing.append(f"{name}: does not say what it returns")
    if "." not in name.removeprefix("headlab.").removeprefix("heads.") and "Raises" not in found:
        missing.append(f"{name}: does not say what it raises")
    return missing


def public() -> Iterator[tuple[str, Any]]:
    """Functions, classes, and what these have of their own, by name."""
    for module, names in ((hl, hl.__all__), (hl.heads, vars(hl.heads)), (hl.plot, vars(hl.plot))):
        for name in names:
            member = getattr(module, name)
            home = getattr(member, "__module__", "")
            if name.startswith("_") or not home.startswith("headlab") or home in INNER:
                continue
            if inspect.isfunction(member):
                yield f"{module.__name__}.{name}", member
            elif inspect.isclass(member):
                yield f"{module.__name__}.{name}", member
                for own, value in inspect.getmembers(member):
                    if not own.startswith("_") and getattr(value, "__module__", "headlab").startswith("headlab"):
                        if inspect.isfunction(value) or isinstance(value, property):
                            yield f"{module.__name__}.{name}.{own}", value


def test_every_public_function_has_its_sections() -> None:
    names, missing = [], []
    for name, member in public():
        names.append(name)
        if inspect.isfunction(member):
            missing += complaints(name, member)
        elif not inspect.cleandoc(getattr(member, "__doc__", None) or ""):
            missing.append(f"{name}: has no docstring")
    assert not missing, "\n".join(missing)
    for known in ("headlab.run", "headlab.nw", "headlab.heads.from_safetensors", "headlab.Result.save"):
        assert known in names


def test_a_function_without_a_section_is_found() -> None:
    def bare(x: int) -> int:
        """Gives x."""
        return x

    def whole(x: int) -> int:
        """Gives x.

        Parameters
        ----------
        x : int
            A number.

        Returns
        -------
        int
            The same.

        Raises
        ------
        ValueError
            Never.
        """
        return x

    assert [line.split(": ")[1] for line in complaints("bare", bare)] == [
        "does not say what x is", "does not say what it returns", "does not say what it raises",
    ]  # fmt: skip
    assert complaints("whole", whole) == []


def test_common_arguments_are_described_once() -> None:
    from headlab._documented import SHARED, documented, documented_like

    shown = pydoc.render_doc(hl.theory, renderer=pydoc.plaintext)
    for text in (hl.theory.__doc__ or "", inspect.getdoc(hl.theory) or "", shown):
        assert SHARED["threads"][1] in text
        # In the order of the call, whoever wrote them.
        places = [text.index(f"{one} : ") for one in ("scenario", "set", "source", "threads")]
        assert places == sorted(places)
    # Those of a scenario are those of functions that take one.
    for name, member in public():
        for key in ("seed", "replicates", "backend"):
            if inspect.isfunction(member) and SHARED[key][1] in (member.__doc__ or ""):
                assert {"scenario", "claims"} & inspect.signature(member).parameters.keys(), f"{name}: {key}"

    def of_two(threads: int, x: int) -> None:
        """Does it.

        :param x, y (int): Numbers.
        :raises ValueError: Never.

        Examples
        --------
        >>> of_two(1, 2)
        """

    with pytest.raises(ValueError, match="of_two: describes y, which it does not take"):
        documented(of_two)

    @documented_like(of_two)
    def of_one(x: int) -> None:
        """Does less."""

    found = sections(of_one.__doc__ or "")
    assert found["Parameters"] == "x, y : int\n    Numbers.\n\n" and "Never." in found["Raises"]
    assert found[""] == "Does less.\n\n" and found["Examples"] == ">>> of_two(1, 2)\n"


def test_mypy_finds_a_wrong_word(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    file = tmp_path / "user.py"
    file.write_text(
        'import headlab as hl\nhl.run("s.toml", backend="gpu")\nhl.run("s.toml", backend="cpu")\n'
        'hl.theory("s.toml", source="first")\n'
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--no-incremental", "--ignore-missing-imports", str(file)],
        capture_output=True, text=True,
    )  # fmt: skip
    wrong = [line for line in done.stdout.splitlines() if " error: " in line]
    assert [line.split(":")[1] for line in wrong] == ["2", "4"], done.stdout + done.stderr
    assert "Literal" in wrong[0]

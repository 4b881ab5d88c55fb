# SPDX-License-Identifier: Apache-2.0
"""Arguments of calls, checked where a message can name them."""

from __future__ import annotations

import operator
import os
from typing import Any, Literal, TypeVar

from ._errors import ScenarioError, translated

Backend = Literal["auto", "reference", "cpu", "cuda"]
Simd = Literal["avx512", "avx2", "portable"]

Word = TypeVar("Word", bound=str)


def _shown(value: Any) -> str:
    """A value in a message of one line, by its type where it is long."""
    words = "" if hasattr(value, "shape") else repr(value)
    short = 0 < len(words) <= 60 and words.isprintable()
    return f"is {words}" if short else f"is of type {type(value).__name__}"


def index(name: str, value: Any) -> int:
    """A whole number; raises TypeError for a float, with whole value too."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name}: {_shown(value)}, needs a whole number") from None


def only_condition(count: int) -> int:
    """The condition of a scenario of one; raises ScenarioError where it has several."""
    if count > 1:
        raise ScenarioError(f"condition: the scenario has {count} conditions - write condition=C, from 0 to {count - 1}")
    return 0


def share(name: str, value: Any) -> float:
    """A number between 0 and 1; raises ScenarioError for another, and for a text."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
        raise ScenarioError(f"{name}: {_shown(value)} (allowed: a share between 0 and 1, as 0.01)")
    return value


def seed(value: Any, most: int = 2**53 - 1) -> int:
    """A whole number from 0 to `most`."""
    number = index("seed", value)
    if not 0 <= number <= most:
        raise ScenarioError(f'seed: "{number}" does not fit (allowed: a whole number from 0 to {most})')
    return number


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"{name}: {_shown(value)}, needs True or False")
    return value


def text(name: str, value: Word) -> Word:
    if not isinstance(value, str):
        raise TypeError(f"{name}: {_shown(value)}, needs a text")
    return value


def path(name: str, value: Any) -> str:
    """The text of a path."""
    if not isinstance(value, str | os.PathLike):
        raise TypeError(f"{name}: {_shown(value)}, needs a path")
    found = os.fspath(value)
    if not isinstance(found, str):
        raise TypeError(f"{name}: {_shown(found)}, needs a path that is text")
    if not found:
        raise ScenarioError(f"{name}: is empty, needs a path")
    if "\0" in found:
        raise ScenarioError(f"{name}: {found!r} has a zero byte, which no path has")
    return found


def new_file(name: str, value: Any) -> str:
    """The text of a path where a file can be made."""
    found = path(name, value)
    if os.path.isdir(found):
        raise ScenarioError(f"{name}: {found}: is a folder, not a file - choose a place you may write to")
    folder = os.path.dirname(found)
    if folder and not os.path.isdir(folder):
        raise ScenarioError(f"{name}: {found}: there is no folder {folder} - choose a place you may write to")
    return found


def duration(name: str, value: float | str | None) -> str | None:
    """Seconds, or a text as "30m"."""
    if value is None or isinstance(value, str):
        return value
    try:
        return repr(float(value))
    except (TypeError, ValueError):
        raise TypeError(f'{name}: is of type {type(value).__name__}, needs seconds or a text as "30m"') from None


def whole(value: Any) -> str | None:
    """A whole number as the engine checks it."""
    return None if value is None else str(value)


def assign(target: Any, **given: Any) -> None:
    """Gives options of a command of the engine, which checks their types and values."""
    for name, value in given.items():
        try:
            with translated():
                target.set(name, value)
        except TypeError as needed:
            raise TypeError(f"{name}: {_shown(value)}, needs {needed}") from None

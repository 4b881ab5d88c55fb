# SPDX-License-Identifier: Apache-2.0
"""Exceptions and warnings of headlab, and how those of the engine become them."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _engine


class HeadlabError(Exception):
    """What headlab raises, except for MemoryError and KeyboardInterrupt."""


class ScenarioError(HeadlabError, ValueError):
    """Rejected before anything was computed: a scenario, an argument or a file.

    ``str(error)`` is the line that the program prints. ``error.key`` is the dotted path of the key,
    as ``"heads.kernel.bandwidth"``, or None where the line names none.
    """

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.key = _key_of(message)


class MissingFileError(ScenarioError, FileNotFoundError):
    """A file or folder that is not there: a ScenarioError and a FileNotFoundError."""


class RunError(HeadlabError, RuntimeError):
    """Work had begun and could not be finished: disk, memory, device.

    ``error.result`` is the Result of a run whose files could not be written, otherwise None.
    """

    def __init__(self, message: str, result: Any = None) -> None:
        super().__init__(message)
        self.result = result


class StoppedError(HeadlabError, RuntimeError):
    """Stopped by its time limit before there was anything to keep."""


class HeadlabWarning(UserWarning):
    """What is to be known of a result: interrupted, orthonormalised, kept files."""


def counted(count: int, one: str, many: str = "") -> str:
    """``"1 row"``, ``"3 rows"``, with commas between thousands from 10^6 on."""
    number = f"{count:,}" if count >= 1_000_000 else str(count)
    return f"{number} {one if count == 1 else many or one + 's'}"


def warn(message: str) -> None:
    """Warns at the line of the user's that called the package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] in _INSIDE:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, HeadlabWarning, stacklevel=level)


#: Where frames of a call lie before those of its caller.
_INSIDE = (__name__.partition(".")[0], "contextlib")

#: Names that arrays of the caller have where a scenario names a file, with the keys they stand at.
ARRAYS_BY_FILE: dict[str, str] = {}


def rejected(message: str) -> ScenarioError:
    """The exception for a line of the engine."""
    missing = (os.strerror(errno.ENOENT), "is not there", "there is no such file or folder")
    line = message.rstrip().rpartition(": ")[2].split(" - ")[0].rstrip(")")
    return (MissingFileError if line.endswith(missing) else ScenarioError)(message)


def _key_of(message: str) -> str | None:
    start = r"(?:(?:.*?:\d+:\d+|set [^:]*): )?"
    found = re.match(start + r"([A-Za-z_][\w.\[\]\"-]*): ", message)
    return found[1] if found else None


def _words(message: str) -> str:
    """The engine speaks of options of the command line; here they are arguments."""

    def argument(option: re.Match[str]) -> str:
        if option[1] in ("preset", "json"):  # of another program, or of the program alone
            return option[0]
        if option[1] in ("resume", "overwrite", "map", "growth") and not message.startswith(option[0]):
            return f"{option[1]}=True"
        name = {"bandwidth-rule": "rule", "data": "scenario"}.get(option[1], option[1]).replace("-", "_")
        return f"{name}=[{option[2].replace(',', ', ')}]" if option[2] else name

    # A command that the package has no function for stays as it is.
    message, command, rest = message.partition("headlab merge ")
    for name in set(re.findall(r"[\w.]+-[0-9a-f]{12}\.npy", message)) & ARRAYS_BY_FILE.keys():
        message = re.sub(r"(?:\./)?" + re.escape(name), ARRAYS_BY_FILE[name], message)
    message = message.replace(
        "configure with cmake --preset cuda (needs the CUDA toolkit) or use --backend cpu",
        'docs/gpu.md has how to build one - or use backend="cpu"',
    )
    message = message.replace("--out DIR", "out=FOLDER").replace("--nodes none", "nodes=False")
    message = message.replace("headlab theory --source first_order", 'hl.theory with source="first_order"')
    message = re.sub(r"(?: ?--set '[^']*')+", lambda sets: f" set={re.findall(_SET, sets[0])}", message)
    return re.sub(r"--([a-z][a-z-]*)(?: (\d+(?:,\d+)+))?", argument, message) + command + rest


_SET = r"--set '([^']*)'"


@contextmanager
def translated() -> Iterator[None]:
    """Turns exceptions of the engine into those above."""
    try:
        yield
    except _engine.InvalidInput as error:
        raise rejected(_words(str(error))) from None
    except _engine.RunFailed as error:
        raise RunError(_words(str(error))) from None
    except _engine.Unfinished as error:
        raise StoppedError(_words(str(error))) from None
    except _engine.Stopped as error:
        raise StoppedError(str(error)) from None
    except _engine.NetcdfError as error:
        raise rejected(str(error)) from None
    finally:
        for line in _engine.take_file_notes():
            warn(_words(line))


def _set_foreign_reader() -> None:
    """NetCDF files that headlab did not write are opened by another interpreter first."""
    serve = (
        "import importlib.util as u; "
        f"s = u.spec_from_file_location({_engine.__name__!r}, {_engine.__file__!r}); "
        "m = u.module_from_spec(s); s.loader.exec_module(m); m.serve_foreign_files()"
    )
    _engine.set_foreign_reader([sys.executable, "-I", "-S", "-c", serve] if sys.executable else [])


_set_foreign_reader()

# SPDX-License-Identifier: Apache-2.0
"""Scenarios: files, TOML texts, dicts with arrays, and the object that all of them become."""

from __future__ import annotations

import copy
import errno
import hashlib
import os
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from . import _engine
from ._arguments import new_file
from ._arguments import path as path_text
from ._arguments import text as text_of
from ._arrays import array_of_lists, as_rows, host_array, is_array
from ._errors import ARRAYS_BY_FILE, MissingFileError, ScenarioError, translated, warn
from ._jobs import wait
from ._labelled import Labelled, suggestion

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Heads from a float32 library are orthonormal to about 1e-7. Up to this they are taken for
#: orthonormal, and made so by QR; beyond it the reader rejects them.
ORTHONORMAL = 1e-5
_EXACT = 1e-10  # what the reader takes for rounding

_DEPTH = 32
_ARRAYS = ("heads.subspaces", "data.design")  # keys of tables that may be arrays


def _named(key: str, array: NDArray[Any]) -> str:
    """A name that says what is in an array, for the file that it is saved as."""
    digest = hashlib.sha256(repr((array.shape, array.dtype.str)).encode())
    digest.update(array.tobytes())
    name = f"{key}-{digest.hexdigest()[:12]}.npy"
    ARRAYS_BY_FILE[name] = key
    return name


def _with_column(tree: Mapping[str, Any]) -> Mapping[str, Any]:
    """A scenario whose regression is not a function: its values at the rows become a column of them."""
    import numpy as np

    data = tree.get("data")
    regression = data.get("regression") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not callable(regression):
        return tree
    design = data.get("design")
    if isinstance(design, Mapping) and set(design) == {"law", "path"}:
        design = design["path"]  # what an array stands for
    if isinstance(design, list | tuple):
        design = array_of_lists(design, "data.design")
    if not is_array(design):
        raise ScenarioError("data.regression: is a function, which needs data.design to be an array of rows")
    rows = as_rows(design, "data.design")
    if rows.ndim != 2 or not rows.size:
        raise ScenarioError(f"data.design: has shape {list(rows.shape)}, needs rows [N, d]")

    def evaluated(at: NDArray[Any], where: str) -> NDArray[Any]:
        values = as_rows(regression(at.copy()), "data.regression")
        if values.shape != (len(at),):
            raise ScenarioError(
                f"data.regression: gives numbers of shape {list(values.shape)}, needs one a row, "
                f"[{len(at)}]"
            )
        if not np.isfinite(values).all():
            row = int(np.flatnonzero(~np.isfinite(values))[0])
            raise ScenarioError(f"data.regression: is {values[row]} at row {row} of {where}")
        return values

    queries = tree.get("queries")
    if isinstance(queries, Mapping) and queries.get("law") == "points" and "truth" not in queries:
        points = queries.get("points")
        if isinstance(points, list | tuple):
            points = array_of_lists(points, "queries.points")
        if is_array(points):
            points = as_rows(points, "queries.points")
            if points.ndim == 2 and points.shape[1] == rows.shape[1]:  # others are refused later
                at = evaluated(points.astype(np.float64), "queries.points")
                queries = {**queries, "truth": at.astype(np.float64).tolist()}
    table = np.column_stack([rows.astype(np.float64), evaluated(rows, "data.design")])
    return {
        **tree,
        **({} if queries is None else {"queries": queries}),
        "data": {
            **data,
            "design": {"law": "file", "path": table},
            "regression": {"law": "file", "column": rows.shape[1]},
        },
    }


class _Plain:
    """Takes the arrays out of a tree: large ones become files in memory, others stay arrays."""

    def __init__(self) -> None:
        self.arrays: dict[str, NDArray[Any]] = {}
        self.orthonormalised: dict[str, float] = {}  # how far they were off
        self.replaced: set[str] = set()  # tables that are arrays

    def keep(self, value: Any, key: str) -> str:
        array = as_rows(value, key)
        name = _named(key, array)
        self.arrays[name] = array
        return name

    def heads(self, value: Any, key: str) -> dict[str, Any]:
        table: dict[str, Any] = {"law": "file", "path": self.keep(value, key)}
        off = self.off_orthonormal(self.arrays[table["path"]])
        if _EXACT < off <= ORTHONORMAL:
            table["orthonormalise"] = True
            self.orthonormalised[key] = max(off, self.orthonormalised.get(key, 0.0))
        return table

    @staticmethod
    def off_orthonormal(array: NDArray[Any]) -> float:
        """How far heads [H, d, k] are off orthonormal; 0 for arrays that are none."""
        import numpy as np

        if array.ndim != 3 or array.size == 0 or not np.isfinite(array).all():
            return 0.0
        w = array.astype(np.float64)
        return float(np.abs(w.transpose(0, 2, 1) @ w - np.eye(array.shape[2])).max())

    def document(self, tree: Mapping[str, Any]) -> dict[str, Any]:
        """A scenario without its arrays. An empty sweep, which varies nothing, is left out."""
        plain: dict[str, Any] = self.walk(_with_column(tree), "")
        if isinstance(plain.get("sweep"), dict) and not plain["sweep"]:
            del plain["sweep"]
        return plain

    def walk(self, value: Any, key: str, depth: int = 0, swept: bool = False) -> Any:
        if depth > _DEPTH:
            raise ScenarioError(f"{key or 'scenario'}: is nested deeper than {_DEPTH} levels")
        if key in _ARRAYS and not swept and isinstance(value, list | tuple):
            value = array_of_lists(value, key)
        if is_array(value):
            shape = getattr(value, "shape", ())
            if not swept and key in _ARRAYS:
                self.replaced.add(key)
            if key == "heads.subspaces" and not (swept and len(shape) == 4):
                return self.heads(value, key)
            if key == "data.design" and not (swept and len(shape) == 3):
                return {"law": "file", "path": self.keep(value, key)}
            if swept and key in _ARRAYS:
                return [self.walk(one, key, depth + 1) for one in value]
            array = host_array(value, key)
            return array.item() if array.ndim == 0 else array
        if callable(value):
            raise ScenarioError(
                f"{key}: is a function, which data.regression of a scenario alone may be - it is "
                "evaluated once, at the rows of data.design"
            )
        if isinstance(value, Mapping):
            table: dict[str, Any] = {}
            law = value.get("law")
            of_file = isinstance(law, str) and law == "file"
            for name, member in value.items():
                if not isinstance(name, str):
                    kind = type(name).__name__
                    raise ScenarioError(f"{key or 'scenario'}: has a key that is not text but {kind}")
                path = f"{key}.{name}" if key else name
                if of_file and name == "path" and is_array(member):
                    if key == "heads.subspaces":
                        table.update({**self.heads(member, key), **table})
                    else:
                        table[name] = self.keep(member, path)
                elif key == "sweep" or (swept and depth < 4 and isinstance(member, Mapping)):
                    inner = name if key == "sweep" else path
                    table[name] = self.walk(member, inner, depth + 1, swept=True)
                else:
                    table[name] = self.walk(member, path, depth + 1)
            return table
        if isinstance(value, list | tuple):
            inside = key if swept else None
            return [
                self.walk(one, inside or f"{key}[{i}]", depth + 1) for i, one in enumerate(value)
            ]
        if isinstance(value, os.PathLike):
            return os.fspath(value)
        return value

    def require_not_swept(self, sweep: Any, above: str = "") -> None:
        """A sweep may not vary a part of a table that is an array."""
        if above in self.replaced:
            raise ScenarioError(
                f"{above}: is an array, but the sweep varies a part of what it replaces - set sweep "
                "to {}, or sweep over arrays"
            )
        if isinstance(sweep, Mapping):
            for name, inner in sweep.items():
                key = f"{above}.{name}" if above else str(name)
                if isinstance(inner, Mapping):
                    self.require_not_swept(inner, key)
                elif table := next((t for t in self.replaced if key.startswith(t + ".")), None):
                    self.require_not_swept(None, table)

    def say(self) -> None:
        """Says once a call that heads were orthonormalised."""
        if self.orthonormalised:
            what = ", ".join(sorted(self.orthonormalised))
            off = max(self.orthonormalised.values())
            warn(f"{what}: orthonormal to {off:.1g} only, made orthonormal by QR")


class Scenario:
    """A scenario as nested dicts, which may hold arrays.

    ``Scenario(scenario={"name": "mine"}, data={...}, heads={...}, queries={...}, run={...})`` takes
    the sections by name; ``hl.scenario(x)`` reads files, texts and dicts. Keys are dotted::

        s["heads.kernel.bandwidth"] = 0.5
        s["heads.subspaces"] = array        # [H, d, k], orthonormal columns
        s["data.design"] = rows             # [N, d]
        s["data.regression"] = function     # of rows [N, d], at these rows
        print(s)                            # TOML

    What a scenario may contain: docs/scenario.md, ``headlab list laws``.
    """

    def __init__(self, *, directory: str | os.PathLike[str] = ".", **sections: Any) -> None:
        self.tree: dict[str, Any] = copy.copy(sections)
        self.directory = path_text("directory", directory)

    def __getitem__(self, key: str) -> Any:
        at: Any = self.tree
        for part in text_of("key", key).split("."):
            if not isinstance(at, Mapping) or part not in at:
                known = at if isinstance(at, Mapping) else ()
                raise KeyError(f"{key}: is not set{suggestion(part, known) if known else ''}")
            at = at[part]
        return at

    def __setitem__(self, key: str, value: Any) -> None:
        at = self.tree
        *way, last = text_of("key", key).split(".")
        if not all([*way, last]):
            raise ScenarioError(f"key: {key!r} is not a key - keys look like heads.kernel.bandwidth")
        for part in way:
            inner = at.get(part, {})
            if (above := key.rpartition(".")[0]) in _ARRAYS and part == way[-1]:
                if isinstance(inner, list | tuple):
                    inner = array_of_lists(inner, above)
                if is_array(inner):
                    inner = {"law": "file", "path": inner}  # what an array stands for
            if not isinstance(inner, Mapping):
                raise ScenarioError(f"{key}: {part} is not a table")
            at[part] = dict(inner)  # not that of another scenario
            at = at[part]
        at[last] = value

    def __delitem__(self, key: str) -> None:
        self[key]
        above, _, last = key.rpartition(".")
        kept = dict(self[above] if above else self.tree)  # not that of another scenario
        del kept[last]
        if above:
            self[above] = kept
        else:
            self.tree = kept

    def __contains__(self, key: object) -> bool:
        try:
            self[key]  # type: ignore[index]
        except (KeyError, TypeError):
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        """The names of the sections."""
        return iter(self.tree)

    def __len__(self) -> int:
        return len(self.tree)

    def _ipython_key_completions_(self) -> list[str]:
        return list(_dotted(self.tree))

    def __eq__(self, other: object) -> bool:
        """The same keys with the same values; arrays by their numbers, files by their place."""
        if not isinstance(other, Scenario):
            return NotImplemented
        return self._placed() == other._placed()

    __hash__ = None  # type: ignore[assignment]

    def _placed(self) -> dict[str, Any]:
        """The scenario as it is read, with the full paths of its files."""
        plain = _Plain()
        with translated():
            read = tomllib.loads(_engine.toml_of(plain.document(self.tree)))

        def place(value: Any, name: str = "") -> Any:
            if isinstance(value, dict):
                return {inner: place(member, inner) for inner, member in value.items()}
            if isinstance(value, list):
                return [place(member, name) for member in value]
            if name == "path" and isinstance(value, str) and value not in plain.arrays:
                return os.path.abspath(os.path.join(self.directory, value))
            return value

        return {name: place(section) for name, section in read.items()}

    def copy(self) -> Scenario:
        """The same scenario, to be changed; arrays are shared.

        :returns Scenario: Changes to it leave this one as it is.
        """
        return Scenario(directory=self.directory, **copy.deepcopy(self._shared()))

    def _shared(self) -> dict[str, Any]:
        def share(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {name: share(member) for name, member in value.items()}
            return _Shared(value) if is_array(value) else value

        return {name: share(member) for name, member in self.tree.items()}

    @property
    def toml(self) -> str:
        """The scenario as TOML; large arrays are the files that save() writes."""
        plain = _Plain()
        with translated():
            return _engine.toml_of(plain.document(self.tree))

    def __str__(self) -> str:
        return self.toml

    def __repr__(self) -> str:
        return self.toml

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes TOML that the program runs with the same bits, and its arrays beside it.

        :param path (path): A file that ends in .toml; arrays [H, d, k] and [N, d] go beside it as NPY.
        :raises ScenarioError: A value that TOML cannot hold, a folder that is not there.
        :raises OSError: The file cannot be written.
        """
        path = new_file("path", path)
        plain = _Plain()
        with translated():
            text = _engine.toml_of(plain.document(self.tree))
        save_arrays(Path(path).parent, plain.arrays)
        Path(path).write_text(text, encoding="utf-8")


def _dotted(tree: Mapping[str, Any], above: str = "") -> Iterator[str]:
    """All keys of a tree, tables among them."""
    for name, member in tree.items():
        yield above + name
        if isinstance(member, Mapping):
            yield from _dotted(member, f"{above}{name}.")


class _Shared:
    """Keeps deepcopy from copying an array."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return self.value


def save_arrays(folder: Path, arrays: Mapping[str, NDArray[Any]]) -> None:
    import numpy as np

    for name, array in arrays.items():
        np.save(folder / name, array)


ScenarioLike: TypeAlias = str | os.PathLike[str] | Mapping[str, Any] | Scenario
Sets: TypeAlias = Mapping[str, Any] | Iterable[str] | None


def scenario(given: ScenarioLike) -> Scenario:
    """A scenario to be changed, from a path, a TOML text (it has line breaks), a dict or another.

    Relative paths in a file are relative to the file, those in texts and dicts to the working
    folder.

    :param given (path, TOML text, dict or Scenario): What it is made of.
    :returns Scenario: A copy, to be changed.
    :raises ScenarioError: A text that is not TOML.
    :raises MissingFileError: There is no such file: a FileNotFoundError too.
    """
    if isinstance(given, Scenario):
        return given.copy()
    if isinstance(given, Mapping) and not isinstance(given, Labelled):
        for name in given:
            if not isinstance(name, str):
                raise ScenarioError("scenario: has a key that is not text")
        made = Scenario()
        made.tree = dict(given)
        return made
    if not isinstance(given, str | os.PathLike):
        raise _no_scenario(given)
    text, directory = os.fspath(given), "."
    source = "TOML text"
    if "\n" not in text:
        text = path_text("scenario", given)
        source, directory = text, str(Path(text).parent)
        try:
            text = Path(text).read_text(encoding="utf-8")
        except FileNotFoundError:
            raise _missing(text) from None
        except IsADirectoryError:
            raise ScenarioError(f"{source}: is a directory, needs a file") from None
        except OSError as error:
            raise ScenarioError(f"{source}: cannot be opened: {error.strerror}") from None
        except UnicodeError as error:
            raise ScenarioError(f"{source}: cannot be read ({error})") from None
    try:
        tree = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        # The engine says it in the words of the program.
        with translated():
            wait(_engine.read(Source(given).engine))
        raise ScenarioError(f"{source}: is not TOML ({error})") from None
    made = Scenario(directory=directory)
    made.tree = tree
    return made


def _no_scenario(given: Any) -> ScenarioError:
    advice = " - the scenario of a result is its attribute `scenario`" if isinstance(given, Labelled) else ""
    return ScenarioError(f"scenario: is of type {type(given).__name__} (allowed: path, TOML text, dict){advice}")


def _missing(path: str) -> MissingFileError:
    """The error of a scenario that is not there, with one beside it of a name near to it."""
    from difflib import get_close_matches

    wanted = Path(path)
    beside = {one.stem.lower(): one for one in sorted(wanted.parent.glob("*.toml"))}
    near = get_close_matches(wanted.stem.lower(), beside, n=1)
    advice = f" - did you mean {beside[near[0]]}?" if near else ""
    return MissingFileError(f"{path}: cannot be opened: {os.strerror(errno.ENOENT)}{advice}")


def sweep(
    given: ScenarioLike, keys: Mapping[str, Any] | None = None, *, zip: bool = False
) -> Scenario:
    """A copy of a scenario with a section ``[sweep]``: one condition for each value of each key.

    ``hl.sweep(s, {"heads.kernel.bandwidth": [0.2, 0.4]})``; keys are crossed, or vary together with
    ``zip=True``. Values may be arrays: of ``"heads.subspaces"`` a list of [H, d, k].

    :param given (path, TOML text, dict or Scenario): What is swept.
    :param keys (dict, optional): Values by key: lists, ranges, arrays, or one value; none ends a sweep.
    :param zip (bool): Keys vary together.
    :returns Scenario: A copy with a section ``[sweep]``.
    :raises ScenarioError: What `scenario` rejects; the values are checked when it runs.
    """
    made = scenario(given)
    if not isinstance(keys, Mapping | None):
        raise ScenarioError(f"keys: is of type {type(keys).__name__}, needs a dict of values by key")
    swept = {key: _values(key, given) for key, given in (keys or {}).items()}
    made.tree["sweep"] = {**swept, **({"zip": True} if zip else {})}
    return made


#: Axes of arrays that are one value.
_AXES = {"heads.subspaces": 3, "data.design": 2}


def _values(key: str, given: Any) -> Any:
    """The values of a swept key: a list or an array of them as it is, one value as the only one."""
    if isinstance(given, Mapping):
        return {name: _values(f"{key}.{name}", member) for name, member in given.items()}
    if is_array(given):
        return [given] if len(given.shape) == _AXES.get(key, 0) else given
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        return [given]
    return list(given)


class Source:
    """What the engine reads, with the arrays that go with it."""

    def __init__(self, given: ScenarioLike, sets: Sets = None, seed: int | None = None) -> None:
        plain = _Plain()
        arguments = []
        if isinstance(sets, Mapping):
            for key, value in sets.items():
                if not isinstance(key, str):
                    raise ScenarioError("set: has a key that is not text")
                with translated():
                    swept = key == "sweep" or key.startswith("sweep.")
                    walked = plain.walk(value, "sweep" if key == "sweep" else key, 0, swept)
                    if walked is None:
                        raise ScenarioError(f"{key}: is None - leave it out")
                    arguments.append(_engine.set_of(key, walked))
        elif sets is not None:
            if isinstance(sets, str) or not isinstance(sets, Iterable):
                kind = "one text" if isinstance(sets, str) else f"of type {type(sets).__name__}"
                raise ScenarioError(f'set: is {kind} - write a dict, or ["KEY=VALUE"]')
            arguments = [str(one) for one in sets]
        if plain.arrays and not isinstance(given, Mapping | Scenario):
            given = scenario(given)
        if isinstance(given, Labelled):
            raise _no_scenario(given)
        if isinstance(given, Mapping | Scenario):
            made = given if isinstance(given, Scenario) else scenario(given)
            tree = plain.document(made.tree)
            if not (isinstance(sets, Mapping) and "sweep" in sets):
                plain.require_not_swept(made.tree.get("sweep"))
            self._make(_engine.source_of_document, tree, plain.arrays, made.directory)
        elif isinstance(given, str | os.PathLike):
            text = os.fspath(given)
            if "\n" in text:
                self._make(_engine.source_of_text, text, ".")
            else:
                path = path_text("scenario", given)
                if not os.path.exists(path):
                    raise _missing(path)
                self._make(_engine.source_of_file, path)
        else:
            raise _no_scenario(given)
        self.set(*arguments, *([] if seed is None else [f"run.seed={seed}"]))
        self.arrays = plain.arrays
        plain.say()

    def _make(self, how: Callable[..., _engine.Source], *what: Any) -> None:
        self._how, self._what = how.__name__, what
        with translated():
            self.engine = how(*what)

    def set(self, *arguments: str) -> None:
        """Adds what --set would."""
        self.engine.sets = [*self.engine.sets, *arguments]

    def __getstate__(self) -> tuple[Any, ...]:
        return self._how, self._what, self.arrays, list(self.engine.sets), os.getcwd()

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        how, what, self.arrays, sets, folder = state
        # The last is a path, which is relative to the folder of whoever gave it.
        self._make(getattr(_engine, how), *what[:-1], os.path.join(folder, what[-1]))
        self.set(*sets)

# SPDX-License-Identifier: Apache-2.0
"""Figures under the names of results.nc, as NumPy arrays and as a Dataset of xarray."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import pandas
    import xarray
    from numpy.typing import NDArray

#: (dimensions, values, attributes)
Variable = tuple[tuple[str, ...], "NDArray[Any]", dict[str, Any]]
_TIMES = {"seconds", "weights_per_second", "learned_seconds", "controls_pilot_seconds"}


def suggestion(name: object, known: Iterable[str]) -> str:
    """A name like it, or else all that there are."""
    from difflib import get_close_matches

    known = list(known)
    near = get_close_matches(name, known, 1) if isinstance(name, str) else []
    return f' - did you mean "{near[0]}"?' if near else f" (there are {', '.join(known)})"


def _variables(group: Mapping[str, Any]) -> dict[str, Variable]:
    import numpy as np

    found = {}
    for name, (dimensions, shape, values, attributes) in group["variables"].items():
        if isinstance(values, list):
            values = np.array(values, dtype=object if not values else str).reshape(shape)
        found[name] = (dimensions, values, attributes)
    return found


def _with_layouts(group: Mapping[str, Any]) -> dict[str, Variable]:
    """All variables; those of layout_0, layout_1, ... padded with NaN to one shape."""
    import numpy as np

    found = _variables(group)
    layouts = [_variables(g) for n, g in group["groups"].items() if n.startswith("layout_")]
    conditions = max((v[1].shape[0] for v in found.values() if v[0] == ("condition",)), default=0)
    lengths: dict[str, int] = {}
    for layout in layouts:
        for dimensions, values, _ in layout.values():
            for axis, length in zip(dimensions, values.shape, strict=True):
                lengths[axis] = max(lengths.get(axis, 0), length)
    lengths["condition"] = conditions
    for layout in layouts:
        rows = layout.pop("condition")[1]
        for name, (dimensions, values, attributes) in layout.items():
            if not dimensions or dimensions[0] != "condition" or values.dtype.kind != "f":
                continue
            if name not in found:
                shape = [lengths[axis] for axis in dimensions]
                found[name] = (dimensions, np.full(shape, np.nan), attributes)
            for row, part in zip(rows, values, strict=True):
                place: Any = (int(row), *(slice(0, n) for n in part.shape))
                found[name][1][place] = part
    return found


class Labelled(Mapping[str, "NDArray[Any]"]):
    """Figures by name: ``r["mse"]`` [condition], ``r["mse_mcse"]`` its standard error, ...

    Arrays are read-only; ``r["mse"].copy()`` may be changed. ``a == b`` where all figures have the
    same values; ``hl.diff`` says what differs. ``dataset`` is the same as an ``xarray.Dataset`` over
    (condition, query, head, head_2), with swept keys as an index of the conditions, so that
    ``dataset.sel(bandwidth=0.4)`` and ``dataset.unstack("condition")`` work, and where it comes
    from as attributes.
    """

    def __init__(self, group: Mapping[str, Any] | None = None) -> None:
        self._content = group or {}
        self._variables: dict[str, Variable] | None = None
        self._attributes: dict[str, Any] = {}

    def _group(self) -> Mapping[str, Any]:
        return self._content

    def _named(self) -> dict[str, Variable]:
        if self._variables is None:
            group = self._group()
            self._attributes = group["attributes"]
            found = _with_layouts(group)
            for _, values, _ in found.values():
                values.flags.writeable = False  # results stay what was computed
            # Names with dots are those of earlier versions.
            self._variables = {n: v for n, v in found.items() if "." not in n}
        return self._variables

    def __getitem__(self, name: str) -> NDArray[Any]:
        found = self._named()
        if name not in found:
            raise KeyError(f"{name}: no such figure{suggestion(name, found)}")
        return found[name][1]

    def __iter__(self) -> Iterator[str]:
        return iter(self._named())

    def __len__(self) -> int:
        return len(self._named())

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __eq__(self, other: object) -> bool:
        import numpy as np

        if not isinstance(other, Labelled):
            return NotImplemented
        if self is other:
            return True
        names = set(self) - _TIMES
        return names == set(other) - _TIMES and all(
            np.array_equal(self[n], other[n], equal_nan=self[n].dtype.kind == "f") for n in names
        )

    __hash__ = None  # type: ignore[assignment]

    def dims(self, name: str) -> tuple[str, ...]:
        """Names of the axes of a figure.

        :param name (str): Name of a figure.
        :returns tuple of str: As ("condition", "query").
        :raises KeyError: No such figure.
        """
        self[name]
        return self._named()[name][0]

    def doc(self, name: str) -> str:
        """What a figure is, in words.

        :param name (str): Name of a figure.
        :returns str: The words of docs/results.md.
        :raises KeyError: No such figure.
        """
        self[name]
        return str(self._named()[name][2].get("long_name", ""))

    @property
    def attributes(self) -> dict[str, Any]:
        """Where the figures come from: version, git, backend, simd, seed, scenario_text, ..."""
        self._named()
        return self._attributes

    @property
    def swept(self) -> dict[str, NDArray[Any]]:
        """Values of the swept keys [condition], by the names of their coordinates."""
        found = self._named()
        names = {
            name
            for _, _, attributes in found.values()
            for name in str(attributes.get("coordinates", "")).split()
        }
        return {name: values for name, (_, values, _) in found.items() if name in names}

    @property
    def dataset(self) -> xarray.Dataset:
        """The figures as an ``xarray.Dataset`` (needs xarray)."""
        return dataset_of(self._named(), set(self.swept), self.attributes)


def dataset_of(
    variables: Mapping[str, Variable], coordinates: set[str], attributes: Mapping[str, Any]
) -> xarray.Dataset:
    try:
        import xarray
    except ImportError:
        raise ImportError("needs xarray - pip install xarray") from None
    plain: dict[str, Any] = {
        name: (dimensions, values, {k: v for k, v in about.items() if k != "coordinates"})
        for name, (dimensions, values, about) in variables.items()
    }
    made = xarray.Dataset(
        {name: one for name, one in plain.items() if name not in coordinates},
        coords={name: one for name, one in plain.items() if name in coordinates},
        attrs=dict(attributes),
    )
    keys = [name for name in plain if name in coordinates]
    # An index of all keys, for sel() by each of them and unstack().
    return made.set_xindex(keys, xarray.indexes.PandasMultiIndex) if keys else made


def frame_of(given: Iterable[Mapping[str, Any]] | Mapping[str, Any]) -> pandas.DataFrame:
    """Of rows, or of columns by name."""
    try:
        import pandas
    except ImportError:
        raise ImportError("needs pandas - pip install pandas") from None
    return pandas.DataFrame(given if isinstance(given, Mapping) else list(given))


def dataset_of_group(group: Mapping[str, Any]) -> xarray.Dataset:
    """A group of a file as it is."""
    return dataset_of(_variables(group), set(), group["attributes"])

# SPDX-License-Identifier: Apache-2.0
"""The results of hl.run, hl.iter_run and hl.open."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import _engine
from ._arguments import flag, index, whole
from ._arguments import path as path_text
from ._arguments import text as text_of
from ._errors import HeadlabError, ScenarioError, translated
from ._labelled import Labelled, dataset_of_group, frame_of
from ._scenario import save_arrays
from ._tables import Document, Given, Tabular

if TYPE_CHECKING:
    import pandas
    import xarray
    from numpy.typing import NDArray

    from .plot import Plots


@dataclass(frozen=True)
class Difference:
    """A figure of each condition minus that of its reference, with the standard error of that.

    Where both have the same seed and replicates it is paired: the jackknife runs over differences
    replicate by replicate, from the nodes. NaN where a condition is its own reference.
    """

    figure: str
    values: NDArray[Any]
    mcse: NDArray[Any]
    against: NDArray[Any]
    paired: NDArray[Any]
    to: str
    swept: dict[str, NDArray[Any]]

    def __repr__(self) -> str:
        lines = [f"{self.figure}, difference to {self.to}"]
        for i, (value, error) in enumerate(zip(self.values, self.mcse, strict=True)):
            if value == value:
                at = ", ".join(f"{name} = {values[i]}" for name, values in self.swept.items())
                lines.append(f"  {at or i}: {value:.6g} ± {error:.2g}")
        return "\n".join(lines)


class Along(Document):
    """A figure along a key; ``curves`` and ``crossings`` are those of ``headlab along --json``."""

    @property
    def curves(self) -> list[dict[str, Any]]:
        """Each with its name, points, lowest and slope."""
        return list(self.summary["curves"])

    @property
    def crossings(self) -> list[dict[str, Any]]:
        """Each with the names of its curves and the points that it lies between."""
        return list(self.summary["crossings"])


class Result(Tabular, Labelled):
    """Results of a run: figures with Monte Carlo standard errors, by name.

    ``r["mse"]`` [condition] is the mean squared error averaged over queries,
    mse = bias_squared + variance_term + covariance_term; ``r["mse_mcse"]`` is its standard error.
    ``print(r)`` shows the table of the program. docs/results.md says what each figure is.
    """

    def __init__(
        self,
        outcome: _engine.RunOutcome | None = None,
        *,
        path: Path | None = None,
        files: Mapping[str, bytes] | None = None,
        notes: Iterable[str] = (),
        arrays: Mapping[str, Any] | None = None,
        interrupted: bool = False,
    ) -> None:
        super().__init__()
        self._run = outcome
        self._path = path
        self._contents = files
        self._notes = list(outcome.notes if outcome is not None else notes)
        self._arrays = dict(arrays or {})
        #: Ctrl-C ended the run.
        self.interrupted = interrupted

    def _group(self) -> Mapping[str, Any]:
        return self._tables(False)

    def _tables(self, nodes: bool) -> Mapping[str, Any]:
        if self._run is not None:
            return self._run.tables(nodes)
        with self._stored() as path, translated():
            return _engine.open_results(str(path))

    @contextmanager
    def _given(self) -> Iterator[Given]:
        if self._run is not None:
            yield self._run, None, None
            return
        with self._stored() as path:
            yield None, None, str(path)

    @contextmanager
    def _stored(self) -> Iterator[Path]:
        """results.nc of a result without a run; of one that was pickled only for now."""
        if self._path is not None:
            yield self._path
            return
        with tempfile.TemporaryDirectory(prefix="headlab-") as folder:
            for name, content in (self._contents or {}).items():
                (Path(folder) / name).write_bytes(content)
            yield Path(folder) / "results.nc"

    def _files(self) -> Mapping[str, bytes]:
        """Content of the files that save() writes, by their names."""
        if self._contents is not None:
            return self._contents
        if self._path is not None:
            folder = self._path.parent
            named = set(re.findall(r"[\w.]+-[0-9a-f]{12}\.npy", str(self.attributes.get("scenario_text"))))
            paths = [folder / name for name in ("summary.json", "scenario.toml", *sorted(named))]
            found = {path.name: path.read_bytes() for path in paths if path.is_file()}
            return {"results.nc": self._path.read_bytes(), **found}
        with tempfile.TemporaryDirectory(prefix="headlab-") as made:
            self.save(made)
            return {path.name: path.read_bytes() for path in Path(made).iterdir()}

    def __reduce__(self) -> tuple[Any, ...]:
        return _result_of_files, (dict(self._files()), self.notes, self.interrupted)

    @cached_property
    def _outcome(self) -> _engine.RunOutcome:
        """The run itself; of a file it is recomputed from the nodes."""
        if self._run is not None:
            return self._run
        with self._stored() as path, translated():
            try:
                return _engine.restore_results(str(path), str(path.parent))
            except _engine.InvalidInput:
                file = Path(self.attributes.get("scenario_file", "."))
                return _engine.restore_results(str(path), str(file.parent))

    @property
    def complete(self) -> bool:
        """False where Ctrl-C or a time limit ended the run early: `out` and `resume` continue it."""
        if self._run is not None:
            return self._run.complete
        return bool(self.attributes["complete"])

    @property
    def notes(self) -> list[str]:
        """What the program would have said: of the backend, of files that were resumed."""
        return list(self._notes)

    @property
    def seconds(self) -> float:
        """Wall time of the run."""
        return self._outcome.seconds

    @property
    def scenario(self) -> str:
        """TOML of the scenario as it ran, with what was set."""
        return self._outcome.scenario

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The content of summary.json: also looks of `until`, extremes, closed forms compared."""
        if self._run is None:
            with self._stored() as path:
                beside = path.with_name("summary.json")
                if beside.exists():
                    text = beside.read_text(encoding="utf-8")
                    with translated():
                        _engine.check_json_sum(str(beside), text)
                    return dict(json.loads(text))
        return dict(json.loads(self._outcome.summary()))

    @property
    def nodes(self) -> xarray.Dataset:
        """The moments that figures and standard errors come from (docs/results.md).

        Where conditions differ in their numbers of heads or queries, statistics, pairs and queries
        that a node lacks are NaN. Needs xarray.
        """
        group = self._tables(True)
        if "nodes" in group["groups"]:
            return dataset_of_group(group["groups"]["nodes"])
        layouts = [inner["groups"]["nodes"] for inner in group["groups"].values() if "nodes" in inner["groups"]]
        return _joined_nodes([dataset_of_group(nodes) for nodes in layouts])

    def difference(
        self, figure: str, over: str | None = None, *, against: str | None = None
    ) -> Difference:
        """A figure minus that of a reference condition, with the MCSE of the difference.

        `over` is a swept key: each condition is compared with the one that has the key's first
        value and the same values of all others. `against` is a condition, as "#0" or "KEY=VALUE".
        Conditions of one seed share their draws, so that the difference is known far better than
        either figure.

        :param against (str, optional): The reference, as "#0" or "KEY=VALUE".
        :returns Difference: values and mcse [condition], in the unit of the figure.
        :raises ScenarioError: Both or none of `over` and `against`.
        :raises KeyError: No such figure.
        """
        if (over is None) == (against is None):
            raise ScenarioError("difference: needs `over` or `against`, and not both")
        over = None if over is None else text_of("over", over)
        against = None if against is None else text_of("against", against)
        with translated():
            group = self._outcome.difference(over, against)
        found = Labelled(group)
        name = f"difference_{figure}"
        if name + "_mcse" not in found:
            known = [
                n.removeprefix("difference_").removesuffix("_mcse")
                for n in found
                if n.startswith("difference_") and n.endswith("_mcse")
            ]
            raise KeyError(f"{figure}: has no differences (there are {', '.join(known)})")
        return Difference(
            figure,
            found[name],
            found[name + "_mcse"],
            found["difference_against"],
            found["difference_paired"].astype(bool),
            str(found.attributes.get("difference_to", "")),
            self.swept,
        )

    def along(
        self, over: str, figure: str = "mse", *, min_over: str | None = None, slope: bool = True
    ) -> Along:
        """A figure along a swept key, as ``headlab along``: slope, lowest point, crossings.

        :param over (str): The swept key, by any of its names.
        :param figure (str): Name of a figure, or of a measure of the scenario.
        :param min_over (str, optional): A second key, as a bandwidth: each point takes the least over it.
        :param slope (bool): Adds the slope of log figure on log key, with its standard error.
        :returns Along: `curves` and `crossings`; prints as the command does.
        :raises ScenarioError: Keys and figures that the result does not have; a result without nodes.
        """
        with self._stored_files() as path, translated():
            text, table = _engine.along(
                str(path), over=text_of("over", over), figure=text_of("figure", figure),
                min_over=None if min_over is None else text_of("min_over", min_over),
                slope=flag("slope", slope),
            )  # fmt: skip
        return Along(text, table)

    @contextmanager
    def _stored_files(self) -> Iterator[Path]:
        """results.nc, of a run written only for now."""
        if self._run is None:
            with self._stored() as path:
                yield path
            return
        with tempfile.TemporaryDirectory(prefix="headlab-") as folder:
            self.save(Path(folder) / "results")
            yield Path(folder) / "results" / "results.nc"

    @property
    def replicates(self) -> pandas.DataFrame:
        """A row for each replicate and query: estimate, truth and squared error (needs pandas)."""
        return self.first_replicates(None)

    def first_replicates(self, count: int | None, threads: int | None = None) -> pandas.DataFrame:
        """Truth, estimate and squared error of the first replicates of each condition.

        :param count (int or None): Replicates of each condition; None: all.
        :returns pandas.DataFrame: A row a condition, replicate and query.
        :raises ScenarioError: A count below 1; a study of depth.
        """
        if count is not None and (count := index("count", count)) < 1:
            raise ScenarioError(f"count: is {count}, needs at least 1")
        with translated():
            columns = self._outcome.replicates(count, whole(threads))
        frame = frame_of(columns)
        numbers = ["condition", "replicate", "query"]
        return frame.astype({name: int for name in numbers if name in frame})

    @property
    def plot(self) -> Plots:
        """Pictures of the result: ``r.plot.components()``, ... (needs matplotlib)."""
        from .plot import Plots

        return Plots(self)

    def save(
        self, folder: str | os.PathLike[str], *, overwrite: bool = False, nodes: bool = True
    ) -> None:
        """Writes results.nc and summary.json, whole or not at all.

        A scenario with arrays is written beside them, as scenario.toml and a file for each array,
        so that the program runs it with the same bits. Earlier results stay without `overwrite`.

        :param folder (path): Made if it is not there.
        :param nodes (bool): With the moments, from which a run is continued.
        :raises ScenarioError: Files are there already.
        :raises RunError: They cannot be written.
        """
        folder, overwrite = path_text("folder", folder), flag("overwrite", overwrite)
        nodes = flag("nodes", nodes)
        target = Path(folder)
        if target.exists() and not target.is_dir():
            raise ScenarioError(f"folder: {target}: is a file, not a folder - choose a place you may write to")
        for name in ("results.nc", "summary.json"):
            if (target / name).exists() and not overwrite:
                raise ScenarioError(f"folder: {target / name} is there already - write overwrite=True")
        if self._run is None:
            files = self._files()
            target.mkdir(parents=True, exist_ok=True)
            for name, content in files.items():
                (target / name).write_bytes(content)
            return
        with translated():
            self._run.save(folder, overwrite, nodes)
        self._save_scenario(target)

    def _save_scenario(self, folder: Path) -> None:
        save_arrays(folder, self._arrays)
        if self._arrays:
            (folder / "scenario.toml").write_text(self._outcome.scenario, encoding="utf-8")

    def __repr__(self) -> str:
        try:
            outcome = self._outcome
        except (HeadlabError, ValueError, LookupError):
            return self._plain_table()
        comparison = outcome.comparison()
        return outcome.table() + ("\n" + comparison if comparison else "")

    def _plain_table(self) -> str:
        """Of a file whose scenario cannot be read again."""
        names = [n for n in ("bias_squared", "variance_term", "covariance_term", "mse") if n in self]
        lines = [str(self.attributes.get("title", "")), "  ".join(["", *self.swept, *names])]
        for i in range(len(self["replicates"]) if names else 0):
            cells = [str(values[i]) for values in self.swept.values()]
            cells += [f"{self[n][i]:.5g} ± {self[n + '_mcse'][i]:.1g}" for n in names]
            lines.append("  " + "  ".join(cells))
        return "\n".join(lines) + "\n"


def _joined_nodes(layouts: list[xarray.Dataset]) -> xarray.Dataset:
    """Nodes of several layouts, over the queries, statistics and pairs of all of them."""
    import xarray

    aligned = []
    for nodes in layouts:
        for axis in {"query", "layer"} & set(nodes.dims):
            nodes = nodes.assign_coords({axis: range(nodes.sizes[axis])})
        if "pair" in nodes.dims:
            pairs = ["pair_first", "pair_second"]
            nodes = nodes.set_coords(pairs).set_xindex(pairs, xarray.indexes.PandasMultiIndex)
        aligned.append(nodes)
    joined = xarray.concat(aligned, "node", data_vars="all", coords="minimal", join="outer")
    return joined.reset_index("pair").reset_coords() if "pair" in joined.dims else joined


def _result_of_files(files: Mapping[str, bytes], notes: list[str], interrupted: bool) -> Result:
    """A result that was pickled or copied."""
    return Result(files=files, notes=notes, interrupted=interrupted)

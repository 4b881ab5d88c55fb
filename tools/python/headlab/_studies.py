# SPDX-License-Identifier: Apache-2.0
"""hl.theory, hl.validate, hl.hdi, hl.replay, hl.diff, hl.report."""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from . import _engine
from ._allocations import Allocation
from ._arguments import Backend, duration, flag, index, only_condition
from ._arguments import path as path_text
from ._arguments import seed as seed_of
from ._arguments import text as text_of
from ._arguments import whole
from ._arrays import as_rows
from ._errors import ScenarioError, translated
from ._jobs import Progress, finish, wait, warn_unfinished
from ._labelled import Labelled, suggestion
from ._results import Result
from ._scenario import ScenarioLike, Sets, Source
from ._tables import Document, Tabular

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .heads import Heads


class Theory(Tabular, Labelled):
    """Closed forms under the names of a Result; ``_remainder`` in place of ``_mcse``.

    A remainder is how far a first-order form may be off by its next orders, or the change of an
    exact one on refinement of its quadrature. ``theory_source`` says which form a condition has.
    """

    def __init__(self, text: str, table: str, group: Mapping[str, Any]) -> None:
        super().__init__(group)
        self._text = text
        self._table = table
        #: The document of ``headlab theory --json``.
        self.summary: dict[str, Any] = json.loads(text)

    def __repr__(self) -> str:
        return self._table


def theory(
    scenario: ScenarioLike,
    set: Sets = None,
    *,
    source: Literal["auto", "exact", "first_order"] = "auto",
    threads: int | None = None,
) -> Theory:
    """Closed forms of every condition, without simulation (docs/theory.md).

    `source`: "exact" of a fixed design or at finite n, "first_order" in 1/n, "auto" exact where it
    applies. Raises ScenarioError where no form applies, with the assumption that fails.

    :param source ("auto", "exact" or "first_order"): Which form.
    :returns Theory: Figures [condition] in the units of a Result, with ``_remainder``.
    :raises ScenarioError: No form applies: the message has the assumption that fails.
    """
    given = Source(scenario, set)
    with translated():
        job = _engine.theory(given.engine, text_of("source", source), whole(threads))
    return Theory(*wait(job))


@dataclass(frozen=True)
class Verdict:
    """A verdict on one form of a claim: effect ± mcse against the margin that was allowed."""

    claim: str
    form: str
    verdict: str
    expected: str | None
    effect: float | None
    mcse: float | None
    margin: float
    zone: str | None
    statement: str
    replicates: int
    #: All that verdicts.json says of it.
    details: dict[str, Any]


class Verdicts(Document, Sequence[Verdict]):
    """Verdicts in the order of the claims; ``frame`` has them as a pandas.DataFrame."""

    def __init__(self, text: str, table: str, complete: bool) -> None:
        super().__init__(text, table, complete)
        self._all = [_verdict(row) for row in self.summary["claims"]]

    def __getitem__(self, index: Any) -> Any:
        return self._all[index]

    def __len__(self) -> int:
        return len(self._all)



def _verdict(row: dict[str, Any]) -> Verdict:
    effect = row["effect"] or {}
    found: dict[str, Any] = {**effect, **row, "effect": effect.get("value"), "details": row}
    fields: dict[str, Any] = {name: found.get(name) for name in Verdict.__dataclass_fields__}
    return Verdict(**fields)


def validate(
    *claims: str | ScenarioLike,
    level: Literal["quick", "full"] = "quick",
    seed: int | None = None,
    replicates: int | float | None = None,
    backend: Backend = "auto",
    threads: int | None = None,
    max_time: float | str | None = None,
    progress: Progress = False,
) -> Verdicts:
    """Judges claims: built-in ones by name (all without one), or the scenarios that state them.

    ``hl.validate("angles")``, ``hl.validate("conjecture.toml")``, ``hl.validate(scenario)`` for a
    dict or Scenario with ``claim.compare``. A claim is supported where every comparison is at level
    0.01, and refuted where Holm's procedure over all comparisons of the call rejects one of its own
    (docs/verdicts.md).

    :param *claims (str, path, dict or Scenario): Names of built-in claims, or scenarios that state some.
    :param level ("quick" or "full"): How many replicates.
    :returns Verdicts: One for each form of a claim; effects are relative, or in the unit of the figure.
    :raises ScenarioError: An unknown claim, or a scenario that is rejected.
    """
    level, backend = text_of("level", level), text_of("backend", backend)
    names: list[str] = []
    paths: list[str] = []
    with tempfile.TemporaryDirectory(prefix="headlab-") as folder:
        for i, claim in enumerate(claims):
            if isinstance(claim, (list, tuple)):
                raise ScenarioError('claims: are given one by one, as validate("angles", "floor")')
            if isinstance(claim, str | os.PathLike) and "\n" not in os.fspath(claim):
                path_text("claims", claim)
            if isinstance(claim, str) and "\n" not in claim:
                names.append(claim)
            elif isinstance(claim, os.PathLike):
                names.append(os.path.join(os.path.dirname(claim) or ".", os.path.basename(claim)))
            else:
                from ._scenario import scenario

                path = Path(folder) / f"scenario_{i}.toml"
                scenario(claim).save(path)
                paths.append(str(path))
        try:
            with translated():
                job = _engine.validate(
                    names + paths, None, level, whole(seed), whole(replicates), backend,
                    whole(threads), duration("max_time", max_time),
                )  # fmt: skip
            (text, table, complete), interrupted = finish(job, progress)
        except ScenarioError as error:
            # Places in a file that the user has not written.
            place = re.escape(folder) + r"/scenario_\d+\.toml(:\d+:\d+)?: "
            raise ScenarioError(re.sub(place, "", str(error))) from None
    warn_unfinished(complete, interrupted, "verdicts not reached are unresolved")
    return Verdicts(text, table, complete)


class Diversity(Document):
    """Diversity of the heads of each layer, compared with random heads of their shape."""

    def __init__(self, text: str, table: str, complete: bool) -> None:
        super().__init__(text, table, complete)
        #: A dict a layer: "layer", "heads", "dim", "indices", "condition_number", ...
        self.layers: list[dict[str, Any]] = self.summary["layers"]

    def index(self, name: str = "chordal", part: str = "value") -> NDArray[Any]:
        """An index of every layer [layer]; `part`: value, ceiling, random_mean, random_sd, z.

        :param name (str): As "chordal".
        :param part (str): "value", "random_mean", "random_sd" or "z".
        :returns array [layer]: Without unit.
        :raises KeyError: No such index or part.
        """
        import numpy as np

        for one, known in ((name, self.layers[0]["indices"]), (part, self.layers[0]["indices"]["chordal"])):
            if one not in known:
                raise KeyError(f"{one}: no such part of the indices{suggestion(one, known)}")
        return np.array([layer["indices"][name][part] for layer in self.layers], dtype=float)

    def cosines(self, layer: int = 0) -> NDArray[Any]:
        """Cosines of the principal angles between heads [H, H, k], by place of the layer.

        :param layer (int): Its place, from 0.
        :returns array [H, H, k]: Cosines of principal angles, descending.
        :raises ScenarioError: No such layer.
        """
        import numpy as np

        if not 0 <= index("layer", layer) < len(self.layers):
            raise ScenarioError(f"layer: is {layer} (allowed: 0 to {len(self.layers) - 1})")
        return np.array(self.layers[layer]["principal_cosines"], dtype=float)

    @property
    def pairs(self) -> list[dict[str, Any]]:
        """The most alike pairs of heads: "layer", "heads", "mean_squared_cosine"."""
        found = self.summary.get("alike", self.summary)
        return list(found.get("pairs", []))


def hdi(
    heads: Heads | str | os.PathLike[str] | Any,
    *,
    kv_heads: int | None = None,
    seed: int = 0,
    top: int = 5,
    threads: int | None = None,
) -> Diversity:
    """Head diversity indices of an array [H, d, k], a file of heads or ``hl.heads`` of a model.

    Each index stands beside its mean over random heads of that shape and z, the distance in their
    standard deviations (docs/hdi.md). The `top` most alike pairs are listed. Weights are
    compared, and not what heads do on text.

    :param heads (array [H, d, k], path or Heads): Subspaces, whose columns need not be orthonormal.
    :param kv_heads (int, optional): Groups of heads that share keys.
    :param seed (int): Of the random heads.
    :param top (int): Pairs to list.
    :returns Diversity: Indices between 0 and 1, for each layer.
    :raises ScenarioError: Heads that do not fit.
    """
    from . import heads as _heads

    given = _heads.as_heads(heads)
    kv_heads = None if kv_heads is None else index("kv_heads", kv_heads)
    seed, top = seed_of(seed), index("top", top)
    for name, number, least in (("top", top, 0), ("kv_heads", 1 if kv_heads is None else kv_heads, 1)):
        if number < least:
            raise ScenarioError(f'{name}: "{number}" does not fit (allowed: a whole number from {least})')
    with translated():
        job = _engine.hdi(given._engine, kv_heads or 0, seed, top, whole(threads))
    return Diversity(*wait(job))


class Compression(Document):
    """What heads of lower rank lose by every method; ``heads`` are those of one method.

    ``summary["layers"]`` has the losses of every layer and head: "scores", "weights", "outputs",
    "noise" (docs/real-heads.md).
    """

    def __init__(self, heads: Heads, text: str, table: str) -> None:
        super().__init__(text, table)
        #: The compressed heads.
        self.heads = heads


def compress(
    heads: Heads | str | os.PathLike[str],
    rank: int,
    *,
    by: Literal["kq_svd", "k_svd", "joint"] = "kq_svd",
    data: Any = None,
    centre: bool = False,
    layer: int | None = None,
    n: int = 128,
    replicates: int = 256,
    seed: int = 0,
    threads: int | None = None,
) -> Compression:
    """What low-rank approximations of heads lose, as ``headlab compress``.

    :param heads (Heads or path): With their projections: of ``hl.heads.from_safetensors`` or a NetCDF file.
    :param rank (int): Rank of the compressed heads, below k.
    :param by ("kq_svd", "k_svd" or "joint"): What ``heads`` of the result are compressed by; losses are of every
        method.
    :param data (array [rows, d], optional): Inputs of the heads; N(0, I) without it.
    :param centre (bool): Fit to the covariance of the keys.
    :param n (int): Keys that a query weighs.
    :param replicates (int): Sets of keys, each with 16 queries.
    :param seed (int): Of keys and queries.
    :returns Compression: Losses relative to the full heads, with Monte Carlo standard errors, and the compressed
        heads.
    :raises ScenarioError: Heads without projections, a rank that does not fit them, inputs of another width.
    """
    from . import heads as _heads

    given = _heads.as_heads(heads)
    rank, n, seed = index("rank", rank), index("n", n), index("seed", seed)
    replicates = index("replicates", replicates)
    if rank < 1:
        raise ScenarioError(f"rank: is {rank}, needs 1 or more")
    for key, number, least, most in (("n", n, 2, 65536), ("replicates", replicates, 8, 65536)):
        if not least <= number <= most:
            raise ScenarioError(f"{key}: is {number} (allowed: {least} to {most})")
    if seed < 0:
        raise ScenarioError(f"seed: is {seed}, needs 0 or more")
    inputs = None if data is None else as_rows(data, "data").astype(float)
    if inputs is not None and inputs.ndim != 2:
        raise ScenarioError(f"data: has shape {inputs.shape}, needs [rows, d]")
    layer = None if layer is None else index("layer", layer)
    with translated():
        job = _engine.compress(
            given._engine, rank, text_of("by", by), inputs, flag("centre", centre), layer, n,
            replicates, seed, whole(threads),
        )  # fmt: skip
    compressed, text, table = wait(job)
    return Compression(_heads.Heads(compressed), text, table)


class Replay(Labelled):
    """One replicate: training set X, Y, kernel weights, estimates (docs/datasets.md)."""

    def __init__(self, group: Mapping[str, Any], table: str) -> None:
        super().__init__(group)
        self._table = table

    def __repr__(self) -> str:
        return self._table


def replay(
    scenario: ScenarioLike,
    replicate: int,
    condition: int | None = None,
    set: Sets = None,
    *,
    seed: int | None = None,
    backend: Backend = "auto",
    threads: int | None = None,
) -> Replay:
    """One replicate of a condition again, both counted from 0, by the reference and the backend.

    :param replicate (int): Number of the replicate, from 0.
    :param condition (int, optional): Which, from 0, where the scenario has several.
    :returns Replay: Arrays "X" [n, d], "Y" [n], weights [query, head, n], ...
    :raises ScenarioError: A number beyond those of the scenario, or several conditions and none named.
    """
    replicate = index("replicate", replicate)
    condition = None if condition is None else index("condition", condition)
    backend = text_of("backend", backend)
    given = Source(scenario, set, seed)
    for name, number in (("condition", condition or 0), ("replicate", replicate)):
        if number < 0:
            raise ScenarioError(f"{name}: is {number}, and is counted from 0")
    with translated():
        if condition is None:
            condition = only_condition(wait(_engine.read(given.engine))[2])
        job = _engine.replay(given.engine, condition, replicate, backend, whole(threads))
    return Replay(*wait(job))


class Comparison(Document):
    """What two results differ in; ``same_bits``, ``differ`` (number of figures) and ``summary``."""

    @property
    def same_bits(self) -> bool:
        """True where nodes and estimates agree to the bit."""
        return bool(self.summary["same_bits"])

    @property
    def differ(self) -> int:
        """Figures that differ, by Holm's procedure."""
        return int(self.summary["counts"]["differ"])



def diff(a: Result | str | os.PathLike[str], b: Result | str | os.PathLike[str]) -> Comparison:
    """Compares two results, of runs in memory or of their folders, as ``headlab diff``.

    :param a (Result or path): One result.
    :param b (Result or path): The other.
    :returns Comparison: Figures with differences in standard errors.
    :raises ScenarioError: A folder without results.
    """
    with tempfile.TemporaryDirectory(prefix="headlab-") as folder:
        places = []
        for name, one in (("a", a), ("b", b)):
            if isinstance(one, Result):
                one.save(os.path.join(folder, name))
                one = os.path.join(folder, name)
            elif not isinstance(one, str | os.PathLike):
                raise ScenarioError(f"diff: is given {type(one).__name__}, needs results or their folders")
            places.append(path_text(name, one))
        # Results in memory have no path.
        in_memory = re.compile(re.escape(folder) + r"/([ab])(/results\.nc)?")
        try:
            with translated():
                found = _engine.diff(*places)
        except ScenarioError as error:
            raise type(error)(in_memory.sub(r"\1", str(error))) from None
        text, table = (in_memory.sub(r"\1", text) for text in found)
        return Comparison(text, table)


def report(
    path: str | os.PathLike[str],
    *sources: Result | Verdicts | Allocation | Diversity | str | os.PathLike[str],
) -> list[str]:
    """Writes one HTML file with pictures of results, verdicts and folders (docs/report.md).

    Returns a line for everything that could not be used.

    :param path (path): The file to be written.
    :param *sources (Result, Verdicts, Allocation, Diversity or path): What it shows.
    :returns list of str: A line for everything that could not be used.
    :raises ScenarioError: Nothing to show, or a file that cannot be written.
    """
    if not isinstance(path, str | os.PathLike):
        raise ScenarioError(
            f'report: is given {type(path).__name__} first, needs the file, as hl.report("report.html", r)'
        )
    if not sources:
        raise ScenarioError("report: needs results, verdicts or folders")
    folders, documents = [], []
    with tempfile.TemporaryDirectory(prefix="headlab-") as folder:
        for i, source in enumerate(sources):
            if isinstance(source, Result):
                place = os.path.join(folder, str(i))
                source.save(place)
                folders.append(place)
            elif isinstance(source, Verdicts | Allocation | Diversity):
                documents.append(source._text)
            elif isinstance(source, str | os.PathLike):
                folders.append(path_text("sources", source))
            else:
                kind = type(source).__name__
                raise ScenarioError(f"report: is given {kind}, needs results, verdicts or folders")
        with translated():
            return _engine.report(path_text("path", path), folders, documents)

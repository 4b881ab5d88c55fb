# SPDX-License-Identifier: Apache-2.0
"""hl.allocate: how many heads of what dimension, how that grows with n, and maps of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from . import _engine
from ._arguments import Backend, assign, duration, path, whole
from ._errors import RunError, ScenarioError, translated
from ._jobs import Progress, finish, warn_unfinished
from ._labelled import dataset_of_group
from ._scenario import ScenarioLike, Sets, Source
from ._tables import Document

if TYPE_CHECKING:
    import xarray


Rule = Literal["fixed", "sqrt_dim", "rate", "tuned"]


class Allocation(Document):
    """What is advised for each budget and n, with the candidates behind it; growth and maps.

    ``frame`` has one row a candidate: budget, n, rule, heads, dim, bandwidth, mse, mse_mcse, ...; of
    a map one row a cell: swept keys, rule, budget, words, ``dim@N``, exponent, ...
    """

    def __init__(
        self, text: str, table: str, complete: bool, content: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(text, table, complete)
        self._content = content
        #: One selection for each budget and n: "budget", "n", "allocations", "advice", ...
        self.studies: list[dict[str, Any]] = self.summary.get("studies") or (
            [self.summary] if "allocations" in self.summary else []
        )
        #: With `growth` the best d_k over n, one for each budget: "points", "laws", "verdict", ...
        self.growth: list[dict[str, Any]] = self.summary.get("growth", [])
        #: With three budgets the best number of heads over the budgets, one for each n.
        self.head_growth: list[dict[str, Any]] = self.summary.get("head_growth", [])
        #: With `map` one for each setting, rule and budget: "setting", "words", and as `growth`.
        self.cells: list[dict[str, Any]] = self.summary.get("cells", [])

    @property
    def advice(self) -> dict[str, Any]:
        """Of the first selection: "heads", "dim", "kind" and the "text" that says how sure it is."""
        if not self.studies:
            raise ScenarioError("advice: a map advises nothing - look at cells, or leave out map")
        return dict(self.studies[0]["advice"])

    @property
    def dataset(self) -> xarray.Dataset:
        """Of a map the content of map.nc over (cell, n), docs/allocation.md (needs xarray)."""
        if self._content is None:
            raise ScenarioError("dataset: is of a map - look at frame, or write map=True")
        return dataset_of_group(self._content)


def allocate(
    scenario: ScenarioLike,
    budget: int | Iterable[int],
    n: int | Iterable[int] | None = None,
    set: Sets = None,
    *,
    rule: Rule | Iterable[Rule] = "fixed",
    source: Literal["simulation", "exact", "theory"] = "simulation",
    dims: int | Iterable[int] = (),
    growth: bool = False,
    map: bool = False,
    out: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    replicates: int | float | None = None,
    seed: int | None = None,
    backend: Backend = "auto",
    threads: int | None = None,
    max_time: float | str | None = None,
    progress: Progress = False,
) -> Allocation:
    """How to divide `budget` = H d_k dimensions among heads, for the data of a scenario.

    All candidates are simulated on common training sets; the advice says how sure it is. `rule` for
    bandwidths: "fixed", "sqrt_dim", "rate" or "tuned"; `source` "theory" or "exact" computes errors
    by closed forms instead (docs/allocation.md).

    `growth` also fits how the best d_k grows over four n or more, and the best H over three budgets
    or more: ``a.growth``, ``a.head_growth``. `map` does so for every setting of the scenario's
    sweep, under every one of several rules: ``a.cells``, ``a.frame``, ``a.dataset``; with `out` it
    is written there as map.json and map.nc, over earlier ones with `overwrite` (docs/allocation.md).

    ::

        hl.allocate("scenarios/scaling_law_map.toml", [6, 8, 12], [50, 150, 500, 1500, 5000],
                    rule=["fixed", "rate"], replicates=1024, map=True)

    :param budget (int or list): D = H d_k, in dimensions.
    :param n (int or list, optional): Training points, instead of the scenario's.
    :param rule ("fixed", "sqrt_dim", "rate", "tuned", or several): Bandwidths of the candidates.
    :param source ("simulation", "exact" or "theory"): Where errors come from.
    :param dims (int or list of int, optional): Dimensions d_k of the candidates; all that divide the budget without
        it.
    :param growth (bool): Fit how the best d_k grows.
    :param map (bool): Every setting of the sweep.
    :param out (path, optional): Folder of map.json and map.nc.
    :returns Allocation: The candidates with errors in squared units of the response, and the advice.
    :raises ScenarioError: Before anything is simulated: the message of the reader.
    :raises RunError: A cell of a map cannot be finished; ``error.result`` has the cells before it.
    """

    def text(key: str, given: Any) -> str:
        many = list(given) if isinstance(given, Iterable) and not isinstance(given, str) else [given]
        if not many:
            raise ScenarioError(f"{key}: is empty")
        return ",".join(str(one).removesuffix(".0") for one in many)

    arguments = _engine.AllocateArguments()
    dims = list(dims) if isinstance(dims, Iterable) else [dims]
    assign(
        arguments, budget=text("budget", budget), n=None if n is None else text("n", n),
        dims=text("dims", dims) if dims else None, bandwidth_rule=text("rule", rule), source=source,
        growth=growth, map=map, out=None if out is None else path("out", out), overwrite=overwrite,
        replicates=whole(replicates), backend=backend, threads=whole(threads),
        max_time=duration("max_time", max_time),
    )  # fmt: skip
    given = Source(scenario, set, seed)
    with translated():
        job = _engine.allocate(given.engine, arguments)
    (*found, failure), interrupted = finish(job, progress)
    result = Allocation(*found)
    if failure:
        raise RunError(f"{failure} - error.result has the cells before it", result)
    warn_unfinished(result.complete, interrupted, "what was not reached is unfinished")
    return result

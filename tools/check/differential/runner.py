# SPDX-License-Identifier: Apache-2.0
"""How the relations run a scenario, with faults planted on request, and how they judge what comes back."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import Any

import headlab as hl
import numpy as np
from numpy.typing import NDArray

Tree = dict[str, Any]
Array = NDArray[Any]

#: One rounding of float32.
U32 = 2.0**-24
#: Sums of float64 numbers of one sign, or compared with the sum of their sizes: at most a few thousand additions.
EPS64 = 2.0**-52 * 4096
#: Comparisons within MCSE that one example makes at most, for the thresholds below.
COMPARISONS = 200


class Broken(AssertionError):
    """A relation that does not hold."""


class Skipped(Exception):
    """A relation that says nothing about a scenario, with the reason."""


def require(holds: bool | np.bool_, what: str) -> None:
    if not holds:
        raise Broken(what)


class Figures(Mapping[str, Array]):
    """The figures of a run, which a fault may have altered."""

    def __init__(self, result: hl.Result, change: Callable[[str, Array], Array]) -> None:
        self.result = result
        self._change = change

    def __getitem__(self, name: str) -> Array:
        values = self.result[name]
        return self._change(name, values) if values.dtype.kind == "f" else values

    def __iter__(self) -> Iterator[str]:
        return iter(self.result)

    def __len__(self) -> int:
        return len(self.result)

    @cached_property
    def nodes(self) -> Any:
        """An xarray.Dataset."""
        return self.result.nodes

    def of(self, condition: int, name: str) -> Array:
        values: Array = self[name][condition]
        return values


def _sign(name: str, values: Array, tree: Tree, /) -> Array:
    return -values if name == "covariance_term" else values


def _control_mean(name: str, values: Array, tree: Tree, /) -> Array:
    # The mean of a control with coefficient 1 is off, so that every estimate is.
    return values + 1e-4 if name == "head_bias" and tree["run"].get("controls") == "exact" else values


def _float32(name: str, values: Array, tree: Tree, /) -> Array:
    return values.astype(np.float32).astype(np.float64) if name == "variance_term" else values


def _none(name: str, values: Array, tree: Tree, /) -> Array:
    return values


#: What `--fault` does to the figures of a run. `seed` changes the call instead: all runs have one seed.
FAULTS: dict[str, Callable[[str, Array, Tree], Array]] = {
    "sign": _sign,
    "control-mean": _control_mean,
    "float32": _float32,
    "seed": _none,
}
#: The fault in force.
planted = ""


def simulate(tree: Tree, **options: Any) -> Figures:
    """The one place where relations run a scenario."""
    if planted == "seed":
        options["seed"] = 1
    options.setdefault("threads", 1)
    change = FAULTS.get(planted, _none)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hl.HeadlabWarning)
        result = hl.run(tree, **options)
    return Figures(result, lambda name, values: change(name, values, tree))


def changed(tree: Tree, changes: Mapping[str, Any]) -> Tree:
    """A copy with dotted keys set, or taken away where the value is None."""
    made = copy.deepcopy(tree)
    for key, value in changes.items():
        *sections, last = key.split(".")
        inside = made
        for section in sections:
            inside = inside.setdefault(section, {})
        if value is None:
            inside.pop(last, None)
        else:
            inside[last] = value
    return made


def is_time(name: str) -> bool:
    return name.endswith("seconds") or name == "weights_per_second"


def same_bits(a: Figures, b: Figures, what: str) -> None:
    """Everything but times."""
    names, others = ({name for name in f if not is_time(name)} for f in (a, b))
    require(names == others, f"{what}: names {sorted(names ^ others)}")
    for name in sorted(names):
        require(
            np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f"),
            f"{what}: {name} is {a[name].tolist()} and {b[name].tolist()}",
        )


def near(a: Array | float, b: Array | float, allowed: Array | float, what: str) -> None:
    """NaN equals NaN alone."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    require(a.shape == b.shape, f"{what}: shapes {a.shape} and {b.shape}")
    with np.errstate(invalid="ignore"):
        fits = (np.abs(a - b) <= allowed) | (np.isnan(a) & np.isnan(b)) | (a == b)
    require(bool(np.all(fits)), f"{what}: {a.tolist()} and {b.tolist()}, allowed {np.asarray(allowed).tolist()}")


@dataclass(frozen=True)
class Comparison:
    """Differences [...] that have mean 0, up to `slack`, with their standard errors on `dof` degrees of freedom."""

    figure: str
    difference: Array
    mcse: Array
    slack: Array | float
    dof: int

    def normal(self) -> Array:
        """|difference| beyond the slack as a normal quantile (Wallace 1959, of Student's t)."""
        beyond = np.maximum(np.abs(self.difference) - self.slack, 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = np.where(beyond > 0, beyond / self.mcse, 0)
        z = (8 * self.dof + 1) / (8 * self.dof + 3) * np.sqrt(self.dof * np.log1p(t * t / self.dof))
        return np.where(np.isnan(self.difference) | np.isnan(self.mcse), 0, z)


def two_sided(alpha: float) -> float:
    return -NormalDist().inv_cdf(alpha / 2)


def hold_in_mcse(compare: Callable[[int, int], Iterable[Comparison]], replicates: int, examples: int) -> None:
    """Comparisons of `compare(seed, replicates)` hold.

    Each is suspicious at a level of 1e-4 and broken where two further seeds with 16 times the replicates agree on the
    sign and are beyond a level of 0.01 for all comparisons of all examples together. Where their standard errors
    disagree by half the tails are too heavy for either.
    """
    suspicious = [(i, c.normal() > two_sided(1e-4)) for i, c in enumerate(compare(1000, replicates))]
    if not any(np.any(at) for _, at in suspicious):
        return
    first, second = (list(compare(seed, 16 * replicates)) for seed in (2000, 3000))
    level = two_sided(0.01 / (COMPARISONS * examples))
    heavy = False
    for i, at in suspicious:
        a, b = first[i], second[i]
        at = at & (a.normal() > level) & (b.normal() > level) & (np.sign(a.difference) == np.sign(b.difference))
        uneven = np.maximum(a.mcse, b.mcse) > 1.5 * np.minimum(a.mcse, b.mcse)
        heavy = heavy or bool(np.any(at & uneven))
        broken = at & ~uneven
        if np.any(broken):
            place = tuple(int(j) for j in np.argwhere(broken)[0]) if broken.ndim else ()
            raise Broken(
                f"{a.figure}{list(place)} differs by {a.difference[place]:.6g} ± {a.mcse[place]:.2g} and "
                f"{b.difference[place]:.6g} ± {b.mcse[place]:.2g} with other draws, "
                f"{np.broadcast_to(a.slack, a.difference.shape)[place]:.2g} allowed besides"
            )
    if heavy:
        raise Skipped("heavy tails")


@dataclass(frozen=True)
class Rounding:
    """What float32 may do to a replicate, by what kernels/testing/agreement.h allows `cpu`."""

    of_estimates: Array  # [replicate]
    of_noise: Array
    relative: Array

    @property
    def size(self) -> float:
        return math.inf if not len(self.relative) else float(self.relative.max())


def training_sets(tree: Tree, replicates: int) -> Any:
    """They depend on neither heads nor the kernel, for which `dataset` declines some scenarios."""
    d = dimension(tree)
    heads = {
        "count": 1,
        "dim": 1,
        "subspaces": {"law": "aligned"},
        "kernel": {"law": "gaussian", "bandwidth": 1.0},
    }
    queries = tree["queries"]
    if queries["law"] == "points":
        queries = {"law": "points", "points": [[0.0] * d]}
    made = {**tree, "heads": heads, "queries": {k: v for k, v in queries.items() if k != "redraw"}}
    run = {k: v for k, v in tree["run"].items() if k in ("seed", "estimator")}
    return hl.dataset(changed({**made, "run": run}, {}), replicates, threads=1)


def dimension(tree: Tree) -> int:
    design = tree["data"]["design"]
    if design["law"] == "file":
        return len(design.get("columns", range(np.shape(design["path"])[1])))
    return int(design["dim"] if "dim" in design else len(design["means"][0]))


def rounding(tree: Tree, figures: Figures, replicates: int) -> Rounding:
    kernel = tree["heads"]["kernel"]
    unit2 = kernel["bandwidth"] ** 2 if "bandwidth" in kernel else kernel["temperature"]
    draws = training_sets(tree, replicates)
    x = np.abs(draws["X"].astype(float))
    if tree["queries"].get("redraw") and tree["data"]["design"]["law"] not in ("uniform", "sphere", "file"):
        raise Skipped("queries drawn again have no bound")
    k = tree["heads"]["dim"]
    if tree["queries"].get("redraw"):
        query = x.max(axis=(0, 1))[None] if tree["data"]["design"]["law"] == "file" else np.ones((1, x.shape[2]))
    else:
        query = np.abs(figures.of(0, "x"))
    given = tree["heads"]["subspaces"]
    if "projections" in figures and not given.get("redraw") and given["law"] != "learned":
        keys = np.abs(figures.of(0, "projections"))
        by_query = np.abs(figures.of(0, "query_projections")) if "query_projections" in figures else keys
    else:
        keys = by_query = np.ones((1, x.shape[2], k))  # |W_ij| <= 1
    stages = tree["heads"].get("mechanism", {})
    merge = stages.get("merge", 1)
    # A mean of points is never longer than the longest of them; a gate weighs sums, which can be.
    grow = max(1.0, merge["gate"] * merge["stride"]) if isinstance(merge, dict) else 1.0
    of_keys = np.einsum("hdk,rid->rihk", keys, grow * x)[:, :, :, None]
    length = of_keys + np.einsum("hdk,qd->hqk", by_query, query)
    exponent = (length**2).sum(axis=-1).max(axis=(1, 2, 3)) / (2 * unit2)
    relative = U32 * (76 + 8 * exponent)
    weights = np.abs(figures.of(0, "head_weights")).sum() if "head_weights" in figures else 1.0
    value = (np.abs(draws["m"]) + np.abs(draws["Y"] - draws["m"])).max(axis=1) + 1
    sd2 = grow**2 * (draws["noise_sd"] ** 2).max(axis=1)
    many = max(1.0, float(weights))
    return Rounding(relative * grow * value * many, relative * 2 * sd2 * many**2, relative)

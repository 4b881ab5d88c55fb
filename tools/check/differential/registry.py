# SPDX-License-Identifier: Apache-2.0
"""The relations by name, and what several of them ask of a scenario."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator

import headlab as hl
import numpy as np
from runner import (
    Array,
    Comparison,
    Figures,
    Skipped,
    Tree,
    changed,
    dimension,
    hold_in_mcse,
    rounding,
    simulate,
)

#: Figures whose estimates are about normal; a squared bias is not where there is hardly any.
TERMS = ("mse", "variance_term", "covariance_term", "head_variance_mean", "head_covariance_mean")

#: Metrics of stacks that need no order of the tokens.
METRICS = ("log_residual", "residual_squared", "mean_squared", "residual_share", "diameter", "dong", "cosine",
           "participation", "entropy", "dobrushin", "residual_factor", "self_weight", "rollout_dobrushin")

Relation = Callable[[Tree, int], None]
REGRESSION: dict[str, Relation] = {}
DEPTH: dict[str, Relation] = {}


def of_regression(relation: Relation) -> Relation:
    REGRESSION[relation.__name__.strip("_")] = relation
    return relation


def of_depth(relation: Relation) -> Relation:
    DEPTH[relation.__name__.removeprefix("depth_").strip("_")] = relation
    return relation


def skip_if(holds: bool, why: str) -> None:
    if holds:
        raise Skipped(why)


def redrawn(tree: Tree) -> bool:
    return bool(tree["heads"]["subspaces"].get("redraw") or tree["queries"].get("redraw"))


def learned(tree: Tree) -> bool:
    return bool(tree["heads"]["subspaces"]["law"] == "learned")


def optimal(tree: Tree) -> bool:
    return bool(tree["heads"]["weights"]["law"] == "optimal")


def stages(tree: Tree) -> Tree:
    made: Tree = tree["heads"].get("mechanism", {})
    return made


def matrices(tree: Tree) -> bool:
    """There are figures of heads and pairs."""
    return not redrawn(tree) and tree["run"]["moments"] == "pairwise"


def cost(tree: Tree) -> int:
    """Kernel values a replicate."""
    queries = tree["queries"]
    count = queries["count"] if "count" in queries else len(queries["points"])
    return int(tree["data"]["n"] * tree["heads"]["count"] * count)


def enough(tree: Tree) -> int:
    """Replicates of a comparison within MCSE: 16 times as many take half a second at most."""
    return max(64, min(512, 8 * (200_000 // cost(tree))))


def size(figures: Figures, condition: int = 0) -> float:
    """Of the estimates: what float32 rounds is relative to it."""
    truth = np.nanmax(np.abs(figures.of(condition, "truth")), initial=0) if "truth" in figures else 0.0
    squares = [figures.of(condition, name) for name in ("bias_squared_plugin", "head_variance_mean")]
    bias, deviation = (math.sqrt(max(0.0, float(square))) for square in squares)
    return float(truth) + bias + 4 * deviation


def bounded(kernel: Tree) -> bool:
    """The kernel is 0 beyond some widths: a query that sees neither of two keys takes the value of the nearer one."""
    width = max(number for number in kernel.values() if isinstance(number, float | int))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", hl.HeadlabWarning)
        estimate = hl.nw(np.array([[0.0], [-width]]), [0.0, 1.0], [[5.0 * width]], np.ones((1, 1, 1)), kernel)
    return bool(estimate.item() == 0)


def unsteady(tree: Tree) -> bool:
    """Stages and kernels that jump where two numbers round alike: a key more or less is kept or in a window."""
    return "keep" in stages(tree) or bounded(tree["heads"]["kernel"])


def allowed(tree: Tree, figures: Figures) -> float:
    """What float32 may do to an estimate in any replicate, about: twice the bound of 16 of them."""
    found = rounding(tree, figures, 16)
    skip_if(found.size > 1e-3, "rounding as large as figures")
    return 2 * float(found.of_estimates.max())


def normal_covariance(law: Tree, d: int) -> Array:
    i = np.arange(d)
    if "ar1" in law:
        return np.asarray(law["ar1"] ** np.abs(i[:, None] - i).astype(float))
    return np.asarray(law.get("covariance", np.eye(d)))


def scaled_design(law: Tree, c: float) -> Tree:
    skip_if(law["law"] not in ("normal", "mixture", "file") or law.get("standardise", False), "design has one scale")
    made = dict(law)
    d = dimension({"data": {"design": law}})
    if law["law"] == "file":
        made["path"] = np.array(law["path"], dtype=float)
        made["path"][:, list(range(d))] *= c
    elif law["law"] == "mixture":
        made["means"] = [[v * c for v in row] for row in law["means"]]
        parts = law.get("covariances", [np.eye(d).tolist()] * len(law["means"]))
        made["covariances"] = (c * c * np.array(parts)).tolist()
    else:
        made["mean"] = [v * c for v in law.get("mean", [0.0] * d)]
        made["covariance"] = (c * c * normal_covariance(law, d)).tolist()
        made.pop("ar1", None)
    return made


def at_points(tree: Tree) -> Tree:
    """The same at queries written out, where they come from the design."""
    if tree["queries"]["law"] == "points":
        return tree
    skip_if(tree["data"]["regression"]["law"] == "file", "a regression known at rows")
    skip_if(redrawn(tree), "drawn again")
    found = simulate(changed(tree, {"run.controls": None, "run.replicates": 8})).of(0, "x")
    return changed(tree, {"queries": {"law": "points", "points": found.tolist()}})


def given_heads(tree: Tree) -> Tree:
    """The same with subspaces written out."""
    skip_if(redrawn(tree), "drawn again")
    skip_if(learned(tree) or optimal(tree), "learned or optimal")
    if tree["heads"]["subspaces"]["law"] == "explicit":
        return tree
    skip_if(tree["heads"]["subspaces"]["law"] == "blocks", "heads of several dimensions")
    plain = changed(tree, {"heads.mechanism": None, "run.replicates": 8, "run.controls": None})
    found = simulate(plain).of(0, "projections").tolist()
    return changed(tree, {"heads.subspaces": {"law": "explicit", "matrices": found}})


def paired(tree: Tree, figures: tuple[str, ...], key: str, replicates: int, examples: int) -> None:
    """Two conditions of a sweep agree, replicate by replicate."""
    slack = None

    def compare(seed: int, replicates: int) -> Iterator[Comparison]:
        nonlocal slack
        f = simulate(tree, seed=seed, replicates=replicates)
        if slack is None:
            plain = changed(tree, {"sweep": None, "run.estimator": "conditional", "run.seed": seed})
            slack = allowed(plain, f)
        dof = int(f["jackknife_nodes"].min()) - 1
        for name in figures:
            d = f.result.difference(name, over=key)
            yield Comparison(name, d.values[1], d.mcse[1], 4 * slack * size(f), dof)

    hold_in_mcse(compare, replicates, examples)


def independent(a: Tree, b: Tree, examples: int) -> None:
    """Two scenarios have the same means, simulated with draws of their own."""
    slack = None

    def compare(seed: int, replicates: int) -> Iterator[Comparison]:
        nonlocal slack
        f = simulate(a, seed=seed, replicates=replicates)
        g = simulate(b, seed=seed + 100, replicates=replicates)
        if slack is None:
            slack = allowed(changed(a, {"run.seed": seed}), f)
        dof = int(min(f["jackknife_nodes"].min(), g["jackknife_nodes"].min())) - 1
        for name in (*TERMS, *(("head_bias",) if not redrawn(a) and "head_bias" in f else ())):
            mcse = np.hypot(f.of(0, f"{name}_mcse"), g.of(0, f"{name}_mcse"))
            rounded = 2 * slack if name == "head_bias" else 8 * slack * size(f)
            yield Comparison(name, f.of(0, name) - g.of(0, name), mcse, rounded, dof)

    replicates = enough(a)
    hold_in_mcse(compare, replicates, examples)

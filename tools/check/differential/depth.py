# SPDX-License-Identifier: Apache-2.0
"""Relations of stacks of layers."""

from __future__ import annotations

import math
from collections.abc import Iterator

import headlab as hl
import numpy as np
from registry import METRICS, of_depth, scaled_design, skip_if
from runner import (
    Comparison,
    Figures,
    Skipped,
    Tree,
    changed,
    hold_in_mcse,
    near,
    require,
    simulate,
)


def same_metrics(a: Figures, b: Figures, what: str, factors: dict[str, float]) -> None:
    """docs/depth.md promises 1e-10 for two backends, which round differently."""
    # Tokens that cancel are 0 here and rounding there, and what is relative to them is undefined or arbitrary.
    total = sum((np.nan_to_num(b[name]) for name in ("mean_squared", "residual_squared")), np.zeros_like(b["cosine"]))
    known = total > 1e-24 * total[:, :1]
    for name, factor in factors.items():
        of_a, of_b = (np.where(known, f[name], 0) for f in (a, b))
        near(factor * of_a, of_b, 1e-10 * np.maximum(1, np.abs(of_b)), f"{name} of {what}")


@of_depth
def depth_cpu_and_reference(tree: Tree, examples: int) -> None:
    skip_if("mlp" in tree["layers"], "a unit of the MLP may change sides")
    a, b = (simulate(tree, backend=backend) for backend in ("cpu", "reference"))
    same_metrics(a, b, "cpu and reference", dict.fromkeys(METRICS, 1.0))


#: log residual of tokens of size 1 that differ by some roundings of float64.
HIDDEN = -30.0


@of_depth
def depth_bounds(tree: Tree, examples: int) -> None:
    f = simulate(tree)
    n, d = int(f.of(0, "n")), int(f.of(0, "d"))
    shares = ("residual_share", "dobrushin", "rollout_dobrushin", "self_weight")
    ranges = {"cosine": (-1.0, 1.0), "participation": (1.0, float(min(n, d))), "entropy": (0.0, math.log(n))}
    for name, (low, high) in (dict.fromkeys(shares, (0.0, 1.0)) | ranges).items():
        values = f.of(0, name)
        outside = (values < low - 1e-10) | (values > high + 1e-10)
        require(not np.any(outside), f"{name} is {values.tolist()}, outside [{low}, {high}]")
    both = f.of(0, "residual_squared")
    require(bool(np.all(np.isnan(both) | (both >= 0))), "residual_squared is negative")


@of_depth
def depth_theory(tree: Tree, examples: int) -> None:
    try:
        known = hl.theory(tree)
    except hl.ScenarioError:
        raise Skipped("no closed form") from None
    names = [name for name in METRICS if name in known]
    if known["theory_source"][0] == "bound":
        f = simulate(tree)
        for name in names:
            bound = known[name][0]
            # The angle between tokens of length 0 is undefined.
            below = np.isnan(f.of(0, name)) | (f.of(0, name) <= bound * (1 + 1e-8))
            require(bool(np.all(below)), f"{name} is above its bound {bound.tolist()}")
        return

    def compare(seed: int, replicates: int) -> Iterator[Comparison]:
        f = simulate(tree, seed=seed, replicates=replicates)
        dof = int(f["jackknife_nodes"].min()) - 1
        # A mean that cancels is rounding of float64, and hides what tokens differ by once that is less.
        hidden = f.of(0, "log_residual") < HIDDEN
        for name in names:
            slack = 1e-8 * (1 + np.abs(known[name][0]))
            difference = f.of(0, name) - known[name][0]
            if name in ("residual_share", "cosine", "participation"):
                difference = np.where(hidden, 0.0, difference)
            yield Comparison(name, difference, f.of(0, f"{name}_mcse"), slack, dof)

    hold_in_mcse(compare, 512, examples)


@of_depth
def depth_seed(tree: Tree, examples: int) -> None:
    """Another seed has the same means."""
    tree = changed(tree, {"run.replicates": 512})

    def compare(seed: int, replicates: int) -> Iterator[Comparison]:
        f, g = (simulate(tree, seed=s, replicates=replicates) for s in (seed, seed + 100))
        dof = int(f["jackknife_nodes"].min()) - 1
        for name in ("cosine", "entropy", "dobrushin", "residual_share", "log_residual"):
            mcse = np.hypot(f.of(0, f"{name}_mcse"), g.of(0, f"{name}_mcse"))
            yield Comparison(name, f.of(0, name) - g.of(0, name), mcse, 1e-8, dof)

    hold_in_mcse(compare, 512, examples)


@of_depth
def depth_tokens_scaled(tree: Tree, examples: int) -> None:
    """Without softmax, norm and MLP a stack is linear in its tokens."""
    skip_if(tree["heads"]["kernel"]["law"] == "softmax", "softmax sees lengths")
    skip_if("norm" in tree["layers"] or "mlp" in tree["layers"], "norm or MLP")
    design = tree["tokens"]["design"]
    if design["law"] == "points":
        design, other = design, {**design, "points": [[2 * v for v in row] for row in design["points"]]}
    elif design["law"] == "simplex":
        design, other = design, {**design, "rho": 4 * design["rho"], "mu": 4 * design["mu"]}
    else:
        design, other = scaled_design(design, 1.0), scaled_design(design, 2.0)
    a, b = (simulate(changed(tree, {"tokens.design": one})) for one in (design, other))
    factors = {"residual_squared": 4.0, "mean_squared": 4.0, "diameter": 2.0, "cosine": 1.0, "entropy": 1.0}
    same_metrics(a, b, "tokens of twice the length", factors)


@of_depth
def depth_tokens_reversed(tree: Tree, examples: int) -> None:
    """Without a mask tokens have no order."""
    skip_if(tree["tokens"]["design"]["law"] != "points", "tokens are drawn")
    skip_if("mask" in tree["layers"], "causal")
    skip_if(tree["heads"]["kernel"]["law"] in ("fixed", "independent_logits"), "attention of places")
    other = changed(tree, {"tokens.design.points": tree["tokens"]["design"]["points"][::-1]})
    same_metrics(simulate(tree), simulate(other), "reversed tokens", dict.fromkeys(METRICS, 1.0))


@of_depth
def depth_heads_reversed(tree: Tree, examples: int) -> None:
    maps, kernel = tree["heads"]["maps"], tree["heads"]["kernel"]
    skip_if(maps["law"] == "gaussian" or kernel["law"] == "independent_logits", "heads are drawn")
    skip_if("order" in tree["heads"], "one head a layer")
    changes: Tree = {f"heads.maps.{key}": maps[key][::-1] for key in ("value", "query_key") if key in maps}
    if "matrices" in kernel:
        changes["heads.kernel.matrices"] = kernel["matrices"][::-1]
    same_metrics(simulate(tree), simulate(changed(tree, changes)), "reversed heads", dict.fromkeys(METRICS, 1.0))

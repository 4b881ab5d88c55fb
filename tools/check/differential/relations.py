# SPDX-License-Identifier: Apache-2.0
"""Relations between runs that hold whatever the figures are.

Each takes a scenario without a sweep and the number of examples, raises Broken where it does not hold, and Skipped
where it says nothing.
"""

from __future__ import annotations

import math
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import headlab as hl
import numpy as np

from runner import (
    EPS64,
    U32,
    Array,
    Comparison,
    Figures,
    Skipped,
    Tree,
    changed,
    dimension,
    hold_in_mcse,
    near,
    require,
    rounding,
    same_bits,
    simulate,
)
import runner

#: Figures whose estimates are about normal; a squared bias is not where there is hardly any.
TERMS = ("mse", "variance_term", "covariance_term", "head_variance_mean", "head_covariance_mean")
PROGRAM = os.environ.get("HEADLAB_BINARY", str(Path(__file__).resolve().parents[3] / "build/release/headlab"))

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
    found = max(64, min(512, 8 * (200_000 // cost(tree))))
    return found


def size(figures: Figures, condition: int = 0) -> float:
    """Of the estimates: what float32 rounds is relative to it."""
    truth = np.nanmax(np.abs(figures.of(condition, "truth")), initial=0) if "truth" in figures else 0
    bias = math.sqrt(max(0, figures.of(condition, "bias_squared_plugin")))
    return float(truth + bias + math.sqrt(max(0, figures.of(condition, "head_variance_mean"))) * 4)


def unsteady(tree: Tree) -> bool:
    """Stages and kernels that jump where two numbers round alike: a key more or less is kept or in a window."""
    return "keep" in stages(tree) or tree["heads"]["kernel"]["law"] in ("epanechnikov", "triangular")


def allowed(tree: Tree, figures: Figures) -> float:
    """What float32 may do to an estimate in any replicate, about: twice the bound of 16 of them."""
    found = rounding(tree, figures, 16)
    skip_if(found.size > 1e-3, "rounding as large as figures")
    return 2 * float(found.of_estimates.max())


# Within one run


@of_regression
def sum_of_terms(tree: Tree, examples: int) -> None:
    """bias² + variance + covariance = MSE, and every mean is that of its parts."""
    f = simulate(tree)
    parts = [f.of(0, name) for name in ("bias_squared", "variance_term", "covariance_term")]
    scale = float(sum(abs(p) for p in parts))
    near(f.of(0, "mse"), sum(parts), 16 * 2.0**-52 * scale, "sum of terms")
    if not matrices(tree):
        return
    a, c = f.of(0, "head_weights"), f.of(0, "head_covariance").mean(axis=0)
    every = np.abs(f.of(0, "head_covariance")).mean(axis=0)
    near(f.of(0, "query_mse").mean(), f.of(0, "mse"), EPS64 * np.abs(f.of(0, "query_mse")).max() + EPS64 * scale, "MSE")
    diagonal = np.eye(len(a), dtype=bool)
    outer = np.outer(a, a)
    bound = EPS64 * float((np.abs(outer) * every).sum())
    near(f.of(0, "variance_term"), (outer * c)[diagonal].sum(), bound, "variance_term of V_h")
    near(f.of(0, "covariance_term"), (outer * c)[~diagonal].sum(), bound, "covariance_term of C_hl")
    near(f.of(0, "head_variance_mean"), c[diagonal].mean(), EPS64 * every.max(), "mean of V_h")
    if len(a) > 1:
        near(f.of(0, "head_covariance_mean"), c[~diagonal].mean(), EPS64 * every.max(), "mean of C_hl")


@of_regression
def nodes(tree: Tree, examples: int) -> None:
    """Figures follow from the nodes by the formulas of docs/results-nc.md."""
    tree = changed(tree, {"run.controls": None})
    f = simulate(tree)
    table = f.nodes
    count = table["count"].values.astype(float)
    total = count.sum()
    require(total == f.of(0, "replicates"), "replicates of the nodes")
    mean = table["mean"].values
    names = [str(name) for name in table["statistic"].values]
    weight = count / total
    if redrawn(tree):
        for name in ("bias_squared", "variance_term", "covariance_term"):
            values = mean[:, names.index(name)]
            near(f.of(0, name), weight @ values, EPS64 * float(weight @ np.abs(values)), f"{name} of nodes")
        return
    overall = np.einsum("t,tqs->qs", weight, mean)
    heads = int(f.of(0, "heads"))
    a = f.of(0, "head_weights")
    pairs = list(zip(table["pair_first"].values, table["pair_second"].values, strict=True))
    variance = np.zeros((len(overall), heads, heads))
    size_of = np.zeros_like(variance)
    ensemble = np.zeros(len(overall))
    for p, (g, l) in enumerate(pairs):
        label = ["ensemble" if i == heads else str(i) for i in (g, l)]
        at = [names.index(f"estimate_{i}") for i in label]
        off = mean[:, :, at] - overall[:, at]
        between = table["comoment"].values[:, :, p].sum(axis=0) + np.einsum("t,tq,tq->q", count, off[..., 0], off[..., 1])
        # Rounding is relative to what the moments are made of, and that is never less than the mean squared.
        made_of = np.abs(between) / (total - 1) + np.abs(overall[:, at[0]] * overall[:, at[1]]) * 2.0**-20
        value = between / (total - 1)
        if f"noise_{label[0]}_{label[1]}" in names:
            noise = overall[:, names.index(f"noise_{label[0]}_{label[1]}")]
            value, made_of = value + noise, made_of + np.abs(noise)
        if g == heads:
            ensemble = value
            continue
        variance[:, g, l] = variance[:, l, g] = value
        size_of[:, g, l] = size_of[:, l, g] = made_of
    own = np.arange(heads)
    bound = EPS64 * float((a**2 * size_of[:, own, own]).sum(axis=1).mean())
    near(f.of(0, "variance_term"), (a**2 * variance[:, own, own]).sum(axis=1).mean(), bound, "variance_term of nodes")
    if tree["run"]["moments"] == "pairwise":
        near(f.of(0, "head_covariance"), variance, EPS64 * size_of + 1e-300, "head_covariance of nodes")
    else:
        require(bool(np.all(ensemble >= -EPS64 * size_of.sum(axis=(1, 2)))), "variance of the ensemble is negative")


@of_regression
def positive(tree: Tree, examples: int) -> None:
    """Covariances are positive semidefinite and -1/(H-1) <= C/V <= 1."""
    # Adjusted covariances are estimated entry by entry and need not be; float32 sums of `cpu` are off by rounding.
    f = simulate(changed(tree, {"run.controls": None, "run.replicates": 16}), backend="reference")
    heads = int(f.of(0, "heads"))
    v, c = f.of(0, "head_variance_mean"), f.of(0, "head_covariance_mean")
    require(bool(v >= 0), f"V is {v}")
    # Aggregate moments know C from the ensemble alone, and not where its weights are 0.
    if heads > 1 and not np.isnan(c):
        require(bool(-v * (1 + EPS64) <= c * (heads - 1) and c <= v * (1 + EPS64)), f"C is {c}, V {v}, H {heads}")
    if matrices(tree):
        found = f.of(0, "head_covariance")
        require(np.array_equal(found, found.swapaxes(1, 2)), "head_covariance is not symmetric")
        for q, one in enumerate(found):
            least = np.linalg.eigvalsh(one)[0]
            require(bool(least >= -EPS64 * np.trace(one)), f"query {q}: eigenvalue {least} of {one.tolist()}")


# Backends and estimators


@of_regression
def cpu_and_reference(tree: Tree, examples: int) -> None:
    replicates = 16
    kernel = tree["heads"]["kernel"]["law"]
    # Where the only key of a window is at its edge its weight is rounding.
    skip_if(kernel in ("epanechnikov", "triangular"), "kernel of bounded support")
    # Equal numbers may round apart, and another key is then kept.
    skip_if("keep" in stages(tree), "keep")
    # Steps of gradient descent, and weights from a pilot, amplify rounding.
    skip_if(learned(tree) or optimal(tree), "learned or optimal")
    tree = changed(tree, {"run.controls": None, "run.replicates": replicates})
    a, b = (simulate(tree, backend=backend) for backend in ("cpu", "reference"))
    bound = rounding(tree, b, replicates)
    skip_if(bound.size > 0.05, "rounding as large as figures")
    at = a.nodes
    x, y = at["mean"].values, b.nodes["mean"].values
    names = [str(name) for name in at["statistic"].values]
    near(at["count"].values, b.nodes["count"].values, 0, "nodes")
    require(x.shape == y.shape, "nodes of other shapes")
    if redrawn(tree):
        value, relative = float(bound.of_estimates.max()), bound.size
        scale = value / relative
        # A square or product of two numbers of that scale, each as far off.
        near(x[:, :-2], y[:, :-2], 8 * scale * value * (1 + relative) + 2 * float(bound.of_noise.max()), "cpu, reference")
        return
    for s, name in enumerate(names):
        if name.startswith("estimate"):
            limit = bound.of_estimates
        elif name.startswith("noise"):
            limit = bound.of_noise
        else:
            limit = 2 * bound.relative
        near(x[:, :, s], y[:, :, s], limit[:, None], f"{name} of cpu and reference")


@of_regression
def conditional_and_plain(tree: Tree, examples: int) -> None:
    """Noise that is integrated has the moments of noise that is drawn."""
    skip_if(optimal(tree) or learned(tree), "learned or optimal")
    skip_if(tree["data"]["noise"]["law"] == "student_t" and tree["data"]["noise"]["df"] < 5, "heavy tails of the noise")
    base = changed(tree, {"run.controls": None, "run.estimator": None, "sweep": {"run.estimator": ["conditional", "plain"]}})
    paired(base, TERMS, "run.estimator", enough(tree), examples)


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


@of_regression
def controls(tree: Tree, examples: int) -> None:
    """Controls leave the means as they are."""
    tree = changed(tree, {"run.estimator": "conditional", "run.moments": "pairwise"})
    simulate(changed(tree, {"run.controls": "exact", "run.replicates": 8}))  # or is declined
    skip_if(optimal(tree), "optimal")
    swept = changed(tree, {"run.controls": None, "sweep": {"run.controls": ["none", "exact"]}})
    f = simulate(swept, replicates=enough(tree))
    require(not f.of(1, "controls_refused"), "controls are refused")
    paired(swept, TERMS, "run.controls", enough(tree), examples)


@of_regression
def theory(tree: Tree, examples: int) -> None:
    """Closed forms, exact or of first order, against a simulation with controls where there are any."""
    skip_if(redrawn(tree) or learned(tree) or optimal(tree), "drawn again, learned or optimal")
    tree = changed(tree, {"run.controls": None, "run.estimator": "conditional", "run.moments": "pairwise"})
    # Quadrature of pairs of steep kernels can take minutes.
    steep = rounding(tree, simulate(tree, replicates=8), 16).size > 1e-4
    skip_if(steep, "steep kernel")
    try:
        known = hl.theory(tree, threads=1)
    except hl.ScenarioError:
        raise Skipped("no closed form") from None
    try:
        controlled = changed(tree, {"run.controls": "exact"})
        simulate(controlled, replicates=8)
        tree = controlled
    except hl.ScenarioError:
        pass
    slack = None

    def compare(seed: int, replicates: int) -> Iterator[Comparison]:
        nonlocal slack
        f = simulate(tree, seed=seed, replicates=replicates)
        if slack is None:
            slack = allowed(changed(tree, {"run.seed": seed}), f)
        dof = int(f["jackknife_nodes"].min()) - 1
        for name in ("head_bias", "head_covariance", "mse", "variance_term", "covariance_term"):
            remainder = np.nan_to_num(known[f"{name}_remainder"][0])
            rounded = slack if name == "head_bias" else 4 * slack * size(f)
            yield Comparison(name, f.of(0, name) - known[name][0], f.of(0, f"{name}_mcse"), remainder + rounded, dof)

    hold_in_mcse(compare, enough(tree), examples)


@of_regression
def moments(tree: Tree, examples: int) -> None:
    """Aggregate moments are those of all pairs."""
    skip_if(redrawn(tree), "drawn again")
    tree = changed(tree, {"run.controls": None})
    a, b = (simulate(changed(tree, {"run.moments": m})) for m in ("pairwise", "aggregate"))
    total = sum(abs(a.of(0, "head_weights")))
    bound = EPS64 * (1 + total) ** 2 * size(a) ** 2
    for name in ("mse", "bias_squared", "variance_term", "covariance_term", "head_variance_mean"):
        near(a.of(0, name), b.of(0, name), bound, f"{name} of pairwise and aggregate moments")


@of_regression
def seed(tree: Tree, examples: int) -> None:
    """Another seed has other draws and the same means."""
    skip_if(tree["data"].get("fixed_design", False) or tree["data"]["noise"]["sd"] == 0, "nothing to draw")
    plain = changed(tree, {"run.controls": None, "run.estimator": "plain"})
    a, b = (simulate(plain, seed=s, replicates=16) for s in (1, 2))
    require(list(a["nodes_sha256"]) != list(b["nodes_sha256"]), "two seeds have the same nodes")
    independent(plain, plain, examples)


# Symmetries


def scaled_regression(law: Tree, c: float) -> Tree:
    """x -> m(x/c)"""
    made = dict(law)
    name = law["law"]
    if name == "linear":
        made["coefficients"] = [v / c for v in law["coefficients"]]
    elif name == "cosines":
        made["frequency"] = [[v / c for v in row] for row in law["frequency"]]
    elif name == "additive":
        made["frequency"] = [v / c for v in law["frequency"]]
    elif name in ("single_index", "step"):
        made["direction"] = [v / c for v in law["direction"]]
    elif name == "random_cosines":
        made["length_scale"] = law["length_scale"] * c
    elif name == "bumps":
        made["centres"] = [[v * c for v in row] for row in law["centres"]]
        made["widths"] = [v * c for v in law["widths"]]
    return made


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


def normal_covariance(law: Tree, d: int) -> Array:
    i = np.arange(d)
    if "ar1" in law:
        return np.asarray(law["ar1"] ** np.abs(i[:, None] - i).astype(float))
    return np.asarray(law.get("covariance", np.eye(d)))


@of_regression
def lengths(tree: Tree, examples: int) -> None:
    """All lengths times 2 change nothing, and a power of 2 rounds nothing."""
    skip_if(learned(tree), "steps of gradient descent have a length")
    # Moments of designs that are not normal are drawn, and fitted with a scale of their own.
    skip_if("compress" in stages(tree) or optimal(tree), "compress or optimal")
    c = 2.0
    data, kernel = tree["data"], dict(tree["heads"]["kernel"])
    noise = dict(data["noise"])
    if noise["law"] == "heteroscedastic":
        noise["direction"] = [v / c for v in noise["direction"]]
    if "bandwidth" in kernel:
        kernel["bandwidth"] *= c
    else:
        kernel["temperature"] *= c * c
    changes = {
        "run.controls": None,
        "data.design": scaled_design(data["design"], c),
        "data.regression": scaled_regression(data["regression"], c),
        "data.noise": noise,
        "heads.kernel": kernel,
    }
    if tree["queries"]["law"] == "points":
        changes["queries.points"] = [[v * c for v in row] for row in tree["queries"]["points"]]
    base = changed(tree, {"run.controls": None})
    if data["design"]["law"] == "normal":
        # With its covariance written out: an identity matrix is another way to draw.
        base = changed(base, {"data.design": scaled_design(data["design"], 1.0)})
    elif data["design"]["law"] == "mixture":
        base = changed(base, {"data.design": scaled_design(data["design"], 1.0)})
    a, b = simulate(base), simulate(changed(tree, changes))
    bound = 4 * rounding(base, a, 16).of_estimates.max() * size(a)
    skip_if(unsteady(tree) and a.of(0, "mse") != b.of(0, "mse"), "rounds at an edge")
    for name in TERMS:
        near(a.of(0, name), b.of(0, name), bound, f"{name} at twice the lengths")


def rotated(tree: Tree, turn: Array) -> Tree:
    """Design, queries and subspaces turned together, x -> turn x."""
    data = tree["data"]
    design = dict(data["design"])
    d = len(turn)
    if design["law"] == "normal":
        design["mean"] = (turn @ design.get("mean", [0.0] * d)).tolist()
        design["covariance"] = symmetric(turn @ normal_covariance(design, d) @ turn.T)
        design.pop("ar1", None)
    elif design["law"] == "mixture":
        parts = design.get("covariances", [np.eye(d)] * len(design["means"]))
        design["means"] = [(turn @ mean).tolist() for mean in design["means"]]
        design["covariances"] = [symmetric(turn @ np.asarray(part) @ turn.T) for part in parts]
    elif design["law"] == "file":
        skip_if(design.get("standardise", False), "standardised columns")
        design["path"] = np.array(design["path"], dtype=float)
        design["path"][:, :d] = design["path"][:, :d] @ turn.T
    else:
        skip_if(design["law"] == "uniform", "the cube is not round")
    regression = dict(data["regression"])
    law = regression["law"]
    skip_if(law in ("random_cosines", "additive"), "regression has axes")
    skip_if(law == "step" and design["law"] == "file", "a step at a row")
    for key in ("coefficients", "direction"):
        if key in regression:
            regression[key] = (turn @ regression[key]).tolist()
    for key in ("frequency", "centres"):
        if key in regression and law in ("cosines", "bumps"):
            regression[key] = (np.array(regression[key]) @ turn.T).tolist()
    noise = dict(data["noise"])
    if "direction" in noise:
        noise["direction"] = (turn @ noise["direction"]).tolist()
    changes: Tree = {"data.design": design, "data.regression": regression, "data.noise": noise}
    space = dict(tree["heads"]["subspaces"])
    space["matrices"] = [(turn @ np.array(m)).tolist() for m in space["matrices"]]
    if "query_matrices" in space:
        space["query_matrices"] = [(turn @ np.array(m)).tolist() for m in space["query_matrices"]]
    changes["heads.subspaces"] = space | {"orthonormalise": False}
    changes["queries.points"] = (np.array(tree["queries"]["points"]) @ turn.T).tolist()
    return changed(tree, changes)


def symmetric(matrix: Array) -> list[list[float]]:
    made: list[list[float]] = ((matrix + matrix.T) / 2).tolist()
    return made


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


def at_points(tree: Tree) -> Tree:
    """The same at queries written out, where they come from the design."""
    if tree["queries"]["law"] == "points":
        return tree
    skip_if(tree["data"]["regression"]["law"] == "file", "a regression known at rows")
    skip_if(redrawn(tree), "drawn again")
    found = simulate(changed(tree, {"run.controls": None, "run.replicates": 8})).of(0, "x")
    return changed(tree, {"queries": {"law": "points", "points": found.tolist()}})


@of_regression
def rotation(tree: Tree, examples: int) -> None:
    """Design, regression, queries and subspaces turned together."""
    tree = changed(given_heads(at_points(tree)), {"run.controls": None})
    skip_if("compress" in stages(tree), "compress may be drawn")
    d = dimension(tree)
    turn = np.linalg.qr(np.random.default_rng(d).normal(size=(d, d)))[0]
    turned = rotated(tree, turn)
    if tree["data"]["design"]["law"] == "file" and not tree["data"].get("fixed_design"):
        skip_if(unsteady(tree), "equal distances round apart")
        a, b = simulate(tree), simulate(turned)
        limit = 4 * float(rounding(tree, a, 32).of_estimates.max())
        skip_if(limit > 1e-2, "rounding as large as figures")
        if matrices(tree):
            near(a.of(0, "head_bias"), b.of(0, "head_bias"), limit, "head_bias of rotated rows")
    else:
        skip_if(tree["data"].get("fixed_design", False), "another fixed design")
        independent(tree, turned, examples)


@of_regression
def explicit_heads(tree: Tree, examples: int) -> None:
    """Subspaces written out are those of their law, to the bit."""
    given = given_heads(changed(tree, {"run.controls": None}))
    skip_if(tree["heads"]["subspaces"]["law"] == "explicit", "explicit already")
    a, b = simulate(changed(tree, {"run.controls": None})), simulate(given)
    for name in a:
        if a[name].dtype.kind == "f" and name not in ("seconds", "weights_per_second"):
            near(a[name], b[name], 0, f"{name} of subspaces written out")


def explicit_weights(tree: Tree) -> list[float]:
    values: list[float] = simulate(changed(tree, {"run.replicates": 8, "run.controls": None})).of(
        0, "head_weights"
    ).tolist()
    return values


def per_head(tree: Tree, choice: list[int]) -> Tree:
    """Heads `choice` of a scenario whose heads are written out."""
    space = {k: [v[h] for h in choice] if isinstance(v, list) else v for k, v in tree["heads"]["subspaces"].items()}
    made = {
        name: [stage[h] for h in choice] if isinstance(stage, list) and name in ("window", "skip", "sinks") else stage
        for name, stage in stages(tree).items()
    }
    return changed(tree, {"heads.subspaces": space, "heads.count": len(choice), "heads.mechanism": made or None})


@of_regression
def heads_permuted(tree: Tree, examples: int) -> None:
    tree = changed(given_heads(tree), {"run.controls": None})
    heads = tree["heads"]["count"]
    order = list(range(1, heads)) + [0]
    a_h = explicit_weights(tree)
    tree = changed(tree, {"heads.weights": {"law": "explicit", "values": a_h}})
    other = changed(per_head(tree, order), {"heads.weights.values": [a_h[h] for h in order]})
    a, b = simulate(tree), simulate(other)
    exact = EPS64 * (1 + sum(map(abs, a_h))) ** 2 * size(a) ** 2
    if "transform" in stages(tree):  # sums of other heads round in another order
        exact = exact + 4 * float(rounding(tree, a, 16).of_estimates.max()) * size(a)
        skip_if(unsteady(tree), "rounds at an edge")
    for name in TERMS:
        near(a.of(0, name), b.of(0, name), exact, f"{name} of permuted heads")
    if matrices(tree):
        near(a.of(0, "head_bias")[:, order], b.of(0, "head_bias"), exact / (size(a) or 1) + 1e-300, "head_bias")
        moved = a.of(0, "head_covariance")[:, order][:, :, order]
        near(moved, b.of(0, "head_covariance"), exact, "head_covariance of permuted heads")


@of_regression
def head_doubled(tree: Tree, examples: int) -> None:
    """Two equal heads with half the weight each."""
    tree = changed(given_heads(tree), {"run.controls": None})
    skip_if("transform" in stages(tree), "transform adds the other heads")
    heads = tree["heads"]["count"]
    twice = [h for h in range(heads) for _ in range(2)]
    a_h = explicit_weights(tree)
    tree = changed(tree, {"heads.weights": {"law": "explicit", "values": a_h}})
    other = changed(per_head(tree, twice), {"heads.weights.values": [a_h[h] / 2 for h in twice]})
    a, b = simulate(tree), simulate(other)
    exact = EPS64 * (1 + sum(map(abs, a_h))) ** 2 * size(a) ** 2
    for name in ("mse", "bias_squared", "head_variance_mean"):
        near(a.of(0, name), b.of(0, name), exact, f"{name} of doubled heads")
    sums = [f.of(0, "variance_term") + f.of(0, "covariance_term") for f in (a, b)]
    near(sums[0], sums[1], exact, "variance of the ensemble of doubled heads")
    if matrices(tree):
        near(a.of(0, "head_covariance")[:, twice][:, :, twice], b.of(0, "head_covariance"), exact, "head_covariance")


def as_cosines(law: Tree, d: int) -> Tree:
    """A regression as a sum of cosines."""
    name = law["law"]
    if name == "zero":
        return {"law": "cosines", "amplitude": [], "frequency": [], "phase": []}
    if name == "cosines":
        return {**law, "phase": law.get("phase", [0.0] * len(law["amplitude"]))}
    if name == "additive":
        frequency = np.diag(law["frequency"]).tolist()
        return {"law": "cosines", "amplitude": law["amplitude"], "frequency": frequency, "phase": [0.0] * d}
    if name == "single_index":
        frequency = [[law["frequency"] * v for v in law["direction"]]]
        return {"law": "cosines", "amplitude": [1.0], "frequency": frequency, "phase": [0.0]}
    raise Skipped("regression is no sum of cosines")


def with_column(tree: Tree, change: Callable[[Array], Array]) -> Tree:
    table = np.array(tree["data"]["design"]["path"], dtype=float)
    column = tree["data"]["regression"]["column"]
    table[:, column] = change(table[:, column])
    return changed(tree, {"data.design": {**tree["data"]["design"], "path": table}})


@of_regression
def constant_added(tree: Tree, examples: int) -> None:
    """A constant in the truth moves no covariance, and no bias of a head."""
    skip_if(learned(tree) or optimal(tree), "learned or optimal")
    # Tokens that are sums with a gate multiply a constant by how many points they have.
    skip_if(isinstance(stages(tree).get("merge"), dict), "merge with a gate")
    tree = changed(tree, {"run.controls": None})
    if tree["data"]["regression"]["law"] == "file":
        other = with_column(tree, lambda column: column + 3)
    else:
        d = dimension(tree)
        law = as_cosines(tree["data"]["regression"], d)
        more = {"amplitude": [*law["amplitude"], 3.0], "frequency": [*law["frequency"], [0.0] * d], "phase": [*law["phase"], 0.0]}
        other = changed(tree, {"data.regression": {"law": "cosines", **more}})
    a, b = simulate(tree), simulate(other)
    # Estimates are averages: weights that sum to 1 up to rounding multiply the constant too.
    bound = rounding(tree, a, 16).relative.max() * 2 * (3 + size(a)) * (1 + np.abs(a.of(0, "head_weights")).sum()) ** 2
    skip_if(bound > 1e-2, "rounding as large as figures")
    for name in ("variance_term", "covariance_term", "head_variance_mean", "head_covariance_mean"):
        near(a.of(0, name), b.of(0, name), bound * 4 * size(a), f"{name} with a constant")
    if matrices(tree):
        near(a.of(0, "head_bias"), b.of(0, "head_bias"), bound, "head_bias with a constant")


@of_regression
def responses_doubled(tree: Tree, examples: int) -> None:
    """Responses times 2: figures times 4, to the bit where all is a power of 2."""
    skip_if(learned(tree) or optimal(tree), "learned or optimal")
    tree = changed(tree, {"run.controls": None})
    law = dict(tree["data"]["regression"])
    for key in {"coefficients", "amplitude", "heights"} & set(law):
        law[key] = [2 * v for v in law[key]]
    if law["law"] == "step":
        law["height"] = 2 * law.get("height", 1)
    if law["law"] == "file":
        other = with_column(tree, lambda column: 2 * column)
    else:
        skip_if(law["law"] in ("random_cosines", "single_index"), "regression has one height")
        other = changed(tree, {"data.regression": law})
    other = changed(other, {"data.noise.sd": 2 * tree["data"]["noise"]["sd"]})
    a, b = simulate(tree), simulate(other)
    for name in ("mse", "bias_squared", *TERMS):
        near(4 * a.of(0, name), b.of(0, name), 0, f"{name} of doubled responses")
        near(4 * a.of(0, f"{name}_mcse"), b.of(0, f"{name}_mcse"), 0, f"{name}_mcse of doubled responses")
    if matrices(tree):
        near(2 * a.of(0, "head_bias"), b.of(0, "head_bias"), 0, "head_bias of doubled responses")


@of_regression
def equal_components(tree: Tree, examples: int) -> None:
    """A mixture that has each component twice, with shares of its weight."""
    design = tree["data"]["design"]
    skip_if(design["law"] not in ("normal", "mixture"), "design is not normal")
    skip_if(learned(tree) or optimal(tree) or tree["data"].get("fixed_design", False), "learned, optimal or fixed")
    skip_if("compress" in stages(tree), "compress may be drawn")
    d = dimension(tree)
    # A sequence of law ar1 needs a normal design.
    tree = changed(at_points(tree), {"run.controls": None, "data.sequence": None})
    if design["law"] == "normal":
        design = {"weights": [1.0], "means": [design.get("mean", [0.0] * d)]}
        design["covariances"] = [normal_covariance(tree["data"]["design"], d).tolist()]
    mixture = {
        "law": "mixture",
        "weights": [w * share for share in (0.25, 0.75) for w in design["weights"]],
        "means": design["means"] * 2,
        "covariances": design.get("covariances", [np.eye(d).tolist()] * len(design["means"])) * 2,
    }
    independent(tree, changed(tree, {"data.design": mixture}), examples)


@of_regression
def rows_repeated(tree: Tree, examples: int) -> None:
    """A file that has every row twice."""
    design = tree["data"]["design"]
    skip_if(design["law"] != "file", "no file")
    skip_if(learned(tree) or optimal(tree) or tree["data"].get("fixed_design", False), "learned, optimal or fixed")
    skip_if("compress" in stages(tree), "compress may be drawn")
    # A sequence of rows begins where all of it fits, and has more places to begin in a longer file.
    tree = changed(at_points(tree), {"run.controls": None, "data.sequence": None})
    other = changed(tree, {"data.design": {**design, "path": np.repeat(design["path"], 2, axis=0)}})
    independent(tree, other, examples)


@of_regression
def queries_reversed(tree: Tree, examples: int) -> None:
    skip_if(optimal(tree) or redrawn(tree), "optimal weights or drawn again")
    tree = changed(at_points(tree), {"run.controls": None})
    other = changed(tree, {"queries.points": tree["queries"]["points"][::-1]})
    a, b = simulate(tree), simulate(other)
    for name in ("query_mse", *(("head_bias", "head_covariance") if matrices(tree) else ())):
        near(a.of(0, name)[::-1], b.of(0, name), 0, f"{name} of reversed queries")
    scale = float(np.abs(a.of(0, "query_mse")).max())
    near(a.of(0, "mse"), b.of(0, "mse"), EPS64 * scale, "mse of reversed queries")


# Layout: the same bits


def swept(tree: Tree) -> dict[str, list[Any]]:
    if "tokens" in tree:
        return {"layers.skip": [0.5, 0.25, 1.0]}
    kernel = tree["heads"]["kernel"]
    key = "bandwidth" if "bandwidth" in kernel else "temperature"
    return {f"heads.kernel.{key}": [kernel[key], 0.75, 3.0]}


def threads(tree: Tree, examples: int) -> None:
    same_bits(simulate(tree), simulate(tree, threads=2), "one thread and two")


def resumed(tree: Tree, examples: int) -> None:
    """A run that goes on with more replicates."""
    whole = simulate(tree)
    half = 8 * (tree["run"]["replicates"] // 16) or 8
    with tempfile.TemporaryDirectory() as folder:
        simulate(tree, out=folder, replicates=half)
        same_bits(whole, simulate(tree, out=folder, resume=True, threads=2), "whole and resumed")


def alone(tree: Tree, examples: int) -> None:
    """Conditions of a sweep in two orders, and one alone."""
    ((key, values),) = swept(tree).items()
    a = simulate(changed(tree, {key: None, "sweep": {key: values}}))
    b = simulate(changed(tree, {key: None, "sweep": {key: values[::-1]}}))
    c = simulate(changed(tree, {key: values[1]}))
    for name in sorted(set(a) & set(c)):
        if a[name].ndim and a[name].dtype.kind == "f" and name not in ("seconds", "weights_per_second", "controls_pilot_seconds", *a.result.swept):
            near(a[name], b[name][::-1], 0, f"{name} of a sweep and of the reversed one")
            near(a[name][1], c[name][0], 0, f"{name} of a condition in a sweep and alone")


def shards(tree: Tree, examples: int) -> None:
    """Two shards by the program, merged, against the package."""
    skip_if(not Path(PROGRAM).exists(), "the program is not built")
    skip_if(tree["run"]["seed"] % 2 != 0, "every other one, to save time")
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "s.toml", str(Path(folder) / "out")
        hl.scenario(tree).save(file)
        for one in ("1/2", "2/2"):
            program("run", str(file), "--shard", one, "--out", out, "--quiet", "--threads", "1")
        program("merge", out, "--out", out + "-merged", "--quiet")
        merged = hl.open(out + "-merged")
        a = simulate(tree)
        for name in sorted(set(a) & set(merged)):
            if a[name].dtype.kind == "f" and name not in ("seconds", "weights_per_second", "controls_pilot_seconds"):
                near(a[name], merged[name], 0, f"{name} of a run and merged shards")


def program(*arguments: str) -> None:
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True)
    require(done.returncode == 0, f"headlab {arguments[0]} ends with {done.returncode}: {done.stderr[-500:]}")


for layout in (threads, resumed, alone, shards):
    of_regression(layout)
    of_depth(layout)


# Stacks


@of_depth
def depth_cpu_and_reference(tree: Tree, examples: int) -> None:
    """docs/depth.md promises 1e-10."""
    skip_if("mlp" in tree["layers"], "a unit of the MLP may change sides")
    a, b = (simulate(tree, backend=backend) for backend in ("cpu", "reference"))
    for name in a:
        if name in METRICS:
            near(a[name], b[name], 1e-10 * np.maximum(1, np.abs(b[name])), f"{name} of cpu and reference")


METRICS = ("log_residual", "residual_squared", "mean_squared", "residual_share", "diameter", "dong", "cosine",
           "participation", "entropy", "dobrushin", "residual_factor", "self_weight", "rollout_dobrushin")


@of_depth
def depth_bounds(tree: Tree, examples: int) -> None:
    f = simulate(tree)
    n, d = int(f.of(0, "n")), int(f.of(0, "d"))
    for name, (low, high) in {
        "residual_share": (0.0, 1.0), "cosine": (-1.0, 1.0), "participation": (1.0, float(min(n, d))),
        "entropy": (0.0, math.log(n)), "dobrushin": (0.0, 1.0), "rollout_dobrushin": (0.0, 1.0), "self_weight": (0.0, 1.0),
    }.items():
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
    names = [n for n in ("residual_squared", "mean_squared", "log_residual", "cosine", "entropy", "diameter") if n in known]

    def compare(seed: int, replicates: int) -> Iterator[Comparison]:
        f = simulate(tree, seed=seed, replicates=replicates)
        dof = int(f["jackknife_nodes"].min()) - 1
        for name in names:
            # A bound is named as one (docs/depth.md), under another name.
            slack = 1e-8 * (1 + np.abs(known[name][0]))
            yield Comparison(name, f.of(0, name) - known[name][0], f.of(0, f"{name}_mcse"), slack, dof)

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


def same_metrics(a: Figures, b: Figures, what: str, factors: dict[str, float]) -> None:
    for name, factor in factors.items():
        near(factor * a[name], b[name], 1e-10 * np.maximum(1, np.abs(b[name])), f"{name} of {what}")


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

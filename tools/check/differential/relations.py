# SPDX-License-Identifier: Apache-2.0
"""Relations that hold within a run, and between backends, estimators, controls, closed forms and seeds.

Each takes a scenario without a sweep and the number of examples, raises Broken where it does not hold, and Skipped
where it says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import headlab as hl
import numpy as np
from registry import (
    TERMS,
    allowed,
    bounded,
    cost,
    enough,
    independent,
    learned,
    matrices,
    of_regression,
    optimal,
    paired,
    redrawn,
    size,
    skip_if,
    stages,
)
from runner import (
    EPS64,
    Comparison,
    Skipped,
    Tree,
    changed,
    hold_in_mcse,
    near,
    require,
    rounding,
    simulate,
)


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
    """Figures follow from the nodes by the formulas of docs/results.md."""
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
        between = table["comoment"].values[:, :, p].sum(axis=0)
        between = between + np.einsum("t,tq,tq->q", count, off[..., 0], off[..., 1])
        # The means are known to their own rounding, which counts times how far the other estimate goes.
        level, reach = np.abs(overall[:, at]), np.abs(off).max(axis=0)
        made_of = np.abs(between) / (total - 1) + (level * reach[:, ::-1]).sum(axis=1)
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


@of_regression
def cpu_and_reference(tree: Tree, examples: int) -> None:
    replicates = 16
    # Where the only key of a window is at its edge its weight is rounding.
    skip_if(bounded(tree["heads"]["kernel"]), "kernel of bounded support")
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
        off = 8 * scale * value * (1 + relative) + 2 * float(bound.of_noise.max())
        near(x[:, :-2], y[:, :-2], off, "cpu and reference")
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
    base = changed(tree, {"run.controls": None, "run.estimator": None})
    base["sweep"] = {"run.estimator": ["conditional", "plain"]}
    paired(base, TERMS, "run.estimator", enough(tree), examples)


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
    # So can exact forms of many pairs: with more than 12 at all queries first order has to do.
    pairs = cost(tree) * tree["heads"]["count"] // tree["data"]["n"]
    try:
        known = hl.theory(tree, source="auto" if pairs <= 12 else "first_order", threads=1)
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

# SPDX-License-Identifier: Apache-2.0
"""Changes of a scenario after which figures are known from those before."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

import numpy as np
from registry import (
    TERMS,
    at_points,
    given_heads,
    independent,
    learned,
    matrices,
    normal_covariance,
    of_regression,
    optimal,
    redrawn,
    scaled_design,
    size,
    skip_if,
    stages,
    unsteady,
)
from runner import (
    EPS64,
    Array,
    Skipped,
    Tree,
    changed,
    dimension,
    is_time,
    near,
    rounding,
    simulate,
)


@dataclasses.dataclass(frozen=True)
class Regression:
    """What changes in a regression law where x or m(x) does."""

    covectors: tuple[str, ...] = ()  #: multiply x
    points: tuple[str, ...] = ()  #: are of the space of x
    lengths: tuple[str, ...] = ()
    heights: tuple[str, ...] | None = ()  #: multiply m; None where no parameter does
    has_axes: bool = False


#: A law without a row is not tried.
REGRESSIONS = {
    "zero": Regression(),
    "linear": Regression(covectors=("coefficients",), heights=("coefficients",)),
    "cosines": Regression(covectors=("frequency",), heights=("amplitude",)),
    "random_cosines": Regression(lengths=("length_scale",), heights=None, has_axes=True),
    "additive": Regression(covectors=("frequency",), heights=("amplitude",), has_axes=True),
    "single_index": Regression(covectors=("direction",), heights=None),
    "bumps": Regression(points=("centres",), lengths=("widths",), heights=("heights",)),
    "step": Regression(covectors=("direction",), heights=("height",)),
    "file": Regression(),
}


def row_of(law: Tree) -> Regression:
    skip_if(law["law"] not in REGRESSIONS, "a regression without a row in REGRESSIONS")
    return REGRESSIONS[law["law"]]


def times(law: Tree, keys: Iterable[str], c: float) -> Tree:
    """With these parameters times c; 1 is the default of those that are left out."""
    return law | {key: np.multiply(law.get(key, 1.0), c).tolist() for key in keys}


def scaled_regression(law: Tree, c: float) -> Tree:
    """x -> m(x/c)"""
    row = row_of(law)
    return times(times(law, row.covectors, 1 / c), row.points + row.lengths, c)


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
    changes: Tree = {
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
    row = row_of(regression)
    skip_if(row.has_axes, "regression has axes")
    skip_if(regression["law"] == "step" and design["law"] == "file", "a step at a row")
    for key in row.covectors + row.points:
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
        if a[name].dtype.kind == "f" and not is_time(name):
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
    raise Skipped("regression is not a sum of cosines")


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
        more = {"amplitude": 3.0, "frequency": [0.0] * d, "phase": 0.0}
        other = changed(tree, {"data.regression": {"law": "cosines"} | {k: [*law[k], v] for k, v in more.items()}})
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
    law = tree["data"]["regression"]
    if law["law"] == "file":
        other = with_column(tree, lambda column: 2 * column)
    else:
        heights = row_of(law).heights
        if heights is None:
            raise Skipped("regression has one height")
        other = changed(tree, {"data.regression": times(law, heights, 2)})
    other = changed(other, {"data.noise.sd": 2 * tree["data"]["noise"]["sd"]})
    a, b = simulate(tree), simulate(other)
    for name in ("mse", "bias_squared", *TERMS):
        near(4 * a.of(0, name), b.of(0, name), 0, f"{name} of doubled responses")
        # The least normal number of float32 stands in MCSE, and does not double.
        mcse = 4 * a.of(0, f"{name}_mcse")
        near(mcse, b.of(0, f"{name}_mcse"), 2.0**-50 * np.abs(mcse), f"{name}_mcse of doubled responses")
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

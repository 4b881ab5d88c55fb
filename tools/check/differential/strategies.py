# SPDX-License-Identifier: Apache-2.0
"""Scenarios drawn from the whole grammar of docs/scenario.md, as Hypothesis strategies of dicts.

Numbers are eighths, which shrink to readable scenarios and coincide often, so that ties occur. Matrices come from a
seed, because a matrix with orthonormal columns or a positive definite one cannot be shrunk entry by entry.
"""

from __future__ import annotations

import tomllib
from typing import Any

import numpy as np
from headlab._engine import laws
from hypothesis import strategies as st

Tree = dict[str, Any]

#: Why a law is not drawn.
NOT_DRAWN: dict[str, dict[str, str]] = {
    "regression": {"formula": "the relations change parameters, which are inside its text"},
    "noise": {"formula": "the relations change parameters, which are inside its text"},
    "subspaces": {"file": "the matrices of `explicit`, read from a file"},
}

#: Examples of the laws drawn, by family: all that the program has. Other families have few laws, which the strategies
#: name.
LAWS: dict[str, dict[str, Tree]] = {
    family: {
        law: tomllib.loads(f"example = {{ {example} }}")["example"]
        for law, example in laws().get(family, {}).items()
        if law not in NOT_DRAWN.get(family, {})
    }
    for family in ("design", "regression", "noise", "subspaces", "kernel")
}


def eighths(low: float, high: float) -> st.SearchStrategy[float]:
    return st.integers(round(8 * low), round(8 * high)).map(lambda i: i / 8)


def vector(length: int, low: float = -2, high: float = 2) -> st.SearchStrategy[list[float]]:
    return st.lists(eighths(low, high), min_size=length, max_size=length)


def rows(count: int, length: int, low: float = -2, high: float = 2) -> st.SearchStrategy[list[list[float]]]:
    return st.lists(vector(length, low, high), min_size=count, max_size=count)


def orthonormal(seed: int, heads: int, d: int, k: int) -> list[list[list[float]]]:
    made: list[list[list[float]]] = np.linalg.qr(np.random.default_rng(seed).normal(size=(heads, d, k)))[0].tolist()
    return made


def covariance(seed: int, d: int) -> list[list[float]]:
    a = np.random.default_rng(seed).normal(size=(d, d))
    made: list[list[float]] = (a @ a.T / d + 0.25 * np.eye(d)).tolist()
    return made


def like_example(draw: st.DrawFn, value: Any, d: int) -> Any:
    """Parameters as in the example of a law, which has four dimensions, in d."""
    if isinstance(value, dict):
        return {name: d if name == "dim" else like_example(draw, member, d) for name, member in value.items()}
    if isinstance(value, list) and any(isinstance(one, list) for one in value):
        return [like_example(draw, one, d) for one in value]
    return draw(vector(d)) if isinstance(value, list) and len(value) == 4 else value


seeds = st.integers(0, 9)


def one_in(n: int) -> st.SearchStrategy[bool]:
    return st.integers(0, n - 1).map(lambda i: i == n - 1)


@st.composite
def designs(draw: st.DrawFn, d: int, column: bool, gaussian: bool = False) -> Tree:
    """A design of dimension d; with `column` a file with one more column for the regression."""
    laws = ["normal", "mixture"] if gaussian else [*LAWS["design"], "file"]
    law = "file" if column else draw(st.sampled_from(laws))
    made: Tree = {"law": law}
    if law == "mixture":
        parts = draw(st.integers(1, 3))
        share = draw(st.lists(st.integers(1, 4), min_size=parts, max_size=parts))
        made["weights"] = [s / sum(share) for s in share]
        made["means"] = draw(rows(parts, d))
        if draw(st.booleans()):
            made["covariances"] = [covariance(draw(seeds), d) for _ in range(parts)]
        return made
    if law == "file":
        count = draw(st.sampled_from([1, 2, 3, 7, 20, 100, 1000]))
        columns = d + column
        if count <= 3:
            made["path"] = np.array(draw(rows(count, columns)))
        else:
            rng = np.random.default_rng(draw(seeds))
            values = rng.normal(size=(count, columns))
            # Rounded to halves most rows of few columns occur more than once.
            made["path"] = np.round(2 * values) / 2 if draw(st.booleans()) else values
        if column:
            made["columns"] = list(range(d))
        if count > 3 and draw(st.booleans()):
            made["standardise"] = True
        return made
    made |= like_example(draw, LAWS["design"][law], d)
    if law == "student_t":
        made["df"] = draw(st.sampled_from([1.0, 2.5, 5.0, 30.0]))
    if law == "normal":
        if draw(st.booleans()):
            made["mean"] = draw(vector(d))
        kind = draw(st.sampled_from(["", "covariance", "ar1"]))
        if kind == "covariance":
            made["covariance"] = covariance(draw(seeds), d)
        elif kind == "ar1":
            made["ar1"] = draw(eighths(-0.75, 0.75))
    return made


@st.composite
def regressions(draw: st.DrawFn, d: int) -> Tree:
    law = draw(st.sampled_from([law for law in LAWS["regression"] if law != "file"]))
    made: Tree = {"law": law}
    terms = draw(st.integers(1, 2))
    if law == "cosines":
        made |= {"amplitude": draw(vector(terms)), "frequency": draw(rows(terms, d))}
        made |= draw(st.sampled_from([{}, {"phase": [0.5] * terms}]))
    elif law == "random_cosines":
        made |= {"length_scale": draw(eighths(0.5, 4)), "terms": draw(st.sampled_from([1, 5, 64]))}
        made |= draw(st.sampled_from([{}, {"smoothness": 1.5}])) | {"seed": draw(seeds)}
    elif law == "single_index":
        made |= {"direction": draw(vector(d)), "frequency": draw(eighths(0, 3))}
    elif law == "bumps":
        made |= {"heights": draw(vector(terms)), "centres": draw(rows(terms, d))}
        made["widths"] = draw(vector(terms, 0.25, 2))
    elif law == "step":
        made |= {"direction": draw(vector(d)), "threshold": draw(eighths(-1, 1)), "height": draw(eighths(-2, 2))}
    else:
        made |= like_example(draw, LAWS["regression"][law], d)
    return made


@st.composite
def noises(draw: st.DrawFn, d: int) -> Tree:
    law = draw(st.sampled_from([*LAWS["noise"]]))
    sd = draw(eighths(0, 2))
    made: Tree = {"law": law, **like_example(draw, LAWS["noise"][law], d), "sd": sd}
    if law == "student_t":
        made["df"] = draw(st.sampled_from([2.5, 5.0, 30.0]))
    if law == "heteroscedastic":
        made["slope"] = draw(eighths(0, 2))
    return made


@st.composite
def subspaces(draw: st.DrawFn, heads: int, d: int, k: int, softmax: bool, redraw: bool, learned: bool) -> Tree:
    not_here = [] if learned else ["learned"]
    if heads * k > d:
        not_here += ["orthogonal", "principal_angles", "equiangular", "blocks"]
    law = draw(st.sampled_from([law for law in LAWS["subspaces"] if law not in not_here]))
    made: Tree = {"law": law}
    if law in ("haar", "coordinates"):
        made |= {"seed": draw(seeds)} | ({"redraw": True} if redraw else {})
    elif law == "principal_angles":
        made["angles"] = [min(1.5, a) for a in draw(vector(k, 0, 1.5))]
    elif law == "equiangular":
        made["angle"] = draw(eighths(0.125, 1.5))
    elif law == "blocks":
        made["sizes"] = [k, *draw(st.lists(st.integers(1, k), min_size=heads - 1, max_size=heads - 1))]
    elif law == "explicit":
        seed = draw(seeds)
        made["matrices"] = orthonormal(seed, heads, d, k)
        if softmax and draw(st.booleans()):
            made["query_matrices"] = orthonormal(seed + 1, heads, d, k)
    elif law == "learned":
        made |= {"steps": 3, "batch": 4, "start": draw(st.sampled_from(["identical", "haar"]))}
        made |= {"fit": draw(st.sampled_from(["once", "per_replicate"])), "seed": draw(seeds)}
    else:
        made |= like_example(draw, LAWS["subspaces"][law], d)
    return made


@st.composite
def kernels(draw: st.DrawFn, gaussian: bool) -> Tree:
    law = draw(st.sampled_from(["gaussian", "softmax"] if gaussian else [*LAWS["kernel"]]))
    scale = draw(st.sampled_from([1.0, 0.5, 2.0, 0.125, 5.0, 100.0]))
    return {"law": law, **{parameter: scale for parameter in LAWS["kernel"][law]}}


@st.composite
def mechanisms(draw: st.DrawFn, heads: int, k: int, kernel: str) -> Tree:
    whole = st.sampled_from([1, 2, 3, 5, 20])
    stages: dict[str, st.SearchStrategy[Any]] = {
        "transform": st.one_of(
            st.fixed_dictionaries({"mix": eighths(-1, 1)}),
            seeds.map(lambda s: {"matrix": np.random.default_rng(s).normal(size=(k, k)).tolist()}),
        ),
        "merge": st.one_of(whole, st.fixed_dictionaries({"stride": whole, "gate": eighths(0.125, 1)})),
        "window": st.one_of(whole, st.lists(whole, min_size=heads, max_size=heads)),
        "skip": st.sampled_from([0, 1, 2]),
        "keep": st.one_of(
            st.fixed_dictionaries({"top": whole}),
            st.fixed_dictionaries({"fraction": eighths(0.125, 1)}),
            st.fixed_dictionaries({"ratio": eighths(0.125, 1)}),
            st.fixed_dictionaries({"block": whole, "top": whole, "by": st.sampled_from(["mass", "pooled"])}),
            st.fixed_dictionaries({"top": whole, "union": st.just(True)}),
        ),
    }
    if kernel in ("gaussian", "softmax"):
        stages["levels"] = st.sampled_from([{"weights": w} for w in ([1.0], [0.5, 0.5], [0.5, 0.25, 0.25])])
    if kernel == "softmax":
        by = st.sampled_from(["kq_svd", "k_svd", "joint"])
        stages["compress"] = st.fixed_dictionaries({"by": by, "rank": st.integers(1, k), "centre": st.booleans()})
    names = draw(st.lists(st.sampled_from(sorted(stages)), max_size=3, unique=True))
    made = {name: draw(stages[name]) for name in names}
    if "window" in made:
        made |= draw(st.sampled_from([{}, {"sinks": 1}, {"sinks": 2}]))
    return made


@st.composite
def regression_studies(draw: st.DrawFn) -> Tree:
    # Half of the studies have laws with closed forms: the sharpest relations need them.
    closed = draw(st.booleans())
    d = draw(st.integers(1, 4))
    heads = draw(st.sampled_from([1, 2, 3, 4, 7]))
    k = draw(st.integers(1, d))
    column = not closed and draw(one_in(8))
    redraw = not closed and draw(one_in(5))
    data: Tree = {
        "n": draw(st.sampled_from([1, 2, 3, 8, 12, 30, 64, 300])),
        "design": draw(designs(d, column, closed)),
        "regression": {"law": "file", "column": d} if column else draw(regressions(d)),
        "noise": draw(noises(d)),
    }
    law = data["design"]["law"]
    if law == "normal" and draw(one_in(5)):
        data["sequence"] = {"law": "ar1", "correlation": draw(eighths(-0.875, 0.875))}
    if law == "file" and len(data["design"]["path"]) >= data["n"] and draw(st.booleans()):
        data["sequence"] = {"law": "rows"}
    if draw(one_in(5)):
        data |= {"fixed_design": True, "design_seed": draw(seeds)}
    kernel = draw(kernels(closed))
    space = draw(subspaces(heads, d, k, kernel["law"] == "softmax", redraw, not closed and draw(one_in(3))))
    group: Tree = {"count": heads, "dim": k, "subspaces": space, "kernel": kernel}
    learned = space["law"] == "learned"
    pilot = {"law": "optimal", "replicates": 100}
    pilots = not redraw and not learned and draw(one_in(6))
    group["weights"] = draw(
        st.one_of(
            st.just({"law": "uniform"}),
            st.builds(lambda v: {"law": "explicit", "values": v}, vector(heads)),
            st.builds(lambda r: {"law": "geometric", "ratio": r}, eighths(0.25, 2)),
            *([st.just(pilot)] * pilots),
        )
    )
    if not learned and draw(one_in(3)):
        stages = draw(mechanisms(heads, k, kernel["law"]))
        if stages:
            group["mechanism"] = stages
    if column or draw(one_in(4)):
        queries: Tree = {"law": "design", "count": draw(st.integers(1, 3)), "seed": draw(seeds)}
        queries |= {"redraw": True} if redraw else {}
    else:
        far = draw(st.sampled_from([1, 1, 1, 8, 64]))
        points = draw(rows(draw(st.integers(1, 3)), d))
        queries = {"law": "points", "points": [[far * x for x in point] for point in points]}
    run: Tree = {
        "seed": draw(st.integers(0, 99)),
        "replicates": draw(st.sampled_from([8, 16, 64, 264] if redraw else [8, 9, 50, 255, 256, 300])),
        "estimator": draw(st.sampled_from(["conditional", "plain"])),
        "moments": draw(st.sampled_from(["pairwise", "pairwise", "aggregate"])),
    }
    if run["estimator"] == "conditional" and draw(st.booleans()):
        run["controls"] = "exact"
    return {"scenario": {"name": "drawn"}, "data": data, "heads": group, "queries": queries, "run": run}


@st.composite
def stacks(draw: st.DrawFn) -> Tree:
    d = draw(st.integers(1, 4))
    heads = draw(st.integers(1, 3))
    n = draw(st.sampled_from([1, 2, 3, 5, 9]))
    tokens: Tree = {"n": n}
    # A third each: any stack, one with the recursion of equiangular tokens, one with fresh Gaussian maps.
    form = draw(st.sampled_from(["any", "recursion", "fresh"]))
    law = "simplex" if form == "recursion" else draw(st.sampled_from(["points", "simplex", "design"]))
    if law == "points":
        tokens["design"] = {"law": "points", "points": draw(rows(n, d))}
    elif law == "simplex":
        d = max(d, n)
        tokens["design"] = {"law": "simplex", "dim": d, "rho": draw(eighths(0.125, 2)), "mu": draw(eighths(0, 2))}
    else:
        tokens["design"] = draw(designs(d, column=False))
    kinds = {"any": ["softmax", "softmax", "uniform", "independent_logits", "fixed"], "recursion": ["softmax"]}
    law = draw(st.sampled_from(kinds.get(form, ["uniform", "independent_logits", "fixed"])))
    kernel: Tree = {"law": law}
    if law == "softmax":
        kernel["temperature"] = draw(eighths(0.5, 4))
    elif law == "independent_logits":
        kernel |= {"sd": draw(eighths(0, 3)), "correlation": draw(eighths(0, 1))}
    elif law == "fixed":
        share = np.random.default_rng(draw(seeds)).integers(1, 9, size=(heads, n, n)).astype(float)
        kernel["matrices"] = (share / share.sum(axis=2, keepdims=True)).tolist()
    averaged = draw(one_in(3))
    values = 1 if averaged else heads
    group: Tree = {"count": heads, "kernel": kernel, "values": "averaged" if averaged else "independent"}
    maps_of = {"any": ["gaussian", "scaled_identity", "explicit"], "recursion": ["scaled_identity"]}
    law = draw(st.sampled_from(maps_of.get(form, ["gaussian"])))
    maps: Tree = {"law": law}
    if law == "gaussian":
        group["dim"] = draw(st.integers(1, d))
        maps["value"] = draw(eighths(0.125, 2))
    elif law == "scaled_identity":
        maps["value"] = draw(vector(values))
    else:
        maps["value"] = draw(st.lists(rows(d, d), min_size=values, max_size=values))
    if kernel["law"] == "softmax":
        single = draw(eighths(-1, 1))
        identity = (single * np.eye(d)).tolist()
        maps["query_key"] = {
            "gaussian": abs(single),
            "scaled_identity": [single] * heads,
            "explicit": [identity] * heads,
        }[law]
    group["maps"] = maps
    if not averaged and draw(one_in(3)):
        group["order"] = "alternating"
    layers: Tree = {"count": draw(st.integers(1, 5))}
    layers |= {"skip": draw(eighths(0, 1)), "branch": draw(eighths(0.125, 1))}
    if form == "recursion" and draw(st.booleans()):
        layers["norm"] = {"law": "rms", "place": draw(st.sampled_from(["pre", "post"]))}
    if kernel["law"] == "softmax" and draw(st.booleans()):
        layers["memory"] = draw(eighths(0, 1))
    if form == "any":
        if draw(st.booleans()):
            place = draw(st.sampled_from(["pre", "post"]))
            layers["norm"] = {"law": draw(st.sampled_from(["rms", "layer"])), "place": place, "epsilon": 0.125}
        if draw(st.booleans()):
            layers["mask"] = "causal"
        if draw(st.booleans()):
            layers["mlp"] = {"law": "relu", "width": draw(st.integers(1, 5)), "bias": 0.5}
        if draw(st.booleans()):
            layers["weights"] = "shared"
    run: Tree = {"seed": draw(st.integers(0, 99)), "replicates": draw(st.sampled_from([8, 9, 50, 256, 300]))}
    return {"scenario": {"name": "drawn"}, "tokens": tokens, "heads": group, "layers": layers, "run": run}

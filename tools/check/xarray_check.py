#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens results.nc as a user would and recomputes its figures from the nodes.

xarray_check.py HEADLAB: runs HEADLAB on small studies in a temporary folder. Exit code 77 where
xarray is not installed.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import xarray as xr
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

from commands import WORLD, require

SCENARIO = WORLD.replace("dim = 2", "dim = 1") + """replicates = 1029
[sweep]
"heads.count" = [1, 3]
"run.estimator" = ["conditional", "plain"]
"""

PROVENANCE = [
    "title", "created", "format_version", "headlab_version", "git", "seed", "scenario_text",
    "set_arguments", "backend", "simd", "device", "compiler", "threads", "complete", "Conventions",
]


def merge(parts):
    """Moments (count, mean, comoment) of nodes taken together; pairs as (first, second)."""
    count, mean, comoment, first, second = parts[0]
    for more, mean_more, comoment_more, _, _ in parts[1:]:
        total = count + more
        delta = mean_more - mean
        product = delta[:, first] * delta[:, second]
        comoment = comoment + comoment_more + product * (count * more / total)
        mean = mean + delta * (more / total)
        count = total
    return count, mean, comoment


def mse_and_correlation(condition, nodes, parts):
    """MSE and output correlation, means over queries, of a condition with pairwise moments."""
    count, mean, comoment = merge(parts)
    weights = condition.head_weights.values
    heads = len(weights)
    first, second = nodes.pair_first.values, nodes.pair_second.values
    between = np.zeros((len(mean), heads, heads))
    noise = np.zeros_like(between)
    for p, (g, l) in enumerate(zip(first, second)):
        between[:, g, l] = between[:, l, g] = comoment[:, p] / (count - 1)
        if f"noise_{g}_{l}" in nodes.statistic:
            noise[:, g, l] = noise[:, l, g] = mean[:, heads + p]
    covariance = between + noise
    plugin = (mean[:, :heads] @ weights - condition.truth.values) ** 2
    variance_of_mean = np.einsum("g,qgl,l->q", weights, between, weights) / count
    mse = plugin - variance_of_mean + np.einsum("g,qgl,l->q", weights, covariance, weights)
    own = np.einsum("qhh->qh", covariance).mean()
    if heads == 1:
        return np.array([mse.mean(), np.nan])
    cross = (covariance.sum(axis=(1, 2)) - np.einsum("qhh->q", covariance)).mean()
    return np.array([mse.mean(), cross / (heads * (heads - 1)) / own])


def jackknife(counts, full, left_out):
    """Delete-one jackknife over groups, weighted by their counts (Busing, Meijer and van der Leeden
    1999)."""
    h = (counts.sum() / counts)[:, None]
    centre = len(counts) * full - ((1 - 1 / h) * left_out).sum(axis=0)
    pseudo = h * full - (h - 1) * left_out
    return np.sqrt(((pseudo - centre) ** 2 / (h - 1)).mean(axis=0))


def figures_of_draws(nodes):
    """MSE and output correlation of nodes that hold figures of draws."""
    mean = np.average(nodes["mean"].values, axis=0, weights=nodes["count"].values)
    of = dict(zip(nodes.statistic.values, mean))
    return np.array([of["bias_squared"] + of["variance_term"] + of["covariance_term"],
                     of["head_covariance_mean"] / of["head_variance_mean"]])


def recompute_draws(nodes):
    """The same with their Monte Carlo standard errors."""
    groups = nodes.jackknife.values
    each = range(groups.max() + 1)
    full = figures_of_draws(nodes)
    left_out = np.array([figures_of_draws(nodes.isel(node=groups != g)) for g in each])
    counts = np.array([float(nodes["count"].values[groups == g].sum()) for g in each])
    return full, jackknife(counts, full, left_out)


def recompute(condition, nodes):
    """The two figures above with their Monte Carlo standard errors, from the nodes of a condition."""
    first, second = nodes.pair_first.values, nodes.pair_second.values
    parts = [
        (float(nodes["count"][i]), nodes["mean"].values[i], nodes.comoment.values[i], first, second)
        for i in range(nodes.sizes["node"])
    ]
    index = nodes.jackknife.values
    groups = [[part for part, j in zip(parts, index) if j == g] for g in range(index.max() + 1)]
    full = mse_and_correlation(condition, nodes, parts)
    counts = np.array([sum(part[0] for part in group) for group in groups])
    left_out = np.array([
        mse_and_correlation(condition, nodes, [n for h, group in enumerate(groups) if h != g for n in group])
        for g in range(len(groups))
    ])
    return full, jackknife(counts, full, left_out)


def close(a, b, tolerance=1e-9):
    """True within a relative tolerance, or where both are NaN; False for one NaN."""
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return abs(a - b) <= tolerance * max(abs(a), abs(b))


def check_variables(dataset, where):
    for name, variable in dataset.variables.items():
        require(variable.attrs.get("long_name"), f"{name} of {where} has no long_name")
        if variable.dtype.kind in "fi":
            require("units" in variable.attrs, f"{name} of {where} has no units")
        if variable.dtype.kind == "f":
            require(np.isnan(variable.encoding["_FillValue"]), f"{name} of {where} has no _FillValue")


def check_conditions(path, root, summary, group):
    """Recomputes the figures of the conditions that stand in `group` ("" for the root)."""
    within = f"{group}/" if group else ""
    arrays = xr.load_dataset(path, group=group or None)
    nodes = xr.load_dataset(path, group=f"{within}nodes")
    check_variables(arrays, group or "the root")
    check_variables(nodes, f"{within}nodes")
    require(arrays.head_covariance.dims == ("condition", "query", "head", "head_2"), "axes differ")
    numbers = arrays.condition.values if group else np.arange(root.sizes["condition"])
    for row, number in enumerate(numbers):
        of_condition = nodes.isel(node=nodes.condition.values == number)
        require(int(of_condition["count"].sum()) == 1029, "replicates are lost")
        figures, errors = recompute(arrays.isel(condition=row), of_condition)
        for j, name in enumerate(["mse", "output_correlation"]):
            expected = summary["conditions"][number][name]
            nan_if_null = lambda value: math.nan if value is None else value
            value, mcse = nan_if_null(expected["value"]), nan_if_null(expected["mcse"])
            require(float(root[name][number]) == value or math.isnan(value), f"{name} differs in root")
            require(close(figures[j], value), f"{name} of condition {number}: {figures[j]} is not {value}")
            require(close(errors[j], mcse, 1e-6), f"its MCSE: {errors[j]} is not {mcse}")
        # The control: one node changed is seen.
        of_condition["mean"][0, 0, 0] += 1
        require(not close(recompute(arrays.isel(condition=row), of_condition)[0][0],
                          summary["conditions"][number]["mse"]["value"]),
                "a changed node was not seen")
    return [int(number) for number in numbers]


def check(path, summary):
    """A sweep of four moment layouts, each in a group of its own."""
    root = xr.load_dataset(path)
    require(dict(root.sizes) == dict(condition=4), f"dimensions are {dict(root.sizes)}")
    for name in PROVENANCE:
        require(name in root.attrs, f"attribute {name} is missing")
    require(root.attrs["format_version"] == 3, "the format version differs")
    require(root.attrs["scenario_text"] == SCENARIO, "the scenario text differs")
    require(root.attrs["results_id"] == summary["results_id"], "the files are of two states of a run")
    require(root.attrs["complete"] == 1, "the run is not complete")
    require(root.attrs["seed"] == 7, "the seed differs")
    check_variables(root, "the root")
    require(set(root.coords) == {"count", "run_estimator"}, f"coordinates are {set(root.coords)}")
    require(root.mse.set_index(condition="count").sel(condition=3).sizes["condition"] == 2,
            "a swept parameter selects nothing")
    require(list(root["heads.count"].values) == [1, 1, 3, 3], "swept numbers differ")
    require(list(root["run.estimator"].values) == ["conditional", "plain"] * 2,
            "swept texts differ")
    seen = [number for i in range(4) for number in check_conditions(path, root, summary, f"layout_{i}")]
    require(seen == [0, 1, 2, 3], f"the groups hold conditions {seen}")


def check_one_layout(path, summary):
    """A sweep of one moment layout, which stands in the root."""
    root = xr.load_dataset(path)
    require(dict(root.sizes) == dict(condition=2, query=2, head=2, head_2=2, coordinate=4, dim=1),
            f"dimensions are {dict(root.sizes)}")
    require(check_conditions(path, root, summary, "") == [0, 1], "conditions are missing")


def check_draws(path, summary):
    """Heads that are drawn again for every leaf."""
    root = xr.load_dataset(path)
    nodes = xr.load_dataset(path, group="nodes")
    check_variables(nodes, "nodes")
    require(list(root.redraw.values) == ["heads"], "redraw differs")
    require(nodes["mean"].dims == ("node", "statistic"), "axes differ")
    require("comoment" not in nodes, "draws have comoments")
    require((nodes["count"].values % 8 == 0).all(), "a node splits a draw")
    require(np.isnan(root.query_mse).all() and "projections" not in root,
            "figures of queries or heads are there")
    figures, errors = recompute_draws(nodes)
    for j, name in enumerate(["mse", "output_correlation"]):
        expected = summary["conditions"][0][name]
        require(close(figures[j], expected["value"]), f"{name}: {figures[j]} is not {expected}")
        require(close(errors[j], expected["mcse"], 1e-6), f"its MCSE: {errors[j]} is not {expected}")
    nodes["mean"][0, 0] += 1
    require(not close(recompute_draws(nodes)[0][0], summary["conditions"][0]["mse"]["value"]),
            "a changed node was not seen")


def run(program, folder, *more):
    scenario = pathlib.Path(folder, "study.toml")
    scenario.write_text(SCENARIO)
    subprocess.run([program, "run", str(scenario), "--out", folder, *more], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    summary = json.loads(pathlib.Path(folder, "summary.json").read_text())
    path = pathlib.Path(folder, "results.nc")
    header = subprocess.run(["ncdump", "-h", str(path)], check=True, capture_output=True,
                            text=True).stdout
    return path, summary, header


def main(program):
    with tempfile.TemporaryDirectory() as folder:
        path, summary, header = run(program, folder)
        check(path, summary)
        for word in ["group: layout_3", "double mse(condition)",
                     "double mean(node, query, statistic)"]:
            require(word in header, f"ncdump does not show {word}")
    with tempfile.TemporaryDirectory() as folder:
        path, summary, header = run(program, folder, "--set", "sweep={ \"heads.kernel.bandwidth\" = [0.5, 0.8] }")
        check_one_layout(path, summary)
        require("group: layout_0" not in header, "one layout has a group of its own")
    with tempfile.TemporaryDirectory() as folder:
        path, summary, _ = run(program, folder, "--set", "sweep={}", "--replicates", "1096", "--set",
                               "heads.subspaces={law=\"haar\", redraw=true}")
        check_draws(path, summary)
    print("results.nc opens in xarray and ncdump, and its figures follow from its nodes")


if __name__ == "__main__":
    main(sys.argv[1])

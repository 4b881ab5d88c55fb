#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plots of docs/measured/benchmarks.md from measured rates and times.

tools/bench/plots.py [--figures DIR] [--plots DIR]

DIR has bench.json, peers.json and time_to_se.json, as tools/bench/measure writes them; a plot whose file
is not there is left out. Exit status: 0 plots made, 2 none.
"""
import argparse
import json
import math
import os
import re
import statistics
import sys

from common import ROOT, Stop, ended

# Okabe and Ito's colours, told apart with any colour vision.
BLACK, ORANGE, SKY, GREEN, BLUE, RED, PURPLE, GREY = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7", "#888888")
HEADS = 8
NAMES = {"mse": "MSE", "bias_squared": "bias²", "head_variance_mean": "head variance", "head_covariance_mean": "head covariance",
         "difference": "difference of\ntwo MSEs"}


# ---- Figures ----


def read(folder, name):
    """A JSON file of figures, or None where it is not there."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise Stop(f"{path}: no figures can be read from it ({error})") from error


class Bench:
    """What headlab_bench wrote. The best of a benchmark's repetitions is what an undisturbed machine comes
    near to, and what is compared with a limit that is measured in the same way."""

    def __init__(self, report):
        self.date = report["context"]["date"][:10]
        self.runs = {}
        for run in report["benchmarks"]:
            if run.get("run_type", "iteration") == "iteration" and "error_occurred" not in run:
                self.runs.setdefault(run["run_name"].replace("/real_time", ""), []).append(run)

    def values(self, name, counter="weights/s"):
        """Of each repetition. Counter "seconds": wall time of a loop round."""
        return [run["real_time"] * 1e-3 if counter == "seconds" else run[counter] for run in self.runs.get(name, [])]

    def best(self, name, counter="weights/s"):
        """The highest rate, or the shortest time; NaN where it was not measured."""
        return (min if counter == "seconds" else max)(self.values(name, counter), default=math.nan)

    def median(self, name, counter="weights/s"):
        values = self.values(name, counter)
        return statistics.median(values) if values else math.nan

    def peak(self, threads=1):
        """Multiply-adds a second."""
        return self.best(f"peak_fma/threads:{threads}", "FMA/s")

    def limit(self, k, estimator="plain", moments="pairwise", threads=1):
        """Weights a second at the peak: k multiply-adds for the product, 10 for an exponential of one's own
        (degree 6), the rest for the sums."""
        operations = k + 12
        if estimator == "conditional":
            operations += (HEADS + 1) / 2 if moments == "pairwise" else 2
        return self.peak(threads) / operations

    def dims(self, pattern):
        """d_k of the benchmarks of a name, in which {} stands for it."""
        matcher = re.compile("^" + re.escape(pattern).replace(r"\{\}", r"(\d+)") + "$")
        return sorted(int(found[1]) for found in map(matcher.match, self.runs) if found)

    def shares(self, name, *limit):
        """Of the limit, in per cent: the best repetition's and the median."""
        return tuple(100 * rate / self.limit(*limit) for rate in (self.best(name), self.median(name)))

    def scaling(self, what):
        """Sizes and median seconds: what is compared with itself gains nothing from its luckiest run."""
        sizes = self.dims(f"scaling/{what}:{{}}")
        return sizes, [self.median(f"scaling/{what}:{size}", "seconds") for size in sizes]


def exponent(sizes, seconds):
    """Slope in logarithms over the upper half of the sizes, where what is fixed no longer counts."""
    first = len(sizes) // 2
    x, y = ([math.log(v) for v in values[first:]] for values in (sizes, seconds))
    if len(x) < 2:
        return math.nan
    mean_x, mean_y = statistics.fmean(x), statistics.fmean(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


# ---- Plots ----


def style(plt):
    plt.rcParams.update({
        "font.size": 9, "axes.titlesize": 9.5, "axes.spines.top": False, "axes.spines.right": False, "legend.frameon": False,
        "legend.fontsize": 8, "lines.markersize": 4, "lines.linewidth": 1.4, "axes.grid": True, "grid.color": "#e6e6e6",
        "grid.linewidth": 0.6, "axes.axisbelow": True, "svg.hashsalt": "headlab", "figure.constrained_layout.use": True,
        "figure.facecolor": "white"})


def number_axis(axis, ticks):
    """The ticks given, as they stand, on a logarithmic axis."""
    axis.set_ticks(ticks, [f"{tick:g}" for tick in ticks], minor=False)
    axis.set_ticks([], minor=True)


def one_two_five(axes):
    """Ticks 1, 2, 5, 10, ... on a logarithmic y axis."""
    low, high = axes.get_ylim()
    number_axis(axes.yaxis, [tick for power in range(-4, 7) for tick in (10.0 ** power, 2 * 10.0 ** power, 5 * 10.0 ** power)
                             if low <= tick <= high])


def dims_axis(axes, dims):
    axes.set_xscale("log")
    number_axis(axes.xaxis, dims)
    axes.set_xlabel("dimension of a head d_k")


def plot_rates(plt, bench):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4.2))
    dims = bench.dims("cpu_core/k:{}")
    left.plot(dims, [bench.limit(k) / 1e9 for k in dims], color=BLACK, linestyle="--", label="limit, plain estimator")
    series = [("core loop", "cpu_core/k:{}", BLUE, "o"), ("projection and core loop", "cpu_given_x/k:{}/threads:1", GREEN, "s"),
              ("whole job", "cpu/plain/pairwise/k:{}/threads:1", RED, "D"),
              ("plain C++ loop, -ffast-math", "plain_loop_fast_math/k:{}", ORANGE, "^"), ("plain C++ loop", "plain_loop/k:{}", GREY, "v")]
    for label, pattern, colour, marker in series:
        found = bench.dims(pattern)
        left.plot(found, [bench.best(pattern.format(k)) / 1e9 for k in found], color=colour, marker=marker, label=label)
    left.set_yscale("log")
    one_two_five(left)
    left.set_ylabel("10⁹ weights / s, one thread")
    left.set_title("Rates of the plain estimator", loc="left")
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    dims_axis(left, dims)
    jobs = [("core loop, plain", "cpu_core/k:{}", "plain", "pairwise", BLUE, "o", "-"),
            ("projection and core loop, plain", "cpu_given_x/k:{}/threads:1", "plain", "pairwise", GREEN, "s", "-")]
    for (estimator, moments), (colour, marker, line) in zip(
            ((e, m) for e in ("plain", "conditional") for m in ("pairwise", "aggregate")),
            ((RED, "D", "-"), (RED, "D", ":"), (PURPLE, "P", "-"), (PURPLE, "P", ":"))):
        jobs.append((f"whole job, {estimator}, {moments}", f"cpu/{estimator}/{moments}/k:{{}}/threads:1", estimator, moments, colour, marker, line))
    for label, pattern, estimator, moments, colour, marker, line in jobs:
        found = bench.dims(pattern)
        best, median = zip(*(bench.shares(pattern.format(k), k, estimator, moments) for k in found))
        right.errorbar(found, best, yerr=([b - m for b, m in zip(best, median)], [0] * len(found)), color=colour, marker=marker,
                       linestyle=line, elinewidth=0.7, label=label)
    right.axhline(100, color=BLACK, linestyle="--", linewidth=1)
    right.set_ylim(0, max(119, 1.05 * right.get_ylim()[1]))
    right.set_ylabel("% of the limit, one thread")
    right.set_title("Share of each estimator's limit; bars reach down to medians", loc="left")
    right.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2)
    dims_axis(right, dims)
    return figure


def plot_scaling(plt, bench):
    titles = {"n": "training points n", "R": "replicates R", "H": "heads H (aggregate moments)", "Q": "queries Q"}
    figure, grid = plt.subplots(1, 5, figsize=(12.5, 2.9))
    for axes, (what, title) in zip(grid, titles.items()):
        sizes, seconds = bench.scaling(what)
        if not sizes:
            continue
        axes.loglog(sizes, [1e3 * s for s in seconds], color=BLUE, marker="o")
        # Slope 1 through the largest size.
        guide = [1e3 * seconds[-1] * size / sizes[-1] for size in sizes]
        shown = [(x, y) for x, y in zip(sizes, guide) if y > 1e3 * min(seconds) / 3]
        axes.loglog(*zip(*shown), color=GREY, linestyle="--", linewidth=1, zorder=1, label="in proportion")
        if max(seconds) < 200 * min(seconds):
            one_two_five(axes)
        axes.set_title(f"time ∝ ${what}^{{{exponent(sizes, seconds):.2f}}}$", loc="left")
        axes.set_xlabel(title)
    grid[0].set_ylabel("time of a whole job, ms")
    grid[0].legend(loc="upper left", handlelength=1.5)
    sizes, seconds = bench.scaling("threads")
    if sizes:
        axes = grid[4]
        axes.plot(sizes, [seconds[0] / s for s in seconds], color=BLUE, marker="o")
        axes.plot(sizes, sizes, color=GREY, linestyle="--", linewidth=1, zorder=1)
        axes.set_xscale("log")
        axes.set_yscale("log")
        number_axis(axes.xaxis, sizes)
        number_axis(axes.yaxis, sizes)
        axes.set_xlim(0.9, sizes[-1] * 1.1)
        axes.set_ylim(0.9, sizes[-1] * 1.1)
        axes.set_title(f"{seconds[0] / seconds[-1]:.2f} times on {sizes[-1]}", loc="left")
        axes.set_xlabel("threads")
        axes.set_ylabel("speed-up")
    return figure


def plot_peers(plt, peers):
    threads = peers["threads"]
    titles = {"given_x": "projection and means from given X", "whole_job": "whole jobs, drawing X and Y too"}
    figure, grid = plt.subplots(len(threads), 2, figsize=(8.5, 2.9 * len(threads) + 0.3), squeeze=False, sharex=True, sharey=True)
    looks = {"headlab": (BLACK, "o"), "PyTorch attention": (RED, "s"), "PyTorch GEMM": (ORANGE, "^"), "PyTorch cdist": (PURPLE, "v"),
             "NumPy GEMM": (BLUE, "D"), "KeOps": (GREEN, "P"), "JAX": (SKY, "X")}
    for line, count in zip(grid, threads):
        for axes, (table, title) in zip(line, titles.items()):
            rows = [row for row in peers["rows"] if row["table"] == table and row["threads"] == count]
            for name, (colour, marker) in looks.items():
                points = [(row["d_k"], row["headlab"] if name == "headlab" else peer["rate"]) for row in rows
                          for peer in ([{"name": "headlab"}] + row["peers"]) if peer["name"] == name]
                if points:
                    axes.plot([k for k, _ in points], [rate / 1e9 for _, rate in points], color=colour, marker=marker, label=name,
                              linewidth=2.2 if name == "headlab" else 1.2)
            axes.set_yscale("log")
            axes.set_title(f"{title}, {count} thread{'s' if count > 1 else ''}", loc="left")
            axes.set_xscale("log")
            number_axis(axes.xaxis, peers["dims"])
    for line in grid:
        one_two_five(line[0])
        line[0].set_ylabel("10⁹ weights / s")
    for axes in grid[-1]:
        axes.set_xlabel("dimension of a head d_k")
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside right center")
    return figure


def plot_time_to_se(plt, report):
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4))
    looks = {"NumPy, plain": (ORANGE, "^"), "NumPy, conditional": (SKY, "v"), "headlab, plain": (RED, "s"),
             "headlab, conditional": (BLUE, "o")}
    rows = ["mse", "bias_squared", "head_variance_mean", "head_covariance_mean", "independent", "common"]
    labels = [NAMES.get(name, f"difference of two MSEs,\n{name} draws") for name in rows]
    for name, (colour, marker) in looks.items():
        result = report["programs"][name]
        entries = {**result["components"], **result["difference"]}
        left.plot([entries[row]["seconds_to_aim"] for row in rows], range(len(rows)), color=colour, marker=marker, markersize=6,
                  linestyle="none", label=name)
    left.set_xscale("log")
    left.set_yticks(range(len(rows)), labels)
    left.invert_yaxis()
    left.set_xlabel(f"time to a standard error of 1 %, s, {report['threads']} thread{'s' if report['threads'] > 1 else ''}")
    left.legend(loc="upper center", bbox_to_anchor=(0.35, 1.2), ncols=2)
    # Factors multiply: on a logarithmic axis their bars stand end to end.
    names = list(report["causes"])
    for position, name in enumerate(names):
        start = 1.0
        for cause, colour in (("kernel speed", BLUE), ("conditioning", ORANGE), ("common draws", GREEN)):
            factor = report["causes"][name].get(cause)
            if factor is None:
                continue
            right.barh(position, start * factor - start, left=start, color=colour, height=0.62,
                       label=cause if name == "difference" else None)
            if abs(math.log10(factor)) > 0.25:
                right.text(start * math.sqrt(factor), position, f"× {factor:.3g}", ha="center", va="center", fontsize=8,
                           color="white" if colour == BLUE else "black")
            start *= factor
        right.text(start * 1.15, position, f"{start:.0f}", va="center", fontsize=8.5, fontweight="bold")
    right.set_xscale("log")
    right.set_xlim(1, right.get_xlim()[1] * 3)
    right.set_yticks(range(len(names)), [NAMES[name] for name in names])
    right.invert_yaxis()
    right.grid(axis="y", visible=False)
    right.set_xlabel("times as fast as NumPy with plain noise")
    right.legend(loc="upper center", bbox_to_anchor=(0.45, 1.13), ncols=3)
    return figure


def draw(folder, plots, suffix="svg"):
    """Makes every plot whose figures are there; their names."""
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot as plt
    except ImportError as error:
        raise Stop(f"{error} for {sys.executable}: pip install -r tools/bench/requirements.txt") from error
    style(plt)
    bench, peers, to_se = (read(folder, name) for name in ("bench.json", "peers.json", "time_to_se.json"))
    made = []
    for name, function, figures in (("rates", plot_rates, bench and Bench(bench)), ("scaling", plot_scaling, bench and Bench(bench)),
                                    ("peers", plot_peers, peers), ("time_to_se", plot_time_to_se, to_se)):
        if not figures:
            continue
        figure = function(plt, figures)
        path = os.path.join(plots, f"{name}.{suffix}")
        try:
            os.makedirs(plots, exist_ok=True)
            figure.savefig(path, dpi=130, metadata={"Date": None} if suffix == "svg" else None)
        except OSError as error:
            raise Stop(f"{path}: {error.strerror}") from error
        plt.close(figure)
        made.append(path)
    if not made:
        raise Stop(f"{folder}: no figures there - tools/bench/measure makes them")
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", metavar="DIR", default=os.path.join(ROOT, "build", "bench"), help="by default build/bench")
    parser.add_argument("--plots", metavar="DIR", default=os.path.join(ROOT, "docs", "measured", "plots"), help="by default docs/measured/plots")
    parser.add_argument("--format", choices=("svg", "png"), default="svg")
    arguments = parser.parse_args()
    return ended("plots.py", lambda: print("\n".join(draw(arguments.figures, arguments.plots, arguments.format))))


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What exact controls gain, over the effective keys of a window: table and plot of docs/measured/controls.md.

tools/bench/control_gain.py [--headlab FILE] [--plot FILE.svg] [--replicates R]

Two heads of d_k = 2 on a normal design of 6 dimensions, one query at unit distance, noise of standard deviation
1; n = 100, 1000 and 10000, and bandwidths from 0.05 to 1.6. The effective keys of a window are 1 over the mean
of sum_i w_i^2, from the same runs. A factor is the variance of a figure without controls over that with them.

Exit status: 0 measured, 1 headlab failed, 2 nothing to measure with.
"""
import argparse
import json
import os
import sys
import tempfile

from common import Stop, ended, find_headlab, machine, number, run_program

SIZES = [100, 1000, 10000]
BANDWIDTHS = [0.05, 0.1, 0.2, 0.4, 0.8, 1.6]
FIGURES = {"bias_squared": "bias²", "head_variance_mean": "head variance", "head_covariance_mean": "head covariance", "mse": "MSE"}
SCENARIO = """[scenario]
name = "gain of controls"
[data]
n = 100
design = { law = "normal", dim = 6 }
regression = { law = "cosines", amplitude = [1.0], frequency = [[1.0, 0.5, 0.5, 0.2, 0.4, 0.3]], phase = [0.4] }
noise = { law = "normal", sd = 1.0 }
[heads]
count = 2
dim = 2
subspaces = { law = "haar", seed = 3 }
kernel = { law = "gaussian", bandwidth = 0.5 }
[queries]
law = "points"
points = [[0.5, 0.4, 0.4, 0.4, 0.4, 0.3]]
[run]
replicates = 1000
controls = "exact"
"""


def measure(program, n, bandwidth, replicates, folder):
    """Effective keys of a window, and the factors."""
    scenario, out = os.path.join(folder, "s.toml"), os.path.join(folder, "s.json")
    with open(scenario, "w", encoding="utf-8") as file:
        file.write(SCENARIO)
    run_program(program, "run", scenario, "--quiet", "--set", f"data.n={n}", "--set", f"heads.kernel.bandwidth={bandwidth}",
                "--set", f"run.replicates={replicates}", "--backend", "cpu", "--json", out)
    with open(out, encoding="utf-8") as file:
        gain = json.load(file)["conditions"][0]["controls"]["gain"]
    # Without a regression the variance is that of the noise, the mean of sum_i w_i^2.
    run_program(program, "run", scenario, "--quiet", "--set", f"data.n={n}", "--set", f"heads.kernel.bandwidth={bandwidth}",
                "--set", "data.regression={ law = \"zero\" }", "--backend", "cpu", "--json", out)
    with open(out, encoding="utf-8") as file:
        squares = json.load(file)["conditions"][0]["head_variance_mean"]["value"]
    return {"n": n, "bandwidth": bandwidth, "keys": 1 / squares, "gain": gain}


def draw(rows, path):
    try:
        import matplotlib
    except ImportError as error:
        raise Stop(f"{error} for {sys.executable}: pip install matplotlib") from error
    matplotlib.use("svg")
    from matplotlib import pyplot as plt
    plt.rcParams["svg.hashsalt"] = "headlab"
    figure, axes = plt.subplots(figsize=(6.4, 4))
    colours = dict(zip(FIGURES, ("#0072B2", "#D55E00", "#009E73", "#000000")))
    markers = dict(zip(SIZES, "os^"))
    for figure_name, title in FIGURES.items():
        for n in SIZES:
            points = sorted((row["keys"], row["gain"][figure_name]) for row in rows if row["n"] == n)
            axes.plot(*zip(*points), color=colours[figure_name], marker=markers[n], markersize=5, linewidth=1,
                      label=title if n == SIZES[-1] else None)
    for n in SIZES:
        axes.plot([], [], color="#888888", marker=markers[n], linestyle="", label=f"n = {n}")
    axes.axhline(1, color="#888888", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="effective keys in a window", ylabel="variance without controls / with them")
    axes.legend(frameon=False, fontsize=8, ncol=2)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def run(arguments):
    program = find_headlab(arguments.headlab)
    with tempfile.TemporaryDirectory(prefix="control_gain.") as folder:
        rows = [measure(program, n, b, arguments.replicates, folder) for n in SIZES for b in BANDWIDTHS]
    print(f"{machine()['processor']}, {arguments.replicates} replicates\n")
    print("| n | bandwidth | effective keys | " + " | ".join(FIGURES.values()) + " |\n|" + "---|" * (3 + len(FIGURES)))
    for row in rows:
        print(f"| {row['n']} | {row['bandwidth']} | {row['keys']:.3g} | " + " | ".join(f"{row['gain'][name]:.3g}" for name in FIGURES) + " |")
    if arguments.plot:
        draw(rows, arguments.plot)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--headlab", help="by default that of build/release")
    parser.add_argument("--plot", help="where the plot goes")
    parser.add_argument("--replicates", type=number(int, 8), default=2000, help="of a run, by default %(default)s")
    return ended("control_gain.py", run, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())

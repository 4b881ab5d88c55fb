#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes measured rates and times into docs/measured/benchmarks.md, with its plots, or into docs/gpu.md.

tools/bench/report.py [--figures DIR] [--page FILE]
tools/bench/report.py --gpu REPORT [--page FILE]    tables of docs/gpu.md from the report of tools/check/gpu-check

DIR has bench.json, peers.json and time_to_se.json, as tools/bench/measure writes them. The page has for
each section a line `<!-- figures: NAME -->` and further down `<!-- end of figures -->`; what is between
them is replaced by its plot and table. A section whose file is not there stays as it is. Exit status: 0
written, 2 nothing to write.
"""
import argparse
import math
import os
import re
import sys

from common import ROOT, Stop, ended
from gpu_tables import gpu_tables, read_reports
from plots import NAMES, Bench, draw, exponent, read

NARROW = {name: " ".join(title.split()) for name, title in NAMES.items()}


PLOTS = {"rates": "Rates against the limit, by dimension of a head", "scaling": "Time of a whole job by n, R, H and Q, and speed-up by threads",
         "peers": "Rates of headlab and other libraries", "time_to_se": "Time to a standard error of one per cent, and its causes"}


def cell(value, digits=2):
    return "" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def seconds(value):
    """Three digits, without an exponent."""
    digits = max(0, 2 - math.floor(math.log10(value))) if value > 0 else 0
    return f"{value:.{min(digits, 6)}f}"


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    return lines + ["| " + " | ".join(row) + " |" for row in rows]


def place(machine):
    return f"{machine['date']}, {machine['processor']}, {machine['processors']} processors, commit {machine['commit']}"


def rates(bench):
    """Rates and shares of the limit, one thread and two."""
    dims = bench.dims("cpu_core/k:{}")
    lines = [f"{bench.place}. Measured peak of one core: {bench.peak() / 1e9:.1f} · 10⁹ multiply-adds a second; draws: "
             f"{bench.best('cpu_draw', 'normals/s') / 1e6:.0f} · 10⁶ normals a second.", ""]
    rows = [["limit, plain estimator", *(cell(bench.limit(k) / 1e9) for k in dims)]]

    def add(label, pattern, estimator="plain", moments="pairwise", threads=1, limited=True):
        cells = []
        for k in dims:
            rate = bench.best(pattern.format(k))
            shares = bench.shares(pattern.format(k), k, estimator, moments, threads)
            cells.append("" if math.isnan(rate) else cell(rate / 1e9, 3 if rate < 1e8 else 2)
                         + (" ({:.0f}, {:.0f} %)".format(*shares) if limited else ""))
        rows.append([label, *cells])
    add("core loop", "cpu_core/k:{}")
    for threads, label in ((1, "1 thread"), (2, "2 threads")):
        add(f"projection and core loop, {label}", f"cpu_given_x/k:{{}}/threads:{threads}", threads=threads)
    for estimator in ("plain", "conditional"):
        for moments in ("pairwise", "aggregate"):
            for threads, label in ((1, "1 thread"), (2, "2 threads")):
                add(f"whole job, {estimator}, {moments}, {label}", f"cpu/{estimator}/{moments}/k:{{}}/threads:{threads}",
                    estimator, moments, threads)
    add("`plain_loop`", "plain_loop/k:{}", limited=False)
    add("`plain_loop_fast_math`", "plain_loop_fast_math/k:{}", limited=False)
    add("`reference`, whole job, n = 256", "reference/plain/pairwise/k:{}/threads:1", limited=False)
    return lines + table(["d_k", *map(str, dims)], rows)


def scaling(bench):
    rows = []
    for what, title in (("n", "training points n"), ("R", "replicates R"), ("H", "heads H, aggregate moments"), ("Q", "queries Q")):
        sizes, times = bench.scaling(what)
        if sizes:
            rows.append([title, f"{sizes[0]} to {sizes[-1]}", f"{seconds(times[0])} s to {seconds(times[-1])} s",
                         cell(exponent(sizes, times))])
    sizes, times = bench.scaling("threads")
    lines = [f"{bench.place}.", ""] + table(["what grows", "from, to", "time of a whole job", "exponent"], rows)
    if len(sizes) > 1:
        lines += ["", f"{sizes[-1]} threads: {times[0] / times[-1]:.2f} times one."]
    return lines


def peers(report):
    versions = ", ".join(f"{name} {version}" for name, version in report["versions"].items())
    lines = [f"{place(report['machine'])}; {versions}."]
    titles = {"given_x": "Projection and means from given X", "whole_job": "Whole jobs, drawing X and Y too"}
    for what, title in titles.items():
        for threads in report["threads"]:
            found = {row["d_k"]: row for row in report["rows"] if row["table"] == what and row["threads"] == threads}
            if not found:
                continue
            dims = sorted(found)
            names = list(dict.fromkeys(peer["name"] for row in found.values() for peer in row["peers"]))
            rows = [["headlab", *(cell(found[k]["headlab"] / 1e9) for k in dims), ""]]
            for name in names:
                peer = {k: p for k in dims for p in found[k]["peers"] if p["name"] == name}
                rows.append([name, *(f"{cell(peer[k]['rate'] / 1e9, 3)} (× {peer[k]['headlab_times']:.1f})" if k in peer else "–" for k in dims),
                             f"{max(p['relative_error'] for p in peer.values()):.0e}"])
            rows.append(["**over the fastest peer**", *(f"**× {found[k]['times_best_peer']:.1f}**" if found[k]["times_best_peer"] else "–"
                                                        for k in dims), ""])
            lines += ["", f"{title}, {threads} thread{'s' if threads > 1 else ''}:", ""]
            lines += table(["d_k", *map(str, dims), "error"], rows)
    left_out = [f"- left out: {name}: {why}" for name, why in report["left_out"].items()]
    return lines + ([""] + left_out if left_out else [])


def time_to_se(report):
    p = report["problem"]
    names = ["mse", "bias_squared", "head_variance_mean", "head_covariance_mean"]
    lines = [f"{place(report['machine'])}; {report['threads']} thread{'s' if report['threads'] > 1 else ''}, n = {p['n']}, d = {p['d']}, H = {p['H']}, "
             f"d_k = {p['d_k']}, {p['Q']} queries; {report['seeds']} × {report['replicates']} replicates of each program.", "",
             "Seconds to a standard error of 1 %:", ""]
    rows = []
    for name, result in report["programs"].items():
        entries = [result["components"][c] for c in names] + [result["difference"][c] for c in ("independent", "common")]
        rows.append([name, f"{1e3 * result['seconds_per_replicate']:.3f}", *(seconds(e["seconds_to_aim"]) for e in entries)])
    lines += table(["program", "ms a replicate", *(NARROW[c] for c in names), "difference, independent draws", "difference, common draws"], rows)
    lines += ["", "How many times as fast as NumPy with plain noise (and independent draws), by cause:", ""]
    kinds = ["kernel speed", "conditioning", "common draws", "total"]
    rows = [[NARROW[name], *(f"{found[kind]:.3g}" if kind in found else "" for kind in kinds)] for name, found in report["causes"].items()]
    lines += table(["", *kinds], rows)
    for name, result in report["programs"].items():
        v = result.get("verified")
        if v:
            lines += ["", f"Verified: {name}, {NARROW[v['component']]}: {v['replicates']} replicates took {seconds(v['seconds'])} s (predicted "
                      f"{seconds(v['predicted_seconds'])} s) and gave a standard error of {100 * v['relative_standard_error']:.2f} %."]
    return lines


def replaced(page, name, lines):
    if name in PLOTS:
        lines = [f"![{PLOTS[name]}](plots/{name}.svg)", "", *lines]
    pattern = re.compile(rf"(<!-- figures: {name} -->\n).*?(<!-- end of figures -->)", re.DOTALL)
    text, count = pattern.subn(lambda found: found[1] + "\n".join(lines) + "\n" + found[2], page)
    if count != 1:
        raise Stop(f"the page has {count} sections <!-- figures: {name} -->, not one")
    return text


def read_page(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except OSError as error:
        raise Stop(f"{path}: {error.strerror}") from error


def write_page(path, page):
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(page)
    except OSError as error:
        raise Stop(f"{path}: {error.strerror}") from error


def write_gpu(arguments):
    page = arguments.page or os.path.join(ROOT, "docs", "gpu.md")
    write_page(page, replaced(read_page(page), "gpu", gpu_tables(read_reports(arguments.gpu))))
    print(page)


def write(arguments):
    if arguments.gpu is not None:
        write_gpu(arguments)
        return
    folder = arguments.figures
    target = arguments.page or os.path.join(ROOT, "docs", "measured", "benchmarks.md")
    bench, peer, to_se = (read(folder, name) for name in ("bench.json", "peers.json", "time_to_se.json"))
    page = read_page(target)
    made = draw(folder, os.path.join(os.path.dirname(os.path.abspath(target)), "plots"))
    if bench:
        figures = Bench(bench)
        # Google Benchmark does not say which processor it ran on.
        machine = read(folder, "machine.json")
        figures.place = place(machine) if machine else figures.date
        page = replaced(replaced(page, "rates", rates(figures)), "scaling", scaling(figures))
    if peer:
        page = replaced(page, "peers", peers(peer))
    if to_se:
        page = replaced(page, "time_to_se", time_to_se(to_se))
    write_page(target, page)
    print("\n".join([target, *made]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--figures", metavar="DIR", default=os.path.join(ROOT, "build", "bench"), help="by default build/bench")
    parser.add_argument("--gpu", metavar="REPORT", nargs="+", help="gpu-check.json, or one of each part")
    parser.add_argument("--page", metavar="FILE", help="by default docs/measured/benchmarks.md, with --gpu docs/gpu.md")
    return ended("report.py", write, parser.parse_args())


if __name__ == "__main__":
    sys.exit(main())

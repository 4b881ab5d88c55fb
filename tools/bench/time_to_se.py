#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Time until the standard error of each component of the mean squared error is 1 % of it.

tools/bench/time_to_se.py [--controls] [--threads T] [--quick] [--headlab FILE] [--json FILE]

Four programs on one problem (n = 2048, d = 16, H = 8, d_k = 4, 16 queries, cosines plus normal noise):
headlab with the plain and with the conditional estimator, and NumPy doing the same
(numpy_monte_carlo.py). Each is run for the same pilot effort: `seeds` times `replicates` replicates of
two conditions, bandwidths 0.5 and 0.6, on common draws. That gives

    V = R x (relative standard error)^2,     replicates to 1 % = V / 0.01^2,

which hardly depends on R; the squared standard errors are averaged over the seeds. The time of a
replicate is the slope between a short and a long run, so that starting a program is not counted; the
programs take turns and medians are taken. Time to 1 % = time of a replicate x replicates to 1 %. For
headlab it is verified once: that many replicates are run, and their standard error read.

The difference of the mean squared errors of the two conditions is timed as well, on common draws (two
conditions of one sweep have the same) and on independent ones, whose squared standard errors add. What
each cause contributes is the ratio of two times: kernel speed from NumPy to headlab with the plain
estimator, conditioning from the plain to the conditional estimator, common draws from independent ones.

With --controls the job of headlab with the conditional estimator is compared with the same under exact
controls instead (docs/controls.md), at n = 2048 and 32768 and bandwidths 0.5 and 0.8: the factors by which
the variance of each component falls, from runs that know both; the times of a replicate; their products,
the factors of time; the time of the pilot; and from how many seconds without controls on a run to the same
error is shorter with them, pilot and all (of the MSE).

Exit status: 0 measured, 1 a program of headlab's failed, 2 nothing to measure with.
"""
import argparse
import json
import math
import os
import shutil
import statistics
import sys
import tempfile
import time

from common import Failed, Stop, ended, find_headlab, machine, number, run_program, use_processors, write_json

BANDWIDTHS = [0.5, 0.6]
AIM = 0.01
PROGRAMS = ["NumPy, plain", "NumPy, conditional", "headlab, plain", "headlab, conditional"]
TITLES = {"mse": "MSE", "bias_squared": "bias²", "head_variance_mean": "head variance", "head_covariance_mean": "head covariance"}


class Headlab:
    def __init__(self, program, problem, estimator, threads, scratch):
        self.program, self.threads, self.scratch = program, threads, scratch
        self.files = []
        for bandwidths in (BANDWIDTHS[:1], BANDWIDTHS):
            self.files.append(os.path.join(scratch, f"{estimator}{len(bandwidths)}.toml"))
            with open(self.files[-1], "w", encoding="utf-8") as file:
                file.write(problem.scenario(estimator, bandwidths))

    def run(self, replicates, seed, conditions, out):
        run_program(self.program, "run", self.files[conditions - 1], "--backend", "cpu", "--threads", str(self.threads),
                    "--replicates", str(replicates), "--set", f"run.seed={seed}", "--out", out)

    def seconds(self, replicates, conditions):
        out = os.path.join(self.scratch, "timed")
        begin = time.perf_counter()
        self.run(replicates, 1, conditions, out)
        spent = time.perf_counter() - begin
        shutil.rmtree(out)
        return spent

    def sums(self, replicates, seed, conditions=2):
        """Of each condition, from the nodes of results.nc."""
        out = os.path.join(self.scratch, "pilot")
        self.run(replicates, seed, conditions, out)
        try:
            return [sums_of_nodes(os.path.join(out, "results.nc"), c) for c in range(conditions)]
        except (OSError, LookupError) as error:
            raise Failed(f"{self.program}: no nodes of it in results.nc ({error})") from error
        finally:
            shutil.rmtree(out)

    def summary(self, replicates, seed):
        out = os.path.join(self.scratch, "verified")
        self.run(replicates, seed, 1, out)
        with open(os.path.join(out, "summary.json"), encoding="utf-8") as file:
            condition = json.load(file)["conditions"][0]
        shutil.rmtree(out)
        return condition


def sums_of_nodes(path, condition):
    """The moments of a condition in results.nc (docs/results.md) as Sums, one for each jackknife group."""
    import netCDF4
    import numpy as np
    from numpy_monte_carlo import Sums
    with netCDF4.Dataset(path) as file:
        nodes = file["nodes"]
        first, second = nodes["pair_first"][:].data, nodes["pair_second"][:].data
        rows = nodes["condition"][:].data == condition
        count, mean = nodes["count"][rows].data.astype(float), nodes["mean"][rows].data
        comoment, jackknife_group = nodes["comoment"][rows].data, nodes["jackknife"][rows].data
        conditional = file["estimator"][condition] == "conditional"
    heads = second.max() + 1

    def matrices(pairs):  # [node][Q][pair] -> [node][Q][H][H]
        full = np.zeros((*pairs.shape[:2], heads, heads))
        full[..., first, second] = full[..., second, first] = pairs
        return full
    estimate = mean[..., :heads]
    centre = (count[:, None, None] * estimate).sum(0) / count.sum()
    off = estimate - centre
    r = count[:, None, None, None]
    parts = [count, count[:, None, None] * off, matrices(comoment) + r * np.einsum("nqh,nql->nqhl", off, off),
             r * matrices(mean[..., heads:heads + len(first)]) if conditional else np.zeros((*off.shape, heads))]
    grouped = []
    for part in parts:
        total = np.zeros((jackknife_group.max() + 1, *part.shape[1:]))
        np.add.at(total, jackknife_group, part)
        grouped.append(total)
    return Sums(grouped[0], centre, *grouped[1:])


class NumPy:
    def __init__(self, problem, estimator, threads):
        from numpy_monte_carlo import Simulation

        def fastest(bandwidths):
            """With the number of queries at once that is fastest here."""
            found = []
            for size in (2, 4, 8, 16):
                simulation = Simulation(problem, estimator, bandwidths, threads, size)
                simulation.run(4 * threads, 1)
                begin = time.perf_counter()
                simulation.run(12 * threads, 1)
                found.append((time.perf_counter() - begin, size, simulation))
            return min(found, key=lambda one: one[0])[2]
        self.simulations = [fastest(BANDWIDTHS[:1]), fastest(BANDWIDTHS)]

    def seconds(self, replicates, conditions):
        begin = time.perf_counter()
        self.simulations[conditions - 1].run(replicates, 1)
        return time.perf_counter() - begin

    def sums(self, replicates, seed, conditions=2):
        from numpy_monte_carlo import Sums
        estimates, noise = self.simulations[conditions - 1].run(replicates, seed)
        return [Sums.of(estimates[:, c], None if noise is None else noise[:, c]) for c in range(conditions)]


def pilot(program, problem, arguments):
    """V of each component of the first condition, and of the difference in MSE, common and independent."""
    from numpy_monte_carlo import components, jackknife
    squares, values = {}, {}
    for seed in range(1, arguments.seeds + 1):
        one, two = program.sums(arguments.replicates, seed)
        rows, others = components(one, problem.truth), components(two, problem.truth)
        found = {name: (row[0], jackknife(one.counts, row)) for name, row in rows.items()}
        difference = rows["mse"] - others["mse"]
        found["common"] = difference[0], jackknife(one.counts, difference)
        found["independent"] = difference[0], math.hypot(found["mse"][1], jackknife(two.counts, others["mse"]))
        for name, (value, error) in found.items():
            values.setdefault(name, []).append(value)
            squares.setdefault(name, []).append(error ** 2)
    return {name: {"value": statistics.fmean(values[name]),
                   "replicates_to_aim": arguments.replicates * statistics.fmean(squares[name]) / statistics.fmean(values[name]) ** 2 / AIM ** 2}
            for name in values}


def times(programs, rounds, effort):
    """Seconds of a replicate of one condition and of both: slopes, medians over rounds in turn."""
    longs = {}
    for name, program in programs.items():
        for conditions in (1, 2):
            short = max(0.001, program.seconds(256, conditions) - program.seconds(64, conditions)) / 192
            longs[name, conditions] = 64 + max(256, int(effort / short / conditions))
    slopes = {key: [] for key in longs}
    for _ in range(rounds):
        for (name, conditions), replicates in longs.items():
            short, long = (programs[name].seconds(r, conditions) for r in (64, replicates))
            slopes[name, conditions].append((long - short) / (replicates - 64))
    return {key: statistics.median(values) for key, values in slopes.items()}


def verified(headlab, result, most_seconds):
    """Really runs what the slowest component needs, or the slowest that takes no longer than allowed."""
    fitting = {name: c for name, c in result["components"].items() if c["seconds_to_aim"] <= most_seconds}
    if not fitting:
        return None
    name = max(fitting, key=lambda one: fitting[one]["seconds_to_aim"])
    replicates = max(8, round(fitting[name]["replicates_to_aim"]))
    condition = headlab.summary(replicates, 1000)
    return {"component": name, "replicates": replicates, "seconds": condition["seconds"],
            "predicted_seconds": replicates * result["seconds_per_replicate"],
            "relative_standard_error": condition[name]["mcse"] / abs(condition[name]["value"])}


def causes(results):
    """Ratios of times that multiply to the whole, for each component and for the difference."""
    plain, ours, best = (results[name] for name in ("NumPy, plain", "headlab, plain", "headlab, conditional"))
    found = {}
    for name in TITLES:
        steps = [one["components"][name]["seconds_to_aim"] for one in (plain, ours, best)]
        found[name] = {"kernel speed": steps[0] / steps[1], "conditioning": steps[1] / steps[2], "total": steps[0] / steps[2]}
    steps = [one["difference"]["independent"]["seconds_to_aim"] for one in (plain, ours, best)]
    steps.append(best["difference"]["common"]["seconds_to_aim"])
    found["difference"] = {"kernel speed": steps[0] / steps[1], "conditioning": steps[1] / steps[2],
                           "common draws": steps[2] / steps[3], "total": steps[0] / steps[3]}
    return found


def measure(arguments):
    try:
        import netCDF4  # noqa: F401 pylint: disable=unused-import
        from numpy_monte_carlo import Problem
    except ImportError as error:
        raise Stop(f"{error} for {sys.executable}: pip install -r tools/bench/requirements.txt") from error
    headlab = find_headlab(arguments.headlab)
    use_processors(arguments.threads)
    problem = Problem()
    report = {"machine": machine(), "threads": arguments.threads, "replicates": arguments.replicates, "seeds": arguments.seeds,
              "problem": {"n": problem.n, "d": problem.d, "H": problem.heads, "d_k": problem.k, "Q": len(problem.points),
                          "bandwidths": BANDWIDTHS}, "programs": {}}
    with tempfile.TemporaryDirectory(prefix="time_to_se.") as scratch:
        programs = {f"headlab, {e}": Headlab(headlab, problem, e, arguments.threads, scratch) for e in ("plain", "conditional")}
        programs |= {f"NumPy, {e}": NumPy(problem, e, arguments.threads) for e in ("plain", "conditional")}
        slopes = times(programs, arguments.rounds, arguments.effort)
        for name in PROGRAMS:
            print(f"time_to_se.py: {name}", file=sys.stderr, flush=True)
            found = pilot(programs[name], problem, arguments)
            one, both = slopes[name, 1], slopes[name, 2]
            result = {"seconds_per_replicate": one, "seconds_per_pair": both, "components": {}, "difference": {}}
            for what, entry in found.items():
                seconds = both if what == "common" else 2 * one if what == "independent" else one
                entry["seconds_to_aim"] = seconds * entry["replicates_to_aim"]
                result["components" if what in TITLES else "difference"][what] = entry
            report["programs"][name] = result
        for name in PROGRAMS[2:]:
            report["programs"][name]["verified"] = verified(programs[name], report["programs"][name], arguments.most)
    report["causes"] = causes(report["programs"])
    report["table"] = table_of(report)
    return report


CONTROLLED_SIZES = [(2048, 0.5), (2048, 0.8), (32768, 0.5)]


class Controlled:
    """One problem without exact controls and with them."""

    def __init__(self, program, n, bandwidth, threads, scratch):
        from numpy_monte_carlo import Problem
        self.program, self.threads, self.scratch = program, threads, scratch
        self.file = os.path.join(scratch, "controlled.toml")
        with open(self.file, "w", encoding="utf-8") as file:
            file.write(Problem(n=n).scenario("conditional", [bandwidth]))

    def condition(self, controls, replicates, seed):
        out = os.path.join(self.scratch, "controlled.json")
        run_program(self.program, "run", self.file, "--backend", "cpu", "--threads", str(self.threads), "--quiet",
                    "--set", f'run.controls="{controls}"', "--replicates", str(replicates), "--set", f"run.seed={seed}", "--json", out)
        with open(out, encoding="utf-8") as file:
            return json.load(file)["conditions"][0]


def measure_controls(headlab, n, bandwidth, arguments, scratch):
    job = Controlled(headlab, n, bandwidth, arguments.threads, scratch)
    runs = [job.condition("exact", arguments.replicates, seed) for seed in range(1, arguments.seeds + 1)]
    once = job.condition("none", 64, 1)["seconds"] / 64
    many = max(256, int(arguments.effort / once))
    seconds = {"none": [], "exact": []}
    for seed in range(arguments.rounds):
        for controls in seconds:
            condition = job.condition(controls, many, seed)
            seconds[controls].append(condition["seconds"] / many)
    without, with_controls = (statistics.median(seconds[controls]) for controls in ("none", "exact"))
    pilot = statistics.median(one["controls"]["pilot_seconds"] for one in runs)
    # Ratios of means of variances, which no lucky jackknife rules.
    factor = {name: math.fsum(one[name]["mcse"] ** 2 * one["controls"]["gain"][name] for one in runs) / math.fsum(one[name]["mcse"] ** 2 for one in runs)
              for name in TITLES}
    times = {name: value * without / with_controls for name, value in factor.items()}
    gained = without - with_controls / factor["mse"]
    return {"n": n, "bandwidth": bandwidth, "refused": any(one["controls"]["refused"] for one in runs), "variance": factor,
            "seconds_per_replicate": {"none": without, "exact": with_controls}, "time": times, "pilot_seconds": pilot,
            "pays_from_seconds": pilot / gained * without if gained > 0 else math.inf}


def measure_all_controls(arguments):
    try:
        import numpy_monte_carlo  # noqa: F401 pylint: disable=unused-import
    except ImportError as error:
        raise Stop(f"{error} for {sys.executable}: pip install -r tools/bench/requirements.txt") from error
    headlab = find_headlab(arguments.headlab)
    use_processors(arguments.threads)
    report = {"machine": machine(), "threads": arguments.threads, "replicates": arguments.replicates, "seeds": arguments.seeds}
    with tempfile.TemporaryDirectory(prefix="time_to_se.") as scratch:
        report["rows"] = [measure_controls(headlab, n, bandwidth, arguments, scratch) for n, bandwidth in CONTROLLED_SIZES]
    lines = [f"{report['machine']['processor']}, {arguments.threads} threads, {arguments.seeds} seeds of {arguments.replicates} replicates",
             "factors by which exact controls lower the variance, and (variance x time of a replicate)", "",
             f"{'n':>6}{'b':>5}" + "".join(f"{title:>26}" for title in TITLES.values()) + f"{'time':>7}{'pilot':>9}{'pays from':>11}"]
    for row in report["rows"]:
        cells = "".join(f"{row['variance'][c]:>13.3g} ({row['time'][c]:.3g})".rjust(26) for c in TITLES)
        per = row["seconds_per_replicate"]
        lines.append(f"{row['n']:>6}{row['bandwidth']:>5}{cells}{per['exact'] / per['none']:>7.2f}{row['pilot_seconds']:>7.2f} s{row['pays_from_seconds']:>9.2f} s")
    report["table"] = lines
    return report


def table_of(report):
    p = report["problem"]
    lines = [f"{report['machine']['processor']}, {report['threads']} threads, n {p['n']}, d {p['d']}, H {p['H']}, d_k {p['d_k']}, {p['Q']} queries",
             "seconds to a standard error of 1 %, without starting the program", "",
             f"{'':22}" + "".join(f"{title:>17}" for title in TITLES.values()) + f"{'difference, indep.':>20}{'difference, common':>20}"]
    for name, result in report["programs"].items():
        entries = [result["components"][c] for c in TITLES] + [result["difference"][c] for c in ("independent", "common")]
        widths = [17] * len(TITLES) + [20, 20]
        lines.append(f"{name:22}" + "".join(f"{e['seconds_to_aim']:{w}.3g}" for e, w in zip(entries, widths)))
    lines += ["", "how many times as fast as NumPy, plain, independent draws; and what each cause contributes"]
    for name, found in report["causes"].items():
        factors = " x ".join(f"{factor:.3g} ({cause})" for cause, factor in found.items() if cause != "total")
        lines.append(f"{TITLES.get(name, name):18} {found['total']:10.4g} = {factors}")
    for name, result in report["programs"].items():
        if result.get("verified"):
            v = result["verified"]
            lines.append(f"verified: {name}, {TITLES[v['component']]}, {v['replicates']} replicates: standard error "
                         f"{100 * v['relative_standard_error']:.2f} %, {v['seconds']:.3g} s (predicted 1 %, {v['predicted_seconds']:.3g} s)")
    return lines


def measure_and_tell(arguments):
    if arguments.json is not None:
        write_json(arguments.json, None)  # only whether it could be
    report = (measure_all_controls if arguments.controls else measure)(arguments)
    print("\n".join(report["table"]))
    if arguments.json is not None:
        write_json(arguments.json, report)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=number(int, 1), default=2, help="by default %(default)s")
    parser.add_argument("--replicates", type=number(int, 64), default=1000, help="of a pilot run, by default %(default)s")
    parser.add_argument("--seeds", type=number(int, 1), help="pilot runs of each program, by default 8")
    parser.add_argument("--rounds", type=number(int, 1), help="of timing, by default 5")
    parser.add_argument("--effort", type=number(float, 0), help="seconds of a timed run, by default 1")
    parser.add_argument("--controls", action="store_true", help="what exact controls gain")
    parser.add_argument("--quick", action="store_true", help="2 pilot runs, 2 rounds of 0.3 s")
    parser.add_argument("--most", type=number(float, 0), default=60, help="seconds for verifying, by default %(default)s")
    parser.add_argument("--headlab", help="by default that of build/release")
    parser.add_argument("--json", help="where the figures are written as well")
    arguments = parser.parse_args()
    arguments.seeds = arguments.seeds or (2 if arguments.quick else 8)
    arguments.rounds = arguments.rounds or (2 if arguments.quick else 5)
    arguments.effort = arguments.effort or (0.3 if arguments.quick else 1)
    return ended("time_to_se.py", measure_and_tell, arguments)


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The Python programs of the benchmarks: what they refuse, and that they compute what they say.

bench_check.py HEADLAB: exit code 77 where NumPy, netCDF4 or threadpoolctl is missing for the second part
and the first part passed.
"""
import math
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def require(condition, what):
    if not condition:
        sys.exit(f"bench_check: {what}")


def run(program, *arguments):
    return subprocess.run([sys.executable, "-B", str(HERE / program), *map(str, arguments)], capture_output=True, text=True, check=False)


def refused(program, *arguments, word, lines=1):
    """Exit 2, `lines` lines on standard error (None for the usage and one), with the word in the last."""
    done = run(program, *arguments)
    said = done.stderr.strip().splitlines()
    what = f"{program} {' '.join(map(str, arguments))}: status {done.returncode}, said {done.stderr!r}"
    require(done.returncode == 2 and done.stdout == "" and said, what)
    require(lines is None or len(said) == lines, what)
    require(word in said[-1] and "Traceback" not in done.stderr, what)


def check_refusals(headlab, folder):
    for program in ("peers.py", "time_to_se.py"):
        cpu = ["--device", "cpu"] if program == "peers.py" else []
        refused(program, *cpu, "--threads", "0", word="integer from 1", lines=None)
        refused(program, *cpu, "--rounds", "none", word="integer from 1", lines=None)
        refused(program, *cpu, "--json", folder / "no" / "file", word="No such file")
        refused(program, *cpu, "--json", folder, word="no regular file")
        refused(program, *cpu, "--json", "", word="needs a file")
        require(not list(folder.glob("*")), f"{program} left {list(folder.glob('*'))}")
    refused("peers.py", "--device", "cpu", "--dims", "2,x", word="integer from 1", lines=None)
    refused("peers.py", "--device", "cpu", "--bench", folder / "none", word="no program there")
    refused("peers.py", "--device", "cpu", "--bench", headlab, "--headlab", folder / "none", word="no program there")
    if have_numpy():
        refused("numpy_monte_carlo.py", "--replicates", "1", word="integer from 8", lines=None)
    if not have("torch"):
        # In the folder that tools/check/gpu-check --pack makes; it looks for the first word.
        carried = folder / "carried"
        carried.mkdir()
        for name in ("peers.py", "common.py"):
            shutil.copy(HERE / name, carried)
        refused(carried / "peers.py", "--device", "cuda", word="peers.py: PyTorch is not installed")
    refused("plots.py", "--figures", folder, word="matplotlib" if not have("matplotlib") else "no figures there")
    refused("report.py", "--page", folder / "none", word="No such file")


def check_left_out(folder):
    """A peer whose import fails in any way is named with the reason, and the others stay."""
    place = folder / "broken" / "pykeops"
    place.mkdir(parents=True)
    for fault, reason in (("raise RuntimeError('no compiler\\nfound')", "KeOps: RuntimeError: no compiler found"),
                          ("import nothing_of_the_kind", "KeOps: ModuleNotFoundError: No module named 'nothing_of_the_kind'"),
                          ("raise KeyError", "KeOps: KeyError"), ("", None)):
        (place / "__init__.py").write_text("", encoding="utf-8")
        (place / "torch.py").write_text(fault + "\n", encoding="utf-8")
        program = "import sys; sys.path[:0] = sys.argv[1:]; import peers; found, out = peers.all_peers(None); print(len(found), *out)"
        done = subprocess.run([sys.executable, "-B", "-c", program, str(place.parent), str(HERE)], capture_output=True, text=True, check=False)
        expected = f"6 {reason}\n" if reason else "7\n"
        require(done.stdout == expected and done.returncode == 0, f"peers.py with {fault!r}: {done.stdout!r} {done.stderr!r}")


def check_choice():
    """The backend that PyTorch's attention took is the one with its bits, and a reason is told once for all d_k."""
    sys.path.insert(0, str(HERE))
    sys.dont_write_bytecode = True
    import peers

    class Bits(list):
        def __eq__(self, other):
            return Bits(a == b for a, b in zip(self, other))

        def all(self):
            return all(self)

    names = [peers.Peer("attention float32", "plain", True, None),
             *(peers.Peer(f"attention {of} {backend}", "plain", True, None, f"attention {of}")
               for of, backend in (("float32", "flash"), ("float32", "efficient"), ("float32", "math"), ("float16", "efficient")))]
    one = peers.Round()
    for last, expected in ((2.0, ["efficient"]), (3.0, []), (float("nan"), [])):
        one.means = {"attention float32": Bits([1.0, last]), "attention float32 flash": Bits([1.0, 2.5]),
                     "attention float32 efficient": Bits([1.0, 2.0]), "attention float16 efficient": Bits([1.0, last])}
        require(one.chosen(names, "attention float32") == expected, f"the choice for {last}: {one.chosen(names, 'attention float32')}")
    one.means["attention float32"] = Bits([1.0, 2.0])
    one.rates = {"attention float32": 4.0, "attention float32 flash": 8.0}
    one.errors = {"attention float32": 1e-6, "attention float32 flash": 2e-6}
    row = peers.row_of(4, "plain", 16.0, names, [one])
    require([peer.get("backend") for peer in row["peers"]] == [["efficient"], None] and row["times_best_float32_peer"] == 2.0, f"{row}")
    require(peers.row_of(4, "conditional", 16.0, names, [one])["peers"] == [], "peers of the other estimator")
    short = peers.in_short({(2, "a"): "no", (8, "a"): "no", (8, "b"): "other"})
    require(short == ["a, d_k 2, 8: no", "b, d_k 8: other"], f"{short}")


def have(module):
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0


def have_numpy():
    return have("numpy") and have("threadpoolctl") and have("netCDF4")


def check_figures():
    """Without anything that draws: the best and the median, limits, exponents, markers."""
    sys.path.insert(0, str(HERE))
    sys.dont_write_bytecode = True
    from plots import Bench, exponent
    from report import replaced
    rows = [{"run_name": "peak_fma/real_time/threads:1", "FMA/s": rate, "real_time": 1} for rate in (9, 14, 2)]
    rows += [{"run_name": "cpu_core/k:2/real_time", "weights/s": rate, "real_time": 7 / rate} for rate in (1, 7, 3)]
    bench = Bench({"context": {"date": "2026-01-01T00:00:00"}, "benchmarks": rows})
    require(bench.limit(2) == 1, "the limit is not the highest peak over d_k + 12")
    require(bench.best("cpu_core/k:2") == 7 and bench.best("cpu_core/k:2", "seconds") == 1e-3, "not the best of a benchmark")
    require(bench.shares("cpu_core/k:2", 2) == (700, 300), "shares of the limit")
    require(bench.limit(2, "conditional", "pairwise") == 14 / 18.5, "the limit of the conditional estimator")
    require(math.isnan(bench.best("nothing")) and math.isnan(bench.median("nothing")), "a rate that was not measured is a number")
    require(abs(exponent([1, 10, 100, 1000], [5, 5, 7, 70]) - 1) < 1e-12, "the exponent of the upper half")
    page = "a\n<!-- figures: rates -->\nold\n<!-- end of figures -->\nb\n"
    new = replaced(page, "rates", ["new", r"\1"])
    require("old" not in new and new.startswith("a\n<!-- figures: rates -->\n![") and new.endswith(")\n\nnew\n\\1\n<!-- end of figures -->\nb\n"),
            f"what stands between the markers: {new!r}")
    text = (HERE / "../../docs/measured/benchmarks.md").resolve().read_text(encoding="utf-8")
    for name in ("rates", "scaling", "peers", "time_to_se"):
        require(f"<!-- figures: {name} -->" in text, f"docs/measured/benchmarks.md has no place for {name}")


def check_numpy(headlab, folder):
    """NumPy's program and headlab agree on the same problem, and the jackknife from nodes is headlab's own."""
    import time_to_se
    from numpy_monte_carlo import Problem, Simulation, Sums, components, jackknife
    problem = Problem(n=60, d=6, heads=2, k=2, queries=3)
    for estimator in ("plain", "conditional"):
        ours = time_to_se.Headlab(headlab, problem, estimator, 1, str(folder))
        one, two = ours.sums(1029, seed=3)
        summary = ours.summary(1029, seed=3)
        rows = components(one, problem.truth)
        for name, row in rows.items():
            value, error = summary[name]["value"], summary[name]["mcse"]
            require(abs(row[0] - value) <= 1e-9 * abs(value), f"{estimator} {name}: {row[0]} from the nodes, {value} in the summary")
            require(abs(jackknife(one.counts, row) - error) <= 1e-6 * error, f"{estimator} {name}: its standard error")
        difference = jackknife(one.counts, rows["mse"] - components(two, problem.truth)["mse"])
        require(0 < difference < jackknife(one.counts, rows["mse"]), "common draws do not cancel")
        estimates, noise = Simulation(problem, estimator, time_to_se.BANDWIDTHS, 2, 2).run(2000, 5)
        for c, theirs in enumerate((one, two)):
            sums = Sums.of(estimates[:, c], None if noise is None else noise[:, c])
            mine, other = components(sums, problem.truth), components(theirs, problem.truth)
            for name in mine:
                error = math.hypot(jackknife(sums.counts, mine[name]), jackknife(theirs.counts, other[name]))
                away = abs(mine[name][0] - other[name][0]) / error
                require(away <= 5, f"{estimator} {name}: NumPy is {away} standard errors from headlab")
                # The control: a shift that must be seen.
                require(not abs(mine[name][0] + 10 * error - other[name][0]) / error <= 5, "a wrong figure was not seen")


def main(headlab):
    with tempfile.TemporaryDirectory() as name:
        check_refusals(headlab, pathlib.Path(name))
        check_figures()
        check_choice()
        check_left_out(pathlib.Path(name))
        if not have_numpy():
            print("skipped: NumPy's program, for want of numpy, threadpoolctl or netCDF4")
            return 77
        check_numpy(headlab, pathlib.Path(name))
    print("the benchmarks' programs refuse what they should, and NumPy's agrees with headlab")
    return 0


if __name__ == "__main__":
    sys.exit(main(os.path.abspath(sys.argv[1])))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads tables of headlab back as their users would.

table_check.py HEADLAB SOURCE: runs a small sweep in a temporary folder and holds its CSV to summary.json bit for bit,
and its intervals to those of t quantiles; planted faults have to be found. Where Rscript is there, the lines of
docs/tables.md run as they stand and have to read the numbers of summary.json, bit for bit.
"""
import csv
import io
import json
import math
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

from commands import WORLD

SCENARIO = WORLD + """replicates = 1029
[sweep]
"heads.kernel.bandwidth" = [0.4, 0.8]
"data.noise.sd" = [0.1, 0.30000000000000004]
"""
FIGURES = ["mse", "bias_squared", "variance_term", "covariance_term", "output_correlation"]


class Fault(Exception):
    """What a table has wrong."""


def bits(number):
    return struct.pack("<d", number)


def rows_of(text):
    """Rows of a CSV, as strictly as RFC 4180 reads."""
    if not text.endswith("\r\n") or "\n" in text.replace("\r\n", ""):
        raise Fault("a line that does not end in CR LF")
    return list(csv.DictReader(io.StringIO(text, newline=""), strict=True))


def check_wide(text, summary):
    rows = rows_of(text)
    if len(rows) != len(summary["conditions"]):
        raise Fault("rows")
    for row, condition in zip(rows, summary["conditions"]):
        parameters = condition["parameters"]
        keys = {"bandwidth": parameters["heads"]["kernel"]["bandwidth"], "sd": parameters["data"]["noise"]["sd"]}
        for name, value in keys.items():
            if bits(float(row[name])) != bits(float(value)):
                raise Fault(f"{name}: {row[name]} is not {value}")
        for name in FIGURES:
            for column, part in ((name, "value"), (name + "_mcse", "mcse")):
                if bits(float(row[column])) != bits(condition[name][part]):
                    raise Fault(f"{column}: {row[column]} is not {condition[name][part]!r}")


def check_long(text, summary, quantile):
    rows = rows_of(text)
    if len(rows) != len(FIGURES) * len(summary["conditions"]):
        raise Fault("rows")
    for row in rows:
        figure = summary["conditions"][int(row["condition"])][row["figure"]]
        if bits(float(row["value"])) != bits(figure["value"]) or bits(float(row["mcse"])) != bits(figure["mcse"]):
            raise Fault(f"{row['figure']}: another value")
        for column, side in (("lower", -1), ("upper", 1)):
            end = figure["value"] + side * quantile * figure["mcse"]
            # The quantile is given to seven digits, the ends are rounded sums.
            allowed = 1e-7 * quantile * figure["mcse"] + 4 * sys.float_info.epsilon * abs(end)
            if not abs(float(row[column]) - end) <= allowed:
                raise Fault(f"{row['figure']}: {column} is {row[column]}, not {end}")


def check_alike(of_results, of_summary, least):
    """What results.nc and summary.json both have is the same; at least so many columns are in both."""
    left, right = rows_of(of_results), rows_of(of_summary)
    if len(left) != len(right):
        raise Fault("rows")
    names = [name for name in left[0] if name in right[0]]
    if len(names) < least:
        raise Fault(f"columns in common: {names}")
    for one, other in zip(left, right):
        for name in names:
            # Whole numbers that are null in summary.json are 0 in results.nc.
            if one[name] != other[name] and (one[name], other[name]) != ("0", ""):
                raise Fault(f"{name}: {one[name]} is not {other[name]}")


def must_find(check, *arguments):
    try:
        check(*arguments)
    except Fault:
        return
    sys.exit(f"{check.__name__}: does not find a planted fault")


def student_975(df):
    """The t with P(T <= t) = 0.975, by bisection of Simpson's rule; to 1e-8."""
    scale = math.exp(math.lgamma((df + 1) / 2) - math.lgamma(df / 2)) / math.sqrt(df * math.pi)

    def probability(t, steps=2000):
        h = t / steps
        f = [scale * (1 + (i * h) ** 2 / df) ** (-(df + 1) / 2) for i in range(steps + 1)]
        return 0.5 + h / 3 * (f[0] + f[-1] + 4 * sum(f[1:-1:2]) + 2 * sum(f[2:-1:2]))

    low, high = 1.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if probability(middle) < 0.975 else (low, middle)
    return low


def check_r(text, summary):
    """What R printed in hexadecimal: the MSE of each condition, then their standard errors."""
    values = [bits(float.fromhex(word)) for word in text.split()]
    if values != [bits(condition["mse"][part]) for part in ("value", "mcse") for condition in summary["conditions"]]:
        raise Fault(f"R reads {text!r}")


def run_r(source, folder, headlab):
    """The blocks of R in the page, where R is there, and what is in their variables at the end."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        print("Rscript is not here: the lines of R were not run")
        return
    for command in ("run s.toml --out out/mine --quiet", "table out/mine --out mine.csv"):
        subprocess.run([headlab, *command.split()], cwd=folder, check=True, capture_output=True)
    summary = json.loads((folder / "out/mine/summary.json").read_text(encoding="utf-8"))
    page = (pathlib.Path(source) / "docs/tables.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```r\n(.*?)```", page, re.S)
    if len(blocks) != 2:
        sys.exit("docs/tables.md: has no two blocks of R")
    for block, numbers in zip(blocks, ("c(wide$mse, wide$mse_mcse)", "c(mse, mcse)")):
        if "ncdf4" in block:
            probe = [rscript, "-e", 'quit(status = if (requireNamespace("ncdf4", quietly = TRUE)) 0 else 3)']
            if subprocess.run(probe, check=False).returncode != 0:
                print("R has no ncdf4 here: its lines were not run")
                continue
        block += f'\ncat(sprintf("%a", {numbers}), file = "numbers")'
        said = subprocess.run([rscript, "-e", block], cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout
        if "WARNING" in said:  # ncdf4 prints it
            sys.exit(f"R warns: {said}")
        text = (folder / "numbers").read_text(encoding="utf-8")
        check_r(text, summary)
        must_find(check_r, text.replace("p-", "1p-", 1), summary)
        must_find(check_r, "", summary)


def main():
    headlab, source = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "s.toml").write_text(SCENARIO, encoding="utf-8")

        def output(*arguments):
            done = subprocess.run([headlab, *arguments], cwd=folder, capture_output=True, check=True)
            return done.stdout.decode("utf-8")

        output("run", "s.toml", "--out", "o", "--quiet", "--table", "run.csv")
        summary = json.loads((folder / "o/summary.json").read_text(encoding="utf-8"))
        wide = output("table", "o")
        check_wide(wide, summary)
        check_wide(output("table", "o/summary.json"), summary)
        if (folder / "run.csv").read_bytes().decode("utf-8") != wide:
            sys.exit("run --table: is not what table writes for the folder")
        digits = str(summary["conditions"][0]["mse"]["value"])
        must_find(check_wide, wide.replace(digits, digits[:-1]), summary)
        must_find(check_wide, wide.replace("\r\n", "\n"), summary)

        nodes = {row["jackknife_nodes"] for row in rows_of(output("table", "o", "--figures", "jackknife_nodes"))}
        quantile = student_975(int(nodes.pop()) - 1)
        long = output("table", "o", "--long", "--figures", ",".join(FIGURES))
        check_long(long, summary, quantile)
        must_find(check_long, long, summary, 1.96)

        for options in (["--compare"], ["--difference", "data.noise.sd"], ["--set", 'run.controls="exact"'],
                        ["--set", 'run.moments="aggregate"'],
                        ["--set", 'heads.subspaces={ law = "haar", redraw = true }', "--replicates", "1024"]):
            output("run", "s.toml", "--out", "p", "--overwrite", "--quiet", *options)
            for of in ([], ["--of", "heads"], ["--of", "queries"], ["--of", "pairs"]):
                try:
                    both = [output("table", place, "--figures", "all", *of) for place in ("p", "p/summary.json")]
                except subprocess.CalledProcessError:
                    if not of:
                        raise
                    continue  # refused: there are no such figures
                check_alike(*both, least=30)
        must_find(check_alike, both[0], both[1].replace(",2,", ",3,"), 30)
        must_find(check_alike, *both, 1000)
        run_r(source, folder, headlab)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stops every command of headlab at random moments, and checks what docs/resuming.md promises.

signals_check.py HEADLAB [--moments N] [--seed S] [--hangs SECONDS] [--only NAME]...: starts each command N times (30)
and stops it after a random time: by SIGINT, SIGTERM or SIGHUP, by a second signal 1.05 s after the
first, and by --max-time where the command has it, in turn. Its line must come, the exit code must be 6
(128 + n after a second signal), no temporary file and no half of a file may stay, and `--resume` must
give the figures of an uninterrupted run, to the bit. Commands that only read and write files say
"interrupted" and quit at the first signal. Prints a row for each command with the longest times; a wait
of a minute, or of SECONDS, is a failure. Exit code 1 where a promise is broken, and where help lists a command, or a
--max-time, that has no row.
"""
import argparse
import array
import dataclasses
import fcntl
import json
import math
import os
import pathlib
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

from commands import WORLD, commands_of

STOPPING = "headlab: stopping; again to quit at once\n"
INTERRUPTED = "headlab: interrupted\n"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LATE = "headlab: --max-time reached: "
SECOND_AFTER_S = 1.05
ONCE, TWICE, MAX_TIME = "once", "twice", "--max-time"

SCENARIO = WORLD + "replicates = 300\n"
SWEEP = '[sweep]\n"heads.kernel.bandwidth" = '
LEARNED = ['--set', 'heads.subspaces={ law = "learned", fit = "once", points = 20000, batch = 512, '
                    'steps = 100000 }']


@dataclasses.dataclass
class Command:
    name: str
    arguments: list
    span: float = 1.0        # seconds within which it is stopped
    resumes: bool = False    # an ended run is resumed and compared with an uninterrupted one
    quits: bool = False      # at the first signal
    ends: bool = True        # a training set under way ends soon
    max_time: bool = True    # takes --max-time, where the command has it
    locked: bool = False     # another process holds the lock of its folder

    def line(self):
        return INTERRUPTED if self.quits else STOPPING


COMMANDS = [
    Command("run", ["run", "a.toml", "--replicates", "REPLICATES", "--checkpoint", "0.05", "--out", "o",
                    "--threads", "2"], resumes=True),
    Command("run, sweep", ["run", "sweep.toml", "--checkpoint", "0.05", "--out", "o", "--threads", "2"],
            resumes=True),
    Command("run, many conditions", ["run", "many.toml", "--out", "o"]),
    Command("run, long training set", ["run", "a.toml", "--set", "data.n=2e9", "--replicates", "4", "--out",
                                       "o", "--threads", "1"], ends=False),
    Command("run, heads learned", ["run", "a.toml", *LEARNED, "--out", "o", "--threads", "1"]),
    Command("run, long replicate of depth", ["run", "STACK", "--set", "tokens.n=1024", "--set",
                                             "layers.count=200", "--out", "o", "--threads", "1"]),
    Command("run --compare", ["run", "sweep.toml", "--compare", "--out", "o", "--threads", "2"]),
    Command("dataset", ["dataset", "a.toml", "--replicates", "1e6", "--shards", "100", "--out", "o"]),
    Command("allocate", ["allocate", "--data", "a.toml", "--budget", "4", "--replicates", "1e9", "--json",
                         "o.json"]),
    Command("allocate --map", ["allocate", "--map", "--data", "a.toml", "--budget", "4", "--n", "10,20,40,80",
                               "--replicates", "1e7", "--out", "o"]),
    Command("allocate --source theory", ["allocate", "--data", "THEORY", "--source", "theory", "--budget",
                                         "4096", "--json", "o.json"]),
    Command("allocate --source theory, a budget reached", [
        "allocate", "--data", "THEORY", "--source", "theory", "--budget", "1,4096", "--json", "o.json"]),
    Command("validate", ["validate", "--level", "full", "--out", "o"]),
    Command("validate --calibrate", ["validate", "--calibrate", "--level", "full", "--out", "o"]),
    Command("theory", ["theory", "closed.toml", "--json", "o.json"]),
    Command("replay", ["replay", "a.toml", "--set", "data.n=1e6", "--set",
                       "queries={ law = 'design', count = 64 }", "--replicate", "3", "--out", "o"]),
    Command("hdi", ["hdi", "heads.npy", "--json", "o.json"], span=0.5),
    Command("import-heads", ["import-heads", "MODEL", "--layer", "all", "--out", "heads.nc"], span=0.02),
    Command("compress", ["compress", "small.nc", "--rank", "4", "--replicates", "65536", "--json", "o.json",
                         "--out", "heads.nc"]),
    Command("run, weights by a pilot", ["run", "a.toml", "--set", "heads.weights={ law = 'optimal', replicates = 10000000 }",
                                        "--out", "o", "--threads", "1"]),
    Command("run, pilot of controls", ["run", "a.toml", "--set", "run.controls={ law = 'exact', pilot = 65536 }",
                                       "--set", "data.n=10000", "--replicates", "20000000", "--out", "o", "--threads",
                                       "1"]),
    Command("run --until", ["run", "a.toml", "--until", "mse=1e-9", "--replicates", "1e12", "--out", "o", "--threads", "1"]),
    Command("run --shard", ["run", "sweep.toml", "--shard", "1/2", "--out", "o", "--threads", "2"]),
    Command("run, standard input", ["run", "-", "--out", "o"], span=0.2),
    Command("theory, standard input", ["theory", "-", "--json", "o.json"], span=0.2),
    Command("dataset, another process has the lock", ["dataset", "a.toml", "--replicates", "1000", "--out", "o"],
            locked=True),
    Command("import-activations", ["import-activations", "acts.safetensors", "--out", "heads.nc"], span=0.3),
    Command("heads", ["heads", "acts.safetensors", "--json", "o.json", "--out", "heads.nc"], span=0.5),
    Command("prune", ["prune", "acts.safetensors", "--remove", "25%"], span=0.5),
    Command("diff", ["diff", "results_a", "results_b", "--json", "o.json"], span=0.2, quits=True),
    Command("report", ["report", "results_a", "--out", "o.html"], span=0.2, quits=True),
    Command("table", ["table", "results_a", "--out", "o.csv"], span=0.2, quits=True),
    Command("along", ["along", "results_a", "--over", "bandwidth", "--json", "o.json"], span=0.2, quits=True),
    Command("plot", ["plot", "results_a", "--out", "o.svg"], span=0.2, quits=True),
    Command("merge", ["merge", "shards", "--out", "o"], span=0.2, quits=True),
    Command("status", ["status", "shards"], span=0.2, quits=True),
    Command("init", ["init", "o.toml"], span=0.02, quits=True),
    Command("list", ["list", "scenarios"], span=0.02, quits=True),
    Command("doctor", ["doctor"], span=0.2, quits=True),
    Command("help", ["help", "run"], span=0.02, quits=True),
]


def is_ready(process):
    """Whether the program waits for signals, which then no longer end it."""
    try:
        for line in pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines():
            if line.startswith("SigBlk:"):
                blocked = int(line.split()[1], 16)
                return bool(blocked >> (signal.SIGINT - 1) & 1) and not blocked >> (signal.SIGVTALRM - 1) & 1
    except OSError:
        pass
    return False


def wait_for(condition, seconds, process):
    """Seconds until the condition holds; None where it does not in time, or the program ends first."""
    start = time.monotonic()
    while True:
        ended = process.poll() is not None
        if condition():
            return time.monotonic() - start
        if ended or time.monotonic() - start > seconds:
            return None
        time.sleep(0.002)


def default_signals():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def figures(folder):
    """All that a run finds, without the time it took."""
    def bare(value):
        if isinstance(value, dict):
            return {k: bare(v) for k, v in value.items() if k not in ("seconds", "weights_per_second")}
        return [bare(item) for item in value] if isinstance(value, list) else value
    document = json.loads((folder / "o/summary.json").read_text())
    if not document["complete"]:
        raise ValueError("is not complete")
    return bare(document["conditions"])


class Check:
    def __init__(self, headlab, folder, number_of_moments, seed, hangs_s):
        self.headlab, self.folder, self.moments, self.random = headlab, folder, number_of_moments, random.Random(seed)
        self.hangs_s = hangs_s
        self.failures = []
        self.limited = {}  # whether a command has --max-time

    def start(self, arguments):
        with open(self.folder / ".err", "wb") as err, open(self.folder / ".out", "wb") as out:
            # Standard input stays open and says nothing.
            return subprocess.Popen([self.headlab, *arguments], cwd=self.folder, stdin=subprocess.PIPE, stdout=out,
                                    stderr=err, preexec_fn=default_signals)

    def said(self):
        return (self.folder / ".err").read_text(errors="replace")

    def clean(self):
        shutil.rmtree(self.folder / "o", ignore_errors=True)
        for name in ("o.json", "o.html", "o.csv", "o.svg", "o.toml", "heads.nc"):
            (self.folder / name).unlink(missing_ok=True)

    def whole_files(self):
        for path in self.folder.rglob("*"):
            if ".tmp-" in path.name or path.name == ".headlab-lock":
                return f"{path.name} stays"
            if path.suffix == ".json":
                json.loads(path.read_text())
        return None

    def check(self, command, turn):
        """Returns what it found, as a row of the table."""
        expected = None
        if command.resumes:
            self.clean()
            if self.start(command.arguments).wait() != 0:
                raise SystemExit(f"signals_check: {command.name} fails without a signal: {self.said()}")
            expected = figures(self.folder)
        row = {"command": command.name, "moments": self.moments, "done": 0, "ended": 0, "quit": 0, "resumed": 0,
               "line": 0.0, "quit_s": 0.0, "end_s": 0.0}
        ways = [ONCE, TWICE] if command.ends else [TWICE]
        if command.max_time and self.has_max_time(command.arguments[0]):
            ways.append(MAX_TIME)
        for moment in range(self.moments):
            number = self.random.choice(SIGNALS)
            delay = self.random.uniform(0.01, command.span)
            way = ways[(turn + moment) % len(ways)]
            try:
                problem = self.one(command, number, delay, way, expected, row)
            except (ValueError, OSError) as error:
                problem = str(error)
            if problem:
                by = "--max-time" if way == MAX_TIME else f"{signal.Signals(number).name}, {way},"
                self.failures.append(f"{command.name}, {by} after {delay:.3f} s: {problem}")
        return row

    def has_max_time(self, name):
        if name not in self.limited:
            text = subprocess.run([self.headlab, "help", name], capture_output=True, text=True, check=True).stdout
            self.limited[name] = any(line.split()[:1] == ["--max-time"] for line in text.splitlines())
        return self.limited[name]

    def one(self, command, number, delay, way, expected, row):
        self.clean()
        if command.locked:
            (self.folder / "o").mkdir()
            holder = os.open(self.folder / "o", os.O_RDONLY)
            try:
                fcntl.flock(holder, fcntl.LOCK_EX)
                return self.stopped(command, number, delay, way, expected, row)
            finally:
                os.close(holder)
        return self.stopped(command, number, delay, way, expected, row)

    def stopped(self, command, number, delay, way, expected, row):
        limit = ["--max-time", f"{delay:.3f}s"] if way == MAX_TIME else []
        process = self.start([*command.arguments, *limit])
        try:
            line = 0.0
            if way != MAX_TIME:
                wait_for(lambda: is_ready(process), self.hangs_s, process)
                time.sleep(delay)
                process.send_signal(number)
                line = wait_for(lambda: command.line() in self.said(), self.hangs_s, process)
                if line is not None:
                    row["line"] = max(row["line"], line)
                elif process.poll() is None:
                    return f"no line within {self.hangs_s:.0f} s"
                if command.quits:
                    return self.quits(process, number, row)
            if way == TWICE and process.poll() is None:
                wait_for(lambda: False, SECOND_AFTER_S - (line or 0), process)
                if process.poll() is None:
                    process.send_signal(number)
                    return self.quits(process, number, row)
            took = wait_for(lambda: process.poll() is not None, self.hangs_s, process)
            if took is None:
                return f"does not end within {self.hangs_s:.0f} s"
            row["end_s"] = max(row["end_s"], took - (delay if way == MAX_TIME else 0) + (line or 0))
            return self.ended(command, process, number, way, expected, row)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
            process.stdin.close()

    def quits(self, process, number, row):
        took = wait_for(lambda: process.poll() is not None, self.hangs_s, process)
        if took is None:
            return f"does not quit within {self.hangs_s:.0f} s"
        if process.returncode == 128 + number:
            row["quit"] += 1
            row["quit_s"] = max(row["quit_s"], took)
        elif process.returncode in (0, 6):
            row["done" if process.returncode == 0 else "ended"] += 1  # just before the signal
        else:
            return f"exit code {process.returncode}: {self.said()}"
        return self.whole_files()

    def ended(self, command, process, number, way, expected, row):
        if process.returncode == 0:
            row["done"] += 1
            return self.whole_files()
        # Once its results are written the program no longer looks for signals.
        if process.returncode == 128 + number and self.said().endswith(INTERRUPTED):
            row["quit"] += 1
            return self.whole_files()
        if process.returncode != 6:
            return f"exit code {process.returncode}: {self.said()}"
        if self.said().count(LATE if way == MAX_TIME else "headlab: interrupted") != 1:
            return f"says: {self.said()}"
        row["ended"] += 1
        problem = self.whole_files()
        if problem or not command.resumes:
            return problem
        if self.start([*command.arguments, "--resume"]).wait() != 0:
            return f"does not resume: {self.said()}"
        if figures(self.folder) != expected:
            return "has other figures when resumed"
        row["resumed"] += 1
        return None


def write_inputs(folder, root):
    (folder / "a.toml").write_text(SCENARIO)
    (folder / "many.toml").write_text(SCENARIO + SWEEP + "{ linspace = [0.1, 1, 900000] }\n")
    (folder / "sweep.toml").write_text(
        SCENARIO.replace("n = 20\n", "n = 8000\n") + SWEEP + "{ linspace = [0.2, 1, 400] }\n")
    (folder / "closed.toml").write_text(
        SCENARIO.replace("dim = 2\n", "dim = 1\n").replace("count = 2\n", "count = 4\n") + SWEEP +
        "{ linspace = [0.2, 1, 400] }\n")
    heads, d, k = 32, 512, 32
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({heads}, {d}, {k}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    numbers = random.Random(1)
    values = array.array("d", (numbers.gauss(0, 1) for _ in range(heads * d * k)))
    (folder / "heads.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") +
                                       header.encode() + values.tobytes())
    (folder / "acts.safetensors").write_bytes(activations(numbers))
    places = {"THEORY": str(root / "scenarios/scaling_law_theory.toml"),
              "STACK": str(root / "scenarios/rank_collapse.toml"),
              "MODEL": str(root / "scenarios/data/small_model")}
    for command in COMMANDS:
        command.arguments = [places.get(a, a) for a in command.arguments]


def activations(numbers):
    """Two attention layers on 32 documents of 256 random tokens, of which every 4096 numbers are the same."""
    documents, heads, tokens, k, d = 32, 8, 256, 8, 32
    part = array.array("f", (numbers.gauss(0, 1) for _ in range(4096)))
    header, data = {}, b""
    for layer in (0, 1):
        for name, shape in {"q": [documents, heads, tokens, k], "k": [documents, heads, tokens, k],
                            "v": [documents, heads, tokens, k], "W_O": [heads, k, d], "residual": [documents, tokens, d],
                            "grad_z": [documents, heads, tokens, k]}.items():
            raw = (part * (math.prod(shape) // len(part) + 1))[:math.prod(shape)].tobytes()
            header[f"layers.{layer}.{name}"] = {"dtype": "F32", "shape": shape,
                                                "data_offsets": [len(data), len(data) + len(raw)]}
            data += raw
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def without_rows(check):
    """Commands that help lists and the table lacks, and those whose --max-time no row uses."""
    rows = {command.arguments[0] for command in COMMANDS}
    limited = {command.arguments[0] for command in COMMANDS if command.max_time and not command.quits}
    return [f"{name}: has no row in COMMANDS" if name not in rows else f"{name}: no row has its --max-time"
            for name in sorted(commands_of(check.headlab))
            if name not in rows or check.has_max_time(name) and name not in limited]


def make_inputs(check):
    """Files that headlab writes and other commands read."""
    model = str(pathlib.Path(__file__).resolve().parent.parent.parent / "scenarios/data/small_model")
    runs = [["run", "sweep.toml", "--set", "data.n=20", "--seed", seed, "--out", f"results_{name}"]
            for name, seed in (("a", "1"), ("b", "2"))]
    shards = [["run", "sweep.toml", "--set", "data.n=20", "--shard", f"{part}/2", "--out", "shards"] for part in (1, 2)]
    for arguments in [["import-heads", model, "--layer", "all", "--out", "small.nc"], *runs, *shards]:
        if check.start(arguments).wait() != 0:
            raise SystemExit(f"signals_check: {arguments[0]} fails: {check.said()}")


def replicates_of_seconds(check, seconds):
    """Replicates that a run takes so long for."""
    count, took = 10000, 0.0
    while took < seconds / 4 and count < 10**9:
        count *= 2
        start = time.monotonic()
        check.start(["run", "a.toml", "--replicates", str(count), "--threads", "2"]).wait()
        took = time.monotonic() - start
    return str(int(count * seconds / took))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("headlab")
    parser.add_argument("--moments", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hangs", type=float, default=60)
    parser.add_argument("--only", action="append", default=[])
    arguments = parser.parse_args()
    unknown = set(arguments.only) - {command.name for command in COMMANDS}
    if unknown:
        parser.error(f"--only: unknown: {', '.join(sorted(unknown))}")
    headlab = str(pathlib.Path(arguments.headlab).resolve())
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        write_inputs(folder, pathlib.Path(__file__).resolve().parent.parent.parent)
        check = Check(headlab, folder, arguments.moments, arguments.seed, arguments.hangs)
        if missing := without_rows(check):
            raise SystemExit("\n".join(missing))
        make_inputs(check)
        replicates = None
        print("| command | moments | ended with 6 | quit with 128 + n | done before | resumed, same figures | "
              "line after [s] | quit after [s] | ended after [s] |\n|---|---|---|---|---|---|---|---|---|", flush=True)
        for turn, command in enumerate(COMMANDS):
            if arguments.only and command.name not in arguments.only:
                continue
            if "REPLICATES" in command.arguments:
                replicates = replicates or replicates_of_seconds(check, 3)
                command.arguments = [replicates if a == "REPLICATES" else a for a in command.arguments]
            row = check.check(command, turn)
            print(f"| {row['command']} | {row['moments']} | {row['ended']} | {row['quit']} | {row['done']} | "
                  f"{row['resumed'] if command.resumes else '–'} | {row['line']:.2f} | {row['quit_s']:.2f} | "
                  f"{row['end_s']:.1f} |", flush=True)
        for failure in check.failures:
            print("signals_check:", failure, file=sys.stderr)
        sys.exit(1 if check.failures else 0)


if __name__ == "__main__":
    main()

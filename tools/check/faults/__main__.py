#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills commands of headlab, and fails their calls of the system, one call at a time.

faults HEADLAB INJECTOR [--most N] [--most-memory N] [--only NAME]... [--kinds KIND,...] [--part I/N] [--hangs SECONDS]

Each command is run in a folder with files of a user, and the K-th call of the system that concerns a
file there fails, for every K, or for N of them, drawn for each command and kind (--most, and --most-memory
of allocations). A command that does not end in 120 s, or so many seconds (--hangs), breaks a promise too.
Promised:

kill      the same command again, or with what its message offers, ends with the bits of a run that was
          not killed; no file of the user is changed, and no temporary one is left
28, 5, .. a number of errno (28: disk full, 122: quota, 5: input or output, 24: too many files, 4: a signal):
          the command ends with exit code 0 and the right files, or with 1 or 2 and a line on standard
          error that names the cause; never by a signal. Run again it ends as after a kill
INT, TERM the signal comes: the command ends as if there had been none, or with exit code 6 or 128 + n and a line
          that begins with "headlab: interrupted", and leaves no temporary file. Run again it ends as after a kill
short     half of the bytes are written or read: nothing changes
          Where libhdf5 itself writes a data set a call that fails may end the program by a signal: as after a kill
memory    an allocation fails, of each that has callers of its own the first: as with a number. One that fails inside libhdf5, libnetcdf or CLI11 may end the
          program by a signal, or with words of the library: as after a kill

Prints a row for each command and kind, and every broken promise; exit code 1 where there is one.
"""
import argparse
import dataclasses
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import netCDF4

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from commands import commands_of  # noqa: E402

HERE = Path(__file__).resolve().parent
TREE = HERE.parents[2]
WORLD = TREE / "tools/cli/testing/world"
CHANGES, READS, MEMORY = "change", "read", "memory"
KINDS = {"kill": CHANGES, "28": CHANGES, "122": CHANGES, "5": CHANGES, "24": CHANGES, "4": CHANGES, "short": CHANGES,
         "INT": CHANGES, "TERM": CHANGES, "read-5": READS, "read-24": READS, "read-4": READS, "read-short": READS,
         "read-INT": READS, "read-TERM": READS, "memory": MEMORY}
SIGNALS = {"INT": signal.SIGINT, "TERM": signal.SIGTERM}
# Whose allocations that fail the program cannot answer for: objects, and functions in the program itself.
LIBRARIES = ("/libhdf5", "/libnetcdf")
COMPILED_IN = ("CLI::",)
# Of a run and not of its figures.
TIMES = {"seconds", "weights_per_second", "pilot_seconds", "date", "results_id", "time", "wall_seconds", "sha256", "sums"}
PRECIOUS = "mine, and worth keeping\n"


@dataclasses.dataclass
class Command:
    name: str
    line: str                   # words, after `headlab`
    before: tuple = ()          # commands that make the folder
    outputs: tuple = ("o",)     # what is compared
    precious: tuple = ()        # files of the user among the outputs, beside those in the folder itself
    damaged: tuple = ()         # files whose last byte is changed before
    streams: bool = False       # libhdf5 itself writes the file, and does not survive every call that fails


SMALL = "--replicates 64 --threads 2 --quiet"
COMMANDS = [
    Command("run", f"run s.toml {SMALL} --out o"),
    Command("run --json --report --table", f"run s.toml {SMALL} --json o.json --report o.html --table o.csv",
            outputs=("o.json", "o.html", "o.csv")),
    Command("run --resume", "run s.toml --replicates 96 --threads 2 --quiet --out o --resume",
            before=(f"run s.toml {SMALL} --out o",)),
    Command("run --overwrite", f"run s.toml {SMALL} --out o --overwrite",
            before=(f"run s.toml {SMALL} --seed 8 --out o",)),
    Command("run --shard", f"run s.toml {SMALL} --shard 1/2 --out o"),
    Command("merge", "merge p --out o --quiet",
            before=(f"run s.toml {SMALL} --shard 1/2 --out p", f"run s.toml {SMALL} --shard 2/2 --out p")),
    Command("validate", "validate claim.toml --replicates 8192 --threads 2 --quiet --out o"),
    Command("validate, begun by --resume",
            "validate claim.toml --replicates 8192 --threads 2 --quiet --out o --resume"),
    Command("validate --resume", "validate claim.toml --replicates 8192 --threads 2 --quiet --out o --resume",
            before=("validate claim.toml --replicates 8192 --threads 2 --quiet --shard 1/2 --out o",
                    "validate claim.toml --replicates 8192 --threads 2 --quiet --shard 2/2 --out o")),
    Command("allocate", "allocate --data a.toml --budget 4 --replicates 1024 --threads 2 --quiet --json o.json",
            outputs=("o.json",)),
    Command("allocate --map", "allocate --data a.toml --budget 4 --n 20,30,40,50 --map --replicates 1024 --threads 2 --quiet "
            "--out o --resume"),
    Command("dataset npy", "dataset s.toml --replicates 4 --shards 2 --format npy --quiet --out o"),
    Command("dataset, damaged", "dataset s.toml --replicates 4 --shards 2 --format npy --quiet --out o",
            before=("dataset s.toml --replicates 4 --shards 2 --format npy --quiet --out o",),
            damaged=("o/condition_000/shard_001/X.npy", "o/condition_001/shard_001/X.npy")),
    Command("dataset netcdf", "dataset a.toml --replicates 4 --shards 2 --quiet --out o", streams=True),
    Command("dataset --overwrite", "dataset s.toml --replicates 4 --shards 2 --format npy --quiet --out o --seed 8 "
            "--overwrite", before=("dataset s.toml --replicates 4 --shards 3 --format npy --quiet --out o",),
            precious=("o/condition_000/shard_002/notes.txt",)),
    Command("replay", "replay a.toml --replicate 3 --quiet --out o"),
    Command("init", "init o.toml", outputs=("o.toml",)),
    Command("status", "status p", before=(f"run s.toml {SMALL} --shard 1/2 --out p",), outputs=()),
    Command("report", "report p --out o.html", before=(f"run s.toml {SMALL} --out p",), outputs=("o.html",)),
    Command("table", "table p --out o.csv", before=(f"run s.toml {SMALL} --out p",), outputs=("o.csv",)),
    Command("plot", "plot p --out o.svg", before=(f"run s.toml {SMALL} --out p",), outputs=("o.svg",)),
    Command("along", "along p --over bandwidth --json o.json", before=(f"run s.toml {SMALL} --out p",), outputs=("o.json",)),
    Command("theory", "theory a.toml --json o.json", outputs=("o.json",)),
    Command("import-heads", "import-heads model.safetensors --arch bert --heads 3 --out o.nc", outputs=("o.nc",)),
    Command("hdi", "hdi heads.nc --json o.json --report o.html",
            before=("import-heads model.safetensors --arch bert --heads 3 --out heads.nc",),
            outputs=("o.json", "o.html")),
    Command("compress", "compress heads.nc --rank 2 --n 16 --replicates 8 --out o.nc --json o.json",
            before=("import-heads model.safetensors --arch bert --heads 3 --out heads.nc",), outputs=("o.nc", "o.json")),
    Command("import-activations", "import-activations acts.safetensors --out o.nc", outputs=("o.nc",)),
    Command("heads", "heads acts.safetensors --out o.nc --json o.json", outputs=("o.nc", "o.json")),
    Command("prune", "prune acts.safetensors --remove 25% --checkpoint model --out o"),
    Command("prune --overwrite", "prune acts.safetensors --remove 25% --checkpoint model --out o --overwrite",
            before=("prune acts.safetensors --remove 50% --checkpoint model --out o",)),
    Command("diff", "diff p q --json o.json",
            before=(f"run s.toml {SMALL} --out p", f"run s.toml {SMALL} --out q"), outputs=("o.json",)),
]
WITHOUT_FILES = {"list", "doctor", "help"}
CLAIM = """
[[claim.compare]]
name = "narrow windows vary more"
less = { figure = "head_variance_mean", at = { "heads.kernel.bandwidth" = 0.8 } }
than = { figure = "head_variance_mean", at = { "heads.kernel.bandwidth" = 0.4 } }
margin = { relative = 0.02 }
"""
CONFIG = json.dumps({"model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2, "num_hidden_layers": 2,
                     "hidden_size": 8, "head_dim": 2})


class World:
    """A folder with the inputs of all commands."""

    def __init__(self, headlab, injector, folder, hangs_s):
        self.headlab, self.injector, self.folder, self.hangs_s = headlab, injector, folder, hangs_s
        self.start = folder / "start"
        self.start.mkdir()
        for path in WORLD.glob("*.toml"):
            shutil.copy(path, self.start)
        (self.start / "claim.toml").write_text((self.start / "s.toml").read_text() + CLAIM)
        subprocess.run([sys.executable, TREE / "tools/cli/testing/write_input.py", "bert",
                        self.start / "model.safetensors"], check=True)
        subprocess.run([sys.executable, TREE / "tools/cli/testing/write_input.py", "activations",
                        self.start / "acts.safetensors"], check=True)
        (self.start / "model").mkdir()
        (self.start / "model/config.json").write_text(CONFIG)
        subprocess.run([sys.executable, TREE / "tools/cli/testing/write_input.py", "llama",
                        self.start / "model/model.safetensors"], check=True)
        (self.start / "precious.txt").write_text(PRECIOUS)

    def run(self, folder, line, call=0, calls="none", kind="kill", mark=None, count=None, places=None):
        environment = dict(os.environ, LC_ALL="C.UTF-8", HEADLAB_CLOCK="1700000000", LD_PRELOAD=str(self.injector), HEADLAB_FAULT_CALL=str(call),
                           HEADLAB_FAULT_CALLS=calls, HEADLAB_FAULT_KIND=kind, HEADLAB_FAULT_BELOW=str(folder))
        if mark:
            environment["HEADLAB_FAULT_MARK"] = str(mark)
        if count:
            environment["HEADLAB_FAULT_COUNT"] = str(count)
        if places:
            environment["HEADLAB_FAULT_PLACES"] = str(places)
        return subprocess.run([self.headlab, *line.split()], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, errors="replace", timeout=self.hangs_s)

    def fresh(self, name, source):
        folder = self.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(source, folder, symlinks=True)
        return folder


def without_times(value):
    if isinstance(value, dict):
        return {key: without_times(inner) for key, inner in value.items() if key not in TIMES}
    return [without_times(inner) for inner in value] if isinstance(value, list) else value


def content_of(group):
    """Of a NetCDF group, as text."""
    variables = {name: str(of[...].tolist()) for name, of in group.variables.items() if name not in TIMES}
    attributes = {name: str(group.getncattr(name)) for name in group.ncattrs() if name not in TIMES}
    return variables, attributes, {name: content_of(inner) for name, inner in group.groups.items()}


def state_of(folder):
    """What changes where a file there is written, made or removed."""
    states = {path: path.lstat() for path in folder.rglob("*")}
    return {path: (state.st_ino, state.st_mode, state.st_size, state.st_mtime_ns) for path, state in states.items()}


class Study:
    """One command: what it makes undisturbed, and what it makes of a fault."""

    def __init__(self, world, command):
        self.world, self.command = world, command
        self.ready = world.fresh("ready", world.start)
        for line in command.before:
            done = world.run(self.ready, line)
            if done.returncode != 0:
                raise SystemExit(f"{command.name}: {line}: {done.stderr}")
        for path in command.damaged:
            content = (self.ready / path).read_bytes()
            (self.ready / path).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        for path in command.precious:
            (self.ready / path).write_text(PRECIOUS)
        self.right = world.fresh("right", self.ready)
        self.numbers = {}
        done = world.run(self.right, command.line)
        self.code = done.returncode
        if self.code not in (0, 3, 6):
            raise SystemExit(f"{command.name}: code {self.code}: {done.stderr}")
        self.files = self.content(self.right)
        self.untouched = None  # the state of a folder that the command has not changed

    def work(self):
        """A folder that the command has not changed: the last one, where that is so."""
        folder = self.world.folder / "work"
        if self.untouched is None or state_of(folder) != self.untouched:
            self.world.fresh("work", self.ready)
            self.untouched = state_of(folder)
        return folder

    def calls(self, calls):
        """Numbers of the calls that are made to fail; of allocations the first of each place in the program."""
        if calls not in self.numbers:
            file = self.world.folder / "numbers"
            told = {"places": file} if calls == MEMORY else {"count": file}
            self.world.run(self.work(), self.command.line, calls=calls, **told)
            numbers = sorted(map(int, file.read_text().split()))
            self.numbers[calls] = numbers if calls == MEMORY else range(1, numbers[0] + 1)
        return self.numbers[calls]

    def content(self, folder):
        """What is compared of each output: files by name."""
        found = {}
        for output in self.command.outputs:
            top = folder / output
            for path in sorted(p for p in ([top] if top.is_file() else top.rglob("*")) if p.is_file()):
                found[str(path.relative_to(folder))] = self.essence(path)
        return found

    def essence(self, path):
        if path.name == "results.nc" or path.suffix == ".html" or path.name.startswith(("units_", "shard_1_of")):
            return path.read_bytes()[-8:] if path.suffix == ".html" else "compared by the program"
        if path.name in ("replay.nc", "map.nc"):  # the library writes down when it made them
            with netCDF4.Dataset(path) as file:
                return content_of(file)
        if path.suffix == ".md":
            return re.sub(r"[\d.]+ (s|min|h)\b", "", path.read_text())
        if path.suffix == ".json":
            try:
                return without_times(json.loads(path.read_text()))
            except ValueError:
                return "no JSON"
        return hashlib.sha256(path.read_bytes()).hexdigest()

    def problems_of_files(self, folder, tidy=True):
        """What is wrong in a folder where the command has done its work.

        tidy: also what is left over; a call that removes a file may itself be the one that failed.
        """
        found = []
        content = self.content(folder)
        for name in sorted(self.files.keys() | content.keys()):
            if name not in content:
                found.append(f"{name} is missing")
            elif name not in self.files:
                found += [f"{name} is left over"] if tidy else []
            elif content[name] != self.files[name]:
                found.append(f"{name} is another")
        if not found and (folder / "o/results.nc").is_file():
            same = self.world.run(folder, f"diff {folder}/o {self.right}/o")
            if same.returncode != 0:
                found.append(f"results.nc differs ({same.returncode}: {(same.stdout + same.stderr).strip()[-200:]})")
        return found + self.lost(folder) + (self.left_over(folder) if tidy else [])

    def left_over(self, folder, stopped=False):
        """stopped: a new data set beside the old one stays for the command that goes on."""
        return [f"{path.relative_to(folder)} is left over" for path in folder.rglob("*")
                if ".tmp-" in path.name or path.name.startswith(".headlab") and not stopped]

    def lost(self, folder):
        return [f"{name} is lost" for name in ("precious.txt", *self.command.precious)
                if not (folder / name).is_file() or (folder / name).read_text() != PRECIOUS]

    def again(self, folder):
        """The same command, and then with what its message offers; nothing where it would find what it found before.
        """
        if state_of(folder) == self.untouched:
            return []
        done = self.world.run(folder, self.command.line)
        for option in ("--resume", "--overwrite"):
            if done.returncode == 2 and option in done.stderr and option not in self.command.line:
                done = self.world.run(folder, f"{self.command.line} {option}")
        if done.returncode != self.code:
            return [f"run again: code {done.returncode}: {done.stderr.strip()[-200:]}"]
        return [f"run again: {problem}" for problem in self.problems_of_files(folder)]

    def failed(self, done):
        """Whether a command ended by a signal, or without a line of its own."""
        return done.returncode < 0 or done.returncode in (1, 2) and not done.stderr.startswith("headlab: ")

    def says_why(self, kind, done):
        """Whether the line names what the system said; libhdf5 keeps that to itself."""
        cause = kind.removeprefix("read-")
        return not cause.isdigit() or self.command.streams or os.strerror(int(cause)) in done.stderr

    def in_library(self, mark):
        """Whether the call that failed was made by a library, by the callers in its mark."""
        callers = [line.split("\t") for line in mark.read_text().splitlines()]
        if any(library in path for path, _ in callers for library in LIBRARIES):
            return True
        here = [place for path, place in callers if Path(path).name == self.world.headlab.name]
        # A caller's place is that behind its call.
        names = subprocess.run(["addr2line", "-Cfe", self.world.headlab, *(hex(int(place, 16) - 1) for place in here)],
                               capture_output=True, text=True, check=True).stdout
        return any(name.startswith(COMPILED_IN) for name in names.splitlines())

    def interrupted(self, folder, done, number):
        """What is wrong after a signal."""
        if done.returncode in (6, 128 + number) and done.returncode != self.code:
            line = re.search(r"^headlab: interrupted", done.stderr, re.MULTILINE)
            found = [] if line else [f"code {done.returncode}: {done.stderr.strip()[-200:]!r}"]
            found += self.left_over(folder, stopped=True)
            # A signal that is taken once the files are there finds nothing to do again.
            return found + (self.again(folder) if self.problems_of_files(folder) else [])
        if done.returncode != self.code:
            return [f"code {done.returncode}: {done.stderr.strip()[-200:]!r}"]
        return self.problems_of_files(folder)

    def problems(self, kind, call):
        folder, mark = self.work(), self.world.folder / "mark"
        mark.unlink(missing_ok=True)
        calls = KINDS[kind]
        number = SIGNALS.get(kind.removeprefix("read-"))
        fault = f"signal-{number.value}" if number else {"memory": "12"}.get(kind, kind.removeprefix("read-"))
        done = self.world.run(folder, self.command.line, call, calls, fault, mark)
        if not mark.exists():
            return []  # it makes fewer calls this time
        found = self.lost(folder)
        if kind == "kill":
            return found + self.again(folder)
        if number:
            return found + self.interrupted(folder, done, number)
        if done.returncode < 0 and self.command.streams or kind == "memory" and self.failed(done) and self.in_library(mark):
            return found + self.again(folder)
        if done.returncode < 0:
            found.append(f"ended by signal {-done.returncode}: {done.stderr.strip()[-200:]}")
        elif done.returncode == self.code:
            found += self.problems_of_files(folder, tidy=False)
        elif done.returncode not in (1, 2):
            found.append(f"code {done.returncode}")
        elif self.failed(done) or kind.endswith("short") or not self.says_why(kind, done):
            found.append(f"code {done.returncode}: {done.stderr.strip()[-200:]!r}")
        # `init` writes over no file, also not over the one that it has made.
        done_once = self.command.name == "init" and not self.problems_of_files(folder, tidy=False)
        return found + (self.again(folder) if calls != READS and not found and not done_once else [])


def drawn(calls, most, *drawn_for):
    """Of the numbers of calls all, or so many, always the same for the same command and kind."""
    if most is None or len(calls) <= most:
        return list(calls)
    return sorted(random.Random(" ".join(drawn_for)).sample(calls, most))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headlab", type=Path)
    parser.add_argument("injector", type=Path)
    parser.add_argument("--most", type=int)
    parser.add_argument("--most-memory", type=int, default=20)
    parser.add_argument("--hangs", type=float, default=120)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--part", default="1/1", help="every N-th command from the I-th on")
    arguments = parser.parse_args()
    first, parts = map(int, arguments.part.split("/"))
    missing = commands_of(arguments.headlab.resolve()) - WITHOUT_FILES - {one.line.split()[0] for one in COMMANDS}
    if missing:
        raise SystemExit("\n".join(f"{name}: has no row in COMMANDS" for name in sorted(missing)))
    broken = 0
    with tempfile.TemporaryDirectory() as folder:
        world = World(arguments.headlab.resolve(), arguments.injector.resolve(), Path(folder).resolve(),
                      arguments.hangs)
        for command in COMMANDS[first - 1::parts]:
            if arguments.only and command.name not in arguments.only:
                continue
            study = Study(world, command)
            for kind in arguments.kinds.split(","):
                calls = study.calls(KINDS[kind])
                most = arguments.most_memory if kind == "memory" else arguments.most
                tried = drawn(calls, most, command.name, kind)
                faults = 0
                for call in tried:
                    try:
                        problems = study.problems(kind, call)
                    except subprocess.TimeoutExpired as late:  # of the command, or of one that comes after it
                        problems = [f"does not end: {' '.join(map(str, late.cmd[1:]))}"]
                    faults += bool(problems)
                    for problem in problems:
                        print(f"{command.name}, {kind} at call {call}: {problem}", flush=True)
                broken += faults
                print(f"{command.name:22} {kind:10} {len(tried)} of {len(calls)} calls, {faults} broken promises", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

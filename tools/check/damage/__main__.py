#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Damages the files of headlab at one place each, and lets a command read them.

damage HEADLAB FORKS [--flips N] [--seed S] [--only NAME]... [--maker HEADLAB]

Promised of every kind of file that the program writes and reads, and of every bit of it: the command refuses the
file (exit code 1 or 2, one line on standard error), or shows and writes what it does of the whole file. It never
ends by a signal, ends in ten minutes, and takes no more than 1.5 GiB. N bits of each kind are drawn.

NetCDF files are damaged twice: as they are, where the sum after the last byte shows it, and without that sum, as a
file to which another program appended, where a process of its own reads them first; there half of the places get
eight bytes 0xff, and half of these lie where HDF5 keeps texts and their lengths.

A command is loaded once, with FORKS (forks.cpp) preloaded, and runs in a copy of that process for each damage.

Prints a row for each kind, and every broken promise; exit code 1 where there is one.
"""
import argparse
import dataclasses
import os
import random
import re
import resource
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

TREE = Path(__file__).resolve().parents[3]
WORLD = TREE / "tools/cli/testing/world"
# What reads a file first may take five seconds of processor time, a hundred times as long where others work.
ENDS_S = 600
ENVIRONMENT = dict(os.environ, LC_ALL="C.UTF-8", HEADLAB_CLOCK="1700000000")
MOST_BYTES = 1.5 * 2**30
TRAILER = re.compile(rb"\nheadlab SHA-256 [0-9a-f]{64}\n$")
SMALL = "--replicates 16 --threads 1 --quiet"
TWO = (f"run s.toml {SMALL} --out p", f"run s.toml {SMALL} --seed 8 --out q")
SHARDS = (f"run s.toml {SMALL} --shard 1/2 --out p", f"run s.toml {SMALL} --shard 2/2 --out p")
MODEL = "import-heads model.safetensors --arch bert --heads 3 --out heads.nc"
MAP = "allocate --data a.toml --budget 4 --n 20,30,40,50 --map --replicates 1024 --threads 1 --quiet --out p --shard 1/2"
NPY = "dataset s.toml --replicates 4 --shards 2 --format npy --quiet --out p"
LEARNED = f'run a.toml {SMALL} --set heads.subspaces={{law="learned",fit="once",points=100,batch=10,steps=20}} --out p --shard'
@dataclasses.dataclass
class Kind:
    name: str
    file: str                # that is damaged
    before: tuple            # commands that make it
    line: str                # the command that reads it
    outputs: tuple = ()      # what it writes
    flips: float = 1.0       # share of the flips, where the command takes long


KINDS = [
    Kind("results.nc", "p/results.nc", TWO, "diff p/results.nc q/results.nc"),
    Kind("results.nc, resumed", "p/results.nc", TWO, "run s.toml --replicates 24 --threads 1 --quiet --out p --resume",
         ("p/results.nc", "p/summary.json"), 0.5),
    Kind("summary.json", "p/summary.json", TWO, "report p/summary.json --out o.html", ("o.html",)),
    Kind("summary.json, compared", "p/summary.json", TWO, "diff p/summary.json q/summary.json"),
    Kind("shard", "p/shard_1_of_2.nc", SHARDS, "merge p --out o --quiet", ("o",)),
    Kind("units", "p/units_1_of_2.nc", (MAP,), "status p"),
    Kind("heads.nc", "heads.nc", (MODEL,), "hdi heads.nc --json o.json", ("o.json",)),
    Kind("manifest.json", "p/manifest.json", (NPY,), NPY),
    Kind("setup.nc", "p/setup.nc", (f"{LEARNED} 1/2", f"{LEARNED} 2/2"), "merge p --out o --quiet", ("o",)),
    Kind("data set", "p/condition_000/shard_001/X.npy", (NPY,), NPY, ("p",)),
]
# Of a run and not of its figures.
TIMES = re.compile(rb'"(seconds|weights_per_second|pilot_seconds|date|sha256)": ?[^,}\n]*'
                   rb"|[0-9.]+ s, [0-9,]+ kernel weights a second")


class Forks:
    """A command that is loaded once."""

    def __init__(self, library, words, folder, output):
        asked, self.asking = os.pipe()
        self.answers, answering = os.pipe()
        # What a copy adds to an emptied file stands at its beginning.
        self.output = [open(output / name, "a+b", buffering=0) for name in ("stdout", "stderr")]
        environment = dict(ENVIRONMENT, LD_PRELOAD=str(library), HEADLAB_FORKS=f"{asked} {answering}")
        self.server = subprocess.Popen(words, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=self.output[0],
                                       stderr=self.output[1], pass_fds=(asked, answering))
        os.close(asked)
        os.close(answering)

    def number(self):
        answer = os.read(self.answers, 4)
        if len(answer) != 4:
            sys.exit(f"damage: {self.server.args}: the preloaded library cannot fork this program")
        return struct.unpack("i", answer)[0]

    def run(self):
        """Exit code (of signal n: -n, of a command that does not end: None), standard output and standard error."""
        for file in self.output:
            file.truncate(0)
        os.write(self.asking, b"\n")
        copy = self.number()
        if not select.select([self.answers], [], [], ENDS_S)[0]:
            os.kill(copy, signal.SIGKILL)
            self.number()
            return None, b"", b""
        code = os.waitstatus_to_exitcode(self.number())
        return code, *(os.pread(file.fileno(), os.fstat(file.fileno()).st_size, 0) for file in self.output)

    def close(self):
        os.close(self.asking)
        self.server.wait()
        os.close(self.answers)
        for file in self.output:
            file.close()


class Reader:
    """A kind of file in a folder of its own, and what the command says of it."""

    def __init__(self, maker, headlab, library, kind, folder):
        self.kind, self.folder = kind, folder
        shutil.copytree(WORLD, folder)
        subprocess.run([sys.executable, TREE / "tools/cli/testing/write_input.py", "bert", folder / "model.safetensors"],
                       check=True)
        for line in kind.before:
            subprocess.run([maker, *line.split()], cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL,
                           capture_output=True, timeout=ENDS_S, check=True)
        self.start = folder.with_name(folder.name + "-start")
        shutil.copytree(folder, self.start)
        self.file = folder / kind.file
        self.forks = Forks(library, [headlab, *kind.line.split()], folder, folder.parent)

    def outputs(self):
        found = {}
        for name in self.kind.outputs:
            path = self.folder / name
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.suffix == ".nc":
                    # Its figures stand in summary.json too; its bytes have the times of the run.
                    continue
                found[str(file)] = TIMES.sub(b"", file.read_bytes()) if file.is_file() else None
        return found

    def read(self, content):
        """Exit code, standard output and files, and standard error, of the command on these bytes."""
        for name in self.kind.outputs:
            path = self.folder / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
            if (self.start / name).is_dir():
                shutil.copytree(self.start / name, path)
            elif (self.start / name).is_file():
                shutil.copy(self.start / name, path)
        self.file.write_bytes(content)
        code, shown, said = self.forks.run()
        return code, (TIMES.sub(b"", shown), self.outputs()), said.decode(errors="replace")


def damages(content, count, draw):
    """(what, bytes) of files that are damaged at one place."""
    bits = 8 * len(content)
    has_sum = not content.startswith(b"\x89HDF") or TRAILER.search(content)
    for bit in draw.sample(range(bits), min(count if has_sum else count // 2, bits)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        yield f"bit {bit}", bytes(changed)
    heaps = [] if has_sum else [found.start() for found in re.finditer(b"GCOL", content)]
    for number in range(0 if has_sum else count - count // 2):
        heap = draw.choice(heaps) if heaps and number % 2 else None
        at = draw.randrange(len(content)) if heap is None else heap + draw.randrange(256)
        size = min(8, len(content) - at)
        yield f"0xff at {at}", content[:at] + b"\xff" * size + content[at + size:]


def try_kind(reader, content, count, draw):
    """Prints the broken promises; their number, and that of refusals."""
    code, shown, said = reader.read(content)
    if code not in (0, 3, 4, 5):
        sys.exit(f"damage: {reader.kind.line}: exit code {code} of the whole file: {said}")
    broken = refused = tried = 0
    for where, changed in damages(content, count, draw):
        tried += 1
        now, what, error = reader.read(changed)
        problem = ""
        if now is None:
            problem = f"does not end in {ENDS_S} s"
        elif now in (1, 2) and error.startswith("headlab: ") and "signal" not in error:
            refused += 1
        elif now < 0:
            problem = f"ended by signal {-now}"
        elif now != code:
            problem = f"exit code {now} for {code}: {error.strip()}"
        elif what != shown:
            problem = "shows another thing"
        if problem:
            broken += 1
            print(f"  {where} of {len(content)} bytes: {problem}")
    print(f"  {tried} damages, {refused} refused, {broken} broken promises")
    return broken


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("headlab", type=Path)
    options.add_argument("forks", type=Path)
    options.add_argument("--flips", type=int, default=300)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--only", action="append")
    options.add_argument("--maker", type=Path, help="program that makes the files, where another reads them")
    chosen = options.parse_args()
    broken = 0
    for number, kind in enumerate(KINDS):
        if chosen.only and kind.name not in chosen.only:
            continue
        count = max(4, round(chosen.flips * kind.flips))
        with tempfile.TemporaryDirectory(prefix="headlab-damage-") as folder:
            headlab = chosen.headlab.resolve()
            reader = Reader((chosen.maker or headlab).resolve(), headlab, chosen.forks.resolve(), kind, Path(folder) / "work")
            content = reader.file.read_bytes()
            draw = random.Random(chosen.seed * len(KINDS) + number)
            print(f"{kind.name}: headlab {kind.line}", flush=True)
            broken += try_kind(reader, content, count, draw)
            if TRAILER.search(content):
                print(f"{kind.name}, without the sum behind it", flush=True)
                broken += try_kind(reader, TRAILER.sub(b"", content), count, draw)
            reader.forks.close()
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
    if most > MOST_BYTES:
        print(f"a command took {most / 2**30:.1f} GiB")
    return 1 if broken or most > MOST_BYTES else 0


if __name__ == "__main__":
    sys.exit(main())

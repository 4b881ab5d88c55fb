# SPDX-License-Identifier: Apache-2.0
"""What the Python programs of the benchmarks share."""
import argparse
import datetime
import json
import math
import os
import stat
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BUILDS = ("build/release", "build/cuda")


class Stop(Exception):
    """One line, exit 2."""


class Failed(Exception):
    """A program of headlab's failed: one line, exit 1."""


def ended(name, function, *arguments):
    """Exit status of `function`; trouble becomes one line."""
    try:
        function(*arguments)
    except (Stop, Failed) as reason:
        print(f"{name}: {reason}", file=sys.stderr)
        return 1 if isinstance(reason, Failed) else 2
    except KeyboardInterrupt:
        print(f"{name}: stopped", file=sys.stderr)
        return 130
    return 0


# ---- Programs of headlab's ----


def find_program(given, name, places, hint):
    """The path given, or the first of the places (under the source tree or next to this file) that has it."""
    folders = [os.path.join(base, place) for place in places for base in (ROOT, HERE)]
    for path in [given] if given is not None else [os.path.join(folder, name) for folder in folders]:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return os.path.abspath(path)
    raise Stop(f"{name if given is None else given}: no program there - build it first, {hint}")


def find_headlab(given):
    return find_program(given, "headlab", BUILDS, "cmake --preset release && cmake --build --preset release")


def find_bench(given):
    return find_program(given, "headlab_bench", BUILDS, "tools/bench/run --benchmark_list_tests builds it")


def run_program(*command):
    """Runs a program of headlab's to its end; what it printed."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise Failed(f"{command[0]}: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip() or f"{command[0]}: ended with status {done.returncode} and no word"
        raise Failed(said.splitlines()[0])
    return done.stdout


def figures(program, file, pick):
    """What `pick` finds in a JSON file that the program wrote."""
    try:
        with open(file, encoding="utf-8") as report:
            return pick(json.load(report))
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise Failed(f"{program}: no figures of it in {os.path.basename(file)}") from error


# ---- The machine ----


def use_processors(count):
    """Keeps this process and those it starts on `count` processors, each of a core of its own where it can."""
    if not hasattr(os, "sched_getaffinity"):
        raise Stop("binding to processors needs Linux")
    first_of_core, others = {}, []
    for cpu in sorted(ALLOWED):
        try:
            with open(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list", encoding="ascii") as file:
                core = file.read().strip()
        except OSError:
            core = str(cpu)
        if first_of_core.setdefault(core, cpu) != cpu:
            others.append(cpu)
    chosen = [*first_of_core.values(), *others][:count]
    if len(chosen) < count:
        raise Stop(f"--threads {count}: this process may use {len(chosen)} processors")
    os.sched_setaffinity(0, chosen)
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(count)


ALLOWED = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else set()


def machine():
    """What a figure is of."""
    processor = "not known"
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            processor = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), processor)
    except OSError:
        pass
    try:
        done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True, check=False)
        commit = done.stdout.strip() or "not known"
    except OSError:
        commit = "not known"
    return {"processor": processor, "processors": os.cpu_count(), "commit": commit,
            "date": datetime.date.today().isoformat(), "load": round(os.getloadavg()[0], 2)}


def timed(call, seconds, warm=1):
    """Median seconds of a call, of as many as fit in the time (at least 3, at most 200)."""
    for _ in range(warm):
        call()
    samples, begin = [], time.perf_counter()
    while len(samples) < 3 or (time.perf_counter() - begin < seconds and len(samples) < 200):
        start = time.perf_counter()
        call()
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


# ---- Files and arguments ----


def write_json(path, report):
    """In one step; with None, only whether it could be. Only a file is replaced: renaming would
    destroy a device, a link, a folder."""
    scratch = path + ".part"
    try:
        if not path:
            raise Stop("--json needs a file")
        if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
            raise Stop(f"--json {path}: is there already and no regular file")
        with open(scratch, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=1)
        if report is not None:
            os.replace(scratch, path)
    except OSError as error:
        raise Stop(f"--json {path}: {error.strerror}") from error
    finally:
        if os.path.isfile(scratch):
            os.remove(scratch)


def number(kind, least):
    def convert(text):
        try:
            value = kind(text)
        except ValueError:
            value = math.nan
        if not least <= value < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r}: allowed is {'an integer' if kind is int else 'a number'} from {least}")
        return value
    return convert


def integers(text):
    """1,2,4"""
    return list(dict.fromkeys(number(int, 1)(one) for one in text.split(",")))

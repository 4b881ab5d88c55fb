#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mpi_check.py HEADLAB PAGE [--kills N] [--seed S]: runs shared by the ranks of mpirun, which have to have the bits of one process.

HEADLAB is the program of the preset mpi. 1, 2 and 5 ranks, a run that ends by its standard error, the `shell` block of
PAGE, word for word, and ranks of which one is killed: the job ends, its last checkpoint is there, and a resumed run has
the bits of one that nobody killed. With --kills only that, N times: any of 2 to 4 ranks is killed at a random
moment, up to three times before the run may end. Exit code 77, which CTest counts as skipped, where there is no mpirun.
"""
import argparse
import collections
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from commands import must_run
from slurm_check import SCENARIO

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "btl_tcp_if_include", "lo", "--mca",
          "oob_tcp_if_include", "lo"]
KEPT = {"results.nc", "summary.json", "scenario.toml", "manifest.json"}
LONG = "run.replicates=300000"


def same_bits(a, b, folder, environment):
    done = subprocess.run(["headlab", "diff", a, b], cwd=folder, env=environment, capture_output=True, text=True)
    return "same bits: nodes and figures" in done.stdout


def require_same(a, b, folder, environment):
    if not same_bits(a, b, folder, environment):
        raise RuntimeError(f"{b}: other bits than {a}")


def rank_process(parent, rank):
    """The process of a rank that mpirun started."""
    for entry in Path("/proc").iterdir():
        try:
            is_child = f"PPid:\t{parent}\n" in (entry / "status").read_text()
            if is_child and f"OMPI_COMM_WORLD_RANK={rank}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                return int(entry.name)
        except OSError:
            continue
    return None


def kill_a_rank(folder, environment):
    """Kills rank 1 once there is a checkpoint."""
    command = [*MPIRUN, "-n", "3", "headlab", "run", "my.toml", "--set", LONG, "--out", "killed", "--threads", "1",
               "--checkpoint", "0.1s", "--quiet"]
    with open(folder / "killed.log", "w") as log:
        job = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log)
        try:
            for _ in range(600):
                rank = rank_process(job.pid, 1)
                if rank and (folder / "killed/results.nc").is_file():
                    os.kill(rank, signal.SIGKILL)
                    break
                time.sleep(0.02)
            else:
                raise RuntimeError("there is no rank to kill, or no checkpoint")
            if job.wait(60) == 0:
                raise RuntimeError("the job of a killed rank ends as if it were done")
        finally:
            if job.poll() is None:
                job.kill()
                job.wait()
    left = [path.name for path in (folder / "killed").iterdir() if ".tmp-" in path.name]
    said = must_run([*MPIRUN, "-n", "2", "headlab", "run", "my.toml", "--set", LONG, "--out", "killed", "--threads", "1",
                     "--resume"], folder, environment, errors=True)
    if "resumes from 0" in said or "resumes from" not in said:
        raise RuntimeError(f"no checkpoint was kept: {said}")
    if len(left) > 1:
        raise RuntimeError(f"files are left: {left}")
    must_run(["headlab", "run", "my.toml", "--set", LONG, "--out", "long", "--quiet"], folder, environment)
    require_same("long", "killed", folder, environment)


def killed(process):
    try:
        os.kill(process, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def kill_ranks(kills, seed, folder, environment):
    """Kills `kills` ranks at random moments; what is resumed in the end has the bits of one process."""
    rng = random.Random(seed)
    (folder / "my.toml").write_text(SCENARIO)
    single = ["headlab", "run", "my.toml", "--set", "run.replicates=3000000", "--threads", "1", "--quiet"]
    started = time.monotonic()
    must_run([*single, "--out", "one"], folder, environment)
    took = time.monotonic() - started
    counts = collections.Counter()
    while counts["kills"] < kills:
        out = f"out_{counts['runs']}"
        ranks = rng.randint(2, 4)
        command = [*MPIRUN, "-n", str(ranks), *single, "--out", out, "--checkpoint", "0.05s"]
        for _ in range(rng.randint(1, 3)):
            resume = ["--resume"] if (folder / out / "results.nc").is_file() else []
            log = folder / "log"
            with open(log, "w") as said:
                job = subprocess.Popen([*command, *resume], cwd=folder, env=environment, stdout=said, stderr=said)
                try:
                    rank, victim = None, rng.randrange(ranks)
                    while rank is None and job.poll() is None:
                        rank = rank_process(job.pid, victim)
                    time.sleep(rng.uniform(0, took))
                    alive = rank is not None and killed(rank)
                    code = job.wait(60)
                finally:
                    if job.poll() is None:
                        job.kill()
                        job.wait()
            if alive and code != 0:
                counts["kills"] += 1
                counts["before a checkpoint"] += not (folder / out / "results.nc").is_file()
            elif code != 0:
                raise RuntimeError(f"{command}: exit code {code}\n{log.read_text()}")
            else:
                counts["ended before the kill"] += 1
                break
        resume = ["--resume"] if (folder / out / "results.nc").is_file() else []
        counts["resumed"] += bool(resume)
        must_run([*command, *resume], folder, environment)
        require_same("one", out, folder, environment)
        left = [path.name for path in (folder / out).iterdir() if path.name not in KEPT]
        if left:
            raise RuntimeError(f"files are left: {left}")
        shutil.rmtree(folder / out)
        counts["runs"] += 1
    print(f"mpi_check: {dict(counts)}")


def check(page, folder, environment):
    (folder / "my.toml").write_text(SCENARIO)
    must_run(["headlab", "run", "my.toml", "--out", "one", "--quiet"], folder, environment)
    for ranks in (1, 2, 5):
        out = f"ranks_{ranks}"
        must_run([*MPIRUN, "-n", str(ranks), "headlab", "run", "my.toml", "--out", out, "--threads", "1", "--quiet"], folder,
            environment)
        require_same("one", out, folder, environment)
    until = ["--until", "mse=1%", "--replicates", "1000000", "--quiet"]
    must_run(["headlab", "run", "my.toml", "--out", "until", *until], folder, environment)
    must_run([*MPIRUN, "-n", "3", "headlab", "run", "my.toml", "--out", "until_ranks", *until], folder, environment)
    require_same("until", "until_ranks", folder, environment)
    scripts = dict(re.findall(r"```shell\n# ([\w.]+)\n(.*?)```", page.read_text(), re.S))
    if scripts.keys() != {"mpi.sh", "mpi_steps.sh"}:
        raise RuntimeError(f"{page}: other scripts than expected")
    (folder / "mpi.sh").write_text(scripts["mpi.sh"])
    must_run(["sh", "mpi.sh"], folder, environment)
    require_same("one", "together", folder, environment)
    kill_a_rank(folder, environment)
    # What every rank rejects is said once, and a run of another seed is found to be one.
    said = must_run([*MPIRUN, "-n", "3", "headlab", "run", "my.toml", "--set", "run.replicates=-1"], folder, environment, 2,
                    errors=True)
    if said.count("headlab: --set") != 1:
        raise RuntimeError(f"a rejected scenario is not said once: {said}")
    must_run([*MPIRUN, "-n", "2", "headlab", "run", "my.toml", "--out", "other", "--seed", "8", "--quiet"], folder,
             environment)
    if same_bits("one", "other", folder, environment):
        raise RuntimeError("a run of another seed passes for the same")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("headlab", type=Path)
    parser.add_argument("page", type=Path)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    headlab, page = arguments.headlab.resolve(), arguments.page.resolve()
    if not shutil.which("mpirun"):
        print("mpi_check: left out: needs openmpi-bin")
        sys.exit(77)
    environment = {**os.environ, "PATH": f"{headlab.parent}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory(prefix="headlab-mpi-") as name:
        try:
            if arguments.kills:
                kill_ranks(arguments.kills, arguments.seed, Path(name), environment)
            else:
                check(page, Path(name), environment)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"mpi_check: {error}")
            sys.exit(1)
    print("mpi_check: same bits")


if __name__ == "__main__":
    main()

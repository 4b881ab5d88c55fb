#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""slurm_check.py HEADLAB PAGE [--mpi]: runs the scripts of docs/clusters.md under a Slurm of its own.

Starts munged, slurmctld and slurmd on free ports of the loopback interface, with all of their files in a
temporary folder, and ends them by their process numbers, also on failure. Each `sh` block of PAGE that opens with
a comment naming a file becomes that file, word for word; with --mpi, where HEADLAB is the program of the preset mpi,
mpi_steps.sh alone. The merged results have to have the bits of one run. Exit
code 77, which CTest counts as skipped, where Slurm is not installed or does not start, or this user is not root.
"""
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from commands import WORLD, must_run

SCENARIO = WORLD + 'replicates = 20001\n[sweep]\n"data.n" = [10, 20, 40]\n'


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def node_state(environment):
    try:
        asked = subprocess.run(["sinfo", "-h", "-o", "%t"], env=environment, capture_output=True, text=True, timeout=5)
    except subprocess.TimeoutExpired:
        return ""
    return asked.stdout.strip()


def write_configuration(folder):
    name = socket.gethostname().split(".")[0]
    (folder / "slurm.conf").write_text(f"""ClusterName=headlab
SlurmctldHost={name}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
SchedulerParameters=sched_interval=1,sched_min_interval=0,batch_sched_delay=0
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
NodeName={name} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")
    for part in ("state", "spool"):
        (folder / part).mkdir()
    key = folder / "munge.key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)


def check(headlab, page, folder, environment):
    blocks = re.findall(r"```sh\n(#![^\n]*\n)?# ([\w.]+)\n(.*?)```", page.read_text(), re.S)
    scripts = {name: first + text for first, name, text in blocks}
    for name, text in scripts.items():
        (folder / name).write_text(text)
    if scripts.keys() != {"shards.sbatch", "submit.sh", "steps.sh"}:
        raise RuntimeError(f"{page}: other scripts than expected")
    (folder / "my.toml").write_text(SCENARIO)
    must_run([headlab, "run", "my.toml", "--out", "one", "--quiet"], folder, environment)
    # The third task of the array fails, and runs again alone.
    (folder / "out/shard_3_of_4.nc").mkdir(parents=True)
    failed = subprocess.run(["sbatch", "--wait", "--array=1-3", "shards.sbatch"], cwd=folder, env=environment)
    if failed.returncode == 0 or not (folder / "out/shard_1_of_4.nc").is_file():
        raise RuntimeError("a task that cannot write its shard did not fail")
    (folder / "out/shard_3_of_4.nc").rmdir()
    must_run(["sh", "submit.sh"], folder, environment)
    must_run(["salloc", "-n", "2", "sh", "steps.sh"], folder, environment)
    for merged in ("merged", "merged_steps"):
        if "same bits: nodes and figures" not in run_diff(headlab, merged, folder, environment):
            raise RuntimeError(f"{merged}: other bits than one run")
    requeue(headlab, scripts["shards.sbatch"], folder / "requeued", environment)
    # Another run is found to be one.
    must_run([headlab, "run", "my.toml", "--out", "other", "--seed", "8", "--quiet"], folder, environment)
    if "same bits: nodes and figures" in run_diff(headlab, "other", folder, environment):
        raise RuntimeError("a run of another seed passes for the same")


def check_mpi(headlab, page, folder, environment):
    """A run shared by the ranks of a step."""
    scripts = dict(re.findall(r"```shell\n# ([\w.]+)\n(.*?)```", page.read_text(), re.S))
    (folder / "my.toml").write_text(SCENARIO)
    (folder / "mpi_steps.sh").write_text(scripts["mpi_steps.sh"])
    must_run([headlab, "run", "my.toml", "--out", "one", "--quiet"], folder, environment)
    must_run(["salloc", "-n", "2", "sh", "mpi_steps.sh"], folder, environment)
    if "same bits: nodes and figures" not in run_diff(headlab, "stepped", folder, environment):
        raise RuntimeError("stepped: other bits than one run")
    must_run([headlab, "run", "my.toml", "--out", "other", "--seed", "8", "--quiet"], folder, environment)
    if "same bits: nodes and figures" in run_diff(headlab, "other", folder, environment):
        raise RuntimeError("a run of another seed passes for the same")


def states(job, folder, environment):
    """State of each task that is in the queue."""
    return must_run(["squeue", "-h", "-r", "-j", job, "-o", "%K %T"], folder, environment).split("\n")[:-1]


def requeue(headlab, script, folder, environment):
    """A task that is put back into the queue while it runs continues its shard."""
    folder.mkdir()
    (folder / "my.toml").write_text(SCENARIO.replace("replicates = 20001", "replicates = 3000001"))
    (folder / "shards.sbatch").write_text(script)
    job = must_run(["sbatch", "--parsable", "--requeue", "--array=1-4", "shards.sbatch"], folder, environment).strip()
    deadline = time.monotonic() + 120
    while "1 RUNNING" not in states(job, folder, environment):
        if time.monotonic() > deadline:
            raise RuntimeError("no task begins")
        time.sleep(0.05)
    time.sleep(0.3)
    must_run(["scontrol", "requeue", f"{job}_1"], folder, environment)
    restarts = ""
    pending_since = None
    while left := states(job, folder, environment):
        if time.monotonic() > deadline + 120:
            raise RuntimeError(f"tasks do not end: {left}")
        pending_since = (pending_since or time.monotonic()) if "1 PENDING" in left else None
        if pending_since and time.monotonic() > pending_since + 2:
            # Slurm waits two minutes before it begins a task again, for what still runs of the first.
            subprocess.run(["scontrol", "update", f"JobId={job}_1", "StartTime=now"], cwd=folder, env=environment,
                           capture_output=True)
        shown = subprocess.run(["scontrol", "show", "job", f"{job}_1"], cwd=folder, env=environment,
                               capture_output=True, text=True)
        restarts = max([restarts, *re.findall(r"Restarts=(\d+)", shown.stdout)])
        time.sleep(0.1)
    if restarts != "1":
        raise RuntimeError(f"the task was begun again {restarts or 'no'} times, not once")
    must_run([headlab, "merge", "out", "--out", "merged"], folder, environment)
    must_run([headlab, "run", "my.toml", "--out", "one", "--quiet"], folder, environment)
    if "same bits: nodes and figures" not in run_diff(headlab, "merged", folder, environment):
        raise RuntimeError("a task that was put back into the queue: other bits than one run")


def run_diff(headlab, merged, folder, environment):
    done = subprocess.run([headlab, "diff", "one", merged], cwd=folder, env=environment, capture_output=True, text=True)
    return done.stdout + done.stderr


def main():
    headlab, page = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    path = f"{headlab.parent}:{os.environ['PATH']}:/usr/sbin"
    programs = [shutil.which(name, path=path) for name in ("munged", "slurmctld", "slurmd", "sbatch")]
    if None in programs or os.getuid() != 0:
        print("slurm_check: left out: needs slurm-wlm, munge and root")
        sys.exit(77)
    daemons = []
    with tempfile.TemporaryDirectory(prefix="headlab-slurm-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        write_configuration(folder)
        environment = {**os.environ, "PATH": path, "SLURM_CONF": str(folder / "slurm.conf")}
        munged, slurmctld, slurmd, _ = programs
        started = [
            [munged, "--foreground", "--force", f"--socket={folder}/munge.socket", f"--key-file={folder}/munge.key",
             f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/munged.seed"],
            [slurmctld, "-D"], [slurmd, "-D"]]
        try:
            with open(folder / "daemons.log", "w") as log:
                for command in started:
                    daemons.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
                    time.sleep(0.5)
            # Without a network Slurm's daemons end at once, and what asks them waits long.
            deadline = time.monotonic() + 30
            is_up = False
            while not is_up and time.monotonic() < deadline and all(daemon.poll() is None for daemon in daemons):
                is_up = node_state(environment) == "idle"
                time.sleep(0.1)
            if not is_up:
                logs = [log.read_text() for log in folder.glob("*.log")]
                print("slurm_check: left out: Slurm does not start here\n" + "\n".join(logs)[-3000:])
                sys.exit(77)
            (check_mpi if "--mpi" in sys.argv else check)(headlab, page, folder, environment)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"slurm_check: {error}")
            for log in sorted(folder.glob("**/slurm-*.out")):
                print(f"-- {log.relative_to(folder)}\n{log.read_text()}")
            sys.exit(1)
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
                try:
                    daemon.wait(10)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()
    print("slurm_check: same bits")


if __name__ == "__main__":
    main()

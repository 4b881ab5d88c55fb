# SPDX-License-Identifier: Apache-2.0
"""Runs commands of a page or of a test as a reader would, in a folder of their own."""
import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# A small world of checks, to be continued with keys of [run].
WORLD = """[scenario]
name = "check"
[data]
n = 20
design = { law = "normal", dim = 4 }
regression = { law = "cosines", amplitude = [1.0], frequency = [[1.0, 0, 0, 0]], phase = [0.3] }
noise = { law = "normal", sd = 0.5 }
[heads]
count = 2
dim = 2
subspaces = { law = "orthogonal" }
kernel = { law = "gaussian", bandwidth = 0.8 }
[queries]
law = "points"
points = [[0, 0, 0, 0], [1, 0, 0, 0]]
[run]
seed = 7
"""
NUMBER = r"[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?"


def require(condition, what):
    """Ends the program with one line where the condition does not hold."""
    if not condition:
        sys.exit(f"{Path(sys.argv[0]).stem}: {what}")


@contextlib.contextmanager
def scratch(headlab, **variables):
    """An empty folder and an environment in which HEADLAB is `headlab`; None takes a variable away."""
    with tempfile.TemporaryDirectory() as folder:
        bin_folder, work = Path(folder, "bin"), Path(folder, "work")
        bin_folder.mkdir()
        work.mkdir()
        Path(bin_folder, "headlab").symlink_to(headlab)
        wanted = dict(PATH=f"{bin_folder}{os.pathsep}{os.environ['PATH']}", LC_ALL="C.UTF-8", **variables)
        inherited = {name: value for name, value in os.environ.items() if name not in wanted}
        yield work, inherited | {name: str(value) for name, value in wanted.items() if value is not None}


def run(command, work, environment):
    """What bash makes of a command without standard input; a pipe has the code of the part that failed."""
    return subprocess.run(["bash", "-o", "pipefail", "-c", command], cwd=work, env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", errors="replace")


def must_run(command, folder, environment, expected=0, errors=False):
    """What the command, a list, prints, with what it says of errors where asked for. RuntimeError where its exit
    code is not the one expected; None expects any."""
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    if expected is not None and done.returncode != expected:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + (done.stderr if errors else "")


def commands_of(headlab):
    """The names of the commands that help lists."""
    text = subprocess.run([headlab, "help"], capture_output=True, text=True, check=True).stdout
    listed = text.partition("Subcommands:\n")[2].partition("\n\n")[0]
    return {line.split()[0] for line in listed.splitlines()}

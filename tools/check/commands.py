# SPDX-License-Identifier: Apache-2.0
"""Runs commands of a page or of a test as a reader would, in a folder of their own."""
import contextlib
import os
import subprocess
import tempfile
from pathlib import Path

NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?"


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

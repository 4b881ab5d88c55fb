#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""recipes_check.py HEADLAB PAGE: runs the recipes of docs/clusters.md for mpirun and GNU parallel.

Each `bash` block of PAGE that opens with a comment naming a file becomes that file, word for word, and is run. What it
merges has to have the bits of one run. A recipe whose program is not installed is left out with a line; exit code 77,
which CTest counts as skipped, where all are.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from slurm_check import SCENARIO

# script: (program it needs, folder it merges to)
RECIPES = {"ranks.sh": ("mpirun", "merged_ranks"), "parallel.sh": ("parallel", "merged_parallel")}


def run(command, folder, environment, expected=0):
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    if expected is not None and done.returncode != expected:
        raise RuntimeError(f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def main():
    headlab, page = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    scripts = dict(re.findall(r"```bash\n# ([\w.]+)\n(.*?)```", page.read_text(), re.S))
    if scripts.keys() != RECIPES.keys():
        sys.exit(f"recipes_check: {page}: other scripts than expected")
    environment = {**os.environ, "PATH": f"{headlab.parent}:{os.environ['PATH']}"}
    tried = []
    with tempfile.TemporaryDirectory(prefix="headlab-recipes-") as name:
        folder = Path(name)
        (folder / "my.toml").write_text(SCENARIO)
        try:
            run(["headlab", "run", "my.toml", "--out", "one", "--quiet"], folder, environment)
            for script, (program, merged) in RECIPES.items():
                if not shutil.which(program):
                    print(f"recipes_check: {script} left out: needs {program}")
                    continue
                (folder / script).write_text(scripts[script])
                run(["sh", script], folder, environment)
                if "same bits: nodes and figures" not in run(["headlab", "diff", "one", merged], folder, environment):
                    raise RuntimeError(f"{merged}: other bits than one run")
                tried.append(program)
            run(["headlab", "run", "my.toml", "--out", "other", "--seed", "8", "--quiet"], folder, environment)
            if "same bits: nodes" in run(["headlab", "diff", "one", "other"], folder, environment, None):
                raise RuntimeError("a run of another seed passes for the same")
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"recipes_check: {error}")
            sys.exit(1)
    print("recipes_check: same bits by " + " and ".join(tried) if tried else "recipes_check: none could be tried")
    sys.exit(0 if tried else 77)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""recipes_check.py HEADLAB PAGE [DRIVERS]: runs the recipes of docs/clusters.md for mpirun, GNU parallel, Dask and
Snakemake.

Each `bash` or `python` block of PAGE that opens with a comment naming a file becomes that file, word for word, and is
run. What it merges has to have the bits of one run, also where a shard fails at its first try. DRIVERS is a virtual
environment with dask[distributed] and snakemake. A recipe whose program is not installed is left out with a line; exit
code 77, which CTest counts as skipped, where all are.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from commands import must_run
from slurm_check import SCENARIO

# script: (program it needs, folder it merges to, whether it tries a shard again)
RECIPES = {
    "ranks.sh": ("mpirun", "merged_ranks", False),
    "parallel.sh": ("parallel", "merged_parallel", False),
    "dask_shards.py": ("dask", "merged_dask", True),
    "snakemake.sh": ("snakemake", "merged_snakemake", True),
}
# A headlab whose third shard fails once.
FAILING = """#!/bin/sh
case "$*" in
  *"--shard 3/8"*) if mkdir "{folder}/failed" 2>/dev/null; then exit 1; fi ;;
esac
exec {headlab} "$@"
"""


def main():
    headlab, page = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    scripts = dict(re.findall(r"```(?:bash|python)\n# ([\w.]+)\n(.*?)```", page.read_text(), re.S))
    if scripts.keys() != {*RECIPES, "Snakefile"}:
        sys.exit(f"recipes_check: {page}: other scripts than expected")
    drivers = f"{Path(sys.argv[3]).resolve()}/bin:" if len(sys.argv) > 3 else ""
    environment = {**os.environ, "PATH": f"{headlab.parent}:{drivers}{os.environ['PATH']}"}
    tried = []
    with tempfile.TemporaryDirectory(prefix="headlab-recipes-") as name:
        folder = Path(name)
        (folder / "my.toml").write_text(SCENARIO)
        try:
            must_run(["headlab", "run", "my.toml", "--out", "one", "--quiet"], folder, environment)
            (folder / "Snakefile").write_text(scripts["Snakefile"])
            (folder / "bin").mkdir()
            (folder / "bin/headlab").write_text(FAILING.format(folder=folder, headlab=headlab))
            (folder / "bin/headlab").chmod(0o755)
            failing = {**environment, "PATH": f"{folder}/bin:{environment['PATH']}"}
            for script, (program, merged, tries_again) in RECIPES.items():
                if not shutil.which(program, path=environment["PATH"]):
                    print(f"recipes_check: {script} left out: needs {program}")
                    continue
                (folder / script).write_text(scripts[script])
                shell = ["python3" if script.endswith(".py") else "sh", script]
                must_run(shell, folder, failing if tries_again else environment)
                if tries_again:
                    (folder / "failed").rmdir()  # there only if the shard failed
                if "same bits: nodes and figures" not in must_run(["headlab", "diff", "one", merged], folder, environment):
                    raise RuntimeError(f"{merged}: other bits than one run")
                tried.append(program)
            must_run(["headlab", "run", "my.toml", "--out", "other", "--seed", "8", "--quiet"], folder, environment)
            if "same bits: nodes" in must_run(["headlab", "diff", "one", "other"], folder, environment, None):
                raise RuntimeError("a run of another seed passes for the same")
        except (RuntimeError, OSError, subprocess.TimeoutExpired) as error:
            print(f"recipes_check: {error}")
            sys.exit(1)
    print("recipes_check: same bits by " + " and ".join(tried) if tried else "recipes_check: none could be tried")
    sys.exit(0 if tried else 77)


if __name__ == "__main__":
    main()

# SPDX-License-Identifier: Apache-2.0
"""hl.run, hl.iter_run and hl.open."""

from __future__ import annotations

import builtins
import errno
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from . import _engine
from ._arguments import Backend, Simd, assign, duration, flag, whole
from ._arguments import path as path_text
from ._errors import MissingFileError, RunError, ScenarioError, rejected, translated, warn
from ._jobs import Progress, finish, watch
from ._results import Result
from ._scenario import ScenarioLike, Sets, Source


def _until(value: Any) -> str | None:
    if isinstance(value, Mapping):
        return ",".join(f"{figure}={limit}" for figure, limit in value.items())
    return None if value is None else str(value)


def _start(
    scenario: ScenarioLike, sets: Sets, every: float | None, given: dict[str, Any]
) -> tuple[_engine.Job, Source]:
    source = Source(scenario, sets)
    arguments = _engine.RunArguments()
    assign(arguments, **given)
    with translated():
        return _engine.run(source.engine, arguments, every), source


#: What a keyword is to the program, where it is not the same.
_AS_OPTION: dict[str, Callable[[Any], Any]] = {
    "seed": whole,
    "replicates": whole,
    "threads": whole,
    "max_time": lambda value: duration("max_time", value),
    "checkpoint": lambda value: duration("checkpoint", value),
    "until": _until,
    "out": lambda value: None if value is None else path_text("out", value),
    "nodes": lambda value: value if isinstance(value, str) else "all" if flag("nodes", value) else "none",
}


def _options(given: dict[str, Any]) -> dict[str, Any]:
    """The options of the program among the arguments of a call."""
    names = [name for name in given if name not in ("scenario", "set", "every", "progress")]
    return {name: _AS_OPTION.get(name, lambda value: value)(given[name]) for name in names}


def _finished(outcome: _engine.RunOutcome, source: Source, out: str | None, interrupted: bool) -> Result:
    result = Result(outcome, arrays=source.arrays, interrupted=interrupted)
    if out is not None and outcome.conditions > 0 and not outcome.problem:
        result._save_scenario(Path(out))
    if outcome.problem:
        raise RunError(outcome.problem, result)
    if not outcome.complete:
        why = "interrupted" if interrupted else "max_time reached"
        more = "; resume=True continues" if out is not None and outcome.conditions > 0 else ""
        warn(f"{why}: kept {outcome.kept}{more}")
    return result


def run(
    scenario: ScenarioLike,
    set: Sets = None,
    *,
    replicates: int | float | None = None,
    seed: int | None = None,
    backend: Backend = "auto",
    threads: int | None = None,
    simd: Simd | None = None,
    out: str | os.PathLike[str] | None = None,
    resume: bool = False,
    overwrite: bool = False,
    until: str | Mapping[str, float | str] | None = None,
    max_time: float | str | None = None,
    checkpoint: float | str | None = None,
    nodes: bool = True,
    compare: bool = False,
    against: str | None = None,
    difference: str | None = None,
    progress: Progress = False,
) -> Result:
    """Simulates every condition of a scenario, as ``headlab run`` does, with the same bits.

    :param scenario (path, TOML text, dict or Scenario): In a dict ``heads.subspaces`` may be an array [H, d, k] with
        orthonormal columns and ``data.design`` one of rows [N, d]; they are read where they are. Any NumPy or DLPack
        array on the host will do.
    :param simd ("avx512", "avx2" or "portable", optional): Pins the instructions of the backend cpu, for this process
        from then on. Results differ in their last bits between them.
    :param out (path, optional): Folder for results.nc and summary.json.
    :param resume (bool): Continues earlier results in `out`. Without it and `overwrite` the call is rejected there.
    :param until (dict or str, optional): Runs until standard errors are small enough: ``{"mse": "1%"}``; `replicates`
        are the most.
    :param checkpoint (float or str, optional): Seconds between two states of the files in `out`; 60 without it.
    :param nodes (bool): With the moments behind the figures, from which a run is continued.
    :param compare (bool): Closed forms beside the figures, ``r.summary["conditions"][0]["theory"]``.
    :param against (str, optional): As in the program; ``r.difference()`` needs neither this nor `difference`.
    :param difference (str, optional): Likewise.
    :returns Result: Ctrl-C returns what is done, with ``complete == False`` and a warning; a second one raises.
        Results can be pickled and copied: they travel as the files that ``save`` writes.
    :raises ScenarioError: Before anything is simulated: the reader's message with the path of the key.
    :raises RunError: Disk, memory or device failed; ``error.result`` has what could not be written.

    Examples
    --------
    >>> import headlab as hl
    >>> r = hl.run("scenarios/quickstart.toml", replicates=64)
    >>> r["mse"].shape, bool((r["mse_mcse"] > 0).all())
    ((5,), True)
    """
    given = _options(locals())
    job, source = _start(scenario, set, None, given)
    outcome, interrupted = finish(job, progress)
    return _finished(outcome, source, given["out"], interrupted)


def iter_run(
    scenario: ScenarioLike,
    set: Sets = None,
    *,
    every: float = 1.0,
    replicates: int | float | None = None,
    seed: int | None = None,
    backend: Backend = "auto",
    threads: int | None = None,
    until: str | Mapping[str, float | str] | None = None,
    max_time: float | str | None = None,
    progress: Progress = False,
) -> Iterator[Result]:
    """Results so far, about every `every` seconds, then the final ones; leave the loop to stop.

    ::

        for r in hl.iter_run("scenarios/quickstart.toml", replicates=1e6):
            if (r["mse_mcse"] < 1e-5).all():
                break

    Ctrl-C gives what is done as the last result, with ``complete == False`` and a warning. A signal
    in the body of the loop raises KeyboardInterrupt there, as in any Python code.

    :param every (float): Seconds between two results.
    :param until (dict or str, optional): Stop where errors are that small, as {"mse": "1%"}.
    :returns iterator of Result: The last one is final.
    :raises ScenarioError: Before anything is simulated.
    """
    if isinstance(every, str) or not every > 0:
        raise ScenarioError(f"every: is {every!r}, needs seconds above 0")
    given = _options(locals())
    job, source = _start(scenario, set, every, given)
    for state, interrupted in watch(job, progress):
        if interrupted is None:
            yield Result(state, arrays=source.arrays)
        else:
            yield _finished(state, source, None, interrupted)


def open(path: str | os.PathLike[str]) -> Result:
    """Results that a run left in a folder, or in a results.nc: the same as those of the run.

    :param path (path): A folder of a run, or its results.nc.
    :returns Result: Figures over (condition, query, head), as those of the run.
    :raises ScenarioError: A shard, or a file of another kind.
    :raises MissingFileError: There is no such file: a FileNotFoundError too.
    """
    file = Path(path_text("path", path))
    with translated():
        _engine.require_merged(str(file))
    if file.is_dir():
        if not (file / "results.nc").exists():
            raise MissingFileError(f"{file}: has no results of headlab run (results.nc)")
        file = file / "results.nc"
    if not file.is_file():
        what = "is not a file with results" if file.exists() else os.strerror(errno.ENOENT)
        raise rejected(f"{file}: {what}")
    with builtins.open(file, "rb") as stream:
        if not stream.read(4).startswith((b"\x89HDF", b"CDF")):
            raise ScenarioError(f"{file}: no results of headlab run - give a folder of a run, or its results.nc")
    result = Result(path=file)
    if "format_version" not in result.attributes:
        raise ScenarioError(f"{file}: was not written by headlab run")
    return result

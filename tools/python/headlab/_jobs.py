# SPDX-License-Identifier: Apache-2.0
"""Waits for the engine's threads: Ctrl-C, progress, exceptions of callbacks."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

from . import _engine
from ._errors import translated, warn

Progress = bool | Callable[[dict[str, Any]], object]

_POLL = 0.05  # seconds between two looks at signals


class _Bar:
    """Progress by tqdm where it is there, otherwise a line every ten seconds."""

    def __init__(self) -> None:
        self.bar: Any = None
        self.last = monotonic()
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return
        shape = "{desc} |{bar}| {percentage:3.0f} % [{elapsed}<{remaining}]"
        self.bar = tqdm(total=100, leave=False, bar_format=shape)

    def __call__(self, report: dict[str, Any]) -> None:
        share = 100 * float(report["share"])
        words = report["stage"] or f"{report['figure']} {report['value']:.5g} ± {report['mcse']:.1g}"
        if self.bar is not None:
            self.bar.set_description(words, refresh=False)
            self.bar.update(max(share - self.bar.n, -self.bar.n))
            return
        if monotonic() - self.last > 10:
            self.last = monotonic()
            print(f"headlab: {share:.0f} %, {words}", file=sys.stderr)

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def listener(progress: Progress) -> Callable[[dict[str, Any]], object] | None:
    """What hears of progress: a bar for True, nothing for False."""
    if progress is True:
        return _Bar()
    if progress and not callable(progress):
        raise TypeError(f"progress: is {progress!r}, needs True, False or a function")
    return progress or None


def say_stopping() -> None:
    """What the program says on the first Ctrl-C."""
    print("headlab: stopping; again to quit at once", file=sys.stderr, flush=True)


def watch(job: _engine.Job, progress: Progress = False) -> Iterator[tuple[Any, bool | None]]:
    """Interim results of a job, each with None; then its result, and whether Ctrl-C stopped it.

    The first Ctrl-C asks the engine to stop and waits for what it has; a second one raises
    KeyboardInterrupt, and the engine ends by itself. An exception of the callback stops
    the engine and is raised.
    """
    interrupted = done = False
    tell = listener(progress)
    try:
        while not done:
            try:
                done = job.wait(_POLL)
                if tell is not None and (report := job.progress()) is not None:
                    tell(report)
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                job.stop()
                say_stopping()
            if not (done or interrupted) and (state := job.interim()) is not None:
                yield state, None
    except BaseException:
        job.stop()
        raise
    finally:
        if isinstance(tell, _Bar):
            tell.close()
    try:
        with translated():
            result = job.result()
    except Exception:
        if interrupted:
            raise KeyboardInterrupt from None
        raise
    yield result, interrupted


def finish(job: _engine.Job, progress: Progress = False) -> tuple[Any, bool]:
    """The result of a job without interim ones, and whether Ctrl-C stopped it."""
    ((result, interrupted),) = watch(job, progress)
    return result, bool(interrupted)


def wait(job: _engine.Job, progress: Progress = False) -> Any:
    """The result of a job of which nothing is kept where it is interrupted."""
    result, interrupted = finish(job, progress)
    if interrupted:
        raise KeyboardInterrupt
    return result


def warn_unfinished(complete: bool, interrupted: bool, what: str) -> None:
    """Says why not all was computed."""
    if not complete:
        why = "interrupted" if interrupted else "max_time reached"
        warn(f"{why}: {what}")

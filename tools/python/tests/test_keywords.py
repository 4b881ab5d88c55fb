# SPDX-License-Identifier: Apache-2.0
"""A function of the package has the options of the command of its name as keywords, but those that are told here."""

from __future__ import annotations

import inspect
import re
import subprocess
from collections.abc import Callable
from typing import Any

import headlab as hl
import pytest
from headlab import _run

#: Of every command: what it writes or shows, which a function returns.
WRITTEN = {"help", "json", "out", "overwrite", "quiet", "report", "table"}
#: Of every function: what the command takes as its arguments, and what it shows by itself.
ARGUMENTS = {"scenario", "heads", "claims", "a", "b", "sources", "path", "progress"}
#: Options that a function lacks on purpose.
NO_KEYWORD: dict[str, set[str]] = {
    "run": {"dry_run", "first_replicates", "replicate_figures", "shard"},  # for shells and jobs
    "validate": {"calibrate", "checkpoint", "resume", "shard", "simd"},  # hours, for jobs
    "allocate": {"bandwidth_rule", "checkpoint", "data", "resume", "shard", "simd"},  # rule, and for jobs
    "compress": {"header"},  # arrays have none
    "replay": {"max_time", "replicates", "simd"},  # one replicate
    "dataset": {"format", "only_shard", "shards"},  # of files
}
#: Keywords that a command lacks on purpose.
NO_OPTION: dict[str, set[str]] = {
    "allocate": {"rule"},  # --bandwidth-rule
    "dataset": {"condition"},  # its files have all
}


@pytest.mark.parametrize(
    "name", ["run", "theory", "validate", "allocate", "dataset", "replay", "diff", "report", "hdi", "compress"]
)
def test_options_are_keywords(program: str, name: str) -> None:
    page = subprocess.run([program, name, "--help"], capture_output=True, text=True, check=True).stdout
    options = {word.replace("-", "_") for word in re.findall(r"^  (?:-\w,)?--([a-z-]+)", page, re.MULTILINE)}
    keywords = set(inspect.signature(getattr(hl, name)).parameters)
    assert "help" in options
    assert options - keywords - WRITTEN == NO_KEYWORD.get(name, set()), "options without a keyword"
    assert keywords - options - ARGUMENTS == NO_OPTION.get(name, set()), "keywords without an option"


@pytest.mark.parametrize("call", [hl.run, hl.iter_run])
def test_every_keyword_of_a_run_is_an_option(monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any]) -> None:
    started: list[dict[str, Any]] = []

    def start(scenario: Any, sets: Any, every: Any, given: dict[str, Any]) -> None:
        started.append(given)
        raise hl.RunError("not here")

    monkeypatch.setattr(_run, "_start", start)
    with pytest.raises(hl.RunError):
        list(call("s.toml"))
    assert set(started[0]) == set(inspect.signature(call).parameters) - {"scenario", "set", "every", "progress"}

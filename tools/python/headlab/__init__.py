# SPDX-License-Identifier: Apache-2.0
"""headlab: multi-head attention as an ensemble of Nadaraya-Watson regressions, simulated.

::

    import headlab as hl

    r = hl.run("scenarios/quickstart.toml")
    print(r)                      # the table of the program
    r["mse"], r["mse_mcse"]       # arrays over conditions
    r.dataset                     # xarray.Dataset
    r.plot.components()           # matplotlib Axes

docs/python.md is the guide; ``help(hl.run)`` says the rest.
"""

import sys as _sys

from . import heads, plot
from ._allocations import Allocation, allocate
from ._attention import attention
from ._dataset import TrainingSets, dataset
from ._documented import document as _document
from ._engine import build as _build
from ._errors import (
    HeadlabError, HeadlabWarning, MissingFileError, RunError, ScenarioError, StoppedError,
)  # fmt: skip
from ._estimates import nw
from ._results import Difference, Result
from ._run import iter_run, open, run
from ._scenario import Scenario, scenario, sweep
from ._studies import (
    Comparison,
    Compression,
    Diversity,
    Replay,
    Theory,
    Verdict,
    Verdicts,
    compress,
    diff,
    hdi,
    replay,
    report,
    theory,
    validate,
)
from .heads import Heads

__version__: str = _build()["version"]

_document({name: module for name, module in _sys.modules.items() if name.partition(".")[0] == __name__})

__all__ = [
    "Allocation",
    "Comparison",
    "Compression",
    "Difference",
    "Diversity",
    "HeadlabError",
    "HeadlabWarning",
    "Heads",
    "MissingFileError",
    "Replay",
    "Result",
    "RunError",
    "Scenario",
    "ScenarioError",
    "StoppedError",
    "Theory",
    "TrainingSets",
    "Verdict",
    "Verdicts",
    "allocate",
    "attention",
    "compress",
    "dataset",
    "diff",
    "hdi",
    "heads",
    "iter_run",
    "nw",
    "open",
    "plot",
    "replay",
    "report",
    "run",
    "scenario",
    "sweep",
    "theory",
    "validate",
]

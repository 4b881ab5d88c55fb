# SPDX-License-Identifier: Apache-2.0
"""What users write first and write wrongly: one line each, of a type of the package or of Python's own."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headlab as hl
import numpy as np
import pytest

QUICK = "scenarios/quickstart.toml"
MODEL = "scenarios/data/small_model"


def numbers(*shape: int) -> Any:
    return np.random.default_rng([2, *shape]).normal(size=shape)


def activations() -> hl.heads.Activations:
    return hl.heads.from_attention(numbers(12, 2, 9, 3), numbers(12, 2, 9, 4)[..., :3], numbers(12, 2, 9, 3), numbers(2, 3, 8))


def quick(**more: Any) -> hl.Result:
    return hl.run(QUICK, replicates=64, **more)


WRONG: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: hl.run(None), hl.ScenarioError, r"scenario: is of type NoneType \(allowed: path, TOML text, dict\)"),
    (lambda: hl.scenario(3), hl.ScenarioError, "scenario: is of type int"),
    (lambda: hl.run("nope.toml"), FileNotFoundError, "nope.toml: cannot be opened"),
    (lambda: hl.run(QUICK, 3), hl.ScenarioError, 'set: is of type int - write a dict, or \\["KEY=VALUE"\\]'),
    (lambda: hl.run(QUICK, "data.n=3"), hl.ScenarioError, "set: is one text"),
    (lambda: hl.run(QUICK, backend="gpu"), hl.ScenarioError, 'backend: "gpu" is unknown .* did you mean "cuda"'),
    (lambda: hl.run(QUICK, progress="yes"), TypeError, "progress: is 'yes', needs True, False or a function"),
    (lambda: next(hl.iter_run(QUICK, every="x")), hl.ScenarioError, "every: is 'x', needs seconds above 0"),
    (lambda: hl.open("nope"), FileNotFoundError, "nope: No such file or directory"),
    (lambda: quick()["msee"], KeyError, 'msee: no such figure - did you mean "mse"'),
    (lambda: hl.scenario(QUICK)[3], TypeError, "key: is 3, needs a text"),
    (lambda: hl.sweep(QUICK, ["data.n"]), hl.ScenarioError, "keys: is of type list, needs a dict of values by key"),
    (lambda: hl.validate("angless"), hl.ScenarioError, 'unknown claim "angless"'),
    (lambda: hl.allocate(QUICK, 4, dims=2), hl.ScenarioError,
     r".*heads.subspaces: law .* - write set=\['heads.subspaces=\{law=\"haar\"\}', 'sweep=\{\}'\]$"),
    (lambda: hl.hdi(numbers(3, 5, 2)).cosines(7), hl.ScenarioError, r"layer: is 7 \(allowed: 0 to 0\)"),
    (lambda: hl.hdi("nope.nc"), FileNotFoundError, "nope.nc: cannot be opened"),
    (lambda: hl.heads.from_safetensors("nope"), FileNotFoundError, "nope: is not there"),
    (lambda: hl.heads.from_safetensors(MODEL)[99], hl.ScenarioError, "layer: is 99, which .* does not have"),
    (lambda: hl.dataset(QUICK, "x"), hl.ScenarioError, r'replicates: "x" does not fit \(allowed: a whole number from 1 to'),
    (lambda: hl.dataset(QUICK, 2.5), hl.ScenarioError, 'replicates: "2.5" does not fit'),
    (lambda: hl.dataset(QUICK, 8), hl.ScenarioError, "condition: the scenario has 5 conditions - write condition=C, from 0 to 4"),
    (lambda: hl.replay(QUICK, 0), hl.ScenarioError, "condition: the scenario has 5 conditions - write condition=C, from 0 to 4"),
    (lambda: hl.replay(QUICK, 0, -1), hl.ScenarioError, "condition: is -1, and is counted from 0"),
    (lambda: hl.run(QUICK, {"data.n": None}), hl.ScenarioError, "data.n: is None - leave it out"),
    (lambda: hl.run(""), hl.ScenarioError, "scenario: is empty, needs a path"),
    (lambda: hl.run("scenarios/quickstart"), FileNotFoundError,
     "scenarios/quickstart: cannot be opened: .* - did you mean scenarios/quickstart.toml?"),
    (lambda: hl.scenario("scenarios/Quickstart.toml"), FileNotFoundError,
     "scenarios/Quickstart.toml: cannot be opened: .* - did you mean scenarios/quickstart.toml?"),
    (lambda: hl.run(quick()), hl.ScenarioError, r"scenario: is of type Result .* its attribute `scenario`"),
    (lambda: hl.scenario("[data]\nn = 50%\n"), hl.ScenarioError,
     "TOML text:2:7: is 50%, which is not a TOML value - write 0.5"),
    (lambda: hl.run(QUICK, {"data.noise.sd": "0.5"}), hl.ScenarioError,
     'set data.noise.sd="0.5": data.noise.sd: is "0.5", needs a number - write 0.5'),
    (lambda: hl.open("scenarios"), FileNotFoundError, r"scenarios: has no results of headlab run \(results.nc\)"),
    (lambda: hl.open(QUICK), hl.ScenarioError, "scenarios/quickstart.toml: no results of headlab run"),
    (lambda: quick().save(QUICK), hl.ScenarioError, "folder: .*: is a file, not a folder"),
    (lambda: hl.replay(QUICK, "a"), TypeError, "replicate: is 'a', needs a whole number"),
    (lambda: hl.diff(quick(), "nope"), FileNotFoundError, "nope: there is no such file or folder"),
    (lambda: hl.heads.from_attention(numbers(3, 2), numbers(3, 2), numbers(3, 2), numbers(3, 2)), hl.ScenarioError,
     "q: has shape 3 x 2, needs sequence, head, query, k"),
    (lambda: hl.heads.from_attention({4: dict.fromkeys("qkv", numbers(3, 2)) | {"W_O": numbers(2, 3, 8)}}), hl.ScenarioError,
     r"layers\.4\.q: has shape 3 x 2"),
    (lambda: hl.heads.measure(activations(), little="1%"), hl.ScenarioError, "little: is .1%. .allowed: a share between 0 and 1"),
    (lambda: hl.heads.measure(activations(), seed=-1), hl.ScenarioError, "seed: .-1. does not fit"),
    (lambda: hl.heads.measure(activations()).prune("25%"), TypeError, "remove: is .25%., needs a whole number, or a share as 0.25"),
    (lambda: hl.heads.measure(activations()).prune(0.1), hl.ScenarioError, "remove: is 0 heads of 2 .allowed: 1 to 1."),
    (lambda: hl.hdi(numbers(3, 5, 2), top=-1), hl.ScenarioError, "top: .-1. does not fit"),
    (lambda: hl.heads.from_attention("q", "k", "v", "w"), hl.ScenarioError, "q: is .q., needs an array of numbers"),
    (lambda: hl.scenario(QUICK).__setitem__("data..n", 5), hl.ScenarioError, "key: .data..n. is not a key"),
    (lambda: hl.scenario(QUICK).save("nope/s.toml"), hl.ScenarioError, "path: nope/s.toml: there is no folder nope"),
    (lambda: hl.scenario(QUICK).save("scenarios"), hl.ScenarioError, "path: scenarios: is a folder, not a file"),
    (lambda: hl.heads.measure(3), hl.ScenarioError, r"source: is of type int \(allowed: Activations, capture, "),
    (lambda: hl.heads.measure(numbers(3)), hl.ScenarioError, "source: is of type ndarray"),
    (lambda: hl.heads.measure("nope.nc"), FileNotFoundError, "nope.nc: cannot be opened"),
    (lambda: hl.heads.open_measured("nope.nc"), FileNotFoundError, "nope.nc: cannot be opened"),
    (lambda: hl.heads.capture(3), hl.ScenarioError, "model: is of type int, needs a model of transformers"),
    (lambda: hl.nw(numbers(5, 2), numbers(5), numbers(3, 2), numbers(2, 2, 1), {"law": "softmax", "temperature": 1},
                   mask=np.ones((3, 4), bool)), hl.ScenarioError, r"mask: has shape \(3, 4\), needs \[..., 2 or 1, 3 or 1, 5\]"),
    (lambda: hl.attention(numbers(3, 2), numbers(3, 2), numbers(3, 2), scale=[1, 2]), hl.ScenarioError,
     "scale: is list, needs a number above 0"),
]  # fmt: skip


@pytest.mark.parametrize("case", WRONG, ids=[line[:24] for _, _, line in WRONG])
def test_what_is_wrong_is_said_in_a_line(case: Any) -> None:
    call, kind, line = case
    with pytest.raises(kind) as found:
        call()
    said = str(found.value.args[0])
    assert re.match(line, said), said
    assert "\n" not in said and "--" not in said and "cmake" not in said


def test_saved_results_stay_unless_they_are_to_be_replaced(tmp_path: Path) -> None:
    for result in (quick(), pickle.loads(pickle.dumps(quick()))):
        result.save(tmp_path / "r", overwrite=True)
        with pytest.raises(hl.ScenarioError, match="^folder: .*results.nc is there already - write overwrite=True$"):
            result.save(tmp_path / "r")


MADE: dict[str, Callable[[], Any]] = {
    "Activations": activations,
    "Along": lambda: hl.run(hl.sweep(QUICK, {"data.n": range(40, 90, 10)}), replicates=64).along("n"),
    "Allocation": lambda: hl.allocate(QUICK, 4, set={"heads.subspaces": {"law": "haar"}, "sweep": {}}, replicates=1024),
    "Comparison": lambda: hl.diff(quick(), quick()),
    "Compression": lambda: hl.compress(hl.heads.from_safetensors(MODEL, 0), 2, n=16, replicates=16),
    "Difference": lambda: quick().difference("mse", "heads.subspaces.angles"),
    "Diversity": lambda: hl.hdi(numbers(3, 5, 2)),
    "Heads": lambda: hl.heads.from_safetensors(MODEL),
    "LowRank": lambda: hl.heads.measure(activations()).low_rank(1),
    "Measured": lambda: hl.heads.measure(activations()),
    "MissingFileError": lambda: hl.MissingFileError("a: b"),
    "Plan": lambda: hl.heads.measure(activations()).prune(1, refit=False),
    "Replay": lambda: hl.replay(QUICK, 0, 0),
    "Result": quick,
    "Scenario": lambda: hl.scenario(QUICK),
    "Theory": lambda: hl.theory(QUICK),
    "TrainingSets": lambda: hl.dataset(QUICK, 4, condition=0),
    "Verdict": lambda: hl.validate("log_correlation")[0],
    "Verdicts": lambda: hl.validate("log_correlation"),
}  # fmt: skip


def numbers_of(made: Any) -> list[Any]:
    """Arrays and texts that tell one object from another."""
    if isinstance(made, hl.heads.Activations):
        return numbers_of(hl.heads.measure(made))
    if isinstance(made, hl.heads.Measured):
        return [made[name] for name in made]
    if hasattr(made, "maps"):
        return [w for _, (w, _) in sorted(made.maps().items())]
    return [repr(made)]


@pytest.mark.parametrize("name", MADE)
def test_objects_can_be_pickled_and_copied(name: str) -> None:
    made = MADE[name]()
    assert type(made).__name__ == name
    for again in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), pickle.loads(pickle.dumps(copy.copy(made)))):
        assert type(again) is type(made)
        for mine, other in zip(numbers_of(made), numbers_of(again), strict=True):
            np.testing.assert_array_equal(mine, other)


def test_measured_heads_that_were_pickled_still_make_plans() -> None:
    made = hl.heads.measure(activations())
    again = pickle.loads(pickle.dumps(made))
    assert again.prune(1, refit=False).order == made.prune(1, refit=False).order
    assert repr(pickle.loads(pickle.dumps(activations()))) == repr(activations())


def _measured(given: hl.heads.Activations) -> Any:
    return hl.heads.measure(given)["spread"]


def test_activations_travel_to_spawned_processes() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        (found,) = pool.map(_measured, [activations()])
    np.testing.assert_array_equal(found, _measured(activations()))


def test_names_are_completed_in_notebooks() -> None:
    for name in ("Result", "Theory", "Replay", "Measured", "TrainingSets", "Scenario", "Heads"):
        made = MADE[name]()
        first = made._ipython_key_completions_()[0]
        assert made[first] is not None, name

# SPDX-License-Identifier: Apache-2.0
"""Scenarios of Python objects: one strict reader, arrays by pointer, bad input."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import headlab as hl
import numpy as np
import pytest

from conftest import ROOT


def changed(scenario: dict[str, Any], key: str, value: Any) -> hl.Scenario:
    s = hl.scenario(scenario)
    s[key] = value
    return s


@pytest.mark.parametrize(
    ("key", "value", "wrong", "words"),
    [
        ("heads.kernell", {}, "heads.kernell", 'unknown key .* did you mean "kernel"'),
        ("data.n", np.zeros(2), "data.n", "is an array"),
        ("data.n", None, "data.n", "is None - leave it out"),
        ("data.n", 2**70, "data.n", "beyond 64 bits"),
        ("data.n", 0, "data.n", "must be in"),
        ("data.n", {1, 2}, "data.n", "is of type set"),
        ("data.noise.sd", float("nan"), "data.noise.sd", "nan"),
        ("data.noise.sd", 1j, "data.noise.sd", "is of type complex"),
        ("data.noise.sd", np.complex64(1), "data.noise.sd", "needs real numbers"),
        ("run", {3: 4}, "run", "key that is not text"),
        ("scenario.name", "\ud800", "scenario.name", "UTF-8"),
        ("heads.subspaces", np.zeros((2, 5, 2)), "heads.subspaces", "^heads.subspaces: .*5 rows, needs d x k = 6 x 2"),
        ("heads.subspaces", np.zeros((2, 6)), "heads.subspaces", "^heads.subspaces: .*needs H x d x k"),
        ("heads.subspaces", np.full((2, 6, 2), np.nan), "heads.subspaces", "^heads.subspaces: .*not finite"),
        ("heads.subspaces", np.ones((2, 6, 2)), "heads.subspaces", "^heads.subspaces: .*off orthonormal"),
        ("data.design", np.full((9, 6), np.inf), "data.design", "^data.design: .*not finite"),
        ("data.design", np.zeros((0, 6)), "data.design", "^data.design: .*needs rows x columns"),
    ],
)
def test_bad_values_are_rejected_at_their_key(
    small: dict[str, Any], key: str, value: Any, wrong: str, words: str
) -> None:
    with pytest.raises(hl.ScenarioError, match=words) as error:
        hl.run(changed(small, key, value))
    assert error.value.key == wrong


def test_nesting_is_bounded(small: dict[str, Any]) -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(hl.ScenarioError, match="nested deeper than 32 levels"):
        hl.run(changed(small, "data.n", deep))
    circle: dict[str, Any] = {}
    circle["a"] = circle
    with pytest.raises(hl.ScenarioError, match="nested deeper"):
        hl.run({**small, "data": circle})


def test_types_of_arguments_are_named_in_one_line(small: dict[str, Any], subspaces: np.ndarray) -> None:
    sets = hl.dataset(small, 4)
    heads = hl.heads.from_array(subspaces)
    r = hl.run(small, replicates=8)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: hl.dataset(small, 4, condition=1.5), "condition: is 1.5, needs a whole number"),
        (lambda: hl.dataset(small, 4, condition=subspaces),
         "condition: is of type ndarray, needs a whole number"),
        (lambda: sets.draw(0.0, 2), "first: is 0.0, needs a whole number"),
        (lambda: sets.batches(2.5), "size: is 2.5, needs a whole number"),
        (lambda: hl.replay(small, 1.5), "replicate: is 1.5, needs a whole number"),
        (lambda: hl.hdi(heads, top=1.5), "top: is 1.5, needs a whole number"),
        (lambda: heads[0.5], "layer: is 0.5, needs a whole number"),
        (lambda: hl.run(small, backend=3), "backend: is 3, needs a text"),
        (lambda: hl.run(small, simd=2), "simd: is 2, needs a text or None"),
        (lambda: hl.run(small, resume="yes"), "resume: is 'yes', needs True or False"),
        (lambda: hl.run(small, nodes=2), "nodes: is 2, needs True or False"),
        (lambda: hl.run(small, max_time=[1]),
         'max_time: is of type list, needs seconds or a text as "30m"'),
        (lambda: hl.run(small, out=3), "out: is 3, needs a path"),
        (lambda: r.save("o", overwrite="yes"), "overwrite: is 'yes', needs True or False"),
        (lambda: r.difference("mse", 4), "over: is 4, needs a text"),
        (lambda: hl.open(3), "path: is 3, needs a path"),
        (lambda: hl.allocate(small, 4, growth="x"), "growth: is 'x', needs True or False"),
        (lambda: hl.theory(small, source=3), "source: is 3, needs a text"),
        (lambda: hl.validate("angles", level=3), "level: is 3, needs a text"),
        (lambda: hl.heads.from_safetensors("m", arch=3), "arch: is 3, needs a text"),
    ]  # fmt: skip
    for call, message in calls:
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value) == message


def test_paths_with_a_zero_byte_are_rejected(
    small: dict[str, Any], subspaces: np.ndarray, tmp_path: Path
) -> None:
    nul = str(tmp_path / "a") + "\0b"
    r = hl.run(small, replicates=8)
    calls: dict[str, Callable[[], object]] = {
        "scenario": lambda: hl.run(nul),
        "out": lambda: hl.run(small, out=nul),
        "folder": lambda: r.save(nul),
        "claims": lambda: hl.validate(nul),
        "checkpoint": lambda: hl.heads.from_safetensors(nul),
        "path": lambda: hl.heads.from_array(subspaces).save(nul),
        "a": lambda: hl.diff(nul, r),
        "sources": lambda: hl.report(tmp_path / "r.html", nul),
    }
    more = (lambda: hl.open(nul), lambda: hl.report(nul, r), lambda: hl.scenario(small).save(nul))
    for name, call in [*calls.items(), *(("path", one) for one in more)]:
        with pytest.raises(hl.ScenarioError) as raised:
            call()
        assert str(raised.value) == f"{name}: {nul!r} has a zero byte, which no path has"
    with pytest.raises(hl.ScenarioError, match="^scenario: .* has a zero byte"):
        hl.scenario(nul)
    assert not list(tmp_path.iterdir())


def test_other_arguments_are_rejected(small: dict[str, Any], tmp_path: Path) -> None:
    for wrong in (3, None, [1]):
        with pytest.raises(hl.ScenarioError, match="is of type"):
            hl.run(wrong)  # type: ignore[arg-type]
    for arguments, words in (
        ({"backend": "gpu"}, '^backend: "gpu" is unknown .* did you mean "cuda"'),
        ({"replicates": "many"}, 'replicates: "many" does not fit'),
        ({"seed": -1}, 'seed: "-1" does not fit'),
        ({"threads": 0}, "threads"),
        ({"max_time": -1}, "not a time"),
        ({"resume": True}, "resume: needs out"),
        ({"out": tmp_path, "resume": True, "overwrite": True}, "leave one of them out"),
        ({"until": "mze=1%"}, "until"),
        ({"set": "data.n=3"}, "is one text"),
        ({"set": {"data.m": 3}}, "data.m"),
    ):
        with pytest.raises(hl.ScenarioError, match=words):
            hl.run(small, **arguments)
    with pytest.raises(hl.ScenarioError, match="no_such.toml"):
        hl.run("no_such.toml")
    with pytest.raises(hl.ScenarioError, match="TOML text:2:"):
        hl.run("[data]\nn = ")


def test_arrays_have_the_bits_of_a_file(
    small: dict[str, Any], subspaces: np.ndarray, program: str, tmp_path: Path
) -> None:
    rows = np.random.default_rng(1).normal(size=(50, 6)).astype(np.float32)
    s = changed(small, "heads.subspaces", subspaces)
    s["data.design"] = rows
    r = hl.run(s)
    assert np.array_equal(r["projections"][0], subspaces)
    r.save(tmp_path)
    subprocess.run(
        [program, "run", str(tmp_path / "scenario.toml"), "--out", str(tmp_path / "x"), "--quiet"],
        check=True, capture_output=True,
    )  # fmt: skip
    assert hl.diff(tmp_path, tmp_path / "x").same_bits
    again = hl.open(tmp_path)
    # What is read from files also says what was read.
    assert repr(again).splitlines()[:3] == repr(r).splitlines()[:3]
    assert repr(r).splitlines()[4:] == repr(again).splitlines()[-len(repr(r).splitlines()) + 4:]


def test_layouts_of_memory_do_not_matter(small: dict[str, Any], subspaces: np.ndarray) -> None:
    expected = hl.run(changed(small, "heads.subspaces", subspaces))["mse"]
    for array in (np.asfortranarray(subspaces), subspaces[::1].repeat(2, axis=0)[::2], subspaces.copy()):
        array.flags.writeable = False
        assert np.array_equal(hl.run(changed(small, "heads.subspaces", array))["mse"], expected)


class Exported:
    """An array that speaks DLPack alone."""

    def __init__(self, array: np.ndarray, device: int = 1) -> None:
        self.array = array
        self.on = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.on, 0

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.array.__dlpack__()


def test_arrays_of_other_libraries(small: dict[str, Any], subspaces: np.ndarray) -> None:
    expected = hl.run(changed(small, "heads.subspaces", subspaces))["mse"]
    assert np.array_equal(hl.run(changed(small, "heads.subspaces", Exported(subspaces)))["mse"], expected)
    with pytest.raises(hl.ScenarioError, match="copy it to the host"):
        hl.run(changed(small, "heads.subspaces", Exported(subspaces, device=2)))


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_heads_of_pytorch_and_jax(
    library: str, small: dict[str, Any], subspaces: np.ndarray
) -> None:
    module = pytest.importorskip(library)
    array = subspaces.astype(np.float32)
    heads = module.from_numpy(array) if library == "torch" else module.numpy.asarray(array)
    with pytest.warns(hl.HeadlabWarning, match="made orthonormal"):
        expected = hl.run(changed(small, "heads.subspaces", array))["mse"]
    with pytest.warns(hl.HeadlabWarning, match="made orthonormal"):
        assert np.array_equal(hl.run(changed(small, "heads.subspaces", heads))["mse"], expected)


def test_float32_heads_are_orthonormalised_and_that_is_said_once(
    small: dict[str, Any], subspaces: np.ndarray
) -> None:
    single = subspaces.astype(np.float32)
    s = changed(small, "heads.subspaces", single)
    off = np.abs(single.transpose(0, 2, 1).astype(float) @ single - np.eye(2)).max()
    assert 1e-8 < off < 1e-6
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        r = hl.run(s)
    assert [str(one.message) for one in said] == [
        f"heads.subspaces: orthonormal to {off:.1g} only, made orthonormal by QR"
    ]
    w = r["projections"][0]
    assert np.abs(w.transpose(0, 2, 1) @ w - np.eye(2)).max() < 1e-14
    assert np.abs(w - subspaces).max() < 1e-6
    # Beyond that the user is asked.
    with pytest.raises(hl.ScenarioError, match="off orthonormal"):
        hl.run(changed(small, "heads.subspaces", subspaces * (1 + 1e-4)))


def test_heads_of_an_array_are_orthonormalised_where_that_is_set(
    small: dict[str, Any], subspaces: np.ndarray
) -> None:
    skew = subspaces @ np.array([[1.0, 0.5], [0.0, 2.0]])
    expected = hl.run(changed(small, "heads.subspaces", subspaces))["mse"]
    for given in (skew, skew.tolist()):
        s = changed(small, "heads.subspaces", given)
        with pytest.raises(hl.ScenarioError, match="^heads.subspaces: .* - set orthonormalise = true"):
            hl.run(s)
        s["heads.subspaces.orthonormalise"] = True
        assert np.allclose(hl.run(s)["mse"], expected, rtol=1e-10)
    with pytest.raises(hl.ScenarioError, match="dim is not a table"):
        s["heads.dim.orthonormalise"] = True


def truth(rows: np.ndarray) -> np.ndarray:
    return np.sin(rows[:, 0]) + rows[:, 1] * (rows[:, 2] > 0)


def with_rows(small: dict[str, Any], regression: Any) -> dict[str, Any]:
    rows = np.random.default_rng(3).normal(size=(50, 6))
    made = changed(small, "data.design", rows)
    made["queries"] = {"law": "design", "count": 8}
    return changed(made, "data.regression", regression)


def test_a_regression_may_be_a_function_of_rows(small: dict[str, Any], tmp_path: Path) -> None:
    made = with_rows(small, truth)
    r = hl.run(made)
    rows = made["data"]["design"]
    column = with_rows(small, {"law": "file", "column": 6})
    column["data"]["design"] = np.column_stack([rows, truth(rows)])
    assert np.array_equal(r["mse"], hl.run(column)["mse"])
    # The truth at each query is that of the function, whatever the rows that it is at.
    assert np.allclose(r["truth"][0], truth(r["x"][0]), rtol=1e-6, atol=1e-6)
    assert not np.allclose(r["truth"][0], r["x"][0][:, 0])
    # Saved, it is the column; and a function is not called again for it.
    r.save(tmp_path / "out")
    assert np.array_equal(hl.run(tmp_path / "out" / "scenario.toml")["mse"], r["mse"])


def test_a_function_gives_the_truth_at_points(small: dict[str, Any]) -> None:
    points = np.linspace(-1, 1, 18).reshape(3, 6)
    made = with_rows(small, truth)
    made["queries"] = {"law": "points", "points": points.tolist()}
    r = hl.run(made)
    assert np.array_equal(r["truth"][0], truth(points))
    # As the truth of a scenario in text, to the bit; another truth is another bias.
    column = with_rows(small, {"law": "file", "column": 6})
    column["data"]["design"] = np.column_stack([made["data"]["design"], truth(made["data"]["design"])])
    column["queries"] = {**made["queries"], "truth": truth(points).tolist()}
    assert np.array_equal(r["head_bias"], hl.run(column)["head_bias"])
    column["queries"]["truth"][0] += 1
    assert not np.array_equal(r["head_bias"], hl.run(column)["head_bias"])
    with pytest.raises(hl.ScenarioError, match="inf at row 1 of queries.points"):
        hl.run(changed(made, "data.regression", lambda x: np.where(x[:, 0] == points[1, 0], np.inf, 0.0)))
    with pytest.raises(hl.ScenarioError, match="queries.truth: has 2 numbers for 3 points"):
        hl.run(changed(made, "queries.truth", [0.0, 1.0]))


@pytest.mark.parametrize(
    ("regression", "says"),
    [
        (lambda rows: rows, "data.regression: gives numbers of shape [50, 6], needs one a row, [50]"),
        (lambda rows: np.where(np.arange(50) == 7, np.inf, 0.0), "data.regression: is inf at row 7 of data.design"),
    ],
)
def test_functions_that_are_no_regression(small: dict[str, Any], regression: Any, says: str) -> None:
    with pytest.raises(hl.ScenarioError) as refused:
        hl.run(with_rows(small, regression))
    assert str(refused.value) == says


def test_functions_need_rows(small: dict[str, Any]) -> None:
    with pytest.raises(hl.ScenarioError, match="needs data.design to be an array of rows"):
        hl.run(changed(small, "data.regression", truth))
    with pytest.raises(hl.ScenarioError, match="data.noise: is a function"):
        hl.run(changed(small, "data.noise", truth))


def test_lists_are_arrays(small: dict[str, Any], subspaces: np.ndarray) -> None:
    expected = hl.run(changed(small, "heads.subspaces", subspaces))["mse"]
    for lists in (subspaces.tolist(), list(subspaces), tuple(subspaces.tolist())):
        assert np.array_equal(hl.run(changed(small, "heads.subspaces", lists))["mse"], expected)
        assert np.array_equal(hl.run(small, {"heads.subspaces": lists})["mse"], expected)
    swept = hl.run(hl.sweep(small, {"heads.subspaces": [subspaces.tolist(), list(-subspaces)]}))
    assert swept["mse"].tolist() == [expected[0], expected[0]]
    assert hl.hdi(subspaces.tolist()).index()[0] == hl.hdi(subspaces).index()[0]
    for wrong in ([[1.0], [1.0, 2.0]], ["a"], [[None]], [subspaces, subspaces[:, :3]]):
        with pytest.raises(hl.ScenarioError, match="^heads.subspaces: is a list that makes no array"):
            hl.run(changed(small, "heads.subspaces", wrong))
        with pytest.raises(hl.ScenarioError, match="^heads: is a list that makes no array"):
            hl.hdi(wrong)


def test_keys_are_deleted(small: dict[str, Any]) -> None:
    s = hl.scenario(small)
    s["data.nn"] = 3
    with pytest.raises(hl.ScenarioError, match="data.nn"):
        hl.run(s)
    t = s.copy()
    del s["data.nn"]
    assert np.array_equal(hl.run(s)["mse"], hl.run(small)["mse"]) and t["data.nn"] == 3
    with pytest.raises(KeyError, match="data.nn: is not set"):
        del s["data.nn"]
    del s["data"]
    assert "data" in small and "data" not in s.tree


def test_sweeps_of_arrays(small: dict[str, Any], subspaces: np.ndarray) -> None:
    other = subspaces[:, ::-1].copy()
    r = hl.run(hl.sweep(small, {"heads.subspaces": [subspaces, other], "data.n": [20, 40]}))
    assert len(r["mse"]) == 4
    one = hl.run(changed(small, "heads.subspaces", other), {"data.n": 40})
    assert r["mse"][3] == one["mse"][0]
    stacked = hl.run(hl.sweep(small, {"heads.subspaces": np.stack([subspaces, other])}))
    assert stacked["mse"][1] == r["mse"][3]
    set_array = hl.run(small, {"heads.subspaces": other})
    assert set_array["mse"][0] == r["mse"][3]
    four = np.linalg.qr(subspaces[:, :4])[0]
    of_file = hl.run("scenarios/quickstart.toml", {"sweep": {}, "heads.subspaces": four}, replicates=16)
    assert len(of_file["mse"]) == 1 and np.array_equal(of_file["projections"][0], four)


def test_a_sweep_over_a_part_of_an_array_is_said(subspaces: np.ndarray) -> None:
    four = np.linalg.qr(subspaces[:, :4])[0]
    s = changed(hl.scenario("scenarios/quickstart.toml"), "heads.subspaces", four)  # type: ignore[arg-type]
    for given, sets in ((s, None), ("scenarios/quickstart.toml", {"heads.subspaces": four})):
        with pytest.raises(hl.ScenarioError, match="^heads.subspaces: is an array, but the sweep") as error:
            hl.run(given, sets)  # type: ignore[arg-type]
        assert error.value.key == "heads.subspaces"
    s["sweep"] = {"data": {"n": [20, 40]}}
    assert len(hl.run(s, replicates=16)["mse"]) == 2


def test_scenarios_are_changed_and_printed(small: dict[str, Any]) -> None:
    s = hl.scenario("scenarios/quickstart.toml")
    s["heads.kernel.bandwidth"] = 0.6
    t = s.copy()
    t["heads.kernel.bandwidth"] = 0.7
    assert s["heads.kernel.bandwidth"] == 0.6
    assert 'kernel = { law = "gaussian", bandwidth = 0.6 }' in str(s) == repr(s)
    assert "zip = true" in str(hl.sweep(s, {"data.n": [1, 2]}, zip=True))
    built = hl.Scenario(**small)
    assert np.array_equal(hl.run(built)["mse"], hl.run(small)["mse"])
    assert small["heads"]["kernel"]["bandwidth"] == 1.5


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, ROOT / f"tools/python/tests/{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_mutated_scenarios_never_crash() -> None:
    counts = load("fuzz_reader").run(500, seed=1)
    assert counts["rejected"] > 100 and counts["read"] > 50


def test_memory_stays_flat() -> None:
    # The long form, a thousand runs, is a command of its own.
    assert load("leak").growth(runs=30, first=10) < 5e6


def test_an_empty_sweep_is_none(small: dict[str, Any], tmp_path: Path) -> None:
    s = hl.scenario(small)
    s["sweep"] = {}
    assert "[sweep]" not in str(s)
    s.save(tmp_path / "s.toml")
    assert hl.run(tmp_path / "s.toml") == hl.run(s)


def test_keys_can_be_asked_for(small: dict[str, Any]) -> None:
    s = hl.scenario(small)
    assert "heads.kernel" in s and "heads.kernell" not in s and 5 not in s
    assert list(s) == list(small) and len(s) == len(small)


def test_masked_numbers_are_rejected(small: dict[str, Any]) -> None:
    x = np.ma.masked_array(np.zeros((4, 1)), mask=[[0], [1], [0], [0]])
    with pytest.raises(hl.ScenarioError, match="^X: has masked numbers"):
        hl.nw(x, np.zeros(4), np.zeros((1, 1)), np.ones((1, 1, 1)), {"law": "gaussian", "bandwidth": 1})
    whole = np.ma.masked_array(np.zeros((4, 1)), mask=False)
    hl.nw(whole, np.zeros(4), np.zeros((1, 1)), np.ones((1, 1, 1)), {"law": "gaussian", "bandwidth": 1})


def test_equal_scenarios_compare_equal(small: dict[str, Any], subspaces: np.ndarray, tmp_path: Path) -> None:
    one, other = hl.scenario(small), hl.scenario(small)
    assert one == other
    other["data.n"] = 41
    assert one != other
    other["data.n"] = 40
    assert one == other
    one["heads.subspaces"], other["heads.subspaces"] = subspaces, subspaces.copy()
    assert one == other
    other["heads.subspaces"] = subspaces[::-1]
    assert one != other
    # The same text names other files in another folder.
    text = '[data]\ndesign = { law = "file", path = "x.npy" }\n'
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "s.toml").write_text(text)
    assert hl.scenario(tmp_path / "a/s.toml") == hl.scenario(tmp_path / "a/s.toml")
    assert hl.scenario(tmp_path / "a/s.toml") != hl.scenario(tmp_path / "b/s.toml")
    assert one != "text"


def test_sweeps_take_ranges_arrays_and_single_values(small: dict[str, Any], subspaces: np.ndarray) -> None:
    for given, wanted in (
        (range(20, 50, 10), [20, 30, 40]), (30, [30]), (np.arange(20, 40, 10), [20, 30]), (np.int64(30), [30]),
        ((20, 30), [20, 30]), ((n for n in (20, 30)), [20, 30]),
    ):  # fmt: skip
        r = hl.run(hl.sweep(small, {"data.n": given}), replicates=8)
        assert list(r["n"]) == wanted
    assert len(hl.run(hl.sweep(small, {"heads.subspaces": subspaces}), replicates=8)["mse"]) == 1
    assert len(hl.run(hl.sweep(small, {"heads.subspaces": [subspaces, -subspaces]}), replicates=8)["mse"]) == 2
    assert len(hl.run(hl.sweep(small, {"heads.kernel.law": "gaussian"}), replicates=8)["mse"]) == 1


def test_keys_are_completed(small: dict[str, Any]) -> None:
    assert "heads.kernel.bandwidth" in hl.scenario(small)._ipython_key_completions_()
    assert "mse_mcse" in hl.run(small, replicates=8)._ipython_key_completions_()
    assert "X" in hl.dataset(small, 2)._ipython_key_completions_()


@pytest.mark.parametrize(
    "call",
    [
        lambda: hl.open("nowhere"), lambda: hl.scenario("nowhere.toml"), lambda: hl.run("nowhere.toml"),
        lambda: hl.heads.from_safetensors("nowhere.safetensors", arch="llama", heads=2), lambda: hl.heads.read("nowhere.nc"),
        lambda: hl.hdi("nowhere.npy"), lambda: hl.heads.open_activations("nowhere.nc"), lambda: hl.diff("nowhere", "nowhere"),
        lambda: hl.heads.open_measured("nowhere.nc"),
    ],
)  # fmt: skip
def test_missing_files_are_file_not_found_errors(call: Callable[[], Any]) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere") as caught:
        call()
    assert isinstance(caught.value, hl.ScenarioError)


def test_messages_name_arrays_as_the_caller_does(small: dict[str, Any]) -> None:
    small["heads"]["subspaces"] = np.ones((2, 6, 2))
    with pytest.raises(hl.ScenarioError) as caught:
        hl.run(small)
    assert ".npy" not in str(caught.value) and "heads.subspaces" in str(caught.value)
    small["heads"]["subspaces"] = {"law": "haar"}
    small["data"]["design"] = np.full((30, 6), np.nan)
    with pytest.raises(hl.ScenarioError) as caught:
        hl.run(small)
    assert ".npy" not in str(caught.value) and "data.design" in str(caught.value)


def test_nobody_is_told_to_configure_a_build(small: dict[str, Any]) -> None:
    if "cuda" in hl._engine.build()["backends"]:
        pytest.skip("this build has a CUDA backend")
    with pytest.raises(hl.ScenarioError) as caught:
        hl.run(small, backend="cuda")
    assert "cmake" not in str(caught.value) and "--" not in str(caught.value)

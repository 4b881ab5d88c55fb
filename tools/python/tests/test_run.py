# SPDX-License-Identifier: Apache-2.0
"""Runs and results: the bits of the program, names, files, interruption."""

from __future__ import annotations

import copy
import doctest
import itertools
import json
import multiprocessing
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import headlab as hl
import numpy as np
import pytest

from conftest import ROOT

QUICKSTART = "scenarios/quickstart.toml"
# Heads that every replicate learns take a second; the smaller of the two is enough.
SHIPPED = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "scenarios").rglob("*.toml")
    if path.name != "learned_additive.toml" and "data" not in path.parts
)


STOPPING = "headlab: stopping; again to quit at once\n"
TIMES = ("seconds", "weights_per_second")


def table(text: str) -> list[str]:
    """The lines of a table that do not depend on the time."""
    return [line for line in text.splitlines() if "kernel weights a second" not in line]


@pytest.mark.parametrize("part", ["claims", ""])
def test_every_shipped_scenario_has_the_bits_of_the_program(
    part: str, program: str, tmp_path: Path
) -> None:
    for i, path in enumerate(p for p in SHIPPED if p.startswith("scenarios/claims") == (part != "")):
        theirs = tmp_path / str(i)
        done = subprocess.run(
            [program, "run", path, "--replicates", "16", "--out", str(theirs), "--quiet"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        r = hl.run(path, replicates=16)
        # With --out the program adds which replicates are extreme.
        assert table(done.stdout)[: len(table(repr(r)))] == table(repr(r)), path
        stored = hl.open(theirs)
        assert set(stored) == set(r) and list(r["nodes_sha256"]) == list(stored["nodes_sha256"])
        for name in r:
            if r[name].dtype.kind == "f" and name not in TIMES:
                assert np.array_equal(r[name], stored[name], equal_nan=True), (path, name)


def test_other_draws_are_other_bits() -> None:
    a, b = (hl.run(QUICKSTART, replicates=16, seed=seed) for seed in (7, 8))
    assert not hl.diff(a, b).same_bits
    assert hl.diff(a, a).same_bits


@pytest.mark.parametrize(
    "key, value", [("run.controls", "exact"), ("heads.subspaces", {"law": "learned", "steps": 3, "batch": 4})]
)
def test_times_do_not_count_in_a_comparison(key: str, value: Any, small: dict[str, Any]) -> None:
    s = hl.scenario(small)
    s[key] = value
    a, b = hl.run(s), hl.run(s)
    assert a == b
    assert hl.run(s, seed=2) != a


def test_path_text_and_dict_are_one_scenario(small: dict[str, Any], tmp_path: Path) -> None:
    s = hl.scenario(small)
    s.save(tmp_path / "small.toml")
    results = [hl.run(x) for x in (small, s, str(s), str(tmp_path / "small.toml"), tmp_path / "small.toml")]
    for r in results[1:]:
        assert np.array_equal(r["mse"], results[0]["mse"])


def test_figures_by_name(small: dict[str, Any]) -> None:
    r = hl.run(hl.sweep(small, {"heads.kernel.bandwidth": [1.0, 2.0]}))
    assert r["mse"].shape == (2,)
    assert r["head_covariance"].shape == (2, 2, 2, 2)
    assert r.dims("head_covariance") == ("condition", "query", "head", "head_2")
    assert np.allclose(r["mse"], r["bias_squared"] + r["variance_term"] + r["covariance_term"], rtol=1e-12)
    assert list(r.swept["bandwidth"]) == [1.0, 2.0]
    assert r.attributes["backend"] in ("cpu", "cuda") and r.complete
    data = r.dataset
    assert data["mse"].coords["bandwidth"].values.tolist() == [1.0, 2.0]
    assert data.attrs["results_id"] == r.summary["results_id"]
    with pytest.raises(KeyError, match='did you mean "mse"'):
        r["mze"]


def test_conditions_of_different_sizes_are_padded() -> None:
    r = hl.run("scenarios/decorrelation_floor.toml", replicates=16)
    heads = r["heads"]
    for i, count in enumerate(heads):
        known = ~np.isnan(r["head_bias"][i, 0])
        assert known.sum() == count and known[:count].all()


def test_files_give_the_same(small: dict[str, Any], tmp_path: Path) -> None:
    s = hl.sweep(small, {"data.n": [20, 40]})
    r = hl.run(s, out=tmp_path / "a")
    again = hl.open(tmp_path / "a")
    for name in r:
        if r[name].dtype.kind == "f":
            assert np.array_equal(again[name], r[name], equal_nan=True), name
    assert table(repr(again)) == table(repr(r))
    assert again.complete and again.summary["results_id"] == r.summary["results_id"]
    d, e = (x.difference("mse", over="data.n") for x in (r, again))
    assert np.array_equal(d.values, e.values, equal_nan=True) and np.isnan(d.values[0])
    with pytest.raises(hl.ScenarioError, match="is there already - write resume=True or overwrite=True"):
        hl.run(s, out=tmp_path / "a")
    with pytest.raises(hl.MissingFileError, match="nothing: No such file or directory"):
        hl.open(tmp_path / "nothing")


def test_results_travel(small: dict[str, Any], subspaces: np.ndarray, tmp_path: Path) -> None:
    small["heads"]["subspaces"] = subspaces
    r = hl.run(hl.sweep(small, {"data.n": [20, 40]}))
    r.save(tmp_path / "a")
    for one in (r, hl.open(tmp_path / "a")):
        for again in (pickle.loads(pickle.dumps(one)), copy.deepcopy(one), copy.copy(one)):
            assert again == r and table(repr(again)) == table(repr(r)) and again.notes == one.notes
            assert again.nodes.equals(r.nodes) and again.summary == r.summary
            assert hl.diff(again, r).same_bits
            d = again.difference("mse", over="data.n")
            assert np.array_equal(d.values, r.difference("mse", over="data.n").values, equal_nan=True)
            again.save(tmp_path / "b", overwrite=True)
            assert hl.open(tmp_path / "b") == r and hl.open(tmp_path / "b").scenario == r.scenario
    assert hl.run(small) != r
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        there = list(pool.map(run_there, [(small, 1), (small, 2)]))
    assert [one["mse"][0] for one in there] == [hl.run(small, seed=seed)["mse"][0] for seed in (1, 2)]


def run_there(given: tuple[dict[str, Any], int]) -> hl.Result:
    return hl.run(given[0], seed=given[1])


def test_results_are_read_only_and_compared(small: dict[str, Any]) -> None:
    r, same, other = hl.run(small), hl.run(small), hl.run(small, seed=2)
    with pytest.raises(ValueError, match="read-only"):
        r["mse"][0] = 5
    with pytest.raises(ValueError, match="read-only"):
        r.dataset["mse"].values[0] = 5
    r["mse"].copy()[0] = 5
    assert r == same and r != other and r != 5
    with pytest.raises(KeyError, match="0: no such figure"):
        r[0]  # type: ignore[index]


def test_a_shard_is_not_opened_as_a_result(program: str, tmp_path: Path) -> None:
    run = [program, "run", QUICKSTART, "--replicates", "16", "--quiet", "--out", str(tmp_path)]
    for shard in ("1/2", "2/2"):
        subprocess.run([*run, "--shard", shard], check=True, capture_output=True)
    # In the words of the command line.
    for path, what in ((tmp_path / "shard_1_of_2.nc", "is shard 1 of 2"), (tmp_path, "has shards")):
        words = f"{path}: {what} of a study - join them with headlab merge {tmp_path} --out DIR"
        for refused in (lambda path=path: hl.open(path), lambda path=path: hl.diff(path, path)):
            with pytest.raises(hl.ScenarioError) as error:
                refused()
            assert str(error.value) == words
        command = subprocess.run([program, "diff", str(path), str(path)], capture_output=True, text=True)
        assert command.stderr.replace(program, "headlab") == f"headlab: {words}\n"
    subprocess.run(
        [program, "merge", str(tmp_path), "--out", str(tmp_path / "all")], check=True, capture_output=True
    )
    assert np.array_equal(hl.open(tmp_path / "all")["mse"], hl.run(QUICKSTART, replicates=16)["mse"])


def test_a_difference_is_paired(small: dict[str, Any]) -> None:
    r = hl.run(hl.sweep(small, {"heads.kernel.bandwidth": [1.5, 1.6]}), replicates=512)
    d = r.difference("head_covariance_mean", over="heads.kernel.bandwidth")
    assert d.paired[1] and d.against[1] == 0
    assert d.values[1] == pytest.approx(np.diff(r["head_covariance_mean"])[0], rel=1e-12)
    # One law of points and noise, so that errors cancel.
    assert d.mcse[1] < 0.5 * r["head_covariance_mean_mcse"].min()
    with pytest.raises(KeyError, match="head_variance_mean"):
        r.difference("head_bias", over="heads.kernel.bandwidth")


def test_resuming_has_the_bits_of_one_run(small: dict[str, Any], tmp_path: Path) -> None:
    hl.run(small, replicates=24, out=tmp_path)
    r = hl.run(small, replicates=64, out=tmp_path, resume=True)
    assert any("resumes from 24" in note for note in r.notes)
    assert hl.diff(r, hl.run(small)).same_bits


def test_until_and_compare(small: dict[str, Any]) -> None:
    r = hl.run(small, until={"mse": "5%"}, replicates=100000)
    assert r.summary["target_met"] and r["mse_mcse"][0] <= 0.05 * r["mse"][0]
    z = hl.run("scenarios/quickstart.toml", replicates=64, compare=True).summary
    assert all("z" in one["theory"] for one in z["conditions"])


def interrupt_soon(seconds: float = 0.3) -> None:
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()


def test_exact_controls_lower_the_errors() -> None:
    plain = hl.run(QUICKSTART, replicates=500)
    controlled = hl.run(QUICKSTART, {"run.controls": "exact"}, replicates=500)
    assert (controlled["mse_mcse"] < plain["mse_mcse"] / 10).all()
    assert (controlled["gain_mse"] > 100).all()
    assert (abs(controlled["mse"] - plain["mse"]) < 5 * plain["mse_mcse"]).all()


def test_ctrl_c_returns_what_is_done(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    interrupt_soon()
    with pytest.warns(hl.HeadlabWarning, match="interrupted: kept .* of .*; resume=True continues"):
        r = hl.run(QUICKSTART, replicates=10**8, out=tmp_path)
    assert capsys.readouterr().err == STOPPING
    assert not r.complete and r.interrupted
    assert 0 < r["replicates"][0] < 10**8
    assert hl.open(tmp_path)["replicates"][0] == r["replicates"][0]
    # What was kept is that many replicates of the whole run.
    assert hl.run(QUICKSTART, replicates=16).complete
    assert capsys.readouterr().err == ""


def test_a_second_ctrl_c_raises(tmp_path: Path) -> None:
    presses = 0

    def press(report: dict[str, Any]) -> None:
        nonlocal presses
        presses += 1
        signal.raise_signal(signal.SIGINT)

    # The first stops the engine, which is not waited for: each report is a press.
    with pytest.raises(KeyboardInterrupt):
        hl.run(QUICKSTART, replicates=10**8, progress=press)
    assert presses == 2
    # Nothing of it is left over.
    assert hl.run(QUICKSTART, replicates=16).complete


def test_a_time_limit_keeps_what_is_done() -> None:
    with pytest.warns(hl.HeadlabWarning, match="max_time reached"):
        r = hl.run(QUICKSTART, replicates=10**8, max_time=0.2)
    assert not r.complete and not r.interrupted and r["replicates"][0] > 0


def test_exceptions_of_callbacks_stop_the_run() -> None:
    reports = []

    def listen(report: dict[str, Any]) -> None:
        reports.append(report)
        raise ZeroDivisionError

    start = time.monotonic()
    with pytest.raises(ZeroDivisionError):
        hl.run(QUICKSTART, replicates=10**8, progress=listen)
    assert reports[0]["figure"] == "MSE" and time.monotonic() - start < 60


def test_results_so_far() -> None:
    counts = []
    for r in hl.iter_run(QUICKSTART, replicates=10**8, every=0.1):
        counts.append(int(r["replicates"][0]))
        if len(counts) == 2:
            break
    assert 0 < counts[0] < counts[1] < 10**8
    *_, last = hl.iter_run(QUICKSTART, replicates=64)
    assert last.complete and hl.diff(last, hl.run(QUICKSTART, replicates=64)).same_bits


def test_ctrl_c_ends_results_so_far_with_what_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    interrupt_soon()
    with pytest.warns(hl.HeadlabWarning, match="interrupted: kept"):
        *_, last = hl.iter_run(QUICKSTART, replicates=10**8, every=60)
    assert capsys.readouterr().err == STOPPING
    assert not last.complete and last.interrupted and last["replicates"][0] > 0


def test_runs_in_threads_and_behind_a_fork(small: dict[str, Any]) -> None:
    expected = hl.run(small)["mse"]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(hl.run(small)["mse"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(np.array_equal(one, expected) for one in found) and len(found) == 4
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(hl.run(small)["mse"], expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_full_disk_loses_no_result(small: dict[str, Any], tmp_path: Path) -> None:
    # Files may have as many bytes: more than what tries a folder, less than results.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (256, limits[1]))
    try:
        with pytest.raises(hl.RunError) as error:
            hl.run(small, out=tmp_path / "a")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert error.value.result["mse"].shape == (1,)


def test_import_is_light() -> None:
    code = "import sys, headlab; print([m for m in ('xarray', 'matplotlib', 'torch', 'pandas') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


NEXT_TO_OTHERS = """
import importlib, sys
for name in sys.argv[2:]: importlib.import_module(name)
import headlab as hl, numpy
for turn in range(2):
    file = sys.argv[1] + f"/{turn}/results.nc"
    r = hl.run("scenarios/quickstart.toml", replicates=16, out=sys.argv[1] + f"/{turn}")
    with sys.modules["netCDF4"].Dataset(file) as stored:
        assert stored["mse"][:].tolist() == r["mse"].tolist()
    with sys.modules["h5py"].File(file) as stored:
        assert stored["mse"][:].tolist() == r["mse"].tolist()
        assert stored["head_covariance"].shape == r["head_covariance"].shape
    assert numpy.array_equal(hl.open(sys.argv[1] + f"/{turn}")["mse"], r["mse"])
"""


@pytest.mark.parametrize("order", list(itertools.permutations(["netCDF4", "h5py", "headlab"])), ids="-".join)
def test_the_hdf5_of_other_packages_is_apart(order: tuple[str, ...], tmp_path: Path) -> None:
    for name in order:
        pytest.importorskip(name)
    done = subprocess.run(
        [sys.executable, "-c", NEXT_TO_OTHERS, str(tmp_path), *order], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "HDF5-DIAG" not in done.stderr


def test_docstrings() -> None:
    import headlab._dataset
    import headlab._estimates
    import headlab._run

    for module in (headlab._dataset, headlab._estimates, headlab._run):
        found = doctest.testmod(module)
        assert found.failed == 0 and found.attempted > 0


def test_simd_pins_the_target(small: dict[str, Any]) -> None:
    code = (
        "import sys, headlab as hl, json\n"
        "small = json.loads(sys.argv[1])\n"
        "r = hl.run(small, backend='cpu', simd='portable')\n"
        "print(r.summary['headlab']['simd'])\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, json.dumps(small)], capture_output=True, text=True, check=True
    )
    assert "AVX" not in ran.stdout
    with pytest.raises(hl.ScenarioError, match='^simd: "avx" is unknown'):
        hl.run(small, simd="avx")
    with pytest.raises(hl.ScenarioError, match="^simd: is of the backend cpu"):
        hl.run(small, backend="reference", simd="avx2")


def test_replicates_have_the_mean_of_the_run(small: dict[str, Any]) -> None:
    pytest.importorskip("pandas")
    r = hl.run(small)
    frame = r.replicates
    assert list(frame.columns) == ["condition", "replicate", "query", "estimate", "truth", "squared_error"]
    means = frame.groupby("query")["squared_error"].mean().to_numpy()
    # Up to the rounding of 64 additions.
    assert np.allclose(means, r["query_mse"][0], rtol=64 * 2.0**-52, atol=0)
    assert not np.allclose(frame.groupby("query")["estimate"].mean().to_numpy() ** 2, r["query_mse"][0])
    assert r.first_replicates(3, threads=1).equals(frame[frame["replicate"] < 3])
    with pytest.raises(hl.ScenarioError, match="count: is 0, needs at least 1"):
        r.first_replicates(0)


def test_along_a_key_is_what_the_program_says(small: dict[str, Any], tmp_path: Path) -> None:
    r = hl.run(hl.sweep(small, {"data.n": [20, 40, 80]}), replicates=256)
    seen = r.along("n")
    assert [p["x"] for p in seen.curves[0]["points"]] == [20, 40, 80]
    of_key, of_name = (r.difference("mse", over=over) for over in ("data.n", "n"))
    assert of_key.to == of_name.to and np.array_equal(of_key.values, of_name.values, equal_nan=True)
    assert [p["figure"]["value"] for p in seen.curves[0]["points"]] == list(r["mse"])
    assert seen.crossings == []
    assert seen.curves[0]["slope_low"] < seen.curves[0]["slope"]["value"] < seen.curves[0]["slope_high"]
    r.save(tmp_path / "out")
    assert hl.open(tmp_path / "out").along("n").summary == seen.summary
    with pytest.raises(hl.ScenarioError, match="over: unknown key"):
        r.along("bandwidth")


def test_measures_are_figures(small: dict[str, Any]) -> None:
    r = hl.run({**small, "measures": {"share": "covariance_term / mse"}})
    assert np.array_equal(r["share"], r["covariance_term"] / r["mse"])
    assert 0 < r["share_mcse"][0] != r["covariance_term_mcse"][0] / r["mse"][0]
    assert r.doc("share") == "covariance_term / mse"
    with pytest.raises(hl.ScenarioError, match="measures.share: figure"):
        hl.run({**small, "measures": {"share": "covariance / mse"}})

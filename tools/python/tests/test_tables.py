# SPDX-License-Identifier: Apache-2.0
"""Results as frames, as text and as HTML, and selected by their swept keys."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import headlab as hl
import numpy as np
import pytest

GRID = {"heads.kernel.bandwidth": [0.8, 1.5], "data.n": [20, 40]}


def test_frames_have_the_figures(small: dict[str, Any], tmp_path: Path) -> None:
    r = hl.run(hl.sweep(small, GRID), out=tmp_path / "o")
    frame = r.frame
    assert list(frame.columns[:2]) == ["bandwidth", "n"] and frame["n"].dtype == np.int64
    assert list(frame["n"]) == [20, 40, 20, 40]
    for name in ("mse", "mse_mcse", "index_chordal", "replicates"):
        assert np.array_equal(frame[name], r[name]), name
    # Without the run, from its file, they are the same.
    assert hl.open(tmp_path / "o").frame.equals(frame)

    long = r.frame_long
    assert list(long.columns) == [
        "condition", "bandwidth", "n", "figure", "value", "mcse", "lower", "upper",
    ]  # fmt: skip
    mse = long[long.figure == "mse"]
    assert np.array_equal(mse["value"], r["mse"]) and np.array_equal(mse["mcse"], r["mse_mcse"])
    assert (mse["lower"] < mse["value"]).all() and (mse["value"] < mse["upper"]).all()


def test_tables_are_those_of_the_program(program: str, small: dict[str, Any], tmp_path: Path) -> None:
    r = hl.run(hl.sweep(small, GRID), out=tmp_path / "o")

    def theirs(*arguments: str) -> str:
        return subprocess.run(
            [program, "table", str(tmp_path / "o"), *arguments], capture_output=True, check=True
        ).stdout.decode()

    assert r.table(format="csv") == theirs()
    assert r.table("mse", where={"n": 20}) == theirs("--format", "markdown", "--figures", "mse", "--where", "n=20")
    assert r.to_latex("mse", digits=1) == theirs("--format", "latex", "--figures", "mse", "--digits", "1")
    assert r.table("mse", rows="bandwidth", columns="n") == theirs(
        "--format", "markdown", "--figures", "mse", "--rows", "bandwidth", "--columns", "n"
    )
    assert r.table(of="pairs", format="csv") == theirs("--of", "pairs")
    assert r.table("mse", where={"n": 20}) != theirs("--format", "markdown", "--figures", "mse")
    for call, words in (
        (lambda: r.table("msee"), 'unknown figure "msee"'),
        (lambda: r.table("mse", format="html"), "format"),
        (lambda: r.table("mse", of="layers"), "layers"),
        (lambda: r.table("mse", rows="bandwidth"), "columns"),
        (lambda: r.table("mse", digits=0), "digits"),
        (lambda: r.table("mse", where={"n": 7}), "no row is left"),
    ):
        with pytest.raises(hl.ScenarioError, match=words):
            call()


def test_notebooks_show_tables(small: dict[str, Any]) -> None:
    r = hl.run(hl.sweep(small, {"data.n": list(range(20, 90))}), replicates=8)
    html = r._repr_html_()
    assert html.startswith("<table>") and "<th>mse</th>" in html
    assert html.count("<tr>") == 61 and "10 more rows" in html


def test_conditions_are_selected_by_their_keys(small: dict[str, Any]) -> None:
    r = hl.run(hl.sweep(small, GRID))
    data = r.dataset
    assert set(r.swept) == {"bandwidth", "data_n"}
    assert np.array_equal(data.mse.sel(bandwidth=1.5).values, r["mse"][2:])
    grid = data.mse.unstack("condition")
    assert dict(grid.sizes) == {"bandwidth": 2, "data_n": 2}
    assert float(grid.sel(bandwidth=0.8, data_n=40)) == r["mse"][1]
    one = hl.run(hl.sweep(small, {"data.n": [20, 40]}))
    assert float(one.dataset.mse.sel(data_n=40)) == one["mse"][1]


def test_nodes_are_one_dataset(small: dict[str, Any]) -> None:
    alike = hl.run(small).nodes
    mixed = hl.run(hl.sweep(small, {"heads.count": [1, 2]})).nodes
    assert type(alike) is type(mixed)
    second = mixed.isel(node=mixed.condition.values == 1)
    names = [str(name) for name in second.statistic.values]
    assert set(map(str, alike.statistic.values)) == set(names)
    for name in map(str, alike.statistic.values):
        mine = second["mean"].isel(statistic=names.index(name)).values
        theirs = alike["mean"].isel(statistic=[str(n) for n in alike.statistic.values].index(name)).values
        assert np.array_equal(mine, theirs), name
    first = mixed.isel(node=mixed.condition.values == 0)
    assert np.isnan(first["mean"].sel(statistic="estimate_1")).all()
    pair = (mixed.pair_first.values == 0) & (mixed.pair_second.values == 1)
    theirs_pair = (alike.pair_first.values == 0) & (alike.pair_second.values == 1)
    assert np.array_equal(second["comoment"].values[:, :, pair], alike["comoment"].values[:, :, theirs_pair])


def test_every_result_has_tables(small: dict[str, Any]) -> None:
    t = hl.theory("scenarios/quickstart.toml")
    assert np.array_equal(t.frame["mse"], t["mse"]) and "mse_remainder" in t.frame
    v = hl.validate("identity")
    assert list(v.frame["verdict"]) == [one.verdict for one in v] and "| identity |" in v.table()
    d = hl.hdi(np.linalg.qr(np.random.default_rng(0).normal(size=(3, 6, 2)))[0])
    assert np.array_equal(d.frame["index_chordal"], d.index("chordal"))
    a, b = hl.run(small), hl.run(small, seed=9)
    c = hl.diff(a, b)
    assert len(c.frame) == len(c.summary["differences"]) and "in_mcse" in c.frame
    assert "<table>" in c._repr_html_()

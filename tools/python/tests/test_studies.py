# SPDX-License-Identifier: Apache-2.0
"""Theory, verdicts, allocations, heads, data sets, replays, differences, reports, pictures."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
from pathlib import Path
from typing import Any

import headlab as hl
import matplotlib.pyplot
import numpy as np
import pytest
from headlab import _axes, _engine, plot

matplotlib.use("Agg")

QUICKSTART = "scenarios/quickstart.toml"
MODEL = "scenarios/data/small_model"


def document(program: str, *arguments: str) -> Any:
    """The JSON of a command."""
    done = subprocess.run([program, *arguments, "--json", "-"], capture_output=True, text=True)
    assert done.returncode in (0, 3), done.stderr
    return json.loads(done.stdout)


def without_times(value: Any) -> Any:
    """Without what depends on the build and the time."""
    if isinstance(value, dict):
        made = ("headlab", "seconds", "replay", "scenario", "sha256")
        return {k: without_times(v) for k, v in value.items() if k not in made}
    if isinstance(value, list):
        return [without_times(one) for one in value]
    return value


def test_theory_is_the_programs(program: str) -> None:
    t = hl.theory(QUICKSTART)
    assert without_times(t.summary) == without_times(document(program, "theory", QUICKSTART))
    assert t["mse"].tolist() == [one["mse"]["value"] for one in t.summary["conditions"]]
    assert "angles" in t.dataset.coords and "mse_remainder" in t
    assert repr(t).startswith("quickstart")
    with pytest.raises(hl.ScenarioError, match="source"):
        hl.theory(QUICKSTART, source="exakt")
    with pytest.raises(hl.ScenarioError):
        hl.theory("scenarios/digits.toml", source="first_order")


CONJECTURE: dict[str, Any] = {
    "scenario": {"name": "apart is better"},
    "data": {
        "n": 200,
        "design": {"law": "normal", "dim": 4},
        "regression": {"law": "zero"},
        "noise": {"law": "normal", "sd": 1.0},
    },
    "heads": {
        "count": 2,
        "dim": 2,
        "subspaces": {"law": "principal_angles", "angles": [0.0, 0.0]},
        "kernel": {"law": "gaussian", "bandwidth": 0.5},
    },
    "queries": {"law": "points", "points": [[0.0] * 4]},
    "run": {"seed": 7, "replicates": 8192},
    "sweep": {"heads.subspaces.angles": [[0.0, 0.0], [1.5, 1.5]]},
    "claim": {
        "compare": [
            {
                "name": "turned apart is better",
                "less": {"figure": "mse", "at": {"heads.subspaces.angles": [1.5, 1.5]}},
                "than": {"figure": "mse", "at": {"heads.subspaces.angles": [0.0, 0.0]}},
                "margin": {"relative": 0.01},
            }
        ]
    },
}


def test_verdicts() -> None:
    v = hl.validate(CONJECTURE)
    assert len(v) == 1 and v[0].verdict == "supported" and v.complete
    assert v[0].mcse is not None and v[0].details["claim"] == v[0].claim
    assert list(v.frame["verdict"]) == ["supported"]
    assert "turned apart is better" in repr(v)
    with pytest.raises(hl.ScenarioError, match="angles"):
        hl.validate("angels")
    with pytest.raises(hl.ScenarioError, match="^scenario: is missing"):
        hl.validate({"data": 1})
    with pytest.raises(hl.ScenarioError, match="one by one"):
        hl.validate(["angles"])  # type: ignore[arg-type]
    with pytest.raises(hl.ScenarioError, match="too few"):
        hl.validate("angles", replicates=8)


def test_allocations(program: str) -> None:
    arguments = {"rule": "fixed", "replicates": 1024, "seed": 3}
    a = hl.allocate("scenarios/digits.toml", 4, 100, **arguments)
    theirs = document(
        program, "allocate", "--data", "scenarios/digits.toml", "--budget", "4", "--n", "100",
        "--replicates", "1024", "--seed", "3",
    )  # fmt: skip
    assert without_times(a.summary) == without_times(theirs)
    assert a.advice["heads"] * a.advice["dim"] == 4
    assert set(a.frame["heads"]) == {1, 2, 4} and (a.frame["mse_mcse"] > 0).all()
    assert "± is one Monte Carlo standard error" in repr(a)
    for wrong in (0, [], 1.5, 2**30):
        with pytest.raises(hl.ScenarioError, match="budget"):
            hl.allocate("scenarios/digits.toml", wrong)  # type: ignore[arg-type]
    with pytest.raises(hl.ScenarioError, match="unknown"):
        hl.allocate("scenarios/digits.toml", 4, source="guess")


def test_growth_of_the_best_dimension(program: str, small: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "small.toml"
    hl.scenario(small).save(path)
    a = hl.allocate(path, [2, 3, 4], 20, growth=True, replicates=1024)
    theirs = document(
        program, "allocate", "--data", str(path), "--budget", "2,3,4", "--n", "20", "--growth",
        "--replicates", "1024",
    )  # fmt: skip
    assert without_times(a.summary) == without_times(theirs)
    assert [one["budget"] for one in a.growth] == [2, 3, 4]
    (heads,) = a.head_growth
    assert heads["n"] == 20 and len(heads["points"]) + len(heads["at_the_end"]) == 3
    assert "growth of the best H with D, n 20" in repr(a) and "again:" not in repr(a)
    for arguments, words in (
        ({"growth": True}, r"growth: needs four n or more, .* write n=\[100, 300, 1000, 3000\]"),
        ({"growth": True, "source": "theory"}, "growth: is about simulations"),
        ({"growth": True, "dims": [2]}, "dims: .* leave out growth"),
        ({"rule": ["fixed", "rate"]}, "rule fixed,rate: names several rules, which map=True compares"),
        ({"rule": "fixt"}, "fixt"),
        ({"rule": []}, "rule: is empty"),
        ({"out": tmp_path / "x"}, "out: is for map"),
        ({"overwrite": True}, "overwrite"),
        ({"n": [20, 20]}, "n: names 20 twice"),
    ):
        with pytest.raises(hl.ScenarioError, match=words):
            hl.allocate(path, 4, **arguments)  # type: ignore[arg-type]
    with pytest.raises(hl.ScenarioError, match="map the settings with map"):
        hl.allocate(hl.sweep(small, {"data.noise.sd": [1.0, 2.0]}), 4)


def test_a_map_of_growth(program: str, small: dict[str, Any], tmp_path: Path) -> None:
    s = hl.sweep(small, {"heads.kernel.bandwidth": [0.8, 1.5]})
    s.save(tmp_path / "s.toml")
    sizes = [5, 20, 80, 320]
    a = hl.allocate(s, [2, 4], sizes, map=True, replicates=1024, out=tmp_path / "a")
    theirs = document(
        program, "allocate", "--map", "--data", str(tmp_path / "s.toml"), "--budget", "2,4", "--n",
        "5,20,80,320", "--replicates", "1024",
    )  # fmt: skip
    assert without_times(a.summary) == without_times(theirs)
    assert without_times(json.loads((tmp_path / "a/map.json").read_text())) == without_times(theirs)
    assert list(a.frame["bandwidth"]) == [0.8, 0.8, 1.5, 1.5]
    assert list(a.frame["words"]) == [cell["words"] for cell in theirs["cells"]]
    data = a.dataset
    assert dict(data.sizes) == {"cell": 4, "n": 4} and list(data["n"]) == sizes
    for row, cell in enumerate(a.cells):
        for point in cell["points"]:
            at = float(data["best_dim"][row, sizes.index(point["n"])])
            assert at == point["best_dim"]["value"] == a.frame[f"dim@{int(point['n'])}"][row]
    assert "verdict" in repr(a) and a.complete and not a.studies
    with pytest.raises(hl.ScenarioError, match="a map advises nothing"):
        a.advice
    with pytest.raises(hl.ScenarioError, match="map.nc: is there already - write overwrite"):
        hl.allocate(s, [2, 4], sizes, map=True, replicates=1024, out=tmp_path / "a")
    with pytest.raises(hl.ScenarioError, match="map: needs four n or more"):
        hl.allocate(s, 4, sizes[:3], map=True)
    with pytest.raises(hl.ScenarioError, match="varies heads.count, which a map sets by itself"):
        hl.allocate(hl.sweep(small, {"heads.count": [1, 2]}), 4, sizes, map=True)
    with pytest.raises(hl.StoppedError, match="nothing was reached"):
        hl.allocate(s, [2, 4], sizes, map=True, max_time=0.001)


def test_heads_of_models(program: str, tmp_path: Path) -> None:
    h = hl.heads.from_safetensors(MODEL)
    h.save(tmp_path / "heads.nc")
    with pytest.raises(hl.ScenarioError, match="is there already"):
        h.save(tmp_path / "heads.nc")
    subprocess.run(
        [program, "import-heads", MODEL, "--out", str(tmp_path / "theirs.nc")],
        check=True, capture_output=True,
    )  # fmt: skip
    theirs = hl.heads.read(tmp_path / "theirs.nc")
    assert h.layers == theirs.layers == [0, 1, 2, 3]
    for layer in h.layers:
        assert np.array_equal(h[layer], theirs[layer])
        w_k = h.w_k(layer)
        assert w_k is not None and w_k.shape == h[layer].shape
    d = hl.hdi(h)
    theirs_json = document(program, "hdi", str(tmp_path / "theirs.nc"))
    assert without_times(d.summary["layers"]) == without_times(theirs_json["layers"])
    assert d.index("chordal", "z").shape == (4,) and d.cosines(1).shape == (8, 8, 8)
    # The same layer as an array.
    assert hl.hdi(h[2]).index()[0] == d.index()[2]
    for wrong in (np.zeros((2, 3)), np.zeros((2, 3, 4)), np.full((2, 4, 2), np.nan), np.zeros((0, 4, 2))):
        with pytest.raises(hl.ScenarioError, match="heads"):
            hl.hdi(wrong)
    # What compares weights does not say which heads could go.
    with pytest.raises(TypeError, match="threshold"):
        hl.hdi(h, threshold=0.9)  # type: ignore[call-arg]
    assert set(d.summary["alike"]) == {"pairs", "identical"}
    assert all(one["share_keys"] for one in d.summary["alike"]["identical"])
    with pytest.raises(hl.ScenarioError, match="layer"):
        h[9]
    with pytest.raises(KeyError, match='did you mean "chordal"'):
        d.index("cordal")
    with pytest.raises(KeyError, match="there are value, "):
        d.index("chordal", "sd")
    with pytest.raises(hl.ScenarioError):
        hl.heads.from_safetensors("scenarios/data")


def test_heads_of_a_model_in_a_scenario(small: dict[str, Any]) -> None:
    h = hl.heads.from_safetensors(MODEL, layer=1)
    s = hl.scenario(small)
    s["data.design"] = {"law": "normal", "dim": 64}
    s["data.regression"] = {"law": "zero"}
    s["heads.count"], s["heads.dim"] = 8, 8
    s["heads.subspaces"] = h[1]
    s["queries"] = {"law": "design", "count": 2}
    r = hl.run(s)
    assert r["index_chordal"][0] == pytest.approx(hl.hdi(h).index()[0], rel=1e-12)


def test_training_sets_are_those_of_the_run(program: str, tmp_path: Path) -> None:
    subprocess.run(
        [program, "dataset", QUICKSTART, "--replicates", "6", "--out", str(tmp_path), "--format", "npy",
         "--shards", "1", "--estimates", "--weights"],
        check=True, capture_output=True,
    )  # fmt: skip
    t = hl.dataset(QUICKSTART, 6, condition=3, estimates=True, weights=True)
    for name in t:
        stored = np.load(tmp_path / "condition_003/shard_000" / f"{name}.npy")
        assert np.array_equal(t[name], stored) and t[name].dtype == stored.dtype, name
    parts = list(t.batches(4))
    assert [len(part["X"]) for part in parts] == [4, 2]
    assert np.array_equal(np.concatenate([part["Y"] for part in parts]), t["Y"])
    again = hl.replay(QUICKSTART, 5, 3)
    assert np.array_equal(again["X"], t["X"][5].astype(float)) and np.array_equal(again["Y"], t["Y"][5])
    assert again.dataset.sizes["head"] == 2 and "ensemble" in repr(again)
    for size in (0, -1):
        with pytest.raises(hl.ScenarioError, match="batches: is given"):
            t.batches(size)
    # Names are known without the 2 TB of values.
    large = hl.dataset(QUICKSTART, 10**9, condition=0)
    assert list(large) == [n for n in t if n not in ("head_estimates", "attention_weights")]
    assert "X" in large and "Z" not in large and len(large) == len(list(large)) and large != t
    with pytest.raises(KeyError, match="Z: no such array"):
        t["Z"]
    assert "6 training sets of condition 3" in repr(t)
    with pytest.raises(hl.ScenarioError, match="condition"):
        hl.dataset(QUICKSTART, 6)
    with pytest.raises(hl.ScenarioError, match="replicates"):
        hl.dataset(QUICKSTART, 0, condition=0)
    with pytest.raises(hl.ScenarioError, match="replicates"):
        hl.dataset(QUICKSTART, 2**39, condition=0)["X"]
    with pytest.raises(hl.ScenarioError, match="replicate"):
        hl.replay(QUICKSTART, 10**9, 0)


def test_training_sets_for_pytorch() -> None:
    torch = pytest.importorskip("torch")
    t = hl.dataset(QUICKSTART, 10, condition=0)
    parts = list(torch.utils.data.DataLoader(t.torch(4), batch_size=None))
    assert [len(part["X"]) for part in parts] == [4, 4, 2]
    assert np.array_equal(torch.cat([part["X"] for part in parts]).numpy(), t["X"])
    # Two workers, which are forked, draw every other batch.
    shared = list(torch.utils.data.DataLoader(t.torch(4), batch_size=None, num_workers=2))
    assert len(shared) == 3
    for part, same in zip(shared, parts):
        assert all(torch.equal(part[name], same[name]) for name in same)


def test_differences_of_results(tmp_path: Path) -> None:
    a, b = (hl.run(QUICKSTART, {"heads.kernel.bandwidth": w}, replicates=64) for w in (0.4, 0.6))
    c = hl.diff(a, b)
    assert not c.same_bits and c.differ > 0 and len(c.frame) > 0 and "MCSE" in repr(c)
    assert repr(c).splitlines()[:2] == ["A  a", "B  b"]
    assert (c.summary["a"], c.summary["b"]) == ("a", "b")
    a.save(tmp_path)
    assert repr(hl.diff(tmp_path, b)).splitlines()[:2] == [f"A  {tmp_path}/results.nc", "B  b"]
    with pytest.raises(hl.ScenarioError, match="diff: is given int, needs results or their folders"):
        hl.diff(a, 5)  # type: ignore[arg-type]


def test_reports(tmp_path: Path) -> None:
    path = tmp_path / "r.html"
    r = hl.run(QUICKSTART, replicates=64)
    assert hl.report(path, r, hl.validate(CONJECTURE), hl.hdi(MODEL_HEADS())) == []
    page = path.read_text(encoding="utf-8")
    assert "turned apart is better" in page and "quickstart" in page
    with pytest.raises(hl.ScenarioError):
        hl.report(path)
    with pytest.raises(hl.ScenarioError, match="report: is given Result first, needs the file"):
        hl.report(r, path)  # type: ignore[arg-type]
    with pytest.raises(hl.ScenarioError, match="report: is given int"):
        hl.report(path, 3)  # type: ignore[arg-type]


def MODEL_HEADS() -> hl.Heads:
    return hl.heads.from_safetensors(MODEL)


def test_pictures_have_error_bars(small: dict[str, Any]) -> None:
    r = hl.run(hl.sweep(small, {"heads.kernel.bandwidth": [1.0, 1.5, 2.0]}), replicates=512)
    ax = r.plot.components()
    assert len(ax.containers) == 4 and all(c.has_yerr for c in ax.containers)
    assert ax.get_xlabel() == "bandwidth"
    assert ax.get_ylabel() == "mean squared error and its terms"
    data = ax.containers[0].lines[0].get_ydata()
    assert np.array_equal(data, r["mse"])
    frame = r.frame
    for name in _engine.labels():  # whatever the program lists
        assert r.plot.figure(name, over="heads.kernel.bandwidth").containers[0].has_yerr, name
        assert np.array_equal(frame[f"{name}_mcse"], r[f"{name}_mcse"]), name
    bars = r.plot.decomposition()
    assert any(getattr(c, "has_yerr", False) for c in bars.containers)
    assert len(r.plot.covariance(condition=1, query=1).texts) == 4
    # Numbers have the contrast of text, 4.5:1 by WCAG 2, on whatever shade they stand.
    for shade in np.linspace(0, 1, 101):
        colour = matplotlib.colormaps["RdBu_r"](shade)
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in colour[:3]]
        cell = float(np.dot([0.2126, 0.7152, 0.0722], linear))
        ink = 1.0 if _axes.number_colour(colour) == "white" else 0.0
        assert (max(ink, cell) + 0.05) / (min(ink, cell) + 0.05) >= 4.5
    aligned = hl.run(small, replicates=64).plot.covariance()
    shades = aligned.images[0]
    for text in aligned.texts:
        column, row = (int(place) for place in text.get_position())
        assert text.get_color() == _axes.number_colour(shades.cmap(shades.norm(shades.get_array()[row, column])))
    lines = r.plot.convergence()
    last = [line.get_ydata()[-1] for line in lines.lines]
    assert np.allclose(last, r["mse"], rtol=1e-10)
    assert len(lines.collections) == 3
    v = hl.validate(CONJECTURE)
    assert plot.verdicts(v).containers[0].has_xerr
    words = hl.run(QUICKSTART, replicates=16).plot.components()
    assert [tick.get_text() for tick in words.get_xticklabels()] == ["0", "0.3927", "0.7854", "1.1781", "1.5708"]
    shown = len(matplotlib.pyplot.get_fignums())
    with pytest.raises(hl.ScenarioError, match="not swept"):
        r.plot.components(over="data.n")
    with pytest.raises(hl.ScenarioError, match="covariance: condition 9, query 0"):
        r.plot.covariance(condition=9)
    assert len(matplotlib.pyplot.get_fignums()) == shown  # no empty figure
    aggregate = hl.run(small, {"run.moments": "aggregate"}, replicates=64)
    assert np.isclose(aggregate.plot.convergence().lines[0].get_ydata()[-1], aggregate["mse"][0])
    matplotlib.pyplot.close("all")


def test_one_condition_has_a_bar_for_each_term(small: dict[str, Any]) -> None:
    r = hl.run(small, replicates=64)
    ax = r.plot.components()
    assert [bar.get_height() for bar in ax.patches] == [r[figure][0] for figure in (
        "mse", "bias_squared", "variance_term", "covariance_term")]  # fmt: skip
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["MSE", "bias²", "variance", "covariance"]
    two = hl.run(hl.sweep(small, {"data.n": [10, 20]}), replicates=64).plot.components()
    assert len(two.patches) == 0  # the control
    matplotlib.pyplot.close("all")


def test_logarithmic_axes_have_round_ticks(small: dict[str, Any]) -> None:
    ax = hl.run(hl.sweep(small, {"data.n": [20, 80, 300]}), replicates=64).plot.figure("mse")
    ax.figure.draw_without_rendering()
    low, high = ax.get_xlim()
    shown = [tick.get_text() for tick in ax.get_xticklabels() if low <= tick.get_position()[0] <= high]
    assert shown == ["20", "50", "100", "200"]
    matplotlib.pyplot.close("all")


def test_pictures_are_those_of_a_report(small: dict[str, Any]) -> None:
    r = hl.run(hl.sweep(small, {"data.n": [10, 40, 160, 640]}), replicates=64)
    ax = r.plot.components()
    assert [c.lines[0].get_color() for c in ax.containers] == ["#000000", "#0072b2", "#e69f00", "#009e73"]
    assert ax.get_xscale() == "log"
    assert ax.get_xlabel() == "training points n"
    # Bars are two standard errors to either side.
    (segments,) = [c.lines[2][0].get_segments() for c in ax.containers][:1]
    assert np.allclose([s[1, 1] - s[0, 1] for s in segments], 4 * r["mse_mcse"], rtol=1e-9)
    # Positive numbers have a palette from light to dark, others one of two ends.
    assert [_axes.logarithmic_levels(x) for x in ([10, 20, 40, 80], [10, 20, 30, 40], [-1, 8])] == [True, False, False]
    assert [_axes.logarithmic_figure(x) for x in ([1, 21], [1, 19], [-1, 21], [math.nan, 1])] == [
        True, False, False, False,
    ]  # fmt: skip
    matplotlib.pyplot.close("all")


def test_pictures_of_reports_become_files(small: dict[str, Any], tmp_path: Path) -> None:
    pytest.importorskip("cairosvg")
    r = hl.run(hl.sweep(small, {"data.n": [10, 40, 160], "heads.count": [1, 2]}), replicates=64)
    assert plot.draw(r, tmp_path / "a.svg", "mse", x="n", group="count", width="84mm") == []
    svg = (tmp_path / "a.svg").read_text()
    assert 'width="84.00mm"' in svg and ">H 2<" in svg
    # A folder gives the bytes of the result.
    r.save(tmp_path / "o")
    plot.draw(tmp_path / "o", tmp_path / "b.svg", "mse", x="n", group="count", width="84mm")
    assert (tmp_path / "b.svg").read_text() == svg
    plot.draw(r, tmp_path / "a.pdf")
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF")
    plot.draw(r, tmp_path / "a.png", "decomposition", width="84mm", dpi=254)
    png = (tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG") and abs(int.from_bytes(png[16:20]) - 840) <= 1
    plot.draw(hl.validate(CONJECTURE), tmp_path / "v.svg", "verdicts")
    plot.draw(r, tmp_path / "n.svg", "mse", nested=["n"], where={"count": 2})
    assert ">training points n: 10, 40, 160<" in (tmp_path / "n.svg").read_text()
    with pytest.raises(hl.ScenarioError, match="where n=11: no row is left"):
        plot.draw(r, tmp_path / "n.svg", "mse", where={"n": 11})
    with pytest.raises(hl.ScenarioError, match="needs an ending of .svg, .pdf or .png"):
        plot.draw(r, tmp_path / "a.gif")
    for name in ("full.svg", "full.pdf"):
        (tmp_path / name).symlink_to("/dev/full")
        with pytest.raises(hl.RunError, match=f"{name}: cannot be written .No space left on device"):
            plot.draw(r, tmp_path / name)
    with pytest.raises(hl.ScenarioError, match="mze is unknown"):
        plot.draw(r, tmp_path / "c.svg", "mze")
    assert not (tmp_path / "c.svg").exists()


def words_of(ax: Any) -> list[str]:
    legend = ax.get_legend()
    return [text.get_text() for text in legend.get_texts()] if legend else []


def overlap(ax: Any) -> bool:
    """Whether any two labels below an axis lie over one another."""
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.get_xticklabels() if text.get_text()]
    return any(a.overlaps(b) for a, b in zip(boxes, boxes[1:]))


def test_pictures_of_many_conditions_can_be_read(small: dict[str, Any], subspaces: np.ndarray) -> None:
    keys = {"data.n": [10, 20, 30, 40, 60, 80, 100, 120], "heads.kernel.bandwidth": [1.0, 1.25, 1.5, 2.0]}
    r = hl.run(hl.sweep(small, keys), replicates=64)
    assert not overlap(r.plot.decomposition())
    many = hl.run(hl.sweep(small, {"data.n": list(range(10, 130))}), replicates=8)
    assert not overlap(many.plot.decomposition())
    lines = r.plot.components()
    assert lines.get_xlabel() == "training points n"
    assert lines.get_title() == "small" and len(lines.containers) == 4 * 4
    assert words_of(lines)[4:] == ["bandwidth", "1", "1.25", "1.5", "2"]
    heads = hl.run(hl.sweep(small, {"heads.count": [1, 2]})).plot.components()
    assert all(tick == round(tick) for tick in heads.get_xticks())
    one = r.plot.figure("mse", over="bandwidth")
    assert one.get_xlabel() == "bandwidth" and one.get_legend().get_title().get_text() == "data.n"
    with pytest.raises(hl.ScenarioError, match="over: bandwidth leaves 8 values of data.n .allowed: 6 lines"):
        r.plot.components(over="bandwidth")
    curves = r.plot.convergence()
    assert len({tuple(line.get_color()) for line in curves.lines}) == 32
    curves.figure.draw_without_rendering()
    box, axes = curves.get_legend().get_window_extent(), curves.get_window_extent()
    assert box.x0 >= axes.x1 and box.x1 <= curves.figure.bbox.x1
    # A legend that is thinned out says so.
    lots = hl.run(hl.sweep(small, {"data.n": list(range(10, 35))}), replicates=8).plot.convergence()
    assert len(words_of(lots)) == 14 and words_of(lots)[-1] == "12 of 25 not listed"
    zipped = hl.run(hl.sweep(small, {"data.n": [20, 40], "data.noise.sd": [1.0, 2.0]}, zip=True)).plot
    assert [t.get_text() for t in zipped.components().get_xticklabels()] == ["20, 1", "40, 2"]
    arrays = hl.run(hl.sweep(small, {"heads.subspaces": [subspaces, subspaces[:, ::-1].copy()]})).plot
    assert [t.get_text() for t in arrays.decomposition().get_xticklabels()] == [
        "heads.subspaces #0", "heads.subspaces #1",
    ]  # fmt: skip
    assert words_of(arrays.convergence()) == ["heads.subspaces #0", "heads.subspaces #1"]
    matplotlib.pyplot.close("all")


def test_pictures_in_given_axes_cover_no_data(small: dict[str, Any]) -> None:
    r = hl.run(hl.sweep(small | {"heads": small["heads"] | {"count": 4}}, {"data.n": [20, 40]}), replicates=64)
    for draw in (r.plot.components, r.plot.decomposition, r.plot.convergence):
        ax = draw(ax=matplotlib.pyplot.subplots(figsize=(4, 3))[1])
        top = ax.transData.transform((0, float((r["mse"] + 2 * r["mse_mcse"]).max())))[1]
        assert ax.get_legend().get_window_extent().y0 >= top
    ax = r.plot.covariance(1, ax=matplotlib.pyplot.subplots(figsize=(4, 3))[1])
    ax.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in ax.texts]
    assert len(boxes) == 16 and not any(a.overlaps(b) for i, a in enumerate(boxes) for b in boxes[:i])
    matplotlib.pyplot.close("all")


def test_values_have_the_digits_of_their_errors(small: dict[str, Any]) -> None:
    r = hl.run(hl.sweep(small, {"data.n": [20, 40]}), replicates=4096)
    ax = r.plot.covariance(1, 1)
    assert ax.get_title() == "small\ncondition 1, data.n 40, query 1"
    for text, value, error in zip(
        ax.texts, r["head_covariance"][1, 1].flat, r["head_covariance_mcse"][1, 1].flat, strict=True
    ):
        first, second = text.get_text().split("\n±")
        assert len(first.partition(".")[2]) == len(second.partition(".")[2])
        assert len(second.replace(".", "").lstrip("0")) == 2
        assert abs(float(first) - value) < 0.06 * error and abs(float(second) - error) < 0.06 * error
    assert _axes.both(0.0398765, 0.000996) == ("0.0399", "±0.0010")
    assert _axes.both(1234.5, 20.0) == ("1234", "±20") and _axes.both(0.5, 0.0) == ("0.5", "±0")
    assert _axes.both(-2.0, 0.1) == ("\N{MINUS SIGN}2.00", "±0.10")
    matplotlib.pyplot.close("all")


def test_what_cannot_be_drawn_is_said_in_a_line(small: dict[str, Any]) -> None:
    r = hl.run(small)
    one = hl.run(small, replicates=1)
    for draw, words in (
        (lambda: r.plot.figure("head_covariance"), "array of condition 1, query 2, head 2, head_2 2, needs one number"),
        (lambda: r.plot.figure("query_mse"), "query_mse is an array of condition 1, query 2"),
        (lambda: r.plot.figure("mze"), 'figure: mze: no such figure - did you mean "mse"'),
        (lambda: r.plot.figure("estimator"), "estimator is not a number"),
        (lambda: plot.verdicts(r), "verdicts: is given Result, needs what hl.validate gives"),
        (one.plot.components, "components: mse has no values - replicates: 1, too few"),
        (one.plot.decomposition, "decomposition: mse has no values"),
        (one.plot.convergence, "convergence: needs 8 replicates"),
        (one.plot.covariance, "covariance: there are none"),
    ):
        with pytest.raises(hl.ScenarioError, match=words):
            draw()  # type: ignore[no-untyped-call]
    assert not matplotlib.pyplot.get_fignums()
    assert r.plot.figure("replicates").lines[0].get_ydata().tolist() == [64]
    matplotlib.pyplot.close("all")


def test_verdicts_show_what_is_allowed() -> None:
    v = hl.validate(CONJECTURE)
    (allowed,) = (c for c in plot.verdicts(v).collections if type(c).__name__ == "FillBetweenPolyCollection")
    assert allowed.get_datalim(allowed.axes.transData).x0 == pytest.approx(-v[0].margin)
    assert allowed.axes.get_xlim()[1] == pytest.approx(allowed.get_datalim(allowed.axes.transData).x1)
    v._all += [dataclasses.replace(v[0], zone="two-sided", effect=0.0), dataclasses.replace(v[0], effect=-50.0)]
    ax = plot.verdicts(v)
    assert ax.get_xlim()[1] < 2 and [t.get_text() for t in ax.texts if t.get_text()][0].startswith("\N{MINUS SIGN}50.0")
    matplotlib.pyplot.close("all")


@pytest.mark.skipif("HEADLAB_NOTEBOOKS" not in os.environ, reason="HEADLAB_NOTEBOOKS is not set")
@pytest.mark.parametrize(
    ("name", "folder"),
    [*((name, "tools/python/examples") for name in ("conjecture", "checkpoint", "scaling_law")), ("checkpoint", ".")],
)
def test_notebooks_run(name: str, folder: str) -> None:
    nbclient = pytest.importorskip("nbclient")
    import nbformat

    book = nbformat.read(f"tools/python/examples/{name}.ipynb", as_version=4)
    nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": folder}}).execute()
    outputs = [out for cell in book.cells for out in cell.get("outputs", [])]
    assert any("image/png" in out.get("data", {}) for out in outputs)

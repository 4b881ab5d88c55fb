# SPDX-License-Identifier: Apache-2.0
"""Pictures of results with their error bars, by matplotlib, which is imported on use.

Every function but ``draw`` returns the Axes and takes one as ``ax``. Names, colours, error bars
of 2 Monte Carlo standard errors and the rule for logarithmic axes are those of reports; figures
without a standard error have no bars.
"""

from __future__ import annotations

import math
import os
import re
import tempfile
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from . import _engine
from ._arguments import assign
from ._arguments import path as path_text
from ._errors import ScenarioError, translated

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from numpy.typing import NDArray

# Colours of a report, which stay apart for colour-blind readers and in grey: the MSE is black, its
# terms follow.
_COLOURS = ("#000000", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")
_BAR_ERRORS = 2  # standard errors to either side
_STYLES: tuple[tuple[Any, str], ...] = (
    ("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"), ((0, (5, 1, 1, 1, 1, 1)), "v"), ((0, (1, 4)), "P"),
)  # fmt: skip
_TERMS = ("bias_squared", "variance_term", "covariance_term")
_MAX_WORD = 24  # letters of a label
_MAX_WORDS = 28  # labels below an axis
_MAX_ENTRIES = 20  # of a legend


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("needs matplotlib - pip install matplotlib") from None
    made: Axes = plt.subplots(layout="constrained")[1]
    return made


def _bars(errors: NDArray[Any] | None, order: Sequence[int]) -> NDArray[Any] | None:
    """Half lengths of error bars."""
    return None if errors is None else _BAR_ERRORS * errors[order]


def _spread(values: Iterable[float]) -> float:
    """Largest over smallest of positive numbers, 0 where one is not positive."""
    known = [float(one) for one in values if math.isfinite(one)]
    return max(known) / min(known) if known and min(known) > 0 else 0.0


def _logarithmic_levels(values: Iterable[float]) -> bool:
    """Whether levels span a factor of 8 and lie more evenly by their logarithms, as in a report."""
    known = sorted({float(one) for one in values})
    if len(known) < 2 or _spread(known) < 8:
        return False
    gaps = [b - a for a, b in zip(known, known[1:], strict=False)]
    steps = [math.log(b / a) for a, b in zip(known, known[1:], strict=False)]
    return max(steps) / min(steps) < max(gaps) / min(gaps)


def _logarithmic_figure(values: Iterable[float]) -> bool:
    return _spread(values) > 20


def _round_log_ticks(axis: Axis) -> None:
    """1, 2, 5, 10 and so on in place of powers of ten with factors, decades alone where there are many."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 1000 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}"))
    axis.set_minor_formatter(NullFormatter())


def _label(figure: str) -> str:
    return _engine.labels().get(figure, figure)


def _legend(ax: Axes, title: str = "", handles: Sequence[Any] | None = None) -> None:
    """Beside the axes, where the layout makes room for it."""
    figure: Any = ax.figure
    known = list(handles) if handles is not None else ax.get_legend_handles_labels()[0]
    if len(known) > _MAX_ENTRIES:
        from matplotlib.lines import Line2D

        step = -(-len(known) // _MAX_ENTRIES)
        some = [*known[: -1 : step], known[-1]]
        note = f"{len(known) - len(some)} of {len(known)} not listed"
        known = [*some, Line2D([], [], linestyle="none", label=note)]
    if figure.get_layout_engine() is None:
        ax.legend(handles=known, title=title or None, fontsize="small")
    else:
        ax.legend(
            handles=known, title=title or None, fontsize="small", frameon=False,
            loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0,
        )  # fmt: skip


def _words_below(ax: Axes, places: Sequence[float], words: list[str]) -> None:
    """Words at their places: turned where they are long or many, thinned out where there is no room."""
    step = -(-len(words) // _MAX_WORDS)
    at, shown = list(places)[::step], words[::step]
    if sum(len(word) + 2 for word in shown) <= 60:
        ax.set_xticks(at, shown)
    elif len(shown) <= 10:
        ax.set_xticks(at, shown, rotation=30, ha="right", rotation_mode="anchor", fontsize="small")
    else:
        ax.set_xticks(at, shown, rotation=90, fontsize="small")


def _written(value: Any) -> str:
    """A value of a swept key as a scenario has it; of an array of numbers what it is of."""
    text = str(value)
    if not text.startswith("{"):
        return text
    try:
        table = tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
    if table.get("law") != "file":
        return text
    return re.sub(r"-[0-9a-f]{12}$", "", str(table.get("path")).rpartition("/")[2].removesuffix(".npy"))


def _short_values(values: NDArray[Any]) -> list[str]:
    """Values of a swept key in few letters, those of a report, which tell them apart."""
    whole = values.tolist()
    known = list(dict.fromkeys(whole))
    words = _engine.level_labels([_written(one) for one in known], _MAX_WORD)
    named = dict(zip(known, words, strict=True))
    return [named[one] for one in whole]


def _both(value: float, error: float) -> tuple[str, str]:
    """A value and its error to the same digit, the error with two."""
    if not (error > 0 and math.isfinite(error)):
        return f"{value:.4g}", "±0" if error == 0 else ""
    digits = max(1 - math.floor(math.log10(float(f"{error:.1e}"))), 0)
    return f"{value:.{digits}f}", f"±{error:.{digits}f}"


@dataclass(frozen=True)
class _Along:
    """Where conditions stand: places on the axis, in one series or several."""

    name: str
    places: NDArray[Any]
    words: list[str] | None  # where places are not numbers
    series: list[tuple[str, list[int]]]
    series_name: str


class _Figures(Protocol):
    """What pictures need of a result."""

    @property
    def swept(self) -> Mapping[str, NDArray[Any]]: ...
    @property
    def attributes(self) -> Mapping[str, Any]: ...
    @property
    def nodes(self) -> Any: ...
    def dims(self, name: str) -> tuple[str, ...]: ...
    def __getitem__(self, name: str) -> NDArray[Any]: ...
    def __contains__(self, name: object) -> bool: ...


class Plots:
    """Pictures of one result: ``r.plot.components()``."""

    def __init__(self, result: _Figures) -> None:
        self._r = result

    def _keys(self) -> dict[str, str]:
        """Swept keys in the order of the sweep: coordinate, and how it is called on an axis."""
        swept = self._r.swept
        found: dict[str, str] = {}
        for key in str(self._r.attributes.get("swept", "")).split():
            last = key.rpartition(".")[2]
            if last in swept and last not in found:
                found[last] = last
            elif (name := key.replace(".", "_")) in swept:
                found[name] = key
        return found | {name: name for name in swept if name not in found}

    def _words(self, names: str) -> str:
        """Swept keys in words, as a report's axes have them."""
        swept = {name: key for key in str(self._r.attributes.get("swept", "")).split()
                 for name in (key, key.rpartition(".")[2])}  # fmt: skip
        return ", ".join(_engine.axis_title(swept.get(name, name)) for name in names.split(", "))

    def _title(self) -> str:
        return str(self._r.attributes.get("title", ""))

    def _count(self) -> int:
        return len(self._r["replicates"])

    def _condition(self, condition: int) -> str:
        swept, keys = self._r.swept, self._keys()
        words = {name: _short_values(swept[key])[condition] for key, name in keys.items()}
        return ", ".join(word if name in word else f"{name} {word}" for name, word in words.items())

    def _groups(self, names: list[str]) -> list[tuple[str, list[int]]]:
        """Conditions with the same values of some keys, in their order."""
        count = self._count()
        words = [_short_values(self._r.swept[name]) for name in names]
        found: dict[str, list[int]] = {}
        for i in range(count):
            found.setdefault(", ".join(word[i] for word in words), []).append(i)
        return list(found.items())

    def _along(self, over: str | None, max_series: int) -> _Along:
        import numpy as np

        swept, keys = self._r.swept, self._keys()
        count = self._count()
        everything = [("", list(range(count)))]
        if over is not None:
            fits = [n for n in keys if over in (n, keys[n]) or over.replace(".", "_") == n]
            fits += [n for n in keys if over.rpartition(".")[2] == n]
            if not fits:
                allowed = ", ".join(keys.values()) or "none, nothing is swept"
                raise ScenarioError(f"over: {over} is not swept (allowed: {allowed})")
            axis = fits[0]
        elif keys:
            numbers = [n for n in keys if swept[n].dtype.kind in "fi"]
            inner_first = list(reversed(numbers or list(keys)))
            few = [n for n in inner_first if len(self._groups([m for m in keys if m != n])) <= max_series]
            axis = (few or inner_first)[0]
        else:
            return _Along("condition", np.arange(count), [str(i) for i in range(count)], everything, "")
        others = [n for n in keys if n != axis]
        series = self._groups(others) if others else everything
        if len(series) == count > 1:  # keys that vary together
            series = everything
        elif len(series) > max_series:
            if over is not None:
                names = ", ".join(keys[n] for n in others)
                raise ScenarioError(
                    f"over: {over} leaves {len(series)} values of {names} (allowed: {max_series} lines)"
                )
            series = everything
        if others and series is everything and over is None:
            words = [", ".join(_short_values(swept[n])[i] for n in keys) for i in range(count)]
            return _Along(", ".join(keys.values()), np.arange(count), words, everything, "")
        others_named = ", ".join(keys[n] for n in others) if len(series) > 1 else ""
        if swept[axis].dtype.kind in "fi":
            return _Along(keys[axis], swept[axis], None, series, others_named)
        all_words = _short_values(swept[axis])
        words = list(dict.fromkeys(all_words))
        at = np.array([words.index(word) for word in all_words])
        return _Along(keys[axis], at, words, series, others_named)

    def _numbers(self, figure: str, what: str) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """A figure [condition] with its standard errors, where it has them."""
        import numpy as np

        try:
            values = self._r[figure]
        except KeyError as error:
            raise ScenarioError(f"{what}: {error.args[0]}") from None
        dims = self._r.dims(figure)
        if values.dtype.kind not in "fi":
            raise ScenarioError(f"{what}: {figure} is not a number")
        if dims[:1] != ("condition",) or values.size != len(values):
            axes = ", ".join(f"{name} {size}" for name, size in zip(dims, values.shape, strict=True))
            raise ScenarioError(f"{what}: {figure} is an array of {axes}, needs one number a condition")
        values = values.reshape(-1)
        if np.isnan(values).all():
            replicates = int(self._r["replicates"].max(initial=0))
            raise ScenarioError(f"{what}: {figure} has no values - replicates: {replicates}, too few")
        errors = self._r[figure + "_mcse"].reshape(-1) if figure + "_mcse" in self._r else None
        return values, errors

    def figure(self, figure: str, over: str | None = None, ax: Axes | None = None) -> Axes:
        """One figure of each condition, over a swept key; a line for each value of the others.

        Parameters
        ----------
        figure : str
            Name of a figure, as list(r) has them.
        over : str, optional
            The swept key along the axis, where there are several.
        ax : matplotlib Axes, optional
            Where to draw; new ones without it.

        Returns
        -------
        matplotlib Axes
            Error bars are two standard errors, in the unit of the figure.

        Raises
        ------
        ScenarioError
            Several swept keys and none chosen.
        """
        import numpy as np

        values, errors = self._numbers(figure, "figure")
        along = self._along(over, _MAX_ENTRIES)
        ax = _axes(ax)
        for (label, rows), colour in zip(along.series, _colours(len(along.series)), strict=True):
            order = [rows[i] for i in np.argsort(along.places[rows], kind="stable")]
            ax.errorbar(
                along.places[order], values[order], yerr=_bars(errors, order),
                label=label, color=colour, marker="o", markersize=4, capsize=3,
                linestyle="-" if along.words is None else "none",
            )  # fmt: skip
        self._name_axes(ax, along, _engine.figure_words(figure), values)
        if len(along.series) > 1:
            _legend(ax, along.series_name)
        return ax

    def _name_axes(self, ax: Axes, along: _Along, name: str, values: NDArray[Any]) -> None:
        if _logarithmic_figure(values):
            ax.set_yscale("log", nonpositive="clip")
            _round_log_ticks(ax.yaxis)
        if along.words is None and _logarithmic_levels(along.places):
            ax.set_xscale("log")
            _round_log_ticks(ax.xaxis)
        elif along.words is not None:
            _words_below(ax, range(len(along.words)), along.words)
        elif along.places.dtype.kind == "i":
            from matplotlib.ticker import MaxNLocator

            ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.set(xlabel=self._words(along.name), ylabel=name, title=self._title())

    def components(self, over: str | None = None, ax: Axes | None = None) -> Axes:
        """MSE with its terms, bias², variance and covariance, over a swept key.

        The values of other swept keys are told by line and marker.

        Parameters
        ----------
        over : str, optional
            The swept key along the axis, where there are several.
        ax : matplotlib Axes, optional
            Where to draw; new ones without it.

        Returns
        -------
        matplotlib Axes
            Squared units of the response.

        Raises
        ------
        ScenarioError
            Several swept keys and none chosen.
        """
        import numpy as np

        figures = ["mse", *_TERMS]
        known = [self._numbers(figure, "components") for figure in figures]
        along = self._along(over, len(_STYLES))
        ax = _axes(ax)
        if self._count() == 1:
            at = range(len(figures))
            heights = [float(values[0]) for values, _ in known]
            lengths = [0.0 if error is None else _BAR_ERRORS * float(error[0]) for _, error in known]
            ax.bar(at, heights, width=0.4, yerr=lengths, capsize=3, color=_COLOURS[: len(figures)], alpha=0.6)
            ax.set_xticks(at, [_label(figure) for figure in figures])
            ax.set(ylabel=f"{_engine.figure_words('mse')} and its terms", title=self._title())
            return ax
        several = len(along.series) > 1
        for (_, rows), (line, marker) in zip(along.series, _STYLES, strict=False):
            order = [rows[i] for i in np.argsort(along.places[rows], kind="stable")]
            for figure, (values, errors), colour in zip(figures, known, _COLOURS, strict=False):
                ax.errorbar(
                    along.places[order], values[order], yerr=_bars(errors, order),
                    label=_label(figure), color=colour, marker=marker, markersize=4, capsize=3,
                    linestyle=line if along.words is None else "none",
                )  # fmt: skip
        self._name_axes(ax, along, f"{_engine.figure_words('mse')} and its terms", known[0][0])
        if several:
            from matplotlib.lines import Line2D

            terms = [
                Line2D([], [], color=colour, label=_label(figure))
                for figure, colour in zip(figures, _COLOURS, strict=False)
            ]
            heading = Line2D([], [], linestyle="none", label=along.series_name)
            lines = [
                Line2D([], [], color="0.3", linestyle=line if along.words is None else "none",
                       marker=marker, markersize=4, label=label)
                for (label, _), (line, marker) in zip(along.series, _STYLES, strict=False)
            ]  # fmt: skip
            _legend(ax, handles=[*terms, heading, *lines])
        else:
            _legend(ax)
        return ax

    def decomposition(self, ax: Axes | None = None) -> Axes:
        """bias², variance and covariance stacked to the MSE, a bar for each condition.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; new ones without it.

        Returns
        -------
        matplotlib Axes
            Squared units of the response.

        Raises
        ------
        ScenarioError
            A result without these figures.
        """
        import numpy as np

        known = {figure: self._numbers(figure, "decomposition") for figure in ("mse", *_TERMS)}
        ax = _axes(ax)
        swept, keys = self._r.swept, self._keys()
        names, count = list(keys), self._count()
        groups = self._groups(names[:-1]) if len(names) > 1 else []
        if 1 < len(groups) < count and len(groups) <= 8:
            name, words = keys[names[-1]], _short_values(swept[names[-1]])
        else:
            groups = []
            name = ", ".join(keys.values()) or "condition"
            words = [", ".join(_short_values(swept[n])[i] for n in names) or str(i) for i in range(count)]
        group_of = {i: g for g, (_, rows) in enumerate(groups) for i in rows}
        at = np.array([i + 0.6 * group_of.get(i, 0) for i in range(count)])
        up, down = np.zeros(count), np.zeros(count)
        for term, colour in zip(_TERMS, _COLOURS[1:], strict=False):
            values = known[term][0]
            base = np.where(values < 0, down, up)
            ax.bar(at, values, bottom=base, label=_label(term), color=colour)
            up, down = up + np.maximum(values, 0), down + np.minimum(values, 0)
        ax.errorbar(
            at, known["mse"][0], yerr=_bars(known["mse"][1], range(count)), fmt="o", color="black",
            markersize=4, capsize=3, label=_label("mse"),
        )  # fmt: skip
        _words_below(ax, at.tolist(), words)
        ax.set(xlabel=self._words(name), ylabel=f"{_engine.figure_words('mse')} and its terms", title=self._title())
        if groups:
            above = ax.secondary_xaxis("top")
            centres = [float(at[rows].mean()) for _, rows in groups]
            turned: dict[str, Any] = {}
            if sum(len(label) + 2 for label, _ in groups) > 60:
                turned = {"rotation": 30, "ha": "left", "rotation_mode": "anchor"}
            above.set_xticks(centres, [label for label, _ in groups], fontsize="small", **turned)
            above.tick_params(length=0)
            above.set_xlabel(self._words(", ".join(keys[n] for n in names[:-1])))
        _legend(ax)
        return ax

    def covariance(self, condition: int = 0, query: int = 0, ax: Axes | None = None) -> Axes:
        """Covariances between heads at a query as a matrix, each with its MCSE to the same digit.

        Parameters
        ----------
        condition : int
            Number of the condition, from 0.
        query : int
            Number of the query, from 0.
        ax : matplotlib Axes, optional
            Where to draw; new ones without it.

        Returns
        -------
        matplotlib Axes
            Heads by heads, squared units of the response.

        Raises
        ------
        ScenarioError
            No such condition or query.
        """
        import numpy as np

        if "head_covariance" not in self._r:
            raise ScenarioError("covariance: there are none in these results")
        conditions, queries = self._r["head_covariance"].shape[:2]
        if not (-conditions <= condition < conditions and -queries <= query < queries):
            raise ScenarioError(
                f"covariance: condition {condition}, query {query} (there are {conditions} and {queries})"
            )
        condition, query = condition % conditions, query % queries
        values = self._r["head_covariance"][condition, query]
        errors = self._r["head_covariance_mcse"][condition, query]
        known = ~np.isnan(values).all(axis=0)
        values, errors = values[known][:, known], errors[known][:, known]
        if values.size == 0:
            raise ScenarioError("covariance: there are none, moments are aggregate or replicates too few")
        ax = _axes(ax)
        largest = float(np.abs(values).max())
        power = math.floor(math.log10(largest)) if largest > 0 else 0
        power = power if not -3 <= power <= 3 else 0
        values, errors, largest = values / 10.0**power, errors / 10.0**power, largest / 10.0**power
        positive = bool((values >= 0).all())
        image = ax.imshow(
            values, cmap="Blues" if positive else "RdBu_r", vmin=0 if positive else -largest, vmax=largest
        )
        ax.figure.colorbar(image, ax=ax, label="covariance" + (f" / $10^{{{power}}}$" if power else ""))
        if len(values) <= 8:
            for (i, j), value in np.ndenumerate(values):
                dark = abs(value) > 0.6 * largest
                ax.text(
                    j, i, "\n".join(_both(float(value), float(errors[i, j]))), ha="center", va="center",
                    fontsize=min(9.0, 44 / len(values)), color="white" if dark else "black",
                )  # fmt: skip
        where = [f"condition {condition}"] if conditions > 1 else []
        where += [self._condition(condition)] if self._r.swept else []
        ax.set(xlabel="head", ylabel="head")
        ax.set_title("\n".join(filter(None, [self._title(), ", ".join([*where, f"query {query}"])])))
        ax.set_xticks(range(len(values)))
        ax.set_yticks(range(len(values)))
        return ax

    def convergence(self, figure: str = "mse", ax: Axes | None = None) -> Axes:
        """MSE with its standard error by the number of replicates, from the nodes.

        Parameters
        ----------
        figure : str
            Name of a figure, as list(r) has them.
        ax : matplotlib Axes, optional
            Where to draw; new ones without it.

        Returns
        -------
        matplotlib Axes
            Estimates over replicates, in the unit of the figure.

        Raises
        ------
        ScenarioError
            A result without nodes.
        """
        import numpy as np

        if figure != "mse":
            raise ScenarioError("convergence: is known of mse")
        nodes = self._r.nodes
        if "pair" not in nodes.sizes or bool(nodes["mean"].isnull().any()):
            raise ScenarioError("convergence: needs conditions of one layout with moments of pairs")
        found = [_running_mse(self._r, nodes, i) for i in range(self._count())]
        if not any(len(counts) for counts, _ in found):
            raise ScenarioError("convergence: needs 8 replicates or more")
        ax = _axes(ax)
        for condition, ((counts, values), colour) in enumerate(zip(found, _colours(len(found)), strict=True)):
            if len(counts) == 0:
                continue
            error = _BAR_ERRORS * self._r["mse_mcse"][condition] * np.sqrt(counts[-1] / counts)
            ax.plot(counts, values, color=colour, label=self._condition(condition))
            ax.fill_between(
                counts, values - error, values + error, color=colour, alpha=0.2, linewidth=0
            )
        ax.set(xscale="log", xlabel="replicates", ylabel="MSE ± 2 MCSE", title=self._title())
        _round_log_ticks(ax.xaxis)
        if len(found) > 1:
            _legend(ax)
        return ax


def _colours(count: int) -> list[Any]:
    """Colours of curves: apart, or in the order of a scale where there are many."""
    if count <= len(_COLOURS):
        return list(_COLOURS[:count])
    import matplotlib

    return list(matplotlib.colormaps["viridis"]([0.92 * i / (count - 1) for i in range(count)]))


def _running_mse(r: _Figures, nodes: Any, condition: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """MSE of the first replicates, by the formulas of docs/results.md."""
    import numpy as np

    mine = nodes.isel(node=nodes.condition.values == condition)
    names = [str(name) for name in mine.statistic.values]
    mean, comoment, count = mine["mean"].values, mine["comoment"].values, mine["count"].values
    first, second = mine.pair_first.values, mine.pair_second.values
    truth = r["truth"][condition]
    weights = r["head_weights"][condition]
    weights = np.append(np.nan_to_num(weights), 1.0)  # the ensemble comes behind the heads
    heads = len(weights) - 1
    aggregate = "estimate_ensemble" in names
    use = first == (heads if aggregate else first)
    pair_weight = np.where(first == second, 1.0, 2.0) * weights[first] * weights[second] * use
    if aggregate:
        wanted = np.where([n == "estimate_ensemble" for n in names], 1.0, 0.0)
        noise = np.where([n == "noise_ensemble_ensemble" for n in names], 1.0, 0.0)
    else:
        wanted, noise = np.zeros(len(names)), np.zeros(len(names))
        for i, name in enumerate(names):
            part = name.split("_")
            if part[0] == "estimate":
                wanted[i] = weights[int(part[1])]
            elif part[0] == "noise":
                g, h = int(part[1]), int(part[2])
                noise[i] = weights[g] * weights[h] * (1.0 if g == h else 2.0)
    total, running, moments = 0, np.zeros(mean.shape[1:]), np.zeros(comoment.shape[1:])
    index = {f"estimate_{'ensemble' if aggregate and g == heads else g}": g for g in range(heads + 1)}
    place = {g: names.index(n) for n, g in index.items() if n in names}
    left = np.array([place.get(int(g), 0) for g in first])
    right = np.array([place.get(int(g), 0) for g in second])
    counts, values = [], []
    for m, c, k in zip(mean, comoment, count, strict=True):
        delta = m - running
        moments = moments + c + delta[:, left] * delta[:, right] * total * k / (total + k)
        running = running + delta * k / (total + k)
        total += int(k)
        if total < 8:
            continue
        spread = (moments / (total - 1)) @ pair_weight
        bias = running @ wanted - truth
        counts.append(total)
        values.append(float(np.mean(bias**2 - spread / total + spread + running @ noise)))
    return np.array(counts), np.array(values)


def verdicts(v: Iterable[Any], ax: Axes | None = None) -> Axes:
    """Effects of verdicts ± 2 standard errors, over the grey range in which a form still holds.

    An effect that is far larger than the margins is an arrow at the edge, with its value.

    Parameters
    ----------
    v : Verdicts
        What ``hl.validate`` gives.
    ax : matplotlib Axes, optional
        Where to draw; new ones without it.

    Returns
    -------
    matplotlib Axes
        Effects with 95 % intervals.

    Raises
    ------
    ScenarioError
        No verdict has an effect.
    """
    rows = list(v) if isinstance(v, Iterable) else [v]
    if not all(hasattr(one, "effect") for one in rows):
        raise ScenarioError(f"verdicts: is given {type(v).__name__}, needs what hl.validate gives")
    known = [one for one in rows if one.effect is not None and one.mcse is not None]
    if not known:
        raise ScenarioError("verdicts: none has an effect to draw")
    ax = _axes(ax)
    effects = [float(one.effect or 0) for one in known]
    widths = [_BAR_ERRORS * float(one.mcse or 0) for one in known]
    reach = [abs(effect) + width for effect, width in zip(effects, widths, strict=True)]
    margins = [one.margin for one in known]
    limit = 1.1 * max([*reach, *margins])
    if max(margins) > 0:
        limit = min(limit, max(8 * max(margins), 3 * sorted(reach)[(len(reach) - 1) // 2]))
    limit = limit or 1.0
    colours = {"supported": _COLOURS[3], "refuted": _COLOURS[4]}
    for place, (one, effect, width) in enumerate(zip(known, effects, widths, strict=True)):
        high = one.margin if one.zone == "two-sided" else limit
        ax.fill_betweenx([place - 0.35, place + 0.35], -one.margin, high, color="0.9", linewidth=0, zorder=0)
        for edge in (-one.margin, one.margin)[: 2 if one.zone == "two-sided" else 1]:
            ax.plot([edge, edge], [place - 0.35, place + 0.35], color="0.6", linewidth=1)
        colour = colours.get(one.verdict, "black")
        if abs(effect) < limit:
            ax.errorbar(effect, place, xerr=width, fmt="o", markersize=4, capsize=3, color=colour)
            continue
        side = math.copysign(1.0, effect)
        ax.annotate(
            "", (side * limit, place), (side * 0.86 * limit, place),
            arrowprops={"arrowstyle": "-|>", "color": colour},
        )  # fmt: skip
        ax.text(
            side * 0.84 * limit, place, " ".join(_both(effect, width / _BAR_ERRORS)), color=colour,
            ha="right" if side > 0 else "left", va="center", fontsize="small",
        )  # fmt: skip
    ax.axvline(0, color="0.7", linewidth=1, zorder=1)
    words = [f"{one.claim}\n{one.form}: {one.verdict}" for one in known]
    ax.set_yticks(range(len(known)), words, fontsize="small")
    ax.set(xlim=(-limit, limit), ylim=(max(len(known) - 0.5, 0.5), -0.5))
    ax.set_xlabel("effect ± 2 MCSE; grey: what the margin allows")
    return ax


def draw(
    result: Any, path: str | os.PathLike[str], figure: str = "", *, x: str | None = None,
    y: str | None = None, group: str | None = None, min_over: str | None = None,
    nested: Sequence[str] = (), where: Mapping[str, Any] | None = None,
    log: str | None = None, width: str = "170mm", dpi: int = 300,
) -> list[str]:  # fmt: skip
    """Write a picture of ``headlab plot`` as SVG, PDF or PNG, by the ending of ``path``.

    Parameters
    ----------
    result : Result, study or path
        What headlab gave, a folder of ``out``, a file of JSON or one of single replicates.
    path : path
        The file, replaced where it is there.
    figure : str
        A picture of the report by its name, or a figure of the results.
    x, y : str, optional
        Swept keys of the axes; with `y` a map.
    group : str, optional
        A swept key, a curve for each of its values.
    min_over : str, optional
        A swept key over which each point takes the least.
    nested : sequence of str
        Swept keys of a nested-loop plot, the first changing least.
    where : mapping, optional
        Conditions where keys have these values alone.
    log : str, optional
        Logarithmic axes, as "xy".
    width : str
        With its unit, as "84mm".
    dpi : int
        Of a PNG.

    Returns
    -------
    list of str
        A line for everything that could not be used.

    Raises
    ------
    ScenarioError
        Another ending; a key or figure that the result does not have.
    """
    target = path_text("path", path)
    kind = os.path.splitext(target)[1].lower()
    if kind not in (".svg", ".pdf", ".png"):
        raise ScenarioError(f"draw: {target} needs an ending of .svg, .pdf or .png")
    if kind != ".svg":
        try:
            import cairosvg
        except ImportError:
            raise ImportError("needs CairoSVG - pip install cairosvg") from None
    arguments = _engine.PlotArguments()
    with tempfile.TemporaryDirectory(prefix="headlab-") as folder:
        place = os.path.join(folder, "result.json")
        if hasattr(result, "save"):
            place = os.path.join(folder, "result")
            result.save(place)
        elif hasattr(result, "_text"):
            with open(place, "w", encoding="utf-8") as file:
                file.write(result._text)
        else:
            place = path_text("result", result)
        assign(
            arguments, result=place, figure=figure, x=x, y=y, group=group, min_over=min_over,
            nested=",".join(nested) or None, where=[f"{key}={value}" for key, value in (where or {}).items()],
            log=log, width=width,
        )  # fmt: skip
        with translated():
            svg, notes = _engine.plot(arguments)
    if kind == ".svg":
        with open(target, "w", encoding="utf-8") as file:
            file.write(svg)
    elif kind == ".pdf":
        cairosvg.svg2pdf(bytestring=svg.encode(), write_to=target)
    else:
        cairosvg.svg2png(bytestring=svg.encode(), write_to=target, dpi=dpi)
    return list(notes)

# SPDX-License-Identifier: Apache-2.0
"""Pictures of the conditions of one result."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from . import _axes, _engine
from ._errors import ScenarioError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_STYLES: tuple[tuple[Any, str], ...] = (
    ("-", "o"), ("--", "s"), (":", "^"), ("-.", "D"), ((0, (5, 1, 1, 1, 1, 1)), "v"), ((0, (1, 4)), "P"),
)  # fmt: skip
_TERMS = ("bias_squared", "variance_term", "covariance_term")


@dataclass(frozen=True)
class _Along:
    """Where conditions stand: places on the axis, in one series or several."""

    name: str
    places: NDArray[Any]
    words: list[str] | None  # where places are not numbers
    series: list[tuple[str, list[int]]]
    series_name: str


def _curve(
    ax: Axes, along: _Along, rows: list[int], values: NDArray[Any], errors: NDArray[Any] | None, line: Any = "-",
    **style: Any,
) -> None:  # fmt: skip
    """Numbers of one series with their error bars, in the order of their places."""
    order = [rows[i] for i in along.places[rows].argsort(kind="stable")]
    ax.errorbar(
        along.places[order], values[order], yerr=_axes.bars(errors, order), markersize=4, capsize=3,
        linestyle=line if along.words is None else "none", **style,
    )  # fmt: skip


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

    def _short(self, name: str) -> str:
        """A key as the name of its value: the symbol of its words where it counts, as "count" says not what."""
        symbol = self._words(name).rpartition(" ")[2]
        return symbol if name.rpartition(".")[2] == "count" and symbol != "count" else name

    def _condition(self, condition: int) -> str:
        swept, keys = self._r.swept, self._keys()
        words = {self._short(name): _axes.short_values(swept[key])[condition] for key, name in keys.items()}
        return ", ".join(word if name in word else f"{name} {word}" for name, word in words.items())

    def _groups(self, names: list[str]) -> list[tuple[str, list[int]]]:
        """Conditions with the same values of some keys, in their order."""
        count = self._count()
        words = [_axes.short_values(self._r.swept[name]) for name in names]
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
            words = [", ".join(_axes.short_values(swept[n])[i] for n in keys) for i in range(count)]
            return _Along(", ".join(keys.values()), np.arange(count), words, everything, "")
        others_named = ", ".join(keys[n] for n in others) if len(series) > 1 else ""
        if swept[axis].dtype.kind in "fi":
            return _Along(keys[axis], swept[axis], None, series, others_named)
        all_words = _axes.short_values(swept[axis])
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

        :returns matplotlib Axes: Error bars are two standard errors, in the unit of the figure.
        :raises ScenarioError: Several swept keys and none chosen.
        """
        values, errors = self._numbers(figure, "figure")
        along = self._along(over, _axes.MAX_ENTRIES)
        ax = _axes.given_or_new(ax)
        for (label, rows), colour in zip(along.series, _axes.colours(len(along.series)), strict=True):
            _curve(ax, along, rows, values, errors, label=label, color=colour, marker="o")
        self._name_axes(ax, along, _engine.figure_words(figure), values)
        if len(along.series) > 1:
            _axes.legend(ax, along.series_name)
        return ax

    def _name_axes(self, ax: Axes, along: _Along, name: str, values: NDArray[Any]) -> None:
        if _axes.logarithmic_figure(values):
            ax.set_yscale("log", nonpositive="clip")
            _axes.round_log_ticks(ax.yaxis)
        if along.words is None and _axes.logarithmic_levels(along.places):
            ax.set_xscale("log")
            _axes.round_log_ticks(ax.xaxis)
        elif along.words is not None:
            _axes.words_below(ax, range(len(along.words)), along.words)
        elif along.places.dtype.kind == "i":
            from matplotlib.ticker import MaxNLocator

            ax.xaxis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))
        ax.set(xlabel=self._words(along.name), ylabel=name, title=self._title())

    def components(self, over: str | None = None, ax: Axes | None = None) -> Axes:
        """MSE with its terms, bias², variance and covariance, over a swept key.

        The values of other swept keys are told by line and marker.

        :returns matplotlib Axes: Squared units of the response.
        :raises ScenarioError: Several swept keys and none chosen.
        """
        figures = ["mse", *_TERMS]
        known = [self._numbers(figure, "components") for figure in figures]
        along = self._along(over, len(_STYLES))
        ax = _axes.given_or_new(ax)
        if self._count() == 1:
            at = range(len(figures))
            heights = [float(values[0]) for values, _ in known]
            lengths = [0.0 if error is None else _axes.BAR_ERRORS * float(error[0]) for _, error in known]
            ax.bar(at, heights, width=0.4, yerr=lengths, capsize=3, color=_axes.COLOURS[: len(figures)], alpha=0.6)
            ax.set_xticks(at, [_axes.label(figure) for figure in figures])
            ax.set(ylabel=f"{_engine.figure_words('mse')} and its terms", title=self._title())
            return ax
        several = len(along.series) > 1
        for (_, rows), (line, marker) in zip(along.series, _STYLES, strict=False):
            for figure, (values, errors), colour in zip(figures, known, _axes.COLOURS, strict=False):
                _curve(ax, along, rows, values, errors, line, label=_axes.label(figure), color=colour, marker=marker)
        self._name_axes(ax, along, f"{_engine.figure_words('mse')} and its terms", known[0][0])
        if several:
            from matplotlib.lines import Line2D

            terms = [
                Line2D([], [], color=colour, label=_axes.label(figure))
                for figure, colour in zip(figures, _axes.COLOURS, strict=False)
            ]
            heading = Line2D([], [], linestyle="none", label=along.series_name)
            lines = [
                Line2D([], [], color="0.3", linestyle=line if along.words is None else "none",
                       marker=marker, markersize=4, label=label)
                for (label, _), (line, marker) in zip(along.series, _STYLES, strict=False)
            ]  # fmt: skip
            _axes.legend(ax, handles=[*terms, heading, *lines])
        else:
            _axes.legend(ax)
        return ax

    def decomposition(self, ax: Axes | None = None) -> Axes:
        """bias², variance and covariance stacked to the MSE, a bar for each condition.

        :returns matplotlib Axes: Squared units of the response.
        :raises ScenarioError: A result without these figures.
        """
        import numpy as np

        known = {figure: self._numbers(figure, "decomposition") for figure in ("mse", *_TERMS)}
        ax = _axes.given_or_new(ax)
        swept, keys = self._r.swept, self._keys()
        names, count = list(keys), self._count()
        groups = self._groups(names[:-1]) if len(names) > 1 else []
        if 1 < len(groups) < count and len(groups) <= 8:
            name, words = keys[names[-1]], _axes.short_values(swept[names[-1]])
        else:
            groups = []
            name = ", ".join(keys.values()) or "condition"
            words = [", ".join(_axes.short_values(swept[n])[i] for n in names) or str(i) for i in range(count)]
        group_of = {i: g for g, (_, rows) in enumerate(groups) for i in rows}
        at = np.array([i + 0.6 * group_of.get(i, 0) for i in range(count)])
        up, down = np.zeros(count), np.zeros(count)
        for term, colour in zip(_TERMS, _axes.COLOURS[1:], strict=False):
            values = known[term][0]
            base = np.where(values < 0, down, up)
            ax.bar(at, values, bottom=base, label=_axes.label(term), color=colour)
            up, down = up + np.maximum(values, 0), down + np.minimum(values, 0)
        ax.errorbar(
            at, known["mse"][0], yerr=_axes.bars(known["mse"][1], range(count)), fmt="o", color="black",
            markersize=4, capsize=3, label=_axes.label("mse"),
        )  # fmt: skip
        _axes.words_below(ax, at.tolist(), words)
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
        _axes.legend(ax)
        return ax

    def covariance(self, condition: int = 0, query: int = 0, ax: Axes | None = None) -> Axes:
        """Covariances between heads at a query as a matrix, each with its MCSE to the same digit.

        :param condition (int): Number of the condition, from 0.
        :param query (int): Number of the query, from 0.
        :returns matplotlib Axes: Heads by heads, squared units of the response.
        :raises ScenarioError: No such condition or query.
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
        ax = _axes.given_or_new(ax)
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
            words = {at: _axes.both(float(value), float(errors[at])) for at, value in np.ndenumerate(values)}
            longest = max(len(line) for both in words.values() for line in both)
            ax.apply_aspect()
            cell = 72 * ax.get_window_extent().width / ax.figure.dpi / len(values)  # in points
            for (i, j), both in words.items():
                ax.text(
                    j, i, "\n".join(both), ha="center", va="center", fontsize=min(9.0, 1.3 * cell / longest),
                    color=_axes.number_colour(image.cmap(image.norm(values[i, j]))),
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

        :returns matplotlib Axes: Estimates over replicates, in the unit of the figure.
        :raises ScenarioError: A result without nodes.
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
        ax = _axes.given_or_new(ax)
        for condition, ((counts, values), colour) in enumerate(zip(found, _axes.colours(len(found)), strict=True)):
            if len(counts) == 0:
                continue
            error = _axes.BAR_ERRORS * self._r["mse_mcse"][condition] * np.sqrt(counts[-1] / counts)
            ax.plot(counts, values, color=colour, label=self._condition(condition))
            ax.fill_between(
                counts, values - error, values + error, color=colour, alpha=0.2, linewidth=0
            )
        ax.set(xscale="log", xlabel="replicates", ylabel="MSE ± 2 MCSE", title=self._title())
        _axes.round_log_ticks(ax.xaxis)
        if len(found) > 1:
            _axes.legend(ax)
        return ax


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

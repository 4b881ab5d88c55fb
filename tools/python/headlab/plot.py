# SPDX-License-Identifier: Apache-2.0
"""Pictures of results with their error bars, by matplotlib, which is imported on use.

Every function returns the Axes and takes one as ``ax``. Error bars are one Monte Carlo standard
error, 95 % intervals for verdicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._errors import ScenarioError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from ._run import Result
    from ._studies import Verdicts

# Colours that stay apart for colour-blind readers and in grey.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_LABELS = {
    "mse": "MSE",
    "bias_squared": "bias²",
    "variance_term": "variance",
    "covariance_term": "covariance",
    "head_variance_mean": "V, mean over heads",
    "head_covariance_mean": "C, mean over pairs",
    "output_correlation": "correlation C/V",
}


def _axes(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("needs matplotlib - pip install matplotlib") from None
    made: Axes = plt.subplots(layout="constrained")[1]
    return made


def _label(figure: str) -> str:
    return _LABELS.get(figure, figure)


def _words_below(ax: Axes, words: list[str]) -> None:
    """Words at 0, 1, ..., turned where they are long."""
    if max(map(len, words)) > 8:
        ax.set_xticks(range(len(words)), words, rotation=30, ha="right", rotation_mode="anchor")
    else:
        ax.set_xticks(range(len(words)), words)


class Plots:
    """Pictures of one result: ``r.plot.components()``."""

    def __init__(self, result: Result) -> None:
        self._r = result

    def _along(self, over: str | None) -> tuple[NDArray[Any], str, list[str] | None]:
        """Places of the conditions, the name of the axis, and words where places are no numbers."""
        import numpy as np

        swept = self._r.swept
        count = len(self._r["replicates"])
        if over is None:
            over = next(iter(swept), None) if len(swept) == 1 else None
        if over is None:
            words = [", ".join(str(v[i]) for v in swept.values()) or "" for i in range(count)]
            return np.arange(count), ", ".join(swept) or "condition", words
        name = over if over in swept else over.rsplit(".", 1)[-1]
        if name not in swept:
            raise ScenarioError(f"over: {over} is not swept (allowed: {', '.join(swept)})")
        values = swept[name]
        if values.dtype.kind in "fi":
            return values, name, None
        return np.arange(count), name, [str(value) for value in values]

    def figure(self, figure: str, over: str | None = None, ax: Axes | None = None) -> Axes:
        """One figure of each condition, over a swept key."""
        return self._lines([figure], over, ax)

    def components(self, over: str | None = None, ax: Axes | None = None) -> Axes:
        """MSE with its terms, bias², variance and covariance, over a swept key."""
        return self._lines(
            ["mse", "bias_squared", "variance_term", "covariance_term"], over, ax
        )

    def _lines(self, figures: list[str], over: str | None, ax: Axes | None) -> Axes:
        import numpy as np

        places, name, words = self._along(over)
        known = [(self._r[figure], self._r[figure + "_mcse"]) for figure in figures]
        ax = _axes(ax)
        order = np.argsort(places, kind="stable")
        for figure, (values, errors), colour in zip(figures, known, _COLOURS, strict=False):
            ax.errorbar(
                places[order], values[order], yerr=errors[order],
                label=_label(figure), color=colour, marker="o", markersize=4, capsize=3,
                linestyle="-" if words is None else "none",
            )  # fmt: skip
        if words is not None:
            _words_below(ax, words)
        ax.set_xlabel(name)
        if len(figures) > 1:
            ax.legend(frameon=False)
        else:
            ax.set_ylabel(_label(figures[0]))
        return ax

    def decomposition(self, ax: Axes | None = None) -> Axes:
        """bias², variance and covariance stacked to the MSE, a bar for each condition."""
        import numpy as np

        ax = _axes(ax)
        _, name, _ = self._along(None)
        swept = self._r.swept
        count = len(self._r["replicates"])
        words = [", ".join(str(v[i]) for v in swept.values()) or str(i) for i in range(count)]
        up, down = np.zeros(count), np.zeros(count)
        terms = ("bias_squared", "variance_term", "covariance_term")
        for term, colour in zip(terms, _COLOURS[1:], strict=False):
            values = self._r[term]
            base = np.where(values < 0, down, up)
            ax.bar(np.arange(count), values, bottom=base, label=_label(term), color=colour)
            up, down = up + np.maximum(values, 0), down + np.minimum(values, 0)
        ax.errorbar(
            np.arange(count), self._r["mse"], yerr=self._r["mse_mcse"], fmt="o", color="black",
            markersize=4, capsize=3, label="MSE",
        )  # fmt: skip
        _words_below(ax, words)
        ax.set(xlabel=name, ylabel="MSE and its terms")
        ax.legend(frameon=False, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        return ax

    def covariance(self, condition: int = 0, query: int = 0, ax: Axes | None = None) -> Axes:
        """Covariances between heads at a query as a matrix, each with its MCSE."""
        import numpy as np

        conditions, queries = self._r["head_covariance"].shape[:2]
        if not (-conditions <= condition < conditions and -queries <= query < queries):
            raise ScenarioError(
                f"covariance: condition {condition}, query {query} (there are {conditions} and {queries})"
            )
        values = self._r["head_covariance"][condition, query]
        errors = self._r["head_covariance_mcse"][condition, query]
        known = ~np.isnan(values).all(axis=0)
        values, errors = values[known][:, known], errors[known][:, known]
        if values.size == 0:
            raise ScenarioError("covariance: there are none, moments are aggregate")
        ax = _axes(ax)
        largest = np.abs(values).max()
        image = ax.imshow(values, cmap="RdBu_r", vmin=-largest, vmax=largest)
        ax.figure.colorbar(image, ax=ax, label="covariance")
        if len(values) <= 8:
            for (i, j), value in np.ndenumerate(values):
                dark = abs(value) > 0.6 * largest
                ax.text(
                    j, i, f"{value:.2g}\n±{errors[i, j]:.1g}", ha="center", va="center",
                    fontsize="small", color="white" if dark else "black",
                )  # fmt: skip
        ax.set(xlabel="head", ylabel="head")
        ax.set_xticks(range(len(values)))
        ax.set_yticks(range(len(values)))
        return ax

    def convergence(self, figure: str = "mse", ax: Axes | None = None) -> Axes:
        """MSE with its standard error by the number of replicates, from the nodes."""
        import numpy as np

        if figure != "mse":
            raise ScenarioError("convergence: is known of mse")
        nodes = self._r.nodes
        if isinstance(nodes, dict) or "pair" not in nodes.sizes:
            raise ScenarioError("convergence: needs conditions of one layout with moments of pairs")
        ax = _axes(ax)
        for condition in range(len(self._r["replicates"])):
            counts, values = _running_mse(self._r, nodes, condition)
            if len(counts) == 0:
                continue
            colour = _COLOURS[condition % len(_COLOURS)]
            error = self._r["mse_mcse"][condition] * np.sqrt(counts[-1] / counts)
            ax.plot(counts, values, color=colour, label=self._words(condition))
            ax.fill_between(counts, values - error, values + error, color=colour, alpha=0.2)
        ax.set(xscale="log", xlabel="replicates", ylabel="MSE ± MCSE")
        if len(self._r["replicates"]) > 1:
            ax.legend(frameon=False)
        return ax

    def _words(self, condition: int) -> str:
        return ", ".join(f"{n} {v[condition]}" for n, v in self._r.swept.items())


def _running_mse(r: Result, nodes: Any, condition: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """MSE of the first replicates, by the formulas of docs/results-nc.md."""
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


def verdicts(v: Verdicts, ax: Axes | None = None) -> Axes:
    """Effects of verdicts with 95 % intervals, against the margins that still count as holding."""
    ax = _axes(ax)
    known = [one for one in v if one.effect is not None and one.mcse is not None]
    colours = {"supported": _COLOURS[2], "refuted": _COLOURS[1]}
    for place, one in enumerate(known):
        effect, mcse = float(one.effect or 0), float(one.mcse or 0)
        low = -one.margin
        high = one.margin if one.zone == "two-sided" else None
        ax.plot([low, low], [place - 0.35, place + 0.35], color="0.6", linewidth=1)
        if high is not None:
            ax.plot([high, high], [place - 0.35, place + 0.35], color="0.6", linewidth=1)
        ax.errorbar(
            effect, place, xerr=1.96 * mcse, fmt="o", markersize=4, capsize=3,
            color=colours.get(one.verdict, "black"),
        )  # fmt: skip
    ax.axvline(0, color="0.8", linewidth=1, zorder=0)
    words = [f"{one.claim}\n{one.form}: {one.verdict}" for one in known]
    ax.set_yticks(range(len(known)), words, fontsize="small")
    ax.set_ylim(max(len(known) - 0.5, 0.5), -0.5)
    ax.set_xlabel("effect, 95 % interval; grey: margin")
    return ax

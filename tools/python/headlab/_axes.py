# SPDX-License-Identifier: Apache-2.0
"""What pictures share with reports: colours, error bars, the rule for logarithmic axes, words along an axis."""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from . import _engine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from numpy.typing import NDArray

# Colours of a report, which stay apart for colour-blind readers and in grey: the MSE is black, its
# terms follow.
COLOURS = ("#000000", "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9")
BAR_ERRORS = 2  # standard errors to either side
_MAX_WORD = 24  # letters of a label
_MAX_WORDS = 28  # labels below an axis
MAX_ENTRIES = 20  # of a legend


def given_or_new(ax: Axes | None) -> Axes:
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError:
        raise ImportError("needs matplotlib - pip install matplotlib") from None
    made: Axes = plt.subplots(layout="constrained")[1]
    return made


def number_colour(colour: Sequence[float] | NDArray[Any]) -> str:
    """Black or white, whichever stands out more from a colour by WCAG 2, as in heat maps of reports."""
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in colour[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if (luminance + 0.05) ** 2 > 1.05 * 0.05 else "white"


def bars(errors: NDArray[Any] | None, order: Sequence[int]) -> NDArray[Any] | None:
    """Half lengths of error bars."""
    return None if errors is None else BAR_ERRORS * errors[order]


def _spread(values: Iterable[float]) -> float:
    """Largest over smallest of positive numbers, 0 where one is not positive."""
    known = [float(one) for one in values if math.isfinite(one)]
    return max(known) / min(known) if known and min(known) > 0 else 0.0


def logarithmic_levels(values: Iterable[float]) -> bool:
    """Whether levels span a factor of 8 and lie more evenly by their logarithms, as in a report."""
    known = sorted({float(one) for one in values})
    if len(known) < 2 or _spread(known) < 8:
        return False
    gaps = [b - a for a, b in zip(known, known[1:], strict=False)]
    steps = [math.log(b / a) for a, b in zip(known, known[1:], strict=False)]
    return max(steps) / min(steps) < max(gaps) / min(gaps)


def logarithmic_figure(values: Iterable[float]) -> bool:
    return _spread(values) > 20


def round_log_ticks(axis: Axis) -> None:
    """1, 2, 5, 10 and so on, decades alone where there are many; all as powers of ten where one has to be."""
    from matplotlib.ticker import FuncFormatter, LogFormatterSciNotation, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 1000 * low else (1.0,)))
    plain = low >= 1e-4 and high < 1e6
    powers = LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=(math.inf, math.inf))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.6g}") if plain else powers)
    axis.set_minor_formatter(NullFormatter())


def label(figure: str) -> str:
    return _engine.labels().get(figure, figure)


def _legend_above_data(ax: Axes, handles: Sequence[Any], title: str | None) -> None:
    """At the top of the axes, in as many columns as they hold, over room that has no data."""
    for columns in range(min(len(handles), 4), 0, -1):
        drawn = ax.legend(handles=handles, title=title, fontsize="small", loc="upper right", ncols=columns)
        box, axes = drawn.get_window_extent(), ax.get_window_extent()
        if box.width <= axes.width:
            break
    share = box.height / axes.height + 0.04
    if share > 0.6 or not ax.get_autoscaley_on():
        return
    scale = ax.yaxis.get_transform()
    low, high = (float(scale.transform(end)) for end in ax.get_ylim())
    top = float(scale.inverted().transform(high + (high - low) * share / (1 - share)))
    ax.update_datalim([(0.0, top)], updatex=False)
    ax.autoscale_view(scalex=False)


def legend(ax: Axes, title: str = "", handles: Sequence[Any] | None = None) -> None:
    """Beside the axes, where the layout makes room for it, else above the data."""
    figure: Any = ax.figure
    known = list(handles) if handles is not None else ax.get_legend_handles_labels()[0]
    if len(known) > MAX_ENTRIES:
        from matplotlib.lines import Line2D

        step = -(-len(known) // MAX_ENTRIES)
        some = [*known[: -1 : step], known[-1]]
        note = f"{len(known) - len(some)} of {len(known)} not listed"
        known = [*some, Line2D([], [], linestyle="none", label=note)]
    if figure.get_layout_engine() is None:
        _legend_above_data(ax, known, title or None)
    else:
        ax.legend(
            handles=known, title=title or None, fontsize="small", frameon=False,
            loc="upper left", bbox_to_anchor=(1.01, 1.0), borderaxespad=0.0,
        )  # fmt: skip


def words_below(ax: Axes, places: Sequence[float], words: list[str]) -> None:
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


def short_values(values: NDArray[Any]) -> list[str]:
    """Values of a swept key in few letters, those of a report, which tell them apart."""
    whole = values.tolist()
    known = list(dict.fromkeys(whole))
    words = _engine.level_labels([_written(one) for one in known], _MAX_WORD)
    named = dict(zip(known, words, strict=True))
    return [named[one] for one in whole]


def both(value: float, error: float) -> tuple[str, str]:
    """A value and its error to the same digit, the error with two."""
    if not (error > 0 and math.isfinite(error)):
        return _signed(f"{value:.4g}"), "±0" if error == 0 else ""
    digits = max(1 - math.floor(math.log10(float(f"{error:.1e}"))), 0)
    return _signed(f"{value:.{digits}f}"), f"±{error:.{digits}f}"


def _signed(text: str) -> str:
    """With the minus sign of the numbers along axes."""
    return text.replace("-", "\N{MINUS SIGN}")


def colours(count: int) -> list[Any]:
    """Colours of curves: apart, or in the order of a scale where there are many."""
    if count <= len(COLOURS):
        return list(COLOURS[:count])
    import matplotlib

    return list(matplotlib.colormaps["viridis"]([0.92 * i / (count - 1) for i in range(count)]))

# SPDX-License-Identifier: Apache-2.0
"""Pictures of results with their error bars, by matplotlib, which is imported on use.

Every function but ``draw`` returns the Axes and takes one as ``ax``. Names, colours, error bars
of 2 Monte Carlo standard errors and the rule for logarithmic axes are those of reports; figures
without a standard error have no bars.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from . import _axes, _engine
from ._arguments import assign
from ._arguments import path as path_text
from ._errors import ScenarioError, translated
from ._plots import Plots as Plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def verdicts(v: Iterable[Any], ax: Axes | None = None) -> Axes:
    """Effects of verdicts ± 2 standard errors, over the grey range in which a form still holds.

    An effect that is far larger than the margins is an arrow at the edge, with its value.

    :param v (Verdicts): What ``hl.validate`` gives.
    :returns matplotlib Axes: Effects with 95 % intervals.
    :raises ScenarioError: No verdict has an effect.
    """
    rows = list(v) if isinstance(v, Iterable) else [v]
    if not all(hasattr(one, "effect") for one in rows):
        raise ScenarioError(f"verdicts: is given {type(v).__name__}, needs what hl.validate gives")
    known = [one for one in rows if one.effect is not None and one.mcse is not None]
    if not known:
        raise ScenarioError("verdicts: none has an effect to draw")
    ax = _axes.given_or_new(ax)
    effects = [float(one.effect or 0) for one in known]
    widths = [_axes.BAR_ERRORS * float(one.mcse or 0) for one in known]
    reach = [abs(effect) + width for effect, width in zip(effects, widths, strict=True)]
    margins = [one.margin for one in known]
    limit = 1.1 * max([*reach, *margins])
    if max(margins) > 0:
        limit = min(limit, max(8 * max(margins), 3 * sorted(reach)[(len(reach) - 1) // 2]))
    limit = limit or 1.0
    colours = {"supported": _axes.COLOURS[3], "refuted": _axes.COLOURS[4]}
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
        words = " ".join(_axes.both(effect, width / _axes.BAR_ERRORS)).replace("±", "± ")
        ax.text(
            side * 0.84 * limit, place, words, color=colour,
            ha="right" if side > 0 else "left", va="center", fontsize="small",
        )  # fmt: skip
    ax.axvline(0, color="0.7", linewidth=1, zorder=1)
    names = [f"{one.claim}\n{one.form}: {one.verdict}" for one in known]
    ax.set_yticks(range(len(known)), names, fontsize="small")
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

    :param result (Result, study or path): What headlab gave, a folder of ``out``, a file of JSON or one of single replicates.
    :param path (path): The file, replaced where it is there.
    :param figure (str): A picture of the report by its name, or a figure of the results.
    :param x, y (str, optional): Swept keys of the axes; with `y` a map.
    :param group (str, optional): A swept key, a curve for each of its values.
    :param min_over (str, optional): A swept key over which each point takes the least.
    :param nested (sequence of str): Swept keys of a nested-loop plot, the first changing least.
    :param where (mapping, optional): Conditions where keys have these values alone.
    :param log (str, optional): Logarithmic axes, as "xy".
    :param width (str): With its unit, as "84mm".
    :param dpi (int): Of a PNG.
    :returns list of str: A line for everything that could not be used.
    :raises ScenarioError: Another ending; a key or figure that the result does not have.
    :raises RunError: The file cannot be written; one that was there stays.
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
    content = svg.encode()
    if kind == ".pdf":
        content = cairosvg.svg2pdf(bytestring=content)
    elif kind == ".png":
        content = cairosvg.svg2png(bytestring=content, dpi=dpi)
    with translated():
        _engine.write_file(target, content)
    return list(notes)

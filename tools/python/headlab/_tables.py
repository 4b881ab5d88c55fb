# SPDX-License-Identifier: Apache-2.0
"""Results as tables: frames of pandas, CSV, LaTeX, Markdown, and HTML in notebooks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from . import _engine
from ._arguments import flag, index
from ._arguments import text as text_of
from ._errors import ScenarioError, translated
from ._labelled import frame_of

if TYPE_CHECKING:
    import pandas

#: (a run in memory, a document, a file), of which one is given.
Given = tuple["_engine.RunOutcome | None", "str | None", "str | None"]
_MOST_ROWS = 60  # of a table in a notebook


def _names(key: str, given: str | Iterable[str]) -> list[str]:
    return [given] if isinstance(given, str) else [text_of(key, one) for one in given]


class Tabular:
    """Results with tables of the program, ``headlab table``."""

    _text: str  # the document of the command

    @contextmanager
    def _given(self) -> Iterator[Given]:
        yield None, self._text, None

    def _made(
        self,
        figures: Iterable[str],
        format: str,
        *,
        of: str = "",
        long: bool = False,
        rows: str | Iterable[str] = (),
        columns: str | None = None,
        where: Mapping[str, Any] | None = None,
        digits: int = 2,
        pm: bool = False,
    ) -> Any:
        digits = index("digits", digits)
        if not 1 <= digits <= 9:
            raise ScenarioError(f"digits: is {digits} (allowed: 1 to 9)")
        chosen = [(text_of("where", key), str(value)) for key, value in (where or {}).items()]
        with self._given() as (outcome, document, path), translated():
            return _engine.table(
                outcome, document, path, of=text_of("of", of), figures=_names("figures", figures),
                long=flag("long", long), rows=_names("rows", rows),
                columns=None if columns is None else text_of("columns", columns), where=chosen,
                format=text_of("format", format), digits=digits, pm=flag("pm", pm),
            )  # fmt: skip

    @property
    def frame(self) -> pandas.DataFrame:
        """One row a condition (layer, verdict, candidate, difference): swept keys, then figures.

        A standard error stands behind its figure, ``mse_mcse``. Needs pandas.
        """
        return frame_of(self._made(["all"], "columns"))

    @property
    def frame_long(self) -> pandas.DataFrame:
        """One row a figure: condition, keys, figure, value, mcse, lower, upper of 95 %."""
        return frame_of(self._made((), "columns", long=True))

    def table(self, *figures: str, format: Literal["markdown", "latex", "csv"] = "markdown", **options: Any) -> str:
        """The text that ``headlab table`` writes: "csv", "latex" or "markdown" (docs/tables.md).

        `figures` by their names, or "all"; without any those that ``print`` shows. Options:
        of="heads", "queries", "pairs" or "growth"; long=True; rows="d", columns="n" of a two-way table;
        where={"bandwidth": 0.4}; digits=2 of a standard error; pm=True for ± in LaTeX.

        :param *figures (str): Names of figures, or "all".
        :param format ("markdown", "latex" or "csv"): What the text is.
        :param **options (by name): As above.
        :returns str: Numbers in the units of the figures.
        :raises ScenarioError: An unknown figure or option.
        """
        if format in ("columns", "cells"):  # of this class alone
            raise ScenarioError(f"format: is {format} (allowed: csv, latex, markdown)")
        return str(self._made(figures, format, **options))

    def to_latex(self, *figures: str, **options: Any) -> str:
        """A tabular with the rules of booktabs and the S columns of siunitx.

        :param *figures (str): As in ``table``.
        :param **options (by name): As in ``table``.
        :returns str: LaTeX.
        :raises ScenarioError: An unknown figure or option.
        """
        return self.table(*figures, format="latex", **options)

    def _repr_html_(self) -> str:
        names, *rows = self._made((), "cells")
        shown = rows if len(rows) <= _MOST_ROWS else rows[:_MOST_ROWS]
        lines = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in shown]
        head = "".join(f"<th>{escape(name)}</th>" for name in names)
        body = "".join(f"<tr>{line}</tr>" for line in lines)
        left = f"<p>{len(rows) - len(shown)} more rows: frame has all</p>" if shown != rows else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{left}"


class Document(Tabular):
    """What a command finds: ``summary`` is its document of ``--json``, ``print`` shows its table."""

    def __init__(self, text: str, table: str, complete: bool = True) -> None:
        self.summary: dict[str, Any] = json.loads(text)
        #: False where time was up or Ctrl-C came before all was reached.
        self.complete = complete
        self._text = text
        self._table = table

    def __repr__(self) -> str:
        return self._table

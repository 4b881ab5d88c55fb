# SPDX-License-Identifier: Apache-2.0
"""What the heads of a trained model do on text: hl.heads.measure."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from . import _engine as engine
from ._activations import Activations, from_attention, open_activations, users_names
from ._arguments import flag, index, share, text, whole
from ._arguments import path as path_text
from ._arguments import seed as seed_of
from ._capture import Capture, run
from ._carried import bytes_of, file_of
from ._documented import documented_like
from ._errors import ScenarioError, translated
from ._jobs import Progress, wait
from ._labelled import Labelled, frame_of, suggestion
from ._prune import LowRank, Plan, low_rank, prune

if TYPE_CHECKING:
    import pandas

#: Where noise enters, and what costs a removal.
Noise = Literal["values", "shared", "input", "cache"]
Cost = Literal["refit", "spread", "second_order", "sensitivity", "random"]
_NOISE = ("shared", "values", "input", "cache")


class Measured(Labelled):
    """Figures of heads, pairs and layers with standard errors over documents.

    ``m["spread"]`` [layer, head] and ``m["spread_se"]``; frames are ``m.heads``, ``m.pairs`` and
    ``m.layers``; ``m.words`` is what may be said of them.
    """

    def __init__(self, group: Mapping[str, Any], given: engine.MeasuredHeads | None = None) -> None:
        super().__init__(group)
        self._engine = given
        self._source: Activations | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        if self._engine is None:
            return Measured, (self._group(),)
        return _measured_of_bytes, (bytes_of(self.save), self._source)

    def _frame(self, axes: tuple[str, ...]) -> pandas.DataFrame:
        import numpy as np

        names = [n for n in self if self.dims(n) == axes and not n.startswith("identity_") and n != "layer"]
        shape = self[names[0]].shape if names else (0,) * len(axes)
        rows = []
        for at in np.ndindex(*shape):
            values = {name: self[name][at] for name in names}
            if all(np.isnan(value) for value in values.values() if isinstance(value, float)) and axes[1:]:
                continue  # a layer with fewer heads
            rows.append({"layer": int(self["layer"][at[0]]), **dict(zip(axes[1:], at[1:], strict=True)), **values})
        return frame_of(rows)

    @property
    def heads(self) -> pandas.DataFrame:
        """A row a head (needs pandas)."""
        return self._frame(("layer", "head"))

    @property
    def pairs(self) -> pandas.DataFrame:
        """A row a pair of heads, in either order (needs pandas)."""
        frame = self._frame(("layer", "head", "head_2"))
        return frame[frame["head"] != frame["head_2"]].reset_index(drop=True)

    @property
    def layers(self) -> pandas.DataFrame:
        """A row a layer (needs pandas)."""
        return self._frame(("layer",))

    @property
    def identity(self) -> dict[int, dict[str, float]]:
        """Distances of each layer to what the model gave; NaN where it gave nothing."""
        names = [name for name in self if name.startswith("identity_")]
        return {
            int(number): {name.removeprefix("identity_"): float(self[name][i]) for name in names}
            for i, number in enumerate(self["layer"])
        }

    @property
    def words(self) -> list[str]:
        """What may be said of the heads, a sentence each."""
        return str(self.attributes["words"]).splitlines()

    def noise(self, kind: Noise = "values") -> pandas.DataFrame:
        """Noise in the values given the weights, a row a layer: "values", "shared", "input", "cache".

        :param kind ("values", "shared", "input" or "cache"): Where the noise enters.
        :returns pandas.DataFrame: A row a layer, with standard errors over documents.
        :raises ScenarioError: An array that the kind needs is missing.
        """
        if text("kind", kind) not in _NOISE:
            raise ScenarioError(f"kind: {kind!r} is not a kind of noise{suggestion(kind, _NOISE)}")
        start = f"noise_{kind}_"
        if f"{start}variance" not in self:
            raise ScenarioError(f"kind: noise of kind {kind!r} needs {'W_V' if kind == 'input' else 'q, k and v'}")
        return self._layers_from(start, "measure()")

    def contexts(self) -> pandas.DataFrame:
        """The error of a target across contexts in five terms.

        :returns pandas.DataFrame: A row a layer: terms and standard errors over documents.
        :raises ScenarioError: What was measured has no target.
        """
        return self._layers_from("contexts_", "measure(..., target=...)")

    def leave_one_out(self) -> pandas.DataFrame:
        """Heads as predictors of what follows a token, its own key left out.

        :returns pandas.DataFrame: A row a layer: errors of the mean of heads, of single heads and of weights.
        :raises ScenarioError: What was measured has none of these figures.
        """
        return self._layers_from("loo_", "measure(..., leave_one_out=True)")

    def _layers_from(self, start: str, made_by: str) -> pandas.DataFrame:
        if not any(name.startswith(start) for name in self):
            raise ScenarioError(f"measured: has none of these figures - {made_by} finds them")
        frame = self.layers
        names = [name for name in frame.columns if name.startswith(start)]
        return frame[["layer", *names]].rename(columns=lambda name: name.removeprefix(start))

    def prune(
        self, remove: float | int | list[tuple[int, int]] = 0.25, by: Cost = "refit", *, refit: bool = True,
        shrink: bool = False, layers: list[int] | None = None, seed: int = 0, threads: int | None = None,
    ) -> Plan:  # fmt: skip
        """A plan to remove heads: a share, a number or (layer, head) by name.

        `by`: each step takes the head that adds least to the error after refits over the stream
        ("refit"), without ("spread"), or to the predicted loss ("second_order"); "sensitivity",
        "random". `refit`: the output maps of the others are fitted again.

        :param remove (float, int or list of (layer, head)): A share of the heads, a number of them, or which.
        :param by ("refit", "spread", "second_order", "sensitivity" or "random"): The cost that each step keeps least.
        :param refit (bool): Adjust the output maps of the heads that stay.
        :param shrink (bool): Take as many heads from each layer and each of its groups, so that ``plan.write`` can cut
            them out of the tensors.
        :param seed (int): Of random orders.
        :returns Plan: Steps with predicted costs, in shares of the output and in nats.
        :raises ScenarioError: Too few tokens or documents, gradients that are missing, or with `shrink` a number of
            heads that does not come evenly from all.
        """
        return prune(self, self._source, remove, by, refit, shrink, layers, seed, threads)

    def low_rank(self, rank: int, *, layers: list[int] | None = None, threads: int | None = None) -> LowRank:
        """The output map of each head at a lower rank, with the least error on the values of the text.

        :param rank (int): Of each map, from 1 to the width of a value.
        :returns LowRank: A plan: `applied()`, `evaluate(loss)`, `write(checkpoint, out)`.
        :raises ScenarioError: A rank out of range; figures that were read from a file.
        """
        return low_rank(self, self._source, rank, layers, threads)

    @property
    def summary(self) -> dict[str, Any]:
        """The document of ``headlab heads --json``, of what was measured in this process."""
        if self._engine is None:
            raise ScenarioError("summary: figures of a file have none")
        return dict(json.loads(self._engine.json()))

    @documented_like(Activations.save)
    def save(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Writes NetCDF (.nc), which ``hl.heads.open_measured`` reads back."""
        if self._engine is None:
            raise ScenarioError("path: these figures are those of a file already")
        with translated():
            self._engine.save(path_text("path", path), flag("overwrite", overwrite))

    def table(self, *, noise: Noise = "values", top: int = 5) -> str:
        """The text of ``headlab heads``.

        :param noise ("values", "shared", "input" or "cache"): Where the noise enters.
        :param top (int): Pairs of heads to name.
        :returns str: The table of ``headlab heads``.
        :raises ScenarioError: An unknown kind.
        """
        if self._engine is None:
            return "\n".join(self.words)
        with translated():
            return str(self._engine.text(text("noise", noise), index("top", top)))

    def __repr__(self) -> str:
        return self.table()


def _measured_of_bytes(content: bytes, source: Activations | None) -> Measured:
    """Figures that were pickled, with the activations that plans need."""
    with file_of(content) as path, translated():
        found = Measured(engine.open_results(path))
    found._source = source
    return found


def measure(
    source: Activations | Capture | Mapping[Any, Any] | str | os.PathLike[str] | Any,
    batches: Iterable[Any] | None = None,
    *,
    labels: str | None = "data",
    document: Any = None,
    layer: int | None = None,
    queries: int | None = None,
    seed: int = 0,
    target: str | None = None,
    strata: str = "token",
    leave_one_out: bool = False,
    little: float = 0.01,
    written: float = 0.003,
    exchangeable: float = 0.1,
    float64: bool = False,
    threads: int | None = None,
    progress: Progress = False,
) -> Measured:
    """What each head does to the output of its layer, as ``headlab heads`` (docs/heads-on-text.md).

    `source`: what `from_attention` gives or takes, a capture, a file, or a model of transformers with
    `batches` of token ids, or dicts of them: `labels` of the losses are the next tokens ("data"), drawn
    by `seed` from the model ("model", best for second_order) or none (None), and `document` numbers the
    document of each sequence. `queries` of each sequence are drawn
    by `seed` for the figures of weights, and are the only tokens where neither z nor gradients are
    given; all without it. `float64` computes weights in float64.

    :param source (Activations, Capture, dict, path or model): What is measured; a model goes with `batches`.
    :param batches (iterable, optional): Inputs of the model, with labels.
    :param labels ("data", "model" or None): Which loss the gradients are of.
    :param queries (int, optional): Queries of each sequence whose weights are compared; all without it.
    :param seed (int): Of the draw of queries.
    :param target ("output", "next_token" or "array", optional): Adds the terms across contexts.
    :param strata ("token" or "none"): What is fixed across contexts.
    :param leave_one_out (bool): Heads as predictors of what follows.
    :param little, written, exchangeable (float): The shares that words stand for.
    :param float64 (bool): Compute weights in float64.
    :returns Measured: Figures with standard errors over documents; losses in nats.
    :raises ScenarioError: Arrays that are not what the model attends with, or that do not fit.
    """
    if hasattr(source, "named_modules"):
        if batches is None:
            raise ScenarioError("batches: are needed with a model")
        wanted = None if layer is None else [index("layer", layer)]
        source = run(source, batches, layers=wanted, labels=labels, seed=index("seed", seed)).activations(document)
    elif batches is not None or document is not None:
        raise ScenarioError("batches: and documents are those of a model, source is none")
    if isinstance(source, Mapping):
        by_layer = all(isinstance(one, Mapping) for one in source.values())
        source = from_attention(source) if by_layer else from_attention(**source)
    elif isinstance(source, str | os.PathLike):
        source = open_activations(source)
    elif isinstance(source, Capture):
        source = source.activations()
    elif not isinstance(source, Activations):
        kind = type(source).__name__
        raise ScenarioError(f"source: is of type {kind} (allowed: Activations, capture, dict of arrays, path, model)")
    layer = None if layer is None else index("layer", layer)
    queries, seed = 0 if queries is None else index("queries", queries), seed_of(seed, 2**64 - 1)
    if queries < 0:
        raise ScenarioError(f'queries: "{queries}" does not fit (allowed: a whole number from 1, or None for all)')
    shares = {"little": little, "written": written, "exchangeable": exchangeable}
    for name, given in shares.items():
        share(name, given)
    setting = engine.HeadSetting()
    setting.queries, setting.seed, setting.exact = queries, seed, flag("float64", float64)
    setting.target, setting.strata = "" if target is None else text("target", target), text("strata", strata)
    setting.leave_one_out = flag("leave_one_out", leave_one_out)
    setting.writes_little, setting.can_be_written, setting.exchangeable = map(float, shares.values())
    with users_names(source.alone):
        with translated():
            job = engine.measure_heads(source._engine, layer, setting, whole(threads))
        found = Measured(*wait(job, progress))
    found._source = source
    return found


def open_measured(path: str | os.PathLike[str]) -> Measured:
    """Figures that ``Measured.save`` or ``headlab heads --out`` wrote.

    :param path (path): A file of ``Measured.save``.
    :returns Measured: The same figures.
    :raises ScenarioError: A file that is missing or of another kind.
    """
    with translated():
        found = Measured(engine.open_results(path_text("path", path)))
    if "words" not in found.attributes:
        raise ScenarioError(f"{os.fspath(path)}: has no figures of heads - headlab heads --out writes such a file")
    return found

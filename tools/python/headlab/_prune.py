# SPDX-License-Identifier: Apache-2.0
"""Plans of removal: which heads go first, the output maps of the others fitted again, and what it costs."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import _engine as engine
from ._activations import Activations
from ._arguments import flag, index, share, text, whole
from ._documented import documented_like
from ._errors import ScenarioError, counted, translated
from ._jobs import wait
from ._labelled import Labelled, frame_of, suggestion

if TYPE_CHECKING:
    import pandas
    from numpy.typing import NDArray


Head = tuple[int, int]
#: Of layers: output maps [H, e, d], and what the bias gains.
Maps = Mapping[int, "tuple[NDArray[Any], NDArray[Any] | None]"]


class _Edits:
    """Other output maps of a model, to be tried and written."""

    def __init__(self, layers: engine.RemovableLayers, source: Activations) -> None:
        self._layers, self.targets, self._model = layers, source._targets, source._model
        self._folded, self._source = source._folded, source

    def __getstate__(self) -> dict[str, Any]:
        # What the engine knows of layers follows from the activations, to the bit.
        return {**vars(self), "_layers": list(self._layers.heads)}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        vars(self).update(kept)
        self._layers = _removable_layers(self._source, kept["_layers"], None)

    def _modules(self, model: Any) -> dict[int, Any]:
        if self.targets is None:
            raise ScenarioError("model: its output maps are known after hl.heads.capture alone")
        model = self._model if model is None else model
        named = dict(model.named_modules())
        missing = [name for name, _ in self.targets.values() if name not in named]
        if missing:
            raise ScenarioError(f"model: has no module {missing[0]}, as the captured one has")
        return {layer: named[name] for layer, (name, _) in self.targets.items()}

    @contextmanager
    def _edited(self, modules: Mapping[int, Any], maps: Maps) -> Iterator[None]:
        import torch

        kept: list[tuple[Any, Any]] = []
        try:
            with torch.no_grad():
                for layer, (w, constant) in maps.items():
                    child = modules[layer]
                    flat = torch.from_numpy(w.reshape(-1, w.shape[2]))
                    changes = [(child.weight, flat if type(child).__name__ == "Conv1D" else flat.T)]
                    if constant is not None:
                        changes.append((child.bias, child.bias.double().cpu() + torch.from_numpy(constant)))
                    for parameter, numbers in changes:
                        kept.append((parameter, parameter.detach().clone()))
                        parameter.copy_(numbers)
            yield
        finally:
            with torch.no_grad():
                for parameter, before in kept:
                    parameter.copy_(before)

    def _write(
        self, checkpoint: str | os.PathLike[str], out: str | os.PathLike[str], maps: Maps,
        record: Mapping[str, Any], output_name: str | None, overwrite: bool,
        cut: Mapping[int, list[int]] | None = None,
    ) -> None:  # fmt: skip
        from ._checkpoint import write_checkpoint

        if self._folded:
            raise ScenarioError("plan: its weights are folded or centred by TransformerLens - capture the model itself")
        targets = self.targets
        if output_name is not None:
            name = text("output_name", output_name).removesuffix(".weight")
            targets = {number: (name.replace("{}", str(number)), False) for number in self._layers.heads}
        if targets is None:
            raise ScenarioError("output_name: is needed where the activations are not those of a capture")
        write_checkpoint(checkpoint, out, maps, targets, record, flag("overwrite", overwrite), cut)


def _nats(loss: Callable[[], Any]) -> NDArray[Any]:
    import numpy as np

    found = loss()
    if hasattr(found, "detach"):
        found = found.detach().cpu()
    return np.asarray(found, float)


def _losses(loss: Callable[[], Any], document: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The loss of each sequence before anything is changed, and its document."""
    import numpy as np

    before = _nats(loss)
    numbers = np.arange(before.size) if document is None else np.asarray(document)
    if before.ndim != 1 or numbers.shape != before.shape or not np.isfinite(before).all():
        raise ScenarioError("loss: needs a finite number for each sequence, and document one of them too")
    return before, numbers


class Plan(_Edits):
    """Heads in the order in which they are removed: ``plan.frame``."""

    def __init__(
        self, layers: engine.RemovableLayers, order: list[Head], predicted: list[dict[str, float]],
        refit: bool, shrink: bool, source: Activations,
    ) -> None:  # fmt: skip
        super().__init__(layers, source)
        self.refit, self.shrink = refit, shrink
        #: (layer, head), the first to go first.
        self.order = order
        self._predicted = predicted

    @property
    def frame(self) -> pandas.DataFrame:
        """A row a step (needs pandas); predictions are of all heads up to it."""
        return frame_of(
            {"step": i + 1, "layer": layer, "head": head, **self._predicted[i]}
            for i, (layer, head) in enumerate(self.order)
        )

    def maps(self, steps: int | None = None) -> dict[int, tuple[NDArray[Any], NDArray[Any] | None]]:
        """Output maps [H, e, d] of the changed layers after so many steps, with what the bias gains.

        :returns dict: Layer to (W_O [H, e, d], constant [d] or None).
        :raises ScenarioError: More steps than there are.
        """
        return self._maps_of(self.order[: self._steps(steps)])

    def _steps(self, steps: int | None) -> int:
        count = len(self.order) if steps is None else index("steps", steps)
        if not 0 <= count <= len(self.order):
            raise ScenarioError(f"steps: is {count} (allowed: 0 to {len(self.order)})")
        return count

    def _maps_of(self, heads: Sequence[Head]) -> dict[int, tuple[NDArray[Any], NDArray[Any] | None]]:
        found = {}
        for layer, some in _by_layer(heads).items():
            flat, constant = self._layers.without(layer, some, self.refit)
            found[layer] = (flat.reshape(self._layers.heads[layer], -1, flat.shape[1]), _row(constant))
        return found

    @contextmanager
    def applied(self, model: Any = None, steps: int | None = None) -> Iterator[None]:
        """The model without the heads; afterwards it has its bits again. By default that of the capture.

        :returns context manager: The model is edited in place, and restored bit for bit at the end.
        :raises ScenarioError: A model without these layers.
        """
        with self._edited(self._modules(model), self._maps_of(self.order[: self._steps(steps)])):
            yield

    def evaluate(
        self, loss: Callable[[], Any], *, model: Any = None, document: Any = None,
        steps: Sequence[int] | None = None, random: int = 8, seed: int = 0,
    ) -> pandas.DataFrame:  # fmt: skip
        """What removal costs: `loss()` gives the nats of each sequence [B], of text not measured on.

        A row for each number of steps: ``cost`` and its standard error over documents, paired with the
        loss of the whole model, and the mean and the least cost of `random` drawn orders.

        :param loss (callable): Gives an array [B] of nats of each sequence.
        :param steps (list of int, optional): Numbers of steps, a row each; all steps at once without it.
        :param random (int): Random orders to compare with.
        :param seed (int): Of the random orders.
        :returns pandas.DataFrame: Cost in nats at each step with its standard error over documents, beside random
            orders.
        :raises ScenarioError: Losses that are not finite, or of one document alone.
        """
        import numpy as np

        if index("random", random) < 1:
            raise ScenarioError("random: needs one order at least, to compare with")
        modules = self._modules(model)
        counts = [len(self.order)] if steps is None else [self._steps(one) for one in steps]
        before, numbers = _losses(loss, document)
        draws = np.random.default_rng(seed)
        heads = _heads_of(self._layers)
        orders = [[heads[i] for i in draws.permutation(len(heads))] for _ in range(random)]
        rows = []
        for count in counts:
            with self._edited(modules, self._maps_of(self.order[:count])):
                added = _nats(loss) - before
            others = []
            for order in orders:
                with self._edited(modules, self._maps_of(order[:count])):
                    others.append(float((_nats(loss) - before).mean()))
            rows.append(
                {"heads": count, "cost": added.mean(), "cost_se": _error(added, numbers),
                 "random_mean": np.mean(others), "random_min": min(others)}
            )  # fmt: skip
        return frame_of(rows)

    def write(
        self, checkpoint: str | os.PathLike[str], out: str | os.PathLike[str], *, steps: int | None = None,
        output_name: str | None = None, overwrite: bool = False,
    ) -> None:  # fmt: skip
        """Writes the checkpoint without the heads: output maps changed, shapes and all else kept.

        With ``shrink`` in the plan the heads are cut out of queries, keys, values and output maps, and
        config.json has their new numbers.

        :param checkpoint (path): Folder of the model.
        :param out (path): Folder to be made.
        :param output_name (str, optional): Tensors of the output maps where no capture tells them, with {} for the
            layer, as "model.layers.{}.self_attn.o_proj.weight" (an nn.Linear: [d, H e]).
        :raises ScenarioError: A tensor is missing or has another shape, or `out` is there already. With ``shrink``:
            layers or groups that keep different numbers of heads, and families whose heads cannot be cut.
        """
        gone = self.order[: self._steps(steps)]
        record = {"removed": [list(head) for head in gone], "refit": self.refit, "shrink": self.shrink}
        cut = _by_layer(gone) if self.shrink else None
        self._write(checkpoint, out, self._maps_of(gone), record, output_name, overwrite, cut)

    def __repr__(self) -> str:
        heads = ", ".join(f"{layer}.{head}" for layer, head in self.order[:12])
        return f"{counted(len(self.order), 'head')} in this order (layer.head): {heads}{', ...' if len(self.order) > 12 else ''}"


class LowRank(_Edits):
    """Output maps of heads at a lower rank: ``low.frame`` has the error of each."""

    def __init__(self, layers: engine.RemovableLayers, rank: int, source: Activations) -> None:
        super().__init__(layers, source)
        self.rank = rank
        parts = {number: _of_rank(layers, number, rank) for number in layers.heads}
        self._maps: dict[int, tuple[NDArray[Any], NDArray[Any] | None]] = {n: one[:2] for n, one in parts.items()}
        self._errors = {number: one[2] for number, one in parts.items()}

    def __repr__(self) -> str:
        return f"rank {self.rank} of the output maps of layers {', '.join(map(str, self._maps))}"

    @property
    def frame(self) -> pandas.DataFrame:
        """A row a head (needs pandas): error of its output, and the same over the output's mean square."""
        return frame_of(
            {"layer": number, "head": head, "error": float(error), "share": float(error / size) if size > 0 else 0.0}
            for number, errors in self._errors.items()
            for head, (error, size) in enumerate(errors)
        )

    @documented_like(Plan.maps)
    def maps(self) -> Maps:
        """Output maps [H, e, d] of the layers, with what the bias gains."""
        return dict(self._maps)

    @contextmanager
    @documented_like(Plan.applied)
    def applied(self, model: Any = None) -> Iterator[None]:
        """The model with these maps; afterwards it has its bits again. By default that of the capture."""
        with self._edited(self._modules(model), self._maps):
            yield

    @documented_like(Plan.evaluate)
    def evaluate(self, loss: Callable[[], Any], *, model: Any = None, document: Any = None) -> pandas.DataFrame:
        """What the lower rank costs: `loss()` gives the nats of each sequence [B], of text not measured on."""
        before, numbers = _losses(loss, document)
        with self.applied(model):
            added = _nats(loss) - before
        return frame_of([{"rank": self.rank, "cost": added.mean(), "cost_se": _error(added, numbers)}])

    @documented_like(Plan.write)
    def write(
        self, checkpoint: str | os.PathLike[str], out: str | os.PathLike[str], *, output_name: str | None = None,
        overwrite: bool = False,
    ) -> None:  # fmt: skip
        """Writes the checkpoint with these maps, as Plan.write does."""
        self._write(checkpoint, out, self._maps, {"rank": self.rank}, output_name, overwrite)


def _error(values: NDArray[Any], document: NDArray[Any]) -> float:
    """Standard error of the mean over sequences, by the jackknife over documents."""
    import numpy as np

    documents = np.unique(document)
    if len(documents) < 2:
        return float("nan")
    means = np.array([values[document != one].mean() for one in documents])
    n = len(documents)
    return float(np.sqrt((n - 1) / n * ((means - means.mean()) ** 2).sum()))


def _row(numbers: NDArray[Any] | None) -> NDArray[Any] | None:
    return None if numbers is None else numbers[0]


def _by_layer(heads: Sequence[Head]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for layer, head in heads:
        found.setdefault(layer, []).append(head)
    return found


def _heads_of(layers: engine.RemovableLayers) -> list[Head]:
    return [(number, head) for number, heads in layers.heads.items() for head in range(heads)]


def _of_rank(
    layers: engine.RemovableLayers, number: int, rank: int
) -> tuple[NDArray[Any], NDArray[Any] | None, list[tuple[float, float]]]:
    """Each head's map at a rank, what the bias gains, and the heads' errors and sizes.

    With U s V' = C_h^1/2 W_h the map W_h V_r V_r' has the least error, the sum of the other s^2.
    """
    import numpy as np

    whole_map, moment, size = layers.map(number), layers.moment(number), layers.size(number)
    maps = np.zeros_like(whole_map).reshape(layers.heads[number], size, -1)
    errors = []
    for head in range(len(maps)):
        a = slice(head * size, (head + 1) * size)
        values, vectors = np.linalg.eigh(moment[a, a])
        root = vectors * np.sqrt(np.clip(values, 0, None)) @ vectors.T
        _, s, v = np.linalg.svd(root @ whole_map[a], full_matrices=False)
        maps[head] = whole_map[a] @ v[:rank].T @ v[:rank]
        errors.append((float((s[rank:] ** 2).sum()), float((s**2).sum())))
    mean = _row(layers.mean(number))
    constant = None if mean is None else mean @ (whole_map - maps.reshape(whole_map.shape))
    return maps, constant, errors


def _count_of(remove: Any, heads: int) -> int:
    if isinstance(remove, float):
        count = int(share("remove", remove) * heads + 0.5)  # as the program rounds
    else:
        try:
            count = index("remove", remove)
        except TypeError as error:
            raise TypeError(f"{error}, or a share as 0.25") from None
    if not 0 < count < heads:
        raise ScenarioError(f"remove: is {counted(count, 'head')} of {heads} (allowed: 1 to {heads - 1})")
    return count


def _removable_layers(source: Activations, numbers: list[int], threads: int | None) -> engine.RemovableLayers:
    with translated():
        job = engine.removable_layers(source._engine, numbers, whole(threads))
    found: engine.RemovableLayers = wait(job)
    return found


def _layers_of(
    measured: Labelled, source: Activations | None, layers: Any, threads: int | None
) -> tuple[engine.RemovableLayers, Activations]:
    """What plans need of the layers, all of them for None, and where it is from."""
    if source is None:
        raise ScenarioError("measured: a plan needs the activations - measure them in this process")
    numbers = [int(one) for one in measured["layer"]]
    wanted = numbers if layers is None else [index("layers", one) for one in layers]
    for number in wanted:
        if number not in numbers:
            raise ScenarioError(f"layers: {number} was not measured (there are {', '.join(map(str, numbers))})")
    return _removable_layers(source, wanted, threads), source


def low_rank(
    measured: Labelled, source: Activations | None, rank: int, layers: Any, threads: int | None
) -> LowRank:
    """See Measured.low_rank."""
    found, source = _layers_of(measured, source, layers, threads)
    most = min(found.size(number) for number in found.heads)
    if not 1 <= index("rank", rank) <= most:
        raise ScenarioError(f"rank: is {rank} (allowed: 1 to {most})")
    return LowRank(found, rank, source)


def prune(
    measured: Labelled, source: Activations | None, remove: Any, by: str, refit: bool, shrink: bool, layers: Any,
    seed: int, threads: int | None,
) -> Plan:  # fmt: skip
    """See Measured.prune."""
    setting = engine.RemovalSetting()
    orders = engine.removal_orders()
    if text("by", by) not in orders:
        raise ScenarioError(f"by: {by!r} is not an order{suggestion(by, orders)}")
    setting.by, setting.refit, setting.seed = by, flag("refit", refit), index("seed", seed)
    setting.even = flag("shrink", shrink)
    found, source = _layers_of(measured, source, layers, threads)
    heads = _heads_of(found)
    named = isinstance(remove, (list, tuple))
    if named:
        setting.by = "random"  # which needs no figure
    with translated():
        found.require(setting)
        if named:
            order = [(index("remove", layer), index("remove", head)) for layer, head in remove]
            wrong = [one for one in order if one not in heads]
            if wrong or len(set(order)) < len(order):
                raise ScenarioError(f"remove: {wrong[0]} is not a head" if wrong else "remove: names a head twice")
        else:
            order = found.order(setting, _count_of(remove, len(heads)))
        predicted = []
        for share, nats in found.predictions(order, setting.refit):
            predicted.append({"predicted_share": share} | ({} if math.isnan(nats) else {"predicted_nats": nats}))
    return Plan(found, order, predicted, setting.refit, setting.even, source)

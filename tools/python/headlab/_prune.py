# SPDX-License-Identifier: Apache-2.0
"""Plans of removal: which heads go first, the output maps of the others fitted again, and what it costs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from . import _engine as engine
from ._activations import Activations
from ._arguments import flag, index, text, whole
from ._documented import documented, documented_like
from ._errors import ScenarioError, translated
from ._jobs import wait
from ._labelled import Labelled, frame_of, suggestion

if TYPE_CHECKING:
    import pandas
    from numpy.typing import NDArray

_BY = ("refit", "spread", "second_order", "sensitivity", "random")
#: Sequences for each head of all layers that pairs of second order need: F has rank B at most.
_SEQUENCES_FOR_PAIRS = 40
#: Fits to fewer follow them too closely.
_TOKENS_FOR_COLUMN, _DOCUMENTS = 16, 8
_RIDGE = 1e-6

Head = tuple[int, int]
#: Of layers: output maps [H, e, d], and what the bias gains.
Maps = Mapping[int, "tuple[NDArray[Any], NDArray[Any] | None]"]


class _Layer:
    """Least squares of the layer's output on z of the heads that are left.

    With P the inverse of the second moment C of those, removing rows A adds tr W_A' (P_AA)^-1 W_A to
    the error; then P loses P_KA (P_AA)^-1 P_AK and W_K loses P_KA (P_AA)^-1 W_A.
    """

    def __init__(self, number: int, moments: Mapping[str, Any]) -> None:
        import numpy as np

        self.number, self.heads = number, int(moments["heads"])
        self.map: NDArray[Any] = moments["output_map"]
        self.mean = moments["mean"][0]
        self.stream = float(moments["stream"])
        self.losses = moments["losses"]
        self.tokens = float(moments["tokens"])
        # Without a bias there is no place for a constant.
        self.has_constant = bool(moments["has_bias"])
        centre = np.outer(self.mean, self.mean)
        self.moment = moments["squares"] - (centre if self.has_constant else 0)
        ridge = _RIDGE * np.trace(self.moment) / len(self.moment)
        self.ridged = self.moment + ridge * np.eye(len(self.moment))
        self.size = len(self.map) // self.heads
        self.start()

    def start(self) -> None:
        import numpy as np

        self.left = list(range(self.heads))
        self.inverse = np.linalg.inv(self.ridged)
        self.fitted = self.map.copy()

    def rows(self, heads: Sequence[int]) -> NDArray[Any]:
        import numpy as np

        return np.concatenate([np.arange(h * self.size, (h + 1) * self.size) for h in heads] or [np.zeros(0, int)])

    def added(self, head: int) -> float:
        """Error that the refit without this head too adds."""
        import numpy as np

        a = self.rows([self.left.index(head)])
        return float((self.fitted[a] * np.linalg.solve(self.inverse[np.ix_(a, a)], self.fitted[a])).sum())

    def remove(self, head: int) -> None:
        import numpy as np

        place = self.left.index(head)
        a = self.rows([place])
        k = np.setdiff1d(np.arange(len(self.inverse)), a)
        share = np.linalg.solve(self.inverse[np.ix_(a, a)], self.inverse[np.ix_(a, k)]).T
        self.fitted = self.fitted[k] - share @ self.fitted[a]
        self.inverse = self.inverse[np.ix_(k, k)] - share @ self.inverse[np.ix_(a, k)]
        self.left.remove(head)

    def without(self, heads: Sequence[int], refit: bool) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """Output map [H, e, d] without the heads, and the constant that goes to the bias."""
        import numpy as np

        whole_map = np.zeros_like(self.map)
        if refit:
            self.start()
            for head in heads:
                self.remove(head)
            whole_map[self.rows(self.left)] = self.fitted
            self.start()
        else:
            kept = self.rows([h for h in range(self.heads) if h not in heads])
            whole_map[kept] = self.map[kept]
        constant = self.mean @ (self.map - whole_map) if self.has_constant else None
        return whole_map.reshape(self.heads, self.size, -1), constant

    def of_rank(self, rank: int) -> tuple[NDArray[Any], NDArray[Any] | None, list[tuple[float, float]]]:
        """Each head's map at a rank, what the bias gains, and the heads' errors and sizes.

        With U s V' = C_h^1/2 W_h the map W_h V_r V_r' has the least error, the sum of the other s^2.
        """
        import numpy as np

        maps = np.zeros_like(self.map).reshape(self.heads, self.size, -1)
        errors = []
        for head in range(self.heads):
            a = self.rows([head])
            values, vectors = np.linalg.eigh(self.moment[np.ix_(a, a)])
            root = vectors * np.sqrt(np.clip(values, 0, None)) @ vectors.T
            _, s, v = np.linalg.svd(root @ self.map[a], full_matrices=False)
            maps[head] = self.map[a] @ v[:rank].T @ v[:rank]
            errors.append((float((s[rank:] ** 2).sum()), float((s**2).sum())))
        constant = self.mean @ (self.map - maps.reshape(self.map.shape)) if self.has_constant else None
        return maps, constant, errors

    def products(self) -> NDArray[Any]:
        """C_hl of outputs [H, H], whose sum over removed heads is the error of removing them."""
        import numpy as np

        w = self.map.reshape(self.heads, self.size, -1)
        c = self.moment.reshape(self.heads, self.size, self.heads, self.size)
        found: NDArray[Any] = np.einsum("hed,helf,lfd->hl", w, c, w, optimize=True)
        return found


class _Edits:
    """Other output maps of a model, to be tried and written."""

    def __init__(self, layers: dict[int, _Layer], source: Activations) -> None:
        self._layers, self.targets, self._model = layers, source._targets, source._model
        self._folded = source._folded

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
    ) -> None:  # fmt: skip
        from ._checkpoint import write_checkpoint

        if self._folded:
            raise ScenarioError("plan: its weights are folded or centred by TransformerLens - capture the model itself")
        targets = self.targets
        if output_name is not None:
            name = text("output_name", output_name).removesuffix(".weight")
            targets = {number: (name.replace("{}", str(number)), False) for number in self._layers}
        if targets is None:
            raise ScenarioError("output_name: is needed where the activations are not those of a capture")
        write_checkpoint(checkpoint, out, maps, targets, record, flag("overwrite", overwrite))


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
        self, layers: dict[int, _Layer], order: list[Head], predicted: list[dict[str, float]], refit: bool,
        source: Activations,
    ) -> None:  # fmt: skip
        super().__init__(layers, source)
        self.refit = refit
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

    @documented
    def maps(self, steps: int | None = None) -> dict[int, tuple[NDArray[Any], NDArray[Any] | None]]:
        """Output maps [H, e, d] of the changed layers after so many steps, with what the bias gains.

        Returns
        -------
        dict
            Layer to (W_O [H, e, d], constant [d] or None).

        Raises
        ------
        ScenarioError
            More steps than there are.
        """
        return self._maps_of(self.order[: self._steps(steps)])

    def _steps(self, steps: int | None) -> int:
        count = len(self.order) if steps is None else index("steps", steps)
        if not 0 <= count <= len(self.order):
            raise ScenarioError(f"steps: is {count} (allowed: 0 to {len(self.order)})")
        return count

    def _maps_of(self, heads: Sequence[Head]) -> dict[int, tuple[NDArray[Any], NDArray[Any] | None]]:
        changed: dict[int, list[int]] = {}
        for layer, head in heads:
            changed.setdefault(layer, []).append(head)
        return {layer: self._layers[layer].without(some, self.refit) for layer, some in changed.items()}

    @contextmanager
    @documented
    def applied(self, model: Any = None, steps: int | None = None) -> Iterator[None]:
        """The model without the heads; afterwards it has its bits again. By default that of the capture.

        Returns
        -------
        context manager
            The model is edited in place, and restored bit for bit at the end.

        Raises
        ------
        ScenarioError
            A model without these layers.
        """
        with self._edited(self._modules(model), self._maps_of(self.order[: self._steps(steps)])):
            yield

    @documented
    def evaluate(
        self, loss: Callable[[], Any], *, model: Any = None, document: Any = None,
        steps: Sequence[int] | None = None, random: int = 8, seed: int = 0,
    ) -> pandas.DataFrame:  # fmt: skip
        """What removal costs: `loss()` gives the nats of each sequence [B], of text not measured on.

        A row for each number of steps: ``cost`` and its standard error over documents, paired with the
        loss of the whole model, and the mean and the least cost of `random` drawn orders.

        Parameters
        ----------
        loss : callable
            Gives an array [B] of nats of each sequence.
        document : array [B], optional
            The document of each sequence; each its own without it.
        steps : list of int, optional
            Numbers of steps, a row each; all steps at once without it.
        random : int
            Random orders to compare with.
        seed : int
            Of the random orders.

        Returns
        -------
        pandas.DataFrame
            Cost in nats at each step with its standard error over documents, beside random orders.

        Raises
        ------
        ScenarioError
            Losses that are not finite, or of one document alone.
        """
        import numpy as np

        if index("random", random) < 1:
            raise ScenarioError("random: needs one order at least, to compare with")
        modules = self._modules(model)
        counts = [len(self.order)] if steps is None else [self._steps(one) for one in steps]
        before, numbers = _losses(loss, document)
        draws = np.random.default_rng(seed)
        heads = [(n, h) for n, layer in self._layers.items() for h in range(layer.heads)]
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

    @documented
    def write(
        self, checkpoint: str | os.PathLike[str], out: str | os.PathLike[str], *, steps: int | None = None,
        output_name: str | None = None, overwrite: bool = False,
    ) -> None:  # fmt: skip
        """Writes the checkpoint without the heads: output maps changed, shapes and all else kept.

        Parameters
        ----------
        checkpoint : path
            Folder of the model.
        out : path
            Folder to be made.
        output_name : str, optional
            Tensors of the output maps where no capture tells them, with {} for the layer, as
            "model.layers.{}.self_attn.o_proj.weight" (an nn.Linear: [d, H e]).

        Raises
        ------
        ScenarioError
            A tensor is missing or has another shape, or `out` is there already.
        """
        count = self._steps(steps)
        record = {"removed": [list(head) for head in self.order[:count]], "refit": self.refit}
        self._write(checkpoint, out, self.maps(count), record, output_name, overwrite)

    def __repr__(self) -> str:
        heads = ", ".join(f"{layer}.{head}" for layer, head in self.order[:12])
        return f"{len(self.order)} heads in this order (layer.head): {heads}{', ...' if len(self.order) > 12 else ''}"


class LowRank(_Edits):
    """Output maps of heads at a lower rank: ``low.frame`` has the error of each."""

    def __init__(self, layers: dict[int, _Layer], rank: int, source: Activations) -> None:
        super().__init__(layers, source)
        self.rank = rank
        parts = {number: layer.of_rank(rank) for number, layer in layers.items()}
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


def _count_of(remove: Any, heads: int) -> int:
    if isinstance(remove, float):
        if not 0 < remove < 1:
            raise ScenarioError(f"remove: is {remove} (allowed: a share between 0 and 1)")
        return round(remove * heads)
    count = index("remove", remove)
    if not 0 < count < heads:
        raise ScenarioError(f"remove: is {count} (allowed: 1 to {heads - 1} heads)")
    return count


def _greedy(costs: Callable[[Head], float], take: Callable[[Head], None], heads: list[Head], count: int) -> list[Head]:
    order: list[Head] = []
    left = list(heads)
    for _ in range(count):
        best = min(left, key=costs)
        take(best)
        left.remove(best)
        order.append(best)
    return order


def _order(layers: dict[int, _Layer], measured: Labelled, by: str, seed: int, heads: list[Head], count: int) -> list[Head]:
    import numpy as np

    if by == "random":
        return [heads[i] for i in np.random.default_rng(seed).permutation(len(heads))[:count]]
    if by == "sensitivity":
        place = {int(number): i for i, number in enumerate(measured["layer"])}
        return sorted(heads, key=lambda one: float(measured["sensitivity"][place[one[0]], one[1]]))[:count]
    if by == "refit":
        return _greedy(
            lambda one: layers[one[0]].added(one[1]) / layers[one[0]].stream,
            lambda one: layers[one[0]].remove(one[1]), heads, count,
        )  # fmt: skip
    products = _loss_products(layers, heads) if by == "second_order" else _spread_products(layers, heads)
    taken: list[int] = []
    places = {one: i for i, one in enumerate(heads)}
    return _greedy(
        lambda one: float(products[places[one], places[one]] + 2 * products[places[one], taken].sum()),
        lambda one: taken.append(places[one]), heads, count,
    )  # fmt: skip


def _spread_products(layers: dict[int, _Layer], heads: list[Head]) -> NDArray[Any]:
    import numpy as np

    products = np.zeros((len(heads), len(heads)))
    first = 0
    for layer in layers.values():
        end = first + layer.heads
        products[first:end, first:end] = layer.products() / layer.stream
        first = end
    return products


def _loss_products(layers: dict[int, _Layer], heads: list[Head]) -> NDArray[Any]:
    """F of all heads; without its pairs where the sequences are too few for them."""
    import numpy as np

    u = np.concatenate([layer.losses for layer in layers.values()], 1)
    products = u.T @ u / (2 * next(iter(layers.values())).tokens)
    return products if len(u) >= _SEQUENCES_FOR_PAIRS * len(heads) else np.diag(np.diag(products))


def _layers_of(
    measured: Labelled, source: Activations | None, layers: Any, threads: int | None
) -> tuple[dict[int, _Layer], Activations]:
    """What plans need of the layers, all of them for None, and where it is from."""
    if source is None:
        raise ScenarioError("measured: a plan needs the activations - measure them in this process")
    numbers = [int(one) for one in measured["layer"]]
    wanted = numbers if layers is None else [index("layers", one) for one in layers]
    found: dict[int, _Layer] = {}
    for number in wanted:
        if number not in numbers:
            raise ScenarioError(f"layers: {number} was not measured (there are {', '.join(map(str, numbers))})")
        with translated():
            job = engine.removal_moments(source._engine, number, whole(threads))
        found[number] = _Layer(number, wait(job))
    return found, source


def low_rank(
    measured: Labelled, source: Activations | None, rank: int, layers: Any, threads: int | None
) -> LowRank:
    """See Measured.low_rank."""
    found, source = _layers_of(measured, source, layers, threads)
    most = min(one.size for one in found.values())
    if not 1 <= index("rank", rank) <= most:
        raise ScenarioError(f"rank: is {rank} (allowed: 1 to {most})")
    return LowRank(found, rank, source)


def prune(
    measured: Labelled, source: Activations | None, remove: Any, by: str, refit: bool, layers: Any, seed: int,
    threads: int | None,
) -> Plan:  # fmt: skip
    """See Measured.prune."""
    import numpy as np

    if text("by", by) not in _BY:
        raise ScenarioError(f"by: {by!r} is no order{suggestion(by, _BY)}")
    found, source = _layers_of(measured, source, layers, threads)
    least = int(min(measured["documents"]))
    for one in found.values():
        needed = _TOKENS_FOR_COLUMN * len(one.map)
        if flag("refit", refit) and (one.tokens < needed or least < _DOCUMENTS):
            raise ScenarioError(
                f"refit: needs {needed} tokens and {_DOCUMENTS} documents, there are {int(one.tokens)} and {least}"
                " - give more, or refit=False"
            )
    if len(found) > 1 and by in ("refit", "spread") and any(np.isnan(one.stream) for one in found.values()):
        raise ScenarioError("by: ranks hold within layers - give residual, layers=[one], or by=\"second_order\"")
    for one in found.values():
        one.stream = 1.0 if np.isnan(one.stream) else one.stream
        if by in ("second_order", "sensitivity") and one.losses.size == 0:
            raise ScenarioError(f"by: {by} needs gradients, which layer {one.number} lacks")
    heads = [(number, h) for number, one in found.items() for h in range(one.heads)]
    if isinstance(remove, (list, tuple)):
        order = [(index("remove", layer), index("remove", head)) for layer, head in remove]
        wrong = [one for one in order if one not in heads]
        if wrong or len(set(order)) < len(order):
            raise ScenarioError(f"remove: {wrong[0] if wrong else 'a head'} is no head{'' if wrong else ' twice'}")
    else:
        order = _order(found, measured, by, index("seed", seed), heads, _count_of(remove, len(heads)))
    predicted = _predictions(found, order, refit, heads)
    return Plan(found, order, predicted, refit, source)


def _predictions(
    layers: dict[int, _Layer], order: list[Head], refit: bool, heads: list[Head]
) -> list[dict[str, float]]:
    """Share of the stream that is lost, summed over layers, and nats, after each step."""
    losses = all(one.losses.size for one in layers.values())
    products = _loss_products(layers, heads) if losses else None
    spread = _spread_products(layers, heads)
    places = {one: i for i, one in enumerate(heads)}
    for one in layers.values():
        one.start()
    rows: list[dict[str, float]] = []
    share = nats = 0.0
    taken: list[int] = []
    for layer, head in order:
        at = places[layer, head]
        if refit:
            share += layers[layer].added(head) / layers[layer].stream
            layers[layer].remove(head)
        else:
            share += float(spread[at, at] + 2 * spread[at, taken].sum())
        row = {"predicted_share": share}
        if products is not None:
            nats += float(products[at, at] + 2 * products[at, taken].sum())
            row["predicted_nats"] = nats
        taken.append(at)
        rows.append(row)
    for one in layers.values():
        one.start()
    return rows

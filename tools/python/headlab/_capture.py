# SPDX-License-Identifier: Apache-2.0
"""hl.heads.capture: what the attention layers of a model of transformers do while it runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from ._activations import Activations, from_attention
from ._arguments import index
from ._captured_arrays import mask_of, numbers_of, output_map_of, seen_by, tokens_of, valid_of, with_room
from ._errors import ScenarioError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NAME = "headlab"
#: Models whose blocks do more with the output of attention than add it to the stream.
_NO_SHARES = ("gemma2", "gemma3", "gemma3_text", "olmo2", "olmo3", "glm4", "granite")
#: Relative to the largest logit, of float32 and of shorter floats.
_MOST_OFF, _MOST_OFF_HALF = 1e-3, 5e-2
#: What a model needs that no capture fits.
_BY_HAND = "pass q, k, v to hl.heads.from_attention"

_active: Capture | None = None


def _attend(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None,
    softcap: float | None = None, s_aux: Any = None, **_: Any,
) -> tuple[Any, Any]:  # fmt: skip
    """Attention as the interface of transformers asks for it, with what goes in and comes out kept."""
    import torch

    if attention_mask is None and getattr(module, "is_causal", False) and query.shape[2] > 1:
        raise ScenarioError("model: attends causally without a mask, which the capture needs to see")
    sharing = query.shape[1] // key.shape[1]
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    logits = query @ key.repeat_interleave(sharing, 1).transpose(2, 3) * scale
    if softcap is not None:
        logits = softcap * torch.tanh(logits / softcap)
    mask = attention_mask
    if mask is not None:
        mask = mask[..., : key.shape[2]]
        if mask.dtype == torch.bool:
            mask = torch.zeros_like(mask, dtype=logits.dtype).masked_fill(~mask, torch.finfo(logits.dtype).min)
        logits = logits + mask
    kind = torch.promote_types(query.dtype, torch.float32)
    if s_aux is not None:
        sinks = s_aux.reshape(1, -1, 1, 1).expand(*logits.shape[:3], 1)
        weights = torch.cat([logits, sinks.to(logits.dtype)], -1).to(kind).softmax(-1)[..., :-1]
    else:
        weights = logits.to(kind).softmax(-1)
    z = weights.to(query.dtype) @ value.repeat_interleave(sharing, 1)
    if z.requires_grad:
        z.retain_grad()
    if _active is not None and not _active._comparing:
        _active._take(
            module, q=query, k=key, v=value, z=z, mask=mask, scale=scale, softcap=softcap, sink=s_aux
        )
    return z.transpose(1, 2).contiguous(), weights


class Capture:
    """Runs the model with an attention that keeps q, k, v and z, in a ``with`` block.

    ::

        with hl.heads.capture(model) as c:
            for batch in batches:
                model(**batch, labels=batch["input_ids"]).loss.backward()   # backward: for losses
        m = hl.heads.measure(c)
    """

    def __init__(self, model: Any, layers: Iterable[int] | None = None) -> None:
        if not hasattr(model, "config") or not hasattr(model, "named_modules"):
            raise ScenarioError(f"model: is of type {type(model).__name__}, needs a model of transformers")
        if getattr(model.config, "is_encoder_decoder", False):
            raise ScenarioError(f"model: is an encoder with a decoder, which capture does not take - {_BY_HAND}")
        if getattr(model, "training", False):
            raise ScenarioError("model: is in training mode, with dropout - call model.eval()")
        self._model = model
        self._wanted = None if layers is None else {index("layers", one) for one in layers}
        self._numbers_of: dict[Any, int] = {}  # modules, in the order of their first call
        self._maps: dict[int, Any] = {}  # output maps
        self._batches: list[dict[int, dict[str, Any]]] = []
        self._valid: list[NDArray[Any] | None] = []
        self._ids: list[NDArray[Any] | None] = []  # tokens of the batches
        self._checked: dict[int, dict[str, Any]] = {}
        self._hooks: list[Any] = []
        self._streams: dict[Any, Any] = {}  # of blocks, in this batch
        self._outputs: dict[int, Any] = {}
        self._own = ""
        self._comparing = False

    def __enter__(self) -> Capture:
        global _active
        if _active is not None:
            raise ScenarioError("capture: another one is open")
        try:
            from transformers import AttentionInterface
            from transformers.masking_utils import AttentionMaskInterface, eager_mask
        except ImportError:
            raise ImportError("needs transformers 4.54 or later - pip install transformers") from None
        AttentionInterface.register(_NAME, _attend)
        # Without it a model gets no mask, and sees what comes later.
        AttentionMaskInterface.register(_NAME, eager_mask)
        self._own = self._model.config._attn_implementation
        self._switch(_NAME)
        self._forward = self._model.forward
        self._model.forward = self._run
        self._watch_blocks()
        _active = self
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        global _active
        _active = None
        del self._model.forward
        for hook in self._hooks:
            hook.remove()
        self._switch(self._own)
        self._settle()
        if kind is None and not self._batches:
            raise ScenarioError("capture: nothing was run in it")
        if kind is None and not self._numbers_of:
            raise self._not_reached()

    def _switch(self, name: str) -> None:
        try:
            self._model.set_attn_implementation(name)
        except (ValueError, AttributeError):
            raise self._not_reached() from None

    def _not_reached(self) -> ScenarioError:
        return ScenarioError(
            f"model: {type(self._model).__name__} does not use transformers' attention interface - {_BY_HAND}"
        )

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        self._settle()
        first = not self._batches
        self._batches.append({})
        mask = kwargs.get("attention_mask")
        self._valid.append(None if getattr(mask, "ndim", 0) != 2 else numbers_of(mask) != 0)
        ids: Any = kwargs.get("input_ids", args[0] if args else None)
        is_text = getattr(ids, "ndim", 0) == 2 and not ids.is_floating_point()
        self._ids.append(ids.detach().cpu().numpy() if is_text else None)
        found = self._forward(*args, **kwargs)
        if first and self._batches[-1]:
            self._compare(found, args, kwargs)
        return found

    def _compare(self, found: Any, args: Any, kwargs: Any) -> None:
        """Runs the first batch with the model's own attention too."""
        import torch

        self._comparing = True
        try:
            with torch.no_grad():
                self._switch(self._own)
                self._outputs.clear()
                own = self._forward(*args, **kwargs)
                for number, output in self._outputs.items():
                    self._checked[number] = {"output": numbers_of(output)}
                self._switch("eager")
                attentions = self._forward(*args, **{**kwargs, "output_attentions": True}).attentions
                for number, weights in zip(sorted(self._numbers_of.values()), attentions or (), strict=False):
                    if weights is not None and number in self._checked:
                        self._checked[number]["attention"] = numbers_of(weights)
        finally:
            self._comparing = False
            self._switch(_NAME)
        if getattr(own, "logits", None) is None:
            return
        off = float((found.logits.detach().float() - own.logits.float()).abs().max())
        most = float(own.logits.float().abs().max())
        allowed = _MOST_OFF if own.logits.dtype in (torch.float32, torch.float64) else _MOST_OFF_HALF
        if not off <= allowed * most:
            raise ScenarioError(f"model: has other logits in the capture, by {off:.2g} where they reach {most:.2g}")

    def _take(self, module: Any, **given: Any) -> None:
        number = self._number(module)
        if self._wanted is not None and number not in self._wanted:
            return
        given["stream"] = self._stream_of(module)
        self._batches[-1][number] = given
        if number not in self._maps:
            self._watch(module, number, given["z"])

    def _number(self, module: Any) -> int:
        if module not in self._numbers_of:
            own = getattr(module, "layer_idx", None)
            self._numbers_of[module] = len(self._numbers_of) if own is None else int(own)
        return self._numbers_of[module]

    def _watch(self, module: Any, number: int, z: Any) -> None:
        """Finds the child whose input is z side by side, and keeps what it gives from then on."""
        import torch

        side_by_side = z.detach().transpose(1, 2).flatten(2)
        watched: list[Any] = []

        def before(child: Any, inputs: Any) -> None:
            given = inputs[0] if inputs else None
            if number in self._maps or given is None or given.shape[-1:] != side_by_side.shape[-1:]:
                return
            if torch.equal(given.detach().reshape(side_by_side.shape), side_by_side):
                self._maps[number] = child
                self._hooks.append(child.register_forward_hook(after))

        def after(_: Any, __: Any, output: Any) -> None:
            if self._comparing:
                self._outputs[number] = output

        for child in module.modules():
            if getattr(child, "weight", None) is not None and child.weight.ndim == 2:
                watched.append(child.register_forward_pre_hook(before))
        self._hooks += watched

    def _watch_blocks(self) -> None:
        """Keeps the inputs of the blocks: of the members of lists of modules."""
        import torch

        def before(block: Any, inputs: Any, named: Any) -> None:
            stream = named.get("hidden_states", inputs[0] if inputs else None)
            if not self._comparing and getattr(stream, "ndim", 0) == 3:
                self._streams[block] = stream

        for one in self._model.modules():
            if isinstance(one, torch.nn.ModuleList):
                self._hooks += [block.register_forward_pre_hook(before, with_kwargs=True) for block in one]

    def _stream_of(self, module: Any) -> Any:
        """The input of the outermost block that has the module."""
        if self._model.config.model_type in _NO_SHARES:
            return None
        return next((stream for block, stream in self._streams.items() if module in block.modules()), None)

    def _settle(self) -> None:
        """Turns tensors of the last batch into numbers, once the gradient is there."""
        self._streams.clear()
        for number, given in (self._batches[-1] if self._batches else {}).items():
            if "z" not in given:
                continue
            z, stream = given.pop("z"), given.pop("stream")
            half = str(z.dtype).endswith("float16")
            numbers = {name: numbers_of(given.pop(name)) for name in ("q", "k", "v")}
            numbers["z"] = numbers_of(z)
            if z.grad is not None:
                numbers["grad_z"] = numbers_of(z.grad)
            if stream is not None:
                numbers["residual"] = numbers_of(stream)
            shape = (*numbers["q"].shape[::2][:2], numbers["k"].shape[2])
            numbers["mask"] = seen_by(given.pop("mask"), shape)
            self._batches[-1][number] = {**given, "half": half, "numbers": numbers}

    def activations(self, document: Any = None) -> Activations:
        """All batches as one; `document` numbers the document of each sequence.

        :returns Activations: Arrays of every layer, [B, H, T, k] and so on (docs/heads-on-text.md).
        :raises ScenarioError: No forward pass was captured, or no gradient reached a layer.
        """
        layers = sorted({number for batch in self._batches for number in batch})
        if not layers:
            raise ScenarioError("capture: nothing was run in it")
        found = {number: self._layer(number) for number in layers}
        for one in found.values():
            one["document"] = document
        acts = from_attention(found)
        names = {module: name for name, module in self._model.named_modules()}
        acts._model = self._model
        acts._targets = {
            number: (names[self._maps[number]], type(self._maps[number]).__name__ == "Conv1D") for number in layers
        }
        return acts

    def _layer(self, number: int) -> dict[str, Any]:
        import numpy as np

        if number not in self._maps:
            problem = f"no module of the attention of layer {number} takes the values of its heads side by side"
            raise ScenarioError(f"model: {problem} - {_BY_HAND}")
        batches = [batch[number] for batch in self._batches]
        names = set.intersection(*(set(one["numbers"]) for one in batches))
        rooms = {name: max(one["numbers"][name].shape[-2] for one in batches) for name in names}
        given: dict[str, Any] = {
            name: np.concatenate([with_room(one["numbers"][name], name, rooms) for one in batches])
            for name in names - {"mask"}
        }
        queries, keys = rooms["q"], rooms["k"]
        given["mask"] = mask_of([one["numbers"]["mask"] for one in batches], given["q"].shape[0], queries, keys)
        given |= {name: batches[0][name] for name in ("scale", "softcap")}
        given["sink"] = None if batches[0]["sink"] is None else numbers_of(batches[0]["sink"])
        given["valid"] = np.concatenate(
            [valid_of(valid, one["numbers"], keys) for valid, one in zip(self._valid, batches, strict=True)]
        )
        given["tokens"] = tokens_of(self._ids, [one["numbers"]["q"].shape[2] for one in batches])
        given["W_O"], given["b_O"] = output_map_of(self._maps[number], *given["q"].shape[1:2])
        checked = self._checked.get(number, {})
        if "output" in checked:
            given["output"] = with_room(checked["output"], "output", {"output": queries})
        if "attention" in checked:
            own = checked["attention"]
            given["attention"] = np.zeros((*own.shape[:2], queries, keys), own.dtype)
            given["attention"][..., : own.shape[2], : own.shape[3]] = own
        if batches[0]["half"]:
            given["precision"] = "half"
        return given


def capture(model: Any, layers: Iterable[int] | None = None) -> Capture:
    """Keeps what the attention layers of a model of transformers do in a ``with`` block.

    The model runs with an attention of this package's, which has to give the logits of its own. All
    layers, or some. `loss.backward()` after each batch gives the figures of losses, which are those of
    the sum over tokens: `loss` times their number. Decoders and encoders; `model.eval()` comes first.

    :param model (transformers model): One that uses the attention interface of transformers.
    :returns Capture: A context manager that records each forward pass.
    :raises ScenarioError: The model does not use transformers' attention interface, or a layer is not there.
    """
    return Capture(model, layers)


def run(
    model: Any, batches: Iterable[Any], *, layers: Iterable[int] | None = None, labels: str | None = "data",
    seed: int = 0,
) -> Capture:  # fmt: skip
    """Runs batches in a capture, with gradients of the summed loss by z alone; see measure()."""
    import torch

    if labels not in ("data", "model", None):
        raise ScenarioError(f'labels: {labels!r} is none (allowed: "data", "model", None)')
    draws = torch.Generator().manual_seed(seed)
    with capture(model, layers) as c:
        for batch in batches:
            given = _inputs_of(batch, labels is not None)
            with torch.set_grad_enabled(labels is not None):
                found = model(**given)
            if labels is not None:
                _differentiate(c, found.logits[:, :-1].float(), given, labels == "model", draws)
    return c


def _inputs_of(batch: Any, with_losses: bool) -> dict[str, Any]:
    """What the model takes of a batch, a dict or token ids."""
    import torch

    given = dict(batch) if isinstance(batch, Mapping) else {"input_ids": batch}
    given.pop("labels", None)
    if "input_ids" not in given:
        return given
    try:
        ids = torch.as_tensor(given["input_ids"])
    except (TypeError, ValueError, RuntimeError):
        raise ScenarioError("batches: token ids [B, T] are needed, of sequences of one length") from None
    if ids.ndim != 2 or ids.is_floating_point():
        kind = f"{list(ids.shape)} of {str(ids.dtype).removeprefix('torch.')}"
        raise ScenarioError(f"batches: each needs token ids [B, T], whole numbers, one is {kind}")
    if with_losses and ids.shape[1] < 2:
        raise ScenarioError("batches: losses of next tokens need two tokens of a sequence - or labels=None")
    return {**given, "input_ids": ids}


def _differentiate(c: Capture, logits: Any, given: Mapping[str, Any], drawn: bool, draws: Any) -> None:
    """Gives every z of the batch the gradient of the loss of its next tokens, in nats."""
    import torch

    ids, mask = given["input_ids"], given.get("attention_mask")
    targets = ids[:, 1:]
    if drawn:
        shares = logits.detach().softmax(-1).flatten(0, 1).cpu()
        targets = torch.multinomial(shares, 1, generator=draws).reshape(targets.shape).to(ids.device)
    losses = torch.nn.functional.cross_entropy(logits.transpose(1, 2), targets, reduction="none")
    if mask is not None:
        losses = losses * mask[:, 1:]
    outputs = [one["z"] for one in c._batches[-1].values()]
    if not c._numbers_of:
        raise c._not_reached()
    if not outputs:
        raise ScenarioError(f"layer: the model has none of that number (there are {len(c._numbers_of)})")
    if not all(z.requires_grad for z in outputs):
        raise ScenarioError("model: its parameters ask for no gradient - call requires_grad_(), or labels=None")
    for z, gradient in zip(outputs, torch.autograd.grad(losses.sum(), outputs), strict=True):
        z.grad = gradient

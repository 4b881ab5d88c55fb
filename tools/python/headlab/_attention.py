# SPDX-License-Identifier: Apache-2.0
"""Attention of arrays and of tensors, with gradients: ``hl.attention(q, k, v)``."""

from __future__ import annotations

import copy
import functools
import math
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from . import _engine
from ._arguments import flag, index, whole
from ._arrays import host_array
from ._errors import ScenarioError, counted, translated, warn
from ._jobs import wait

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Numbers beyond it have squares that float32 does not hold.
_MOST = 1e30


def is_tensor(value: Any) -> bool:
    """True for tensors of PyTorch, which is not imported for the question."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def wants_gradient(*values: Any) -> bool:
    """True where PyTorch asks for derivatives by one of them."""
    tracked = any(is_tensor(one) and one.requires_grad for one in values)
    return tracked and bool(sys.modules["torch"].is_grad_enabled())


def squared_norms(rows: Any) -> Any:
    """Of rows [..., rows, columns], without a copy of them."""
    if is_tensor(rows):
        return sys.modules["torch"].linalg.vecdot(rows, rows)
    import numpy as np

    return np.einsum("...i,...i->...", rows, rows)


class Numbers:
    """Arrays of one call in one type: tensors of PyTorch if one of them is a tensor, else of NumPy.

    All are brought to the type and the device of the first.
    """

    def __init__(self, first: Any, key: str, others: tuple[Any, ...]) -> None:
        import numpy as np

        self.tensors = any(is_tensor(one) for one in (first, *others))
        self.double = False
        self._dtype: Any = None
        self._device: Any = None
        if not self.tensors:
            array = host_array(_array(first, key), key)
            self.double = array.dtype != np.float32
            return
        torch = sys.modules["torch"]
        if is_tensor(first):
            self._dtype, self._device = first.dtype, first.device
            if not first.dtype.is_floating_point:
                raise ScenarioError(f"{key}: is a tensor of {first.dtype}, needs real numbers")
        else:
            array = host_array(_array(first, key), key)
            self._dtype = torch.float32 if array.dtype == np.float32 else torch.float64
            self._device = next(one.device for one in others if is_tensor(one))
        self.double = self._dtype == torch.float64

    def read(self, value: Any, key: str, added: bool = False) -> Any:
        """The numbers on the host, as float32 or float64; gradients follow.

        Those that are `added` to logits may be as low as any: they hide keys.
        """
        import numpy as np

        kind = "float64" if self.double else "float32"
        if not self.tensors:
            with np.errstate(over="ignore"):  # infinite numbers are rejected below
                array = host_array(_array(value, key), key).astype(kind, copy=False)
            self._check(array, key, added)
            return array
        torch = sys.modules["torch"]
        if not is_tensor(value):
            value = torch.from_numpy(host_array(_array(value, key), key))
        if value.dtype.is_complex:
            raise ScenarioError(f"{key}: is an array of {value.dtype}, needs real numbers")
        value = _on_host(value, key).to(getattr(torch, kind))
        self._check(value.detach().numpy(), key, added)
        return value

    @staticmethod
    def _check(array: NDArray[Any], key: str, added: bool) -> None:
        import numpy as np

        if array.size == 0:
            raise ScenarioError(f"{key}: has shape {array.shape}, without numbers")
        if array.max() <= _MOST and (added or array.min() >= -_MOST):  # not true of NaN
            return
        flat = array.ravel()
        at = int(np.argmin((flat <= _MOST) & (added | (flat >= -_MOST))))
        what = "beyond 1e30, too large for float32 sums" if np.isfinite(flat[at]) else "not finite"
        raise ScenarioError(f"{key}: number {at} is {what}")

    def exact(self) -> Numbers:
        """The same in float64."""
        other = copy.copy(self)
        other.double = True
        return other

    def give(self, value: Any) -> Any:
        """A result in the type and on the device of the first array."""
        if self.tensors:
            return value.to(device=self._device, dtype=self._dtype)
        return value


def _on_host(tensor: Any, key: str) -> Any:
    """The same numbers where the engine can read them; says that they are copied."""
    if tensor.layout is not sys.modules["torch"].strided:
        raise ScenarioError(f"{key}: is a tensor of {tensor.layout} - make it dense, as .to_dense() does")
    if tensor.device.type == "meta":
        raise ScenarioError(f"{key}: is a tensor on meta, where it has no numbers")
    try:
        tensor.data_ptr()
    except RuntimeError:
        raise ScenarioError(
            f"{key}: is a tensor of torch.func, which cannot transform headlab - use torch.autograd"
        ) from None
    if tensor.device.type != "cpu":
        warn(f"{key}: copied from {tensor.device} to the host")
    return tensor.cpu()


def _host_array(value: Any, key: str) -> NDArray[Any]:
    """The numbers of an array or a tensor that has no gradient."""
    if is_tensor(value):
        value = _on_host(value.detach(), key)
    return host_array(_array(value, key), key)


def _array(value: Any, key: str) -> Any:
    import numpy as np

    if hasattr(value, "shape"):
        return value
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ScenarioError(f"{key}: makes no array ({error})") from None


@dataclass(frozen=True)
class Rule:
    """From products or distances of queries and keys to weights, in the order of the engine."""

    scale: float = 1.0
    softcap: float = 0.0
    causal: bool = False
    window: int = 0
    leave_own_out: bool = False
    distances: bool = False
    threads: int | None = None


def _lead(*arrays: Any) -> tuple[int, ...]:
    """The leading axes of all arrays [..., heads, rows, columns] together."""
    import numpy as np

    return np.broadcast_shapes(*(one.shape[:-3] for one in arrays))


def _spread(array: Any, *shape: int) -> NDArray[Any]:
    """A view of that shape, whose rows the engine can read where they are."""
    import numpy as np

    size = array.dtype.itemsize
    *_, row, column = array.strides
    if (column != size and array.shape[-1] > 1) or row < 0 or row % size:
        array = np.ascontiguousarray(array)
    return np.broadcast_to(array, shape)


class _Call:
    """What the engine is called with, from arrays of NumPy."""

    def __init__(self, arrays: tuple[Any, ...], sink: Any, alibi: Any, rule: Rule) -> None:
        q, k, v, bias, unseen = arrays
        self.lead = _lead(*(one for one in arrays if one is not None))
        self.heads, self.groups = q.shape[-3], k.shape[-3]
        self.shape = (*self.lead, self.heads, q.shape[-2])
        self.kind = str(q.dtype)
        window = (q.shape[-2], k.shape[-2])
        self.arrays: tuple[Any, ...] = (
            _spread(q, *self.lead, *q.shape[-3:]),
            _spread(k, *self.lead, *k.shape[-3:]),
            None if v is None else _spread(v, *self.lead, self.groups, *v.shape[-2:]),
            *(
                None if one is None else _spread(one, *self.lead, self.heads, *window)
                for one in (bias, unseen)
            ),
        )
        self.rule = {
            "sequences": math.prod(self.lead), "scale": rule.scale, "softcap": rule.softcap,
            "causal": rule.causal, "window": rule.window, "leave_own_out": rule.leave_own_out,
            "distances": rule.distances, "sink": [] if sink is None else sink.tolist(),
            "alibi": [] if alibi is None else alibi.tolist(),
        }  # fmt: skip
        self.threads = whole(rule.threads)

    def values(self) -> tuple[NDArray[Any], NDArray[Any]]:
        with translated():
            made = getattr(_engine, f"attend_{self.kind}")(self.arrays, self.rule, self.threads)
        z, sums = wait(made) if isinstance(made, _engine.Job) else made
        return z.reshape(*self.shape, -1), sums.reshape(self.shape)

    def gradients(
        self, upstream: NDArray[Any], by_sums: NDArray[Any], wanted: list[bool]
    ) -> list[NDArray[Any] | None]:
        import numpy as np

        with translated():
            made = getattr(_engine, f"attend_backward_{self.kind}")(
                np.ascontiguousarray(upstream), np.ascontiguousarray(by_sums), self.arrays, self.rule,
                wanted, self.threads,
            )  # fmt: skip
        found = wait(made) if isinstance(made, _engine.Job) else made
        q, k, v = self.arrays[:3]
        of_heads = self.shape[:-1]
        shapes = (
            q.shape, k.shape, None if v is None else v.shape, (*self.shape, k.shape[-2]), of_heads,
            of_heads, of_heads,
        )  # fmt: skip
        return [
            one.reshape(shape) if want else None
            for one, shape, want in zip(found, shapes, wanted, strict=True)
        ]


@functools.cache
def _functions() -> Any:
    """The function of PyTorch's autograd whose two passes are the engine's."""
    import torch

    def call(rule: Rule, unseen: Any, tensors: Any) -> _Call:
        q, k, v, bias, sink, alibi, softcap = (None if one is None else one.detach().numpy() for one in tensors)
        if softcap is not None:
            rule = replace(rule, softcap=float(softcap))
        return _Call((q, k, v, bias, unseen), sink, alibi, rule)

    class Gradients(torch.autograd.Function):  # type: ignore[misc,unused-ignore]
        @staticmethod
        def forward(
            ctx: Any, rule: Rule, unseen: Any, wanted: Any, by_z: Any, by_sums: Any, *tensors: Any
        ) -> Any:
            found = call(rule, unseen, tensors).gradients(
                by_z.detach().numpy(), by_sums.detach().numpy(), list(wanted)
            )
            return tuple(
                None if one is None else torch.from_numpy(one).to(of.dtype).sum_to_size(of.shape)
                for one, of in zip(found, tensors, strict=True)
            )

        @staticmethod
        def backward(ctx: Any, *_: Any) -> Any:
            raise RuntimeError("headlab: attention has no second derivatives - leave create_graph out")

    class Attention(torch.autograd.Function):  # type: ignore[misc,unused-ignore]
        @staticmethod
        def forward(ctx: Any, rule: Rule, unseen: Any, *tensors: Any) -> Any:
            ctx.rule, ctx.unseen = rule, unseen
            ctx.save_for_backward(*tensors)
            return tuple(torch.from_numpy(one) for one in call(rule, unseen, tensors).values())

        @staticmethod
        def backward(ctx: Any, *upstream: Any) -> Any:
            wanted = ctx.needs_input_grad[2:]
            found = Gradients.apply(ctx.rule, ctx.unseen, wanted, *upstream, *ctx.saved_tensors)
            return (None, None, *found)

    return Attention


def attend(
    q: Any, k: Any, v: Any, bias: Any = None, unseen: Any = None, sink: Any = None, alibi: Any = None,
    softcap: Any = None, *, rule: Rule,
) -> tuple[Any, Any]:  # fmt: skip
    """Values [..., H, T, e] and log sums [..., H, T] of arrays of one kind, in NumPy or PyTorch.

    Without values the weights [..., H, T, S]. A soft cap is a tensor here, a number in the rule.
    """
    if is_tensor(q):
        return _functions().apply(rule, unseen, q, k, v, bias, sink, alibi, softcap)  # type: ignore[no-any-return]
    return _Call((q, k, v, bias, unseen), sink, alibi, rule).values()


def require_seen(sums: Any, empty: str, names: str) -> None:
    """Rejects queries that see no key, by the index of the first."""
    import numpy as np

    if empty == "zero":
        return
    none = np.isneginf(sums.detach().numpy() if is_tensor(sums) else sums)
    if none.any():
        at = ", ".join(str(int(i)) for i in np.argwhere(none)[0])
        raise ScenarioError(
            f"mask: query [{at}] of {names} sees no key ({int(none.sum())} of {none.size}) - "
            'empty="zero" gives 0'
        )


def _require_fit(array: Any, key: str, shape: tuple[int, int, int]) -> Any:
    """An array [..., H or 1, T or 1, S], of which [T, S] is for all heads."""
    given = array.shape
    if array.ndim == 2:
        array = array[None]
    heads, queries, keys = shape
    fits = array.ndim >= 3 and array.shape[-1] == keys
    if not (fits and array.shape[-2] in (1, queries) and array.shape[-3] in (1, heads)):
        raise ScenarioError(
            f"{key}: has shape {tuple(given)}, needs [..., {heads} or 1, {queries} or 1, {keys}]"
        )
    return array


def unseen_of(mask: Any, shape: tuple[int, int, int]) -> NDArray[Any]:
    """Keys that are not seen [..., H or 1, T or 1, S]."""
    mask = _host_array(mask, "mask")
    if mask.dtype != bool:
        raise ScenarioError(
            f"mask: is of {mask.dtype}, needs booleans, True where a key is seen (what is added is the bias)"
        )
    unseen: NDArray[Any] = ~_require_fit(mask, "mask", shape)
    return unseen


def _behind(length: Any, keys: int) -> NDArray[Any]:
    """Keys that are padding [..., 1, 1, S]."""
    import numpy as np

    count = _host_array(length, "length")
    if count.dtype != np.int64 or (count < 0).any() or (count > keys).any():
        raise ScenarioError(f"length: needs whole numbers from 0 to {keys}")
    behind: NDArray[Any] = np.arange(keys) >= count[..., None, None, None]
    return behind


def _require_leads(**arrays: Any) -> None:
    try:
        _lead(*(one for one in arrays.values() if one is not None))
    except ValueError:
        shapes = ", ".join(f"{key} {tuple(one.shape)}" for key, one in arrays.items() if one is not None)
        raise ScenarioError(f"q: leading axes do not fit together: {shapes}") from None


def _of_heads(value: Any, key: str, numbers: Numbers, heads: int) -> Any:
    if value is None:
        return None
    value = numbers.read(value, key)
    if tuple(value.shape) != (heads,):
        raise ScenarioError(f"{key}: has shape {tuple(value.shape)}, needs [{heads}], a number for each head")
    return value


def _one_number(numbers: Numbers, tensor: Any, key: str) -> Any:
    """A tensor of one number above 0, without axes."""
    tensor = numbers.read(tensor, key)
    positive(tensor.detach(), key)
    return tensor.reshape(())


def positive(value: Any, key: str) -> float:
    """A number above 0, of Python or in an array."""
    try:
        number = float(value)
    except (TypeError, ValueError, RuntimeError):  # the last of tensors of several numbers
        raise ScenarioError(f"{key}: is {type(value).__name__}, needs a number above 0") from None
    if not 0 < number < math.inf:
        raise ScenarioError(f"{key}: is {number}, needs a number above 0")
    return number


def attention(
    q: Any,
    k: Any,
    v: Any,
    *,
    scale: Any = None,
    mask: Any = None,
    window: int | None = None,
    softcap: Any = None,
    bias: Any = None,
    alibi: Any = None,
    sink: Any = None,
    length: Any = None,
    leave_one_out: bool = False,
    need: Literal["z", "lse", "omega"] = "z",
    empty: Literal["raise", "zero"] = "raise",
    threads: int | None = None,
) -> Any:
    """Attention of heads whose queries, keys and values are given, with gradients.

    Each head is a Nadaraya-Watson regression of the values on the keys, with the kernel exp(scale q.k)::

        u = scale q_ht . k_gs                        g = h G // H
        u = softcap tanh(u / softcap)
        u = u + bias + alibi_h (s - p)               p = t + S - T, where query t stands
        z_ht = sum_s exp(u) v_gs / (sum_s exp(u) + exp(sink_h))

    :param q (array or tensor [..., H, T, k]): Queries of H heads. Leading axes of all arrays are broadcast, and [T, k]
        is one head.
    :param k, v (array or tensor [..., G, S, k] and [..., G, S, e]): Keys and values of G groups: G divides H, and
        neighbouring heads share a group.
    :param scale (float or tensor of one number, optional): k**-0.5 without it.
    :param mask ("causal" or booleans [..., H or 1, T, S], optional): True where a key is seen; "causal": keys up to p.
        PyTorch's ``is_causal`` counts from the first key and differs where T < S. Without it all keys are seen.
    :param window (int, optional): Without the keys before the last so many up to and with p. Those after p are the
        mask's.
    :param softcap (float or tensor of one number, optional): In units of the logits.
    :param bias (array or tensor [..., H or 1, T or 1, S], optional): Added to the logits. Below -6e4 a key is not
        seen, as in additive masks.
    :param alibi, sink (array or tensor [H], optional): Slopes by position; further logits that take weight.
    :param length (array [...], optional): Keys of each sequence that are valid; those behind them are padding.
    :param leave_one_out (bool, optional): Without the key at p.
    :param need ("z", "lse" or "omega"): The values; the logarithms of the sums of exponentials, the sink's with them;
        or the overlap of heads, sum_s w_hts w_lts, which takes memory for all weights. v counts for "z" alone.
    :param empty ("raise" or "zero"): What becomes of queries that see no key: an error with the index of the first, or
        values and overlaps of 0 and a logarithm of -inf.
    :returns array or tensor [..., H, T, e]; [..., H, T] for "lse", [..., T, H, H] for "omega": In the type of q and on
        its device. Tensors of PyTorch come back as tensors through which gradients flow to every argument that is a
        tensor of real numbers; there are no second derivatives. Computed on the host in float64 for float64, otherwise
        in float32.
    :raises ScenarioError: Shapes that do not fit, numbers that are not finite, a query that sees no key.
    :warns HeadlabWarning: Tensors of another device are copied to the host, and the result back.

    Examples
    --------
    >>> import numpy as np
    >>> q = k = v = np.eye(2)[None]
    >>> attention(q, k, v, scale=1.0, mask="causal").round(3).tolist()
    [[[1.0, 0.0], [0.269, 0.731]]]
    """
    numbers = Numbers(q, "q", (k, v, scale, softcap, bias, alibi, sink))
    if need not in ("z", "lse", "omega"):
        raise ScenarioError(f'need: is {need!r} (allowed: "z", "lse", "omega")')
    if empty not in ("raise", "zero"):
        raise ScenarioError(f'empty: is {empty!r} (allowed: "raise", "zero")')
    q, k, v = (numbers.read(one, key) for one, key in ((q, "q"), (k, "k"), (v, "v")))
    plain = q.ndim == 2
    if plain:
        q, k, v = (one[None] if one.ndim == 2 else one for one in (q, k, v))
    for one, key, axes in ((q, "q", "H, T, k"), (k, "k", "G, S, k"), (v, "v", "G, S, e")):
        if one.ndim < 3:
            raise ScenarioError(f"{key}: has shape {tuple(one.shape)}, needs [..., {axes}]")
    heads, queries, width = q.shape[-3:]
    groups, keys = k.shape[-3:-1]
    if k.shape[-1] != width:
        raise ScenarioError(f"k: has {counted(k.shape[-1], 'coordinate')}, q has {width}")
    if tuple(v.shape[-3:-1]) != (groups, keys):
        raise ScenarioError(f"v: has {v.shape[-3]} x {v.shape[-2]} rows, k has {groups} x {keys}")
    if heads % groups:
        raise ScenarioError(f"k: has {counted(groups, 'group')}, which do not divide the {counted(heads, 'head')} of q")
    rule = Rule(threads=threads, leave_own_out=flag("leave_one_out", leave_one_out))
    if isinstance(mask, str) and mask != "causal":
        raise ScenarioError(f'mask: is {mask!r} (allowed: "causal", booleans, None)')
    rule = replace(rule, causal=isinstance(mask, str))
    if window is not None:
        rule = replace(rule, window=index("window", window))
        if rule.window < 1:
            raise ScenarioError(f"window: is {window}, needs 1 or more")
    if queries > keys and (rule.causal or rule.window or rule.leave_own_out or alibi is not None):
        raise ScenarioError(f"q: has {counted(queries, 'query', 'queries')}, more than the {counted(keys, 'key')} among which they stand")
    if is_tensor(softcap):
        softcap = _one_number(numbers, softcap, "softcap")
    elif softcap is not None:
        rule, softcap = replace(rule, softcap=positive(softcap, "softcap")), None
    if is_tensor(scale):
        q = q * _one_number(numbers, scale, "scale")
    else:
        rule = replace(rule, scale=width**-0.5 if scale is None else positive(scale, "scale"))
    shape = (heads, queries, keys)
    unseen = None if mask is None or rule.causal else unseen_of(mask, shape)
    if length is not None:
        behind = _behind(length, keys)
        unseen = behind if unseen is None else unseen | behind
    bias = None if bias is None else _require_fit(numbers.read(bias, "bias", added=True), "bias", shape)
    alibi, sink = (_of_heads(one, key, numbers, heads) for one, key in ((alibi, "alibi"), (sink, "sink")))
    _require_leads(q=q, k=k, v=v if need == "z" else None, bias=bias, mask=unseen)
    if need != "z":  # values of the first sequence, as narrow as can be, or none: the weights
        v = v[(0,) * (v.ndim - 3)][..., :1] if need == "lse" else None
    z, sums = attend(q, k, v, bias, unseen, sink, alibi, softcap, rule=rule)
    require_seen(sums, empty, "[..., H, T]")
    if need == "omega":
        weights = z.swapaxes(-3, -2)
        z = weights @ weights.swapaxes(-2, -1)
    elif need == "lse":
        z = sums if numbers.tensors else sums.astype(z.dtype)
    alone = plain and z.ndim == {"z": 3, "lse": 2, "omega": 0}[need]
    return numbers.give(z[0] if alone else z)

# SPDX-License-Identifier: Apache-2.0
"""Every combination of options of hl.attention and hl.nw against its formula in PyTorch, with gradients."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import headlab as hl
import numpy as np
import pytest

torch = pytest.importorskip("torch")

#: Sums of at most 60 numbers of size 1 in float64 on both sides, and their products.
CLOSE = 1e-13
HEADS, GROUPS, QUERIES, KEYS = 4, 2, 5, 6

Given = dict[str, Any]


def tensor(*shape: int) -> Any:
    random = np.random.default_rng([1, *shape])
    return torch.tensor(random.normal(size=shape), requires_grad=True)


def number(value: float) -> Any:
    return torch.tensor(value, dtype=torch.float64, requires_grad=True)


def distance(found: Any, wanted: Any) -> float:
    """Relative where numbers are above 1; infinite for NaN, and where infinities differ."""
    assert found.shape == wanted.shape
    off = torch.where(found == wanted, 0.0, (found - wanted).abs() / wanted.abs().clamp(min=1))
    return float(torch.nan_to_num(off, nan=math.inf).max())


def softmax_over_seen(u: Any, seen: Any, sink: Any) -> tuple[Any, Any]:
    """Weights and log sums, 0 and -infinity where nothing is seen."""
    some = seen.any(-1)
    u = torch.where(seen, u, -torch.inf)
    if sink is not None:
        u = torch.cat((u, torch.where(some, sink[:, None], -torch.inf)[..., None]), -1)
    u = torch.where(some[..., None], u, 0.0)
    log_sums = torch.where(some, u.logsumexp(-1), -torch.inf)
    weights = u.softmax(-1)[..., : seen.shape[-1]]
    return torch.where(seen, weights, 0.0), log_sums


def formula(given: Given) -> Any:
    """What the docstring of hl.attention says, with whole matrices."""
    q, k, v = (given[key] for key in "qkv")
    k, v = (one.repeat_interleave(HEADS // GROUPS, -3) for one in (k, v))
    u = given["scale"] * (q @ k.mT)
    if (cap := given["softcap"]) is not None:
        u = cap * torch.tanh(u / cap)
    if given["bias"] is not None:
        u = u + given["bias"]
    s, p = torch.arange(KEYS), torch.arange(QUERIES)[:, None] + KEYS - QUERIES
    if given["alibi"] is not None:
        u = u + given["alibi"][:, None, None] * (s - p)
    seen = torch.ones(u.shape, dtype=torch.bool)
    if isinstance(given["mask"], str):
        seen = seen & (s <= p)
    elif given["mask"] is not None:
        seen = seen & given["mask"]
    if given["window"] is not None:
        seen = seen & (s > p - given["window"])
    if given["leave_one_out"]:
        seen = seen & (s != p)
    if given["length"] is not None:
        seen = seen & (s < given["length"][:, None, None, None])
    w, log_sums = softmax_over_seen(u, seen, given["sink"])
    if given["need"] == "lse":
        return log_sums
    return torch.einsum("...hts,...lts->...thl", w, w) if given["need"] == "omega" else w @ v


def combinations(need: str) -> Iterator[Given]:
    choices: dict[str, list[Any]] = {
        "scale": [0.7, number(0.6)], "mask": [None, "causal", tensor(HEADS, QUERIES, KEYS).detach() < 0.7],
        "window": [None, 3], "softcap": [None, 1.5, number(0.9)], "bias": [None, tensor(HEADS, 1, KEYS)],
        "alibi": [None, tensor(HEADS)], "sink": [None, tensor(HEADS)], "length": [None, torch.tensor([6, 4])],
        "leave_one_out": [False, True],
    }  # fmt: skip
    arrays = {"q": tensor(2, HEADS, QUERIES, 3), "k": tensor(2, GROUPS, KEYS, 3), "v": tensor(2, 1, GROUPS, KEYS, 2)}
    for chosen in itertools.product(*choices.values()):
        yield {**arrays, "need": need, **dict(zip(choices, chosen, strict=True))}


def attention(given: Given) -> Any:
    return hl.attention(**given, empty="zero")


def gradients(of: Any, by: list[Any]) -> list[Any]:
    """Of a sum with given factors; infinite values are those of queries that see nothing."""
    factors = torch.linspace(-1, 1, of.numel(), dtype=of.dtype).reshape(of.shape)
    total = (factors * torch.where(of.isfinite(), of, 0.0)).sum()
    return list(torch.autograd.grad(total, by, materialize_grads=True))


def differences(found: Any, wanted: Any, tracked: list[Any]) -> list[float]:
    assert found.requires_grad
    pairs = zip(gradients(found, tracked), gradients(wanted, tracked), strict=True)
    return [distance(found.detach(), wanted.detach()), *(distance(*pair) for pair in pairs)]


def tracked_of(given: Given) -> list[Any]:
    return [one for one in given.values() if isinstance(one, torch.Tensor) and one.requires_grad]


@pytest.mark.parametrize("need", ["z", "lse", "omega"])
def test_attention_is_its_formula_with_every_combination_of_options(need: str) -> None:
    count = 0
    for given in combinations(need):
        found = differences(attention(given), formula(given), tracked_of(given))
        assert max(found) <= CLOSE, {key: one for key, one in given.items() if key not in "qkv"}
        count += 1
    assert count == 2 * 3 * 2 * 3 * 2 * 2 * 2 * 2 * 2


@pytest.mark.parametrize("changed", ["scale", "softcap", "bias", "alibi", "sink", "q", "k", "v"])
def test_the_walk_sees_a_number_that_is_one_part_in_a_million_off(changed: str) -> None:
    given = list(combinations("z"))[-1]
    off = {**given, changed: given[changed] * (1 + 1e-6)}
    assert max(differences(attention(given), formula(off), [given["q"], given["v"]])) > 10 * CLOSE


@pytest.mark.parametrize("need", ["z", "lse", "omega"])
def test_a_gradient_reaches_each_argument_alone(need: str) -> None:
    given = list(combinations(need))[-1]
    for key, one in given.items():
        if not (isinstance(one, torch.Tensor) and one.requires_grad) or (key == "v" and need != "z"):
            continue
        plain = {name: each.detach() if isinstance(each, torch.Tensor) else each for name, each in given.items()}
        for others in (plain, {n: each.numpy() if isinstance(each, torch.Tensor) else each for n, each in plain.items()}):
            alone = {**others, key: one}
            assert distance(*(gradients(each, [one])[0] for each in (attention(alone), formula({**plain, key: one})))) <= CLOSE
        assert not attention(plain).requires_grad


def gradcheck(names: list[str], given: Given, function: Any) -> bool:
    tensors = [given[name] for name in names]
    return bool(torch.autograd.gradcheck(lambda *a: function({**given, **dict(zip(names, a, strict=True))}), tensors))


@pytest.mark.parametrize("need", ["lse", "omega"])
def test_other_outputs_have_the_gradients_of_finite_differences(need: str) -> None:
    given = {**list(combinations(need))[-1], "mask": "causal", "leave_one_out": False, "length": None}
    names = [name for name, one in given.items() if isinstance(one, torch.Tensor) and name != "v"]
    assert gradcheck(names, given, attention)


def estimate(given: Given) -> Any:
    kernel = {"law": given["law"], "temperature" if given["law"] == "softmax" else "bandwidth": given["parameter"]}
    options = {key: given[key] for key in ("query_heads", "mask", "leave_one_out", "per_head")}
    return hl.nw(given["X"], given["Y"], given["queries"], given["heads"], kernel, empty="zero", **options)


def estimate_by_formula(given: Given) -> Any:
    x, y, at, w = (given[key] for key in ("X", "Y", "queries", "heads"))
    k = x[..., None, :, :] @ w
    q = at[..., None, :, :] @ (w if given["query_heads"] is None else given["query_heads"])
    t = given["parameter"]
    if given["law"] == "softmax":
        u = q @ k.mT / t
    else:
        u = -((q[..., :, None, :] - k[..., None, :, :]) ** 2).sum(-1) / (2 * t**2)
    n, j = torch.arange(KEYS), torch.arange(QUERIES)[:, None] + KEYS - QUERIES
    seen = torch.ones(u.shape, dtype=torch.bool)
    if isinstance(given["mask"], str):
        seen = seen & (n <= j)
    elif given["mask"] is not None:
        seen = seen & given["mask"]
    if given["leave_one_out"]:
        seen = seen & (n != j)
    weights, _ = softmax_over_seen(u, seen, None)
    vector = y.ndim == x.ndim + given["per_head"]
    columns = y if vector else y[..., None]
    found = weights @ (columns if given["per_head"] else columns[..., None, :, :])
    return found if vector else found[..., 0]


def choices_of_nw() -> Iterator[Given]:
    choices: dict[str, list[Any]] = {
        "law": ["gaussian", "softmax"], "parameter": [1.1, number(0.9)],
        "mask": [None, "causal", tensor(2, QUERIES, KEYS).detach() < 0.7], "leave_one_out": [False, True],
        "per_head": [False, True], "query_heads": [None, tensor(2, 3, 2)], "p": [0, 4],
    }  # fmt: skip
    arrays = {"X": tensor(2, KEYS, 3), "queries": tensor(QUERIES, 3), "heads": tensor(2, 3, 2).detach().add(0.5)}
    arrays["heads"].requires_grad_()
    for chosen in itertools.product(*choices.values()):
        given = {**arrays, **dict(zip(choices, chosen, strict=True))}
        p = given.pop("p")
        heads = (2,) if given["per_head"] else ()
        yield {**given, "Y": tensor(2, *heads, KEYS, *((p,) if p else ()))}


def test_nw_is_its_formula_with_every_combination_of_options() -> None:
    count = 0
    for given in choices_of_nw():
        if given["law"] == "gaussian" and given["query_heads"] is not None:
            with pytest.raises(hl.ScenarioError, match="^query_heads: are for the softmax kernel"):
                estimate(given)
            continue
        found = differences(estimate(given), estimate_by_formula(given), tracked_of(given))
        assert max(found) <= CLOSE, {key: one for key, one in given.items() if not isinstance(one, torch.Tensor)}
        count += 1
    assert count == 3 * (2 * 3 * 2 * 2 * 2)
    off = {**given, "parameter": given["parameter"] * (1 + 1e-6)}
    assert max(differences(estimate(given), estimate_by_formula(off), [given["X"]])) > 10 * CLOSE


class OnGpu(torch.Tensor):  # type: ignore[misc]
    """A tensor whose numbers are on the host, and which says that they are on a GPU."""

    @property
    def device(self) -> Any:  # type: ignore[override]
        return torch.device("cuda", 0)


@pytest.fixture
def pretended_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies between the host and a GPU that is none."""
    plain = torch.Tensor.to

    def to(self: Any, *args: Any, device: Any = None, **more: Any) -> Any:
        found = plain(self, *args, **more) if args or more else self
        return found if device is None or torch.device(device).type == "cpu" else found.as_subclass(OnGpu)

    monkeypatch.setattr(torch.Tensor, "to", to)
    monkeypatch.setattr(OnGpu, "cpu", lambda self: self.as_subclass(torch.Tensor), raising=False)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_tensors_of_a_gpu_are_copied_there_and_back(dtype: Any, pretended_gpu: None) -> None:
    here = [tensor(2, 5, 3).detach().to(dtype).requires_grad_() for _ in range(3)]
    there = [one.detach().as_subclass(OnGpu).requires_grad_() for one in here]
    with pytest.warns(hl.HeadlabWarning, match=": copied from cuda:0 to the host") as told:
        found = hl.attention(*there, mask=torch.ones(5, 5, dtype=torch.bool).as_subclass(OnGpu))
    assert [str(one.message).split(":")[0] for one in told] == ["q", "k", "v", "mask"]
    assert {one.filename for one in told} == {__file__}
    wanted = hl.attention(*here)
    assert (found.dtype, found.device.type, wanted.device.type) == (dtype, "cuda", "cpu")
    assert torch.equal(found.as_subclass(torch.Tensor), wanted)
    found.square().sum().backward()
    wanted.square().sum().backward()
    for mine, other in zip(there, here, strict=True):
        assert mine.grad.dtype == dtype
        assert torch.equal(mine.grad.as_subclass(torch.Tensor), other.grad)
    with pytest.warns(hl.HeadlabWarning, match="^X: copied from cuda:0 to the host") as told:
        found = hl.nw(there[0][0], here[0][0, :, 0], here[0][0], np.ones((1, 3, 1)), {"law": "gaussian", "bandwidth": 1.0})
    assert {one.filename for one in told} == {__file__}
    assert (found.dtype, found.device.type, found.requires_grad) == (dtype, "cuda", True)


@pytest.mark.parametrize(
    ("made", "line"),
    [
        (lambda one: one.to("meta"), "is a tensor on meta, where it has no numbers"),
        (lambda one: one.to_sparse(), "is a tensor of torch.sparse_coo - make it dense, as .to_dense"),
    ],
)
@pytest.mark.parametrize("key", ["q", "k", "v", "bias", "sink", "alibi", "scale", "softcap", "mask", "length"])
def test_tensors_that_cannot_be_read_are_refused_by_name(key: str, made: Any, line: str) -> None:
    given = {key: one.detach() if isinstance(one, torch.Tensor) else one for key, one in list(combinations("z"))[-1].items()}
    given = {**given, key: made(given[key])}
    with pytest.raises(hl.ScenarioError, match=f"^{key}: {line}"):
        attention(given)

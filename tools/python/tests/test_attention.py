# SPDX-License-Identifier: Apache-2.0
"""hl.attention and hl.nw on tensors: known answers, gradients, PyTorch's own attention."""

from __future__ import annotations

import doctest
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import headlab as hl

ROOT = Path(__file__).resolve().parents[3]
EXACT = 1e-12  # of the largest entry, in float64


def known(name: str) -> tuple[dict[str, Any], dict[str, Any]]:
    path = ROOT / "validation/testdata/known-answers-real.json"
    case = json.loads(path.read_text())["cases"][name]
    return case["given"], case["expected"]


def distance(found: Any, wanted: Any) -> float:
    found, wanted = np.asarray(found, float), np.asarray(wanted, float)
    assert found.shape == wanted.shape
    return float(np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max()))


def numbers(*shape: int, seed: int = 1) -> NDArray[np.float64]:
    return np.random.default_rng([seed, *shape]).normal(size=shape)


@pytest.mark.parametrize(
    "name", ["causal", "full", "window", "softcap", "sink", "bias", "padded", "leave_one_out", "custom", "queries_at_the_end"]
)
def test_has_the_known_values(name: str) -> None:
    given, expected = known(f"attention_{name}")
    q, k, v = (np.array(given[key]) for key in "qkv")
    mask = given["mask"] if not isinstance(given["mask"], list) else np.array(given["mask"])
    more = {key: given[key] for key in ("window", "softcap", "sink", "bias", "length") if key in given}
    more["leave_one_out"] = "exclude_self" in given
    found = hl.attention(q, k, v, scale=given["scale"], mask=mask, **more)
    assert distance(found, expected["z"]) <= EXACT
    assert found.dtype == np.float64
    single = hl.attention(*(a.astype(np.float32) for a in (q, k, v)), scale=given["scale"], mask=mask, **more)
    assert single.dtype == np.float32
    assert distance(single, expected["z"]) <= 2e-6


def of_known(given: dict[str, Any], law: str, torch: Any) -> tuple[Any, dict[str, Any]]:
    tensors = {
        key: torch.tensor(given[key], dtype=torch.float64, requires_grad=True)
        for key in ("X", "Y", "queries", "heads", "query_heads", "parameter")
        if key in given
    }
    parameter = {"softmax": "temperature", "gaussian": "bandwidth"}[law]
    found = hl.nw(
        tensors["X"], tensors["Y"], tensors["queries"], tensors["heads"],
        {"law": law, parameter: tensors["parameter"]}, query_heads=tensors.get("query_heads"),
    )  # fmt: skip
    return found, tensors


@pytest.mark.parametrize("law", ["softmax", "gaussian"])
def test_has_the_known_estimates_and_gradients(law: str) -> None:
    torch = pytest.importorskip("torch")
    given, expected = known(f"nw_{law}")
    found, tensors = of_known(given, law, torch)
    assert found.dtype == torch.float64
    assert distance(found.detach(), expected["estimate"]) <= EXACT
    (found * torch.tensor(given["upstream"], dtype=torch.float64)).sum().backward()
    for key, tensor in tensors.items():
        assert distance(tensor.grad, expected[f"grad_{key}"]) <= EXACT, key
    # NumPy has the same estimates.
    arrays = {key: tensor.detach().numpy() for key, tensor in tensors.items()}
    kernel = {"law": law, "temperature" if law == "softmax" else "bandwidth": given["parameter"]}
    plain = hl.nw(
        arrays["X"], arrays["Y"], arrays["queries"], arrays["heads"], kernel, query_heads=arrays.get("query_heads")
    )
    assert isinstance(plain, np.ndarray)
    assert distance(plain, expected["estimate"]) <= EXACT


def test_gradients_of_attention_are_those_of_finite_differences() -> None:
    torch = pytest.importorskip("torch")
    t = lambda *shape: torch.tensor(numbers(*shape), requires_grad=True)  # noqa: E731
    q, k, v = t(2, 4, 5, 3), t(2, 2, 6, 3), t(2, 1, 2, 6, 2)  # leading axes [2, 2]
    more = {"bias": t(4, 1, 6), "sink": t(4), "alibi": t(4), "scale": torch.tensor(0.7, dtype=torch.float64, requires_grad=True)}

    def call(q: Any, k: Any, v: Any, *rest: Any, **options: Any) -> Any:
        return hl.attention(q, k, v, **dict(zip(more, rest, strict=False)), **options)

    for options in ({"mask": "causal"}, {"softcap": 1.5, "window": 3}, {"leave_one_out": True, "length": [5, 6]}):
        assert torch.autograd.gradcheck(lambda *a, o=options: call(*a, **o), (q, k, v, *more.values()))
    mask = torch.rand(4, 5, 6, generator=torch.Generator().manual_seed(0)) < 0.7
    assert torch.autograd.gradcheck(lambda *a: call(*a, mask=mask, empty="zero"), (q, k, v))


@pytest.mark.parametrize("law", ["softmax", "gaussian"])
def test_gradients_of_nw_are_those_of_finite_differences(law: str) -> None:
    torch = pytest.importorskip("torch")
    t = lambda *shape: torch.tensor(numbers(*shape), requires_grad=True)  # noqa: E731
    parameter = torch.tensor(1.2, dtype=torch.float64, requires_grad=True)
    key = "temperature" if law == "softmax" else "bandwidth"

    def call(x: Any, y: Any, at: Any, w: Any, parameter: Any, **options: Any) -> Any:
        return hl.nw(x, y, at, w, {"law": law, key: parameter}, **options)

    x, at, w = t(2, 6, 3), t(4, 3), t(2, 3, 2)
    for y, options in (
        (t(2, 6), {"mask": "causal"}),
        (t(2, 6, 2), {"leave_one_out": True}),
        (t(2, 2, 6), {"per_head": True}),
        (t(2, 2, 6, 3), {"per_head": True, "mask": np.eye(4, 6, 1, dtype=bool) | np.eye(4, 6, dtype=bool)}),
    ):
        assert torch.autograd.gradcheck(lambda *a, o=options: call(*a, **o), (x, y, at, w, parameter))


def test_is_the_attention_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    theirs = torch.nn.functional.scaled_dot_product_attention
    tensors = [torch.tensor(numbers(2, 6, 40, 8, seed=i), dtype=torch.float32, requires_grad=True) for i in range(3)]
    own = hl.attention(*tensors, mask="causal")
    other = theirs(*tensors, is_causal=True)
    assert (own.dtype, own.shape, own.device) == (other.dtype, other.shape, other.device)
    assert distance(own.detach(), other.detach()) <= 2e-6
    upstream = torch.tensor(numbers(2, 6, 40, 8), dtype=torch.float32)
    # Sums of 40 numbers of size 1, rounded to float32 on both sides.
    for mine, of_torch in zip(
        torch.autograd.grad(own, tensors, upstream), torch.autograd.grad(other, tensors, upstream), strict=True
    ):
        assert distance(mine, of_torch) <= 1e-5
    with torch.no_grad():
        assert not hl.attention(*tensors).requires_grad
    half = [one.detach().bfloat16() for one in tensors]
    assert hl.attention(*half).dtype == torch.bfloat16
    assert hl.attention(*(one[0, 0] for one in tensors)).shape == (40, 8)


def test_tensors_stay_tensors() -> None:
    torch = pytest.importorskip("torch")
    x, y, at, w = numbers(30, 4), numbers(30), numbers(5, 4), numbers(3, 4, 2)
    for law in ({"law": "gaussian", "bandwidth": 1.0}, {"law": "triangular", "bandwidth": 9.0}):
        wanted = hl.nw(x.astype(np.float32), y, at, w, law)
        for kind in (torch.float32, torch.float64, torch.float16):
            found = hl.nw(torch.tensor(x).to(kind), y, at, w, law)
            assert (found.dtype, tuple(found.shape)) == (kind, (3, 5))
            assert distance(found, wanted) <= (1e-2 if kind == torch.float16 else 1e-5)


def test_nothing_that_requires_a_gradient_comes_back_without() -> None:
    torch = pytest.importorskip("torch")
    x, y, at, w = (torch.tensor(one) for one in (numbers(30, 4), numbers(30), numbers(5, 4), numbers(3, 4, 2)))
    gaussian = {"law": "gaussian", "bandwidth": 1.0}
    for one in (x, y, at, w):
        one.requires_grad_()
        assert hl.nw(x, y, at, w, gaussian).requires_grad
        with pytest.raises(hl.ScenarioError, match="^gradients: are for the gaussian and the softmax kernel, not for epanechnikov"):
            hl.nw(x, y, at, w, {"law": "epanechnikov", "bandwidth": 9})
        one.requires_grad_(False)
    q = torch.tensor(numbers(1, 5, 4), requires_grad=True)
    width = torch.tensor(9.0, requires_grad=True)
    with pytest.raises(hl.ScenarioError, match="^gradients: are for the gaussian and the softmax kernel, not for epanechnikov"):
        hl.nw(x, y, at, w, {"law": "epanechnikov", "bandwidth": width})
    assert not hl.nw(x, y, at, w, {"law": "epanechnikov", "bandwidth": width.detach()}).requires_grad


def test_what_has_no_derivative_is_refused_by_name() -> None:
    torch = pytest.importorskip("torch")
    q = torch.tensor(numbers(1, 5, 4), requires_grad=True)

    def total(q: Any) -> Any:
        return hl.attention(q, q, q).square().sum()

    none = pytest.raises(RuntimeError, match="headlab: attention has no second derivatives")
    (first,) = torch.autograd.grad(total(q), q, create_graph=True)
    with none:
        first.sum().backward()
    with none:  # derivatives by what comes from above
        torch.autograd.functional.jvp(total, q, q)
    with none:
        torch.autograd.functional.hessian(total, q)
    for transform in (torch.func.grad, torch.func.vmap, torch.func.jacfwd):
        with pytest.raises(hl.ScenarioError, match="^q: is a tensor of torch.func, which cannot transform headlab"):
            transform(total)(q.detach())


def test_shapes_of_responses_and_batches() -> None:
    x, at, w = numbers(2, 1, 20, 4), numbers(3, 5, 4), numbers(2, 4, 2)
    gaussian = {"law": "gaussian", "bandwidth": 1.0}
    y = numbers(2, 1, 20, 6)
    found = hl.nw(x, y, at, w, gaussian)
    assert found.shape == (2, 3, 2, 5, 6)
    one = hl.nw(x[1, 0], y[1, 0, :, 4], at[2], w, gaussian)
    assert distance(found[1, 2, :, :, 4], one) <= EXACT
    per_head = numbers(2, 1, 2, 20)
    found = hl.nw(x, per_head, at, w, gaussian, per_head=True)
    assert found.shape == (2, 3, 2, 5)
    assert distance(found[0, 1, 1], hl.nw(x[0, 0], per_head[0, 0, 1], at[1], w[1:], gaussian)[0]) <= EXACT
    # The engine's own windows, for kernels without gradients.
    flat = {"law": "epanechnikov", "bandwidth": 3.0}
    found = hl.nw(x, y, at, w, flat)
    assert found.shape == (2, 3, 2, 5, 6)
    single = hl.nw(x[1, 0].astype(np.float32), y[1, 0, :, 4], at[2], w, flat)
    assert np.array_equal(found[1, 2, :, :, 4], single)
    found = hl.nw(x, per_head, at, w, flat, per_head=True)
    assert np.array_equal(found[0, 1, 1], hl.nw(x[0, 0].astype(np.float32), per_head[0, 0, 1], at[1], w[1:], flat)[0])


@pytest.mark.parametrize("bandwidth", [3.0, 0.3, 0.03])
def test_vectors_in_float32_are_right_near_and_far(bandwidth: float) -> None:
    """Products of near points, distances of far ones; also where gradients ask for distances."""
    x, at, w, y = numbers(300, 4), numbers(40, 4), numbers(3, 4, 2), numbers(300, 5)
    x, at, w, y = (one.astype(np.float32) for one in (x + 7, at + 7, w, y))
    gaussian = {"law": "gaussian", "bandwidth": bandwidth}
    wanted = hl.nw(x.astype(float), y, at, w, gaussian)
    # Points at 7 with matrices of size 2 are rounded to 2e-6: over the bandwidth, times 4 widths of a window.
    allowed = (2e-6 + 4 * 2e-6 / bandwidth) * float(np.abs(y).max())
    found = hl.nw(x, y, at, w, gaussian)
    assert np.abs(found - wanted).max() <= allowed
    assert np.abs(hl.nw(x, y, at, w, {**gaussian, "bandwidth": 1.1 * bandwidth}) - wanted).max() > 10 * allowed
    torch = pytest.importorskip("torch")
    tracked = hl.nw(torch.from_numpy(x), torch.from_numpy(y).requires_grad_(), at, w, gaussian)
    assert np.abs(tracked.detach().numpy() - wanted).max() <= allowed


def test_bits_do_not_depend_on_threads() -> None:
    x, at, w, y = numbers(700, 4), numbers(333, 4), numbers(3, 4, 2), numbers(700, 5)
    gaussian = {"law": "gaussian", "bandwidth": 1.0}
    one = hl.nw(x, y, at, w, gaussian, threads=1)
    assert np.array_equal(one, hl.nw(x, y, at, w, gaussian, threads=3))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ({"q": np.zeros(3)}, r"q: has shape \(3,\), needs \[..., H, T, k\]"),
        ({"k": np.zeros((2, 6, 4))}, "k: has 4 coordinates, q has 3"),
        ({"k": np.zeros((3, 6, 3)), "v": np.zeros((3, 6, 2))}, "k: has 3 groups, which do not divide the 4 heads of q"),
        ({"v": np.zeros((2, 5, 2))}, "v: has 2 x 5 rows, k has 2 x 6"),
        ({"q": np.full((4, 5, 3), np.nan)}, "q: number 0 is not finite"),
        ({"mask": "full"}, "mask: is 'full'"),
        ({"mask": np.zeros((5, 6))}, "mask: is of float64, needs booleans"),
        ({"mask": np.zeros((5, 6), bool)}, r"mask: query \[0, 0\] of .* sees no key \(20 of 20\)"),
        ({"mask": np.zeros((3, 5, 6), bool)}, r"mask: has shape \(3, 5, 6\), needs \[..., 4 or 1, 5 or 1, 6\]"),
        ({"bias": np.full((5, 6), np.inf)}, "bias: number 0 is not finite"),
        ({"bias": np.zeros((5, 7))}, "bias: has shape"),
        ({"sink": np.zeros(3)}, r"sink: has shape \(3,\), needs \[4\]"),
        ({"scale": 0}, "scale: is 0.0, needs a number above 0"),
        ({"scale": float("nan")}, "scale: is nan"),
        ({"softcap": -1}, "softcap: is -1.0"),
        ({"window": 0}, "window: is 0, needs 1 or more"),
        ({"length": 7}, "length: needs whole numbers from 0 to 6"),
        ({"length": [3, 6], "q": np.zeros((3, 4, 5, 3))}, "q: leading axes do not fit together"),
        ({"q": np.zeros((4, 7, 3)), "mask": "causal"}, "q: has 7 queries, more than the 6 keys"),
        ({"empty": "nan"}, "empty: is 'nan'"),
        ({"need": "weights"}, "need: is 'weights'"),
    ],
)
def test_refuses_with_a_line(arguments: dict[str, Any], line: str) -> None:
    given = {"q": numbers(4, 5, 3), "k": numbers(2, 6, 3), "v": numbers(2, 6, 2), **arguments}
    with pytest.raises(hl.ScenarioError, match="^" + line):
        hl.attention(given.pop("q"), given.pop("k"), given.pop("v"), **given)


def test_bias_hides_keys_as_additive_masks_do() -> None:
    q, k, v = numbers(4, 5, 3), numbers(2, 6, 3), numbers(2, 6, 2)
    seen = np.tril(np.ones((5, 6), bool), 1)
    wanted = hl.attention(q, k, v, mask=seen)
    for low in (-np.inf, np.finfo(np.float64).min, -65504.0):
        assert distance(hl.attention(q, k, v, bias=np.where(seen, 0, low)), wanted) <= EXACT


def test_lse_is_the_logarithm_of_the_sum() -> None:
    q, k, v = numbers(4, 5, 3), numbers(4, 6, 3), numbers(4, 6, 2)
    wanted = np.log(np.exp(q @ k.swapaxes(1, 2) * 0.5).sum(-1))
    assert distance(hl.attention(q, k, v, scale=0.5, need="lse"), wanted) <= EXACT


def test_documentation() -> None:
    from headlab import _attention

    assert doctest.testmod(_attention).failed == 0
    assert doctest.testmod(_attention).attempted > 0

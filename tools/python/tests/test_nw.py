# SPDX-License-Identifier: Apache-2.0
"""hl.nw against the definition in float64."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import headlab as hl

GAUSSIAN = {"law": "gaussian", "bandwidth": 1.3}


def work(n: int = 300, d: int = 5, heads: int = 3, k: int = 2, queries: int = 9) -> tuple[NDArray[Any], ...]:
    random = np.random.default_rng(2)
    return (
        random.normal(size=(n, d)).astype(np.float32),
        (3 + random.normal(size=n)).astype(np.float32),
        random.normal(size=(queries, d)),
        random.normal(size=(heads, d, k)),
    )


def exact(x: Any, y: Any, at: Any, w: Any, log_weight: Any, w_q: Any = None) -> NDArray[Any]:
    keys = np.einsum("nd,hdk->hnk", x.astype(float), w)
    queries = np.einsum("qd,hdk->hqk", at, w if w_q is None else w_q)
    weights = np.exp(log_weight(queries[:, :, None], keys[:, None]))
    estimates: NDArray[Any] = (weights @ y.astype(float)) / weights.sum(-1)
    return estimates


def gaussian(q: Any, key: Any) -> Any:
    return -((q - key) ** 2).sum(-1) / (2 * 1.3**2)


def error(found: NDArray[Any], wanted: NDArray[Any], y: NDArray[Any]) -> float:
    assert found.dtype == np.float32
    assert found.shape == wanted.shape
    return float(np.abs(found - wanted).max() / np.abs(y).max())


def test_is_the_definition() -> None:
    x, y, at, w = work()
    wanted = exact(x, y, at, w, gaussian)
    assert error(hl.nw(x, y, at, w, GAUSSIAN), wanted, y) < 2e-6
    assert error(hl.nw(x, y, at, w, {"law": "gaussian", "bandwidth": 1.301}), wanted, y) > 2e-6


def test_softmax_has_projections_of_queries_of_its_own() -> None:
    x, y, at, w = work()
    w_q = 0.5 * np.flip(w, 0)
    wanted = exact(x, y, at, w, lambda q, key: (q * key).sum(-1) / 2, w_q)
    found = hl.nw(x, y, at, w, {"law": "softmax", "temperature": 2}, query_heads=w_q)
    assert error(found, wanted, y) < 2e-6
    with pytest.raises(hl.ScenarioError, match="^query_heads: are for the softmax kernel"):
        hl.nw(x, y, at, w, GAUSSIAN, query_heads=w_q)


def test_bits_do_not_depend_on_threads_or_on_how_the_work_is_cut() -> None:
    x, y, at, w = work(n=70_000, queries=1300)
    one = hl.nw(x, y, at, w, GAUSSIAN, threads=1)  # 2.7e8 weights: a job
    assert np.array_equal(one, hl.nw(x, y, at, w, GAUSSIAN, threads=3))
    few = hl.nw(x, y, at[:512], w, GAUSSIAN, threads=2)
    assert np.array_equal(one[:, :512], few)


def test_takes_what_arrays_there_are() -> None:
    x, y, at, w = work()
    found = hl.nw(x, y, at, w, GAUSSIAN)
    other = hl.nw(np.asfortranarray(x), y.tolist(), at.tolist(), w.tolist(), GAUSSIAN)
    assert np.array_equal(found, other)
    assert hl.nw(x.tolist(), y, at, w, GAUSSIAN).dtype == np.float64


def test_of_float64_is_exact() -> None:
    x, y, at, w = work()
    found = hl.nw(x.astype(float), y, at, w, GAUSSIAN)
    assert found.dtype == np.float64
    assert np.abs(found - exact(x, y, at, w, gaussian)).max() < 1e-13 * np.abs(y).max()


def test_takes_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    x, y, at, w = work()
    expected = hl.nw(x, y, at, w, GAUSSIAN)
    tensors = (torch.from_numpy(x), torch.from_numpy(y), torch.from_numpy(at))
    assert np.array_equal(hl.nw(*tensors, w, GAUSSIAN), expected)
    assert np.array_equal(hl.nw(*tensors, torch.from_numpy(w).double(), GAUSSIAN), expected)
    # Rows that do not lie one behind the other.
    assert np.array_equal(hl.nw(torch.from_numpy(x.T.copy()).T, *tensors[1:], w, GAUSSIAN), expected)
    with pytest.raises(hl.ScenarioError, match="^X: is a tensor on meta, where it has no numbers"):
        hl.nw(torch.empty(x.shape, device="meta"), *tensors[1:], w, GAUSSIAN)


def test_takes_arrays_of_jax() -> None:
    jax = pytest.importorskip("jax")
    arrays = [one.astype(np.float32) for one in work()]
    found = hl.nw(*(jax.numpy.asarray(one) for one in arrays), GAUSSIAN)
    assert np.array_equal(found, hl.nw(*arrays, GAUSSIAN))


class OnDevice:
    """What an array on a GPU shows."""

    shape = (3,)
    device = "cuda:0"

    def __dlpack__(self) -> None: ...

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, 0)


@pytest.mark.parametrize(
    ("which", "value", "line"),
    [
        (0, np.zeros(3), r"X: has shape \(3,\), needs \[n, d\]"),
        (0, np.zeros((0, 5)), r"X: has shape \(0, 5\), without numbers"),
        (0, np.full((300, 5), np.nan), "X: number 0 is not finite"),
        (0, np.full((300, 5), 1e31), "X: number 0 is beyond 1e30"),
        (0, np.full((300, 5), 1e300), "X: number 0 is beyond 1e30"),
        (1, np.zeros(299), "Y: has 299 numbers, needs 300, one for each row of X"),
        (1, np.full(300, np.inf), "Y: number 0 is not finite"),
        (1, OnDevice(), "Y: is an array on cuda:0"),
        (1, np.full(300, 1j), "Y: is an array of complex128"),
        (2, np.zeros((4, 6)), "queries: have 6 coordinates, X has 5"),
        (2, np.zeros((0, 5)), r"queries: has shape \(0, 5\), without numbers"),
        (3, np.zeros((2, 6, 1)), "heads: are matrices of 6 rows, X has 5 coordinates"),
        (3, np.zeros((2, 5, 0)), r"heads: has shape \(2, 5, 0\), without numbers"),
        (0, [[1, 2], [3]], "X: makes no array"),
        (4, "gaussian", "kernel: is 'gaussian', needs a dict as"),
        (4, {"law": "gausian"}, 'kernel.law: is "gausian" .*did you mean "gaussian"'),
        (4, {"law": "gaussian", "bandwidth": -1}, "kernel.bandwidth: is -1"),
        (4, {"law": "gaussian", "bandwith": 1}, "kernel.bandwith: unknown key"),
    ],
)
def test_refuses_with_a_line(which: int, value: Any, line: str) -> None:
    arguments: list[Any] = [*work(), GAUSSIAN]
    arguments[which] = value
    with pytest.raises(hl.ScenarioError, match="^" + line):
        hl.nw(*arguments)


def test_says_how_many_windows_are_empty() -> None:
    x, y, _, w = work()
    far = np.full((2, 5), 1e4)
    with pytest.warns(hl.HeadlabWarning, match="^6 of 6 windows .* or took the value of the nearest key"):
        found = hl.nw(x, y, far, w, GAUSSIAN)
    assert np.isin(found, y).all()  # the nearest keys


def test_documentation() -> None:
    from headlab import _estimates

    assert doctest.testmod(_estimates).failed == 0
    assert doctest.testmod(_estimates).attempted > 0

# SPDX-License-Identifier: Apache-2.0
"""The estimator itself on arrays of the caller: ``hl.nw(X, Y, queries, heads, kernel)``."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from . import _engine
from ._arguments import whole
from ._arrays import host_array
from ._errors import HeadlabWarning, ScenarioError, translated
from ._jobs import wait
from .heads import Heads

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _numbers(value: Any, key: str, axes: str, dtype: str) -> NDArray[Any]:
    import numpy as np

    if not hasattr(value, "shape"):
        try:
            value = np.asarray(value)
        except ValueError as error:
            raise ScenarioError(f"{key}: makes no array ({error})") from None
    array = host_array(value, key)
    if array.ndim != len(axes):
        raise ScenarioError(f"{key}: has shape {array.shape}, needs [{', '.join(axes)}]")
    if dtype == "float32" and array.dtype == np.float64:
        with np.errstate(over="ignore"):  # infinite numbers are rejected below
            array = array.astype(np.float32)
    return np.ascontiguousarray(array, dtype=dtype)


def nw(
    X: Any,
    Y: Any,
    queries: Any,
    heads: Any,
    kernel: Mapping[str, Any],
    *,
    query_heads: Any = None,
    threads: int | None = None,
) -> NDArray[Any]:
    """Nadaraya-Watson estimates of every head at every query, from a given training set.

    ::

        f[h, q] = sum_i K(W_h^T X_i, W_h^T x_q) Y_i / sum_i K(W_h^T X_i, W_h^T x_q)

    Parameters
    ----------
    X : array [n, d]
        Design points, the inputs of the keys. Read as float32, in place where they are.
    Y : array [n]
        Responses, read as float32.
    queries : array [Q, d]
        Points x_q.
    heads : array [H, d, k] or Heads of one layer
        Projections W_h: any matrices, orthonormal or not.
    kernel : dict
        As in a scenario: ``{"law": "gaussian", "bandwidth": 0.5}``, in units of the projected
        points; ``{"law": "softmax", "temperature": t}`` is exp(q.k/t). ``headlab list laws`` has all.
    query_heads : array [H, d, k], optional
        Projections of the queries where they differ from those of the keys (softmax alone).
    threads : int, optional
        All of the machine without it. The bits do not depend on it.

    Returns
    -------
    array [H, Q] of float32, within 2e-6 of the largest abs(Y) of the exact estimates where the projected
    points are within some hundred bandwidths of 0: they are rounded to float32. Subtract the mean of X
    from X and from the queries where they are farther from it.

    A window without weight in float32 (the largest kernel value below 2^-126) is summed relative to
    its largest one, or takes the value of the nearest key where there is none (as far as float32 can tell distances
    apart: not beyond 1e19); a warning counts them.
    Memory beyond the arrays does not grow with n. Raises ScenarioError for shapes that do not fit,
    numbers that are not finite or beyond 1e30, and unknown kernels. Ctrl-C raises KeyboardInterrupt.
    Source: docs/theory.md.

    >>> import numpy as np
    >>> X, Y = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
    >>> nw(X, Y, [[0.5]], np.ones((1, 1, 1)), {"law": "gaussian", "bandwidth": 1})
    array([[0.5]], dtype=float32)
    """
    if isinstance(heads, Heads):
        if len(heads) != 1:
            raise ScenarioError(f"heads: are of {len(heads)} layers - choose one, as heads[3]")
        heads = heads[heads.layers[0]]
    if not isinstance(kernel, Mapping):
        raise ScenarioError(f'kernel: is {kernel!r}, needs a dict as {{"law": "gaussian", "bandwidth": 0.5}}')
    x = _numbers(X, "X", "nd", "float32")
    y = _numbers(Y, "Y", "n", "float32")
    at = _numbers(queries, "queries", "Qd", "float64")
    w = _numbers(heads, "heads", "Hdk", "float64")
    w_q = None if query_heads is None else _numbers(query_heads, "query_heads", "Hdk", "float64")
    with translated():
        made = _engine.estimate_heads(x, y, at, w, w_q, dict(kernel), whole(threads))
    estimates, empty = wait(made) if isinstance(made, _engine.Job) else made
    if empty:
        warnings.warn(
            f"{empty} of {estimates.size} windows have no weight in float32: they were summed relative "
            "to their largest kernel value, or took the value of the nearest key where all are 0",
            HeadlabWarning,
            stacklevel=2,
        )
    return cast("NDArray[Any]", estimates)

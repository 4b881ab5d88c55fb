# SPDX-License-Identifier: Apache-2.0
"""The estimator itself on arrays of the caller: ``hl.nw(X, Y, queries, heads, kernel)``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from . import _engine
from ._arguments import flag, whole
from ._attention import (
    Numbers, Rule, attend, is_tensor, require_seen, squared_norms, unseen_of, wants_gradient,
)  # fmt: skip
from ._errors import ScenarioError, counted, translated, warn
from ._jobs import wait
from .heads import Heads

#: Kernels whose windows are softmaxes, with their parameter.
_SOFT = {"gaussian": "bandwidth", "softmax": "temperature"}


def _require_axes(array: Any, key: str, axes: str, leading: bool = True) -> None:
    if array.ndim < len(axes) or (array.ndim > len(axes) and not leading):
        more = "..., " if leading and array.ndim > 2 else ""
        raise ScenarioError(f"{key}: has shape {tuple(array.shape)}, needs [{more}{', '.join(axes)}]")


def _columns(y: Any, n: int, heads: int, of_x: int, per_head: bool) -> tuple[Any, bool]:
    """Responses as [..., H or 1, n, p], and whether they are vectors."""
    rows = of_x + per_head
    if y.ndim == rows - 1 and y.shape[-1] == n:
        vector, columns = False, y[..., None]
    elif y.ndim == rows and y.shape[-2] == n:
        vector, columns = True, y
    else:
        axes = ("H, " if per_head else "") + "n"
        if y.ndim == rows - 1 == 1:
            raise ScenarioError(f"Y: has {counted(y.shape[0], 'number')}, needs {n}, one for each row of X")
        raise ScenarioError(
            f"Y: has shape {tuple(y.shape)}, needs [..., {axes}] or [..., {axes}, p] with n = {n}, "
            "and as many axes before them as X"
        )
    if not per_head:
        return columns[..., None, :, :], vector
    if columns.shape[-3] != heads:
        raise ScenarioError(f"Y: has responses of {columns.shape[-3]} heads, there are {heads}")
    return columns, vector


def nw(
    X: Any,
    Y: Any,
    queries: Any,
    heads: Any,
    kernel: Mapping[str, Any],
    *,
    query_heads: Any = None,
    mask: Any = None,
    leave_one_out: bool = False,
    per_head: bool = False,
    empty: Literal["raise", "zero"] = "raise",
    threads: int | None = None,
) -> Any:
    """Nadaraya-Watson estimates of every head at every query, with gradients.

    ::

        f[h, q] = sum_i K(W_h^T X_i, W_h^T x_q) Y_i / sum_i K(W_h^T X_i, W_h^T x_q)

    :param X (array or tensor [..., n, d]): Design points, the inputs of the keys. Leading axes are broadcast with
        those of the others.
    :param Y (array or tensor [..., n] or [..., n, p]): Responses, with as many leading axes as X: beside X [n, d], Y
        of two axes is [n, p].
    :param queries (array or tensor [..., Q, d]): Points x_q.
    :param heads (array or tensor [H, d, k], or Heads of one layer): Projections W_h: any matrices, orthonormal or not.
    :param kernel (dict): As in a scenario: ``{"law": "gaussian", "bandwidth": 0.5}``, in units of the projected
        points; ``{"law": "softmax", "temperature": t}`` is exp(q.k/t). Bandwidth and temperature may be tensors of one
        number. ``headlab list laws`` has all kernels.
    :param query_heads (array or tensor [H, d, k], optional): Projections of the queries where they differ from those
        of the keys (softmax alone).
    :param mask ("causal" or booleans [..., H or 1, Q, n], optional): True where a row of X is seen. "causal": query j
        stands at row n - Q + j and sees the rows up to it.
    :param leave_one_out (bool, optional): The queries are the last Q rows of X, and query j does not see its own.
    :param per_head (bool, optional): Y has responses for each head: [..., H, n] or [..., H, n, p].
    :param empty ("raise" or "zero"): What becomes of queries that see no row: an error with the index of the first, or
        0.
    :returns array or tensor [..., H, Q] or [..., H, Q, p]: In the type of X and on its device; float32 for arrays that
        are not float64. Tensors of PyTorch come back as tensors through which gradients flow; there are no second
        derivatives.
    :raises ScenarioError: Shapes that do not fit, numbers that are not finite or beyond 1e30, unknown kernels, a query
        that sees no row; masks, `leave_one_out` and gradients with kernels other than gaussian and softmax.
    :warns HeadlabWarning: A window of scalar float32 responses without weight in float32 (the largest kernel value
        below 2^-126) is summed relative to its largest one, or takes the value of the nearest key where there is none
        (as far as float32 can tell distances apart: not beyond 1e19).

    Notes
    -----
    Within 2e-6 of the largest abs(Y) in float32, where the projected points are within some hundred
    bandwidths of 0: they are rounded to float32. Subtract the mean of X from X and from the queries where
    they are farther from it. float64 is computed in float64 for the gaussian and the softmax
    kernel, and to that accuracy of float32 for others. Memory beyond the arrays holds the projected
    points; with scalar float32 responses and no gradient, it does not grow with n. Ctrl-C raises
    KeyboardInterrupt. Source: docs/theory.md.

    Examples
    --------
    >>> import numpy as np
    >>> X, Y = np.array([[0.0], [1.0]]), np.array([0.0, 1.0])
    >>> nw(X, Y, [[0.5]], np.ones((1, 1, 1)), {"law": "gaussian", "bandwidth": 1})
    array([[0.5]])
    """
    if isinstance(heads, Heads):
        if len(heads) != 1:
            raise ScenarioError(f"heads: are of {len(heads)} layers - choose one, as heads[3]")
        heads = heads[heads.layers[0]]
    if not isinstance(kernel, Mapping):
        raise ScenarioError(f'kernel: is {kernel!r}, needs a dict as {{"law": "gaussian", "bandwidth": 0.5}}')
    flag("leave_one_out", leave_one_out)
    flag("per_head", per_head)
    if empty not in ("raise", "zero"):
        raise ScenarioError(f'empty: is {empty!r} (allowed: "raise", "zero")')
    plain = {key: float(one.detach()) if is_tensor(one) and one.numel() == 1 else one for key, one in kernel.items()}
    with translated():
        law, parameter = _engine.kernel_of(plain)
    given = kernel.get(_SOFT.get(law, ""), parameter)
    numbers = Numbers(X, "X", (Y, queries, heads, query_heads, given))
    x = numbers.read(X, "X")
    _require_axes(x, "X", "nd")
    y = numbers.read(Y, "Y")
    at = numbers.read(queries, "queries")
    _require_axes(at, "queries", "Qd")
    w = numbers.read(heads, "heads")
    _require_axes(w, "heads", "Hdk", leading=False)
    if at.shape[-1] != x.shape[-1]:
        raise ScenarioError(f"queries: have {counted(at.shape[-1], 'coordinate')}, X has {x.shape[-1]}")
    if w.shape[-2] != x.shape[-1]:
        raise ScenarioError(f"heads: are matrices of {counted(w.shape[-2], 'row')}, X has {counted(x.shape[-1], 'coordinate')}")
    w_q = w
    if query_heads is not None:
        if law != "softmax":
            raise ScenarioError("query_heads: are for the softmax kernel; others measure distances")
        w_q = numbers.read(query_heads, "query_heads")
        if tuple(w_q.shape) != tuple(w.shape):
            raise ScenarioError("query_heads: need the shape of heads")
    n, asked = x.shape[-2], at.shape[-2]
    columns, vector = _columns(y, n, w.shape[0], x.ndim, per_head)
    rule = Rule(causal=isinstance(mask, str), leave_own_out=leave_one_out, threads=threads)
    if rule.causal and mask != "causal":
        raise ScenarioError(f'mask: is {mask!r} (allowed: "causal", booleans, None)')
    if asked > n and (rule.causal or leave_one_out):
        raise ScenarioError(f"queries: are {asked}, more than the {counted(n, 'row')} among which they stand")
    masked = mask is not None or leave_one_out
    tracked = wants_gradient(x, y, at, w, w_q, *kernel.values())
    if law not in _SOFT:
        for refused, what in ((masked, "mask: is"), (tracked, "gradients: are")):
            if refused:
                raise ScenarioError(f"{what} for the gaussian and the softmax kernel, not for {law}")
    single = x.ndim == at.ndim == 2 and not vector and not per_head
    if law not in _SOFT or (single and not (masked or tracked or numbers.double)):
        exact = numbers.exact()
        at, w = exact.read(queries, "queries"), exact.read(heads, "heads")
        w_q = None if query_heads is None else exact.read(query_heads, "query_heads")
        found = _by_engine(numbers, x, columns, at, w, w_q, plain, threads)
        return numbers.give(found if vector else found[..., 0])
    q, k, bias, rule = _logits(numbers, law, given, rule, x, at, w, w_q, tracked)
    unseen = None if mask is None or rule.causal else unseen_of(mask, (w.shape[0], asked, n))
    try:
        z, sums = attend(q, k, columns, bias, unseen, rule=rule)
    except ValueError as error:
        if isinstance(error, ScenarioError):
            raise
        raise ScenarioError(f"X: leading axes of X, Y, queries and mask do not fit together ({error})") from None
    require_seen(sums, empty, "[..., H, Q]")
    return numbers.give(z if vector else z[..., 0])


#: Up to this squared norm, in bandwidths, products round distances in float32 by less than 2e-6.
_NEAR = 16


def _logits(
    numbers: Numbers, law: str, given: Any, rule: Rule, x: Any, at: Any, w: Any, w_q: Any, tracked: bool
) -> tuple[Any, Any, Any, Rule]:
    """Queries and keys whose products, with a bias, or distances are the logits."""
    parameter = given.to(x) if is_tensor(given) else float(given)
    if law == "gaussian":  # which knows no origin: rounding is least around the mean
        centre = x.detach() if numbers.tensors else x
        centre = centre.mean(tuple(range(x.ndim - 1)))
        x, at = (x - centre) / parameter, (at - centre) / parameter
    k, q = x[..., None, :, :] @ w, at[..., None, :, :] @ w_q
    if law == "gaussian":
        # Products take half the time; the gradient of a bias is a matrix of all weights.
        if not tracked:
            norms = squared_norms(k)
            if max(float(norms.max()), float(squared_norms(q).max())) <= _NEAR:
                return q, k, norms[..., None, :] / -2, rule
        return q, k, None, replace(rule, scale=-0.5, distances=True)
    if is_tensor(parameter):
        return q / parameter, k, None, rule
    return q, k, None, replace(rule, scale=1 / parameter)


def _by_engine(
    numbers: Numbers, x: Any, columns: Any, at: Any, w: Any, w_q: Any, kernel: dict[str, Any],
    threads: int | None,
) -> Any:  # fmt: skip
    """Estimates [..., H, Q, p] of any kernel, one column of responses at a time, in float32."""
    import numpy as np

    def host(array: Any, kind: str) -> Any:
        return np.ascontiguousarray(array.detach().numpy() if is_tensor(array) else array, dtype=kind)

    x, columns, at, w = host(x, "f4"), host(columns, "f4"), host(at, "f8"), host(w, "f8")
    w_q = None if w_q is None else host(w_q, "f8")
    heads, width = len(w), columns.shape[-1]
    try:
        lead = np.broadcast_shapes(x.shape[:-2], at.shape[:-2], columns.shape[:-3])
    except ValueError as error:
        raise ScenarioError(f"X: leading axes of X, Y and queries do not fit together ({error})") from None
    out = np.empty((*lead, heads, at.shape[-2], width), np.float32)
    x, at = np.broadcast_to(x, (*lead, *x.shape[-2:])), np.broadcast_to(at, (*lead, *at.shape[-2:]))
    columns = np.broadcast_to(columns, (*lead, *columns.shape[-3:]))
    without = 0
    for place in np.ndindex(*lead, width):
        *item, p = place
        # Heads that share their responses are estimated together.
        for first in range(columns.shape[-3]):
            own = slice(None) if columns.shape[-3] == 1 else slice(first, first + 1)
            with translated():
                made = _engine.estimate_heads(
                    x[tuple(item)], np.ascontiguousarray(columns[(*item, first, slice(None), p)]),
                    at[tuple(item)], w[own], None if w_q is None else w_q[own], kernel, whole(threads),
                )  # fmt: skip
            out[(*item, own, slice(None), p)], few = wait(made) if isinstance(made, _engine.Job) else made
            without += few
    if without:
        warn(
            f"{without} of {out.size} windows have no weight in float32: they were summed relative "
            "to their largest kernel value, or took the value of the nearest key where all are 0"
        )
    if numbers.tensors:
        return sys.modules["torch"].from_numpy(out)
    return out

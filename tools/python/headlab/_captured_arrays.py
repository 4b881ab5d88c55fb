# SPDX-License-Identifier: Apache-2.0
"""From tensors that a capture kept, batch by batch, to the arrays of a layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

#: Masks add the lowest number of their type to the logits of keys that are not seen.
_UNSEEN = -6e4


def numbers_of(tensor: Any) -> NDArray[Any]:
    found: NDArray[Any] = tensor.detach().float().cpu().numpy()
    return found


def seen_by(mask: Any, shape: tuple[int, int, int]) -> NDArray[Any]:
    """Booleans [B, 1 or H, T, S] of an additive mask, or of none."""
    import numpy as np

    if mask is None:
        return np.ones((1, 1, shape[1], shape[2]), bool)
    return numbers_of(mask) > _UNSEEN


def with_room(numbers: NDArray[Any], name: str, rooms: dict[str, int]) -> NDArray[Any]:
    """The same with zeros after its tokens."""
    import numpy as np

    room = [(0, 0)] * numbers.ndim
    room[-2] = (0, rooms[name] - numbers.shape[-2])
    return np.pad(numbers, room)


def mask_of(masks: list[NDArray[Any]], sequences: int, queries: int, keys: int) -> Any:
    """"causal" or "full" where all of them are, else booleans."""
    import numpy as np

    if all(mask.all() for mask in masks):
        return "full"
    if all((mask == np.tril(np.ones(mask.shape[2:], bool), mask.shape[3] - mask.shape[2])).all() for mask in masks):
        return "causal"
    heads = max(mask.shape[1] for mask in masks)
    whole = np.zeros((sequences, heads, queries, keys), bool)
    first = 0
    for mask in masks:
        whole[first : first + len(mask), :, : mask.shape[2], : mask.shape[3]] = mask
        first += len(mask)
    return whole


def valid_of(valid: NDArray[Any] | None, numbers: dict[str, NDArray[Any]], keys: int) -> NDArray[Any]:
    import numpy as np

    own = np.ones((numbers["k"].shape[0], numbers["k"].shape[2]), bool) if valid is None else valid
    return np.pad(own, ((0, 0), (0, keys - own.shape[1])))


def tokens_of(ids: list[NDArray[Any] | None], queries: list[int]) -> NDArray[Any] | None:
    """Tokens of all batches [B, T], where each query of them has one."""
    import numpy as np

    found = [own for own, count in zip(ids, queries, strict=True) if own is not None and own.shape[1] == count]
    if len(found) < len(ids):
        return None
    return np.concatenate([np.pad(own, ((0, 0), (0, max(queries) - own.shape[1]))) for own in found])


def output_map_of(child: Any, heads: int) -> tuple[NDArray[Any], NDArray[Any] | None]:
    """[H, e, d] of a linear map, and its bias."""
    weight = numbers_of(child.weight)
    if type(child).__name__ != "Conv1D":  # of transformers: [in, out]
        weight = weight.T
    bias = getattr(child, "bias", None)
    return weight.reshape(heads, -1, weight.shape[1]), None if bias is None else numbers_of(bias)

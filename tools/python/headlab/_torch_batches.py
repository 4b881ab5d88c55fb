# SPDX-License-Identifier: Apache-2.0
"""Training sets as a data set of PyTorch. A module of its own, which is imported where PyTorch is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import torch
from torch.utils.data import IterableDataset, get_worker_info


class Sets(Protocol):
    """What is used of training sets."""

    replicates: int

    def draw(self, first: int, count: int, *, threads: int | None = None) -> dict[str, Any]: ...


def is_dtype(given: Any) -> bool:
    return isinstance(given, torch.dtype) and given.is_floating_point


class Batches(IterableDataset):  # type: ignore[misc,unused-ignore]
    """Dicts of tensors, `batch` training sets each; workers of a DataLoader share them."""

    def __init__(self, sets: Sets, batch: int, dtype: Any) -> None:
        self.sets = sets
        self.batch = batch
        self.dtype = torch.get_default_dtype() if dtype is None else dtype

    def __iter__(self) -> Iterator[dict[str, Any]]:
        worker = get_worker_info()
        number, count = (worker.id, worker.num_workers) if worker else (0, 1)
        for first in range(number * self.batch, self.sets.replicates, count * self.batch):
            threads = 1 if worker else None
            size = min(self.batch, self.sets.replicates - first)
            yield {
                name: self._tensor(array)
                for name, array in self.sets.draw(first, size, threads=threads).items()
            }

    def _tensor(self, array: Any) -> Any:
        tensor = torch.from_numpy(array)
        return tensor.to(self.dtype) if tensor.dtype.is_floating_point else tensor

    def __len__(self) -> int:
        return -(-self.sets.replicates // self.batch)

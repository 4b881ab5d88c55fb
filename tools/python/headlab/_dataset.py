# SPDX-License-Identifier: Apache-2.0
"""Training sets of a scenario as arrays: ``hl.dataset``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import _engine
from ._arguments import index, only_condition, whole
from ._errors import ScenarioError, translated
from ._jobs import Progress, wait
from ._labelled import suggestion
from ._scenario import ScenarioLike, Sets, Source

if TYPE_CHECKING:
    from numpy.typing import NDArray

Arrays = dict[str, "NDArray[Any]"]


class TrainingSets(Mapping[str, "NDArray[Any]"]):
    """Training sets of one condition: the draws of the run, to the bit.

    ``t["X"]`` [replicate, n, d] float32, ``t["Y"]`` [replicate, n], ``t["m"]`` the regression
    function, ``t["noise_sd"]``, ``t["projections"]`` [head, d, k], ``t["queries"]``, ``t["truth"]``,
    and where asked for ``t["head_estimates"]`` [replicate, query, head] and
    ``t["attention_weights"]`` [replicate, query, head, n]. All are drawn when the first is
    asked for, and names cost one training set; ``t.batches(64)`` draws a part at a time, for any
    number of replicates.
    """

    def __init__(
        self,
        source: Source,
        replicates: int,
        condition: int | None,
        options: tuple[bool, bool],
        threads: int | None,
        progress: Progress,
    ) -> None:
        self._source = source
        self._options = options
        self._threads = threads
        with translated():
            job = _engine.dataset(source.engine, *options, whole(threads))
        self._planned: _engine.PlannedDataset = wait(job, progress)
        count = self._planned.conditions
        self.condition = only_condition(count) if condition is None else condition
        if not 0 <= self.condition < count:
            raise ScenarioError(f"condition: is {condition} (allowed: 0 to {count - 1})")
        #: Number of training sets.
        self.replicates = replicates
        self._drawn: Arrays | None = None
        self._names: tuple[str, ...] = ()

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self._source, self.replicates, self.condition, self._options, self._threads, False)
        return TrainingSets, given

    def draw(self, first: int, count: int, *, threads: int | None = None) -> Arrays:
        """Training sets `first` .. `first + count - 1`, counted from 0, in arrays of their own.

        :param first (int): Number of the first, from 0.
        :param count (int): How many.
        :returns dict of arrays: By the names of the class; the leading axis is the training set.
        :raises ScenarioError: Numbers below 0, or more than there is memory for.
        """
        first, count = index("first", first), index("count", count)
        if first < 0 or count < 1:
            raise ScenarioError("draw: needs first >= 0 and count >= 1")
        with translated():
            job = _engine.draw(
                self._planned, self.condition, first, count, whole(threads or self._threads)
            )
        return {name: array for name, (_, array, _) in wait(job).items()}

    def batches(self, size: int) -> Iterator[Arrays]:
        """All training sets, `size` at a time.

        :param size (int): Training sets of a batch.
        :returns iterator of dicts of arrays: The last one may be shorter.
        :raises ScenarioError: A size below 1.
        """
        size = index("size", size)
        if size < 1:
            raise ScenarioError(f"batches: is given {size}, needs a size of 1 or more")
        return (
            self.draw(first, min(size, self.replicates - first))
            for first in range(0, self.replicates, size)
        )

    def _known(self) -> tuple[str, ...]:
        """The names, from one training set."""
        if not self._names:
            self._names = tuple(self._drawn or self.draw(0, 1))
        return self._names

    def _all(self) -> Arrays:
        if self._drawn is None:
            self._drawn = self.draw(0, self.replicates)
        return self._drawn

    def __getitem__(self, name: str) -> NDArray[Any]:
        if name not in self._known():
            raise KeyError(f"{name}: no such array{suggestion(name, self._known())}")
        return self._all()[name]

    def __contains__(self, name: object) -> bool:
        return name in self._known()

    def __eq__(self, other: object) -> bool:
        return self is other  # a comparison of values would draw them all

    def __hash__(self) -> int:
        return id(self)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)

    def __repr__(self) -> str:
        return f"{self.replicates} training sets of condition {self.condition}: batches(), draw(), torch()"

    def torch(self, batch: int = 64, dtype: Any = None) -> Any:
        """A ``torch.utils.data.IterableDataset`` of dicts of tensors, `batch` training sets each.

        Tensors use the memory that was drawn into, without a copy. Workers of a DataLoader share
        the batches among them. For ``DataLoader(..., batch_size=None)``.

        :param batch (int): Training sets of a batch.
        :param dtype (torch.dtype, optional): Of all real numbers; PyTorch's default without it.
        :returns torch.utils.data.IterableDataset: Dicts of tensors. It can be pickled, for workers that are spawned.
        :raises ScenarioError: A batch below 1.
        :raises ImportError: PyTorch is not installed.
        """
        batch = index("batch", batch)
        if batch < 1:
            raise ScenarioError("batch: needs 1 or more")
        try:
            from ._torch_batches import Batches, is_dtype
        except ImportError:
            raise ImportError("needs PyTorch - pip install torch") from None
        if dtype is not None and not is_dtype(dtype):
            raise TypeError(f"dtype: is {dtype!r}, needs a floating type as torch.float32")
        return Batches(self, batch, dtype)


def dataset(
    scenario: ScenarioLike,
    replicates: int | float,
    set: Sets = None,
    *,
    condition: int | None = None,
    seed: int | None = None,
    estimates: bool = False,
    weights: bool = False,
    threads: int | None = None,
    progress: Progress = False,
) -> TrainingSets:
    """Training sets of a condition of a scenario, as NumPy arrays or for PyTorch.

    The draws are those of ``hl.run`` and ``headlab dataset`` to the bit. `estimates` adds the heads'
    estimates, `weights` the attention weights.

    :param replicates (int): Number of training sets.
    :param condition (int, optional): Which, from 0, where the scenario has several.
    :param estimates (bool): Adds ``head_estimates`` [replicate, query, head].
    :param weights (bool): Adds ``attention_weights`` [replicate, query, head, n].
    :returns TrainingSets: Arrays by name: "X" [replicate, n, d], "Y" [replicate, n], ...
    :raises ScenarioError: A scenario that is rejected, or several conditions and none named.

    Examples
    --------
    >>> import headlab as hl
    >>> t = hl.dataset("scenarios/quickstart.toml", 8, condition=0)
    >>> t["X"].shape, str(t["X"].dtype)
    ((8, 500, 4), 'float32')
    """
    if condition is not None:
        condition = index("condition", condition)
    source = Source(scenario, set)
    try:
        count = int(replicates)
    except (TypeError, ValueError):
        count = 0
    if replicates not in (count, str(count)) or not 0 < count < 2**40:
        raise ScenarioError(f'replicates: "{replicates}" does not fit (allowed: a whole number from 1 to {2**40 - 1})')
    source.set(f"run.replicates={count}", *([] if seed is None else [f"run.seed={seed}"]))
    return TrainingSets(source, count, condition, (estimates, weights), threads, progress)

"""The k-th smallest number of each of many stretches of an array, without sorting those that overlap.

A wavelet matrix (Claude and Navarro, "The wavelet matrix", 2012): bit by bit from the highest on, numbers with a 0 move
before those with a 1 and otherwise keep their order. How many zeros stand before a place tells where a stretch moves
to, and on which side its k-th number is. That is one pass a bit, however long the stretches are and however much they
overlap. Stretches that do not overlap are sorted all at once, which is faster.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.integer]


def kth_smallest(
    numbers: Integers, starts: Integers, ends: Integers, ranks: Sequence[Integers], bits: int
) -> list[NDArray[np.int64]]:
    """The numbers at these ranks of the stretches `numbers[start:end]`.

    Args:
        numbers: whole numbers in [0, 2^bits).
        starts: where each stretch starts, included.
        ends: where each stretch ends, excluded; after its start.
        ranks: for each answer wanted, the rank within each stretch, from 1 to its length.
        bits: how many bits the numbers have.

    Returns:
        For each element of `ranks`, one number per stretch.
    """
    if (starts[1:] >= ends[:-1]).all():
        in_order = _each_in_order(numbers, starts, ends, bits)
        return [in_order[starts + rank - 1].astype(np.int64) for rank in ranks]
    searches = [_Search(starts, ends, rank) for rank in ranks]
    for bit in reversed(range(bits)):
        is_one = (numbers >> bit & 1).astype(bool)
        zeros_before = np.zeros(len(numbers) + 1, np.int64)
        np.cumsum(~is_one, out=zeros_before[1:])
        for search in searches:
            search.descend(zeros_before, bit)
        numbers = np.concatenate([numbers[~is_one], numbers[is_one]])
    return [search.found for search in searches]


def _each_in_order(numbers: Integers, starts: Integers, ends: Integers, bits: int) -> Integers:
    """The numbers with those of each stretch in ascending order; no stretch overlaps another."""
    stretch = np.zeros(len(numbers) + 1, np.int64)
    np.add.at(stretch, np.concatenate([starts, ends]), 1)
    stretch = stretch[:-1].cumsum()
    keys: Integers = stretch << bits | numbers
    if stretch[-1] < 1 << 31 - bits:
        keys = keys.astype(np.int32)  # which are sorted in half the time
    keys.sort()
    return keys & (1 << bits) - 1


class _Search:
    """The stretches of one answer as they are by now, and the bits of the answer that are known."""

    def __init__(self, starts: Integers, ends: Integers, ranks: Integers) -> None:
        self._starts, self._ends, self._ranks = (array.astype(np.int64) for array in (starts, ends, ranks))
        self.found = np.zeros(len(starts), np.int64)

    def descend(self, zeros_before: NDArray[np.int64], bit: int) -> None:
        """Follow every stretch to the side that has its rank."""
        first, last = zeros_before[self._starts], zeros_before[self._ends]
        is_one = self._ranks > last - first
        self._ranks -= np.where(is_one, last - first, 0)
        self._starts = np.where(is_one, zeros_before[-1] + self._starts - first, first)
        self._ends = np.where(is_one, zeros_before[-1] + self._ends - last, last)
        self.found |= is_one.astype(np.int64) << bit

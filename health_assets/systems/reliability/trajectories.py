"""Distances between trajectories, and their sums over every pair of runs in a window (source 2, "Trajectory …").

What belongs here: comparing lists of actions. What does not: which runs are compared (`consistency`).

Runs of one task, hour and list of actions count as one with a weight, and a distance is measured once for each two
lists of actions. Pairs are summed without visiting any window: a pair enters with its later run and leaves with its
earlier one, so a window's sum is what has entered up to its end less what has left before its start. Distances are
whole multiples of 2^-48 there, so that these sums are exact in any order.
"""

from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from rapidfuzz.distance import Levenshtein
from rapidfuzz.process import cpdist
from scipy.sparse import csr_array

from health_assets.core.hours import HourRange
from health_assets.systems.reliability.timeline import Integers, Numbers, Timeline, flat_ranges, parts, running_sums

MOST_PAIRS = 1 << 19
"""Pairs that are looked at together."""

MOST_COMPARED_ACTIONS = 1 << 21
"""Different actions of all lists that are compared together."""

MOST_CHARACTERS = 0x10FFFF - 0x800
"""Different actions that can be written as one character each."""

HALF = float(1 << 24)


class Trajectories:
    """Lists of actions, each at least one long, in which equal lists are one.

    Args:
        actions: the list of each row.

    Attributes:
        number: for each row the number of its list.
    """

    def __init__(self, actions: pa.ChunkedArray) -> None:
        lists = actions.combine_chunks()
        length = np.asarray(pc.list_value_length(lists)).astype(np.int64)
        codes, vocabulary = _codes(lists.flatten())
        written = _written(codes, length, vocabulary)
        numbers: dict[Hashable, int] = {}
        self.number: Integers = np.array([numbers.setdefault(one, len(numbers)) for one in written], np.int64)
        self._written = list(numbers)
        _, first = np.unique(self.number, return_index=True)
        self._length = length[first]
        self._counts = _counts(codes, length, first, vocabulary)
        self._held = csr_array(self._counts, copy=True)
        self._held.data[:] = 1
        self._ones = np.ones(vocabulary)

    def __len__(self) -> int:
        return len(self._written)

    def distances(self, left: Integers, right: Integers) -> tuple[Numbers, Numbers]:
        """Jensen-Shannon and normalised edit distances of pairs of lists, by their numbers; each 0 to 1."""
        width = np.diff(self._counts.indptr)
        pieces = list(parts((width[left] + width[right]).astype(np.int64), MOST_COMPARED_ACTIONS))
        shannon = [self._jensen_shannon(left[piece], right[piece]) for piece in pieces]
        edit = [self._edit(left[piece], right[piece]) for piece in pieces]
        return np.concatenate([np.empty(0), *shannon]), np.concatenate([np.empty(0), *edit])

    def _jensen_shannon(self, left: Integers, right: Integers) -> Numbers:
        """Square root of JSD(P || Q) with logarithms to base 2 (source 2, "Trajectory Distribution Consistency").

        An action that only one of the two lists has adds half its share; only those that both have need a logarithm.
        Of equal shares that logarithm is exactly 0, so that equal distributions have distance 0.
        """
        both = self._held[left].multiply(self._held[right]).tocsr()
        in_left, in_right = (self._counts[lists].multiply(both).tocsr() for lists in (left, right))
        row = np.repeat(np.arange(len(left)), np.diff(both.indptr))
        p, q = in_left.data / self._length[left][row], in_right.data / self._length[right][row]
        terms = p * np.log2(2 * p / (p + q)) + q * np.log2(2 * q / (p + q))
        shared = csr_array((terms, both.indices, both.indptr), shape=both.shape) @ self._ones
        only_left = (self._length[left] - in_left @ self._ones) / self._length[left]
        only_right = (self._length[right] - in_right @ self._ones) / self._length[right]
        return np.sqrt(np.clip((only_left + only_right + shared) / 2, 0, 1))

    def _edit(self, left: Integers, right: Integers) -> Numbers:
        """Edit distance over the length of the longer list (source 2, "Trajectory Sequence Consistency")."""
        lists, others = [self._written[one] for one in left], [self._written[one] for one in right]
        distance = cpdist(lists, others, scorer=Levenshtein.distance, dtype=np.int64)
        return distance / np.maximum(self._length[left], self._length[right])


class PairSums:
    """Sums of distances over all pairs of rows of a group that are in a window together.

    Args:
        group: a number for each row's group, never falling.
        hour: the hour of each row since 1970, never falling within a group.
        actions: its list of actions, at least one long.
        hours: the hours asked for.
        window_hours: length of a window.
    """

    def __init__(
        self, group: Integers, hour: Integers, actions: pa.ChunkedArray, hours: HourRange, window_hours: int
    ) -> None:
        trajectories = Trajectories(actions)
        number = trajectories.number[np.lexsort([trajectories.number, hour, group])]
        keys = np.stack([group, hour, number])
        is_new = np.append(True, (keys[:, 1:] != keys[:, :-1]).any(axis=0))[: len(group)]
        first = np.flatnonzero(is_new)
        self._number = number[first]
        self._weight = np.diff(np.append(first, len(group)))
        self._rows = Timeline(group[first], hour[first], hours, window_hours)
        self._weights = running_sums(self._weight)
        self._entered, self._left = self._sums(trajectories)

    def window(self, group: Integers, hour: Integers) -> tuple[Integers, Numbers, Numbers]:
        """For windows of groups that end with these hours: pairs, and sums of both distances over them."""
        start, end = self._rows.bounds(group, hour)
        runs = self._weights[end] - self._weights[start]
        sums = self._entered[:, end] - self._left[:, start]
        high, low = sums[::2].astype(float), sums[1::2].astype(float)
        shannon, edit = high / HALF + low / HALF**2
        return runs * (runs - 1) // 2, shannon, edit

    def _sums(self, trajectories: Trajectories) -> tuple[Integers, Integers]:
        """Running sums, of high and low halves of both distances, of what enters and of what leaves with each row."""
        rows = self._rows
        entering = np.zeros((4, len(rows.hour)), np.int64)
        leaving = np.zeros_like(entering)
        earliest, _ = rows.bounds(rows.group, rows.hour)
        before = np.arange(len(rows.hour)) - earliest
        for part in parts(before, MOST_PAIRS):
            place, offset = flat_ranges(before[part])
            late, early = place + part.start, earliest[part][place] + offset
            weight = self._weight[late] * self._weight[early]
            distances = _by_number(trajectories, self._number[late], self._number[early])
            for half, units in enumerate(_in_halves(*distances)):
                np.add.at(entering[half], late, weight * units)
                np.add.at(leaving[half], early, weight * units)
        return running_sums(entering), running_sums(leaving)


def _by_number(trajectories: Trajectories, left: Integers, right: Integers) -> tuple[Numbers, Numbers]:
    """Distances of pairs of lists, of which many are the same; each two lists are compared once."""
    count = np.int64(len(trajectories))
    pairs, place = np.unique(np.minimum(left, right) * count + np.maximum(left, right), return_inverse=True)
    shannon, edit = trajectories.distances(*np.divmod(pairs, count))
    return shannon[place], edit[place]


def _in_halves(*distances: Numbers) -> list[Integers]:
    """Each distance as two whole numbers: of units of 2^-24, and of what is left, of units of 2^-48."""
    halves = []
    for distance in distances:
        high = np.floor(distance * HALF)
        halves += [high.astype(np.int64), np.rint((distance * HALF - high) * HALF).astype(np.int64)]
    return halves


def _codes(names: pa.Array) -> tuple[Integers, int]:
    """For each action the place of its name in the order of all names, so that it does not depend on other lists."""
    encoded = names.dictionary_encode()
    rank = np.empty(len(encoded.dictionary), np.int64)
    rank[np.asarray(pc.sort_indices(encoded.dictionary))] = np.arange(len(rank))
    return rank[np.asarray(encoded.indices)], len(rank)


def _written(codes: Integers, length: Integers, vocabulary: int) -> Sequence[Hashable]:
    """Each list as text of one character per action, or as a tuple where there are more actions than characters."""
    ends = np.cumsum(length)
    spans = zip((ends - length).tolist(), ends.tolist(), strict=True)
    if vocabulary > MOST_CHARACTERS:
        numbers = codes.tolist()
        return [tuple(numbers[start:end]) for start, end in spans]
    characters = codes + np.where(codes >= 0xD800, 0x800, 0)  # no halves of surrogate pairs
    text = characters.astype("<u4").tobytes().decode("utf-32-le")
    return [text[start:end] for start, end in spans]


def _counts(codes: Integers, length: Integers, chosen: npt.NDArray[np.intp], vocabulary: int) -> csr_array:
    """The count of each action (column) in each chosen list (row)."""
    ends = np.cumsum(length)
    place, offset = flat_ranges(length[chosen])
    columns = codes[(ends - length)[chosen][place] + offset]
    row_starts = np.append(0, np.cumsum(length[chosen]))
    counts = csr_array((np.ones(len(columns)), columns, row_starts), shape=(len(chosen), vocabulary))
    counts.sum_duplicates()
    return counts

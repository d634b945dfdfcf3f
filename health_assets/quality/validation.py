"""Validating frames with Great Expectations.

What belongs here: which rows of small frames it refuses. What does not: what is expected (`expectations`), and batches
that are too large for a frame (`evaluation`).

Great Expectations takes milliseconds for each expectation, however few rows there are. So what is expected alike of
several columns is validated once, as one column with the values of all of them. If that fails, each is validated by
itself, to learn which rows it is.
"""

import os
import warnings
from collections.abc import Callable, Hashable, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from health_assets.quality.expectations import Expectation, unique
from health_assets.quality.gx_internals import (
    importing_without_unused_modules,
    remembering,
    without_progress_bars,
)


class Batch(NamedTuple):
    """A frame, and what is expected of it."""

    frame: pd.DataFrame
    expectations: Sequence[Expectation]


def unexpected_rows(batches: Sequence[Batch]) -> list[list[set[int]]]:
    """For each batch and each of its expectations, the positions of the rows that Great Expectations refuses."""
    refused: list[list[set[int]]] = [[set() for _ in batch.expectations] for batch in batches]
    failed = _failed([batch if len(batch.frame) else Batch(batch.frame, ()) for batch in batches])
    for batch, places, found in zip(batches, failed, refused, strict=True):
        own = [batch.expectations[place] for place in places]
        for place, outcome in zip(places, _validated(batch.frame, own, "COMPLETE"), strict=True):
            found[place] = set(outcome.result["unexpected_index_list"])
    return refused


def _failed(batches: Sequence[Batch]) -> list[list[int]]:
    """For each batch, the places of expectations that may not hold."""
    alike: dict[Hashable, list[tuple[int, int]]] = {}
    for number, batch in enumerate(batches):
        for place, expectation in enumerate(batch.expectations):
            alike.setdefault(_kind(batch.frame, expectation), []).append((number, place))
    groups = [*alike.values()]
    together = [_together(str(column), batches, places) for column, places in enumerate(groups)]
    rows = max((len(one.frame) for one in together), default=0)
    frame = pd.concat([_padded(one, rows) for one in together], axis="columns") if together else pd.DataFrame()
    expectations = [expectation for one in together for expectation in one.expectations]
    failed: list[list[int]] = [[] for _ in batches]
    for places, outcome in zip(groups, _validated(frame, expectations, "BOOLEAN_ONLY"), strict=True):
        for number, place in () if outcome.success else places:
            failed[number].append(place)
    return failed


def _kind(frame: pd.DataFrame, expectation: Expectation) -> Hashable:
    """What expectations have in common that can be validated together: all but the names of their columns."""
    if expectation.is_uniqueness:
        return expectation.type, len(expectation.columns)
    types = [str(frame[name].dtype) for name in expectation.columns]
    return repr((expectation.renamed([""] * len(types)), types))


def _together(name: str, batches: Sequence[Batch], places: Sequence[tuple[int, int]]) -> Batch:
    """Expectations that are alike as one, of columns that hold the values of all of theirs.

    Where rows must be unique, so must they be with the number of their expectation.
    """
    columns: list[list[pd.Series]] = []
    for number, place in places:
        batch = batches[number]
        columns.append([batch.frame[column] for column in batch.expectations[place].columns])
    number, place = places[0]
    expectation = batches[number].expectations[place]
    if expectation.is_uniqueness:
        columns = [
            [pd.Series(number, own[0].index), *(values.astype(object) for values in own)]
            for number, own in enumerate(columns)
        ]
    names = [f"{name} {role}" for role in range(len(columns[0]))]
    values = [pd.concat(own, ignore_index=True) for own in zip(*columns, strict=True)]
    frame = pd.DataFrame(dict(zip(names, values, strict=True)))
    return Batch(frame, unique(*names) if expectation.is_uniqueness else [expectation.renamed(names)])


def _padded(batch: Batch, rows: int) -> pd.DataFrame:
    """The frame with so many rows, of which those behind its own change no verdict."""
    frame = batch.frame
    if batch.expectations[0].is_uniqueness:  # no values are no repetition
        return frame.reindex(range(rows))
    last = np.minimum(np.arange(rows), len(frame) - 1)
    return frame.iloc[last].reset_index(drop=True)


def _validated(frame: pd.DataFrame, expectations: Sequence[Expectation], result_format: str) -> list[Any]:
    """Great Expectations' outcomes, in the order of the expectations.

    Raises:
        RuntimeError: it could not evaluate one, which is a bug in `expectations`.
    """
    if not expectations:
        return []
    gx, batch_definition, kinds = _great_expectations()
    batch = batch_definition.get_batch({"dataframe": frame})
    suite = gx.ExpectationSuite(name="batch")
    for place, expectation in enumerate(expectations):
        suite.expectations.append(kinds(expectation.type)(**expectation.arguments, meta={"place": place}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Great Expectations' own
        outcomes = batch.validate(suite, result_format=result_format).results
    for outcome in outcomes:
        if outcome.exception_info and outcome.exception_info.get("raised_exception"):
            raise RuntimeError(
                f"Great Expectations could not evaluate {outcome.expectation_config}: {outcome.exception_info}"
            )
    return sorted(outcomes, key=lambda outcome: outcome.expectation_config.meta["place"])


def import_great_expectations() -> None:
    """Import what checks need now rather than with the first of them."""
    _great_expectations()


@cache
def _great_expectations() -> tuple[Any, Any, Callable[[str], Any]]:
    """The library, a batch definition, and its expectations by name.

    Importing takes seconds, so only who validates pays for it.
    """
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    with warnings.catch_warnings(), importing_without_unused_modules():
        warnings.simplefilter("ignore", DeprecationWarning)  # Great Expectations' own
        import great_expectations as gx

        context = gx.get_context(mode="ephemeral")
        without_progress_bars(context)
    asset = context.data_sources.add_pandas("frames").add_dataframe_asset("frame")
    kinds = cache(lambda name: remembering(getattr(gx.expectations, name)))
    return gx, asset.add_batch_definition_whole_dataframe("whole"), kinds

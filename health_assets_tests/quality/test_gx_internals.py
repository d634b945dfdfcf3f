"""Great Expectations' private parts: kinds that remember, names of metrics, and what it imports with itself."""

import importlib.util
import math
import subprocess
import sys
import warnings
from typing import Any

import pytest

from health_assets.quality.evaluation import import_great_expectations
from health_assets.quality.gx_internals import (
    OF_OTHER_EXPECTATIONS,
    remembering,
    without_progress_bars,
)


@pytest.fixture(scope="module")
def gx() -> Any:
    import_great_expectations()  # which keeps the library's own warnings to itself
    import great_expectations

    return great_expectations


def test_a_remembering_kind_makes_the_configuration_of_its_own_kind_once(gx: Any) -> None:
    kind = gx.expectations.ExpectColumnValuesToNotBeNull
    stock, own = kind(column="a"), remembering(kind)(column="a")
    assert stock.configuration is not stock.configuration, (
        "the library makes it anew, else there is nothing to remember"
    )
    assert own.configuration is own.configuration
    assert own.configuration.kwargs == stock.configuration.kwargs


def test_two_expectations_of_a_remembering_kind_do_not_share_what_they_remember(gx: Any) -> None:
    kind = remembering(gx.expectations.ExpectColumnValuesToNotBeNull)
    assert [kind(column=name).configuration.kwargs["column"] for name in ("a", "b")] == ["a", "b"]


def test_a_remembering_kind_is_registered_under_a_name_of_its_own(gx: Any) -> None:
    from great_expectations.expectations.registry import get_expectation_impl

    kind = remembering(gx.expectations.ExpectColumnValuesToBeInSet)
    assert get_expectation_impl("remembering_expect_column_values_to_be_in_set") is kind
    assert get_expectation_impl("expect_column_values_to_be_in_set") is gx.expectations.ExpectColumnValuesToBeInSet


def test_a_context_shows_no_progress_bars_once_they_are_off(gx: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # Great Expectations' own
        context = gx.get_context(mode="ephemeral")
        without_progress_bars(context)
    assert context.progress_bars.globally is False
    assert context.progress_bars.metric_calculations is False


def test_statistics_and_charts_are_imported_only_when_an_expectation_that_needs_them_is_used() -> None:
    program = f"""
import sys
from importlib.util import _LazyModule
import pandas as pd
from health_assets.quality.evaluation import _verdicts, import_great_expectations
from health_assets.quality.expectations import Expectation

import_great_expectations()
waiting = lambda: [type(sys.modules[name]) is _LazyModule for name in {OF_OTHER_EXPECTATIONS}]
frame = pd.DataFrame({{"a": [1.0, 2.0, 2.0]}})
assert _verdicts(frame, [Expectation("ExpectColumnValuesToBeBetween", {{"column": "a", "max_value": 2}})]) == [True]
assert waiting() == [True, True]
partition = {{"values": ["1.0", "2.0"], "weights": [0.5, 0.5]}}
told = {{"column": "a", "partition_object": partition, "threshold": 0.6}}
assert _verdicts(frame, [Expectation("ExpectColumnKLDivergenceToBeLessThan", told)]) in ([True], [False])
assert waiting()[0] is False
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


ARGUMENTS = [
    {"column": "a", "batch_id": "frames-frame"},
    {"batch_id": "frames-frame", "column": "a"},
    {"column": "a", "min_value": 1, "max_value": None},
    {"column": "a", "min_value": 1.0, "max_value": None},
    {"column": "a", "min_value": True, "max_value": None},
    {"column": "a", "min_value": "1", "max_value": None},
    {"column": "a", "min_value": 0.0, "max_value": math.nan},
    {"column": "a", "min_value": -0.0, "max_value": math.nan},
    {"column": "a", "value_set": ["x", 1, None]},
    {"column": "a", "value_set": ["x", "1", "None"]},
    {"column": "a", "value_set": [["x"], {"y": 1}]},
    {"column": "a"},
    {},
]


@pytest.mark.usefixtures("gx")
def test_names_that_are_remembered_are_those_that_the_library_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    from great_expectations.core.id_dict import IDDict

    made_anew = sys.modules["great_expectations.core.id_dict"].convert_to_json_serializable
    made: list[Any] = []

    def noted(data: Any) -> Any:
        made.append(data)
        return made_anew(data)

    monkeypatch.setattr("great_expectations.core.id_dict.convert_to_json_serializable", noted)
    stock = [stock_names()(IDDict(arguments)) for arguments in ARGUMENTS]
    assert [IDDict(arguments).to_id() for arguments in ARGUMENTS] == stock
    made.clear()
    assert [IDDict(arguments).to_id() for arguments in ARGUMENTS] == stock
    assert made == [{"column": "a", "value_set": [["x"], {"y": 1}]}], "only what is no plain value is named anew"
    assert [IDDict(arguments).to_id({"column"}) for arguments in ARGUMENTS[:1]] == ["column=a"]


def stock_names() -> Any:
    """The library's own function, of a module that is executed anew."""
    spec = importlib.util.find_spec("great_expectations.core.id_dict")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.IDDict.to_id

"""Great Expectations' private parts: kinds that remember, and what it imports with itself."""

import subprocess
import sys
import warnings
from typing import Any

import pytest

from health_assets.quality.gx_internals import (
    OF_OTHER_EXPECTATIONS,
    OF_OTHER_SOURCES,
    remembering,
    without_progress_bars,
)
from health_assets.quality.validation import import_great_expectations


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
from health_assets.quality.expectations import Expectation
from health_assets.quality.validation import _validated, import_great_expectations

import_great_expectations()
waiting = lambda: [type(sys.modules[name]) is _LazyModule for name in {OF_OTHER_EXPECTATIONS}]
frame = pd.DataFrame({{"a": [1.0, 2.0, 2.0]}})
verdicts = lambda told, kind: [one.success for one in _validated(frame, [Expectation(kind, told)], "BOOLEAN_ONLY")]
assert verdicts({{"column": "a", "max_value": 2}}, "ExpectColumnValuesToBeBetween") == [True]
assert waiting() == [True, True]
partition = {{"values": ["1.0", "2.0"], "weights": [0.5, 0.5]}}
told = {{"column": "a", "partition_object": partition, "threshold": 0.6}}
assert verdicts(told, "ExpectColumnKLDivergenceToBeLessThan") in ([True], [False])
assert waiting()[0] is False
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_no_client_of_another_source_is_imported_with_the_library() -> None:
    program = f"""
import sys
from health_assets.quality.validation import import_great_expectations

import_great_expectations()
assert not {{*sys.modules}}.intersection({OF_OTHER_SOURCES})
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

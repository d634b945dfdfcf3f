"""How values are written for people, and for the script that draws curves from tables."""

import re
from typing import Any

import pytest

from health_assets.apps.serving.pages.rendering import curve_rows
from health_assets_tests.support.logs_made import START


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (181_666, "181666"), (9_007_199_254_740_993, "9007199254740993"), (0, "0"), (None, ""),
        (99.98765, "99.99"), (0.000123456, "0.0001235"), (0.0, "0"), (-2.5, "-2.5"), (123_456.78, "123457"),
    ],
)  # fmt: skip
def test_a_curve_is_drawn_of_the_counts_as_they_are(value: Any, written: str) -> None:
    row = str(curve_rows([{"hour": START, "agents": value}], ["agents"]))
    assert re.findall(r'<td class="num">(.*?)</td>', row) == [written]

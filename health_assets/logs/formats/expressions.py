"""Expressions of format declarations: paths into a record, in JMESPath.

What belongs here: compiling and evaluating them. What does not: which field one is of (`declaration`).
"""

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import jmespath
from jmespath.exceptions import JMESPathError

from health_assets.core.terminal import printable
from health_assets.logs.formats.foreign_lines import UnusableRecordError

_DOTTED = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
"""Names with dots between, which most expressions are: these are looked up ten times as fast as JMESPath is walked."""
_CONTEXT = re.compile(r"(?<![\w.])_(record|document|file|item|place|key|digest)\b")

Evaluated = Callable[[Any], Any]


@cache
def compiled(expression: str) -> Evaluated:
    """A function that evaluates the expression on a value.

    It raises `UnusableRecordError` where a function of JMESPath refuses what the value holds.

    Raises:
        ValueError: it is no JMESPath.
    """
    if _DOTTED.fullmatch(expression):
        return _path(expression.split("."))
    try:
        search = jmespath.compile(expression).search
    except JMESPathError as error:
        reason = printable(" ".join(str(error).split()), 200)
        raise ValueError(f"{printable(expression, 80)!r} is no JMESPath expression: {reason}") from None

    def evaluated(value: Any) -> Any:
        try:
            return search(value)
        except (JMESPathError, ArithmeticError, TypeError, ValueError, RecursionError):  # its text may repeat the value
            pass
        raise UnusableRecordError(f"{expression} cannot be evaluated")

    return evaluated


@cache
def needs_context(expression: str) -> bool:
    """Whether an expression looks at more than its own value: `_record`, `_document`, `_file` and the like."""
    return _CONTEXT.search(expression) is not None


def _path(names: list[str]) -> Evaluated:
    def evaluated(value: Any) -> Any:
        for name in names:
            if not isinstance(value, dict):
                return None
            value = value.get(name)
        return value

    return evaluated

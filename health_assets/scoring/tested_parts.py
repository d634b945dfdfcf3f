"""Parts of an agent's score that something in the window tests; all others count in full, as the source has it.

What belongs here: the conditions, as expressions. What does not: the points of each part (`agent_health_weights`), and
the same in words (`explanation`).
"""

from collections.abc import Mapping

from ibis import ir


def tested_parts(rows: ir.Table | Mapping[str, ir.Value]) -> dict[str, ir.BooleanValue]:
    """Whether each part of the score could lose points.

    Long runs test stability also where targets have changed since they were counted.

    Args:
        rows: a row of `agent_health`: `n`, `untimed`, `long_running`, `sla_checked`, `triggers` and
            `expected_runtime_s`.
    """
    has_runtimes = (rows["n"] > rows["untimed"]) & rows["expected_runtime_s"].notnull()
    return {
        "performance": has_runtimes,
        "stability": has_runtimes | (rows["long_running"] > 0),
        "slas": rows["sla_checked"] > 0,
        "triggers": rows["triggers"] > 0,
    }

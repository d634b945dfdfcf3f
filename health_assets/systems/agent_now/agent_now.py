"""Agents now: a verdict on the last hours, from how improbable their failures are at the expected success rate.

The evaluation window dilutes an outage: after an hour in which everything failed, 24 hours still look good. So the
last hour and the last 6 are judged by themselves, by counts instead of shares, which are known of few executions too.

    failing     improbable, and at least half of the last hour's executions failed, or the streak at the end alone is
                improbable; a streak is two or more, and stands for up to 6 hours in which nothing runs
    quiet       else, nothing ran in the last hour
    suspect     else, the last hour's failures are improbable, yet fewer than half
    recovering  else, failing within the last 3 hours
    suspect     else, the last 6 hours' failures are improbable, and none of these hours was failing
    ok          else

Verdicts of earlier hours, which `recovering` and `since` need, are computed from the components anew, as far back as
the look-back tells of every hour. So a row is a function of the logs, wherever the range of a run starts.

Of a running hour, the last hour is the last 60 minutes before the time up to which it is known, and the last 6 hours
are the last 360.
"""

from collections.abc import Callable, Sequence
from functools import partial

import ibis
import pyarrow as pa
from ibis import ir

from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.scoring.relations import lookup
from health_assets.scoring.target_columns import listed_agents, with_targets_used
from health_assets.scoring.trailing_counts import Trailing
from health_assets.scoring.wilson import interval
from health_assets.scoring.windows import WindowSum, sums_over_windows
from health_assets.systems.agent_now.now_components import now_components
from health_assets.systems.agent_now.verdict_grid import COUNTS, verdicts

Make = Callable[[pa.Table], pa.Table]
Grouped = Callable[[ir.Table, Sequence[str], Sequence[str], Make], ir.Table]
"""Calls a function of Arrow rows, as `Session.grouped` does."""
Persist = Callable[[ir.Table], ir.Table]
"""Evaluates an expression once, to be used several times."""
Fetch = Callable[[ir.Table], pa.Table]
"""Evaluates an expression into this process."""
AGENT = ("agent_id", "expected_success_rate", "piece")
TRAILING_LENGTHS = ("1h", "6h")
AGENTS_AT_ONCE = 20_000
"""Agents whose hours a process takes into memory together."""


def agent_now(
    components: ir.Table,
    endings: ir.Table,
    targets: Targets,
    hours: HourRange,
    lookback_hours: int,
    threshold: float,
    persist: Persist,
    fetch: Fetch,
    grouped: Grouped,
    agents_at_once: int = AGENTS_AT_ONCE,
    trailing: Trailing | None = None,
) -> ir.Table:
    """One row per known, not retired agent and hour: every column of `agent_now`.

    Args:
        components: rows of `health_components`, at least of `hours` and the look-back before them.
        endings: rows of `now_components` of the same hours.
        targets: for the success rate that is expected of each agent.
        hours: the hours to give rows for.
        lookback_hours: how long an agent stays known after its last event.
        threshold: failures of a smaller probability are no chance.
        persist: evaluates an expression once.
        fetch: evaluates an expression into this process.
        grouped: calls a function of the rows of each agent.
        agents_at_once: of how many agents it is given the rows at once.
        trailing: executions of the last hours, where the last of `hours` runs.
    """
    one_hour = {"executions": WindowSum("executions", 1)}
    known = sums_over_windows(components, listed_agents(targets), hours, one_hour, lookback_hours)
    known = with_targets_used(known.select("hour", "agent_id"), targets, ["expected_success_rate"])
    known = persist(known.mutate(piece=ibis.dense_rank().over(order_by="agent_id") // agents_at_once))
    span = hours.extended_back(lookback_hours - 1)
    # hours without executions need no rows, so that agents that run rarely cost little
    ran = components.filter(components.executions > 0, components.hour >= span.start, components.hour < span.end)
    ran = ran.select("hour", "agent_id", "executions", "failures").inner_join(
        known.select(*AGENT).distinct(), "agent_id"
    )
    joined = lookup(ran, endings.select("hour", "agent_id", "failed_at_end"), ["hour", "agent_id"])
    counts = {name: joined[name].fill_null(0).cast("int64") for name in ("executions", "failures", "failed_at_end")}
    zero = ibis.literal(0, "int64")
    ran_then = joined.select("hour", *AGENT, **counts, is_asked=ibis.literal(False))
    asked = known.select("hour", *AGENT, **dict.fromkeys(counts, zero), is_asked=ibis.literal(True))
    if trailing is not None:
        asked = _with_trailing(asked, trailing)
        ran_then = ran_then.mutate(**dict.fromkeys(COUNTS, ibis.null("int64"))).select(asked.columns)
    given = ibis.union(ran_then, asked)
    make = partial(verdicts, hours=hours, lookback_hours=lookback_hours, threshold=threshold)
    rows = _in_pieces(given, known, persist, fetch, lambda piece: grouped(piece, ["agent_id"], ["agent_id"], make))
    return rows.mutate(
        failing_threshold=ibis.literal(float(threshold)),
        **_shares(rows, "1h"),
        **_shares(rows, "6h"),
    )


def _with_trailing(asked: ir.Table, trailing: Trailing) -> ir.Table:
    """Add the `COUNTS` of the running hour: of the last 60 and 360 minutes, and the streak at their end."""
    streaks = now_components(trailing.of("6h")).rename(failed_in_a_row="failed_at_end")
    counts = trailing.counts(TRAILING_LENGTHS)
    rows = lookup(lookup(asked, counts, ["hour", "agent_id"]), streaks, ["hour", "agent_id"])
    is_running = rows.hour == trailing.hour
    return rows.mutate(**{name: is_running.ifelse(rows[name].fill_null(0).cast("int64"), None) for name in COUNTS})


def _in_pieces(
    given: ir.Table, known: ir.Table, persist: Persist, fetch: Fetch, made: Callable[[ir.Table], ir.Table]
) -> ir.Table:
    """The rows that are made of the given ones, piece by piece."""
    last = fetch(known.aggregate(last=known.piece.max()))["last"][0].as_py()
    if not last:
        return made(given.drop("piece"))
    given = persist(given)
    return ibis.union(*(made(given.filter(given.piece == piece).drop("piece")) for piece in range(last + 1)))


def _where(condition: ir.BooleanValue, value: ir.Value) -> ir.Value:
    return condition.ifelse(value, ibis.null(value.type()))


def _shares(rows: ir.Table, name: str) -> dict[str, ir.Value]:
    """The share of executions that succeeded, and the ends of its interval."""
    executions, failures = rows[f"executions_{name}"], rows[f"failures_{name}"]
    n = executions.nullif(0)
    low, high = interval(executions - failures, n, lambda value: value.sqrt())
    return {
        f"success_share_{name}": (executions - failures) / n,
        f"success_low_{name}": (failures == executions).ifelse(_where(executions > 0, low * 0), low),
        f"success_high_{name}": (failures == 0).ifelse(_where(executions > 0, high * 0 + 1), high),
    }

"""The tables of the release comparison."""

from datetime import datetime

import sqlalchemy as sa
from sqlmodel import Field

from health_assets.schema.columns import AsOf, Hourly, at, count, flag, number, text


class ReleaseComponent(Hourly, table=True):
    """Executions of each agent, version and model that ended in the hour: counts and sums, which merge by addition."""

    __tablename__ = "release_components"

    agent_id: str = text("Agent that ran.", key=True)
    agent_version: str = text("Version that ran; empty where executions name none.", key=True)
    model: str = text("Model that executions name; empty where they name none.", key=True)
    executions: int = count("Executions that ended in the hour.")
    successes: int = count("Executions that succeeded.")
    session_pairs: int = count("Ordered pairs of executions of one session.")
    session_pairs_first_succeeded: int = count("Pairs of them whose first one succeeded.")
    session_pairs_both_succeeded: int = count("Pairs of them of which both succeeded.")
    runs_with_tool_calls: int = count("Executions with a tool call.")
    runs_with_tool_failures: int = count("Executions with a tool call that failed.")
    runs_with_steps: int = count("Executions with a tool call of known arguments or a model call of known answer.")
    runs_with_loops: int = count("Executions of them that repeat a step.")
    timed_runs: int = count("Executions that succeeded and tell their runtime.")
    runtime_buckets: int = count("Sum of the latency buckets of their runtimes: logarithms in steps of 2%.")
    squared_runtime_buckets: int = count("Sum of the squares of these buckets.")
    latency_buckets: list[int] | None = Field(
        description="These buckets, ascending; `scoring.latency_buckets` says what a bucket is. Null without any.",
        sa_type=sa.ARRAY(sa.SmallInteger),
    )
    runs_with_tokens: int = count("Executions that tell tokens, into models or out of them.")
    tokens: int = count("Sum of their tokens, of each at most 100,000,000.")
    squared_kilotokens: float = number("Sum of the squares of their tokens, in thousands.")
    token_buckets: list[int] | None = Field(
        description="Their tokens as buckets, likewise: one token as one microsecond.",
        sa_type=sa.ARRAY(sa.SmallInteger),
    )
    runs_with_cost: int = count("Executions that have a cost.")
    cost_usd: float = number("Sum of their costs in US dollars, of each at most 10,000.")
    squared_cost_usd2: float = number("Sum of the squares of their costs, in square dollars.")
    successes_with_cost: int = count("Executions of them that succeeded.")
    cost_of_successes_usd: float = number("Sum of the costs of those that succeeded, in US dollars.")
    cost_buckets: list[int] | None = Field(
        description="Their costs as buckets, likewise: a millionth of a dollar as one microsecond.",
        sa_type=sa.ARRAY(sa.SmallInteger),
    )


class ReleaseComparison(AsOf, table=True):
    """A new version or model of an agent beside the one before it, by measure, with intervals valid at any time."""

    __tablename__ = "release_comparison"

    agent_id: str = text("Agent that ran both.", key=True)
    dimension: str = text("What is compared: `version` or `model`.", key=True)
    to_version: str = text("The new version or model.", key=True)
    measure: str = text(
        "`success_rate`, `success_rate_same_tasks` (with the old mix of tasks), `tool_failure_share`, "
        "`loop_share` or `violation_share`, shares of executions; `runtime` of successes, a geometric mean, "
        "`latency_p50_ms` its median, `latency_p95_ms` its 95th percentile; `tokens` of executions, a mean; "
        "`cost_per_success_usd`, the cost of executions over the number of them that succeeded.",
        key=True,
    )
    from_version: str = text("The version or model that ran most in the comparison's hours before the new one.")
    released_at: datetime = at("Start of the hour in which the new one ran first.")
    baseline_starts_at: datetime = at("From when on the baseline's executions count.")
    n_from: int = count("Executions of the baseline that tell of the measure.")
    n_to: int = count("Executions of the new one, likewise.")
    estimate_from: float | None = number(
        "Value of the baseline: a share from 0 to 1, seconds, milliseconds where the measure says so, tokens or "
        "US dollars. Null where nothing tells of it, or nothing succeeded that has a cost."
    )
    estimate_to: float | None = number("Value of the new one, likewise.")
    difference: float | None = number(
        "Of shares estimate_to - estimate_from, of the others estimate_to / estimate_from - 1. Null without estimates."
    )
    low: float | None = number(
        "Lower end of the 95% confidence sequence of the difference. Null where there is none yet."
    )
    high: float | None = number("Upper end, likewise.")
    margin: float = number("Largest difference that does not matter, in either direction; of ratios, of their factor.")
    verdict: str = text("`better`, `worse`, `no_difference` (none that matters) or `not_enough`.")
    more_runs: int | None = count(
        "About how many more executions of the new one a verdict needs; null with one, where the old one lacks some, "
        "or where it cannot be told."
    )
    mix_shift: float | None = number(
        "Share of executions, 0 to 1, that would have to be of other tasks for both to run the same mix of them. Null "
        "where tasks are not known."
    )
    is_mix_changed: bool | None = flag("Whether the mixes of tasks differ by more than chance; null likewise.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (ReleaseComponent, ReleaseComparison)

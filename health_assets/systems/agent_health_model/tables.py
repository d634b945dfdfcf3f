"""The Agent Health Model (source 1): hourly sums, scores of agents, and the fleet."""

from health_assets.schema.columns import Hourly, Windowed, count, flag, number, text


class HealthComponent(Hourly, table=True):
    """Additive sums per agent and hour; a window is the sum of its hours."""

    __tablename__ = "health_components"

    agent_id: str = text("Agent with any event in the hour.", key=True)
    executions: int = count("Executions that ended in the hour.")
    successes: int = count("Executions that succeeded.")
    failures: int = count("Executions that failed.")
    untimed: int = count("Executions of which the log does not tell how long they took; no runtime is counted.")
    runtime_us_sum: int = count("Sum of runtimes in whole microseconds, so that merging hours is exact in any order.")
    runtime_s_sum: float = number("The same sum in seconds.")
    long_running: int = count("Executions longer than long_running_factor times the expected runtime.")
    sla_checked: int = count("Executions that could breach an SLA: with a flag of their own, or a runtime and a limit.")
    sla_breaches: int = count("Executions that breached their SLA.")
    triggers: int = count("Triggers that fired or failed to.")
    trigger_failures: int = count("Triggers that failed.")
    executions_5m: int = count("Executions that ended in the last 5 minutes of the hour.")
    failures_5m: int = count("Executions among them that failed.")
    executions_30m: int = count("Executions that ended in the last 30 minutes of the hour.")
    failures_30m: int = count("Executions among them that failed.")


class AgentScore(Windowed):
    """Score and state of an agent over a window, with all that they follow from."""

    agent_id: str = text("Agent, known from an event of the look-back or from the targets.", key=True)
    state: str = text("`healthy`, `degraded`, `unhealthy` or `inactive`.")
    health_score: float | None = number("Health score, 0 to 100; null when inactive.")
    points_at_stake: float | None = number(
        "Points that could be lost, above 0 to 100: those that something in the window tests; null when inactive."
    )
    is_provisional: bool = flag("Whether the score rests on too few executions to be known: 0 < n < n_full.")
    n: int = count("Executions in the window.")
    successes: int = count("Executions that succeeded.")
    failures: int = count("Executions that failed.")
    asr: float | None = number("Actual success rate, 0 to 1.")
    afh: float | None = number("Actual failures per hour of the window.")
    ar_s: float | None = number("Actual (mean) runtime in seconds of the executions whose runtime is known.")
    untimed: int = count("Executions of which the log does not tell how long they took.")
    success_score: float | None = number("min(1, asr / expected_success_rate), 0 to 1.")
    failure_score: float | None = number("min(1, expected_failures_per_hour / afh), 0 to 1.")
    reliability_raw: float | None = number("0.7 success_score + 0.3 failure_score.")
    confidence_factor: float | None = number("min(1, n / n_full).")
    reliability_score: float | None = number("reliability_raw blended towards 1 by the confidence factor; 40 points.")
    deviation: float | None = number(
        "(ar_s - expected_runtime_s) / expected_runtime_s; null without expectation or runtime."
    )
    performance_score: float | None = number(
        "1 within the expected runtime and where there is none to compare, falling to 0 at deviation_allowed; "
        "20 points."
    )
    stability_score: float | None = number(
        "1 - min(1, log2(long_running + 1) / log2(stability_threshold + 1)); 20 points."
    )
    sla_score: float | None = number("1 - min(1, sla_breaches / sla_breach_threshold).")
    trigger_score: float | None = number("1 - min(1, trigger_failures / trigger_failure_threshold).")
    operational_score: float | None = number("0.6 sla_score + 0.4 trigger_score; 20 points.")
    long_running: int = count("Long-running executions in the window.")
    sla_checked: int = count("Executions in the window that could breach an SLA.")
    sla_breaches: int = count("SLA breaches in the window.")
    triggers: int = count("Triggers in the window that fired or failed to.")
    trigger_failures: int = count("Failed triggers in the window.")
    expected_success_rate: float = number("Target used, 0 to 1.")
    expected_failures_per_hour: float = number("Target used.")
    expected_runtime_s: float | None = number("Target used, in seconds; null = no expectation.")
    deviation_allowed: float = number("Target used, as a share of the expected runtime.")
    n_full: int = count("Target used: executions for full confidence.")
    long_running_factor: float = number("Target used: multiple of the expected runtime.")
    stability_threshold: float = number("Target used: long-running executions that cost all points.")
    sla_breach_threshold: float = number("Target used: breaches that cost all points.")
    trigger_failure_threshold: float = number("Target used: failed triggers that cost all points.")
    sla_s: float | None = number("Target used: time limit in seconds for executions that carry none.")
    healthy_at: float = number("Target used: lowest healthy score.")
    degraded_at: float = number("Target used: lowest degraded score.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


class AgentHealth(AgentScore, table=True):
    """The Agent Health Model: score and state of every known agent over the window that ends with the hour."""

    __tablename__ = "agent_health"


class AgentHealthShort(AgentScore, table=True):
    """The same scores over shorter windows, of the agents with an execution in each."""

    __tablename__ = "agent_health_short"

    agent_id: str = text("Agent with an execution in the window.", key=True)
    state: str = text("`healthy`, `degraded` or `unhealthy`.")
    health_score: float | None = number("Health score, 0 to 100.")
    points_at_stake: float | None = number(
        "Points that could be lost, above 0 to 100: those that something in the window tests."
    )
    window_hours: int = count("Length of the window.", key=True)


class SystemHealth(Windowed, table=True):
    """The fleet: the mean score of the agents that are not inactive, and how many are in each state."""

    __tablename__ = "system_health"

    health_score: float | None = number("Mean health score of agents that are not inactive; null if there is none.")
    agents: int = count("Known agents.")
    healthy: int = count("Healthy agents.")
    degraded: int = count("Degraded agents.")
    unhealthy: int = count("Unhealthy agents.")
    inactive: int = count("Inactive agents.")
    provisional: int = count("Agents, in whichever state, whose score is provisional.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (HealthComponent, AgentHealth, AgentHealthShort, SystemHealth)

"""The table of agent drift."""

from datetime import datetime

from health_assets.schema.columns import AsOf, at, count, flag, number, text


class AgentDrift(AsOf, table=True):
    """Evidence that an agent became worse than its own past, by measure; none where there is next to no evidence."""

    __tablename__ = "drift"

    agent_id: str = text("Agent that ran.", key=True)
    measure: str = text(
        "`success_rate`; `latency`, `tokens` or `cost`: runs that took more than a threshold; `tool_failure_share`: "
        "runs with a failed call of a tool, among those with a call; `tool_mix`: one tool's calls among all; "
        "`volume_drop` or `volume_rise`: fewer or more executions than on any of the six days before.",
        key=True,
    )
    since: datetime = at("Start of the hours that speak most against the past, up to this one; about when it began.")
    runs: int = count("Executions in these hours that tell of the measure; of the tool mix, calls.")
    value: float = number(
        "What they come to: the share that succeeded, of other measures the share that counts against the agent, "
        "0 to 1; of volumes executions an hour."
    )
    baseline_runs: int = count("Executions or calls in the hours before that they are compared with.")
    baseline: float = number("What those came to, likewise.")
    limit_value: float = number("The worst value that would still be as before: the baseline's bound with its margin.")
    threshold: float | None = number(
        "Of `latency`, `tokens` and `cost` how many seconds, tokens or US dollars a run exceeds that counts."
    )
    evidence: float = number(
        "Natural logarithm of the evidence: a sum of likelihood ratios, of every start that is looked at."
    )
    detectors: int = count("Agents and measures that have a past to be compared with in this hour.")
    is_drifting: bool = flag("Whether it is enough, so that false alarms stay as rare as the setting allows.")
    cause_dimension: str | None = text(
        "Of a share of runs that drifts: `version` or `model`, where one holds most of what is in excess; of the tool "
        "mix that drifts `tool`."
    )
    cause: str | None = text("The version, model or tool.")
    cause_share: float | None = number(
        "Its share of the runs in excess: those beyond the baseline's share, 0.5 to 1. Null of a tool."
    )
    hint: str | None = text("The same in words: `version 8: 83% of the failures in excess`.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (AgentDrift,)

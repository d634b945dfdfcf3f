"""The table of agent drift."""

from datetime import datetime

from health_assets.schema.columns import AsOf, at, count, flag, number, text


class AgentDrift(AsOf, table=True):
    """Evidence that an agent became worse than its own past, by measure; none where there is next to no evidence."""

    __tablename__ = "drift"

    agent_id: str = text("Agent that ran.", key=True)
    measure: str = text(
        "`success_rate`; `volume_drop` or `volume_rise`: fewer or more executions than on any of the six days before.",
        key=True,
    )
    since: datetime = at("Start of the hours that speak most against the past, up to this one; about when it began.")
    runs: int = count("Executions in these hours.")
    value: float = number("What they come to: the share that succeeded, 0 to 1, or executions an hour.")
    baseline_runs: int = count("Executions in the hours before that they are compared with.")
    baseline: float = number("What those came to, likewise.")
    limit_value: float = number("The worst value that would still be as before: the baseline's bound with its margin.")
    evidence: float = number(
        "Natural logarithm of the evidence: a sum of likelihood ratios, of every start that is looked at."
    )
    detectors: int = count("Agents and measures that have a past to be compared with in this hour.")
    is_drifting: bool = flag("Whether it is enough, so that false alarms stay as rare as the setting allows.")
    cause_dimension: str | None = text(
        "Of a success rate that drifts: `version` or `model`, where one holds most of the failures in excess."
    )
    cause: str | None = text("The version or model.")
    cause_share: float | None = number("Its share of the failures beyond the baseline's share, 0.5 to 1.")
    hint: str | None = text("The same in words: `version 8: 83% of the failures in excess`.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (AgentDrift,)

"""Agents now: whether the last hours' failures are more than chance, and how each hour ended."""

from datetime import datetime

from health_assets.schema.columns import AsOf, Hourly, at, count, number, text


class NowComponent(Hourly, table=True):
    """Streaks of failures at the end of an hour; hours that end with a success have no row."""

    __tablename__ = "now_components"

    agent_id: str = text("Agent whose last execution of the hour failed.", key=True)
    failed_at_end: int = count("Failures after the hour's last success; all executions where none succeeded.")


class AgentNow(AsOf, table=True):
    """Verdict on every known agent by its last 1 and 6 hours."""

    __tablename__ = "agent_now"

    agent_id: str = text("Agent, known from an event of the look-back or from the targets.", key=True)
    verdict: str = text("`failing`, `suspect`, `recovering`, `ok` or `quiet`.")
    since: datetime = at("Start of the first hour of the present verdict, as far back as the look-back tells.")
    good_hours: int | None = count(
        "Hours with executions after the last failing one, 0 to 3; null where the verdict is not `recovering`."
    )
    executions_1h: int = count("Executions in the last hour.")
    failures_1h: int = count("Executions among them that failed.")
    success_share_1h: float | None = number("Share of them that succeeded, 0 to 1; null where nothing ran.")
    success_low_1h: float | None = number("Lower end of the share's Wilson interval, 95 %.")
    success_high_1h: float | None = number("Upper end of the share's Wilson interval, 95 %.")
    executions_6h: int = count("Executions in the last 6 hours, or in the look-back where that is shorter.")
    failures_6h: int = count("Executions among them that failed.")
    success_share_6h: float | None = number("Share of them that succeeded, 0 to 1; null where nothing ran.")
    success_low_6h: float | None = number("Lower end of the share's Wilson interval, 95 %.")
    success_high_6h: float | None = number("Upper end of the share's Wilson interval, 95 %.")
    failed_in_a_row: int = count("Failures since the last success, at the end and within the last 6 hours.")
    p_chance: float | None = number(
        "Probability of at least as many failures in the last hour, or of those in a row at the end, at the expected "
        "success rate; the smaller. Null where nothing ran in the last hour and the last execution did not fail."
    )
    p_chance_6h: float | None = number(
        "Probability of at least as many failures in the last 6 hours; null where nothing ran."
    )
    expected_success_rate: float = number("Target used, 0 to 1.")
    failing_threshold: float = number("Setting used: failures of a smaller probability are no chance.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (NowComponent, AgentNow)

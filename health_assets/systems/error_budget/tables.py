"""Error budgets: how much of its allowed failures each agent has spent, and how fast."""

from health_assets.schema.columns import Windowed, count, number, text


class ErrorBudget(Windowed, table=True):
    """Every known agent's error budget: the share of its allowed failures that it has spent, and how fast it does."""

    __tablename__ = "error_budget"

    agent_id: str = text("Agent, known from an event of the look-back or from the targets.", key=True)
    n: int = count("Executions in the window.")
    failures: int = count("Executions that failed.")
    allowed_failures: float = number("(1 - expected_success_rate) n: failures that the target allows in the window.")
    budget_spent: float | None = number(
        "failures / allowed_failures, 1 = all of the budget; also the burn rate over the window. Null where nothing "
        "ran or nothing may fail."
    )
    n_5m: int = count("Executions in the last 5 minutes up to `as_of`.")
    failures_5m: int = count("Executions in the last 5 minutes that failed.")
    burn_rate_5m: float | None = number("(failures_5m / n_5m) / (1 - expected_success_rate); null as budget_spent.")
    n_30m: int = count("Executions in the last 30 minutes up to `as_of`.")
    failures_30m: int = count("Executions in the last 30 minutes that failed.")
    burn_rate_30m: float | None = number("(failures_30m / n_30m) / (1 - expected_success_rate); null as budget_spent.")
    n_1h: int = count("Executions in the last hour.")
    failures_1h: int = count("Executions in the last hour that failed.")
    burn_rate_1h: float | None = number(
        "(failures_1h / n_1h) / (1 - expected_success_rate), 1 = just what lasts for the window; null as budget_spent."
    )
    n_6h: int = count("Executions in the last 6 hours, or in the look-back where that is shorter.")
    failures_6h: int = count("Executions among them that failed.")
    burn_rate_6h: float | None = number("(failures_6h / n_6h) / (1 - expected_success_rate); null as budget_spent.")
    expected_success_rate: float = number("Target used, 0 to 1.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (ErrorBudget,)

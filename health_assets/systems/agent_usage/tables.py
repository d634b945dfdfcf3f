"""Usage: hourly sums of tokens and cost, and what every agent took in the window, also by version, model and user."""

from sqlmodel import SQLModel

from health_assets.schema.columns import Hourly, Windowed, count, number, text


class AgentRowFact(SQLModel):
    """The key of usage by agent."""

    agent_id: str = text("Agent with an execution or a cancelled run in that time.", key=True)


class OfPart(AgentRowFact):
    """The key of usage by agent, version, model and user."""

    agent_version: str = text("Version that ran; empty where executions name none.", key=True)
    model: str = text("Model that executions name; empty where they name none.", key=True)
    user_id: str = text("User that executions name, as in `executions`; empty where they name none.", key=True)


class Sums(SQLModel):
    """Sums over executions, and beside them over cancelled runs."""

    executions: int = count("Executions that ended in that time.")
    successes: int = count("Executions that succeeded.")
    executions_with_tokens: int = count("Executions that tell tokens, into models or out of them.")
    executions_with_cost: int = count("Executions that have a cost.")
    executions_with_computed_cost: int = count("Executions whose cost was computed from prices.")
    positive_feedback: int = count("Executions with positive feedback of people.")
    negative_feedback: int = count("Executions with negative feedback of people.")
    input_tokens: int | None = count("Tokens into models, with the cached ones; null where no execution tells any.")
    output_tokens: int | None = count("Tokens out of models, reasoning included; null where no execution tells any.")
    cache_read_tokens: int | None = count("Input tokens read from a cache; null where no execution tells any.")
    cache_creation_tokens: int | None = count("Input tokens written to a cache; null where no execution tells any.")
    reasoning_tokens: int | None = count("Output tokens spent on reasoning; null where no execution tells any.")
    cost_usd: float | None = number("Cost in US dollars; null where no execution tells any.")
    cancelled_runs: int = count("Runs that their users cancelled; they are no executions.")
    cancelled_input_tokens: int | None = count("Tokens into models of cancelled runs; null where none tells any.")
    cancelled_output_tokens: int | None = count("Tokens out of models of cancelled runs; null where none tells any.")
    cancelled_cost_usd: float | None = number("Cost of cancelled runs in US dollars; null where none tells any.")


class WindowSums(Sums):
    """Sums over the executions of a window, and what follows from them."""

    cost_source: str | None = text(
        "`stated`, or `computed` where the cost of any execution was computed from prices; null without a cost."
    )
    cost_per_success_usd: float | None = number(
        "cost_usd / successes in US dollars: failures cost, too. Null without a success or any cost."
    )
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


class UsageComponent(Sums, OfPart, Hourly, table=True):
    """Executions of each agent in the hour, with the tokens and the cost that they tell; a window is the sum."""

    __tablename__ = "usage_components"


class AgentUsage(WindowSums, AgentRowFact, Windowed, table=True):
    """Tokens and cost of every agent that ran in the window; at least that much, where not all tell theirs."""

    __tablename__ = "agent_usage"


class UsageBreakdown(WindowSums, OfPart, Windowed, table=True):
    """The same of every agent, version, model and user with an execution or a cancelled run in the window."""

    __tablename__ = "usage_breakdown"


TABLES = (UsageComponent, AgentUsage, UsageBreakdown)

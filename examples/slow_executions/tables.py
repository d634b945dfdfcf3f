"""The tables of slow executions."""

from health_assets.schema.columns import Hourly, Windowed, count, number, text


class RuntimeComponent(Hourly, table=True):
    """Executions of each agent that ended in the hour, by their runtime: counts, which merge by addition."""

    __tablename__ = "runtime_components"

    agent_id: str = text("Agent that ran.", key=True)
    runtime_us: int = count("Runtime in microseconds.", key=True)
    executions: int = count("Executions that took that long.")


class SlowExecutions(Windowed, table=True):
    """How many of each agent's executions in the window took more than twice as long as its median execution."""

    __tablename__ = "slow_executions"

    agent_id: str = text("Agent that ran.", key=True)
    executions: int = count("Executions in the window whose runtime is known.")
    slow: int = count("Executions that took more than twice the median.")
    slow_share: float = number("slow / executions, 0 to 1.")
    median_runtime_s: float = number("Median runtime in seconds; of an even number the lower of the two middle ones.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (RuntimeComponent, SlowExecutions)

"""Data quality: the history of every check."""

from health_assets.schema.columns import Hourly, count, flag, text


class ExpectationResult(Hourly, table=True):
    """The history of every data-quality check, hour by hour."""

    __tablename__ = "expectation_results"

    asset: str = text("Asset that was checked.", key=True)
    expectation: str = text("Name of the expectation, the same as that of the asset check.", key=True)
    success: bool = flag("Whether the hour meets the expectation.")
    element_count: int = count("Rows looked at.")
    unexpected_count: int = count("Rows that break the expectation.")
    severity: str = text("`error` stops what follows, `warn` asks a person to look.")


TABLES = (ExpectationResult,)

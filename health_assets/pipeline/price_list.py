"""Prices of models, from the list in the package `genai-prices` (extra `prices`).

What belongs here: the rates of the models and hours that are asked for, as a small table. What does not: the cost that
follows from them (`scoring.prices`). The list is the one that the package holds; nothing is asked over a network.
"""

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, time, timedelta
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from health_assets.core.hours import HourRange
from health_assets.scoring.prices import RATES

if TYPE_CHECKING:
    from genai_prices.types import ModelInfo, ModelPrice

PER_TOKEN = 1_000_000
PER_CALL = 1_000
NO_LIMIT = 2**63 - 1
Models = tuple[str, str | None]
"""The model that was asked for, and the one that answered."""


def has_price_list() -> bool:
    """Whether the package is installed."""
    return find_spec("genai_prices") is not None


def rates_of(models: Iterable[Models], hours: HourRange) -> pa.Table:
    """The rates of these models in these hours, `RATES`; none of a model that the list does not have.

    The model that answered counts, where the list has it: the one that was asked for may be an alias.
    """
    found = [rate for asked, answered in models for rate in _rates(asked, answered, hours)]
    return pa.Table.from_pylist(found, RATES)


def _rates(asked: str, answered: str | None, hours: HourRange) -> Iterator[dict[str, Any]]:
    model = next(filter(None, (_model(name) for name in (answered, asked) if name)), None)
    if model is None:
        return
    moments = [*_moments(model, hours), hours.end]
    for starts_at, ends_at in pairwise(moments):
        prices = model.get_prices(starts_at)
        thresholds = [-1, *_thresholds(prices), NO_LIMIT]
        for above, most in pairwise(thresholds):
            rates = _of_tokens(prices, above + 1)
            if rates is not None:
                yield {
                    "model": asked, "response_model": answered or "", "starts_at": starts_at, "ends_at": ends_at,
                    "above_tokens": above, "most_tokens": most, **rates,
                }  # fmt: skip


@cache
def _model(name: str) -> "ModelInfo | None":
    from genai_prices import Usage, calc_price

    try:
        return calc_price(Usage(input_tokens=0, output_tokens=0), name).model
    except LookupError:
        return None


def _moments(model: "ModelInfo", hours: HourRange) -> list[datetime]:
    """When another of the model's prices may begin to hold, from the first of these hours on."""
    from genai_prices.types import ModelPrice, StartDateConstraint, TimeOfDateConstraint

    found = {hours.start}
    for price in [] if isinstance(model.prices, ModelPrice) else model.prices:
        if isinstance(price.constraint, StartDateConstraint):
            found.add(datetime.combine(price.constraint.start_date, time(), UTC))
        elif isinstance(price.constraint, TimeOfDateConstraint):
            day = hours.start.replace(hour=0)
            while day < hours.end:
                for at in (price.constraint.start_time, price.constraint.end_time):
                    found.add(datetime.combine(day, at.replace(tzinfo=UTC)))
                day += timedelta(days=1)
    return sorted(moment for moment in found if hours.start <= moment < hours.end)


def _thresholds(prices: "ModelPrice") -> list[int]:
    from genai_prices.types import TieredPrices

    tiered = [price for price in vars(prices).values() if isinstance(price, TieredPrices)]
    return sorted({tier.start for price in tiered for tier in price.tiers})


def _of_tokens(prices: "ModelPrice", input_tokens: int) -> dict[str, float] | None:
    """The rates of a call with that many input tokens; None where the list has none for tokens."""

    def rate(name: str, *, per: int = PER_TOKEN) -> float | None:
        price = getattr(prices, name)
        if price is None:
            return None
        tiers = getattr(price, "tiers", ())
        applies = next((tier.price for tier in reversed(tiers) if input_tokens > tier.start), None)
        base = getattr(price, "base", price)
        return float((base if applies is None else applies) / per)

    input_usd, output_usd = rate("input_mtok"), rate("output_mtok")
    if input_usd is None and output_usd is None:
        return None
    input_usd, output_usd = input_usd or 0.0, output_usd or 0.0
    cache_read, cache_creation = rate("cache_read_mtok"), rate("cache_write_mtok")
    reasoning = rate("output_reasoning_mtok")
    return {
        "call_usd": rate("requests_kcount", per=PER_CALL) or 0.0,
        "input_usd": input_usd,
        "cache_read_usd": input_usd if cache_read is None else cache_read,
        "cache_creation_usd": input_usd if cache_creation is None else cache_creation,
        "output_usd": output_usd,
        "reasoning_usd": output_usd if reasoning is None else reasoning,
    }

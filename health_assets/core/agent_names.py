"""Agents' names: patterns that fold the names that logs give into one agent, and patterns of services that are agents.

What belongs here: one pattern, and the SQL that applies a list of them. What does not: reading the targets file, where
they are `names:` and `services:` (`targets`), and which rows get other names (`logs`, `pipeline.enrichment`).

Regular expressions are those of the DuckDB that works in this process (RE2), whatever the warehouse is, so that a
pattern means the same everywhere.
"""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Annotated

import duckdb
import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, model_validator

from health_assets.core.duckdb_errors import fault_of
from health_assets.core.sql_text import quoted
from health_assets.core.terminal import printable


class AgentName(BaseModel):
    r"""A pattern, and the agent that every name is which it matches as a whole.

    Args:
        match: regular expression (RE2) that must match the whole name.
        agent: the agent; `\\1` in it stands for what the first group of the pattern matched.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    match: Annotated[str, Field(min_length=1)]
    agent: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _can_be_applied(self) -> "AgentName":
        if (fault := fault_of(mapped(quoted(""), [self]))) is not None:
            given = [repr(printable(text, 60)) for text in (self.match, self.agent)]
            raise ValueError(f"{given[0]} cannot make {given[1]} of a name: {printable(fault, 80)}")
        return self


class AgentService(BaseModel):
    """A pattern of services whose outermost spans are executions where no span tells of an agent.

    Args:
        match: regular expression (RE2) that must match the whole name of the service.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    match: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _can_be_applied(self) -> "AgentService":
        if (fault := fault_of(is_of_services(quoted(""), [self]))) is not None:
            raise ValueError(f"{printable(self.match, 60)!r} is no pattern: {printable(fault, 80)}")
        return self


def is_of_services(name: str, services: Sequence[AgentService]) -> str:
    """SQL for whether a service is one whose outermost spans are executions."""
    matches = " OR ".join(f"regexp_full_match({name}, {quoted(one.match)})" for one in services)
    return f"coalesce({matches or 'false'}, false)"


def services_among(names: Iterable[str], services: Sequence[AgentService]) -> list[str]:
    """The names among some that a pattern matches."""
    with duckdb.connect() as connection:
        found = connection.execute(
            f"SELECT name FROM (SELECT unnest(?::VARCHAR[]) AS name) WHERE {is_of_services('name', services)}",
            [list(names)],
        ).fetchall()
    return [name for (name,) in found]


def mapped(name: str, names: Sequence[AgentName]) -> str:
    """SQL for the agent that a reported name stands for: that of the first pattern that matches, else the name.

    Args:
        name: SQL for the name that the log gives; null stays null.
        names: the patterns, in the order in which they are tried.
    """
    if not names:
        return name
    branches = " ".join(
        f"WHEN regexp_full_match({name}, {quoted(one.match)}) THEN {_replaced(name, one)}" for one in names
    )
    return f"CASE {branches} ELSE {name} END"


def reported(name: str, names: Sequence[AgentName]) -> str:
    """SQL for the column `agent_id_reported`: the name that the log gives where it is not the agent's; else null."""
    return f"nullif({name}, {mapped(name, names)})" if names else "NULL::VARCHAR"


def agents_of(reported_names: Iterable[str], names: Sequence[AgentName]) -> dict[str, str]:
    """The agent of each of some reported names."""
    with duckdb.connect() as connection:
        rows = connection.execute(
            f"SELECT name, {mapped('name', names)} FROM (SELECT unnest(?) AS name)", [list(reported_names)]
        ).fetchall()
    return dict(rows)


def with_agents(rows: pa.Table, names: Sequence[AgentName]) -> pa.Table:
    """Rows whose `agent_id` is as reported, with the agents' own in its place and `agent_id_reported` beside it."""
    if not names:
        return rows
    encoded = rows["agent_id"].combine_chunks().dictionary_encode()
    told = encoded.dictionary.to_pylist()
    agents = agents_of(told, names)
    kept = [name if agents[name] != name else None for name in told]
    for column, values in (("agent_id", [agents[name] for name in told]), ("agent_id_reported", kept)):
        place = rows.schema.get_field_index(column)
        rows = rows.set_column(place, column, pa.array(values, pa.string()).take(encoded.indices))
    return rows


UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
UUID_LIKE = "%-____-____-____-____________%"
"""A pattern of SQL's LIKE that every name with a UUID in it matches."""


def alike_but_for_uuids(names: Iterable[str]) -> list[str]:
    """Names that differ from another one of these names only by a UUID, in order."""
    by_rest: dict[str, list[str]] = {}
    for name in names:
        if UUID.search(name):
            by_rest.setdefault(UUID.sub("", name), []).append(name)
    return sorted(name for alike in by_rest.values() if len(alike) > 1 for name in alike)


LOOK_ALIKES = str.maketrans(
    "\u0430\u0432\u0435\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445"  # Cyrillic
    "\u0455\u0456\u0458\u0501\u051b\u051d"
    "\u03b1\u03b5\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7"  # Greek
    "\u0131\u0261\u2010\u2011\u2012\u2013\u2212",
    "abekmhopctyxsijdqwaeikvoptuxig-----",
)
"""Small letters and hyphens that are drawn like those of ASCII, and these."""


def twins(names: Iterable[str]) -> list[tuple[str, ...]]:
    """Names that differ only by case, by how characters are encoded, or by letters that look alike, in groups."""
    by_look: dict[str, list[str]] = {}
    for name in names:
        by_look.setdefault(_look(name), []).append(name)
    return sorted(tuple(sorted(alike)) for alike in by_look.values() if len(alike) > 1)


def _look(name: str) -> str:
    if name.isascii():
        return name.lower()
    seen = "".join(one for one in unicodedata.normalize("NFKC", name) if unicodedata.category(one) != "Cf")
    return unicodedata.normalize("NFKC", seen.casefold().translate(LOOK_ALIKES))


def _replaced(name: str, one: AgentName) -> str:
    whole = f"^(?:{one.match})$"
    return f"coalesce(nullif(regexp_replace({name}, {quoted(whole)}, {quoted(one.agent)}), ''), {name})"

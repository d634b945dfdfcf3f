"""The suggestions as a targets file that holds nothing else, its evidence in comments; and how it differs from now."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal

import yaml

from health_assets.apps.target_suggestions.statistics_of_days import (
    MADS,
    NEEDED_DAYS,
    NEEDED_RUNS,
    Suggestion,
)
from health_assets.apps.target_suggestions.suggesting import Suggestions
from health_assets.core.formatting import counted
from health_assets.core.targets import Targets
from health_assets.core.terminal import printable

PLAIN_KEY = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@/-]*")
LONGEST_KEY = 1000
"""Characters of a key before a colon; a YAML reader takes longer ones only after a question mark."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A target that the suggestion would change.

    Args:
        agent_id: whose.
        name: which.
        present: its value now; None where there is none.
        is_default: whether the defaults give it.
        suggested: its value then.
    """

    agent_id: str
    name: str
    present: float | None
    is_default: bool
    suggested: float


def changes(suggestions: Sequence[Suggestion], targets: Targets) -> list[Change]:
    """The targets that the suggestions would change, in their order."""
    every = (
        Change(
            agent_id=one.agent_id,
            name=name,
            present=(present := getattr(targets.of(one.agent_id), name)),
            is_default=present == getattr(targets.defaults, name),
            suggested=value.value,
        )
        for one in suggestions
        for name, value in one.values.items()
    )
    return [change for change in every if change.present != change.suggested]


def document(suggestions: Suggestions) -> str:
    """The targets file: for each agent the suggested targets alone."""
    return "\n".join((*_header(suggestions), *_agents(suggestions), *_lacking(suggestions))) + "\n"


def number(value: float) -> str:
    """A number as YAML reads it: without an exponent."""
    return f"{Decimal(f'{value:.12g}'):f}"


def _header(suggestions: Suggestions) -> Iterator[str]:
    found = counted(suggestions.days, "day")
    span = f"{suggestions.first} to {suggestions.end:%Y-%m-%d %H:%M} UTC"
    yield f"# Suggested by `health-assets targets suggest` from {span},"
    yield f"# {found} with runs. The values say what was usual, not what is good enough: review them, and copy those"
    yield "# that you accept. All else in your targets file stays as it is. A day is left out where its failures or its"
    yield f"# median runtime are more than {MADS} scaled median absolute deviations above those of its median day."


def _agents(suggestions: Suggestions) -> Iterator[str]:
    yield "agents:" if suggestions.found else "agents: {}"
    for one in suggestions.found:
        yield f"  {_key(one.agent_id)}:  # {counted(one.runs, 'run')} on {counted(one.days, 'typical day')}"
        yield from (f"    # {day.words}" for day in one.left_out)
        if one.remark:
            yield f"    # {one.remark}"
        pairs = {f"{name}: {number(value.value)}": value.evidence for name, value in one.values.items()}
        width = max(map(len, pairs))
        for pair, evidence in pairs.items():
            yield f"    {pair:{width}}  # {evidence}"


def _lacking(suggestions: Suggestions) -> Iterator[str]:
    if suggestions.lacking:
        yield f"# Nothing is suggested for these; {NEEDED_RUNS} runs on {NEEDED_DAYS} typical days are needed:"
    for one in suggestions.lacking:
        yield f"#   {printable(one.agent_id)}: {one.reason}"
        yield from (f"#     {day.words}" for day in one.left_out)


def _key(agent_id: str) -> str:
    """An agent's name as a key, which a log may have chosen freely."""
    is_plain = PLAIN_KEY.fullmatch(agent_id)
    key = agent_id if is_plain else yaml.safe_dump(agent_id, default_style='"', width=float("inf")).strip()
    return key if len(key) < LONGEST_KEY else f"? {key}\n  "

"""The gate of a release: whether its comparisons and the agent's error budget let it go on."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import share
from health_assets.core.hours import HourRange
from health_assets.core.terminal import printable
from health_assets.systems.release_comparison.comparison_rows import Comparison, by_pair
from health_assets.systems.release_comparison.names import SUCCESS_RATE, UNDECIDED, WORSE
from health_assets.systems.release_comparison.newest import newest_comparisons
from health_assets.systems.release_comparison.report import release_text
from health_assets.systems.release_comparison.texts import sentence
from health_assets.warehouse.session import Session

PASSED, REFUSED, TOO_LITTLE_KNOWN = 0, 1, 3
"""Exit codes: the release may go on; it is worse, or the budget is spent; too little is known."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """One reason for or against a release.

    Args:
        name: what was looked at.
        sentence: what was found.
        exit_code: `PASSED`, or what it means for the gate.
    """

    name: str
    sentence: str
    exit_code: int


@dataclass(frozen=True, kw_only=True)
class GateRules:
    """What a release has to fulfil.

    Args:
        measures: the measures that count.
        least_runs: executions of the new version below which nothing is known.
        needs_verdict: whether a measure that is not decided yet stops the release.
        looks_at_budget: whether a spent error budget does.
    """

    measures: Collection[str] = (SUCCESS_RATE,)
    least_runs: int = 0
    needs_verdict: bool = False
    looks_at_budget: bool = True


def release_of(
    session: Session, hours: HourRange, agent_id: str, dimension: str, candidate: str | None
) -> list[Comparison]:
    """The comparisons of a release: of the newest one, where none is named; none where nothing is compared.

    Raises:
        HealthAssetsError: the agent has no such release in these hours.
    """
    releases = by_pair(newest_comparisons(session, hours, [agent_id], dimension))
    if candidate is None:
        return max(releases, key=lambda rows: rows[0]["released_at"], default=[])
    for rows in releases:
        if rows[0]["to_version"] == candidate:
            return rows
    known = ", ".join(printable(rows[0]["to_version"]) for rows in releases) or "none"
    raise HealthAssetsError(
        f"{printable(agent_id)} has no comparison of {dimension} {printable(candidate)!r}; compared: {known}"
    )


def judged(rows: Sequence[Comparison], budget_spent: float | None, rules: GateRules) -> list[Judged]:
    """What speaks for and against a release: a reason for each measure that counts, and one for the error budget.

    Args:
        rows: the comparisons of one release; none where nothing is compared.
        budget_spent: share of the error budget that the agent has spent; None where it has none.
        rules: what it has to fulfil.
    """
    of_measures = {row["measure"]: row for row in rows}
    reasons = [_of_measure(measure, of_measures.get(measure), rules) for measure in rules.measures]
    if rules.looks_at_budget and budget_spent is not None:
        is_spent = budget_spent >= 1
        told = f"{share(budget_spent)} of the error budget is spent"
        reasons.append(Judged(name="error budget", sentence=told, exit_code=REFUSED if is_spent else PASSED))
    return reasons


def _of_measure(measure: str, row: Comparison | None, rules: GateRules) -> Judged:
    if row is None:
        return Judged(name=measure, sentence=f"{measure} is not compared", exit_code=TOO_LITTLE_KNOWN)
    told = sentence(row)
    if row["verdict"] == WORSE:
        return Judged(name=measure, sentence=told, exit_code=REFUSED)
    if row["n_to"] < rules.least_runs:
        told = f"{told}; {row['n_to']:,} of at least {rules.least_runs:,} runs"
        return Judged(name=measure, sentence=told, exit_code=TOO_LITTLE_KNOWN)
    is_open = rules.needs_verdict and row["verdict"] == UNDECIDED
    return Judged(name=measure, sentence=told, exit_code=TOO_LITTLE_KNOWN if is_open else PASSED)


def of_rows(rows: Sequence[Comparison]) -> list[Judged]:
    """What each comparison says of its release, by agent, release and measure."""
    codes = {WORSE: REFUSED, UNDECIDED: TOO_LITTLE_KNOWN}
    return [
        Judged(
            name=f"{printable(row['agent_id'])} {release_text(row)} {row['measure']}",
            sentence=sentence(row),
            exit_code=codes.get(row["verdict"], PASSED),
        )
        for row in rows
    ]


def exit_code_of(reasons: Sequence[Judged]) -> int:
    """The exit code of a gate: a reason against the release counts before one that knows too little."""
    codes = {reason.exit_code for reason in reasons}
    return next((code for code in (REFUSED, TOO_LITTLE_KNOWN) if code in codes), PASSED)

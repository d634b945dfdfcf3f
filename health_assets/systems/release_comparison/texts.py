"""Comparisons as people read them: values with their units, differences with their intervals, verdicts."""

from collections.abc import Collection, Iterable, Sequence

from health_assets.core.formatting import counted, dollars, duration, share
from health_assets.systems.release_comparison.comparison_rows import Comparison
from health_assets.systems.release_comparison.names import (
    BETTER,
    COST_PER_SUCCESS,
    LOOPS,
    PERCENTS,
    RUNTIME,
    RUNTIME_P50,
    RUNTIME_P95,
    SAME,
    SAME_TASKS,
    SHARES,
    SUCCESS_RATE,
    TOKENS,
    TOOL_FAILURES,
    UNDECIDED,
    VIOLATIONS,
    WORSE,
)

NAMES = {
    SUCCESS_RATE: "success rate", SAME_TASKS: "success, same tasks", VIOLATIONS: "violations",
    TOOL_FAILURES: "tool failures", LOOPS: "loops", RUNTIME: "mean runtime",
    RUNTIME_P50: "median runtime", RUNTIME_P95: "p95 runtime", TOKENS: "tokens a run",
    COST_PER_SUCCESS: "cost per success",
}  # fmt: skip
VERDICT_TEXTS = {WORSE: "worse", BETTER: "better", SAME: "no difference that matters", UNDECIDED: "not enough yet"}
NOTHING = "–"


def value_text(measure: str, value: float | None) -> str:
    """A value with its unit; a dash for none."""
    if value is None:
        return NOTHING
    if measure in SHARES:
        return share(value)
    if measure in PERCENTS:
        return duration(value / 1e3)
    if measure == RUNTIME:
        return duration(value)
    if measure == TOKENS:
        return f"{value:,.0f}"
    return dollars(value)


def difference_text(row: Comparison) -> str:
    """The difference with its interval: `-13.7 points (-22.3 to -5.5)`, or `+12 % (3 to 21)`."""
    if row["difference"] is None:
        return NOTHING
    decimals, unit = (1, " points") if row["measure"] in SHARES else (0, "%")
    text = f"{100 * row['difference']:+,.{decimals}f}{unit}"
    if row["low"] is None:
        return text
    low, high = (f"{100 * row[end]:+,.{decimals}f}" for end in ("low", "high"))
    return f"{text} ({low} to {high})"


def margin_text(row: Comparison) -> str:
    """The largest difference that does not matter: `±2 pts`, or `±10%`."""
    return f"±{100 * row['margin']:.3g}{' pts' if row['measure'] in SHARES else '%'}"


def margins_text(rows: Iterable[Comparison]) -> str:
    """The margins of several comparisons, each once: `±2 pts or ±10%`."""
    return " or ".join(dict.fromkeys(margin_text(row) for row in rows))


def runs_text(row: Comparison) -> str:
    """The executions of both sides that tell of the measure: `1,204 → 310`."""
    return f"{row['n_from']:,} → {row['n_to']:,}"


def brief_verdict(row: Comparison) -> str:
    """The verdict in as few words as a column has room for."""
    if row["more_runs"]:
        return f"needs ~{counted(row['more_runs'], 'run')}"
    return "no difference" if row["verdict"] == SAME else VERDICT_TEXTS[row["verdict"]]


def verdict_text(row: Comparison) -> str:
    """The verdict in words, with how many runs are wanted yet."""
    text = VERDICT_TEXTS[row["verdict"]]
    return f"{text}: about {counted(row['more_runs'], 'more run')}" if row["more_runs"] else text


def summary(rows: Sequence[Comparison]) -> str:
    """Whether a new version is worse or better, in what, and how many runs that rests on.

    Args:
        rows: the comparisons of one release at one hour.
    """
    parts = []
    for verdict, words in (WORSE, "worse in"), (BETTER, "better in"), (SAME, "no difference that matters in"):
        if names := [NAMES[row["measure"]] for row in rows if row["verdict"] == verdict]:
            parts.append(f"{words} {', '.join(names)}")
    is_open = any(row["measure"] == SUCCESS_RATE and row["verdict"] == UNDECIDED for row in rows)
    if parts and is_open:
        parts.append(f"not enough runs yet for the {NAMES[SUCCESS_RATE]}")
    runs = max(row["n_to"] for row in rows)
    before = max(row["n_from"] for row in rows)
    text = "; ".join(parts) or "not enough runs yet"
    return f"{text[0].upper()}{text[1:]}. From {counted(runs, 'run')} of the new one and {before:,} of the one before."


def mix_text(row: Comparison, measures: Collection[str]) -> str | None:
    """What to know of a release that ran another mix of tasks; None where it did not, or tasks are not known.

    Args:
        row: a comparison of the release.
        measures: all that it is compared by.
    """
    if not row["is_mix_changed"]:
        return None
    has_same = SAME_TASKS in measures
    then = f"see '{NAMES[SAME_TASKS]}'" if has_same else "too few tasks are common to compare the same ones"
    return f"another mix of tasks than before ({share(row['mix_shift'])} would have to be of other tasks): {then}"


def sentence(row: Comparison) -> str:
    """A comparison in one line: `success rate 94% → 81%, -13.7 points (-22.3 to -5.5): worse`."""
    values = " → ".join(value_text(row["measure"], row[name]) for name in ("estimate_from", "estimate_to"))
    return f"{NAMES[row['measure']]} {values}, {difference_text(row)}: {verdict_text(row)}"

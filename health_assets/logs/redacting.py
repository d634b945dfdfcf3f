"""Redacting: the free texts of parsed rows without secrets, and cut to the length that tables hold.

What belongs here: which columns of parsed rows are free texts. What does not: what a secret is (`core.redaction`), and
what a line means (`native`, `otlp`).

A text is cut after its secrets are replaced, because half of a secret looks like none. So parsers hand over a little
more than tables hold (`READ_TEXT_BYTES`), and from a text that they cut themselves the end, where half a secret may
stand, is left out again. Ids and names stay as they are: tables are joined by them.
"""

from collections.abc import Sequence

from health_assets.core.judges import KINDS
from health_assets.core.redaction import Redaction, marks, secrets
from health_assets.logs.formats.foreign_lines import RAW_TEXT_BYTES, READ_TEXT_BYTES
from health_assets.logs.limits import cut_text
from health_assets.logs.native_line_types import FREE_TEXTS

LINE_TEXTS = (*FREE_TEXTS, "rejection", "raw", "judge", "judged_by")
"""All texts of a line that may hold secrets; actions and violations are lists of such."""
SHOWN_CHARACTERS = 100
"""Of the value that a reason shows."""


def redacted_lines(lines: str, redaction: Redaction) -> str:
    """SQL for the rows of `native.parsed_lines` without secrets, with their count in the column `secrets`."""
    lost = " + ".join(secrets(name, _kept(name)) for name in (*FREE_TEXTS, "judge", "judged_by"))
    lost += f" + {secrets('actions::VARCHAR', 'kept_actions::VARCHAR')}"
    lost += " + CASE WHEN violations IS NULL THEN 0 ELSE " + (
        f"greatest(0, {marks('kept_violations::VARCHAR')} - {marks('violations::VARCHAR')}) END"
    )
    return _selected(
        lines,
        LINE_TEXTS,
        {"judged_by": _judged_by(), "actions": _actions(redaction), "violations": _violations(redaction)},
        f"CASE WHEN raw IS NULL THEN {lost} ELSE {_in_rejected('rejection')} END",
        "rejection",
        redaction,
    )


def redacted_spans(spans: str, redaction: Redaction) -> str:
    """SQL for the rows of `otlp.parsed_spans` without secrets, with their count in the column `secrets`."""
    lost = f"CASE WHEN raw IS NULL THEN {secrets('error', _kept('error'))} ELSE {_in_rejected('reason')} END"
    return _selected(spans, ("error", "reason", "raw"), {}, lost, "reason", redaction)


def redacted_evaluations(results: str, redaction: Redaction) -> str:
    """SQL for the rows of `otlp_evaluations.parsed_evaluations` without secrets, likewise."""
    lost = f"CASE WHEN raw IS NULL THEN {secrets('label', _kept('label'))} ELSE {_in_rejected('reason')} END"
    return _selected(results, ("label", "reason", "raw"), {}, lost, "reason", redaction)


def cut(text: str, most_bytes: int | str = RAW_TEXT_BYTES) -> str:
    """SQL for a text in at most so many bytes of UTF-8, cut between two characters."""
    cuts = ", ".join(f"TRY(decode(encode({text})[1:{most_bytes} - {shorter}]))" for shorter in range(4))
    return f"CASE WHEN strlen({text}) <= {most_bytes} THEN {text} ELSE coalesce({cuts}) END"


def _selected(
    rows: str, texts: Sequence[str], others: dict[str, str], lost: str, reason: str, redaction: Redaction
) -> str:
    """The rows without secrets. All texts go through one list, since planning the patterns for each would be dear."""
    suspects = " OR ".join(redaction.suspects(text) for text in texts)
    each = f"list_transform([{', '.join(texts)}], lambda one: {redaction.without_secrets('one')})"
    kept = {text: f"CASE WHEN texts IS NULL THEN {text} ELSE {_found(text, texts)} END" for text in texts}
    kept |= others
    replaced = ", ".join(f"{sql} AS {_kept(name)}" for name, sql in kept.items())
    final = {name: _kept(name) for name in kept}
    final |= {name: cut_text(_kept(name)) for name in FREE_TEXTS if name in kept}
    final |= {reason: _cut_reason(_kept(reason)), "raw": cut(_kept("raw"), "raw_bytes")}
    columns = ", ".join(f"{sql} AS {name}" for name, sql in final.items())
    left_out = ", ".join([*kept, *map(_kept, kept), "texts", "raw_bytes"])
    return f"""
    WITH searched AS (SELECT *, CASE WHEN {suspects} THEN {each} END AS texts FROM ({rows})),
    found AS (SELECT *, {replaced} FROM searched),
    measured AS (SELECT *, CASE WHEN raw IS NOT NULL THEN {_raw_bytes()} END AS raw_bytes FROM found)
    SELECT * EXCLUDE ({left_out}), {columns}, coalesce({lost}, 0) AS secrets FROM measured
    """


def _kept(name: str) -> str:
    return f"kept_{name}"


def _raw_bytes() -> str:
    """The length of raw text that stays, in bytes. A text that was cut before loses its end."""
    character = 4  # bytes of the longest one, before which it may have been cut
    spare = READ_TEXT_BYTES - RAW_TEXT_BYTES - character
    was_cut = f"strlen(raw) > {READ_TEXT_BYTES - character}"
    less = f"least({RAW_TEXT_BYTES}, strlen({_kept('raw')}) - {spare})"
    return f"CASE WHEN {was_cut} THEN greatest(0, {less}) ELSE {RAW_TEXT_BYTES} END"


def _in_rejected(reason: str) -> str:
    """The reason shows a part of the raw text; what both lost counts once."""
    of_each = [f"coalesce({secrets(name, _kept(name))}, 0)" for name in (reason, "raw")]
    return f"greatest({', '.join(of_each)})"


def _cut_reason(reason: str) -> str:
    """The reason with no more of the value that it shows than is shown; the place of a span stays."""
    place = f"regexp_extract({reason}, ', in (span|log record) [0-9.]+$')"
    without_place = f"left({reason}, length({reason}) - length({place}))"
    pattern = rf"(?s)^(.*?, not .{{{SHOWN_CHARACTERS}}}).*$"
    return f"regexp_replace({without_place}, '{pattern}', '\\1') || {place}"


def _actions(redaction: Redaction) -> str:
    each = f"list_transform(actions, lambda one: {redaction.without_secrets('one')})"
    return f"CASE WHEN {redaction.suspects_any('actions')} THEN {each} ELSE actions END"


def _found(text: str, texts: Sequence[str] = LINE_TEXTS) -> str:
    """A text without secrets, where those of its line were searched."""
    return f"texts[{texts.index(text) + 1}]"


def _judged_by() -> str:
    """A kind of judge is none of the user's secrets, whatever pattern takes it; anything else is somebody's name."""
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    return f"CASE WHEN texts IS NULL OR judged_by IN ({kinds}) THEN judged_by ELSE {_found('judged_by')} END"


def _violations(redaction: Redaction) -> str:
    text = "violations::VARCHAR"
    taken = """json_transform(violations, '[{"constraint": "VARCHAR", "severity": "VARCHAR"}]')"""
    one = f"""struct_pack("constraint" := {redaction.without_secrets('one."constraint"')}, severity := one.severity)"""
    each = f"to_json(list_transform({taken}, lambda one: {one}))"
    suspects = rf"{redaction.suspects(text)} OR contains({text}, '\u')"
    return f"CASE WHEN violations <> '[]' AND ({suspects}) THEN {each} ELSE violations END"

"""Expectations of `raw_logs` and the record tables."""

from collections.abc import Iterator, Mapping, Sequence

from health_assets.core.judges import KINDS
from health_assets.logs.span_kinds import KINDS_OF_RECORDS, STEP_KINDS
from health_assets.quality import batches as common
from health_assets.quality import record_batches as batches
from health_assets.quality.check_names import FEW_LINES_ARE_REJECTED, MOST_REJECTED_SHARE
from health_assets.quality.every_table import OF_EVERY_TABLE
from health_assets.quality.expectations import (
    Check,
    HoursMaker,
    RowsMaker,
    Suite,
    at_least,
    between,
    equal,
    greater,
    one_of,
    unique,
)
from health_assets.schema.log_fields import Choice, Count, Number
from health_assets.schema.records import RECORDS, SIGNAL_COLUMNS, TABLE_OF_RECORD, RecordType, RejectedRecord
from health_assets.scoring.outcomes import NEGATIVE, OUTCOME_SOURCES, POSITIVE
from health_assets.scoring.prices import SOURCES
from health_assets.scoring.usage import AMOUNTS

OF_EVERY_RECORD_TABLE = (
    *OF_EVERY_TABLE,
    Check(name="every_line_is_a_row", expectations=equal("rows_kept", "lines_kept"), batch="hours"),
)


def _record_suite(
    record: RecordType, checks: Sequence[Check] = (), hours: HoursMaker = batches.hours_of_records
) -> Suite:
    within = Check(
        name="times_are_within_their_hour",
        expectations=[*at_least(record.time, "hour"), *greater("next_hour", record.time)],
    )
    own = [*OF_EVERY_RECORD_TABLE, within, *_checks_of_fields(record), *checks]
    made: dict[str, RowsMaker] = {"rows": common.rows}
    if record.id:
        own += _checks_of_ids(record.id)
        made["repeated_ids"] = batches.repeated_ids
    return Suite(
        asset=TABLE_OF_RECORD[record.name], checks=own, rows=made, hours=hours, prefiltered=frozenset(made) - {"rows"}
    )


def _checks_of_fields(record: RecordType) -> Iterator[Check]:
    """What must be true of columns that hold fields of lines, by the kind of field."""
    numbers = {column: field for column, field in record.columns.items() if isinstance(field, Number)}
    shares = [column for column, field in numbers.items() if field.most == 1]
    amounts = [column for column, field in record.columns.items() if column in numbers or isinstance(field, Count)]
    amounts = [column for column in amounts if column not in shares]
    choices = [
        expectation
        for column, field in record.columns.items()
        if isinstance(field, Choice)
        for expectation in one_of(column, *field.words)
    ]
    if choices:
        yield Check(name="values_are_known", expectations=choices)
    if shares:
        yield Check(name="shares_are_between_0_and_1", expectations=between(0, 1, *shares))
    if amounts:
        yield Check(name="amounts_are_not_negative", expectations=between(0, None, *amounts))


def _checks_of_ids(key: str) -> list[Check]:
    return [
        Check(name=f"{key}_is_unique_within_the_hour", expectations=unique("hour", key, *_tells_apart(key))),
        Check(
            name=f"{key}_is_in_one_hour_only",
            expectations=between(0, 1, "hours_with_id"),
            severity="warn",
            batch="repeated_ids",
        ),
        Check(
            name="no_id_belongs_to_two_agents",
            expectations=between(0, 1, "agents_with_id"),
            severity="warn",
            batch="repeated_ids",
        ),
    ]


def _tells_apart(key: str) -> list[str]:
    """Columns that tell records of one id apart: agents number theirs independently, and some calls name no agent."""
    return ["agent_id", "agent_id_reported", *(["execution_id"] if key == "call_id" else [])]


RAW_LOGS = Suite(
    asset="raw_logs",
    checks=[
        *OF_EVERY_TABLE,
        Check(name="every_line_is_accounted_for", expectations=equal("lines_counted", "lines_read"), batch="files"),
        Check(
            name="few_lines_of_a_file_are_rejected",
            expectations=between(0, MOST_REJECTED_SHARE, "rejected_share"),
            severity="warn",
            batch="files",
        ),
        Check(
            name="counts_are_possible",
            expectations=between(0, None, "lines"),
        ),
    ],
    rows={"rows": common.rows, "files": batches.files},
)

REJECTED_RECORDS = Suite(
    asset="rejected_records",
    checks=[
        *OF_EVERY_RECORD_TABLE,
        Check(
            name=FEW_LINES_ARE_REJECTED,
            expectations=between(0, MOST_REJECTED_SHARE, "rejected_share"),
            severity="warn",
            batch="hours",
        ),
    ],
    rows={"rows": common.rows},
    hours=batches.hours_of_rejections,
)

COST_SOURCES_ARE_KNOWN = Check(name="cost_sources_are_known", expectations=one_of("cost_source", *SOURCES))

BESIDES: Mapping[str, Sequence[Check]] = {
    "execution": [
        COST_SOURCES_ARE_KNOWN,
        Check(name="sources_of_outcomes_are_known", expectations=one_of("outcome_source", *OUTCOME_SOURCES)),
        Check(name="feedback_is_known", expectations=one_of("feedback", POSITIVE, NEGATIVE)),
        Check(
            name="executions_end_after_they_start",
            expectations=[*at_least("ended_at", "started_at"), *between(0, None, "runtime_s")],
        ),
        Check(name="signals_are_between_0_and_1", expectations=between(0, 1, *SIGNAL_COLUMNS)),
        Check(
            name="no_failure_is_replaced",
            expectations=between(None, 0, "replaced_failures"),
            severity="warn",
            batch="hours",
        ),
    ],
    "cancellation": [
        COST_SOURCES_ARE_KNOWN,
        Check(name="cancelled_runs_end_after_they_start", expectations=at_least("ended_at", "started_at")),
    ],
    "model_call": [COST_SOURCES_ARE_KNOWN],
    "judgement": [
        Check(
            name="judges_are_known", expectations=[*one_of("judged_by", *KINDS), *one_of("judged_by_reported", *KINDS)]
        ),
        Check(
            name="judges_may_speak_for_whom_they_say",
            expectations=equal("judged_by", "judged_by_reported"),
            severity="warn",
        ),
    ],
    "span": [
        Check(name="spans_end_after_they_start", expectations=at_least("ended_at", "started_at")),
        Check(name="kinds_are_known", expectations=one_of("kind", *KINDS_OF_RECORDS, *STEP_KINDS, "other")),
        Check(name="amounts_are_not_negative", expectations=between(0, None, *AMOUNTS)),
    ],
}
"""By record type, what must be true of its rows besides what follows from its declaration."""
HOURS: Mapping[str, HoursMaker] = {"execution": batches.hours_of_executions}

SUITES = (
    RAW_LOGS,
    *(
        _record_suite(record, BESIDES.get(record.name, ()), HOURS.get(record.name, batches.hours_of_records))
        for record in RECORDS
        if record.table is not RejectedRecord
    ),
    REJECTED_RECORDS,
)

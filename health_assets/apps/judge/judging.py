"""Safety judged by a model: unjudged evaluation runs go to an OpenAI-compatible endpoint, its verdicts to the logs.

What belongs here: which runs are sent, and writing verdicts as `judgement` records below the raw root, where the
pipeline reads them like any other log. What does not: what is sent of a run (`judge_evidence`), what is asked of the
model and which answers count (`judge_verdict`), whom to believe (`core.judges`) and when it runs (`defs.judge_job`).

A run without a verdict stays unjudged. Nothing is judged twice: runs that a model or a person judged, in the warehouse
or in a log that it has not loaded yet, are left out. What an agent says of its own run keeps nobody from judging it.

A judgement is about an id, and whoever writes a log may use one again: a harmless run must not clear another. So all
runs of an id are judged together, again once one is newer than the judgement.
"""

import json
import os
import stat
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from datetime import datetime
from itertools import chain, groupby
from operator import attrgetter
from pathlib import Path
from typing import Any

import ibis
import pyarrow as pa
import pyarrow.compute as pc

from health_assets.apps.judge.judge_evidence import Evidence, Run, evidence
from health_assets.apps.judge.judge_verdict import Judge, NoVerdict, Verdict
from health_assets.core.errors import HealthAssetsError, UnreadableFilesError
from health_assets.core.hours import floor_hour
from health_assets.core.judges import FOLDER, MODEL, NOBODY, PERSON, Trust, writers_of
from health_assets.core.private_files import private_files
from health_assets.core.raw_roots import local_root
from health_assets.core.redaction import REDACTION, Redaction
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.logs.reader import log_parser
from health_assets.logs.stores import Faults, RawFile, is_among, is_trusted, list_files
from health_assets.scoring.identities import CLAIMANT, claimant_of, names_of_runs
from health_assets.scoring.identities import NOBODY as CLAIMED_BY_NOBODY
from health_assets.scoring.relations import lookup
from health_assets.warehouse.session import Session

JUDGE = "the safety judge"
MOST_FAILURES_IN_A_ROW = 5
"""So many runs without a verdict one after another end the work: something is wrong with the endpoint."""


@dataclass(kw_only=True)
class Report:
    """The outcome of a round of judging.

    Args:
        found: unjudged evaluation runs that there were.
        judged: runs that got a verdict.
        violated: judged runs with a violation.
        parts: documents in which they were sent; more than runs where some are long.
        sampled: runs of which only some parts were sent, because they have too many.
        cut: texts of runs of which only a beginning was sent.
        secrets: secrets that were replaced in what was sent.
        failures: runs that stay unjudged, by reason.
        file: the log that holds the judgements, relative to the raw root; None without any.
    """

    found: int = 0
    judged: int = 0
    violated: int = 0
    parts: int = 0
    sampled: int = 0
    cut: int = 0
    secrets: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    file: str | None = None


@ibis.udf.scalar.builtin(name="md5")
def _md5(text: str) -> str:  # type: ignore[empty-body]
    """The function of both engines."""


_RUN = ["execution_id", CLAIMANT]
"""Columns that tell the runs of agents apart; of one id and agent there may be one in each hour."""
_RUN_OF = attrgetter("execution_id", "agent_id")
_NAMED = ["execution_id", "named"]
"""What a judgement names."""


def unjudged_runs(session: Session, settings: Settings, now: datetime) -> tuple[list[Run], int]:
    """The evaluation runs that no model or person judged, of `judge_max_runs` ids at most, and how many ids there are.

    An id of several agents counts once for each. Those of an id follow each other. Which come first changes, so that
    those without a verdict do not hold up others.

    Args:
        session: a session.
        settings: where the raw logs are, and the budget.
        now: the present.
    """
    written = sorted(_judged_in(_logs_not_loaded(session, settings), settings))
    in_logs = ibis.memtable(
        pa.table({name: pa.array([row[place] for row in written], pa.string()) for place, name in enumerate(_NAMED)})
    )
    runs = session.table("executions")
    runs = runs.filter(runs.task_id.notnull()).mutate(claimant=claimant_of)
    runs = runs.mutate(newest=runs.hour.max().over(group_by=_RUN))
    named = names_of_runs(runs.select("agent_id", *_RUN).distinct(), *_RUN)
    judgements = session.table("judgements").mutate(named=claimant_of)
    judgements = judgements.filter(judgements.judged_by.isin([MODEL, PERSON])).select(*_NAMED, judged_in="hour")
    judged = named.inner_join(judgements, _NAMED)
    runs = lookup(runs, judged.group_by(_RUN).aggregate(judged_up_to=judged.judged_in.max()), _RUN)
    open_runs = runs.filter(runs.judged_up_to.isnull() | (runs.judged_up_to < runs.newest))
    open_runs = open_runs.anti_join(named.semi_join(in_logs, _NAMED), _RUN)
    by_chance = _md5(open_runs.execution_id + f"{now:%Y-%m-%dT%H}")
    names = [own.name for own in fields(Run)]
    rows = session.dicts(
        open_runs.order_by(by_chance, *_RUN, "hour").mutate(agent_id=lambda rows: rows[CLAIMANT]).select(*names)
    )
    found = (Run(**{**row, "actions": row["actions"] or []}) for row in rows)
    ids = [list(same) for _, same in groupby(found, _RUN_OF)]
    return list(chain.from_iterable(ids[: settings.judge_max_runs])), len(ids)


def judge(runs: Iterable[Run], settings: Settings, now: datetime, redaction: Redaction = REDACTION) -> Report:
    """Judge runs one after another, those of an id together, and write the verdicts to a new log below the raw root.

    The log appears whole or not at all; verdicts that there are when the work breaks off are kept.

    Args:
        runs: the runs, those of an id one after another and the newest last.
        settings: with a judge configured.
        now: the present; in the name of the log, and the `judged_at` of its records.
        redaction: patterns of what is replaced in all that is sent.

    Raises:
        HealthAssetsError: no judge is configured, the raw root is an object store, or the log cannot be written where
            it would count.
    """
    raw, model = local_root(settings.raw, JUDGE), Judge(settings)
    if (raw / FOLDER).exists():  # before anything is paid for
        _require_trusted(raw / FOLDER, settings.trust)
    report, records = Report(), []
    failures_in_a_row = 0
    try:
        for _, same in groupby(runs, _RUN_OF):
            sent = evidence(of_id := list(same), redaction, settings.judge_max_parts)
            report.parts += len(sent.parts)
            report.sampled += sent.is_sample
            report.cut += sent.cut
            report.secrets += sent.secrets
            try:
                verdict = model.verdict(sent.parts)
            except NoVerdict as failure:
                report.failures[failure.reason] += 1
                failures_in_a_row += 1
                if failure.ends_work or failures_in_a_row == MOST_FAILURES_IN_A_ROW:
                    break
            else:
                failures_in_a_row = 0
                report.judged += 1
                report.violated += bool(verdict.violations)
                records.append(_record(of_id[-1], sent, verdict, settings.judge_model, now))
    finally:
        report.file = _write(raw, settings.trust, records, now)
    return report


def _record(run: Run, sent: Evidence, verdict: Verdict, model: str | None, now: datetime) -> dict[str, Any]:
    """The judgement as a line of a log, in the hour of the run, so that it counts in every window that holds the run.

    It is dated to the start of that hour, so that any other judgement from the run's end on is later and replaces it.
    When and by what model it was made is told beside it, and of a run that was not sent as a whole, how much was. The
    agent is the one that the log names, since another may have a run of the id.
    """
    share = {"parts_judged": len(sent.parts), "parts": sent.all_parts} if sent.is_sample else {}
    return {
        "type": "judgement",
        "execution_id": run.execution_id,
        "agent_id": run.agent_id,
        "at": floor_hour(run.ended_at).isoformat(),
        "violations": [violation.model_dump() for violation in verdict.violations],
        "judged_at": now.isoformat(),
        "judged_by": MODEL,
        "judge": model,
        **share,
    }


def _write(raw: Path, trust: Trust, records: Sequence[dict[str, Any]], now: datetime) -> str | None:
    """A new log below the raw root, visible only once it is whole; its name, or None if there is nothing to write."""
    if not records:
        return None
    path = raw / FOLDER / f"{now:%Y-%m-%dT%H%M%S}-{uuid.uuid4().hex[:8]}.jsonl"
    unfinished = path.with_suffix(".unfinished")  # not a name of a log
    try:
        with private_files():
            path.parent.mkdir(exist_ok=True)
            _require_trusted(path.parent, trust)
            opened = unfinished.open("w", encoding="utf-8")
        with opened as file:
            file.writelines(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except OSError as error:
        raise HealthAssetsError(f"cannot write the judgements to {path.parent}: {error.strerror}") from error
    return path.relative_to(raw).as_posix()


def _require_trusted(folder: Path, trust: Trust) -> None:
    """Make sure that judgements in a folder count, and that nobody has put a link there.

    Raises:
        HealthAssetsError: anybody else can write there, or somebody else made it.
    """
    status = folder.lstat()
    why = "it is a link" if stat.S_ISLNK(status.st_mode) else trust.why_not(writers_of(NOBODY, status))
    if why is not None:
        raise HealthAssetsError(f"judgements in {folder} would count as the agents' own, since {why}")


def _logs_not_loaded(session: Session, settings: Settings) -> list[RawFile]:
    """Trusted logs whose judgements the warehouse does not all hold yet, of those that can be read."""
    lines = session.table("raw_logs")
    lines = lines.filter(lines.record_type == "judgement")
    logs = lines.group_by("source_file").aggregate(is_loaded=lines.is_loaded.all())
    loaded = {row["source_file"] for row in session.dicts(logs) if row["is_loaded"]}
    unreadable: Faults = {}  # the pipeline reports them
    files = list_files(local_root(settings.raw, JUDGE), unreadable)
    trusted = (file for file in files if is_trusted(file, settings.trust))
    return [file for file in trusted if file.source_file not in loaded]


def _judged_in(files: Sequence[RawFile], settings: Settings) -> set[tuple[str, str]]:
    """Executions that a model or a person judged in these logs, each with the agent named, or `CLAIMED_BY_NOBODY`.

    The logs are read as the pipeline reads them.

    Anybody may put a log there: only what the pipeline would load as such a judgement keeps a run from being judged.
    """
    try:
        with log_parser(files) as parser:
            judged: set[tuple[str, str]] = set()
            for batch in parser.records(Targets(), settings.trust):
                counts = pc.and_(
                    pc.equal(batch["record_type"], "judgement"),
                    pc.is_in(batch["judged_by"], pa.array([MODEL, PERSON])),
                )
                agents = pc.fill_null(batch["agent_id"], CLAIMED_BY_NOBODY).filter(counts)
                judged.update(zip(batch["execution_id"].filter(counts).to_pylist(), agents.to_pylist(), strict=True))
            return judged
    except UnreadableFilesError as error:
        rest = [file for file in files if not is_among(error.faults, file.source_file)]
        return _judged_in(rest, settings)

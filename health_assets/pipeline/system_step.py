"""The step of a scoring system: its assets in order, made and checked.

Where hours hold few records, opening the warehouse and setting up Great Expectations cost more than the rows. So all
assets are made in one transaction and checked together. If a check that blocks others fails, or anything else does, the
transaction is rolled back. Then, and where there are many records, each asset has its own transaction, so that those
that do not follow from the failed one are made, and other programs get at the warehouse in between.

What belongs here: which hours an asset makes, replacing them, reporting. What does not: what assets are made from
(`derived`, `systems`), evaluating checks (`checking`) and the order of steps (`engine`).
"""

import logging
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from health_assets.core.hours import HourGroups
from health_assets.core.targets import Targets
from health_assets.pipeline.build_selection import chunks, hours_to_build, require_sources, versions_to_note
from health_assets.pipeline.checking import check_suites
from health_assets.pipeline.derived import Derived, Inputs, rows_of
from health_assets.pipeline.events import Checked, Event, Materialized, Metadata
from health_assets.pipeline.fingerprints import RECORDS, KnownStates, RunFingerprint, upstream
from health_assets.pipeline.partition_metadata import numbers_by_hour
from health_assets.pipeline.plan import Graph, Plan
from health_assets.pipeline.resource import Pipeline
from health_assets.pipeline.summaries import cluster_summary, summary
from health_assets.warehouse.location import is_spark
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session

FEW_RECORDS = 10_000
"""Up to so many records in the hours that it makes, a step has one transaction for all its assets."""

_log = logging.getLogger(__name__)


def system_step(
    pipeline: Pipeline, graph: Graph, step: str, plan: Plan, failed: Collection[str] = ()
) -> Iterator[Event]:
    """Make and check those assets of a step that the plan asks for.

    Args:
        pipeline: where logs, targets and warehouse are.
        graph: the assets that there are.
        step: the step, one of `Graph.system_steps`.
        plan: what is asked for.
        failed: assets of the step whose checks have failed already; nothing is made from them.

    Raises:
        HealthAssetsError: the warehouse or the targets cannot be read, or an hour needs what retention dropped. It is
            the first error, raised when all assets that do not follow from the failed one have been made.
    """
    selected = _selected(graph, step, plan)
    joint_error: BaseException | None = None
    if not failed:
        try:
            together = steps_together(pipeline, graph, [step], plan)
        except OneByOneError as error:
            joint_error = error.__cause__
        else:
            yield from together
            return
    blocked, errors = {*failed}, list[Exception]()
    for derived in selected:
        if derived.name in plan.assets and blocked.intersection(graph.sources(derived.name)):
            blocked.add(derived.name)
            continue
        try:
            with replace(pipeline, step=derived.name).write() as session:  # a check that cannot be evaluated undoes it
                events = _made_and_checked(session, pipeline, graph, [derived], plan)
        except Exception as error:  # raised when the other assets are made
            errors.append(error)
            blocked.add(derived.name)
            continue
        if any(isinstance(event, Checked) and event.blocks for event in events):
            blocked.add(derived.name)
        yield from events
    if errors:
        raise errors[0]
    if joint_error is not None and not blocked:
        _log.warning("the assets of %s were made one by one, since together they failed", step, exc_info=joint_error)


def steps_together(
    pipeline: Pipeline, graph: Graph, steps: Sequence[str], plan: Plan
) -> Sequence[Materialized | Checked]:
    """Make and check the assets of several steps in one transaction; gives what happened, in their order.

    Raises:
        OneByOneError: nothing was written, and each step is to be run by itself: hours hold many records, or something
            failed.
        HealthAssetsError: the warehouse cannot be opened.
    """
    selected = [derived for step in steps for derived in _selected(graph, step, plan)]
    if len(selected) < 2 or is_spark(pipeline.settings.warehouse):
        raise OneByOneError("there is nothing to make together")
    return _in_one_transaction(pipeline, graph, selected, plan)


def _selected(graph: Graph, step: str, plan: Plan) -> list[Derived]:
    """The assets of a step that a plan asks for."""
    return [one for one in graph.system_steps[step] if one.name in plan.assets or plan.checks.get(one.name)]


class OneByOneError(Exception):
    """Rolls back the joint transaction; the assets are then made one by one."""


def _record_count(session: Session, hours: HourGroups) -> int:
    return PartitionStates(session).row_count(RECORDS, hours.span)


def _in_one_transaction(
    pipeline: Pipeline, graph: Graph, selected: Sequence[Derived], plan: Plan
) -> Sequence[Materialized | Checked]:
    """Make and check assets in one transaction.

    Raises:
        OneByOneError: nothing was written, and the assets are to be made one by one.
    """
    has_begun = False
    try:
        with pipeline.write() as session:
            has_begun = True
            if _record_count(session, plan.hours) > FEW_RECORDS:
                raise OneByOneError("the hours hold many records")
            session.use_one_thread()  # to share out so few rows costs more than to compute them
            events = _made_and_checked(session, pipeline, graph, selected, plan, most_records=FEW_RECORDS)
            failed = [event.check for event in events if isinstance(event, Checked) and event.blocks]
            if failed and any(isinstance(event, Materialized) for event in events):
                raise OneByOneError(f"{failed[0]} failed")
            return events
    except OneByOneError:
        raise
    except Exception as error:  # retried asset by asset, so that the others are still made
        if not has_begun:
            raise
        raise OneByOneError(str(error)) from error


def _made_and_checked(
    session: Session,
    pipeline: Pipeline,
    graph: Graph,
    selected: Sequence[Derived],
    plan: Plan,
    most_records: int | None = None,
) -> list[Materialized | Checked]:
    """Make and check assets, in the order in which they are made from each other.

    Raises:
        OneByOneError: hours of the look-back have to be made again that hold more records than `most_records`.
    """
    targets = pipeline.load_targets()  # those of now, however long it took until this run had the lock
    names = [derived.name for derived in selected]
    states = KnownStates(session, RunFingerprint.of(pipeline.settings, targets, plan.hours), graph.derived)
    states.read(set().union(*(upstream(name, graph.derived) for name in names)))
    made = {
        derived.name: _made(session, pipeline, graph, derived, plan, targets, states, most_records)
        for derived in selected
        if derived.name in plan.assets
    }
    checked = check_suites(session, graph, pipeline.settings, targets, plan, names)
    events = list[Materialized | Checked]()
    for name in names:
        events += [made[name]] if name in made else []
        events += [check for check in checked if check.asset == name]
    return events


def _made(
    session: Session,
    pipeline: Pipeline,
    graph: Graph,
    derived: Derived,
    plan: Plan,
    targets: Targets,
    states: KnownStates,
    most_records: int | None = None,
) -> Materialized:
    """Make an asset's hours, and tell of them."""
    settings, asked = pipeline.settings, plan.hours
    inputs_fingerprint = states.fingerprint(upstream(derived.name, graph.derived))
    build, restored = _hours_to_make(session, pipeline, derived, plan)
    looks_back = not build.issubset(asked)
    if most_records is not None and looks_back and _record_count(session, HourGroups.of(build)) > most_records:
        raise OneByOneError("the look-back holds many records")
    for hours, own in chunks(build, asked):
        if states.has_dropped:
            require_sources(session, derived, own, settings)
        older = versions_to_note(session, derived, graph.derived, own, settings) if states.has_older_versions else {}
        inputs = Inputs(session=session, hours=hours, targets=targets, settings=settings)
        PartitionStates(session).replace_rows(
            derived.name, own, rows_of(derived, inputs), restored,
            formula_version=derived.formula_version, other_versions=older,
            inputs_fingerprint=inputs_fingerprint, as_of=None if derived.is_component else inputs.as_of,
        )  # fmt: skip
        derived.post_write(inputs)
    states.forget(derived.name)
    return Materialized(
        asset=derived.name,
        hours=asked,
        metadata=_metadata(session, derived, plan),
        numbers=numbers_by_hour(session, derived.name, plan.metadata_hours, derived.curves),
        earlier_hours=sorted(build - set(asked)),
    )


def _metadata(session: Session, derived: Derived, plan: Plan) -> Metadata:
    if not plan.has_summaries:
        return cluster_summary(session)
    return summary(
        session,
        derived.name,
        plan.hours.span,
        derived.preview_title,
        derived.preview_rows,
        derived.empty_without,
        derived.preview_join,
    )


def _hours_to_make(
    session: Session, pipeline: Pipeline, derived: Derived, plan: Plan
) -> tuple[set[datetime], set[datetime]]:
    """The hours, and which of them merely come back after retention dropped them."""
    build, restored = set(plan.hours), set[datetime]()
    if derived.is_component:
        build, restored = hours_to_build(session, derived, plan.hours, pipeline.settings, only_stale=plan.only_stale)
    if derived.is_external:
        versions = {derived.name: derived.formula_version}
        build |= PartitionStates(session).of_other_versions(versions).get(derived.name, {}).keys()
    return build, restored

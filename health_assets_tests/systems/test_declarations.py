"""Mistakes of who adds a metric: refused when they are loaded, or told as one sentence with the place and the name."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import ibis
import pytest
from ibis import _

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange
from health_assets.core.targets import Targets
from health_assets.pipeline.derived import Derived, Inputs, rows_of
from health_assets.quality.batches import Source
from health_assets.quality.evaluation import evaluate
from health_assets.quality.expectations import Check, Expectation, Suite, between, unique
from health_assets.scoring.author_errors import written_by_an_author
from health_assets.systems.declarations import (
    require_known_assets,
    require_known_sources,
    require_sound_suites,
    require_tables,
)
from health_assets.systems.declared_assets import DERIVED
from health_assets.systems.suites import SUITES
from health_assets_tests.support.logs_made import START, execution, line
from health_assets_tests.support.projects import RECORD_TABLES, Project

USAGE = DERIVED["agent_usage"]
TABLE = ibis.table({"hour": "timestamp", "agent_id": "string", "executions": "int64"}, name="components")


@pytest.mark.parametrize("field", ["upstream", "same_hour_upstream", "blocked_by"])
def test_an_asset_that_is_made_from_one_that_is_not_there_is_refused_with_the_nearest_name(field: str) -> None:
    wrong = replace(USAGE, **{field: ("usage_component",)})
    with pytest.raises(HealthAssetsError) as told:
        require_known_sources({"agent_usage": (wrong,)}, [*RECORD_TABLES, "usage_components"])
    assert str(told.value) == (
        f"agent_usage/assets.py: {field} of agent_usage names 'usage_component', and there is no such asset; "
        "did you mean 'usage_components'?"
    )
    with pytest.raises(HealthAssetsError, match=r"there is no such asset$"):
        require_known_sources({"s": (replace(USAGE, **{field: ("zzz",)}),)}, ["executions"])


def test_an_asset_without_a_table_of_its_own_is_refused() -> None:
    with pytest.raises(HealthAssetsError) as told:
        require_tables({"agent_usage": (replace(USAGE, name="agent_usge"),)}, [*DERIVED])
    assert str(told.value) == (
        "agent_usage/assets.py: agent_usge has no table, which a tables.py declares; did you mean 'agent_usage'?"
    )
    with pytest.raises(HealthAssetsError, match=r"^b/assets\.py: agent_usage is an asset already, in a/assets\.py$"):
        require_tables({"a": (USAGE,), "b": (USAGE,)}, [*DERIVED])


def test_a_suite_about_an_asset_that_is_not_there_or_has_one_is_refused() -> None:
    suite = SUITES["agent_usage"]
    with pytest.raises(
        HealthAssetsError, match="about 'agent_usages', and there is no such asset; did you mean 'agent_usage'"
    ):
        require_known_assets({"s/expectations.py": [replace(suite, asset="agent_usages")]}, [*DERIVED])
    with pytest.raises(HealthAssetsError, match=r"^b\.py: agent_usage has a suite already, in a\.py$"):
        require_known_assets({"a.py": [suite], "b.py": [suite]}, [*DERIVED])


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"name": "b"}, "the check b of agent_usage is declared twice"),
        ({"expectations": ()}, "the check a of agent_usage has no expectation"),
        (
            {"batch": "row"},
            "the check a of agent_usage looks at batch 'row', which the suite does not have; did you mean 'rows'?",
        ),
        (
            {"expectations": between(0, None, "excutions")},
            "the check a of agent_usage looks at the column 'excutions', which is not there; did you mean 'executions'?",
        ),
        (
            {"expectations": between(0, 0, "columns_of_other_types"), "batch": "hours"},
            "the check a of agent_usage looks at the column 'columns_of_other_types', which is not there; "
            "did you mean 'columns_of_other_type'?",
        ),
        (
            {"expectations": [Expectation("ExpectColumnMeanToBeBetween", {"column": "executions"})]},
            "the check a of agent_usage has an expectation of the kind 'ExpectColumnMeanToBeBetween', which "
            "quality/expectations.py does not translate",
        ),
        (
            {"expectations": [*unique("hour", "agent_id"), *between(0, None, "executions")]},
            "the check a of agent_usage has another expectation beside that of repeated rows; make it a check of its own",
        ),
    ],
)
def test_a_check_that_could_not_be_evaluated_is_refused_when_it_is_loaded(changes: dict[str, Any], fault: str) -> None:
    sound = Check(name="a", expectations=between(0, None, "executions", "missing_values"))
    other = replace(sound, name="b")
    require_sound_suites({"s.py": [Suite(asset="agent_usage", checks=[sound, other])]})
    with pytest.raises(HealthAssetsError) as told:
        require_sound_suites({"s.py": [Suite(asset="agent_usage", checks=[replace(sound, **changes), other])]})
    assert str(told.value) == f"s.py: {fault}"


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: TABLE.execution,
        lambda: TABLE["execution"],
        lambda: TABLE.filter(_.execution > 1),
        lambda: TABLE.select("execution"),
        lambda: TABLE.group_by("agent").aggregate(n=TABLE.count()),
    ],
)
def test_a_column_that_is_not_there_is_told_by_its_name_and_the_line_that_asks(wrong: Callable[[], Any]) -> None:
    with pytest.raises(HealthAssetsError) as told, written_by_an_author("the formula of x"):
        wrong()
    sentence = str(told.value)
    assert sentence.startswith("the formula of x, line ")
    assert " of test_declarations.py: " in sentence
    assert "'execution'" in sentence or "'agent'" in sentence
    assert "executions" in sentence
    assert "\n" not in sentence


def test_other_errors_of_a_formula_stay_as_they_are() -> None:
    for error in (AttributeError("'NoneType' object has no attribute 'x'"), TypeError("x"), KeyError("x")):
        with pytest.raises(type(error)) as told, written_by_an_author("the formula of x"):
            raise error
        assert told.value is error


@pytest.fixture
def inputs(project: Project) -> Iterator[Inputs]:
    project.write_log("a.jsonl", [line(execution("e", "a", START, input_tokens=5))])
    project.materialize(HourRange.of(START), only=["ingest", "usage_components", "agent_usage"])
    with project.warehouse.write() as session:
        yield Inputs(session=session, hours=HourRange.of(START), targets=Targets(), settings=project.settings)


def test_a_formula_that_gives_not_every_column_of_its_table_is_told(inputs: Inputs) -> None:
    assert rows_of(USAGE, inputs).columns
    wrong: Derived = replace(USAGE, rows=lambda own: USAGE.rows(own).rename(executed="executions"))
    with pytest.raises(
        HealthAssetsError, match="what the formula of agent_usage gives has no column 'executions'; did you"
    ):
        rows_of(wrong, inputs)


@pytest.mark.parametrize("batch", ["rows", "hours"])
def test_a_check_of_a_column_that_is_not_there_is_told(inputs: Inputs, batch: str) -> None:
    own = SUITES["agent_usage"]
    check = Check(name="a_claim", expectations=[*between(0, 1, "executionss"), *unique("hour")], batch=batch)
    suite: Suite = replace(own, checks=[check])
    source = Source(
        asset="agent_usage",
        session=inputs.session,
        hours=inputs.hours,
        targets=inputs.targets,
        settings=inputs.settings,
    )
    with pytest.raises(
        HealthAssetsError, match=f"a_claim of agent_usage looks at batch '{batch}', which has no column 'exec"
    ):
        evaluate(suite, source)


def test_a_run_ends_with_the_sentence_alone(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.write_log("a.jsonl", [line(execution("e", "a", START))])
    monkeypatch.setitem(USAGE.__dict__, "rows", lambda own: own.table("usage_components").filter(_.nothing > 1))
    with pytest.raises(
        Exception, match=r"^the formula of agent_usage, line [0-9]+ of test_declarations.py: the table has no"
    ):
        project.materialize(HourRange.of(START), only=["ingest", "usage_components", "agent_usage"])

"""Personal agents are in no aggregate of fewer than enough others: models, as plain Python says it."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from health_assets.apps.serving.access_scope import EVERYBODYS, AccessScope
from health_assets.apps.serving.reader_process import read_newest
from health_assets.apps.serving.snapshot import Snapshot
from health_assets.core.settings import Settings
from health_assets_tests.support.examples import tried_with
from health_assets_tests.support.serving_made import (
    HOUR,
    Row,
    fill,
    fill_agents,
    readers_in_this_process,
    score,
    served,
    state,
    write_targets,
)

LOOK_BACK_HOURS = 3
HOURS = [HOUR - timedelta(hours=back) for back in range(LOOK_BACK_HOURS + 1)]
MODELS = ("common", "rare")
AGENTS = ("mine", "yours", "a", "b", "c", "d")


@dataclass(frozen=True)
class Call:
    """A call to a model, and whether its line names the agent, its execution, or neither."""

    model: str
    hour: datetime
    agent_id: str
    named_by: str


calls = st.builds(
    Call, st.sampled_from(MODELS), st.sampled_from(HOURS), st.sampled_from(AGENTS),
    st.sampled_from(["agent", "agent", "execution", "nothing"]),
)  # fmt: skip


def hidden(made: list[Call], personal: set[str], window_calls: int, fewest: int, *, is_by_default: bool) -> set[str]:
    """The models that a personal agent called in the look-back, and fewer than enough others in its last calls."""
    found = set()
    for model in MODELS:
        of_model = [
            call for call in made if call.model == model and call.hour > HOUR - timedelta(hours=LOOK_BACK_HOURS)
        ]
        callers = [None if call.named_by == "nothing" else call.agent_id for call in of_model]
        own = [is_by_default if caller is None else caller in personal for caller in callers]
        others = {
            caller
            for caller, is_own in list(zip(callers, own, strict=True))[-window_calls:]
            if not is_own and caller is not None
        }
        if any(own) and len(others) < fewest:
            found.add(model)
    return found


def fill_calls(warehouse: Path, made: list[Call], window_calls: int) -> None:
    by_hour: dict[datetime, list[Row]] = {hour: [] for hour in HOURS}
    runs: dict[datetime, list[Row]] = {hour: [] for hour in HOURS}
    for place, call in enumerate(made):
        row: Row = {
            "call_id": f"call {place:03}",
            "model": call.model,
            "ended_at": call.hour + timedelta(seconds=place),
            "source_file": "f",
        }
        if call.named_by == "agent":
            row["agent_id"] = call.agent_id
        if call.named_by == "execution":
            row["execution_id"] = f"run {place}"
            later = min(call.hour + timedelta(hours=1), HOUR)  # it ends after its calls
            runs[later].append({"execution_id": f"run {place}", "agent_id": call.agent_id})
        by_hour[call.hour].append(row)
    for hour, rows in by_hour.items():
        last: dict[str, list[Row]] = defaultdict(list)
        for row in rows:
            last[row["model"]].append(row)
        components = [row | {"window_calls": window_calls} for some in last.values() for row in some[-window_calls:]]
        fill(warehouse, hour, model_calls=rows, executions=runs[hour], model_components=components)
    fill(warehouse, model_health=[{"model": model, "window_calls": window_calls} for model in MODELS])
    fill_agents(warehouse, *((state(agent_id), score(agent_id)) for agent_id in AGENTS))


@given(
    st.lists(calls, max_size=25).map(lambda made: sorted(made, key=lambda call: call.hour)),
    st.sets(st.sampled_from(("mine", "yours"))),
    st.sampled_from([1, 3, 6, 50]),
    st.sampled_from([1, 2, 3]),
    st.booleans(),
)
@tried_with(8, 60)
def test_a_model_of_a_personal_agent_is_shown_only_among_enough_others(
    tmp_path_factory: pytest.TempPathFactory,
    made: list[Call],
    personal: set[str],
    window_calls: int,
    fewest: int,
    is_by_default: bool,
) -> None:
    folder = tmp_path_factory.mktemp("aggregates")
    warehouse = folder / "health.duckdb"
    fill_calls(warehouse, made, window_calls)
    own = {agent_id: {"personal": agent_id in personal} for agent_id in AGENTS}
    targets = write_targets(folder / "targets.yaml", {"defaults": {"personal": is_by_default}, "agents": own})
    settings = Settings(warehouse=str(warehouse), targets=targets, min_agents_per_aggregate=fewest).model_copy(
        update={"lookback_hours": LOOK_BACK_HOURS}
    )
    facts = read_newest(settings, folder, None)["snapshot"]
    assert facts is not None
    snapshot = Snapshot.read(folder, facts)
    expected = hidden(made, personal, window_calls, fewest, is_by_default=is_by_default)
    assert set(snapshot.models(EVERYBODYS)) == set(MODELS) - expected
    assert set(snapshot.models(AccessScope(is_full=True))) == set(MODELS)
    assert snapshot.models(AccessScope(is_full=True, teams=frozenset({"any"}))) == {}


def test_a_model_that_only_a_personal_agent_uses_looks_like_one_that_was_never_seen(tmp_path: Path) -> None:
    warehouse = tmp_path / "health.duckdb"
    fill_calls(warehouse, [Call("rare", HOUR, "mine", "agent"), Call("common", HOUR, "a", "agent")], 50)
    targets = write_targets(tmp_path / "targets.yaml", {"agents": {"mine": {"personal": True}}})
    with (
        readers_in_this_process(),
        served(warehouse, targets=targets, anonymous_role="read", token=SecretStr("t")) as server,
    ):
        assert [model["model"] for model in server.ask("/models").json["models"]] == ["common"]
        best = "/models/best?candidates="
        seen, never = (server.ask(f"{best}{name}").json["candidates"][0] for name in ("rare", "never"))
        assert seen == never | {"model": "rare"}
        assert server.status["models"] == 1
        everything = {"Authorization": "Bearer t"}
        assert [model["model"] for model in server.ask("/models", headers=everything).json["models"]] == [
            "common",
            "rare",
        ]
        assert server.ask("/status", headers=everything).json["models"] == 2


def test_calls_of_a_tool_that_name_a_personal_agents_execution_alone_are_not_shown(tmp_path: Path) -> None:
    warehouse = tmp_path / "health.duckdb"
    calls_of = [("diary", "run of mine", None), ("common", "run of a", None), ("common", None, "mine")]
    fill(
        warehouse,
        tool_calls=[
            {"call_id": f"{place}", "tool": tool, "execution_id": run, "agent_id": agent_id}
            for place, (tool, run, agent_id) in enumerate(calls_of)
        ],
        executions=[{"execution_id": f"run of {agent_id}", "agent_id": agent_id} for agent_id in ("mine", "a")],
        tool_health=[{"agent_id": "", "tool": tool} for tool in ("diary", "common")],
    )
    fill_agents(warehouse, (state("mine"), score("mine")))
    targets = write_targets(tmp_path / "targets.yaml", {"agents": {"mine": {"personal": True}}})
    with (
        readers_in_this_process(),
        served(warehouse, targets=targets, anonymous_role="read", token=SecretStr("t")) as server,
    ):
        for path in ("/tools", "/tools?agent_id="):
            answer = server.ask(path).json
            assert ([item["tool"] for item in answer["tools"]], answer["total"]) == (["common"], 1)
            assert server.ask(path, headers={"Authorization": "Bearer t"}).json["total"] == 2


def test_another_number_of_agents_makes_a_new_snapshot(tmp_path: Path) -> None:
    warehouse = tmp_path / "health.duckdb"
    fill_calls(warehouse, [], 50)
    settings = Settings(warehouse=str(warehouse))
    first = read_newest(settings, tmp_path, None)["snapshot"]
    assert first is not None
    assert read_newest(settings, tmp_path, first["version"])["snapshot"] is None
    other = settings.model_copy(update={"min_agents_per_aggregate": 6})
    assert read_newest(other, tmp_path, first["version"])["snapshot"] is not None

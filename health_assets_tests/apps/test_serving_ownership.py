"""Owners of a few agents, looked up one by one, are those that columns of many say."""

import pyarrow as pa
import pytest

from health_assets.apps.serving import ownership as ownership_module
from health_assets.apps.serving.ownership import Ownership
from health_assets.core.targets import Targets

AGENTS = ["a", "b", "c", "nobody", "", None, "é"]


@pytest.mark.parametrize("team", [None, "red"])
@pytest.mark.parametrize("is_personal", [False, True])
@pytest.mark.parametrize("named", [True, False])
def test_owners_of_few_agents_are_those_of_many(
    team: str | None, is_personal: bool, named: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = {
        "a": {"team": "red"}, "b": {"team": "blue", "personal": True}, "c": {"personal": False}, "é": {"team": "green"}
    } if named else {}  # fmt: skip
    targets = Targets.model_validate({"defaults": {"team": team, "personal": is_personal}, "agents": own})
    rows = pa.table({"agent_id": pa.array(AGENTS, pa.string())})

    def owners(few: int) -> list[dict]:
        monkeypatch.setattr(ownership_module, "FEW", few)
        return Ownership(targets).with_owners(rows.to_reader(max_chunksize=3)).read_all().to_pylist()

    assert owners(few=0) == owners(few=100)

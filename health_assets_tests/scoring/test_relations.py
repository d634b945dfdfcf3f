"""Small helpers for tables: a lookup is the join that ibis makes."""

import ibis
import pytest
from ibis import ir

from health_assets.scoring.relations import lookup

KEYS = ["hour", "agent_id"]
ROWS = ibis.table({"hour": "timestamp('UTC')", "agent_id": "string", "n": "int64"}, name="rows_")
OTHER = ibis.table({"agent_id": "string", "hour": "timestamp('UTC')", "m": "int64"}, name="other")
NAMES = ibis.table({"agent_id": "string", "name": "string"}, name="names")


def as_ibis_makes_it(rows: ir.Table, other: ir.Table, keys: list[str]) -> ir.Table:
    added = [name for name in other.columns if name not in keys]
    return rows.left_join(other, keys).select(*rows.columns, *added)


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        ROWS.filter(ROWS.n > 0),
        ROWS.mutate(twice=ROWS.n * 2).order_by("twice"),
        ROWS.group_by(KEYS).aggregate(n=ROWS.n.sum()),
        as_ibis_makes_it(ROWS, NAMES, ["agent_id"]),
        as_ibis_makes_it(as_ibis_makes_it(ROWS, NAMES, ["agent_id"]), ROWS.rename(other_n="n"), KEYS),
        ROWS.inner_join(NAMES, "agent_id"),
        ROWS.inner_join(NAMES, "agent_id").select("hour", "agent_id", twice=ROWS.n * 2, known=NAMES.name),
        ROWS.semi_join(NAMES, "agent_id"),
        ROWS.anti_join(NAMES, "agent_id").select("hour", "agent_id"),
        ibis.union(ROWS, ROWS.mutate(n=ROWS.n + 1)),
    ],
    ids=lambda rows: type(rows.op()).__name__,
)
@pytest.mark.parametrize("other", [OTHER, OTHER.filter(OTHER.m > 0), OTHER.mutate(k=OTHER.m).drop("m"), OTHER.view()])
def test_a_lookup_is_the_join_that_ibis_makes(rows: ir.Table, other: ir.Table) -> None:
    assert lookup(rows, other, KEYS).equals(as_ibis_makes_it(rows, other, KEYS))


def test_a_lookup_of_rows_in_themselves_is_the_join_that_ibis_makes() -> None:
    own = ROWS.rename(m="n")
    assert lookup(ROWS, own, KEYS).equals(as_ibis_makes_it(ROWS, own, KEYS))
    assert lookup(ROWS, ROWS.select("agent_id"), "agent_id").equals(
        as_ibis_makes_it(ROWS, ROWS.select("agent_id"), ["agent_id"])
    )

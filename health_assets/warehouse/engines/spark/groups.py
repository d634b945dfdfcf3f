"""A function of Arrow rows as Spark calls it, on whatever machine the rows are.

What belongs here: what an executor needs besides the function itself, which is little. What does not: who asks for it
(`lake_session`).
"""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from health_assets.warehouse.engines.spark.executor_versions import require_same

GROUP_COLUMN = "group_number"
"""Numbers the parts that keys are dealt out to: each is one call of the function, and no key lies in two."""


def of_group(
    rows: pa.Table,
    make: Callable[[pa.Table], pa.Table],
    schema: pa.Schema,
    order: Sequence[str],
    made: pa.Schema,
    ordered: Mapping[str, str],
) -> pa.Table:
    """The rows that a function makes of one group.

    Args:
        rows: the rows of the group, in any order.
        make: the function; it takes rows of whole keys in order.
        schema: the rows that it takes.
        order: columns that these are sorted by.
        made: the rows that it gives.
        ordered: the program of the machine that gives the orders.

    Raises:
        HealthAssetsError: this machine has another one.
    """
    require_same(ordered)
    own = rows.select(schema.names).cast(schema)
    return make(own.sort_by([(name, "ascending") for name in order]) if order else own).cast(made)


def of_shortened(
    rows: pa.Table, make: Callable[[pa.Table], pa.Table], shorten: Callable[[pa.Table], pa.Table]
) -> pa.Table:
    """The rows that a function makes of shortened rows."""
    return make(shorten(rows))

"""Suites of expectations of every table, in the order of the lineage.

A check's name says what is true when it passes; its severity says whether a failure stops what follows (`error`) or
asks a person to look (`warn`). The expectations of a system stand in its folder, those of records in `quality`.
"""

from health_assets.core.systems import parts
from health_assets.quality import record_suites
from health_assets.quality.expectations import Suite
from health_assets.schema.catalog import ALL_TABLES
from health_assets.systems.declarations import require_known_assets, require_sound_suites

_BY_MODULE = {"quality/record_suites.py": record_suites.SUITES} | {
    f"{system}/expectations.py": module.SUITES for system, module in parts("expectations").items()
}
require_known_assets(_BY_MODULE, ALL_TABLES)
require_sound_suites(_BY_MODULE)
SUITES: dict[str, Suite] = {suite.asset: suite for suites in _BY_MODULE.values() for suite in suites}
"""The suites by asset."""

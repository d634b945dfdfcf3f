"""Suites of expectations of every table, in the order of the lineage.

A check's name says what is true when it passes; its severity says whether a failure stops what follows (`error`) or
asks a person to look (`warn`). The expectations of a system stand in its folder, those of records in `quality`.
"""

from health_assets.core.systems import parts
from health_assets.quality import record_suites
from health_assets.quality.expectations import Suite

SUITES: dict[str, Suite] = {
    suite.asset: suite
    for suites in (record_suites.SUITES, *(module.SUITES for module in parts("expectations").values()))
    for suite in suites
}
"""The suites by asset."""

"""The mark that an asset's hours get once all of its checks have judged them.

What belongs here: what is looked at before the rows are judged, and noting the mark after. What does not: what the mark
says (`pipeline.grounds`) and judging (`quality`).
"""

from collections.abc import Collection

import dagster as dg

from health_assets.core.hours import HourGroups
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.defs.specs import records_of
from health_assets.pipeline.grounds import Grounds, judged_rows, of_checks, upstream
from health_assets.quality.expectations import Suite
from health_assets.systems.declared_assets import DERIVED
from health_assets.warehouse.account_digests import AccountDigests
from health_assets.warehouse.location import is_spark
from health_assets.warehouse.session import Session


class CheckMark:
    """The mark of the hours of a suite's asset, to be made before the rows are read.

    Args:
        session: the write session in which they are judged.
        suite: the suite.
        settings: the settings.
        targets: the targets by which they are judged.
        hours: the hours that are judged.
    """

    def __init__(self, session: Session, suite: Suite, settings: Settings, targets: Targets, hours: HourGroups) -> None:
        self._session, self._suite, self._hours = session, suite, hours
        grounds, tables = Grounds.of(settings, targets, hours), {*upstream(suite.asset, DERIVED), suite.asset}
        self._judged = grounds.of_rows(grounds.account(session, tables), tables)
        # on a cluster a run is always made, so that nobody asks for a mark
        self._rows = None if is_spark(settings.warehouse) else judged_rows(session, suite.asset, hours)

    def note(self, names: Collection[str], run: dg.DagsterRun) -> None:
        """Mark the hours where every check of the suite has judged them.

        Args:
            names: the checks that have, whose outcomes are in the history.
            run: the run.
        """
        if self._rows is None or not {check.name for check in self._suite.checks} <= set(names):
            return
        asset, accounts = self._suite.asset, AccountDigests(self._session)
        outcomes = accounts.of_checks([asset], self._hours).get(asset)
        mark = of_checks(self._judged, records_of(run), self._rows, outcomes)
        accounts.note_checked(asset, self._hours, mark)

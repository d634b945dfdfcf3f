"""Grounds: all that the results of a run rest on besides the logs, as digests that hours are marked with.

What belongs here: which settings count, from which other tables a table is made at all, and the digests of both. What
does not: keeping the marks (`warehouse.account_digests`) and asking whether a run would change anything
(`systems.up_to_date`).

An hour's mark is a digest of the run's hours, settings, targets and program, and of the account of every table that its
own follows from, as it was when its rows were written. Whoever changes such a table changes that account. So a mark
that can be made again from the account of now says: the rows are what a run with these grounds would make of the tables
of now, whoever wrote in between.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from health_assets.core.digests import digest_of
from health_assets.core.hours import HourGroups, HourRange
from health_assets.core.program import PROGRAM
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.pipeline.derived import Derived
from health_assets.schema.records import RECORD_TABLES
from health_assets.warehouse.account_digests import AccountDigests
from health_assets.warehouse.log_coverage import LogCoverage
from health_assets.warehouse.session import Session

RECORDS = ("raw_logs", *RECORD_TABLES)
"""Tables that are made of the logs in one step, of which each may depend on any other."""
WITHOUT_EFFECT = frozenset({
    "raw", "warehouse", "lake", "ledger", "targets",  # places; what is there counts
    "lock_timeout_s", "lease_s", "lease_timeout_s", "memory_limit",
    "schedule_minute", "late_after_minutes", "schedules", "first_hour", "run_history_days", "pages_url", "docs_url",
    "tracker_log", "judge_url", "judge_model", "judge_key", "judge_max_runs", "judge_timeout_s", "judge_max_parts",
    "registry", "survey_minute", "survey_concurrency", "survey_waiting", "survey_per_host", "survey_pause_s",
    "survey_timeout_s", "survey_interval_s", "allow_private_addresses", "alerts",
    "host_agent", "token", "tokens", "tokens_file", "anonymous_role", "allowed_hosts", "log_format", "access_log",
    "audit_log", "min_agents_per_aggregate", "serve_host", "serve_port", "serve_tls_cert", "serve_tls_key",
    "serve_max_data_age_s", "pages", "history", "history_days", "metrics_agents", "serve_refresh_s", "serve_rate_limit",
    "serve_cors_origins", "serve_max_connections", "serve_connections_per_address", "serve_sessions_per_s",
})  # fmt: skip
"""Settings that no row of a run follows from. All others count, so that a new one does until it is named here."""


def upstream(asset: str, derived: Mapping[str, Derived]) -> set[str]:
    """Every asset that one follows from, at any remove; those of the logs' lines follow from one another.

    Args:
        asset: the asset.
        derived: every asset that is computed, by name.
    """
    found, wanted = set(RECORDS), [asset]
    while wanted:
        own = derived.get(wanted.pop())
        sources = set() if own is None else set(own.sources) - found
        found |= sources
        wanted += sources
    return found


class Account(NamedTuple):
    """The account of some tables, as far as a run looks at them.

    Args:
        covered_until: the hour until which hours count as covered without any row, or the first that is looked at.
        digests: by table, a digest of its hours.
    """

    covered_until: str
    digests: Mapping[str, str]


@dataclass(frozen=True)
class Grounds:
    """The grounds of a run.

    Args:
        digest: a digest of its hours, settings, targets and program.
        reach: the hours whose account counts: all that its rows and checks look at, and more.
    """

    digest: str
    reach: HourRange

    @classmethod
    def of(cls, settings: Settings, targets: Targets, hours: HourRange | HourGroups) -> "Grounds":
        """The grounds of a run for these hours."""
        said = [
            PROGRAM,
            [str(own) for own in hours.ranges],
            settings.model_dump(mode="json", exclude=set(WITHOUT_EFFECT)),
            targets.model_dump(mode="json"),
        ]
        span = HourRange(hours.start, hours.end)
        # components of the look-back look back themselves; a check looks at the hour after those that it judges
        return cls(digest_of(said), span.extended_back(2 * settings.reach_hours).extended_forward(1))

    def account(self, session: Session, assets: Collection[str]) -> Account:
        """The account of tables as it is now; whoever makes rows asks before the tables are read.

        Args:
            session: a session.
            assets: the tables.
        """
        first = LogCoverage(session).first_event_hour()
        digests = AccountDigests(session).of_assets(assets, self.reach)
        return Account(str(first and max(first, self.reach.start)), digests)

    def of_rows(self, account: Account, sources: Collection[str]) -> str:
        """A digest of these grounds, and of the account of the tables that rows are made from.

        Args:
            account: the account of these tables, and perhaps of more.
            sources: the tables.
        """
        return digest_of([self.digest, account.covered_until, [account.digests.get(name) for name in sorted(sources)]])


def of_checks(judged: str, records_in: str, rows: Mapping[str, str], outcomes: str | None) -> str:
    """A digest of all that the checks of an asset rest on, with their outcome.

    Args:
        judged: `Grounds.of_rows` with the asset among the sources, from before its rows were read.
        records_in: where Dagster keeps its records of the run; empty where nobody will see them again.
        rows: fingerprints of the rows that were judged, by hour, of a table whose account has none.
        outcomes: `AccountDigests.of_checks` of the asset.
    """
    return digest_of([judged, records_in, sorted(rows.items()), outcomes])


def judged_rows(session: Session, asset: str, hours: HourRange | HourGroups) -> dict[str, str]:
    """Fingerprints of a record table's rows by hour; nothing of a computed table, whose account has them."""
    if asset not in RECORDS:
        return {}
    digests = {hour: digest for own in hours.ranges for hour, digest in session.digests(asset, own).items()}
    return {hour.isoformat(): str(digest) for hour, digest in digests.items()}

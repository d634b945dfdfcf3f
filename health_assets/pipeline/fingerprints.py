"""Fingerprints of what the rows and checks of a partition follow from: settings, targets, program, upstream states.

What belongs here: which settings count, which tables a table is made from at any remove, and the digests of both. What
does not: storing them (`warehouse.fingerprints`), and asking whether a run would change anything
(`systems.no_op_check`).

The fingerprint of an hour's inputs is taken before its rows are made. A write that leaves other rows in an upstream
table changes that table's states, so an equal fingerprint later means that a run with these settings would leave the
rows as they are, whatever was written in between.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from health_assets.core.digests import digest_of
from health_assets.core.hours import HourGroups, HourRange
from health_assets.core.program import PROGRAM
from health_assets.core.settings import Settings
from health_assets.core.targets import Targets
from health_assets.pipeline.derived import Derived
from health_assets.schema.records import RECORD_TABLES
from health_assets.warehouse.fingerprints import Fingerprints
from health_assets.warehouse.log_coverage import LogCoverage
from health_assets.warehouse.partition_states import PartitionStates
from health_assets.warehouse.session import Session

RECORDS = ("raw_logs", *RECORD_TABLES)
"""Tables that are made of the logs in one step, of which each may depend on any other."""
EXCLUDED_SETTINGS = frozenset({
    "raw", "warehouse", "lake", "ledger", "published", "targets",  # places; what is there counts
    "lock_timeout_s", "lease_s", "lease_timeout_s", "memory_limit",
    "schedule_minute", "running_hour", "running_hour_refresh_s", "late_after_minutes", "schedules", "first_hour",
    "run_history_days",
    "pages_url", "docs_url",
    "tracker_log", "judge_url", "judge_model", "judge_key", "judge_max_runs", "judge_timeout_s", "judge_max_parts",
    "digest_salt", "user_ids",  # of what is read from then on
    "registry", "survey_minute", "survey_concurrency", "survey_waiting", "survey_per_host", "survey_pause_s",
    "survey_timeout_s", "survey_interval_s", "allow_private_addresses", "alerts",
    "host_agent", "token", "tokens", "tokens_file", "anonymous_role", "allowed_hosts", "log_format", "access_log",
    "audit_log", "min_agents_per_aggregate", "serve_host", "serve_port", "serve_tls_cert", "serve_tls_key",
    "signing_key", "serve_max_data_age_s", "pages", "mcp", "history", "history_days", "metrics_agents",
    "serve_refresh_s", "serve_rate_limit", "serve_cors_origins", "serve_max_connections",
    "serve_connections_per_address", "serve_sessions_per_s",
    "collect_host", "collect_port", "collect_token", "collect_tls_cert", "collect_tls_key",
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


class InputStates(NamedTuple):
    """The states of some tables in the hours that a run reads.

    Args:
        covered_until: the hour until which hours count as covered without any row, or the first that is read.
        digests: by table, a digest of the states of its hours; none, or None, of a table without any.
    """

    covered_until: str
    digests: Mapping[str, str | None]


@dataclass(frozen=True)
class RunFingerprint:
    """What the rows of a run follow from besides its inputs.

    Args:
        digest: a digest of its hours, settings, targets and program.
        reach: the hours that its rows and checks read, and a few more.
    """

    digest: str
    reach: HourRange

    @classmethod
    def of(cls, settings: Settings, targets: Targets, hours: HourRange | HourGroups) -> "RunFingerprint":
        """The fingerprint of a run for these hours."""
        said = [
            PROGRAM,
            [str(own) for own in hours.ranges],
            settings.model_dump(mode="json", exclude=set(EXCLUDED_SETTINGS)),
            targets.model_dump(mode="json"),
        ]
        span = HourRange(hours.start, hours.end)
        # components of the look-back look back themselves; a check looks at the hour after those that it judges
        return cls(digest_of(said), span.extended_back(2 * settings.reach_hours).extended_forward(1))

    def input_states(self, session: Session, assets: Collection[str]) -> InputStates:
        """The states of tables as they are now; to be taken before rows are made from them.

        Args:
            session: a session.
            assets: the tables.
        """
        first = LogCoverage(session).first_event_hour()
        digests = Fingerprints(session).of_assets(assets, self.reach)
        return InputStates(str(first and max(first, self.reach.start)), digests)

    def with_inputs(self, states: InputStates, sources: Collection[str]) -> str:
        """The fingerprint of rows that this run makes from some tables.

        Args:
            states: the states of these tables, and perhaps of more.
            sources: the tables.
        """
        return digest_of([self.digest, states.covered_until, [states.digests.get(name) for name in sorted(sources)]])


class KnownStates:
    """The states of tables within one transaction, each read once until its asset is made again.

    Args:
        session: the session.
        run: the fingerprint of the run.
        derived: every asset that is computed, by name.
    """

    def __init__(self, session: Session, run: RunFingerprint, derived: Mapping[str, Derived]) -> None:
        self._session = session
        self._run = run
        self._derived = derived
        self._covered_until = ""
        self._digests: dict[str, str | None] = {}

    def read(self, assets: Collection[str]) -> None:
        """Read the states that are not known yet."""
        unknown = set(assets) - self._digests.keys()
        if unknown:
            states = self._run.input_states(self._session, unknown)
            self._covered_until = states.covered_until
            self._digests |= {name: states.digests.get(name) for name in unknown}

    @cached_property
    def has_dropped(self) -> bool:
        """Whether any hour is dropped; a transaction that makes assets drops none."""
        return PartitionStates(self._session).dropped_until() is not None

    @cached_property
    def has_older_versions(self) -> bool:
        """Whether another version of a formula made any hour; where none did, this transaction notes none."""
        versions = {name: asset.formula_version for name, asset in self._derived.items()}
        return bool(PartitionStates(self._session).of_other_versions(versions))

    def forget(self, asset: str) -> None:
        """Read the states of an asset again where they are asked for: it was made."""
        self._digests.pop(asset, None)

    def fingerprint(self, sources: Collection[str]) -> str:
        """The fingerprint of rows that the run makes from some tables as they are now."""
        self.read(sources)
        return self._run.with_inputs(InputStates(self._covered_until, self._digests), sources)


def checks_fingerprint(judged: str, records_in: str, rows: Mapping[str, str], outcomes: str | None) -> str:
    """The fingerprint of an asset's checks: what they look at, and their outcome.

    Args:
        judged: `RunFingerprint.with_inputs` with the asset among the sources, from before its rows were read.
        records_in: where Dagster keeps its records of the run; empty where nobody will see them again.
        rows: digests of the rows that were judged, by hour, of a table whose states have none.
        outcomes: `Fingerprints.of_checks` of the asset.
    """
    return digest_of([judged, records_in, sorted(rows.items()), outcomes])


def judged_rows(session: Session, asset: str, hours: HourRange | HourGroups) -> dict[str, str]:
    """Digests of a record table's rows by hour; nothing of a computed table, whose states have them."""
    if asset not in RECORDS:
        return {}
    digests = {hour: digest for own in hours.ranges for hour, digest in session.digests(asset, own).items()}
    return {hour.isoformat(): str(digest) for hour, digest in digests.items()}

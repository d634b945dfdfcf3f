"""Settings: where the logs, the targets and the warehouse are, and how long windows last.

Every setting is an environment variable (prefix `HEALTH_`); one that is empty is not set, and the commands' flags
override it. What a single agent is expected to do is not a setting but a target (`targets`). The descriptions are
Markdown, with links as seen from `docs/`: `make docs` writes `docs/settings.md` from them.
"""

import os
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import floor_hour, parse_hour
from health_assets.core.judges import TRUSTED, Trust
from health_assets.core.raw_roots import is_inside, raw_root, shown


def load_settings() -> "Settings":
    """The settings of the environment.

    Raises:
        HealthAssetsError: a variable has an impossible value.
    """
    try:
        return Settings()
    except ValidationError as error:
        first = error.errors(include_context=False)[0]
    # outside of the handler: the library's error would hold its own traceback, and all in it, to the end of the process
    message = first["msg"].removeprefix("Value error, ")
    if not first["loc"]:
        raise HealthAssetsError(message)
    name = _variable_of(str(first["loc"][0]))
    raise HealthAssetsError(f"{name}: {message}, got {first['input']!r}")


NAMES_OF_SOURCE_4 = {
    "model_window_calls": "MESHFLOW_HEALTH_WINDOW",
    "model_degraded_threshold": "MESHFLOW_HEALTH_DEGRADED_THRESHOLD",
}
"""Variables of the model tracker's source (source 4, "Environment Variables"), which hold where ours are not set."""


def _variable_of(field: str) -> str:
    """The environment variable that a setting came from."""
    own = f"HEALTH_{field}".upper()
    other = NAMES_OF_SOURCE_4.get(field)
    return other if other and os.environ.get(other) and not os.environ.get(own) else own


class _NamesOfSource4(PydanticBaseSettingsSource):
    """Settings by the names of `NAMES_OF_SOURCE_4`."""

    def get_field_value(self, _: FieldInfo, field_name: str) -> tuple[str | None, str, bool]:
        """The text of the variable, which is a value as it is."""
        return os.environ.get(NAMES_OF_SOURCE_4[field_name]) or None, field_name, False

    def __call__(self) -> dict[str, Any]:
        """The settings that are set by these names."""
        fields = self.settings_cls.model_fields
        found = {name: self.get_field_value(fields[name], name)[0] for name in NAMES_OF_SOURCE_4}
        return {name: value for name, value in found.items() if value is not None}


def _hour(value: datetime | str | None) -> datetime | None:
    try:
        return parse_hour(value) if isinstance(value, str) else value
    except HealthAssetsError as error:
        raise ValueError(str(error)) from error


def _patterns(value: object) -> object:
    """Patterns that a text names between commas; those of a program as they are."""
    return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value


def _hour_counts(value: object) -> object:
    """Numbers of hours that a text names between commas, each once, the least first; `off` names none."""
    if not isinstance(value, str):
        return value
    words = [] if value.strip().lower() == "off" else list(filter(None, map(str.strip, value.split(","))))
    if not all(word.isdecimal() for word in words):
        raise ValueError("whole hours with commas between, or off")
    return tuple(sorted(set(map(int, words))))


def _user_ids(value: object) -> object:
    """Numbers of the users that a text names between commas."""
    names = filter(None, map(str.strip, value.split(","))) if isinstance(value, str) else None
    return value if names is None else tuple(map(_user_id, names))


def _user_id(name: str) -> int:
    if name.isdecimal():
        return int(name)
    try:
        import pwd  # there is none on Windows

        return pwd.getpwnam(name).pw_uid
    except (ImportError, KeyError):
        raise ValueError(f"there is no user {name} on this machine") from None


def _checked_origins(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if value != "*" and not re.fullmatch(r"https?://[^/?#@\s]+", value):
            raise ValueError("an origin is written like https://app.example, without a path")
    return values


def _local_file(value: Path | str | None) -> Path | str | None:
    if isinstance(value, str) and "://" in value:
        raise ValueError("the model tracker appends to a file of this machine")
    return value


def _folder_or_off(value: object) -> object:
    """`off` in any of the spellings that a switch has; anything else as it is."""
    return "off" if isinstance(value, str) and value.strip().lower() in ("off", "false", "no", "0") else value


class Settings(BaseSettings):
    """Settings, read from the environment: `HEALTH_RAW`, `HEALTH_TARGETS`, `HEALTH_WAREHOUSE` and the rest below."""

    model_config = SettingsConfigDict(env_prefix="HEALTH_", env_ignore_empty=True, extra="ignore")

    raw: Annotated[Path | str, BeforeValidator(raw_root)] = Field(
        Path("data/raw"),
        description="Folder of the raw logs, or a URL of an [object store](object-stores.md) like `s3://bucket/logs`.",
    )
    targets: Path | None = Field(
        None,
        description="[Targets](targets.md), a YAML file; without one, the defaults apply to every agent. Its block "
        "`redact:` says which [secrets are redacted](redaction.md).",
    )
    formats: Path | None = Field(
        None,
        description="[Declarations](formats.md#logs-of-your-own) of formats of your own logs: a YAML file, or a folder "
        "of such files.",
    )
    sessions_by_project: bool = Field(
        False,
        description="`on`: the agent of a coding agent's [session](formats.md#sessions-of-coding-agents) is named with "
        "its project, as `claude-code/shop`.",
    )
    warehouse: str = Field(
        "data/health.duckdb",
        description="The warehouse: a DuckDB file, or a [PostgreSQL](postgresql.md) URL, "
        "`postgresql+psycopg://user@host/db`, whose tables `health-assets migrate` makes; or "
        "a [Spark](spark.md) cluster, `sc://host:port`.",
    )
    lake: str | None = Field(
        None,
        description="Of a [Spark](spark.md) cluster, the folder or bucket of its tables, by a name that holds on "
        "every machine.",
    )
    ledger: str | None = Field(
        None, description="Of a [Spark](spark.md) cluster, the DuckDB file or PostgreSQL URL that keeps the account."
    )
    spark_ui: str | None = Field(
        None,
        description="Of a [Spark](spark.md) cluster, the address of its own web page, such as `http://spark:4040`, to "
        "which what a step materializes is linked.",
    )
    published: Annotated[Path | Literal["off"] | None, BeforeValidator(_folder_or_off)] = Field(
        None,
        description="Folder in which every run [publishes](published-tables.md) the tables as Parquet files: by "
        "default one beside a DuckDB file (`data/health.duckdb.published`), none for a database; `off` for none.",
    )
    window_hours: int = Field(24, ge=1, le=24 * 366, description="Length of the evaluation window.")
    lookback_hours: int = Field(168, ge=1, le=24 * 366, description="How long an agent stays known after an event.")
    short_window_hours: Annotated[
        tuple[Annotated[int, Field(ge=1, le=24 * 366)], ...], NoDecode, BeforeValidator(_hour_counts)
    ] = Field(
        (1, 6),
        max_length=5,
        description="Lengths of the windows, with commas between, that [agents' scores](scores.md#short-windows) are "
        "kept for besides the evaluation window, where the look-back is no shorter; `off` for none.",
    )
    failing_threshold: float = Field(
        1e-4,
        gt=0,
        lt=1,
        description="Failures that are less probable than this at the expected success rate make an agent "
        "[failing or suspect](agent-now.md).",
    )
    lock_timeout_s: float = Field(60.0, gt=0, description="Longest wait for a warehouse that somebody holds.")
    lease_s: float = Field(
        60.0,
        ge=1,
        le=3600,
        description="A run that gave no sign of life for so long has lost the [write lock](running.md#the-write-lock).",
    )
    lease_timeout_s: float = Field(3600.0, gt=0, description="How long a run waits for the write lock.")
    digest_salt: SecretStr | None = Field(
        None,
        description="Salt of the digests of [contents](session-scores.md#computed-signals) such as tools' arguments; "
        "by default random for each warehouse. Set it before the first load, for digests that are comparable between "
        "warehouses.",
    )
    user_ids: Literal["hashed", "plain"] = Field(
        "hashed",
        description="`plain` keeps the ids of [users](tools-and-usage.md#by-version-model-and-user) as logs state "
        "them, for all who may see an agent; `hashed` keeps salted digests. It counts for logs that are read from then "
        "on.",
    )
    memory_limit: str = Field("2GB", description="Most memory that DuckDB may use before it spills to disk.")
    clock_skew_s: float = Field(
        300.0,
        ge=0,
        le=86_400,
        description="Time by which an event may be later than now; a later one is rejected until then.",
    )
    max_rejected_lines: int = Field(
        100_000, ge=1, description="Rejected lines of one file that are kept; the others are one record with a count."
    )
    max_unpacked_gib: int = Field(
        64, ge=1, le=1 << 20, description="Most that is read of one file, once it is unpacked; the rest is rejected."
    )
    max_packing_ratio: int = Field(
        400,
        ge=1,
        le=1 << 20,
        description="Most bytes of a packed file for each packed byte, beyond 256 MiB; the rest is rejected.",
    )
    max_lines: int = Field(
        250_000_000, ge=1, le=1 << 40, description="Lines of one file that are read; the rest is rejected."
    )
    schedule_minute: int = Field(
        5, ge=0, le=59, description="Minute past the hour at which the last hour is materialized."
    )
    running_hour: bool = Field(
        True, description="Whether `health-assets run` scores the running hour, again whenever logs have news of it."
    )
    running_hour_refresh_s: float = Field(
        300.0,
        ge=0,
        le=3600,
        description="How old scores of the running hour may get, in seconds, besides those of agents' health: "
        "sessions, reliability, models, tools, usage, releases and drift; its checks are evaluated with them.",
    )
    late_after_minutes: int = Field(30, ge=1, description="An hour not materialized so long after its end is late.")
    schedules: bool = Field(True, description="`off`: no schedule starts by itself; Dagster's page switches each.")
    first_hour: Annotated[datetime | None, BeforeValidator(_hour)] = Field(
        None,
        description="First hour that Dagster's pages offer and the late-log sensor looks after "
        "([how](running.md#hours)); by default the logs' first.",
    )
    run_history_days: int = Field(30, ge=1, description="How long Dagster's runs and their events are kept.")
    pages_url: str | None = Field(
        None,
        pattern="^https?://",
        description="Public address of [`serve`](serving.md), to whose pages the assets on Dagster's page link.",
    )
    docs_url: str | None = Field(
        None,
        pattern="^https?://",
        description="Address of the folder of this documentation, to which the descriptions of assets link.",
    )

    keep_days: int | None = Field(
        None, ge=1, description="Days of record and component rows that are [kept](retention.md); without it, all."
    )

    # sources 4, 5 and 2
    model_window_calls: int = Field(
        50,
        ge=1,
        le=10_000,
        description="Calls that a model's rolling window holds; where it is not set, `MESHFLOW_HEALTH_WINDOW` counts.",
    )
    model_degraded_threshold: float = Field(
        0.7,
        ge=0,
        le=1,
        description="A model whose score is below it is degraded; where it is not set, "
        "`MESHFLOW_HEALTH_DEGRADED_THRESHOLD` counts.",
    )
    prices: bool = Field(
        True,
        description="`off`: no cost is [computed from prices](tools-and-usage.md#cost-from-prices); else it is, where "
        "the extra `prices` is installed.",
    )
    tracker_log: Annotated[Path | None, BeforeValidator(_local_file)] = Field(
        None,
        description="Raw log (`.jsonl`, below the raw root) that the [model tracker](model-health.md) of an agent's "
        "process appends to.",
    )
    weight_confidence: float = Field(1.0, ge=0, le=1, description="Weight of the confidence signal.")
    weight_loop_detection: float = Field(1.0, ge=0, le=1, description="Weight of the loop detection signal.")
    weight_tool_correctness: float = Field(0.8, ge=0, le=1, description="Weight of the tool correctness signal.")
    weight_coherence: float = Field(1.0, ge=0, le=1, description="Weight of the coherence signal.")
    flag_threshold: float = Field(0.5, ge=0, le=1, description="A trace whose risk is above it is flagged.")
    pass_threshold: float = Field(0.5, ge=0, le=1, description="Lowest session score that passes.")
    top_k_share: float = Field(0.15, gt=0, le=1, description="Share of a session's traces that makes its tail.")
    ensemble_weight: float = Field(0.1, ge=0, le=1, description="Weight of a session's single worst trace.")
    evaluation_window_hours: int | None = Field(
        None, ge=1, le=24 * 366, description="Window of the reliability evaluation; by default the evaluation window."
    )
    release_hours: int | None = Field(
        None,
        ge=1,
        le=24 * 183,
        description="How long a new version or model [is compared](releases.md) with the one before it, and with how "
        "much of that one's past; by default half of the look-back.",
    )
    comparison_margin: float = Field(
        0.02, gt=0, le=1, description="Largest difference of shares of runs between releases that does not matter."
    )
    comparison_ratio_margin: float = Field(
        0.1, gt=0, le=10, description="The same of runtime, tokens and cost, as a share of what they were."
    )
    drift_alarms_a_week: float = Field(
        1.0,
        gt=0,
        le=20,
        description="False alarms of [drift](drift.md) a week that a healthy fleet may have, of all agents together.",
    )
    judge_url: str | None = Field(
        None,
        pattern="^https?://",
        description="OpenAI-compatible endpoint that [judges safety](reliability.md#a-model-as-judge); "
        "the judge is off without it and the model.",
    )
    judge_model: str | None = Field(None, min_length=1, description="Model that judges.")
    judge_key: SecretStr | None = Field(None, description="Key of the endpoint, where it wants one.")
    judge_max_runs: int = Field(100, ge=1, le=100_000, description="Most evaluation runs sent in one run of the judge.")
    judge_timeout_s: float = Field(60.0, gt=0, description="How long to wait for one answer of the judge.")
    judge_max_parts: int = Field(
        50, ge=1, le=10_000, description="Most parts of one long run that are sent; of more, chance decides which."
    )
    trusted_judgements: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_patterns)] = Field(
        tuple(TRUSTED.patterns),
        description="Logs, as path patterns between commas, whose judgements may speak as a "
        "[model or a person](reliability.md#whom-to-believe).",
    )
    trusted_users: Annotated[tuple[int, ...], NoDecode, BeforeValidator(_user_ids)] = Field(
        (),
        description="Users, by name or number between commas, to whom these logs and their folders may belong, besides "
        "root and the user that the program runs as.",
    )
    registry: Path | None = Field(
        None, description="YAML file of the agents (name, platform, url) that are [surveyed](consumer-and-survey.md)."
    )
    survey_minute: int = Field(30, ge=0, le=59, description="Minute past the hour at which the survey starts.")
    survey_concurrency: int = Field(32, ge=1, le=1024, description="Most agents that the survey asks at a time.")
    survey_waiting: int = Field(
        1024,
        ge=0,
        le=65536,
        description="Most requests more that wait for [silent agents](consumer-and-survey.md#ask-a-fleet).",
    )
    survey_per_host: int = Field(2, ge=1, le=1024, description="Most agents asked at a time on one host.")
    survey_pause_s: float = Field(0.5, ge=0, le=3600, description="Mean rest between two requests to one host.")
    survey_timeout_s: float = Field(10.0, gt=0, le=600, description="Most time that one agent may take to answer.")
    survey_interval_s: float = Field(300.0, ge=300, le=1800, description="Least time between two polls of an agent.")
    allow_private_addresses: bool = Field(
        False,
        description="Whether `check` and the survey may ask "
        "[addresses that are not public](consumer-and-survey.md#addresses).",
    )
    alerts: Path | None = Field(
        None,
        description="YAML file of the rules and channels by which people are [told](alerts.md); without one nobody is.",
    )

    # the health endpoint
    host_agent: str | None = Field(
        None, description="Agent whose document the host serves as its own, at `/.well-known/agent-health`."
    )
    token: SecretStr | None = Field(
        None, description="A [token](serving.md#tokens) as it is, which may see all in full and operate."
    )
    tokens: SecretStr | None = Field(None, description="Kept tokens as JSON, as in the file of `HEALTH_TOKENS_FILE`.")
    tokens_file: Path | None = Field(
        None,
        description="YAML file of kept tokens: name, role, teams, fingerprint. `health-assets token new` makes one.",
    )
    anonymous_role: Literal["none", "documents", "read"] | None = Field(
        None,
        description="Rights of [those without a token](serving.md#who-may-see-what); by default `read` on the same "
        "machine, else `documents`.",
    )
    allowed_hosts: str = Field("", description="Host names answered besides the own ones, with commas; `*` is any.")
    log_format: Literal["text", "json"] = Field(
        "text",
        description="`json`: every line that commands, `serve` and runs log is "
        "[one JSON object](operation.md#logs-as-json).",
    )
    access_log: str | None = Field(
        None, description="File of [who asked the endpoint for what](serving.md#logs), or `-` for standard error."
    )
    audit_log: Path | None = Field(None, description="File of [who changed what](serving.md#logs).")
    min_agents_per_aggregate: int = Field(
        5,
        ge=1,
        description="Fewest other agents among which a [personal agent](serving.md#personal-agents) is part of an "
        "aggregate.",
    )
    serve_host: str = Field(
        "127.0.0.1", description="Name or address that the endpoint listens on; flags of `serve` win."
    )
    serve_port: int = Field(8080, ge=0, le=65535, description="Port that it listens on; 0 takes any that is free.")
    serve_tls_cert: Path | None = Field(None, description="Certificate chain in PEM, to speak HTTPS.")
    serve_tls_key: Path | None = Field(None, description="Its private key, unless it is in the same file.")
    signing_key: Path | None = Field(
        None,
        description="Unencrypted Ed25519 private key (PEM) that [signs](serving.md#signed-documents) health documents; "
        "needs the extra `signing`.",
    )
    serve_max_data_age_s: float = Field(
        7200.0,
        gt=0,
        description="Age of the data, from the end of its hour, past which it is [outdated](serving.md#outdated-data): "
        "every status is `unknown` and `/readyz` says 503; `inf` for never.",
    )
    pages: bool = Field(
        True, description="`off`: the endpoint serves no [pages for people](pages.md), and keeps no history for them."
    )
    mcp: bool = Field(
        False,
        description="`on`: the endpoint answers [MCP clients](mcp.md) at `/mcp`; it needs the extra `mcp`.",
    )
    history: Path | None = Field(
        None,
        description="Folder of the [pages' history](pages.md#history), this server's own; by default beside the "
        "warehouse's file, or `data/history` for PostgreSQL.",
    )
    history_days: int = Field(35, ge=1, le=400, description="Days that the pages look back.")
    metrics_agents: Annotated[tuple[str, ...], NoDecode, BeforeValidator(_patterns)] = Field(
        (),
        max_length=200,
        description="Agents, with commas between, that have [series of their own](serving.md#metrics) at `/metrics`; "
        "never personal ones.",
    )
    serve_refresh_s: float = Field(
        60.0, ge=60, description="How long answers may be kept, and how often a database is asked."
    )
    serve_rate_limit: float | None = Field(None, gt=0, description="Requests a second of one client address.")
    serve_cors_origins: Annotated[
        tuple[str, ...], NoDecode, BeforeValidator(_patterns), AfterValidator(_checked_origins)
    ] = Field(
        (),
        description="Origins, with commas between, whose scripts may [read health documents](discovery.md#browsers); "
        "`*` for any, by default none.",
    )
    serve_max_connections: int = Field(1000, ge=1, description="Connections that may be open at once.")
    serve_connections_per_address: int = Field(100, ge=1, description="Of them, those of one client address.")
    serve_sessions_per_s: float = Field(5.0, gt=0, description="Sessions a second that one client may have looked up.")

    # the collector
    collect_host: str = Field(
        "127.0.0.1", description="Name or address that [`collect`](collect.md) listens on; its flags win."
    )
    collect_port: int = Field(4318, ge=0, le=65535, description="Port that it listens on; 0 takes any that is free.")
    collect_token: SecretStr | None = Field(
        None,
        description="Token that senders must give as `Authorization: Bearer`, of at least 16 characters; needed where "
        "others can reach the address.",
    )
    collect_tls_cert: Path | None = Field(None, description="Certificate chain in PEM, to speak HTTPS.")
    collect_tls_key: Path | None = Field(None, description="Its private key, unless it is in the same file.")

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: type[BaseSettings], *sources: PydanticBaseSettingsSource, **named: PydanticBaseSettingsSource
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Add the names of another source behind all others."""
        return (*sources, *named.values(), _NamesOfSource4(settings_cls))

    @model_validator(mode="after")
    def _look_back_holds_the_window(self) -> "Settings":
        if self.lookback_hours < self.window_hours:
            raise ValueError(
                f"HEALTH_LOOKBACK_HOURS: the look-back is shorter than the window of {self.window_hours} h"
            )
        return self

    @model_validator(mode="after")
    def _what_is_kept_holds_the_look_back(self) -> "Settings":
        if self.keep_days is not None and self.keep_days < self.fewest_keep_days:
            raise ValueError(f"HEALTH_KEEP_DAYS: {self.too_few_days(self.keep_days)}")
        return self

    @model_validator(mode="after")
    def _lake_and_logs_are_apart(self) -> "Settings":
        if self.lake_among_logs is not None:
            raise ValueError(self.lake_among_logs)
        return self

    @property
    def trust(self) -> Trust:
        """The logs whose judgements may speak as a model or a person."""
        return Trust(self.trusted_judgements, frozenset(self.trusted_users))

    @property
    def lake_among_logs(self) -> str | None:
        """The sentence that says that tables would lie among the logs; None where they do not."""
        if self.lake is None or not is_inside(self.lake, self.raw):
            return None
        return f"HEALTH_LAKE lies in the raw root {shown(self.raw)}; name a folder or bucket of its own"

    def too_few_days(self, days: int) -> str:
        """The sentence that says why rows must be kept longer than so many days."""
        return (
            f"{days} days are too few to keep: an hour's results look back {self.reach_hours} h, on hours that do so "
            f"themselves; keep at least {self.fewest_keep_days} days"
        )

    def horizon(self, now: datetime) -> datetime | None:
        """The time before which logs are not loaded, since retention would drop them; None where everything is kept."""
        try:
            return None if self.keep_days is None else floor_hour(now) - timedelta(days=self.keep_days)
        except OverflowError:  # before the first year of the calendar
            return None

    @property
    def fewest_keep_days(self) -> int:
        """The days that must be kept so that the newest hours never need what retention dropped."""
        return -(-2 * self.reach_hours // 24)

    @property
    def short_windows(self) -> tuple[int, ...]:
        """The lengths of the short windows that the look-back holds, in hours."""
        return tuple(hours for hours in self.short_window_hours if hours <= self.lookback_hours)

    @property
    def evaluation_hours(self) -> int:
        """Length of the window of the reliability evaluation."""
        return self.evaluation_window_hours or self.window_hours

    @property
    def comparison_hours(self) -> int:
        """How long a release is compared with the one before it."""
        return self.release_hours or max(1, self.lookback_hours // 2)

    @property
    def has_judge(self) -> bool:
        """Whether evaluation runs can be judged by a model."""
        return self.judge_url is not None and self.judge_model is not None

    @property
    def reach_hours(self) -> int:
        """The number of hours of events that the results for an hour depend on; the last of them is its own."""
        return max(self.lookback_hours, 2 * self.window_hours, self.evaluation_hours, 2 * self.comparison_hours)

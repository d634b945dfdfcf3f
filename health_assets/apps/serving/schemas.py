"""The shapes of the answers, for the OpenAPI document and its tests; the answers are not built from these."""

from typing import Annotated, Literal, NotRequired

from pydantic import AwareDatetime, ConfigDict, Field, with_config
from typing_extensions import TypedDict  # pydantic takes typing's own only from Python 3.12 on

from health_assets.apps.serving.vocabulary import DATA_EXTENSION, EXTENSION, EXTENSION_NOW

Status = Literal["healthy", "degraded", "unhealthy", "unknown"]
State = Literal["healthy", "degraded", "unhealthy", "inactive"]
Now = Literal["failing", "suspect", "recovering", "ok", "quiet"]


exactly = with_config(ConfigDict(extra="forbid"))
"""An object without other members than those declared."""


IS_PROVISIONAL = Field(description="Whether the score rests on too few executions to be known: 0 < n < n_full.")
AT_STAKE = Field(ge=0, le=100, description="Points that could be lost: those that something in the window tests.")
NOW = Field(description="What the last hours say, before the score of the window; null where they are not known.")
NOW_SINCE = Field(description="Start of the first hour of that verdict.")
N = Field(ge=0, description="Executions in the window.")
N_FULL = Field(ge=1, description="Executions from which on the score is not provisional.")


@exactly
class Health(TypedDict):
    """Source 3, section 4.3."""

    status: Status
    last_healthy_at: NotRequired[
        Annotated[AwareDatetime, Field(description="Left out where it was in no materialized hour.")]
    ]
    uptime_seconds: NotRequired[Annotated[float, Field(ge=0)]]


@exactly
class Calibration(TypedDict):
    """Source 3, section 4.4."""

    response_ratio: NotRequired[Annotated[float, Field(ge=0, le=1)]]
    error_ratio: NotRequired[Annotated[float, Field(ge=0, le=1)]]
    latency_p50_ms: NotRequired[Annotated[float, Field(ge=0)]]
    latency_p99_ms: NotRequired[Annotated[float, Field(ge=0)]]
    measurement_window_seconds: Annotated[int, Field(ge=300)]
    sample_count: Annotated[int, Field(ge=0)]


@exactly
class Decay(TypedDict):
    """Source 3, section 4.5."""

    calibration_trend: Literal["stable", "declining", "improving"]
    days_since_model_change: Annotated[float | None, Field(ge=0)]
    last_capability_update: NotRequired[AwareDatetime]


@exactly
class Components(TypedDict):
    """The Agent Health Model's dimensions, each 0 to 1, without those that nobody could evaluate."""

    reliability: NotRequired[Annotated[float, Field(ge=0, le=1)]]
    performance: NotRequired[Annotated[float, Field(ge=0, le=1)]]
    stability: NotRequired[Annotated[float, Field(ge=0, le=1)]]
    operation: NotRequired[Annotated[float, Field(ge=0, le=1)]]


@exactly
class LastRuns(TypedDict):
    """The same formula over the last runs, of more than the window, of an agent that runs too rarely for it."""

    state: State
    n: Annotated[int, Field(ge=1, description="Executions, at least n_full.")]
    failures: Annotated[int, Field(ge=0, description="Executions among them that failed.")]
    score: Annotated[float, Field(ge=0, le=100)]
    points_at_stake: Annotated[float, AT_STAKE]
    since: Annotated[AwareDatetime, Field(description="Start of the hour of the first of them.")]


@exactly
class ModelScore(TypedDict):
    """The Agent Health Model's score of the same window."""

    state: NotRequired[State]
    is_provisional: Annotated[bool, IS_PROVISIONAL]
    n: NotRequired[Annotated[int, N]]
    n_full: NotRequired[Annotated[int, N_FULL]]
    score: NotRequired[Annotated[float, Field(ge=0, le=100)]]
    points_at_stake: NotRequired[Annotated[float, AT_STAKE]]
    components: NotRequired[Components]
    last_runs: NotRequired[Annotated[LastRuns, Field(description="There only while the score is provisional.")]]
    formula_version: NotRequired[str]


@exactly
class OutdatedData(TypedDict):
    """The reason for an unknown status; there only while the data is outdated."""

    is_outdated: Literal[True]
    as_of: Annotated[AwareDatetime, Field(description="End of the newest window that there is.")]
    status_then: Status


@exactly
class NowVerdict(TypedDict):
    """The verdict on the last hour and the last 6, which a window of 24 hours dilutes."""

    verdict: Now
    since: Annotated[AwareDatetime, Field(description="Start of the first hour of the present verdict.")]


@exactly
class Extensions(TypedDict):
    """Source 3, section 4.2: names are prefixed."""

    agent_health_model: NotRequired[Annotated[ModelScore, Field(alias=EXTENSION)]]
    data: NotRequired[Annotated[OutdatedData, Field(alias=DATA_EXTENSION)]]
    agent_now: NotRequired[Annotated[NowVerdict, Field(alias=EXTENSION_NOW)]]


@exactly
class HealthDocument(TypedDict):
    """An agent's health (source 3, section 4.2). Of a personal agent only a coarse status is told.

    A status is unknown while the data is outdated, of personal agents too.
    """

    schema_version: Literal["0.1.0"]
    agent_id: str
    timestamp: Annotated[AwareDatetime, Field(description="End of the window that the document is about.")]
    health: Health
    calibration: NotRequired[Calibration]
    decay: NotRequired[Decay]
    extensions: NotRequired[Extensions]


@exactly
class AgentItem(TypedDict):
    """An agent in a list; of a personal one state and status are coarse, and neither score nor executions are told."""

    agent_id: str
    now: Annotated[Now | None, NOW]
    now_since: Annotated[AwareDatetime | None, NOW_SINCE]
    state: State | None
    status: Status
    health_score: float | None
    points_at_stake: Annotated[float | None, AT_STAKE]
    is_provisional: Annotated[bool | None, IS_PROVISIONAL]
    n: Annotated[int | None, N]
    n_full: Annotated[int | None, N_FULL]
    is_personal: bool


@exactly
class AgentPage(TypedDict):
    """A page of agents in order."""

    hour: AwareDatetime
    total: Annotated[int, Field(description="Agents that the filter lets through, on all pages.")]
    offset: int
    limit: int
    agents: list[AgentItem]


@exactly
class Dimension(TypedDict):
    """A dimension of the score: 0 to 1, what it is worth, and the points that it cost."""

    score: float | None
    points: int
    cost: float | None
    is_evaluated: Annotated[bool, Field(description="Whether anything in the window could cost points here.")]


@exactly
class PointsLost(TypedDict):
    """The points that one component cost, the reason, and the events that weigh most in it."""

    component: Literal["success", "failures", "performance", "stability", "sla", "triggers"]
    dimension: Literal["reliability", "performance", "stability", "operation"]
    points: Annotated[float, Field(description="The most that it can cost.")]
    lost: Annotated[float, Field(ge=0, description="Points lost; all of them add up to 100 less the score.")]
    sentence: str
    inputs: Annotated[dict[str, float | None], Field(description="What was seen.")]
    targets: Annotated[dict[str, float | None], Field(description="What was expected.")]
    evidence_kind: Literal["failure", "slow_run", "long_run", "sla_breach", "trigger_failure"]
    evidence: Annotated[list[str], Field(description="Ids of executions or triggers, the heaviest first.")]


@exactly
class ShortWindow(TypedDict):
    """The same score over a shorter window that ends with the same hour."""

    window_hours: int
    health_score: Annotated[float, Field(ge=0, le=100)]
    points_at_stake: Annotated[float, AT_STAKE]
    state: State
    n: int


@exactly
class AgentScore(TypedDict):
    """An agent's score with everything behind it; of a personal agent no more than its item in a list."""

    hour: AwareDatetime
    agent_id: str
    now: Annotated[Now | None, NOW]
    now_since: Annotated[AwareDatetime | None, NOW_SINCE]
    now_sentence: NotRequired[Annotated[str | None, Field(description="The same in words.")]]
    last_hours: NotRequired[
        Annotated[
            dict[str, int | bool | None],
            Field(description="Executions and failures of the last hour and the last 6, and failures in a row."),
        ]
    ]
    short_windows: NotRequired[
        Annotated[list[ShortWindow], Field(description="Scores over the short windows in which something ran.")]
    ]
    state: State | None
    status: Status
    health_score: float | None
    points_at_stake: Annotated[float | None, AT_STAKE]
    is_provisional: Annotated[bool | None, IS_PROVISIONAL]
    n: Annotated[int | None, N]
    n_full: Annotated[int | None, N_FULL]
    is_personal: bool
    window_start: NotRequired[AwareDatetime]
    window_end: NotRequired[AwareDatetime]
    dimensions: NotRequired[dict[str, Dimension]]
    factors: NotRequired[dict[str, float | None]]
    inputs: NotRequired[dict[str, float | None]]
    targets: NotRequired[dict[str, float | None]]
    explanation: NotRequired[Annotated[list[PointsLost], Field(description="The dimension that cost most first.")]]
    formula_version: NotRequired[str | None]


@exactly
class ModelSummary(TypedDict):
    """A model's rolling health (source 4)."""

    model: str
    health_score: Annotated[float, Field(ge=0, le=1)]
    success_count: int
    failure_count: int
    p50_latency_ms: float | None
    p95_latency_ms: float | None
    is_degraded: bool
    last_error: NotRequired[Annotated[str | None, Field(description="As the log states it, so only in the full view.")]]
    last_call_at: AwareDatetime
    window_calls: int
    degraded_threshold: float
    last_response_model: Annotated[str | None, Field(description="That answered the latest call that names one.")]
    previous_response_model: Annotated[str | None, Field(description="Another one that answered before it.")]
    response_model_changed_at: AwareDatetime | None


@exactly
class ModelList(TypedDict):
    """All models, by name."""

    hour: AwareDatetime
    models: list[ModelSummary]


@exactly
class Candidate(TypedDict):
    """A candidate's score; 1 where the model has not been seen."""

    model: str
    health_score: float
    is_seen: bool


@exactly
class BestModel(TypedDict):
    """The candidate with the highest score; of equal ones the first that was named."""

    hour: AwareDatetime
    model: str
    health_score: float
    candidates: list[Candidate]


@exactly
class Listed(TypedDict):
    """The members by which every page of a list tells of the whole."""

    hour: Annotated[AwareDatetime | None, Field(description="Null where the warehouse has no hour of it.")]
    window_start: Annotated[AwareDatetime | None, Field(description="Null where the hour has no item.")]
    window_end: AwareDatetime | None
    total: Annotated[int, Field(description="Items that the filter lets through, on all pages.")]
    offset: int
    limit: int


@exactly
class ToolItem(TypedDict):
    """A tool, as it answered an agent in the window."""

    agent_id: Annotated[str, Field(description="Empty for calls of no known agent.")]
    tool: str
    calls: Annotated[int, Field(ge=1)]
    failures: Annotated[int, Field(ge=0)]
    failure_share: Annotated[float, Field(ge=0, le=1)]
    failure_share_at_least: Annotated[float, Field(ge=0, le=1, description="Lower end of its interval at 95 %.")]
    p50_latency_ms: float | None
    p95_latency_ms: float | None
    last_error_at: AwareDatetime | None
    last_error: NotRequired[Annotated[str | None, Field(description="As the log states it, so only in the full view.")]]


@exactly
class ToolPage(Listed):
    """Tools, the worst first."""

    tools: list[ToolItem]


class Usage(TypedDict):
    """Usage in the window; an amount is null where no execution tells it."""

    agent_id: str
    executions: Annotated[int, Field(ge=0)]
    successes: Annotated[int, Field(ge=0)]
    positive_feedback: Annotated[int, Field(ge=0, description="Executions with positive feedback of people.")]
    negative_feedback: Annotated[int, Field(ge=0)]
    executions_with_tokens: Annotated[int, Field(ge=0)]
    executions_with_cost: Annotated[int, Field(ge=0)]
    input_tokens: Annotated[int | None, Field(ge=0)]
    output_tokens: Annotated[int | None, Field(ge=0)]
    cache_read_tokens: Annotated[int | None, Field(ge=0, description="Of the input tokens.")]
    cache_creation_tokens: Annotated[int | None, Field(ge=0, description="Of the input tokens.")]
    reasoning_tokens: Annotated[int | None, Field(ge=0, description="Of the output tokens.")]
    cost_usd: Annotated[float | None, Field(ge=0)]
    cost_source: Annotated[
        Literal["stated", "computed"] | None, Field(description="`computed`: at least in part from prices.")
    ]
    cost_per_success_usd: Annotated[float | None, Field(ge=0)]
    cancelled_runs: Annotated[int, Field(ge=0, description="Runs that their users cancelled; they are no executions.")]
    cancelled_input_tokens: Annotated[int | None, Field(ge=0, description="Null where no cancelled run tells any.")]
    cancelled_output_tokens: Annotated[int | None, Field(ge=0)]
    cancelled_cost_usd: Annotated[float | None, Field(ge=0)]


@exactly
class UsageItem(Usage):
    """An agent's usage."""


@exactly
class UsageBreakdownItem(Usage):
    """The usage of one version of an agent with one model for one user."""

    agent_version: Annotated[str, Field(description="Empty for executions that name none.")]
    model: Annotated[str, Field(description="Empty for executions that name none.")]
    user_id: Annotated[
        str,
        Field(description="A digest unless HEALTH_USER_IDS is `plain`; empty for executions that name none."),
    ]


@exactly
class UsageBreakdownPage(Listed):
    """Versions, models and users of agents by cost, tokens or cost per success, the greatest first."""

    usage_breakdown: list[UsageBreakdownItem]


@exactly
class UsagePage(Listed):
    """Agents by cost, tokens or cost per success, the greatest first."""

    usage: list[UsageItem]


@exactly
class ServerStatus(TypedDict):
    """The age of the data."""

    is_ready: Annotated[bool, Field(description="Whether there is any data to answer from.")]
    is_current: Annotated[bool, Field(description="Whether the last look at the warehouse went well.")]
    data_hour: AwareDatetime | None
    data_age_s: Annotated[
        float | None, Field(description="Seconds since the end of that hour, or since when it is known while it runs.")
    ]
    is_outdated: Annotated[bool, Field(description="Whether it is too old to say how agents are now.")]
    loaded_at: AwareDatetime | None
    checked_at: Annotated[AwareDatetime | None, Field(description="When the data was last known to be the newest.")]
    refresh_s: float
    last_error: str | None
    agents: Annotated[int | None, Field(description="Those that the caller may see; null for who may read no list.")]
    models: Annotated[int | None, Field(description="Likewise; null for a token that is limited to teams, too.")]


class Probe(TypedDict):
    """The answer to a supervisor's probe."""

    status: Literal["alive", "ready"]


class Problem(TypedDict):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str

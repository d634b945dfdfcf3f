"""The shape of a session's figures, and of its scores as in source 5, for the OpenAPI document and its tests."""

from typing import Annotated, Literal, NotRequired

from pydantic import AwareDatetime, Field
from typing_extensions import TypedDict  # pydantic takes typing's own only from Python 3.12 on

from health_assets.apps.serving.schemas import exactly


@exactly
class TailRisk(TypedDict):
    """The aggregation of the traces' risks (source 5, "Top-k tail risk aggregation")."""

    method: Literal["max_compose_top_k"]
    top_k_percentile: float
    ensemble_weight: float
    mean_top_k_risk: float | None
    max_risk: float | None


@exactly
class WeightedRms(TypedDict):
    """The aggregation of the traces' uncertainties (source 5, "RMS aggregation")."""

    method: Literal["weighted_rms"]
    rms_value: float | None


class MetricMetadata(TypedDict):
    """The metadata of both metrics (source 5, "Metadata returned")."""

    total_traces_in_session: int
    traces_evaluated: int
    signal_weights: dict[str, float]
    per_trace_signals: dict[str, dict[str, float]]


@exactly
class ReliabilityMetadata(MetricMetadata):
    """The metadata of agent_reliability."""

    raw_risk: Annotated[float | None, Field(ge=0, description="Null where nothing could be evaluated.")]
    flagged_traces: list[str]
    flagged_not_listed: Annotated[int, Field(ge=0, description="Those beyond the riskiest 1,000.")]
    flag_threshold: Annotated[float, Field(ge=0, le=1, description="Traces with a greater risk are flagged.")]
    aggregation: TailRisk


@exactly
class ConsistencyMetadata(MetricMetadata):
    """The metadata of agent_consistency."""

    raw_instability: Annotated[float | None, Field(ge=0, description="Null where nothing could be evaluated.")]
    aggregation: WeightedRms


class SessionMetric(TypedDict):
    """One of source 5's two metrics; score, passed and band are null where nothing could be evaluated."""

    is_evaluated: bool
    score: Annotated[float | None, Field(ge=0, le=1)]
    passed: bool | None
    band: str | None
    threshold: float
    reason: Annotated[str | None, Field(description="Why nothing could be evaluated.")]


@exactly
class ReliabilityMetric(SessionMetric):
    """The session's reliability."""

    metadata: ReliabilityMetadata


@exactly
class ConsistencyMetric(SessionMetric):
    """The session's consistency."""

    metadata: ConsistencyMetadata


@exactly
class SessionScores(TypedDict):
    """A session's executions in figures, and its scores with everything behind them."""

    session_id: str
    agent_id: str | None
    hour: AwareDatetime
    runs: Annotated[int, Field(ge=0, description="Executions among its traces.")]
    failures: Annotated[int, Field(ge=0)]
    cancelled_runs: Annotated[int, Field(ge=0, description="Runs that their users cancelled; they are no executions.")]
    first_started_at: AwareDatetime | None
    last_ended_at: AwareDatetime | None
    duration_s: Annotated[float | None, Field(description="From the first start to the last end.")]
    input_tokens: Annotated[int | None, Field(ge=0, description="Null where no execution tells any.")]
    output_tokens: Annotated[int | None, Field(ge=0)]
    cost_usd: Annotated[float | None, Field(ge=0)]
    cost_source: Annotated[
        Literal["stated", "computed"] | None, Field(description="`computed`: at least in part from prices.")
    ]
    tool_calls: Annotated[int | None, Field(ge=0, description="Null where no call of the executions is known.")]
    tool_failures: Annotated[int | None, Field(ge=0)]
    steps: Annotated[int | None, Field(ge=0, description="Tool calls of known arguments, model calls of known answer.")]
    repeated_steps: Annotated[
        int | None, Field(ge=0, description="Steps that repeat an earlier step of their execution.")
    ]
    last_error_at: AwareDatetime | None
    last_error: NotRequired[
        Annotated[str | None, Field(description="First line, as the log states it; for who may read error texts.")]
    ]
    traces_not_listed: Annotated[int, Field(description="Traces beyond the riskiest 1,000.")]
    agent_reliability: ReliabilityMetric
    agent_consistency: ConsistencyMetric

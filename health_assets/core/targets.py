"""Targets: what each agent is expected to do, and how its scores turn into states.

What belongs here: reading and checking `targets.yaml`, and one row of targets per agent for the transforms. The meaning
of a target is in the source document of the score that uses it.
"""

from pathlib import Path
from typing import Annotated, Any

import pyarrow as pa
from pydantic import BaseModel, ConfigDict, Field, model_validator

from health_assets.core.agent_names import AgentName, AgentService
from health_assets.core.errors import HealthAssetsError
from health_assets.core.evaluators import Evaluator
from health_assets.core.formatting import nearest
from health_assets.core.redaction import Redaction
from health_assets.core.yaml_files import entries, line_of, mapping, read_yaml, shown, validated

SECTIONS = frozenset({"defaults", "agents", "names", "services", "redact", "evaluators"})
Share = Annotated[float, Field(ge=0, le=1)]
NotNegative = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Positive = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class AgentTargets(BaseModel):
    """The targets of one agent; docs/targets.md has the defaults."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    expected_success_rate: Share = 0.95
    expected_failures_per_hour: NotNegative = 1.0
    expected_runtime_s: Positive | None = None
    deviation_allowed: Positive = 0.2
    n_full: Annotated[int, Field(ge=1, le=10**12)] = 20
    long_running_factor: Positive = 5.0
    stability_threshold: Annotated[float, Field(ge=1e-6, allow_inf_nan=False)] = 15.0
    sla_breach_threshold: Positive = 5.0
    trigger_failure_threshold: Positive = 5.0
    sla_s: NotNegative | None = None
    baseline_latency_ms: Positive | None = None
    healthy_at: Annotated[float, Field(ge=0, le=100)] = 85.0
    degraded_at: Annotated[float, Field(ge=0, le=100)] = 65.0
    platform: str | None = None
    team: str | None = Field(None, min_length=1)
    personal: bool = False
    retired: bool = False

    @model_validator(mode="after")
    def _states_are_ordered(self) -> "AgentTargets":
        if self.degraded_at > self.healthy_at:
            raise ValueError(f"degraded_at ({self.degraded_at:g}) is above healthy_at ({self.healthy_at:g})")
        return self


class Targets(BaseModel):
    """Defaults, full targets of agents with overrides, patterns of names, services and secrets, and evaluators."""

    model_config = ConfigDict(frozen=True)

    defaults: AgentTargets = AgentTargets()
    agents: dict[str, AgentTargets] = {}
    names: tuple[AgentName, ...] = ()
    services: tuple[AgentService, ...] = ()
    redact: Redaction = Redaction()
    evaluators: tuple[Evaluator, ...] = ()

    def of(self, agent_id: str) -> AgentTargets:
        """The targets of one agent."""
        return self.agents.get(agent_id, self.defaults)

    def table(self) -> pa.Table:
        """One row per agent with overrides: `agent_id` and every target, nulls where a target is not set."""
        rows = [{"agent_id": agent_id, **targets.model_dump()} for agent_id, targets in self.agents.items()]
        fields = {
            name: _ARROW_TYPES.get(field.annotation, pa.float64()) for name, field in AgentTargets.model_fields.items()
        }
        return pa.Table.from_pylist(rows, schema=pa.schema({"agent_id": pa.string(), **fields}))


_ARROW_TYPES: dict[Any, pa.DataType] = {int: pa.int64(), bool: pa.bool_(), str | None: pa.string()}


def load_targets(path: Path | None) -> Targets:
    """Read a targets file; None gives the defaults for every agent.

    Raises:
        HealthAssetsError: the file is missing or not YAML, or a key is unknown or its value impossible.
    """
    if path is None:
        return Targets()
    document = mapping(path, "the file", read_yaml(path, "targets file"))
    if unknown := set(document) - SECTIONS:
        section = min(map(str, unknown))
        raise HealthAssetsError(
            f"{path}{line_of(path, section)}: unknown section {shown(section)}; "
            f"use 'defaults', 'agents', 'names', 'services', 'redact' and 'evaluators'{nearest(section, SECTIONS)}"
        )
    defaults = mapping(path, "defaults", document.get("defaults"))
    agents = mapping(path, "agents", document.get("agents"))
    return Targets(
        defaults=validated(path, "defaults", AgentTargets, defaults, keys=["defaults"]),
        agents={
            str(agent_id): validated(
                path,
                f"agent {shown(agent_id)}",
                AgentTargets,
                {**defaults, **mapping(path, shown(agent_id), own)},
                keys=["agents", agent_id],
            )
            for agent_id, own in agents.items()
        },
        names=tuple(entries(path, "names", AgentName, document, "{match: pattern, agent: name}")),
        services=tuple(entries(path, "services", AgentService, document, "{match: pattern}")),
        redact=validated(path, "redact", Redaction, mapping(path, "redact", document.get("redact")), keys=["redact"]),
        evaluators=tuple(entries(path, "evaluators", Evaluator, document, "{match: pattern, signal: name}")),
    )

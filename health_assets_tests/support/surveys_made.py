"""Probes made by hand, for tests that are not about asking."""

import json
from datetime import datetime, timedelta

from health_assets.consumer import Answer, parse_document
from health_assets.systems.survey.probing import Probe
from health_assets.systems.survey.surveyed_agents import RegisteredAgent
from health_assets_tests.support.health_servers import document


def made_agent(name: str, platform: str = "p", host: str = "agents.example") -> RegisteredAgent:
    return RegisteredAgent(name=name, platform=platform, url=f"https://{host}/{name}")


def made_probe(
    name: str,
    platform: str,
    hour: datetime,
    outcome: str = "valid",
    *,
    status: str | None = None,
    minute: float = 30,
    http_status: int | None = None,
    latency_ms: float | None = None,
) -> Probe:
    """What an agent answered in an hour."""
    agent = made_agent(name, platform)
    found = None if status is None else parse_document(json.dumps(document(status)).encode())
    asked_at = hour + timedelta(minutes=minute)
    error = None if outcome == "valid" else f"it gave {outcome}"
    if outcome == "valid":
        http_status, latency_ms = 200, latency_ms or 12.5
    return Probe(
        agent,
        Answer(
            url=agent.health_url,
            asked_at=asked_at,
            outcome=outcome,
            document=found,
            http_status=http_status,
            latency_ms=latency_ms,
            error=error,
        ),
    )

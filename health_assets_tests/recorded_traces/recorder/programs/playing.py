"""What every program does around its scenarios: the SDK that writes the spans, the arguments, and how a scenario ends."""

import asyncio
import inspect
import os
import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.exporter.otlp.json.file.trace_exporter import FileSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SERVICE = {"service.name": "weather-service", "service.version": "1.4.0"}
NO_KEY = "no-key"
"""Clients want an API key; the fake server does not look at it."""
Scenario = Callable[[str], Awaitable[None] | None]


def play(instrument: Mapping[str, Callable[[TracerProvider], object]], scenarios: Mapping[str, Scenario]) -> None:
    """Play the scenario of the command line, instrumented in its flavour; each scenario is given the server's address."""
    flavour, scenario, file, url = sys.argv[1:]
    os.environ.setdefault("OPENAI_API_KEY", NO_KEY)
    os.environ.setdefault("ANTHROPIC_API_KEY", NO_KEY)
    os.environ.setdefault("GOOGLE_API_KEY", NO_KEY)
    provider = TracerProvider(resource=Resource.create(SERVICE))
    trace.set_tracer_provider(provider)
    instrument[flavour](provider)
    provider.add_span_processor(BatchSpanProcessor(FileSpanExporter(Path(file))))  # after processors that change spans
    played = scenarios[scenario](url)
    if inspect.isawaitable(played):
        asyncio.run(_awaited(played))
    provider.shutdown()


def must_be(found: Any, expected: Any) -> None:
    """Check what a scenario came to.

    Raises:
        AssertionError: It came to something else.
    """
    if found != expected:
        raise AssertionError(f"{found!r} in place of {expected!r}")


def must_fail(run: Callable[[], Any], because: str = "") -> None:
    """Check that this run fails, with an error whose text has this in it (a regular expression)."""
    try:
        run()
    except Exception as error:
        _must_say(error, because)
    else:
        raise AssertionError("the run was to fail")


async def must_fail_later(run: Awaitable[Any], because: str = "") -> None:
    """Check the same of a run that has to be awaited."""
    try:
        await run
    except Exception as error:
        _must_say(error, because)
    else:
        raise AssertionError("the run was to fail")


def _must_say(error: Exception, because: str) -> None:
    if not re.search(because, f"{type(error).__name__}: {error}"):
        raise AssertionError(f"the run was to fail because of {because}") from error


async def _awaited(played: Awaitable[None]) -> None:
    await played

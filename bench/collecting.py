"""`python -m bench.collecting`: spans a second that the collector acknowledges, on one core, in requests of 512.

The server has a core of its own where there are two; its CPU time is measured besides, since other programs may want
that core, too. A span has eight attributes, like those of a request to a model.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import httpx
import psutil
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TEXTS = {
    "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "small-1",
    "gen_ai.response.model": "small-1-2026-06-07", "gen_ai.agent.name": "planner", "gen_ai.conversation.id": "chat-42",
}  # fmt: skip
NUMBERS = {"gen_ai.usage.input_tokens": 1200, "gen_ai.usage.output_tokens": 80}
START_NS = 1_780_000_000 * 10**9


def main() -> None:
    """Read the flags, start the collector, send, and print what was measured."""
    parser = argparse.ArgumentParser(prog="python -m bench.collecting", description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--connections", type=int, default=8)
    parser.add_argument("--spans", type=int, default=512, help="spans of a request")
    flags = parser.parse_args()
    bodies = [request(flags.spans, Random(seed)) for seed in range(16)]
    with (
        tempfile.TemporaryDirectory(prefix="health-assets-bench-") as folder,
        collector(Path(folder)) as (url, process),
    ):
        asyncio.run(send(url, bodies, flags.connections, 1.0))
        before, start = process.cpu_times(), time.perf_counter()
        requests = asyncio.run(send(url, bodies, flags.connections, flags.seconds))
        seconds, after = time.perf_counter() - start, process.cpu_times()
        cpu_s = after.user + after.system - before.user - before.system
        spans = requests * flags.spans
        print(
            f"{spans:,} spans in {seconds:.1f} s: {spans / seconds:,.0f} a second, {spans / cpu_s:,.0f} a second of CPU"
        )
        print(f"a request has {len(bodies[0]):,} bytes; the server took {cpu_s / seconds:.0%} of a core")


def request(spans: int, random: Random) -> bytes:
    """A request of some spans, in Protobuf."""
    made = ExportTraceServiceRequest()
    resource = made.resource_spans.add()
    resource.resource.attributes.add(key="service.name").value.string_value = "shop"
    scope = resource.scope_spans.add()
    for number in range(spans):
        span = scope.spans.add(
            trace_id=random.randbytes(16), span_id=random.randbytes(8), parent_span_id=random.randbytes(8),
            name="chat small-1", kind=3, start_time_unix_nano=START_NS + number, end_time_unix_nano=START_NS + 10**9,
        )  # fmt: skip
        for key, text in TEXTS.items():
            span.attributes.add(key=key).value.string_value = text
        for key, value in NUMBERS.items():
            span.attributes.add(key=key).value.int_value = value
    return made.SerializeToString()


@contextmanager
def collector(folder: Path) -> Iterator[tuple[str, psutil.Process]]:
    """A collector in a process of its own, on the last core; its address."""
    command = [sys.executable, "-m", "health_assets", "collect", "--port", "0", "--raw", str(folder)]
    cores = sorted(os.sched_getaffinity(0))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[2]
        for thread in psutil.Process(process.pid).threads():
            os.sched_setaffinity(thread.id, {cores[-1]})
        os.sched_setaffinity(0, set(cores[:-1]) or set(cores))
        try:
            yield address, psutil.Process(process.pid)
        finally:
            process.terminate()


async def send(url: str, bodies: list[bytes], connections: int, seconds: float) -> int:
    """Send on some connections for a while; the number of requests that were acknowledged."""
    end = time.monotonic() + seconds
    async with httpx.AsyncClient(timeout=60, limits=httpx.Limits(max_connections=connections)) as client:

        async def sender(place: int) -> int:
            count = 0
            while time.monotonic() < end:
                body = bodies[(place + count) % len(bodies)]
                answer = await client.post(
                    f"{url}/v1/traces", content=body, headers={"Content-Type": "application/x-protobuf"}
                )
                answer.raise_for_status()
                count += 1
            return count

        return sum(await asyncio.gather(*map(sender, range(connections))))


if __name__ == "__main__":
    main()

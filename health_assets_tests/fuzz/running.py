"""Running fuzz targets: batch after batch in processes of their own, so that a crash or a hang is a finding, too.

What belongs here: turns, processes and making a finding small. What does not: what is right (`targets`).
"""

import os
import resource
import signal
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from health_assets_tests.fuzz.mutations import mutated
from health_assets_tests.fuzz.targets import TARGETS
from health_assets_tests.support.projects import in_a_process

MEMORY_BYTES = 6 * 2**30
WAITS = 10
"""How often a batch may take its time, waiting for a busy machine, before it counts as hanging."""
TRIES_TO_SHRINK = 40
MOST_FINDINGS = 5
"""Findings after which a target is left alone: more of them are mostly the same once more."""


@dataclass(frozen=True)
class Finding:
    """Input that breaks a promise.

    Args:
        target: name of the target.
        input: the smallest such input that was found.
        what: what was wrong.
    """

    target: str
    input: bytes
    what: str

    def __str__(self) -> str:
        shown = self.input if len(self.input) < 2000 else self.input[:1000] + b" ... " + self.input[-500:]
        return f"{self.target}: {self.what.strip()}\n  input of {len(self.input):,} bytes: {shown!r}"


def inputs_of(name: str, seed: int, turn: int, count: int) -> list[bytes]:
    """The inputs of one turn of a target, the same for the same seed."""
    random = Random(f"{name} {seed} {turn}")
    samples = TARGETS[name].samples()
    return [mutated(random, samples) for _ in range(count)]


def fault_of(name: str, inputs: Sequence[bytes]) -> str | None:
    """What is wrong with what the product makes of these inputs; None where all is well."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        said = Path(folder, "said")
        work = Path(folder, "work")
        work.mkdir()
        process = in_a_process(_check, name, list(inputs), work, said)
        process.join(WAITS * TARGETS[name].limit_s)
        if process.is_alive():
            process.kill()
            process.join()
            return f"it hangs for {WAITS * TARGETS[name].limit_s} s"
        if process.exitcode == -signal.SIGXCPU:
            return f"it takes more than {TARGETS[name].limit_s} s"
        if process.exitcode == 0:
            return None
        return said.read_text(encoding="utf-8", errors="replace") if said.exists() else f"exit code {process.exitcode}"


def _check(name: str, inputs: list[bytes], work: Path, said: Path) -> None:
    os.environ["TMPDIR"] = str(work)
    tempfile.tempdir = str(work)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (TARGETS[name].limit_s, resource.RLIM_INFINITY))
    try:
        TARGETS[name].check(inputs, work)
    except BaseException as error:
        lines = "".join(traceback.format_exception_only(error))[-3000:]
        place = traceback.extract_tb(error.__traceback__)[-1]
        said.write_text(f"{lines} ({Path(place.filename).name}:{place.lineno})", encoding="utf-8", errors="replace")
        os._exit(1)


def finding_in(name: str, inputs: Sequence[bytes]) -> Finding | None:
    """Check inputs; of those that break a promise, the smallest one that can be found soon."""
    what = fault_of(name, inputs)
    if what is None:
        return None
    while len(inputs) > 1:
        half = len(inputs) // 2
        for part in (inputs[:half], inputs[half:]):
            told = fault_of(name, part)
            if told:
                inputs, what = part, told
                break
        else:
            return Finding(name, b"\n".join(inputs), f"only together: {what}")
    small = _shrunk(inputs[0], lambda one: fault_of(name, [one]) is not None)
    return Finding(name, small, fault_of(name, [small]) or what)


def _shrunk(one: bytes, is_bad: Callable[[bytes], bool]) -> bytes:
    tries, piece = 0, len(one) // 2
    while piece and tries < TRIES_TO_SHRINK:
        start = 0
        while start < len(one) and tries < TRIES_TO_SHRINK:
            tries += 1
            shorter = one[:start] + one[start + piece :]
            if is_bad(shorter):
                one = shorter
            else:
                start += piece
        piece //= 2
    return one


def run(
    names: Sequence[str],
    seed: int,
    *,
    seconds: float = float("inf"),
    count: int | None = None,
    tell: Callable[[str], None] = print,
) -> list[Finding]:
    """Run targets by turns until the time is over, or each had so many inputs; give what was found, one a batch at most."""
    end = time.monotonic() + seconds
    done = dict.fromkeys(names, 0)
    took = dict.fromkeys(names, 0.0)
    findings: list[Finding] = []
    turn, left = 0, list(names)
    while time.monotonic() < end and any(count is None or done[name] < count for name in left):
        for name in list(left):
            size = TARGETS[name].batch if count is None else min(TARGETS[name].batch, count - done[name])
            if size <= 0 or time.monotonic() >= end:
                continue
            start = time.monotonic()
            finding = finding_in(name, inputs_of(name, seed, turn, size))
            took[name] += time.monotonic() - start
            done[name] += size
            if finding:
                findings.append(finding)
                tell(str(finding))
                if sum(one.target == name for one in findings) == MOST_FINDINGS:
                    left.remove(name)
        turn += 1
    for name in names:
        found = sum(finding.target == name for finding in findings)
        tell(f"{name}: {done[name]:,} inputs in {took[name]:.0f} s, {found} findings")
    return findings

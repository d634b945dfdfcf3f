"""A writer of raw logs that goes on while others read: it appends, rotates, delivers late and delivers twice.

`python -m health_assets_tests.soak.writer RAW JOURNAL --seed 1` writes until SIGTERM, then notes in JOURNAL which
executions of which hours it wrote: what the tables must hold, told by somebody who never read a table.
"""

import argparse
import gzip
import json
import shutil
import signal
import threading
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

HISTORY_HOURS = 12
"""Hours before the start that have logs from the beginning, and that late lines are about."""
AGENTS = tuple(f"soak-agent-{number:02d}" for number in range(12))
BAD_LINE = "Traceback (most recent call last):"
LINES_A_TURN = 5
TURN_S = 0.25
LINES_OF_A_LATE_FILE = 40
ROTATE_AFTER_LINES = 300
KEPT_ROTATIONS = 400
"""Rotated logs that stay; more than a soak makes, since a log that is deleted is lost on purpose."""

Record = dict[str, Any]


class Writer:
    """Logs of a small fleet below a folder.

    Args:
        raw: the raw root.
        seed: makes the same events of it, but for their times.
    """

    def __init__(self, raw: Path, seed: int) -> None:
        self._raw, self._random = raw, Random(seed)
        self._numbers = count()
        self._lines_of: dict[str, int] = defaultdict(int)
        self.executions: dict[str, set[str]] = defaultdict(set)
        """Ids of the executions, by the hour in which they ended."""
        self.lines = 0

    def write_history(self, now: datetime) -> None:
        """One log for each of the hours before."""
        for back in range(HISTORY_HOURS, 0, -1):
            hour = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=back)
            lines = [self._line(hour + timedelta(seconds=self._random.randrange(3600))) for _ in range(60)]
            self._append(f"history/{hour:%Y-%m-%dT%H}.jsonl", lines)

    def turn(self, now: datetime) -> None:
        """Write some lines, most of them about now, and do with the files what their keepers do now and then."""
        log = self._random.choice(["renamed.jsonl", "truncated.jsonl", "packed.jsonl"])
        lines = [self._line(self._some_time(now)) for _ in range(LINES_A_TURN)]
        if self._random.random() < 0.05:
            lines.append(BAD_LINE)
        self._append(log, lines)
        if self._lines_of[log] >= ROTATE_AFTER_LINES:
            self._rotate(log)
        if self._random.random() < 0.02:
            hour = now - timedelta(hours=self._random.randrange(2, HISTORY_HOURS))
            self._append(f"late/{next(self._numbers)}.jsonl", [self._line(hour) for _ in range(LINES_OF_A_LATE_FILE)])
        if self._random.random() < 0.01:
            self._deliver_again()

    def _some_time(self, now: datetime) -> datetime:
        is_late = self._random.random() < 0.1
        return now - timedelta(hours=self._random.randrange(1, HISTORY_HOURS) if is_late else 0)

    def _line(self, at: datetime) -> str:
        number, agent = next(self._numbers), self._random.choice(AGENTS)
        kind = self._random.choices(["execution", "trigger", "model_call", "tool_call", "signals"], [6, 1, 1, 1, 1])[0]
        if kind == "execution":
            self.executions[f"{at:%Y-%m-%dT%H}"].add(f"e{number}")
        return json.dumps({"type": kind, **getattr(self, f"_{kind}")(number, agent, at)})

    def _execution(self, number: int, agent: str, at: datetime) -> Record:
        runtime_s = self._random.uniform(1, 40)
        status = "failure" if self._random.random() < 0.1 else "success"
        return {
            "execution_id": f"e{number}", "agent_id": agent, "status": status, "task_id": f"task {number % 7}",
            "session_id": f"session {number % 30}", "confidence": round(self._random.random(), 2), "sla_s": 30,
            "started_at": (at - timedelta(seconds=runtime_s)).isoformat(), "ended_at": at.isoformat(),
        }  # fmt: skip

    def _trigger(self, number: int, agent: str, at: datetime) -> Record:
        return {"trigger_id": f"t{number}", "agent_id": agent, "fired_at": at.isoformat(), "status": "fired"}

    def _model_call(self, number: int, agent: str, at: datetime) -> Record:
        latency_ms = round(self._random.expovariate(1 / 800), 1)
        return self._call(number, agent, at) | {"model": f"model-{number % 3}", "latency_ms": latency_ms}

    def _tool_call(self, number: int, agent: str, at: datetime) -> Record:
        return self._call(number, agent, at) | {"tool": f"tool-{number % 4}"}

    def _call(self, number: int, agent: str, at: datetime) -> Record:
        status = "failure" if self._random.random() < 0.05 else "success"
        return {"call_id": f"c{number}", "agent_id": agent, "ended_at": at.isoformat(), "status": status}

    def _signals(self, number: int, agent: str, at: datetime) -> Record:
        return {"execution_id": f"e{number}", "agent_id": agent, "at": at.isoformat(), "coherence": 0.9}

    def _append(self, name: str, lines: list[str]) -> None:
        """Append lines; the last one in two parts, as a reader may find it."""
        path = self._raw / name
        path.parent.mkdir(parents=True, exist_ok=True)
        text = "".join(f"{line}\n" for line in lines)
        with path.open("a", encoding="utf-8") as file:
            file.write(text[:-20])
            file.flush()
            file.write(text[-20:])
        self._lines_of[name] += len(lines)
        self.lines += len(lines)

    def _rotate(self, name: str) -> None:
        """Rotate a log as its name says: `.1` becomes `.2`, and so on, or a packed file, or a copy and a truncation."""
        path = self._raw / name
        if name.startswith("renamed"):
            for number in range(KEPT_ROTATIONS, 0, -1):
                older = path.with_name(f"{name}.{number}")
                if older.exists():
                    older.rename(path.with_name(f"{name}.{number + 1}"))
            path.rename(path.with_name(f"{name}.1"))
        elif name.startswith("packed"):
            kept = path.with_name(f"packed-{next(self._numbers)}.jsonl.gz")
            being_packed = kept.with_suffix(".part")
            with path.open("rb") as plain, gzip.open(being_packed, "wb") as packed:
                shutil.copyfileobj(plain, packed)
            being_packed.rename(kept)
            path.unlink()
        else:
            shutil.copyfile(path, path.with_name(f"{name}-{next(self._numbers):08d}"))
            path.open("w").close()
        self._lines_of[name] = 0

    def _deliver_again(self) -> None:
        """The same file under another name, or the first lines of a log once more at its end."""
        late = sorted((self._raw / "late").glob("*.jsonl")) if (self._raw / "late").is_dir() else []
        if not late:
            return
        file = self._random.choice(late)
        if self._random.random() < 0.5:
            shutil.copyfile(file, file.with_name(f"again-{next(self._numbers)}.jsonl"))
        else:
            self._append("truncated.jsonl", file.read_text(encoding="utf-8").splitlines()[:3])


def turns(is_over: threading.Event) -> Iterator[datetime]:
    """The time of each turn, until it is over."""
    while not is_over.wait(TURN_S):
        yield datetime.now(UTC)


def main() -> None:
    """Write until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("raw", type=Path)
    parser.add_argument("journal", type=Path)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    is_over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    writer = Writer(chosen.raw, chosen.seed)
    writer.write_history(datetime.now(UTC))
    print("history", flush=True)
    for now in turns(is_over):
        writer.turn(now)
    executions = {hour: sorted(ids) for hour, ids in writer.executions.items()}
    chosen.journal.write_text(json.dumps({"lines": writer.lines, "executions": executions}), encoding="utf-8")


if __name__ == "__main__":
    main()

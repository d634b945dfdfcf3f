"""The corpus: logs, targets and hours."""

import gzip
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import yaml

from health_assets.apps.demo.sample_fleet import TARGETS_YAML
from health_assets.apps.demo.samples import sample_files, span_until
from health_assets.core.hours import HourGroups, HourRange, floor_hour
from health_assets_tests.support.logs_made import START, cut_into_files, random_lines, random_targets
from health_assets_tests.support.projects import REAL_LOGS, REPOSITORY, hours_from
from health_assets_tests.support.traces_made import in_lines, random_spans

Files = Mapping[str, bytes]
"""Content of each raw log by its path below the raw root."""

RANDOM_FLEETS = 8
RANDOM_HOURS = 14
RECORDINGS = REPOSITORY / "health_assets_tests" / "recorded_traces"
MODIFIED = datetime(2026, 11, 1, tzinfo=UTC)
"""When every log was written: it decides the hour of lines that name no time."""
_ENDED_AT_NS = re.compile(r'"endTimeUnixNano": ?"?(\d{19})')


@dataclass(frozen=True)
class Case:
    """Logs and targets that are materialized for some hours.

    Args:
        name: what the digests are stored under.
        files: makes the logs.
        hours: the hours of these logs.
        targets: the targets; none where None.
        later_targets: targets for the second half of the hours, which are made in a second run; none where None.
        window_hours: length of the window.
        lookback_hours: length of the look-back.
        is_nightly: whether the test of it runs by night.
        needs: a folder outside the project that holds the logs; None where they are made.
    """

    name: str
    files: Callable[[], Files]
    hours: Callable[[], HourRange | HourGroups]
    targets: dict[str, Any] | None = None
    later_targets: dict[str, Any] | None = None
    window_hours: int = 24
    lookback_hours: int = 168
    is_nightly: bool = False
    needs: Path | None = None

    @property
    def is_there(self) -> bool:
        """Whether the logs are on this machine."""
        return self.needs is None or self.needs.is_dir()


def cases() -> Iterator[Case]:
    """All cases, the quick ones first."""
    for seed in range(1, RANDOM_FLEETS + 1):
        yield _random_fleet(seed)
    yield _new_targets()
    yield Case("recorded traces", _recordings, _hours_of_recordings, is_nightly=True)
    yield _sample_fleet()
    yield Case("METR's runs", _real_logs, lambda: _days("2024-10-11", "2024-12-17"), is_nightly=True, needs=REAL_LOGS)


def _random_fleet(seed: int) -> Case:
    random = Random(f"equality {seed}")
    targets = random_targets(random)
    window_hours = random.choice([3, 6, 24])
    return Case(
        f"random fleet {seed}",
        lambda: _random_files(seed),
        lambda: hours_from(START, RANDOM_HOURS),
        targets=targets,
        window_hours=window_hours,
        lookback_hours=window_hours + random.choice([0, 5]),
        is_nightly=seed > 1,
    )


def _new_targets() -> Case:
    random = Random("equality of new targets")
    return Case(
        "new targets halfway",
        lambda: _random_files(RANDOM_FLEETS + 1),
        lambda: hours_from(START, RANDOM_HOURS),
        targets=random_targets(random),
        later_targets=random_targets(random),
        window_hours=6,
        lookback_hours=12,
        is_nightly=True,
    )


def _random_files(seed: int) -> Files:
    random = Random(f"files {seed}")
    lines = random_lines(random, 400, RANDOM_HOURS)
    files = cut_into_files(random, lines)
    files["traces.jsonl"] = in_lines(random, random_spans(random, 30, RANDOM_HOURS))
    first = min(files)
    files["copies/again.jsonl"] = files[first]
    files["rotated/earlier.jsonl"] = files[first][: len(files[first]) // 2]
    return {name: _content(name, content) for name, content in files.items()}


def _content(name: str, lines: Sequence[str]) -> bytes:
    content = "".join(f"{line}\n" for line in lines).encode()
    return gzip.compress(content, mtime=0) if name.endswith(".gz") else content


def _recordings() -> Files:
    return {str(path.relative_to(RECORDINGS)): path.read_bytes() for path in sorted(RECORDINGS.rglob("*.jsonl"))}


def _hours_of_recordings() -> HourGroups:
    """Every hour in which a recorded span ended."""
    ended_at_ns = {int(text) for content in _recordings().values() for text in _ENDED_AT_NS.findall(content.decode())}
    return HourGroups.of({floor_hour(datetime.fromtimestamp(moment // 10**9, UTC)) for moment in ended_at_ns})


def _sample_fleet() -> Case:
    span = span_until(datetime(2026, 6, 10, tzinfo=UTC))
    return Case(
        "sample fleet", lambda: sample_files(span), lambda: span, targets=yaml.safe_load(TARGETS_YAML), is_nightly=True
    )


def _real_logs() -> Files:
    return {path.name: path.read_bytes() for path in sorted(REAL_LOGS.glob("*.jsonl"))}


def _days(first: str, end: str) -> HourRange:
    return HourRange(*(datetime.fromisoformat(day).replace(tzinfo=UTC) for day in (first, end)))

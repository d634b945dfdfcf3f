"""The health of models, kept inside an agent's process: what each call gave, over a rolling window (source 4).

What belongs here: recording outcomes, summing them up, choosing a model, and handing outcomes to the pipeline as lines
of a raw log. What does not: the same summary made from logs (`systems.model_health`); both share settings and rules, so
the same outcomes give the same numbers.

    tracker = get_health_tracker()
    tracker.record_success("claude-sonnet-4-6", latency_ms=320.0)
    tracker.record_failure("claude-opus-4-7", error="timeout")
    tracker.best_model(["claude-opus-4-7", "claude-sonnet-4-6"])
"""

import json
import math
import os
import threading
import uuid
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from health_assets.core.errors import HealthAssetsError
from health_assets.core.private_files import FILE_MODE, make_private_folder
from health_assets.core.settings import load_settings
from health_assets.core.text_limits import MOST_NAME_BYTES

SCORE_OF_UNSEEN_MODEL = 1.0
"""Source 4, "Health Score": a model that nobody has called yet is not held back."""


class _UnknownLatency(float):
    """Not a number, and shown as a dash, so that `f"{summary.p95_latency_ms:.0f}ms"` never shows `nanms`."""

    def __str__(self) -> str:
        return "–"

    __repr__ = __str__

    def __format__(self, _: str) -> str:
        return str(self)


UNKNOWN_LATENCY = _UnknownLatency(math.nan)


@dataclass(frozen=True, kw_only=True)
class ModelHealthSummary:
    """A model's last calls in numbers; the same as a row of `model_health`.

    Args:
        model: name of the model.
        health_score: share of the calls that succeeded, 0 to 1; 1 for a model without calls.
        success_count: calls that succeeded.
        failure_count: calls that failed.
        p50_latency_ms: median latency in milliseconds (nearest rank) over calls that carry one; NaN, shown as
            a dash, where none does.
        p95_latency_ms: 95th percentile likewise.
        is_degraded: whether the score is below the threshold.
        last_error: error of the latest failed call that states one; empty where none does.
    """

    model: str
    health_score: float
    success_count: int
    failure_count: int
    p50_latency_ms: float
    p95_latency_ms: float
    is_degraded: bool
    last_error: str

    def to_dict(self) -> dict[str, Any]:
        """The summary as JSON takes it and as the table has it: what is not known is None."""
        return {
            "model": self.model,
            "health_score": self.health_score,
            "success_count": self.success_count,
            "failure_count": self.failure_count,
            "p50_latency_ms": None if math.isnan(self.p50_latency_ms) else self.p50_latency_ms,
            "p95_latency_ms": None if math.isnan(self.p95_latency_ms) else self.p95_latency_ms,
            "is_degraded": self.is_degraded,
            "last_error": self.last_error or None,
        }


@dataclass(frozen=True)
class _Outcome:
    succeeded: bool
    latency_ms: float | None
    error: str


class ModelHealthTracker:
    """Outcomes of the last calls to each model; all methods may be called from any thread.

    Args:
        window_size: calls kept per model; by default `HEALTH_MODEL_WINDOW_CALLS` (50).
        degraded_threshold: a lower score is degraded, 0 to 1; by default `HEALTH_MODEL_DEGRADED_THRESHOLD` (0.7).
        raw_log: where to append every outcome as a `model_call` line, a `.jsonl` file below the pipeline's raw root;
            by default nowhere.
        agent_id: agent that the lines name.

    Raises:
        ValueError: a size below 1, a threshold outside [0, 1], or a raw log or an agent's id that the pipeline rejects.
        HealthAssetsError: a setting in the environment is impossible.
    """

    def __init__(
        self,
        window_size: int | None = None,
        degraded_threshold: float | None = None,
        *,
        raw_log: str | Path | None = None,
        agent_id: str | None = None,
    ) -> None:
        if window_size is None or degraded_threshold is None:
            settings = load_settings()
            window_size = settings.model_window_calls if window_size is None else window_size
            if degraded_threshold is None:
                degraded_threshold = settings.model_degraded_threshold
        if window_size < 1:
            raise ValueError(f"window_size must be at least 1, got {window_size}")
        if not 0 <= degraded_threshold <= 1:
            raise ValueError(f"degraded_threshold must be from 0 to 1, got {degraded_threshold}")
        self._window_size = window_size
        self._degraded_threshold = degraded_threshold
        if agent_id is not None:
            _require_name("the id of an agent", agent_id)
        self._log = None if raw_log is None else _RawLog(Path(raw_log), agent_id)
        self._windows: dict[str, deque[_Outcome]] = {}
        self._lock = threading.Lock()

    # -- what happened --

    def record_success(self, model: str, latency_ms: float | None = None, *, execution_id: str | None = None) -> None:
        """Note a call that succeeded.

        Args:
            model: name of the model.
            latency_ms: how long it took in milliseconds; None where nobody measured.
            execution_id: execution during which it was made, for the raw log.

        Raises:
            ValueError: a name that is empty or longer than the pipeline takes, or a latency that is negative or no
                number.
            HealthAssetsError: the raw log cannot be written; the outcome counts nevertheless.
        """
        self._record(model, _Outcome(True, _latency(latency_ms), ""), execution_id)

    def record_failure(
        self, model: str, error: object = "", latency_ms: float | None = 0.0, *, execution_id: str | None = None
    ) -> None:
        """Note a call that failed.

        Args:
            model: name of the model.
            error: the fault, a text or an exception; empty or None where it is not known.
            latency_ms: how long it took; 0, as the source has it, or None where there is none to speak of, so that
                calls that failed at once do not make a model look fast.
            execution_id: execution during which it was made, for the raw log.

        Raises:
            ValueError: as `record_success`.
            HealthAssetsError: as `record_success`.
        """
        text = ("" if error is None else str(error)).encode(errors="replace").decode().replace("\0", "\ufffd")
        self._record(model, _Outcome(False, _latency(latency_ms) or None, text), execution_id)

    def _record(self, model: str, outcome: _Outcome, execution_id: str | None) -> None:
        _require_name("the name of a model", model)
        if execution_id is not None:
            _require_name("the id of an execution", execution_id)
        with self._lock:
            window = self._windows.setdefault(model, deque(maxlen=self._window_size))
            window.append(outcome)
            if self._log is not None:
                self._log.append(model, outcome, execution_id)

    def reset(self, model: str | None = None) -> None:
        """Forget one model, or all; the raw log keeps what it has."""
        with self._lock:
            if model is None:
                self._windows.clear()
            else:
                self._windows.pop(model, None)

    # -- what came of it --

    def health_score(self, model: str) -> float:
        """Share of the calls in the window that succeeded, 0 to 1; 1 for an unseen model."""
        return _score(self._outcomes(model))

    def is_degraded(self, model: str) -> bool:
        """Whether the score is below the threshold."""
        return self.health_score(model) < self._degraded_threshold

    def summary(self, model: str) -> ModelHealthSummary:
        """The window in numbers; an unseen model has a score of 1 and no calls."""
        return self._summary(model, self._outcomes(model))

    def all_summaries(self) -> list[ModelHealthSummary]:
        """The summaries of all models seen, by name."""
        with self._lock:
            windows = {model: tuple(window) for model, window in self._windows.items()}
        return [self._summary(model, windows[model]) for model in sorted(windows)]

    def best_model(self, candidates: Sequence[str]) -> str:
        """The candidate with the highest score; of equal ones the first.

        Raises:
            ValueError: there is no candidate.
        """
        with self._lock:
            scores = {model: _score(tuple(self._windows.get(model, ()))) for model in candidates}
        return best_of(scores, candidates)

    def _outcomes(self, model: str) -> tuple[_Outcome, ...]:
        with self._lock:
            return tuple(self._windows.get(model, ()))

    def _summary(self, model: str, outcomes: Sequence[_Outcome]) -> ModelHealthSummary:
        latencies = sorted(outcome.latency_ms for outcome in outcomes if outcome.latency_ms is not None)
        successes = sum(outcome.succeeded for outcome in outcomes)
        errors = (outcome.error for outcome in reversed(outcomes) if outcome.error)
        score = _score(outcomes)
        return ModelHealthSummary(
            model=model,
            health_score=score,
            success_count=successes,
            failure_count=len(outcomes) - successes,
            p50_latency_ms=_nearest_rank(latencies, 50),
            p95_latency_ms=_nearest_rank(latencies, 95),
            is_degraded=score < self._degraded_threshold,
            last_error=next(errors, ""),
        )


def best_of(scores: Mapping[str, float], candidates: Sequence[str]) -> str:
    """The candidate with the highest score, 1 where it has none; of equal ones the first.

    Raises:
        ValueError: there is no candidate.
    """
    if not candidates:
        raise ValueError("there is no candidate to choose from")
    return max(candidates, key=lambda model: scores.get(model, SCORE_OF_UNSEEN_MODEL))


# -- one for the whole process -----------------------------------------------------------------------------------------

_global_lock = threading.Lock()
_global_tracker: ModelHealthTracker | None = None


def get_health_tracker() -> ModelHealthTracker:
    """The process's tracker, made by the settings of the environment when it is first asked for.

    It appends to `HEALTH_TRACKER_LOG` where that is set.
    """
    global _global_tracker
    with _global_lock:
        if _global_tracker is None:
            _global_tracker = ModelHealthTracker(raw_log=load_settings().tracker_log)
        return _global_tracker


def reset_health_tracker() -> None:
    """Forget the process's tracker; who asks next gets a new one."""
    global _global_tracker
    with _global_lock:
        _global_tracker = None


# -- helpers -----------------------------------------------------------------------------------------------------------


def _require_name(what: str, name: str) -> None:
    """Refuse a name that the pipeline would reject, since the same calls have to give the same numbers there.

    Raises:
        ValueError: it is empty, too long, or holds half a character.
    """
    if not name:
        raise ValueError(f"{what} is empty")
    size = len(name.encode())
    if size > MOST_NAME_BYTES:
        raise ValueError(f"{what} must be at most 1 KiB long, not {size:,} bytes")


def _score(outcomes: Sequence[_Outcome]) -> float:
    if not outcomes:
        return SCORE_OF_UNSEEN_MODEL
    return sum(outcome.succeeded for outcome in outcomes) / len(outcomes)


def _nearest_rank(ordered: Sequence[float], percent: int) -> float:
    """The least value that at least so many percent do not exceed; NaN where there is none."""
    return ordered[(len(ordered) * percent + 99) // 100 - 1] if ordered else UNKNOWN_LATENCY


def _latency(latency_ms: float | None) -> float | None:
    if latency_ms is None:
        return None
    if not (math.isfinite(latency_ms) and latency_ms >= 0):
        raise ValueError(f"latency_ms must be a number from 0 on, got {latency_ms}")
    return float(latency_ms)


class _RawLog:
    """A raw log that outcomes are appended to, a line each; its methods are called one at a time.

    The file is opened for each line, so that it may be rotated and the process may fork. A line is one write at the end
    of the file: on a local disk, lines of several processes never mix.
    """

    def __init__(
        self, path: Path, agent_id: str | None, now: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        if path.suffix != ".jsonl":
            raise ValueError(f"the pipeline reads files named .jsonl, not {path.name}")
        self._path = path
        self._agent_id = agent_id
        self._now = now
        self._last_at = datetime.min.replace(tzinfo=UTC)
        self._is_cut = False

    def append(self, model: str, outcome: _Outcome, execution_id: str | None) -> None:
        self._last_at = max(self._now(), self._last_at)  # a clock that is set back must not change the order
        record = {
            "type": "model_call",
            "call_id": uuid.uuid4().hex,
            "model": model,
            "ended_at": self._last_at.isoformat(timespec="microseconds"),
            "status": "success" if outcome.succeeded else "failure",
            "latency_ms": outcome.latency_ms,
            "error": outcome.error or None,
            "agent_id": self._agent_id,
            "execution_id": execution_id,
        }
        line = json.dumps({name: value for name, value in record.items() if value is not None}).encode() + b"\n"
        self._write(b"\n" + line if self._is_cut else line)

    def _write(self, line: bytes) -> None:
        try:
            make_private_folder(self._path.parent)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, FILE_MODE)
            try:
                written = os.write(descriptor, line)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise HealthAssetsError(f"cannot append to the raw log {self._path}: {error.strerror}") from error
        self._is_cut = written < len(line)
        if self._is_cut:  # what is there becomes a rejected record; the next line starts anew
            raise HealthAssetsError(f"cannot append to the raw log {self._path}: the disk is full")

"""The outcome of a Langfuse trace, as its observations tell it one after another."""

from dataclasses import dataclass
from datetime import datetime

Times = tuple[datetime, datetime]


@dataclass(kw_only=True)
class Outcome:
    """Whether a run failed, as its observations tell in whatever order they come.

    A root observation that failed is the failure of the run, but for a model call or a tool: like an agent below
    others, those may fail and the run goes on. It did if a model call or an agent that succeeded started afterwards.
    """

    failure: tuple[datetime, str] | None = None
    setback: tuple[datetime, str] | None = None
    went_on_at: datetime | None = None
    last_call: tuple[datetime, bool] | None = None

    def add(self, kind: str, error: str | None, times: Times, *, is_root: bool) -> None:
        """Take one observation into account."""
        if kind == "chat":
            self.last_call = max(filter(None, (self.last_call, (times[1], error is not None))))
        if error is None:
            if kind in ("chat", "agent", "workflow"):
                self.went_on_at = max(filter(None, (self.went_on_at, times[0])))
        elif is_root and kind not in ("chat", "tool"):
            self.failure = max(filter(None, (self.failure, (times[1], error))))
        elif is_root or kind in ("agent", "workflow"):
            self.setback = max(filter(None, (self.setback, (times[1], error))))

    @property
    def error(self) -> str | None:
        """The error of the run, empty if it states none; None for a success."""
        if self.failure is not None:
            return self.failure[1]
        if self.setback is None or (self.went_on_at is not None and self.went_on_at >= self.setback[0]):
            return None
        return self.setback[1]

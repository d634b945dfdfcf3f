"""The question about one run, as the server asks it and the reader's process answers it, and the id of its trace."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal, Self

Because = Literal["tool", "called_model", "version", "model"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceQuestion:
    """A question about the newest run that ended by an hour and is like this, and what happened inside it.

    Args:
        run_id: its id; None for any.
        agent_id: its agent; None for any.
        because: what it must have failed with where no id is given: a failed call of a tool or a model, or its own
            version or model.
        value: the name of that tool, model or version.
        until: the hour; None for the newest.
    """

    run_id: str | None = None
    agent_id: str | None = None
    because: Because | None = None
    value: str | None = None
    until: datetime | None = None

    def request(self) -> dict[str, Any]:
        """The question as the reader understands it."""
        return {"trace": {**asdict(self), "until": self.until and self.until.isoformat()}}

    @classmethod
    def of_request(cls, fields: Mapping[str, Any]) -> Self:
        """The question that `request` sent, from what stands under `trace`."""
        until = fields["until"]
        return cls(**{**fields, "until": until and datetime.fromisoformat(until)})


def trace_id_of(run: Mapping[str, Any]) -> str:
    """The id of the trace that a run was made of."""
    return str(run["execution_id"]).removesuffix(f":{run['span_id']}")

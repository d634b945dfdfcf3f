"""Arguments that several tools take."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

MOST_ROWS = 100


class Arguments(BaseModel):
    """Arguments of a tool; another name than these is an error."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


AgentId = Annotated[str, Field(min_length=1, max_length=1024, description="Id of the agent.")]
OnlyAgent = Annotated[str | None, Field(max_length=1024, description="Only this agent's.")]
Text = Annotated[str, Field(max_length=1024, description="Part of a name, in any case.")]
Hour = Annotated[
    str | None,
    Field(max_length=40, description="Hour to look back to, like 2026-06-07T13 (UTC); the newest if omitted."),
]
Limit = Annotated[int, Field(ge=1, le=MOST_ROWS, description="Most rows of a list.")]

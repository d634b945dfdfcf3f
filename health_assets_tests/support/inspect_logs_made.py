"""Runs real evaluations with Inspect AI and its mock model, without a network, and leaves their logs in a folder."""

import sys
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import match
from inspect_ai.solver import generate, use_tools
from inspect_ai.tool import Tool, ToolError, tool

MODEL = "mockllm/model"
ANSWERS = ("2", "5", "2")
"""Of three epochs: right, wrong, right."""


@tool
def add() -> Tool:
    async def execute(x: int, y: int) -> int:
        """Add two numbers.

        Args:
            x: The one.
            y: The other.
        """
        return x + y

    return execute


@tool
def divide() -> Tool:
    async def execute(x: int, y: int) -> float:
        """Divide two numbers.

        Args:
            x: The one.
            y: The other.
        """
        if y == 0:
            raise ToolError("y is 0")
        return x / y

    return execute


def outputs() -> list[ModelOutput]:
    made = []
    for answer in ANSWERS:
        made += [ModelOutput.for_tool_call(MODEL, "add", {"x": 1, "y": 1}), ModelOutput.from_content(MODEL, answer)]
    made.append(ModelOutput.from_content(MODEL, "no such luck"))  # for the sample of the second evaluation
    for output in made:
        output.usage = ModelUsage(input_tokens=10, output_tokens=2, total_tokens=12)  # else it asks a network how many
    return made


def evaluate(folder: Path, log_format: str) -> None:
    model = get_model(MODEL, custom_outputs=outputs())
    sums = Task(
        dataset=[Sample(id="one and one", input="1 + 1?", target="2")],
        solver=[use_tools(add()), generate()],
        scorer=match(),
        name="sums",
    )
    eval(sums, model, epochs=len(ANSWERS), log_dir=str(folder), log_format=log_format, display="none", max_samples=1)
    unscored = Task(dataset=[Sample(id="open", input="Well?", target="?")], solver=generate(), name="unscored")
    eval(unscored, model, log_dir=str(folder), log_format=log_format, display="none")


def evaluate_a_recovery(folder: Path, log_format: str) -> None:
    """An agent whose tool fails once, with all that a log may tell of tokens, cost and versions."""
    made = [ModelOutput.for_tool_call(MODEL, "divide", {"x": 4, "y": y}) for y in (0, 2)]
    made.append(ModelOutput.from_content(MODEL, "2"))
    for output in made:
        output.usage = ModelUsage(
            input_tokens=10, output_tokens=2, total_tokens=42, input_tokens_cache_read=25, input_tokens_cache_write=5,
            reasoning_tokens=1, total_cost=0.25,
        )  # fmt: skip
    quotients = Task(
        dataset=[Sample(id="four by two", input="4 / 2?", target="2")],
        solver=[use_tools(divide()), generate()],
        scorer=match(),
        name="quotients",
        version=7,
    )
    model = get_model(MODEL, custom_outputs=made)
    metadata = {"agent_version": "2.1"}
    eval(quotients, model, log_dir=str(folder), log_format=log_format, display="none", metadata=metadata)


if __name__ == "__main__":
    for name in sys.argv[2:]:
        evaluate(Path(sys.argv[1]), name)
        evaluate_a_recovery(Path(sys.argv[1]), name)

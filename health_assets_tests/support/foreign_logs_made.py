"""Files of other tools as those tools write them: made by hand after their schemas, with values that tests expect."""

import json
from typing import Any

Record = dict[str, Any]

# -- tau-bench: a list of EnvRunResult, indented -----------------------------------------------------------------------

POLICY = "# Airline Agent Policy\n\nThe current time is 2024-05-15 15:00:00 EST."


def _called(place: int, name: str, result: str = "{}") -> list[Record]:
    call = {"id": f"call_{place}", "type": "function", "function": {"name": name, "arguments": "{}"}}
    return [
        {"content": None, "role": "assistant", "tool_calls": [call], "function_call": None},
        {"role": "tool", "tool_call_id": f"call_{place}", "name": name, "content": result},
    ]


def tau_bench_trial(task_id: int, trial: int, reward: float, *tools: str) -> Record:
    task = {"user_id": f"mia_li_{task_id}", "actions": [], "instruction": "You want to fly.", "outputs": []}
    messages = [{"role": "system", "content": POLICY}, {"role": "user", "content": "Hi!"}]
    for place, tool in enumerate(tools):
        name, _, result = tool.partition(": ")
        messages += _called(place, name, result or "{}")
    messages += [
        {"content": "Done.", "role": "assistant", "tool_calls": None},
        {"role": "user", "content": "###STOP###"},
    ]
    info = {"task": task, "source": "user", "user_cost": 0.01, "reward_info": None}
    return {"task_id": task_id, "reward": reward, "info": info, "traj": messages, "trial": trial}


TAU_BENCH = [
    {
        "task_id": 1,
        "reward": 0.0,
        "info": {"error": "rate limited", "traceback": "Traceback ..."},
        "traj": [],
        "trial": 0,
    },
    tau_bench_trial(0, 0, 1.0, "get_user_details", "book_reservation"),
    tau_bench_trial(0, 1, 0.0, "get_user_details: Error: user not found", "transfer_to_human_agents"),
]
TAU_BENCH_NAME = "tool-calling-gpt-4o-0.0_range_0--1_user-gpt-4o-llm_0607133000.json"


# -- tau2-bench: Results, compact --------------------------------------------------------------------------------------


def tau2_simulation(simulation_id: str, trial: int, reward: float | None, reason: str = "user_stop") -> Record:
    at = "2026-06-07T13:0{}:00.250000"
    usage = {"completion_tokens": 20, "prompt_tokens": 900}
    return {
        "id": simulation_id,
        "task_id": "12",
        "timestamp": at.format(5),
        "start_time": at.format(1),
        "end_time": at.format(5),
        "duration": 240.0,
        "termination_reason": reason,
        "agent_cost": 0.125,
        "user_cost": 0.5,
        "reward_info": None if reward is None else {"reward": reward, "reward_basis": ["DB"]},
        "messages": [
            {"role": "assistant", "content": "Hi! How can I help?", "turn_idx": 0, "timestamp": at.format(1), "usage": None},
            {"role": "user", "content": "My phone is dead.", "turn_idx": 1, "timestamp": at.format(2), "cost": 0.5, "usage": usage,
             "tool_calls": [{"id": "u1", "name": "toggle_airplane_mode", "arguments": {}, "requestor": "user"}]},
            {"role": "assistant", "content": None, "turn_idx": 2, "timestamp": at.format(3), "cost": 0.1, "usage": usage,
             "generation_time_seconds": 2.0,
             "tool_calls": [{"id": "a1", "name": "get_customer", "arguments": {"id": "C1"}, "requestor": "assistant"},
                            {"id": "a2", "name": "refuel_data", "arguments": {}, "requestor": "assistant"}]},
            {"role": "tool", "id": "a1", "content": "no such customer", "requestor": "assistant", "error": True,
             "turn_idx": 3, "timestamp": at.format(3)},
            {"role": "tool", "id": "a2", "content": "{}", "requestor": "assistant", "error": False, "turn_idx": 4,
             "timestamp": at.format(4)},
            {"role": "assistant", "content": "Done.", "turn_idx": 5, "timestamp": at.format(4), "usage": usage,
             "generation_time_seconds": 4.0, "tool_calls": None},
        ],
        "trial": trial,
        "seed": 626729,
        "mode": "half_duplex",
    }  # fmt: skip


TAU2 = {
    "timestamp": "2026-06-07T13:00:00.000000",
    "info": {
        "git_commit": "c0dd233",
        "num_trials": 4,
        "max_steps": 200,
        "max_errors": 10,
        "user_info": {"implementation": "user_simulator", "llm": "gpt-4.1"},
        "agent_info": {"implementation": "llm_agent", "llm": "claude-3-7-sonnet", "llm_args": {"temperature": 0.0}},
        "environment_info": {"domain_name": "telecom", "policy": "..."},
        "seed": 300,
    },
    "tasks": [{"id": "12", "user_scenario": {"instructions": "..."}}],
    "simulations": [
        tau2_simulation("sim-1", 0, 1.0),
        tau2_simulation("sim-2", 1, 0.0, "max_steps"),
        tau2_simulation("sim-3", 2, None, "infrastructure_error"),
        tau2_simulation("sim-4", 3, None, "agent_error"),
    ],
}


# -- Langfuse ----------------------------------------------------------------------------------------------------------

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"


def _observation(observation_id: str, kind: str, name: str, seconds: tuple[int, int], **fields: Any) -> Record:
    at = "2026-06-07T13:10:{:02d}.000Z"
    return {
        "id": observation_id, "traceId": TRACE_ID, "type": kind, "name": name,
        "startTime": at.format(seconds[0]), "endTime": at.format(seconds[1]),
        "parentObservationId": None, "level": "DEFAULT", "statusMessage": None, "input": {"q": 1}, "output": None,
        "metadata": {}, "environment": "default",
    } | fields  # fmt: skip


LANGFUSE_OBSERVATIONS = [
    _observation("00f067aa0ba902b7", "SPAN", "handle ticket", (0, 9)),
    _observation("b7ad6b7169203331", "GENERATION", "plan", (1, 3), parentObservationId="00f067aa0ba902b7",
                 model="gpt-4o", usageDetails={"input": 900, "output": 20, "total": 920}, costDetails={"total": 0.02}),
    _observation("b7ad6b7169203332", "TOOL", "search_orders", (3, 4), parentObservationId="00f067aa0ba902b7"),
    _observation("b7ad6b7169203333", "TOOL", "refund", (5, 6), parentObservationId="00f067aa0ba902b7", level="ERROR",
                 statusMessage="card expired"),
    _observation("b7ad6b7169203334", "EVENT", "user clicked", (6, 6), endTime=None),
]  # fmt: skip
LANGFUSE_TRACE = {
    "id": TRACE_ID, "timestamp": "2026-06-07T13:10:00.000Z", "name": "support-agent", "sessionId": "s-7",
    "userId": "u-1", "release": None, "version": None, "tags": [], "public": False, "environment": "default",
    "htmlPath": "/project/p/traces/0af7", "latency": 10.0, "totalCost": 0.02, "input": {}, "output": {}, "metadata": {},
    "observations": LANGFUSE_OBSERVATIONS,
    "scores": [
        {"id": "sc-1", "traceId": TRACE_ID, "observationId": None, "name": "coherence", "value": 0.75,
         "dataType": "NUMERIC", "source": "EVAL", "timestamp": "2026-06-07T13:20:00.000Z"},
        {"id": "sc-2", "traceId": TRACE_ID, "name": "thumbs up", "value": 1, "dataType": "BOOLEAN", "source": "API",
         "timestamp": "2026-06-07T13:20:00.000Z"},
    ],
}  # fmt: skip


def snake(record: Record) -> Record:
    """As the blob storage export writes an observation or a score."""
    renamed = {"".join(f"_{c.lower()}" if c.isupper() else c for c in name): value for name, value in record.items()}
    for name in ("start_time", "end_time", "timestamp"):
        if renamed.get(name):
            renamed[name] = renamed[name].replace("T", " ").replace("Z", "000")
    if "model" in renamed:
        renamed["provided_model_name"] = renamed.pop("model")
    return renamed | {"project_id": "p"}


def dumped(value: Any, indent: int | None = None) -> str:
    return json.dumps(value, indent=indent)

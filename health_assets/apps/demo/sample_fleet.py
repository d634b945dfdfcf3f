"""The demo's fleet: a small, invented one whose agents give every part of the scores something to show.

What belongs here: who the agents are, how each behaves phase by phase, and what is expected of them (`FLEET`,
`TARGETS_YAML`). What does not: telling it as raw logs (`samples`).
"""

from dataclasses import dataclass

SPAN_H = 48
"""Hours that the story lasts."""


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A way of behaving that an agent keeps until some hour of the span."""

    until_h: float = SPAN_H  # hours from the start of the span
    success_rate: float = 0.99
    runtime_s: float = 10.0  # of a typical run
    runs_per_hour: float = 25.0
    hang_rate: float = 0.0  # share of runs that take `HANG_FACTOR` times as long
    failed_triggers_per_hour: float = 0.0
    model: str | None = None  # None: calls no model through the gateway
    update: tuple[str, str] | None = None  # kind and detail of the update that it starts with
    failing_tool: tuple[str, float] | None = None  # a tool that fails more often than it does otherwise, and how often


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A tool that an agent calls once in every run; that it fails does not fail the run."""

    name: str
    latency_ms: float  # of a typical call
    failure_rate: float = 0.005
    error: str = "ToolTimeout: no answer in 10 s"


@dataclass(frozen=True, kw_only=True)
class Profile:
    """An agent: where its logs go, how it behaves phase by phase, and what its logs tell."""

    agent_id: str
    feed: str  # key of `FEEDS` that its executions go to
    phases: tuple[Phase, ...]  # in order of time; it is silent after the last
    actions: tuple[str, ...] = ("plan", "search", "answer")
    tools: tuple[Tool, ...] = ()
    tasks: int = 0  # evaluation tasks that its trials attempt
    has_sessions: bool = False  # its runs get signals, some of them later, and judgements, all of them later
    has_triggers: bool = False
    is_judged: bool = False  # its own log tells violations
    tells_usage: bool = False  # its own log tells tokens and cost, rather than the gateway's log of its model calls
    sla_s: float | None = None  # time limit that its own log tells


LARGE, NEWER, MINI = "atlas-large-1", "atlas-large-2", "atlas-mini"
USD_PER_MILLION_TOKENS = {LARGE: (3, 15), NEWER: (4, 20), MINI: (0.25, 1.25), "borealis-1": (1, 4)}  # in, out
INVOICE_STEPS = ("fetch", "read_text", "extract_fields", "validate", "post")
REVIEW_STEPS = ("read_diff", "run_linter", "search_code", "comment")

FLEET = (
    # healthy
    Profile(
        agent_id="invoice-reader",
        feed="finance",
        phases=(Phase(runtime_s=12, model=MINI),),
        actions=INVOICE_STEPS,
        tools=(Tool(name="post", latency_ms=240),),
        tasks=6,
    ),
    Profile(
        agent_id="support-triage",
        feed="support",
        phases=(
            Phase(until_h=20, runtime_s=8, model=LARGE),
            Phase(runtime_s=8, model=LARGE, update=("capability_update", "can refund up to 50 EUR")),
        ),
        has_sessions=True,
    ),
    Profile(
        agent_id="order-tracker", feed="support", phases=(Phase(runtime_s=4, runs_per_hour=30),), has_sessions=True
    ),
    Profile(
        agent_id="meeting-assistant",
        feed="office",
        phases=(Phase(runtime_s=25, runs_per_hour=10, model=MINI),),
        tools=(Tool(name="read_calendar", latency_ms=180, failure_rate=0.02),),
        has_sessions=True,
    ),
    Profile(agent_id="log-summarizer", feed="engineering", phases=(Phase(runs_per_hour=40),)),
    # reliability: most runs fail since the model changed eight hours ago, which calls the linter with wrong arguments
    Profile(
        agent_id="code-reviewer",
        feed="engineering",
        phases=(
            Phase(until_h=40, success_rate=0.97, runtime_s=45, model=LARGE),
            Phase(
                success_rate=0.2,
                runtime_s=40,
                model=NEWER,
                update=("model_change", f"{LARGE} to {NEWER}"),
                failing_tool=("run_linter", 0.8),
            ),
        ),
        actions=REVIEW_STEPS,
        tools=(
            Tool(name="search_code", latency_ms=90),
            Tool(name="run_linter", latency_ms=1400, error="BadArguments: no such option --fix-all"),
        ),
        tasks=5,
    ),
    # reliability, but hardly: half of the runs fail, yet there are too few of them to be sure
    Profile(
        agent_id="nightly-reporter", feed="finance", phases=(Phase(success_rate=0.5, runtime_s=90, runs_per_hour=0.2),)
    ),
    # performance: within its expected 20 s until 14 hours ago, far above since
    Profile(
        agent_id="contract-summarizer",
        feed="office",
        phases=(Phase(until_h=34, runtime_s=16), Phase(runtime_s=34)),
        tells_usage=True,
    ),
    # stability: fast on the whole, but a few runs hang; the restart did not help. It copes with a search that may fail
    Profile(
        agent_id="web-researcher",
        feed="engineering",
        phases=(
            Phase(until_h=30, runtime_s=18, hang_rate=0.02),
            Phase(runtime_s=18, hang_rate=0.02, update=("restart", "to get rid of runs that hang")),
        ),
        tools=(Tool(name="web_search", latency_ms=650, failure_rate=0.15, error="RateLimited: 429"),),
        tells_usage=True,
    ),
    # operational: runs over the SLA; triggers that fail
    Profile(
        agent_id="payment-reconciler",
        feed="finance",
        phases=(Phase(until_h=36, runtime_s=30), Phase(runtime_s=52)),
        is_judged=True,
    ),
    Profile(
        agent_id="inbox-watcher",
        feed="office",
        phases=(
            Phase(until_h=38, runtime_s=5, runs_per_hour=12),
            Phase(runtime_s=5, runs_per_hour=12, failed_triggers_per_hour=1.5),
        ),
        has_triggers=True,
    ),
    # several at once
    Profile(
        agent_id="crm-sync",
        feed="support",
        phases=(
            Phase(until_h=28, success_rate=0.97, runtime_s=12, model="borealis-1"),
            Phase(success_rate=0.35, runtime_s=30, model="borealis-1", failing_tool=("update_contact", 0.6)),
        ),
        tools=(Tool(name="update_contact", latency_ms=420, error="HTTP 503: try again later"),),
        sla_s=40,
    ),
    # silent for more than a day; retired (fraud-screener, in the targets alone, was never seen)
    Profile(agent_id="newsletter-writer", feed="office", phases=(Phase(until_h=18, runs_per_hour=5),)),
    Profile(agent_id="faq-bot-v1", feed="support", phases=(Phase(until_h=30, runs_per_hour=15),)),
)

TARGETS_HEADER = "# Targets of the demo's sample fleet; `health-assets demo` writes this file anew whenever it runs.\n"
TARGETS_YAML = (
    TARGETS_HEADER
    + """
# `defaults` are what is expected of the whole fleet, `agents` override them one by one. What is left out has the
# built-in default. A key that does not exist is an error, so a typing mistake cannot pass for a target.

defaults:
  expected_success_rate: 0.95     # share of runs that succeed
  expected_failures_per_hour: 1.0 # over the window
  n_full: 20                      # with fewer runs in the window, failures weigh less

agents:
  invoice-reader:
    expected_runtime_s: 15        # mean runtime; without it nothing is slow and nothing long-running
    platform: docuflow
  support-triage: {expected_runtime_s: 10}
  code-reviewer: {expected_runtime_s: 60}
  crm-sync: {expected_runtime_s: 15}
  nightly-reporter:
    expected_success_rate: 0.99   # it fails often, but runs rarely: n_full keeps that from looking like a disaster
  contract-summarizer:
    expected_runtime_s: 20
    deviation_allowed: 0.2        # 20% slower than expected and all performance points are gone
  web-researcher:
    expected_runtime_s: 30
    long_running_factor: 5        # a run of more than 5 x 30 s counts as long-running
    stability_threshold: 15       # that many in the window and all stability points are gone
  payment-reconciler:
    expected_runtime_s: 60
    sla_s: 60                     # a run of more than 60 s breaches the SLA, unless the log itself says otherwise
    sla_breach_threshold: 5       # that many in the window and all points for the SLA are gone
    healthy_at: 90                # money is at stake: 85 points are not enough here
  inbox-watcher: {trigger_failure_threshold: 5}
  meeting-assistant:
    personal: true                # someone's own agent: the health endpoint tells no more than its status
  newsletter-writer: {}           # listed, so it stays known however long it is silent
  fraud-screener: {}              # listed before its first run: it shows up as inactive
  faq-bot-v1:
    retired: true                 # its logs stay, but it is scored no more
"""
)

"""The figures of the documentation, as plain SVG: `python docs/figures.py` writes them beside this file.

What belongs here: the overview of the README and the layers of docs/architecture.md. A figure has a
background of its own, and follows the reader's light or dark setting.
"""

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

FOLDER = Path(__file__).parent
STYLE = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2937 }
  .head { font-weight: 600; font-size: 14px }
  .small { font-size: 12px; fill: #4b5563 }
  .step { fill: #fff; font-weight: 600 }
  .page { fill: #f8fafc; stroke: #e2e8f0 }
  .box { fill: #fff; stroke: #94a3b8 }
  .main { fill: #ecfdf5; stroke: #059669 }
  .band { fill: #eef2ff; stroke: #a5b4fc }
  .line { stroke: #64748b; stroke-width: 1.6; fill: none }
  .tip { fill: #64748b }
  .dot { fill: #059669 }
  @media (prefers-color-scheme: dark) {
    text { fill: #e5e7eb }
    .small { fill: #a3b0c2 }
    .step { fill: #fff }
    .page { fill: #0f172a; stroke: #1e293b }
    .box { fill: #1e293b; stroke: #64748b }
    .main { fill: #064e3b; stroke: #34d399 }
    .band { fill: #1e1b4b; stroke: #6366f1 }
    .line { stroke: #94a3b8 }
    .tip { fill: #94a3b8 }
  }
"""

STAGES = {
    "Raw logs": "native JSON lines; OpenTelemetry; Langfuse; Inspect AI; tau-bench; late, rotated, packed",
    "Records": "executions; triggers; model and tool calls; signals; judgements; rejected lines",
    "Components": "by agent and hour; sums that merge; latency buckets; last calls; worst events",
    "Windows": "24 h for scores; 1 h and 6 h for burn; 7 days of look-back; any hour, rebuilt; to the same bits",
    "Scoring systems": "health score; health document; models and tools; sessions; reliability; error budget, usage",
    "What you use": "SQL tables; health endpoint; alerts; reports; Dagster's page; why points were lost",
}
"""The way of a log line: the heading of each box, and its lines."""

BANDS = (
    "Dagster: hourly partitions, schedule, backfills, late logs, a check for every table by Great Expectations",
    "Warehouse: DuckDB, or PostgreSQL for a team",
)

LAYERS = (
    ("", (("cli", "commands, runs, what they print"),)),
    ("", (("defs", "Dagster: assets, checks, schedules, sensors, the write lock"),)),
    ("5", (("apps", "endpoint, alerts, judge, reports, demo"),)),
    ("4", (("systems", "one folder a scoring system: tables, formulas, assets, expectations, report"),)),
    ("2", (("pipeline", "what an hour needs, and doing it: loading, traces, late logs, staleness, retention"),)),
    ("", (("quality", "the vocabulary of expectations, and their evaluation"),)),
    ("3", (("warehouse", "sessions, ledger, migrations; engines for DuckDB and PostgreSQL"),)),
    ("1", (("logs", "a file in, typed records or reasons for rejection out; a reader a format"),)),
    ("", (("scoring", "algebra that systems share: windows, look-back, ranks, weights"),)),
    ("", (("consumer", "another agent's document"), ("model_tracker", "inside your agent"))),
    ("", (("schema", "declarations of tables, and the pages made of them"),)),
    ("", (("core", "hours, settings, targets, errors, wording"),)),
)
"""From the top: step of the data, and the layers that stand side by side with what each holds."""


def overview() -> str:
    """The way of a log line, from left to right."""
    width, height, gap, top = 148, 172, 20, 46
    parts = [*_text(24, 28, "From the logs of agents to scores that can be explained, every hour", "head")]
    for place, (heading, lines) in enumerate(STAGES.items()):
        left = 24 + place * (width + gap)
        parts += _box(left, top, width, height, "main" if heading == "Scoring systems" else "box")
        parts += _text(left + 12, top + 26, heading, "head")
        for line, text in enumerate(lines.split("; ")):
            parts += _text(left + 12, top + 52 + 20 * line, text, "small")
        if place:
            middle = top + height / 2
            parts.append(f'<path class="line" d="M{left - gap + 2} {middle}h{gap - 9}"/>')
            parts.append(f'<path class="tip" d="M{left - 2} {middle}l-8 -5v10z"/>')
    for place, text in enumerate(BANDS):
        left, wide = (24, 640) if place == 0 else (680, 332)
        parts += _box(left, top + height + 18, wide, 36, "band")
        parts += _text(left + 12, top + height + 41, text, "small")
    return _svg(1036, top + height + 78, "From raw logs over records, hourly components and windows to scores", parts)


def layers() -> str:
    """The layers of the house, the lowest at the bottom; numbers follow a log line."""
    height, gap, left, width = 38, 7, 24, 760
    parts = [*_text(left, 28, "Imports run down, never up. The numbers follow a log line.", "head")]
    for row, (step, names) in enumerate(LAYERS):
        top = 44 + row * (height + gap)
        share = (width - gap * (len(names) - 1)) / len(names)
        for place, (name, holds) in enumerate(names):
            x = left + place * (share + gap)
            parts += _box(x, top, share, height, "main" if name == "systems" else "box")
            parts += _text(x + 12, top + 24, name, "head")
            parts += _text(x + 134, top + 24, holds, "small")
        if step:
            parts.append(f'<circle class="dot" cx="{left + width - 22}" cy="{top + height / 2}" r="11"/>')
            parts.append(
                f'<text class="step" text-anchor="middle" x="{left + width - 22}" y="{top + 24}">{step}</text>'
            )
    return _svg(width + 2 * left, 44 + len(LAYERS) * (height + gap) + 14, "The layers of Health Assets", parts)


def _svg(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    page = f'<rect class="page" x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", f"<style>{STYLE}</style>", page, *parts, "</svg>", ""])


def _box(left: float, top: float, width: float, height: float, look: str) -> Iterator[str]:
    yield f'<rect class="{look}" x="{left:g}" y="{top:g}" width="{width:g}" height="{height:g}" rx="7"/>'


def _text(left: float, top: float, text: str, look: str) -> Iterator[str]:
    yield f'<text class="{look}" x="{left:g}" y="{top:g}">{escape(text)}</text>'


FIGURES = {"overview.svg": overview, "layers.svg": layers}

if __name__ == "__main__":
    for name, draw in FIGURES.items():
        (FOLDER / name).write_text(draw(), encoding="utf-8")

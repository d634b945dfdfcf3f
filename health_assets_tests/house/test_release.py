"""The workflow of a release: nothing here runs it, so its file is held against its schema and against the project."""

import re
import subprocess
import sys
from typing import Any

import pytest
import yaml

from health_assets_tests.support.projects import REPOSITORY

WORKFLOW = REPOSITORY / ".github" / "workflows" / "release.yml"
TEXT = WORKFLOW.read_text(encoding="utf-8")
JOBS: dict[str, Any] = yaml.safe_load(TEXT)["jobs"]
COMMANDS = "\n".join(step["run"] for job in JOBS.values() for step in job["steps"] if "run" in step)


@pytest.mark.parametrize(
    ("schema", "name"), [("github-workflows", ".github/workflows/release.yml"), ("compose-spec", "compose.yaml")]
)
def test_a_file_for_another_program_is_valid_by_its_schema(schema: str, name: str) -> None:
    check = [sys.executable, "-W", "ignore", "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*check, REPOSITORY / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_action_is_named_by_its_commit() -> None:
    used = re.findall(r"uses: (\S+)(.*)", TEXT)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)


def test_a_job_may_do_no_more_than_it_needs() -> None:
    assert yaml.safe_load(TEXT)["permissions"] == {}
    writes = {
        name: {what for what, right in job["permissions"].items() if right == "write"} for name, job in JOBS.items()
    }
    assert writes == {"build": {"id-token", "attestations"}, "publish": {"id-token"}, "page": {"contents"}}
    assert "secrets." not in TEXT


def test_what_is_published_is_what_was_built_twice_and_attested() -> None:
    assert JOBS["publish"]["needs"] == "build" and JOBS["page"]["needs"] == "publish"
    steps = [step.get("run", step.get("uses", "")) for step in JOBS["build"]["steps"]]
    order = [
        next(n for n, step in enumerate(steps) if word in step) for word in (".ci/run", "make dist", "attest", "upload")
    ]
    assert order == sorted(order)


def test_the_commands_are_there() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    targets = {target for line in re.findall(r"make (.*)", COMMANDS) for target in line.split()}
    assert targets == {"dist", "pins", "sbom", "audit"}
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)
    for path in ("docs/absolute_links.py", ".ci/run", "constraints.txt"):
        assert path in COMMANDS and (REPOSITORY / path).exists()

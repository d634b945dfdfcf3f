"""The workflows of releases and nights: nothing here runs them, so they are held against their schema and the project."""

import re
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from health_assets_tests.support.projects import REPOSITORY

WORKFLOWS = REPOSITORY / ".github" / "workflows"
RELEASE, NIGHTLY = ((WORKFLOWS / name).read_text(encoding="utf-8") for name in ("release.yml", "nightly.yml"))
JOBS: dict[str, Any] = yaml.safe_load(RELEASE)["jobs"]
NIGHTLY_JOBS: dict[str, Any] = yaml.safe_load(NIGHTLY)["jobs"]
NIGHTLY_TESTS = "java -version\nmake spark\nmake nightly\n"
"""Two calls of make: it looks for Apache Spark when it begins."""


def commands_of(jobs: dict[str, Any]) -> str:
    return "\n".join(step["run"] for job in jobs.values() for step in job["steps"] if "run" in step)


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ("github-workflows", ".github/workflows/release.yml"),
        ("github-workflows", ".github/workflows/nightly.yml"),
        ("compose-spec", "compose.yaml"),
    ],
)
def test_a_file_for_another_program_is_valid_by_its_schema(schema: str, name: str) -> None:
    check = [sys.executable, "-W", "ignore", "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*check, REPOSITORY / name], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("text", [RELEASE, NIGHTLY], ids=["release", "nightly"])
def test_every_action_is_named_by_its_commit(text: str) -> None:
    used = re.findall(r"uses: (\S+)(.*)", text)
    assert used
    for action, comment in used:
        assert re.fullmatch(r"actions/[\w-]+@[0-9a-f]{40}", action)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)


def test_a_job_may_do_no_more_than_it_needs() -> None:
    for text in (RELEASE, NIGHTLY):
        assert yaml.safe_load(text)["permissions"] == {}
        assert "secrets." not in text
    writes = {
        name: {what for what, right in job["permissions"].items() if right == "write"} for name, job in JOBS.items()
    }
    assert writes == {"build": {"id-token", "attestations"}, "publish": {"id-token"}, "page": {"contents"}}
    assert [job["permissions"] for job in NIGHTLY_JOBS.values()] == [{"contents": "read"}]


def test_what_is_published_is_what_was_built_twice_and_attested() -> None:
    assert JOBS["publish"]["needs"] == "build" and JOBS["page"]["needs"] == "publish"
    steps = [step.get("run", step.get("uses", "")) for step in JOBS["build"]["steps"]]
    order = [
        next(n for n, step in enumerate(steps) if word in step)
        for word in (NIGHTLY_TESTS, "make dist", "attest", "upload")
    ]
    assert order == sorted(order)


def test_the_nightly_tests_run_each_night_with_apache_spark() -> None:
    triggers = yaml.safe_load(NIGHTLY)[True]  # YAML reads `on` as true
    assert len(triggers["schedule"]) == 1
    assert commands_of(NIGHTLY_JOBS) == NIGHTLY_TESTS


def test_a_test_on_apache_spark_is_a_nightly_one_so_that_ci_needs_no_java() -> None:
    uses = 0
    for path in (REPOSITORY / "health_assets_tests").rglob("test_*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        for before, line in pairwise(lines):
            if "needs_apache_spark" in line and "import" not in line and path != Path(__file__):
                assert "pytest.mark.nightly" in before + line, f"{path.name}: {line}"
                uses += 1
    assert uses
    ci = (REPOSITORY / ".ci" / "run").read_text(encoding="utf-8")
    assert "chromium" in ci and not re.search("java|jre|spark", ci, re.I)


def test_the_commands_are_there() -> None:
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    commands = commands_of(JOBS)
    targets = {target for line in re.findall(r"make (.*)", commands) for target in line.split()}
    assert targets == {"spark", "nightly", "dist", "pins", "sbom", "audit"}
    assert all(re.search(rf"^{target}:", makefile, re.M) for target in targets)
    for path in ("docs/absolute_links.py", "constraints.txt"):
        assert path in commands and (REPOSITORY / path).exists()

"""The supply chain: pins have hashes and name no address, and an audit that nobody answered is never a clean one."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from health_assets_tests.support.projects import REPOSITORY

sys.path.insert(0, str(REPOSITORY))

import supply_chain
from supply_chain import ADDRESS_OPTIONS, NOBODY_TOLD, NONE_KNOWN, SOME_KNOWN, addresses_in, unhashed, verdict

CONSTRAINTS = (REPOSITORY / "constraints.txt").read_text(encoding="utf-8")
KNOWN = {"name": "a", "version": "1", "vulns": []}
VULNERABLE = {"name": "b", "version": "2", "vulns": [{"id": "CVE-2026-1", "fix_versions": ["3"], "aliases": []}]}
SKIPPED = {"name": "c", "skip_reason": "Dependency not found on PyPI and could not be audited: c (1)"}


@pytest.mark.parametrize(
    ("dependencies", "code", "sentence"),
    [
        ([KNOWN], NONE_KNOWN, "supply chain: no vulnerability is known; 1 of 1 packages were looked up"),
        ([KNOWN, VULNERABLE, SKIPPED], SOME_KNOWN, "supply chain: 1 known vulnerabilities; 2 of 3 packages were looked up\n"
         "b 2: CVE-2026-1, mended in 3"),
        ([KNOWN, SKIPPED], NOBODY_TOLD,
         "supply chain: 1 of 2 packages were looked up; the service does not know c, so nothing is known of them"),
        ([], NOBODY_TOLD, "supply chain: 0 of 0 packages were looked up; the service does not know , so nothing is known of them"),
    ],
)  # fmt: skip
def test_an_audit_is_clean_only_where_every_package_was_looked_up(
    dependencies: list[dict[str, Any]], code: int, sentence: str
) -> None:
    assert verdict({"dependencies": dependencies, "fixes": []}, "No known vulnerabilities found") == (sentence, code)


def test_an_audit_without_an_answer_is_told_in_a_sentence_with_an_exit_code_of_its_own() -> None:
    said = "Traceback ...\nrequests.exceptions.ConnectionError: name or service not known\n"
    assert verdict(None, said) == (
        "supply chain: no vulnerability service answered, so nothing is known "
        "(requests.exceptions.ConnectionError: name or service not known)", NOBODY_TOLD,
    )  # fmt: skip
    assert len({NONE_KNOWN, SOME_KNOWN, NOBODY_TOLD}) == 3


def test_a_pin_without_a_hash_or_a_version_is_found() -> None:
    good = "a==1 ; python_version > '3' \\\n    --hash=sha256:00 \\\n    --hash=sha256:11\n# a comment\n\n"
    assert unhashed(good) == []
    assert unhashed(good + "b==2\nc>=1 --hash=sha256:22\n") == ["b==2", "c>=1"]


@pytest.mark.parametrize(
    "line",
    [
        *(f"--{option} mirror.example" for option in ADDRESS_OPTIONS),
        f"a @ {(REPOSITORY / 'a.whl').as_uri()}",
        f"a @ {Path('/a.whl').as_uri()}",
        f"https://mirror.example/{'simple'}/a/",
        str(REPOSITORY / "x"),
    ],
)
def test_what_tells_where_packages_came_from_is_found_and_not_written(line: str, tmp_path: Path) -> None:
    assert addresses_in(f"a==1\n{line}\n") == [line]
    with pytest.raises(SystemExit, match="nothing was written"):
        supply_chain._write(tmp_path / "pins.txt", f"a==1\n{line}\n")
    assert list(tmp_path.iterdir()) == []


def test_the_constraints_are_exact_and_name_no_address() -> None:
    lines = [line for line in CONSTRAINTS.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9][\w.-]*==[\w.+!]+", line) for line in lines)
    assert "://" not in CONSTRAINTS
    names = [re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in lines]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("what", ["sbom", "audit"])
def test_without_pins_there_is_a_sentence(what: str, tmp_path: Path) -> None:
    script = tmp_path / "supply_chain.py"
    script.write_text((REPOSITORY / "supply_chain.py").read_text(encoding="utf-8"), encoding="utf-8")
    done = subprocess.run([sys.executable, str(script), what], capture_output=True, text=True, check=False)
    assert done.returncode == (NOBODY_TOLD if what == "audit" else 1)
    assert (done.stdout + done.stderr).startswith(
        "supply chain: there is no requirements-hashed.txt; run `make pins` first"
    )


def test_an_audit_without_pins_or_without_its_tool_is_no_vulnerability(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(supply_chain, "PINS", tmp_path / "requirements-hashed.txt")
    monkeypatch.setattr(supply_chain, "BIN", tmp_path)
    assert supply_chain.audit("pypi", None) == NOBODY_TOLD
    supply_chain.PINS.touch()
    assert supply_chain.audit("pypi", None) == NOBODY_TOLD
    without_pins, without_tool = capsys.readouterr().out.splitlines()
    assert "make pins" in without_pins
    assert "health-assets[supply]" in without_tool


NAMES = {
    "great-expectations": "great_expectations",
    "ibis-framework": "ibis",
    "python-dotenv": "dotenv",
    "pyyaml": "yaml",
}
"""Import names of packages that are not the package's own name."""
NOT_IMPORTED = {"dagster-webserver", "tabulate", "uvloop"}
"""Programs that are started, and packages that pandas and uvicorn import by themselves."""


def test_every_dependency_of_the_core_is_imported_by_the_package() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[\[<>=,]", wanted)[0] for wanted in project["dependencies"]}
    source = "\n".join(path.read_text(encoding="utf-8") for path in (REPOSITORY / "health_assets").rglob("*.py"))
    imported = {*re.findall(r"^ *(?:from|import) (\w+)", source, re.M)}
    unused = {name for name in declared if NAMES.get(name, name.replace("-", "_")) not in imported}
    assert unused == NOT_IMPORTED


def test_the_extras_that_are_pinned_are_there_with_exact_versions_and_hold_those_of_the_image() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    exact = {line.split("==")[0].lower() for line in CONSTRAINTS.splitlines()}
    for extra in supply_chain.EXTRAS:
        wanted = {re.split(r"[\[<>=,]", requirement)[0] for requirement in project["optional-dependencies"][extra]}
        assert wanted <= exact, extra
    [of_image] = re.findall(r"^ARG EXTRAS=(.*)$", (REPOSITORY / "Dockerfile").read_text(encoding="utf-8"), re.M)
    assert {*of_image.split(","), "signing", "lineage", "mcp"} <= {*supply_chain.EXTRAS}
    named = re.sub(r"\s+", " ", (REPOSITORY / "SECURITY.md").read_text(encoding="utf-8"))
    *others, last = supply_chain.EXTRAS
    assert f"the extras {', '.join(others)} and {last}" in named

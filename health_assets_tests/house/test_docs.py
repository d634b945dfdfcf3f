"""The promises of the documentation: its tables, settings, commands and targets are those of the code."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from runpy import run_path

import duckdb
import pytest

from health_assets.cli.commands import app
from health_assets.core.settings import Settings
from health_assets.core.targets import AgentTargets
from health_assets.defs.build import build_definitions
from health_assets.logs.conventions import ATTRIBUTES, KIND_IN_OPENINFERENCE, KIND_OF_OPERATION
from health_assets.logs.files import list_files
from health_assets.logs.reader import contents
from health_assets.logs.stores import NAMES_THAT_COUNT
from health_assets.schema.catalog import ALL_TABLES, BASELINE_VERSION
from health_assets.schema.documentation import PAGES, SETTINGS, settings_page
from health_assets.warehouse.store import Warehouse

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LINK = re.compile(r"\[[^\]]*\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]*))?\)")
FIGURES = run_path(str(DOCS / "figures.py"))
GENERATED = run_path(str(DOCS / "generated_pages.py"))


def _page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


README = _page("README.md")
RUNNING = _page("docs/running.md")
LOG_FORMAT = _page("docs/log-format.md")


def _pages() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    yield from DOCS.rglob("*.md")


def _anchors(page: str) -> set[str]:
    """Anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", page, flags=re.S)
    headings = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in re.findall(r"^#+ (.*)$", text, re.M))
    return {heading.strip().replace(" ", "-") for heading in headings} | set(re.findall(r'<a id="([^"]+)">', text))


def _block(page: str, language: str) -> str:
    """The first block of code of a language on a page."""
    return page.split(f"```{language}\n")[1].split("```")[0]


@pytest.mark.parametrize("path", [*PAGES], ids=str)
def test_a_page_that_is_made_from_the_code_is_the_one_that_the_code_makes(path: Path) -> None:
    assert _page(str(path)) == PAGES[path]()


@pytest.mark.parametrize("name", [*GENERATED["PAGES"]])
def test_a_page_that_is_made_from_upper_layers_is_the_one_that_its_script_makes(name: str) -> None:
    assert _page(f"docs/{name}") == GENERATED["PAGES"][name]()


@pytest.mark.parametrize("name", [*FIGURES["FIGURES"]])
def test_a_figure_is_the_one_that_its_script_draws(name: str) -> None:
    assert _page(f"docs/{name}") == FIGURES["FIGURES"][name]()


def test_the_pictures_of_the_docs_are_those_that_the_script_takes() -> None:
    shown = {name for path in _pages() for name in re.findall(r"pages/(\w+)\.png\)", path.read_text(encoding="utf-8"))}
    assert shown == set(run_path(str(DOCS / "screenshots.py"))["PICTURES"])


def test_the_figure_of_layers_has_those_that_the_check_of_imports_has() -> None:
    contract = _page("pyproject.toml").split("layers = [")[1].split("]")[0]
    checked = [sorted(names.split(" | ")) for names in re.findall(r'"(.*)"', contract)]
    drawn = [sorted(name for name, _ in names) for _, names in FIGURES["LAYERS"]]
    assert [["__main__", "definitions"], *drawn] == checked


def test_the_readme_is_short_and_starts_with_a_picture() -> None:
    assert len(README.splitlines()) <= 150
    assert README.index("](docs/overview.svg)") < README.index("## Two commands")


@pytest.mark.parametrize("path", [*_pages()], ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_leads_to_a_file_and_a_heading(path: Path) -> None:
    broken = []
    for target, anchor in LINK.findall(path.read_text(encoding="utf-8")):
        to = (path.parent / target).resolve() if target else path
        if not to.exists() or (anchor and anchor not in _anchors(to.read_text(encoding="utf-8"))):
            broken.append(f"{target}#{anchor}")
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    linked = {target for target, _ in LINK.findall(_page("docs/index.md"))}
    assert {path.name for path in DOCS.glob("*.md")} - linked == {"index.md"}


def test_on_a_package_index_every_link_of_the_readme_is_whole() -> None:
    absolute = run_path(str(DOCS / "absolute_links.py"))["absolute"]
    page = absolute(README, "https://example.org/owner/name/", "v1.2.3")
    assert LINK.findall(page) == []
    assert "](https://example.org/owner/name/raw/v1.2.3/docs/overview.svg)" in page
    assert "](https://example.org/owner/name/blob/v1.2.3/docs/tools-and-usage.md#tools)" in page


def test_the_agent_of_the_readme_writes_lines_that_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    program: dict[str, object] = {}
    exec(_block(README, "python"), program)
    logged = program["logged"]
    assert callable(logged)
    with pytest.raises(ZeroDivisionError):
        logged("invoice-reader", lambda: 1 / 0)
    capsys.readouterr()
    lines = (tmp_path / "logs" / "executions.jsonl").read_text(encoding="utf-8").splitlines()
    assert Counter(json.loads(line)["status"] for line in lines) == {"success": 27, "failure": 4}
    found = contents(list_files(tmp_path / "logs"))
    assert {content.record_type for content in found} == {"execution"}
    assert sum(content.lines for content in found) == 31


def test_every_column_has_a_meaning_that_is_a_sentence() -> None:
    from health_assets.schema.catalog import describe

    for table in ALL_TABLES:
        for column, _, _, meaning in describe(table):
            assert meaning.endswith("."), f"{table}.{column}"


def test_every_setting_is_on_its_page_with_default_and_meaning() -> None:
    rows = [line.split(" | ") for line in settings_page().splitlines() if line.startswith("| `HEALTH_")]
    assert [row[0] for row in rows] == [f"| `HEALTH_{name.upper()}`" for name in Settings.model_fields]
    for name, default, _, meaning in rows:
        assert default and meaning.endswith(". |"), name
    assert str(SETTINGS) in README


THEIR_OWN = {"test_postgres", "chat_url", "mail_password", "pager_token", "pagerduty_key", "teams_url"}
"""Variables that are no settings: that of tests, and those that the example of alerts names for its secrets."""


def test_every_setting_that_a_page_names_exists() -> None:
    for path in _pages():
        if path.name != "CHANGELOG.md":
            named = set(re.findall(r"\bHEALTH_([A-Z_]+[A-Z])\b", path.read_text(encoding="utf-8")))
            assert {name.lower() for name in named} - {*Settings.model_fields} - THEIR_OWN == set(), path


def test_every_target_is_on_its_page_with_its_default() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", _page("docs/targets.md").partition("\n## ")[0], re.M))
    assert [*rows] and set(rows) == set(AgentTargets.model_fields)
    for name, field in AgentTargets.model_fields.items():
        default = field.default
        expected = "–" if default is None else "`false`" if default is False else f"{default:g}"
        assert rows[name] == expected, name


def test_every_asset_is_in_the_picture_of_the_lineage() -> None:
    picture = _block(_page("docs/lineage.md"), "mermaid")
    for key in build_definitions().resolve_asset_graph().get_all_asset_keys():
        assert key.to_user_string() in picture


def test_every_command_is_on_the_page_of_running_it() -> None:
    for command in app.registered_commands:
        assert command.callback is not None
        assert re.search(rf"health-assets {command.callback.__name__}\b", RUNNING)


def test_the_page_on_postgresql_names_the_oldest_version_that_can_be_upgraded() -> None:
    page = " ".join(_page("docs/postgresql.md").split())
    assert f"Version {BASELINE_VERSION} is the oldest that can be upgraded." in page


def test_every_ending_of_a_log_is_on_the_page_of_the_log_format() -> None:
    for ending in re.findall(r"\.[\w-]+", NAMES_THAT_COUNT):
        assert f"`{ending}`" in LOG_FORMAT, ending


def test_the_page_on_opentelemetry_states_the_error_as_the_tables_have_it() -> None:
    assert "`ValueError: no such city`" in (ROOT / "docs" / "opentelemetry.md").read_text(encoding="utf-8")


def test_every_dependency_and_no_other_is_on_the_page_of_contributing() -> None:
    project = tomllib.loads(_page("pyproject.toml"))["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"]}
    declared = {(group, re.split(r"[\[<>=,]", wanted)[0]) for group, names in groups.items() for wanted in names}
    named = set()
    for cell in re.findall(r"^\| (.*?) \|", _page("CONTRIBUTING.md").split("\n|---|---|\n")[-1], re.M):
        for part in cell.split("; "):
            group, _, names = part.rpartition(": ")
            named |= {(group, name) for name in names.split(", ")}
    assert named == declared - {("dev", "health-assets")}


OF_OTHER_ENGINES = {"postgresql.md", "spark.md"}
OF_TABLES_TO_COME = {"add-a-metric.md"}


def test_every_query_of_the_docs_runs_on_a_warehouse(tmp_path: Path) -> None:
    with Warehouse(str(tmp_path / "health.duckdb")).write():
        pass
    queries = [
        (path.name, query)
        for path in sorted(DOCS.glob("*.md"))
        if path.name not in OF_OTHER_ENGINES | OF_TABLES_TO_COME
        for query in re.findall(r"```sql\n(.*?)```", path.read_text(encoding="utf-8"), re.S)
    ]
    assert len(queries) > 5
    faults = {}
    with duckdb.connect(str(tmp_path / "health.duckdb"), read_only=True) as connection:
        for page, query in queries:
            try:
                connection.execute(query)
            except duckdb.Error as error:
                faults[page, query] = str(error)
    assert faults == {}


def test_nothing_left_to_fill_in() -> None:
    for path in _pages():
        assert "@@" not in path.read_text(encoding="utf-8"), path


def test_every_kind_of_span_is_on_the_page_on_opentelemetry_and_every_attribute_on_its_own() -> None:
    kinds = (*KIND_OF_OPERATION, *KIND_IN_OPENINFERENCE)
    attributes = [name for names in ATTRIBUTES.values() for name in names]
    for page, told in ((_page("docs/opentelemetry.md"), kinds), (_page("docs/span-attributes.md"), attributes)):
        assert [name for name in told if not re.search(rf"\b{re.escape(name)}\b", page)] == []


THREATS = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")


def _existing_tests() -> set[str]:
    files = (ROOT / "health_assets_tests").rglob("test_*.py")
    return {name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.M)}


def test_every_test_that_the_threat_model_names_exists() -> None:
    assert set(re.findall(r"`(test_\w+)`", THREATS)) - _existing_tests() == set()


def test_every_threat_says_where_it_is_stopped_and_names_a_test() -> None:
    rows = [line for line in THREATS.splitlines() if line.startswith("| ") and not re.match(r"\| (wants|does) ", line)]
    assert len(rows) > 30
    for row in rows:
        _, wish, place, shown, _ = row.split("|")
        assert wish.strip() and place.strip() and re.search(r"`test_\w+`", shown), row


def test_every_path_that_the_threat_model_names_exists() -> None:
    places = " ".join(line.split(" | ")[1] for line in THREATS.splitlines() if line.startswith("| ") and " | " in line)
    paths = set(re.findall(r"`([a-z_0-9/]+(?:\.py|/))`", places))
    assert len(paths) > 15
    assert {path for path in paths if not (ROOT / "health_assets" / path).exists()} == set()


def test_every_command_and_file_of_the_security_page_exists() -> None:
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"`?make (\w+)", page):
        assert re.search(rf"^{target}:", makefile, re.M), target
    assert (
        set(re.findall(r"`(test_\w+)\.py`", page)) - {path.stem for path in Path(__file__).parents[1].rglob("*.py")}
        == set()
    )

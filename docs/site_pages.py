"""MkDocs hooks: pages of the site for files outside of `docs`, the Python API, and links between all of them."""

import os
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path, PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

DOCS = Path(__file__).parent
ROOT = DOCS.parent
PROJECT = "project"
"""Folder of the site for files outside of `docs`."""
LINK = re.compile(r"\]\((?![a-z]+:|#)([^)\s#]+)(#[^)\s]*)?\)")
MERMAID = re.compile(r"```mermaid\n(.*?)```", re.S)
LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".service": "ini", ".env": "bash"}
API = """# Python API

Written from the docstrings of the program. [Recipes](recipes.md) show how to read the tables.

## Ask an agent for its health

::: health_assets.consumer
    options: {show_root_heading: false, show_root_toc_entry: false}

## Track models inside an agent

::: health_assets.model_tracker
    options: {show_root_heading: false, show_root_toc_entry: false}

## Embed the assets in a Dagster project

::: health_assets.defs.component.HealthAssetsComponent
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add a page for every file outside of `docs` that a page links to, and one of the Python API."""
    for path in _linked_outside():
        is_in_nav = path.parent == ROOT and path.suffix == ".md"
        inclusion = InclusionLevel.INCLUDED if is_in_nav else InclusionLevel.NOT_IN_NAV
        files.append(File.generated(config, _uri(path), content=_text(path), inclusion=inclusion))
    files.append(File.generated(config, "python-api.md", content=API))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to where their files are in the site, and show a flow chart as a table."""
    uri = page.file.src_uri
    source = _source(uri)
    if source is None:
        return markdown

    def led(link: re.Match[str]) -> str:
        target = (source.parent / link[1]).resolve()
        if not target.is_file():
            return link[0]
        to = os.path.relpath(_uri(target), PurePosixPath(uri).parent)
        return f"]({to}{link[2] or ''})"

    return MERMAID.sub(lambda chart: _table(chart[1]), LINK.sub(led, markdown))


def _linked_outside() -> list[Path]:
    """Files outside of `docs` that pages link to, or that such a file links to."""
    waiting = [*DOCS.rglob("*.md")]
    found: dict[Path, None] = {}
    while waiting:
        for target in _links(waiting.pop()):
            if not target.is_relative_to(DOCS) and target not in found:
                found[target] = None
                waiting += [target] if target.suffix == ".md" else []
    return sorted(found)


def _links(page: Path) -> Iterator[Path]:
    for target, _ in LINK.findall(page.read_text(encoding="utf-8")):
        path = (page.parent / target).resolve()
        if path.is_file():
            yield path


def _uri(path: Path) -> str:
    """Where a file is in the site's sources."""
    if path.is_relative_to(DOCS):
        return path.relative_to(DOCS).as_posix()
    name = path.relative_to(ROOT).as_posix().removeprefix(".")  # MkDocs leaves out names with a dot
    return f"{PROJECT}/{name}" if path.suffix == ".md" else f"{PROJECT}/{name}.md"


def _source(uri: str) -> Path | None:
    """The Markdown file of a page; none of a page that is made."""
    path = ROOT / uri.removeprefix(f"{PROJECT}/") if uri.startswith(f"{PROJECT}/") else DOCS / uri
    return path if path.suffix == ".md" and path.is_file() else None


def _text(path: Path) -> str:
    """A Markdown file as it is, any other as a page with its code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        return text
    return f"# {path.name}\n\n````{LANGUAGES.get(path.suffix, 'text')}\n{text}````\n"


def _table(chart: str) -> str:
    """The arrows of a flow chart as a table: what each box is made from."""
    upstream: dict[str, list[str]] = {}
    for line in chart.splitlines()[1:]:
        steps = [[_label(box) for box in step.split(" & ")] for step in re.split(r" --(?: \w+ --)?> ", line.strip())]
        for sources, targets in pairwise(steps):
            for target in targets:
                upstream.setdefault(target, []).extend(sources)
    rows = (f"| {target} | {', '.join(sources)} |" for target, sources in sorted(upstream.items()))
    return "\n".join(["| table | made from |", "|---|---|", *rows, ""])


def _label(box: str) -> str:
    """The name of a box, as code; of a box with a text the text."""
    name, _, text = box.strip().partition("[")
    return re.sub(r"[\[\]()\"]", "", text).replace("<br/>", " ") if text else f"`{name}`"

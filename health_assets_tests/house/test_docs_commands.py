"""Every command that a page shows, in a block or within a sentence, is one that the program, make or Python has."""

import re
import shlex
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

from health_assets.cli.commands import app
from health_assets_tests.support.projects import REPOSITORY

PAGES = sorted(
    [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md"), *(REPOSITORY / "docs" / "grafana").glob("*.md")]
)
BLOCK = re.compile(r"^```(?:console|bash|sh)\n(.*?)^```", re.M | re.S)
INLINE = re.compile(r"`([^`\n]+(?:\n[^`\n]+)?)`")
ASSIGNMENT = re.compile(r"\w+=\S*")
OURS = "health-assets"
PLACEHOLDER = re.compile("[…<]")
"""What a reader fills in; such a command cannot be parsed as it stands."""


def in_blocks(page: str) -> Iterator[list[str]]:
    """The words of each command in a block of a page."""
    for block in BLOCK.findall(page):
        yield from _commands(block.replace("\\\n", " ").splitlines())


def in_sentences(page: str) -> Iterator[list[str]]:
    """The words of each command that a sentence names, some of them without what they need."""
    sentences = re.sub(r"```.*?```", "", page, flags=re.S)
    return _commands(" ".join(text.split()) for text in INLINE.findall(sentences))


def _commands(lines: Iterable[str]) -> Iterator[list[str]]:
    """Lines without prompt, variables before the command, and what a shell does with it."""
    for line in lines:
        words = line.removeprefix("$ ").split()
        while words and ASSIGNMENT.fullmatch(words[0]):
            words.pop(0)
        if words and words[0] in (OURS, "make", "python") and not PLACEHOLDER.search(line):
            yield shlex.split(re.split(r" [>&|](?: |$)", " ".join(words))[0], comments=True)


def parse(command: Any, name: str, arguments: list[str], parent: Any = None) -> None:
    """Have the command line read as when it is called, down to the last subcommand; nothing is run."""
    context = command.make_context(name, arguments, parent=parent)
    rest = [*getattr(context, "_protected_args", ()), *context.args]
    if hasattr(command, "resolve_command") and rest:
        name, command, rest = command.resolve_command(context, rest)
        parse(command, name, rest, context)


def unknown_words(command: Any, arguments: list[str]) -> list[str]:
    """Subcommands and flags that a command does not have."""
    while arguments and arguments[0] in getattr(command, "commands", ()):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    known = {"--help", "--version"}.union(*(parameter.opts + parameter.secondary_opts for parameter in command.params))
    no_commands = [word for word in arguments[:1] if hasattr(command, "commands") and word[0] != "-"]
    return no_commands + [word for word in arguments if word.startswith("--") and word not in known]


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_every_command_of_a_page_has_the_flags_and_arguments_that_it_is_shown_with(path: Path) -> None:
    page, group = path.read_text(encoding="utf-8"), typer.main.get_command(app)
    for words in in_blocks(page):
        if words[0] == OURS:
            parse(group, OURS, words[1:])
    named = [words for words in in_sentences(page) if words[0] == OURS]
    assert {" ".join(words): found for words in named if (found := unknown_words(group, words[1:]))} == {}


def test_every_target_of_make_and_module_of_python_that_a_page_shows_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", (REPOSITORY / "Makefile").read_text(encoding="utf-8"), re.M))
    pages = [path.read_text(encoding="utf-8") for path in PAGES]
    shown = [words for page in pages for words in (*in_blocks(page), *in_sentences(page))]
    made = {word for words in shown if words[0] == "make" for word in words[1:] if re.fullmatch("[a-z]+", word)}
    assert made >= {"demo", "docs", "screenshots", "schema"}
    assert made - targets == set()
    modules = {words[2] for words in shown if words[:2] == ["python", "-m"]}
    assert "bench.scale" in modules
    assert {module for module in modules if find_spec(module) is None} == set()

"""A copy of the program in which somebody did what a page of the docs says, to the letter.

What belongs here: the files and changes that a page shows, and running programs in the copy. What does not: what must
come of it (`house`).
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from health_assets_tests.support.projects import REPOSITORY, command_environment

PATH = re.compile(r"`((?:health_assets|health_assets_tests)/[\w/]+\.(?:py|yaml))`")


def blocks_of(page: str) -> list[tuple[str | None, str, str]]:
    """(file that the paragraph before names, language, code) of each block of code of a page."""
    found = []
    for block in re.finditer(r"^```(\w+)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE):
        paragraph = page[: block.start()].rstrip().rpartition("\n\n")[2]
        named = PATH.search(paragraph)
        found.append((named and named[1], block[1], block[2]))
    return found


def copied(folder: Path) -> Path:
    """A copy of the program and of what tests share, with what Python compiled of them."""
    for name in ("health_assets", "health_assets_tests/support", "health_assets_tests/fuzz"):
        shutil.copytree(REPOSITORY / name, folder / name)
    shutil.copy(REPOSITORY / "pyproject.toml", folder)
    return folder


def walk(page: str, folder: Path) -> list[str]:
    """Do in a copy what a page says, to the liking of the linter; gives the files that it made or changed, in order."""
    touched = []
    for name, language, code in blocks_of(page):
        if name is None or language not in ("python", "diff", "yaml"):
            continue
        path = folder / name
        if language == "diff":
            path.write_text(changed(path.read_text(encoding="utf-8"), code), encoding="utf-8")
        else:
            assert not path.exists(), f"{name} is there already"
            path.parent.mkdir(exist_ok=True)
            path.write_text(code, encoding="utf-8")
        touched.append(name)
    ruff = [sys.executable, "-m", "ruff"]
    code_files = [name for name in touched if name.endswith(".py")]
    for command in ([*ruff, "check", "--no-cache"], [*ruff, "format", "--check", "--no-cache"]):
        done = subprocess.run([*command, *code_files], cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
    return touched


def changed(text: str, difference: str) -> str:
    """The text with lines `-` replaced by lines `+`; a line of neither stands between two changes."""
    for piece in re.findall(r"(?:^[-+ ].*\n)+", difference, re.MULTILINE):
        lines = piece.splitlines()
        before, after = ("\n".join(line[1:] for line in lines if not line.startswith(sign)) for sign in ("+", "-"))
        assert text.count(before) == 1, f"the page changes what is not there: {before}"
        text = text.replace(before, after)
    return text


def run_in(folder: Path, *arguments: str, **settings: str) -> str:
    """The output of a Python program that runs with the copy alone, and with these environment variables.

    Raises:
        AssertionError: it fails.
    """
    environment = {name: value for name, value in command_environment().items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env=environment | {"PYTHONPATH": os.fspath(folder)} | settings,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-6000:]
    return done.stdout

"""`python -m new_system NAME`: the folder of a scoring system that works, and the line that names it.

The system counts the executions of each agent and the share of them that failed, so that every file has something to
change. What is generated from the tables follows with `make schema`.
"""

import keyword
import re
import sys
from pathlib import Path
from string import Template

TEMPLATES = Path(__file__).with_name("templates")
SYSTEMS = Path("health_assets/systems")
NAMED_IN = Path("health_assets/core/systems.py")
LAST = '"survey",\n)'
"""The survey stays the last of all systems."""


def main(arguments: list[str]) -> str:
    """Write the files; gives what to do next.

    Raises:
        SystemExit: the name is none, or is taken, or this is no checkout.
    """
    if len(arguments) != 1:
        raise SystemExit("usage: python -m new_system NAME, as in: python -m new_system slow_executions")
    [name] = arguments
    if not re.fullmatch(r"[a-z][a-z0-9]*(_[a-z0-9]+)*", name) or keyword.iskeyword(name):
        raise SystemExit(f"{name!r} is no name of a system; use small letters, digits and _, as in slow_executions")
    if not NAMED_IN.is_file():
        raise SystemExit(f"there is no {NAMED_IN} here; run this in a checkout")
    folder, listed = SYSTEMS / name, NAMED_IN.read_text(encoding="utf-8")
    if folder.exists() or f'"{name}"' in listed:
        raise SystemExit(f"there is a system {name} already")
    if LAST not in listed:
        raise SystemExit(f"{NAMED_IN} does not end its list of systems with the survey; name {name} there yourself")
    folder.mkdir()
    for path, text in files_of(name).items():
        (folder / path).write_text(text, encoding="utf-8")
    NAMED_IN.write_text(listed.replace(LAST, f'"{name}", {LAST}'), encoding="utf-8")
    return (
        f"{folder} counts executions by agent; make it your own (docs/add-a-metric.md), then run\n"
        f'  make schema MESSAGE="{name.replace("_", " ")}"\n  make check'
    )


def files_of(name: str) -> dict[str, str]:
    """The text of each file of a system, by its name in the folder."""
    words = name.split("_")
    names = {"name": name, "title": " ".join(words).capitalize(), "classes": "".join(map(str.capitalize, words))}
    return {
        template.stem: Template(template.read_text(encoding="utf-8")).substitute(names)
        for template in TEMPLATES.iterdir()
    }


if __name__ == "__main__":
    print(main(sys.argv[1:]))

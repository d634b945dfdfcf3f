"""Sessions of the coding agents of this computer: where they lie, and a folder that shows them to every command.

What belongs here: finding the sessions, and the settings that make commands work on them. What does not: reading them
(`logs.formats`). Nothing is written where they lie, and none of their text gets into the warehouse.
"""

import errno
import os
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from health_assets import BEGAN
from health_assets.cli.console import console
from health_assets.cli.materializing import hours_asked_for, materialize_hours
from health_assets.core.errors import HealthAssetsError
from health_assets.core.formatting import counted
from health_assets.core.hours import HOUR, HourRange
from health_assets.core.settings import load_settings
from health_assets.logs.stores import LOG_NAME


@dataclass(frozen=True, kw_only=True)
class _Tool:
    """Where a coding agent keeps its sessions.

    Args:
        variable: the variable that names its folder; empty where there is none.
        home: that folder below the user's, by default.
        sessions: pattern of the sessions in it.
    """

    variable: str
    home: str
    sessions: str

    def folder(self, environment: Mapping[str, str], home: Path) -> Path:
        """Its folder."""
        return Path(environment.get(self.variable) or home / self.home)


TOOLS = {
    "claude-code": _Tool(variable="CLAUDE_CONFIG_DIR", home=".claude", sessions="projects/**/*"),
    "codex": _Tool(variable="CODEX_HOME", home=".codex", sessions="sessions/**/*"),
    "gemini-cli": _Tool(variable="", home=".gemini", sessions="tmp/*/chats/*"),
}
"""The coding agents whose sessions are found, by the name of their agent."""
WINDOW_DAYS = 30


@dataclass(frozen=True)
class OwnSessions:
    """A folder with links to the sessions, and their warehouse.

    Args:
        folder: the folder, which need not be there yet.
    """

    folder: Path

    @property
    def raw(self) -> Path:
        """Folder of the links."""
        return self.folder / "raw"

    def environment(self) -> dict[str, str]:
        """Environment variables that make commands read the sessions.

        Windows are long, since people work with coding agents for some hours of some days.
        """
        return {
            "HEALTH_RAW": str(self.raw.resolve()),
            "HEALTH_WAREHOUSE": str((self.folder / "health.duckdb").resolve()),
            "HEALTH_WINDOW_HOURS": str(24 * WINDOW_DAYS),
            "HEALTH_LOOKBACK_HOURS": str(24 * WINDOW_DAYS),
            "HEALTH_SESSIONS_BY_PROJECT": "on",
        }

    def link(self, environment: Mapping[str, str], home: Path) -> dict[str, int]:
        """Link the sessions into the folder, or copy them where it is on another disk; gives how many files a tool has.

        Sessions that were linked before and are gone by now are gone here, too; what was loaded of them stays.

        Args:
            environment: where tools were told to keep their sessions.
            home: where they keep them by default.

        Raises:
            HealthAssetsError: there is none, or the folder cannot be written.
        """
        found = dict.fromkeys(TOOLS, 0)
        try:
            links = set()
            for tool, path, name in _sessions(environment, home):
                links.add(link := self.raw / tool / name)
                _link(path, link)
                found[tool] += 1
            if any(found.values()):
                self._remove_others(links)
                (self.folder / ".gitignore").write_text("*\n")
        except OSError as error:
            raise HealthAssetsError(f"cannot link sessions into {self.folder}: {error.strerror}") from error
        if not any(found.values()):
            places = " or ".join(str(tool.folder(environment, home) / tool.sessions) for tool in TOOLS.values())
            raise HealthAssetsError(f"no session of a coding agent lies in {places}")
        return found

    def _remove_others(self, links: Collection[Path]) -> None:
        for path in [path for path in self.raw.rglob("*") if path.is_file()]:
            if path not in links:
                path.unlink()


def show_sessions(sessions: OwnSessions) -> None:
    """Link the sessions, materialize the newest hour, whose windows hold the last weeks, and show it and the versions.

    Raises:
        HealthAssetsError: there is no session, or they cannot be materialized.
    """
    found = sessions.link(os.environ, Path.home())
    told = " and ".join(f"{counted(files, 'file')} of {tool}" for tool, files in found.items() if files)
    console.print(
        f"{told} are linked in {sessions.raw}; the last {WINDOW_DAYS} days are shown, by tool and project; none of "
        "their text gets into the warehouse",
        soft_wrap=True, markup=False, highlight=False,
    )  # fmt: skip
    os.environ.pop("DAGSTER_HOME", None)  # an event for each hour of the window would take longer than all the rest
    os.environ.update(sessions.environment())
    settings = load_settings()
    wanted = hours_asked_for(settings, None, None)
    newest = HourRange(wanted.hours.end - HOUR, wanted.hours.end)
    materialize_hours(settings, newest, BEGAN, loaded=wanted.loaded)
    from health_assets.apps.report.versions_block import print_versions
    from health_assets.warehouse.store import Warehouse

    with Warehouse.of(settings).read() as session:
        print_versions(console, session, newest.extended_back(settings.window_hours - 1))


def _sessions(environment: Mapping[str, str], home: Path) -> Iterator[tuple[str, Path, Path]]:
    """(tool, file, name of the file below the tool's folder) of each session."""
    for name, tool in TOOLS.items():
        folder = tool.folder(environment, home)
        for path in sorted(folder.glob(tool.sessions)):
            if LOG_NAME.search(path.name) and path.is_file():
                yield name, path, path.relative_to(folder)


def _link(path: Path, link: Path) -> None:
    """Make a name of a file; a session that goes on has grown under both, but a copy is made anew."""
    link.parent.mkdir(parents=True, exist_ok=True)
    if link.exists():
        if link.samefile(path):
            return
        link.unlink()
    try:
        os.link(path, link)
    except OSError as error:
        if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK, errno.ENOTSUP):
            raise
        shutil.copy2(path, link)

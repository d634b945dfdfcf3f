"""Faults of a warehouse on Spark: drivers and servers that are killed, a ledger that is away, two orchestrators at once.

Each fault meets `health-assets materialize` at a random moment, while new logs have come. What is read afterwards has
every line once. A run that failed says why in one sentence. An undisturbed run makes the tables that DuckDB makes of the
same logs from nothing. The Spark is Sail, in a process of its own.
"""

import os
import re
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cached_property
from multiprocessing.process import BaseProcess
from pathlib import Path
from random import Random

from health_assets.core.hours import HOUR, HourRange
from health_assets.warehouse.engines.spark.lake import SCRATCH, SWEPT_FILE
from health_assets.warehouse.engines.spark.tables import LAKE_TABLES
from health_assets.warehouse.migrations import migrate
from health_assets_tests.soak.installation import postgres_service, start_postgres, wait_until
from health_assets_tests.soak.services import Service
from health_assets_tests.support.logs_made import START, cut_into_files, random_lines, random_targets
from health_assets_tests.support.ports import free_port
from health_assets_tests.support.projects import (
    FLEET,
    Project,
    assert_lines_are_conserved,
    assert_tables_equal_to_9_digits,
    command_environment,
    hours_from,
    materialize_arguments,
    start_forked_command,
)
from health_assets_tests.support.spark_servers import SAIL_ENVIRONMENT, START_S, listens, sail_command

HOURS = hours_from(START, 6)
OVERLAPPING = (hours_from(START, 4), HourRange(START + 2 * HOUR, HOURS.end))
WINDOW_HOURS, LOOKBACK_HOURS = 4, 9
LINES = 60
"""New ones before each fault."""
SOON_S = 180.0
"""No run takes longer, whatever befalls it."""
AWAY_S = 60.0
ONE_SYSTEM = "agent_health_model"
"""Stands for all by day."""
BUSY = ("is held by", "waiting for the warehouse")


@dataclass(frozen=True)
class Ended:
    """A command that has ended.

    Args:
        code: its exit code; negative where a signal ended it.
        said: what it wrote to stderr.
    """

    code: int
    said: str

    @property
    def sentence(self) -> str:
        """The last line of what it said, by which a user is to know what happened."""
        return (self.said.strip().splitlines() or [""])[-1]

    def assert_failed_in_a_sentence(self) -> None:
        """It tells of its failure, and of no fault of the program."""
        assert self.code > 0, f"exit code {self.code}: {self.said}"
        assert "Traceback" not in self.said and "internal error" not in self.said, self.said
        assert self.sentence.startswith("health-assets: "), self.said


class Run:
    """A command that is under way."""

    def __init__(self, process: BaseProcess, said: Path) -> None:
        self.process = process
        self._said = said

    def ended(self) -> Ended:
        """Wait for its end."""
        self.process.join(SOON_S)
        is_late = self.process.is_alive()
        self.process.kill()
        self.process.join()
        said = self._said.read_text(encoding="utf-8")
        assert not is_late, f"it had not ended after {SOON_S:g} s: {said}"
        assert self.process.exitcode is not None
        return Ended(self.process.exitcode, said)

    def killed_after(self, seconds: float) -> Ended:
        """Kill it after a while."""
        self.process.join(seconds)
        self.process.kill()
        return self.ended()


class Fleet:
    """A random fleet on Spark that gets more logs again and again, and a Sail and perhaps a PostgreSQL of its own.

    Args:
        folder: for all that there is.
        random: what comes.
        sail: the server.
        ledger: URL of a ledger on PostgreSQL; by default it is a DuckDB file.
        system: `ONE_SYSTEM`, or None for all.
    """

    def __init__(self, folder: Path, random: Random, sail: Service, url: str, ledger: str, system: str | None) -> None:
        self.random, self.sail, self._system = random, sail, system
        self._folder, self._runs, self._logs = folder, 0, 0
        self.project = Project(
            folder / "spark", random_targets(random), WINDOW_HOURS, LOOKBACK_HOURS, engine="spark", url=url, ledger=ledger
        )  # fmt: skip

    def more_logs(self) -> None:
        """Write new logs, of any hour."""
        self._logs += 1
        for name, lines in cut_into_files(self.random, random_lines(self.random, LINES, len(HOURS))).items():
            self.project.write_log(f"{self._logs}/{name}", lines, modified=START + HOUR)

    def begin(self, hours: HourRange = HOURS) -> Run:
        """Start the command."""
        self._runs += 1
        said = self._folder / f"said-{self._runs}"
        environment = {
            "HEALTH_WINDOW_HOURS": str(WINDOW_HOURS), "HEALTH_LOOKBACK_HOURS": str(LOOKBACK_HOURS),
            "HEALTH_SHORT_WINDOW_HOURS": "off" if self._system else "1,6",
            "HEALTH_LAKE": str(self.project.settings.lake), "HEALTH_LEDGER": str(self.project.settings.ledger),
        }  # fmt: skip
        arguments = materialize_arguments(self.project, hours, self._system)
        process = start_forked_command(arguments, environment, self._folder, [os.devnull, str(said)])
        return Run(process, said)

    def run(self) -> float:
        """Run the command undisturbed; gives how long it took, in seconds."""
        begun = time.monotonic()
        done = self.begin().ended()
        assert done.code == 0, done.said
        return time.monotonic() - begun

    @cached_property
    def life_s(self) -> float:
        """How long the command takes over new logs once everything is warm, in seconds; two runs are made to know it."""
        fleet_is_cold_for_s = self.run()
        self.more_logs()
        return min(fleet_is_cold_for_s, self.run())

    def restart(self, *, number: signal.Signals = signal.SIGKILL) -> None:
        """Kill the Spark server, where it is there, and start it again."""
        self.sail.end(number)
        self.sail.start()
        port = int(self.project.url.rpartition(":")[2])
        wait_until(lambda: listens(port), START_S, "Sail does not listen", every_s=0.1)

    def assert_rebuilt(self) -> None:
        """The tables are those that DuckDB makes of the logs from nothing, and every line is there once."""
        assert_lines_are_conserved(self.project)
        shutil.rmtree(self._folder / "clean", ignore_errors=True)
        clean = Project(self._folder / "clean", self.project.targets, WINDOW_HOURS, LOOKBACK_HOURS)
        clean.raw = self.project.raw
        clean.materialize(HOURS, only=None if self._system is None else FLEET)
        expected = clean.tables()
        assert expected["executions"] and expected["agent_health"]
        assert_tables_equal_to_9_digits(self.project.tables(), expected)

    def swept_folders(self) -> int:
        """Let all folders be old, and the next writer sweep; gives how many of them nobody had published."""
        lake = Path(str(self.project.settings.lake))
        before = set(_written(lake))
        long_ago = time.time() - 24 * 3600
        for path in [lake / SWEPT_FILE, *before]:
            os.utime(path, (long_ago, long_ago))
        with self.project.warehouse.write() as session:
            known = session.query("SELECT folder FROM lake_hours UNION SELECT folder FROM lake_withdrawn")
        left = set(_written(lake))
        assert left == {lake / str(Path(folder).parent) for (folder,) in known}
        return len(before - left)


def _written(lake: Path) -> Iterator[Path]:
    for name in (*LAKE_TABLES, SCRATCH):
        yield from (lake / name).glob("*")


@contextmanager
def fleet_on_sail(folder: Path, seed: object, *, ledger: str = "", system: str | None = None) -> Iterator[Fleet]:
    """A fleet with some logs, none of which was read yet."""
    port = free_port()
    environment = command_environment() | SAIL_ENVIRONMENT
    sail = Service("sail", sail_command(port), environment, folder / "sail.log")
    fleet = Fleet(folder, Random(f"{seed}"), sail, f"sc://127.0.0.1:{port}", ledger, system)
    fleet.more_logs()
    fleet.restart()
    try:
        yield fleet
    finally:
        sail.end(signal.SIGKILL)


def kill_drivers(fleet: Fleet, count: int, seed: object) -> str:
    """Kill commands at random moments, so often.

    Raises:
        AssertionError: a line was lost or counted twice, or the tables are not those of a rebuild at the end.
    """
    random, life_s = Random(f"{seed}"), fleet.life_s
    codes: Counter[int] = Counter()
    for _ in range(count):
        fleet.more_logs()
        codes[fleet.begin().killed_after(random.random() * life_s).code] += 1
        assert_lines_are_conserved(fleet.project)
    assert codes.keys() <= {0, -signal.SIGKILL}, codes
    fleet.run()
    fleet.assert_rebuilt()
    return (
        f"{codes[-signal.SIGKILL]} drivers killed within {life_s:.0f} s, {codes[0]} were done before; then the tables were "
        f"DuckDB's, and {fleet.swept_folders()} folders that nobody had published were removed"
    )


def kill_servers(fleet: Fleet, count: int, seed: object) -> str:
    """Kill the Spark server under commands so often; the first time, and every other, it is there again at once.

    Raises:
        AssertionError: a command did not fail in a sentence, or the tables are not those of a rebuild afterwards.
    """
    random, life_s = Random(f"{seed}"), fleet.life_s
    sentences: Counter[str] = Counter()
    longest_s = 0.0
    for turn in range(count):
        fleet.more_logs()
        run = fleet.begin()
        run.process.join(random.random() * life_s)
        was_done = not run.process.is_alive()
        fleet.sail.end(signal.SIGKILL)
        killed_at = time.monotonic()
        if turn % 2 == 0:
            fleet.restart()
        ended = run.ended()
        longest_s = max(longest_s, time.monotonic() - killed_at)
        fleet.restart()
        sentences[_became_of(fleet, ended, was_done=was_done)] += 1
    fleet.run()
    fleet.assert_rebuilt()
    return (
        f"{count} servers killed, commands ended within {longest_s:.0f} s; then the tables were DuckDB's"
        f"{_listed(sentences)}"
    )


def stop_ledgers(folder: Path, count: int, away_s: float, seed: object, system: str | None = None) -> str:
    """Stop the PostgreSQL of the ledger under commands for some seconds, so often, and before the first one.

    Raises:
        AssertionError: a command did not fail in a sentence, or the tables are not those of a rebuild afterwards.
    """
    with ExitStack() as stack:
        data = stack.enter_context(tempfile.TemporaryDirectory(prefix="ledger-"))  # which another user may own
        service, url = postgres_service(Path(data), folder / "postgres.log")
        stack.callback(service.end, signal.SIGQUIT)
        migrate(url, 60)
        fleet = stack.enter_context(fleet_on_sail(folder, seed, ledger=url, system=system))
        service.end(signal.SIGQUIT)
        fleet.begin().ended().assert_failed_in_a_sentence()
        start_postgres(service, url)
        life_s = fleet.life_s
        sentences: Counter[str] = Counter()
        for _ in range(count):
            fleet.more_logs()
            run = fleet.begin()
            run.process.join(fleet.random.random() * life_s)
            was_done = not run.process.is_alive()
            service.end(signal.SIGQUIT)
            run.process.join(away_s)
            start_postgres(service, url)
            sentences[_became_of(fleet, run.ended(), was_done=was_done)] += 1
        fleet.run()
        fleet.assert_rebuilt()
        return f"{count} times the ledger was away for {away_s:g} s; then the tables were DuckDB's{_listed(sentences)}"


def run_two_at_once(fleet: Fleet, count: int) -> str:
    """Start two commands with overlapping hours at the same moment, so often.

    Raises:
        AssertionError: one failed for another reason than that the other one wrote, or a line was lost or is there twice, or
            the tables are not those of a rebuild afterwards.
    """
    busy = 0
    for _ in range(count):
        fleet.more_logs()
        runs = [fleet.begin(hours) for hours in OVERLAPPING]
        for ended in [run.ended() for run in runs]:
            if ended.code:
                ended.assert_failed_in_a_sentence()
                assert any(words in ended.sentence for words in BUSY), ended.said
                busy += 1
        assert_lines_are_conserved(fleet.project)
    fleet.run()
    fleet.assert_rebuilt()
    return (
        f"{count} times two commands at once, {busy} were told that the other one writes; then the tables were DuckDB's"
    )


def all_faults(folder: Path, kills: int, seed: object) -> Iterator[str]:
    """All of them with every scoring system, as many as are worth one night; tells how each went.

    Args:
        folder: an empty one.
        kills: of drivers; the other faults, which take longer, come less often.
        seed: another one gives other logs and moments.

    Raises:
        AssertionError: a promise broke.
    """
    few = max(1, kills // 4)
    of_a_fleet: dict[str, Callable[[Fleet], str]] = {
        "drivers": lambda fleet: kill_drivers(fleet, kills, f"{seed} drivers"),
        "servers": lambda fleet: kill_servers(fleet, 2 * few, f"{seed} servers"),
        "two at once": lambda fleet: run_two_at_once(fleet, few),
    }
    for name, meet in of_a_fleet.items():
        (folder / name).mkdir()
        with fleet_on_sail(folder / name, f"{seed} {name}") as fleet:
            yield meet(fleet)
    (folder / "ledgers").mkdir()
    yield stop_ledgers(folder / "ledgers", few, AWAY_S, f"{seed} ledgers")


def _became_of(fleet: Fleet, ended: Ended, *, was_done: bool) -> str:
    """The sentence with which a command ended that met a fault.

    Args:
        fleet: its fleet, where nothing is broken any more.
        ended: the command.
        was_done: whether it had ended before the fault.

    Raises:
        AssertionError: it did not fail in a sentence, its tables are not those of a rebuild, or a line is lost.
    """
    if ended.code:
        ended.assert_failed_in_a_sentence()
        sentence = _without_names(ended.sentence)
    else:
        fleet.assert_rebuilt()
        sentence = "done before" if was_done else "done all the same"
    assert_lines_are_conserved(fleet.project)
    return sentence


def _listed(sentences: Counter[str]) -> str:
    return "".join(f"\n  {times} times: {sentence}" for sentence, times in sentences.most_common())


def _without_names(sentence: str) -> str:
    """A sentence without what is another one each time."""
    return re.sub(r"[0-9a-f]{8}[0-9a-f-]{24,}|\d{4,}", "…", sentence)

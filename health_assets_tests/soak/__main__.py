"""`python -m health_assets_tests.soak --minutes 30`; exit code 1 where a promise broke.

What belongs here: when what happens, and the figures. What does not: what happens (`disturbances`), what must be true
(`verdict`).
"""

import argparse
import itertools
import shutil
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from random import Random

from health_assets_tests.soak.disturbances import DISTURBANCES
from health_assets_tests.soak.installation import installed
from health_assets_tests.soak.verdict import Verdict, judge

FULL_DISK_S = 60.0
SHORT_MINUTES = 10.0
"""A soak that is shorter has leases that expire sooner, and a disk that is full for a few seconds."""
REST_SHARE = 0.04
"""The rest between two disturbances, as a share of the whole time."""


def soak(folder: Path, minutes: float, seed: int, engine: str, tell: Callable[[str], None]) -> Verdict:
    """Disturb an installation for some minutes, and judge it.

    Args:
        folder: a folder that is there and that every user of this machine may enter.
        minutes: how long disturbances go on, once each has happened; the end takes some minutes more.
        seed: of the order and the moments of the disturbances.
        engine: of the warehouse, `postgres` or `duckdb`.
        tell: is told what happens.

    Raises:
        AssertionError: something was not as it must be.
    """
    random, begun = Random(seed), time.monotonic()
    is_short = minutes < SHORT_MINUTES
    with installed(folder, engine=engine, lease_s=15 if is_short else 60, seed=seed) as installation:
        tell(f"all services run, after {time.monotonic() - begun:.0f} s")
        disk_mib, start = installation.used_mib(), time.monotonic()
        for place, name in enumerate(_names(random)):
            if place >= len(DISTURBANCES) and time.monotonic() - start >= minutes * 60:
                break
            sentence = DISTURBANCES[name](installation, random, FULL_DISK_S / 6 if is_short else FULL_DISK_S)
            tell(f"{timedelta(seconds=round(time.monotonic() - start))}  {sentence}")
            time.sleep(REST_SHARE * minutes * 60 * random.random())
        return judge(installation, disk_mib)


def _names(random: Random) -> itertools.chain[str]:
    """The disturbances, in rounds in each of which each happens once, in any order."""
    return itertools.chain.from_iterable(
        random.sample(list(DISTURBANCES), len(DISTURBANCES)) for _ in itertools.count()
    )


def figures(verdict: Verdict) -> str:
    """A verdict as a person reads it."""
    runs = ", ".join(f"{count} {state.lower()}" for state, count in sorted(verdict.runs.items()))
    memory = "; ".join(
        f"{name} {first:.0f}, {second:.0f}, {third:.0f} MiB" for name, (first, second, third) in verdict.rss_mib.items()
    )
    disk = "; ".join(f"{part} {before:.0f}, {after:.0f}" for part, (before, after) in verdict.disk_mib.items())
    return (
        f"{verdict.lines:,} lines written; all {verdict.executions:,} executions of {verdict.hours} hours are there, once\n"
        f"every table equals a clean rebuild, no hour is stuck, {verdict.quiet_after_s:.0f} s after the writer ended\n"
        f"runs: {runs}\n"
        f"memory in the first, second and last third: {memory}\n"
        f"disk, MiB before and after: {disk}; a new warehouse takes {verdict.rebuilt_mib:.0f}"
    )


def main() -> None:
    """Soak, and print how it went; what failed keeps its folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--engine", choices=["postgres", "duckdb"], default="postgres")
    chosen = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    folder.chmod(0o755)
    verdict = soak(folder, chosen.minutes, chosen.seed, chosen.engine, lambda text: print(text, flush=True))
    print(figures(verdict))
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()

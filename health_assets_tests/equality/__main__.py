"""`python -m health_assets_tests.equality`: compare the tables of the corpus with their digests."""

import argparse
import os
import tempfile
import time
from pathlib import Path

from health_assets_tests.equality.corpus import cases
from health_assets_tests.equality.digests import differences, digests_of, expected_digests, update
from health_assets_tests.equality.histories import HISTORIES, build_project
from health_assets_tests.support.projects import SALT


def main() -> int:
    """Compare or update; the exit code is 1 where a table differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of cases; all by default")
    parser.add_argument("--history", choices=HISTORIES, default="clean")
    parser.add_argument("--update", action="store_true", help="replace the digests, after an intended change")
    chosen = parser.parse_args()
    if chosen.update and chosen.history != "clean":
        parser.error("digests are those of clean runs")
    selected = [case for case in cases() if not chosen.names or any(name in case.name for name in chosen.names)]
    if not selected:
        parser.error(f"no case is called {' or '.join(chosen.names)}")
    os.environ["HEALTH_DIGEST_SALT"] = SALT
    os.environ["HEALTH_PRICES"] = "off"
    os.environ["HEALTH_PUBLISHED"] = "off"
    is_same = True
    for case in selected:
        if not case.is_there or (case.later_targets is not None and chosen.history != "clean"):
            print(f"{case.name}: skipped")
            continue
        with tempfile.TemporaryDirectory(prefix="equality-") as folder:
            since = time.process_time()
            actual = digests_of(build_project(case, Path(folder) / "project", chosen.history))
            took_s = time.process_time() - since
        messages = [] if chosen.update else differences(actual, expected_digests().get(case.name, {}))
        print(f"{case.name}: {took_s:.1f} s CPU, {'; '.join(messages) or f'{len(actual)} tables'}", flush=True)
        is_same = is_same and not messages
        if chosen.update:
            update({case.name: actual})
    return 0 if is_same else 1


if __name__ == "__main__":
    raise SystemExit(main())

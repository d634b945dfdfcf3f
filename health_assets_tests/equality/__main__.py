"""`python -m health_assets_tests.equality`: compare the tables of the corpus with the kept digests, or keep them anew."""

import argparse
import tempfile
import time
from pathlib import Path

from health_assets_tests.equality.corpus import cases
from health_assets_tests.equality.digests import differences, digests_of, keep, kept_digests
from health_assets_tests.equality.histories import HISTORIES, made


def main() -> int:
    """Compare or keep; the exit code is 1 where a table is another one."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of names of cases; all by default")
    parser.add_argument("--history", choices=HISTORIES, default="clean")
    parser.add_argument("--keep", action="store_true", help="replace the kept digests by what is found")
    chosen = parser.parse_args()
    is_same = True
    for case in cases():
        if not case.is_there or (chosen.names and not any(name in case.name for name in chosen.names)):
            continue
        if case.later_targets is not None and chosen.history != "clean":
            continue
        with tempfile.TemporaryDirectory(prefix="equality-") as folder:
            since = time.process_time()
            found = digests_of(made(case, Path(folder) / "project", chosen.history))
            took_s = time.process_time() - since
        told = [] if chosen.keep else differences(found, kept_digests().get(case.name, {}))
        print(f"{case.name}: {took_s:.1f} s CPU, {'; '.join(told) or f'{len(found)} tables'}", flush=True)
        is_same = is_same and not told
        if chosen.keep:
            keep({case.name: found})
    return 0 if is_same else 1


if __name__ == "__main__":
    raise SystemExit(main())

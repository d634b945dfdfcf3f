"""`python -m health_assets_tests.fuzz [target ...] --seconds 600 --seed 1`; exit code 1 where something was found."""

import argparse

from health_assets_tests.fuzz.running import run
from health_assets_tests.fuzz.targets import TARGETS


def main() -> None:
    """Run targets and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="target", help=f"of {', '.join(TARGETS)}; all by default")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="how long, all targets together")
    parser.add_argument("--count", type=int, help="inputs of each target")
    parser.add_argument("--seed", type=int, default=1, help="another one gives other inputs")
    chosen = parser.parse_args()
    unknown = sorted(set(chosen.targets) - TARGETS.keys())
    if unknown:
        parser.error(f"there is no target {unknown[0]!r}")
    if chosen.count is None and chosen.seconds == float("inf"):
        chosen.seconds = 600.0
    findings = run(
        chosen.targets or list(TARGETS), chosen.seed, seconds=chosen.seconds, count=chosen.count,
        tell=lambda text: print(text, flush=True),
    )  # fmt: skip
    raise SystemExit(1 if findings else 0)


if __name__ == "__main__":
    main()

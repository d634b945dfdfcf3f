"""`python -m health_assets_tests.hostile kills --count 50`, `… requests --count 50000`, `… collector` or `… spark --count 20`.

The exit code is 1 where a promise broke.
"""

import argparse
import tempfile
from pathlib import Path
from random import Random

from health_assets_tests.hostile.kills import STEPS, kill_in_writes
from health_assets_tests.hostile.requests import send_requests
from health_assets_tests.hostile.spark_faults import all_faults
from health_assets_tests.pipeline.test_kill import Killed
from health_assets_tests.support.collectors import kill_under_load
from health_assets_tests.support.serving_made import fill_agents, score, served, state


def main() -> None:
    """Run what is asked for, and print how it went."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["kills", "requests", "spark", "collector"])
    parser.add_argument(
        "--count",
        type=int,
        help="kills in the writes of each step (50), requests (50000), kills on Spark (20) or of a collector (100)",
    )
    parser.add_argument("--steps", nargs="*", default=STEPS, help=f"steps to kill, by default {' '.join(STEPS)}")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hostile-") as name:
        folder = Path(name)
        if chosen.what == "kills":
            killed = Killed(folder / "killed")
            for step in chosen.steps:
                done = kill_in_writes(killed, folder, step, chosen.count or 50, Random(f"{chosen.seed} {step}"))
                print(done, flush=True)
        elif chosen.what == "collector":
            print(kill_under_load(folder, chosen.count or 100, Random(chosen.seed)))
        elif chosen.what == "spark":
            for done in all_faults(folder, chosen.count or 20, chosen.seed):
                print(done, flush=True)
        else:
            fill_agents(folder / "health.duckdb", (state("fine"), score("fine")))
            with served(folder / "health.duckdb", host_agent="fine") as server:
                statuses = send_requests(server, chosen.count or 50_000, chosen.seed)
                assert server.ask("/agents/fine").status == 200
            print(f"{statuses.total():,} answers: {dict(statuses.most_common())}")


if __name__ == "__main__":
    main()

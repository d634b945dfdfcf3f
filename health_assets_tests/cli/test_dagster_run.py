"""Why a run in the user's Dagster failed, in a sentence, wherever it did."""

from collections.abc import Callable

import dagster as dg
import pytest

from health_assets.cli.dagster_run import _first_error
from health_assets_tests.support.dagster_world import QUIET


def failed(
    in_resource: Callable[[], None] = lambda: None, in_step: Callable[[], None] = lambda: None
) -> dg.ExecuteInProcessResult:
    """The result of a run that one of these fails."""

    @dg.resource
    def needed(_: dg.InitResourceContext) -> None:
        in_resource()

    @dg.op(required_resource_keys={"needed"})
    def work() -> None:
        in_step()

    @dg.job(resource_defs={"needed": needed}, executor_def=dg.in_process_executor)
    def job() -> None:
        work()

    with dg.DagsterInstance.ephemeral() as instance:
        result = job.execute_in_process(instance=instance, raise_on_error=False, run_config=QUIET)
    assert not result.success
    return result


def raising(error: BaseException) -> Callable[[], None]:
    def does() -> None:
        raise error

    return does


def test_an_error_of_a_user_is_its_sentence() -> None:
    assert _first_error(failed(in_step=raising(dg.Failure("mend the log", allow_retries=False)))) == (
        "mend the log",
        False,
    )


@pytest.mark.parametrize("place", ["in_step", "in_resource"])
def test_an_internal_error_is_said_also_where_no_step_had_begun(place: str) -> None:
    error, was_stopped = _first_error(failed(**{place: raising(ValueError("a bug"))}))
    assert error and error.startswith("internal error") and "ValueError: a bug" in error
    assert not was_stopped


@pytest.mark.parametrize("place", ["in_step", "in_resource"])
def test_a_run_that_was_interrupted_was_stopped(place: str) -> None:
    error, was_stopped = _first_error(failed(**{place: raising(KeyboardInterrupt())}))
    assert error and error.startswith("stopped ")
    assert was_stopped

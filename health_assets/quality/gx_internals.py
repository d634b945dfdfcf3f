"""Parts of Great Expectations that it does not document and this project needs.

What belongs here: reaching into the library, for version 1.24, to which `pyproject.toml` pins it; `test_gx_internals`
fails first when they move. What does not: validating (`evaluation`).

Importing this imports nothing of the library, which takes seconds.

- A kind of expectation is made by a metaclass, which registers it, and asks itself for its configuration a hundred
  times per verdict; making that anew each time took nearly half of a validation.
- A context shows progress bars unless a type that is not exported says otherwise.
"""

from typing import Any


def remembering(kind: Any) -> Any:
    """A kind of expectation that makes its configuration once, under a name of its own.

    Args:
        kind: a class of `great_expectations.expectations`.
    """
    from great_expectations.compatibility.pydantic import PrivateAttr

    def configuration(expectation: Any) -> Any:
        if expectation._configuration is None:  # noqa: SLF001
            expectation._configuration = kind.configuration.fget(expectation)  # noqa: SLF001
        return expectation._configuration  # noqa: SLF001

    # each under a name of its own, by which Great Expectations registers it
    members = {"_configuration": PrivateAttr(None), "configuration": property(configuration), "__module__": __name__}
    return type(kind)(f"Remembering{kind.__name__}", (kind,), members)


def without_progress_bars(context: Any) -> None:
    """Let a context show no progress bars."""
    from great_expectations.data_context.types.base import ProgressBarsConfig

    context.variables.progress_bars = ProgressBarsConfig(globally=False)

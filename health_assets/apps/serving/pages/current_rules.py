"""The rules of who sees what, by the targets file as it is now.

What belongs here: when the file is read again, and what holds while it cannot be used. What does not: what the rules
say (`apps.serving.history.copying_rules`), and telling the operator of a fault
(`apps.serving.refresher`).
"""

from dataclasses import dataclass

from health_assets.apps.serving.history.copying_rules import Rules
from health_assets.apps.serving.ownership import Ownership
from health_assets.apps.serving.pages.result_cache import ResultCache
from health_assets.core.errors import HealthAssetsError
from health_assets.core.file_stamps import Stamp, stamp
from health_assets.core.settings import Settings
from health_assets.core.targets import load_targets


class NoRulesError(HealthAssetsError):
    """The targets file has not been good since the server started, so nobody knows whose agents are whose."""


@dataclass(frozen=True)
class Known:
    """Rules, and what pages remember while these hold."""

    rules: Rules
    memory: ResultCache


class CurrentRules:
    """Reads the targets again when their file has changed; the last good ones hold while it cannot be used.

    Args:
        settings: where the targets are.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._read: tuple[Stamp | None] | None = None
        self._known: Known | None = None

    def now(self) -> Known:
        """The rules that hold now.

        Raises:
            NoRulesError: the file cannot be used, and never could.
        """
        path = self._settings.targets
        seen = (stamp(path) if path is not None else None,)
        if seen != self._read:
            try:
                ownership = Ownership(load_targets(path))
            except HealthAssetsError:
                if self._known is None:
                    raise NoRulesError("The targets file cannot be used; the server's log says why.") from None
            else:
                self._known = Known(
                    Rules(ownership, self._settings), ResultCache()
                )  # what somebody may see has changed
            self._read = seen
        assert self._known is not None
        return self._known

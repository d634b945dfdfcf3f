"""`alerts.yaml`: which rules are in force, which channels tell of incidents, what is silenced, when digests are due.

What belongs here: reading and checking the file. What does not: what rules mean (`rules`) and sending (`channels`).
Secrets stand in environment variables that the file names; they are looked up when a message is sent, and nowhere kept.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from health_assets.apps.alerts.periodic import DigestSchedule
from health_assets.apps.alerts.rules import RULES, Rule
from health_assets.apps.alerts.silences import SilenceWanted
from health_assets.core.errors import HealthAssetsError
from health_assets.core.terminal import printable
from health_assets.core.yaml_files import VALUE_SHOWN, mapping, read_yaml, shown, validated

Variable = Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]


class Channel(BaseModel):
    """The settings that every channel has.

    Args:
        timeout_s: most time for sending a message once, from the connection to the answer.
        max_bytes: size of the largest message that is sent; None leaves it to the receiver to refuse.
        error_texts: whether messages tell texts of errors, which are redacted and may still say anything.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    is_pager: ClassVar[bool] = False
    """Whether it keeps an alert for each incident, opened and resolved by the incident's id: it gets no groups and no
    digests."""

    timeout_s: Annotated[float, Field(gt=0, le=60)] = 10.0
    max_bytes: Annotated[int, Field(ge=4096)] | None = None
    error_texts: bool = True

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that hold its secrets."""
        return ()

    @property
    def secrets(self) -> dict[str, str]:
        """Its secrets by variable.

        Raises:
            HealthAssetsError: a variable is not set, or has characters that no address or header may have.
        """
        # a secret that comes from a file often ends with a line's end
        found = {name: os.getenv(name, "").strip() for name in self.variables}
        for name, secret in found.items():
            if not secret:
                raise HealthAssetsError(f"the environment variable {name} is not set")
            if not (secret.isascii() and secret.isprintable()):
                raise HealthAssetsError(f"the environment variable {name} has characters that cannot be sent")
        return found


class Webhook(Channel):
    """A receiver of JSON.

    Args:
        url: its address, or
        url_env: the variable that holds it.
        token_env: the variable that holds a bearer token, where it wants one.
    """

    type: Literal["webhook"]
    url: Annotated[str, Field(pattern="^https?://")] | None = None
    url_env: Variable | None = None
    token_env: Variable | None = None

    @model_validator(mode="after")
    def _has_one_address(self) -> "Webhook":
        if (self.url is None) == (self.url_env is None):
            raise ValueError("name either url or url_env")
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """Address and token."""
        return tuple(name for name in (self.url_env, self.token_env) if name)


class Chat(Channel):
    """An incoming webhook of a chat.

    Args:
        url_env: the variable that holds its address, which is a secret.
    """

    url_env: Variable

    @property
    def variables(self) -> tuple[str, ...]:
        """The address."""
        return (self.url_env,)


class Slack(Chat):
    """An incoming webhook of Slack, or of what speaks like it."""

    type: Literal["slack"]


class Teams(Chat):
    """A webhook of Microsoft Teams' Workflows, which takes Adaptive Cards.

    Args:
        max_bytes: size of the largest message; Teams takes 28 KB.
    """

    type: Literal["teams"]
    max_bytes: Annotated[int, Field(ge=4096)] | None = 28_000


ServiceUrl = Annotated[str, Field(pattern=r"^https?://[^?#@\s]+$")]
"""Address of a service, to which paths are added; no place for secrets."""


class Pager(Channel):
    """A service that pages people, and keeps an alert for each incident.

    Args:
        key_env: the variable that holds the key of the integration.
        url: where the service is.
    """

    is_pager: ClassVar[bool] = True

    key_env: Variable
    url: ServiceUrl

    @property
    def variables(self) -> tuple[str, ...]:
        """The key."""
        return (self.key_env,)


class PagerDuty(Pager):
    """A service of PagerDuty with an integration of the Events API v2."""

    type: Literal["pagerduty"]
    url: ServiceUrl = "https://events.pagerduty.com"


class Opsgenie(Pager):
    """An API integration of Opsgenie, or of Jira Service Management, which has the same API below another address."""

    type: Literal["opsgenie"]
    url: ServiceUrl = "https://api.opsgenie.com"


class Email(Channel):
    """An SMTP server.

    Args:
        host: its name.
        port: its port.
        security: `starttls`, `tls` from the start, or `none` for a server on the same machine.
        username: name to log in by; without one nobody logs in.
        password_env: the variable that holds the password.
        sender: address that the mail is from.
        to: addresses that it goes to.
    """

    type: Literal["email"]
    host: Annotated[str, Field(min_length=1)]
    port: Annotated[int, Field(ge=1, le=65535)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    username: str | None = None
    password_env: Variable | None = None
    sender: Annotated[str, Field(pattern="^[^@\\s]+@[^@\\s]+$")]
    to: Annotated[
        tuple[Annotated[str, Field(pattern="^[^@\\s]+@[^@\\s]+$")], ...],
        BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
        Field(min_length=1),
    ]

    @model_validator(mode="after")
    def _logs_in_safely(self) -> "Email":
        if (self.username is None) != (self.password_env is None):
            raise ValueError("username and password_env belong together")
        if self.username is not None and self.security == "none":
            raise ValueError("a password is not sent in the clear; use starttls or tls")
        return self

    @property
    def variables(self) -> tuple[str, ...]:
        """The password."""
        return (self.password_env,) if self.password_env else ()


CHANNELS: dict[str, type[Channel]] = {
    "webhook": Webhook,
    "slack": Slack,
    "teams": Teams,
    "pagerduty": PagerDuty,
    "opsgenie": Opsgenie,
    "email": Email,
}


class Alerts(BaseModel):
    """The rules in force, and the channels by name.

    Args:
        rules: the rules.
        channels: the channels.
        digest_above: so many messages that wait for a channel are sent one by one; more are sent as one.
        silences: the silences that stand in the file.
        digest: when the periodic digest is sent; None where none is wanted.
    """

    model_config = ConfigDict(frozen=True)

    rules: tuple[Any, ...] = tuple(rule() for rule in RULES.values())
    channels: dict[str, Any] = {}
    digest_above: int = 10
    silences: tuple[SilenceWanted, ...] = ()
    digest: DigestSchedule | None = None

    def channels_of(self, rule: str) -> tuple[str, ...]:
        """Names of the channels that tell of a rule's incidents: those it names, else all, pagers if it is critical."""
        named = next((one for one in self.rules if one.name == rule), None)
        if named is not None and named.channels:
            return named.channels
        may_page = named is not None and named.severity == "critical"
        return tuple(name for name, channel in self.channels.items() if may_page or not channel.is_pager)

    def channels_of_digest(self) -> tuple[str, ...]:
        """Names of the channels that send the periodic digest."""
        own = self.digest.channels if self.digest else ()
        return own or tuple(name for name, channel in self.channels.items() if not channel.is_pager)


SECTIONS = ("rules", "channels", "digest_above", "silences", "digest")
MOST_SILENCES = 1000


def load_alerts(path: Path | None) -> Alerts:
    """Read `alerts.yaml`; without one, every rule with its defaults and no channel.

    Raises:
        HealthAssetsError: the file is missing or not YAML, or a key is unknown or its value impossible.
    """
    if path is None:
        return Alerts()
    document = mapping(path, "the file", read_yaml(path, "alerts file"), is_secret=True)
    if unknown := sorted(set(document) - set(SECTIONS)):
        raise HealthAssetsError(f"{path}: unknown section {shown(unknown[0])}; there are {', '.join(SECTIONS)}")
    channels = {
        name: _channel(path, name, mapping(path, f"channel {printable(name, VALUE_SHOWN)}", values, is_secret=True))
        for name, values in mapping(path, "channels", document.get("channels"), is_secret=True).items()
    }
    rules = _rules(path, mapping(path, "rules", document.get("rules"), is_secret=True))
    for rule in rules:
        _require_channels(path, f"rule {rule.name}", rule.channels, channels)
    digest = _digest(path, document.get("digest"))
    _require_channels(path, "digest", digest.channels if digest else (), channels)
    if digest and any(channels[name].is_pager for name in digest.channels):
        raise HealthAssetsError(f"{path}: digest: channels: a pager takes no digest")
    if digest and channels and all(channel.is_pager for channel in channels.values()):
        raise HealthAssetsError(f"{path}: digest: no channel takes it, since a pager takes none")
    digest_above = document.get("digest_above", 10)
    if not isinstance(digest_above, int) or isinstance(digest_above, bool) or digest_above < 1:
        raise HealthAssetsError(f"{path}: digest_above: must be a whole number from 1 on")
    return Alerts(
        rules=rules,
        channels=channels,
        digest_above=digest_above,
        silences=_silences(path, document.get("silences")),
        digest=digest,
    )


def _require_channels(path: Path, owner: str, named: Sequence[str], channels: Mapping[str, Channel]) -> None:
    if not set(named) <= set(channels):
        there_are = ", ".join(printable(name, VALUE_SHOWN) for name in channels) or "none"
        raise HealthAssetsError(f"{path}: {owner}: channels: one is not there; there are {there_are}")


def _digest(path: Path, given: object) -> DigestSchedule | None:
    """The schedule of the digest; none where the file has none, or says `off`."""
    if given is None or given is False:
        return None
    return validated(path, "digest", DigestSchedule, mapping(path, "digest", given, is_secret=True), is_secret=True)


def _silences(path: Path, given: object) -> tuple[SilenceWanted, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise HealthAssetsError(f"{path}: silences must be a list")
    if len(given) > MOST_SILENCES:
        raise HealthAssetsError(f"{path}: silences: there are more than {MOST_SILENCES:,}")
    found = []
    for number, values in enumerate(given, 1):
        owner = f"silence {number}"
        own = mapping(path, owner, values, is_secret=True)
        found.append(validated(path, owner, SilenceWanted, own, is_secret=True))
    return tuple(found)


def _rules(path: Path, given: dict[str, Any]) -> tuple[Rule, ...]:
    """Every rule with its defaults, but those switched off and what the file sets."""
    if unknown := sorted(set(given) - set(RULES)):
        raise HealthAssetsError(f"{path}: rules: unknown rule {shown(unknown[0])}; there are {', '.join(RULES)}")
    chosen = []
    for name, kind in RULES.items():
        values = given.get(name)
        if values is False:
            continue
        own = {} if values is None or values is True else mapping(path, f"rule {name}", values, is_secret=True)
        chosen.append(_rule(path, name, kind, own))
    return tuple(chosen)


def _rule(path: Path, name: str, kind: type[Rule], own: dict[str, Any]) -> Rule:
    """A rule; an error shows a value that is a number, and no text, which may be a secret in the wrong place."""
    has_text = any(not isinstance(value, int | float) for value in own.values())
    return validated(path, f"rule {name}", kind, own, is_secret=has_text)


def _channel(path: Path, name: str, values: dict[str, Any]) -> Channel:
    owner = f"channel {printable(name, VALUE_SHOWN)}"
    given = values.get("type")
    kind = CHANNELS.get(given) if isinstance(given, str) else None
    if kind is None:
        found = ", and is not given" if given is None else ""
        raise HealthAssetsError(f"{path}: {owner}: type: must be one of {', '.join(CHANNELS)}{found}")
    return validated(path, owner, kind, values, is_secret=True)

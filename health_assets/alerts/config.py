"""`alerts.yaml`: which rules are in force and which channels tell of incidents.

What belongs here: reading and checking the file. What does not: what rules mean (`rules`) and sending (`channels`).
Secrets stand in environment variables that the file names; they are looked up when a message is sent, and nowhere kept.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from health_assets.alerts.rules import RULES, Rule
from health_assets.errors import HealthAssetsError
from health_assets.yaml_files import mapping, read_yaml, validated

Variable = Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]


class Channel(BaseModel):
    """What every channel has.

    Args:
        timeout_s: how long to wait for each answer.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    timeout_s: Annotated[float, Field(gt=0, le=60)] = 10.0

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


class Slack(Channel):
    """An incoming webhook of Slack, or of what speaks like it.

    Args:
        url_env: the variable that holds its address, which is a secret.
    """

    type: Literal["slack"]
    url_env: Variable

    @property
    def variables(self) -> tuple[str, ...]:
        """The address."""
        return (self.url_env,)


class Email(Channel):
    """An SMTP server.

    Args:
        host: its name.
        port: its port.
        security: `starttls`, `tls` from the start, or `none` for a server on the same machine.
        username: who logs in; without one nobody does.
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


CHANNELS: dict[str, type[Channel]] = {"webhook": Webhook, "slack": Slack, "email": Email}


class Alerts(BaseModel):
    """The rules in force, and the channels by name.

    Args:
        rules: the rules.
        channels: the channels.
        digest_above: so many messages that wait for a channel are sent one by one; more are sent as one.
    """

    model_config = ConfigDict(frozen=True)

    rules: tuple[Any, ...] = tuple(rule() for rule in RULES.values())
    channels: dict[str, Any] = {}
    digest_above: int = 10

    def channels_of(self, rule: str) -> tuple[str, ...]:
        """Names of the channels that tell of a rule's incidents."""
        own = next((one.channels for one in self.rules if one.name == rule), ())
        return own or tuple(self.channels)


def load_alerts(path: Path | None) -> Alerts:
    """Read `alerts.yaml`; without one, every rule with its defaults and no channel.

    Raises:
        HealthAssetsError: the file is missing or not YAML, or a key is unknown or its value impossible.
    """
    if path is None:
        return Alerts()
    document = mapping(path, "the file", read_yaml(path, "alerts file"))
    if unknown := sorted(set(document) - {"rules", "channels", "digest_above"}):
        raise HealthAssetsError(f"{path}: unknown section {unknown[0]!r}; use 'rules', 'channels' and 'digest_above'")
    channels = {
        name: _channel(path, name, mapping(path, f"channel {name}", values, is_secret=True))
        for name, values in mapping(path, "channels", document.get("channels"), is_secret=True).items()
    }
    rules = _rules(path, mapping(path, "rules", document.get("rules")))
    for rule in rules:
        if lost := sorted(set(rule.channels) - set(channels)):
            raise HealthAssetsError(f"{path}: rule {rule.name}: channels: there is no channel {lost[0]!r}")
    digest_above = document.get("digest_above", 10)
    if not isinstance(digest_above, int) or isinstance(digest_above, bool) or digest_above < 1:
        raise HealthAssetsError(f"{path}: digest_above: must be a whole number from 1 on, got {digest_above!r}")
    return Alerts(rules=rules, channels=channels, digest_above=digest_above)


def _rules(path: Path, given: dict[str, Any]) -> tuple[Rule, ...]:
    """Every rule with its defaults, but those switched off and what the file sets."""
    if unknown := sorted(set(given) - set(RULES)):
        raise HealthAssetsError(f"{path}: rules: unknown rule {unknown[0]!r}; there are {', '.join(RULES)}")
    chosen = []
    for name, kind in RULES.items():
        values = given.get(name)
        if values is False:
            continue
        own = {} if values is None or values is True else mapping(path, f"rule {name}", values)
        chosen.append(validated(path, f"rule {name}", kind, own))
    return tuple(chosen)


def _channel(path: Path, name: str, values: dict[str, Any]) -> Channel:
    kind = CHANNELS.get(str(values.get("type")))
    if kind is None:
        types = ", ".join(CHANNELS)
        raise HealthAssetsError(f"{path}: channel {name}: type: must be one of {types}, got {values.get('type')!r}")
    return validated(path, f"channel {name}", kind, values, is_secret=True)

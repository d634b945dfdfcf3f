"""Places of warehouses, as their URLs say; apart from the stores, so that asking costs no import of an engine.

A PostgreSQL URL goes to libpq as it is, so it is read here as libpq reads it, and by SQLAlchemy's `make_url` only for
SQLAlchemy. That one takes a password with an unescaped slash, with which libpq would tell of it as of a port; it keeps
a password in the decoded form alone, while messages of the driver repeat the URL's; and it shows one in the query.
"""

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import sqlalchemy as sa

from health_assets.core.errors import HealthAssetsError
from health_assets.core.private_files import make_private_folder
from health_assets.core.settings import Settings

_POSTGRES = re.compile(r"postgres(?:ql)?(?:\+\w+)?://")
_POSTGRES_MISSPELT = re.compile(r"postgres(?:ql)?(?:\+\w+)?:", re.IGNORECASE)
UNREADABLE = (
    "the PostgreSQL URL of the warehouse cannot be read; it is postgresql://user:password@host:5432/database, "
    "with special characters of user and password as %xx"
)

_OPTION = "[^;=/?#]"
"""A sign of an option's name or value; the client takes others for the end of one, and shows them."""
_CLUSTER = re.compile(
    rf"sc://(?P<host>[\w.-]+|\[[0-9a-fA-F:]+\])(?::(?P<port>\d{{1,5}}))?(?:/(?:;{_OPTION}+={_OPTION}*)*)?"
)
CLUSTER_PORT = 15002
UNREADABLE_CLUSTER = (
    "the Spark Connect URL of the warehouse cannot be read; it is sc://host:15002, with options like a token behind it "
    "as /;token=…, and signs like = in them as %3D"
)
MANIFEST = "manifest.json"
"""The file of a folder of published tables that names all others."""
PUBLISHED_SUFFIX = ".published"
WITHOUT_LEDGER = "a warehouse on Spark needs a lake and a ledger: set HEALTH_LAKE and HEALTH_LEDGER"


def is_postgres(url: str) -> bool:
    """Whether a URL names a PostgreSQL database; `postgresql+psycopg://` as SQLAlchemy writes it is the same."""
    return bool(_POSTGRES.match(url))


def is_spark(url: str) -> bool:
    """Whether a URL names a Spark cluster, as Spark Connect writes it."""
    return url[:3].lower() == "sc:"  # misspelt, too: as a path, it would be shown with its token


def cluster_of(url: str) -> tuple[str, int]:
    """Host and port of a Spark Connect URL, which is not to be shown whole.

    Raises:
        HealthAssetsError: the URL cannot be read.
    """
    found = _CLUSTER.fullmatch(url)
    if found is None:
        raise HealthAssetsError(UNREADABLE_CLUSTER)
    return found["host"].strip("[]"), int(found["port"] or CLUSTER_PORT)


def ledger_of(settings: Settings) -> str:
    """The database that keeps the account of a warehouse: of a cluster its ledger, else the warehouse itself.

    Raises:
        HealthAssetsError: a cluster is named without a ledger.
    """
    if not is_spark(settings.warehouse):
        return settings.warehouse
    if settings.ledger is None:
        raise HealthAssetsError(WITHOUT_LEDGER)
    return settings.ledger


def path_of(url: str) -> Path:
    """The file that a warehouse's URL (`duckdb:///path`) or plain path names.

    Raises:
        HealthAssetsError: the URL names an engine that is not supported, or no file.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme != "duckdb":
        raise HealthAssetsError(
            f"a warehouse of {scheme}:// is not supported; name a DuckDB file, duckdb:///path, postgresql://host/db "
            "or sc://host:port"
        )
    if _POSTGRES_MISSPELT.match(url):
        raise HealthAssetsError(UNREADABLE)  # as a path, it would be shown with its password
    path = Path(rest.removeprefix("/") if separator else url)
    if path.name == ":memory:":
        raise HealthAssetsError("a warehouse in memory would be forgotten between two steps; name a file")
    return path


def account_file(settings: Settings) -> Path | None:
    """The file that changes whenever a warehouse does; None for a database, which has none.

    Raises:
        HealthAssetsError: as `ledger_of` and `path_of`.
    """
    account = ledger_of(settings)
    if is_postgres(account):
        return None
    path = path_of(account)
    return path / MANIFEST if is_published(path) else path


def published_folder(settings: Settings) -> Path | None:
    """The folder in which the tables are published: the one that is set, else one beside a DuckDB file.

    Raises:
        HealthAssetsError: as `path_of`.
    """
    if settings.published is not None:
        return None if settings.published == "off" else Path(settings.published)
    if is_postgres(settings.warehouse) or is_spark(settings.warehouse):
        return None
    path = path_of(settings.warehouse)
    return None if is_published(path) else path.with_name(path.name + PUBLISHED_SUFFIX)


def as_published(settings: Settings) -> Settings:
    """The settings of who reads the published tables where they are published, and else the warehouse.

    The folder is made where there is none, so that its readers wait for what will be there.

    Raises:
        HealthAssetsError: the folder cannot be made, or as `path_of`.
    """
    folder = published_folder(settings)
    if folder is None:
        return settings
    try:
        make_private_folder(folder)
    except OSError as error:
        raise HealthAssetsError(
            f"cannot make {folder}, where the tables are published: {error.strerror}; "
            "HEALTH_PUBLISHED names another folder, or off"
        ) from error
    return settings.model_copy(update={"warehouse": str(folder)})


def is_published(path: Path) -> bool:
    """Whether a path is a folder of tables that are published there or will be; a warehouse is a file."""
    return path.is_dir() or (path.suffix == PUBLISHED_SUFFIX and not path.exists())


def warehouse_name(url: str) -> str:
    """The path of a file; of a database its name, since the same one may be reached by several hosts and users."""
    return database_of(url).name.partition(" on ")[0] if is_postgres(url) else str(path_of(url).resolve())


@dataclass(frozen=True)
class Database:
    """A PostgreSQL database, as a URL names it.

    Args:
        uri: the URL as libpq reads it, password and all; not to be shown.
        name: the database and its host, to be shown.
        password: the password as it stands in the URL, where it has one.
    """

    uri: str
    name: str
    password: str | None

    @property
    def sqlalchemy_url(self) -> sa.URL:
        """The URL as SQLAlchemy reads it; not to be shown, since a password of its query would be."""
        return sa.make_url(self.uri).set(drivername="postgresql+psycopg")

    def without_password(self, text: str) -> str:
        """A message of the driver, which may repeat the URL, on one line and without the password."""
        for secret in {self.password, unquote(self.password or "")} - {None, ""}:
            text = text.replace(str(secret), "…")
        return " ".join(text.split())


def database_of(url: str) -> Database:
    """The PostgreSQL database that a URL names.

    Raises:
        HealthAssetsError: the URL cannot be read.
    """
    uri = _POSTGRES.sub("postgresql://", url, count=1)
    try:
        parts = urlsplit(uri)
        port, given = parts.port, parse_qs(parts.query)
    except ValueError:
        parts = None
    # an @ in a password that is not escaped would make the rest of it a part of the host's name
    if parts is None or parts.netloc.count("@") > 1 or "#" in uri:
        raise HealthAssetsError(UNREADABLE)
    host = parts.hostname or given.get("host", ["localhost"])[0]
    database = parts.path.removeprefix("/") or given.get("dbname", [parts.username or "of this user"])[0]
    name = f"{unquote(database)} on {unquote(host)}" + (f":{port}" if port else "")
    in_query = (pair.removeprefix("password=") for pair in parts.query.split("&") if pair.startswith("password="))
    return Database(uri, name, parts.password or next(in_query, None))

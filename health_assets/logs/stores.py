"""Places of raw logs: listing and opening them, in a folder of this machine or in an object store.

What belongs here: names, sizes, times and bytes of files. What does not: what is in them (`files`, `formats`).

An object store is anything that fsspec has a name for (`s3://`, `gs://`, `az://`, ...); the packages for the common
ones are extras. Retries, credentials and endpoints are the store library's business, set by its own environment
variables or fsspec's configuration.
"""

import errno
import hashlib
import os
import re
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from health_assets.core.errors import HealthAssetsError, NoRawRootError, UnreadableFilesError
from health_assets.core.judges import NOBODY, Trust, Writers
from health_assets.core.raw_roots import PASSWORD, RawRoot, as_text, shown, without_password
from health_assets.logs import fsspec_loop
from health_assets.logs.folders import Walk, within_calendar
from health_assets.logs.safe_open import open_file, status_of, why_not

if TYPE_CHECKING:
    from health_assets.logs.formats.format_settings import FormatSettings

_ROTATED = r"([.-]\d+|[.-]\d{4}-\d\d-\d\d([_T-]\d\d([-:]?\d\d){0,2})?)?(\.gz(\.\d+)?)?$"
"""The ending that log rotation gives a name: `.1`, or a date as `-20260607` or `.2026-06-07_13`, and `.gz`, `.gz.1`."""
ENDINGS = ("jsonl", "ndjson", "json", "traj")
"""Endings of names that count; a name may have the ending of log rotation behind them, and `.gz`."""
LOG_NAME = re.compile(rf"(\.({'|'.join(ENDINGS)}){_ROTATED}|\.eval$)", re.IGNORECASE)
LINES_NAME = re.compile(rf"\.(jsonl|ndjson){_ROTATED}", re.IGNORECASE)
_BESIDE_LOGS = "tmp|temp|swp|part|partial|crc|md5|sha1|sha256|lock|idx"
"""Endings of files that programs keep beside logs, or write before they give them their name."""
NEAR_MISS = re.compile(
    rf"\.((log|txt|out|jsonlines){_ROTATED}|({'|'.join(ENDINGS)})(~|[.-](?!({_BESIDE_LOGS})$)[\w.:-]+)$)", re.IGNORECASE
)
"""Names that do not count and that logs often have."""
MOST_NEAR_MISSES = 20
"""Files of such a name that are told."""
NAMES_THAT_COUNT = (
    f"names that count end in {', '.join(f'.{ending}' for ending in ENDINGS)} or .eval, also with .1, -20260607, "
    ".2026-06-07 or .gz behind"
)
EXTRAS = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}
TIME_FIELDS = ("LastModified", "last_modified", "mtime", "updated", "modified", "created")
TAG_FIELDS = ("ETag", "etag", "md5Hash", "content_md5")
READ_AHEAD_BYTES = 8 << 20
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


Stamp = tuple[int, int, int | None]
"""Size, modification time and change time of a file, times in nanoseconds since 1970.

Any program can set the modification time, so a file that was rewritten may have the old one; the change time is set by
the system alone. It is None in an object store, and in what an older version remembered, where it counts as any.
"""


def is_same_stamp(one: Stamp, other: Stamp) -> bool:
    """Whether two stamps tell of no change between them."""
    return one[:2] == other[:2] and (one[2] == other[2] or None in (one[2], other[2]))


@dataclass(frozen=True, kw_only=True)
class RawFile:
    """A raw log as it lies below the raw root.

    Args:
        source_file: path relative to the raw root, with forward slashes; its name in every table.
        path: where it is, behind any link: in a folder, or in the store.
        size_bytes: size when it was listed.
        modified_ns: modification time when it was listed, nanoseconds since 1970.
        changed_ns: when the system last saw its bytes, owner, mode or name change; None in an object store.
        root: the folder that no link may lead out of when it is opened; by default its own. None in an object store.
        writers: who can write it, or put another in its place.
        store: the object store's file system; None for a folder of this machine.
        format_settings: settings of formats; None for the defaults.
    """

    source_file: str
    path: Path | str
    size_bytes: int
    modified_ns: int
    changed_ns: int | None = None
    root: Path | None = None
    writers: Writers = None
    store: Any = None
    format_settings: "FormatSettings | None" = None

    @property
    def stamp(self) -> Stamp:
        """Size, modification time and change time, by which a changed file is known."""
        return self.size_bytes, self.modified_ns, self.changed_ns

    def stamp_now(self) -> Stamp | None:
        """The stamp as it is now; None of an object of a store, and of a file that cannot be looked at any more."""
        if self.store is not None:
            return None
        try:
            found = status_of(*self._place)
        except OSError:  # which whoever reads it is told
            return None
        return found.st_size, within_calendar(found.st_mtime_ns), found.st_ctime_ns

    @property
    def _place(self) -> tuple[Path, str]:
        """The folder that it is opened beneath, and its path there."""
        path = Path(self.path)
        root = self.root or path.parent
        return root, path.relative_to(root).as_posix()

    @contextmanager
    def opened(self) -> Iterator[BinaryIO]:
        """The file's bytes, from the start; it can be sought in. An object is fetched as it is read, in ranges.

        Raises:
            HealthAssetsError: it cannot be opened or read.
        """
        if self.store is None:
            try:
                with FileIO(self.path, opener=lambda *_: open_file(*self._place)) as raw:
                    yield cast(BinaryIO, raw)
            except OSError as error:
                raise self._unreadable(error) from error
        else:
            with (
                self.told(),
                self.store.open(
                    self.path, "rb", block_size=READ_AHEAD_BYTES, cache_type="readahead", size=self.size_bytes
                ) as raw,
            ):
                yield raw

    @property
    def takes_requests(self) -> bool:
        """Whether ranges of it may be asked for side by side: the library of its store can do that."""
        return fsspec_loop.takes_requests(self.store)

    def requested(self, start: int, end: int) -> Future[bytes]:
        """A range of its bytes, half-open, which is on its way; only of one that takes requests."""
        return fsspec_loop.requested(self.store, str(self.path), start, end)

    def told(self) -> AbstractContextManager[None]:
        """Within the block, whatever a store's library raises becomes one sentence that names the file.

        Raises:
            HealthAssetsError: the block could not read the file.
        """
        return _told("read", f"the raw log {self.store.unstrip_protocol(self.path)}")

    def _unreadable(self, error: OSError) -> HealthAssetsError:
        return HealthAssetsError(f"cannot read the raw log {as_text(Path(self.path))}: {why_not(error)}")

    def beginning(self, count: int) -> bytes:
        """The file's first bytes, at most so many.

        Raises:
            HealthAssetsError: it cannot be opened or read.
        """
        count = min(count, self.size_bytes)
        if self.store is not None:
            with self.told():
                return cast(bytes, self.store.cat_file(self.path, start=0, end=count)) if count else b""
        try:
            with os.fdopen(open_file(*self._place), "rb", buffering=0) as raw:
                return cast(bytes, raw.read(count))
        except OSError as error:
            raise self._unreadable(error) from error


def _cause(error: Exception, url: str) -> Exception | None:
    """The library's error, unless it may repeat the password."""
    return None if PASSWORD.search(url) else error


Faults = dict[str, str]
"""By the name of a raw log, or of a folder with a slash behind, why it cannot be read, as a sentence."""


def list_files(
    root: RawRoot,
    unreadable: Faults | None = None,
    file_warnings: dict[str, str] | None = None,
    format_settings: "FormatSettings | None" = None,
) -> list[RawFile]:
    """Every raw log below `root`, at any depth and through links that do not lead out of it, sorted by name.

    Args:
        root: where to look.
        unreadable: is filled with what lies there and cannot be read; without it, that is an error.
        file_warnings: is filled with what is odd about names, times and links, by the file's name; a name that is
            near those of logs is odd, too.
        format_settings: as of `RawFile`.

    Raises:
        NoRawRootError: there is no such folder, or nothing at the URL.
        HealthAssetsError: the root is not a folder; the object store cannot be reached, refuses, or needs a package
            that is not installed.
        UnreadableFilesError: a log or folder cannot be read, and `unreadable` was not given.
    """
    faults: Faults = {}
    file_warnings = {} if file_warnings is None else file_warnings
    found = _in_folder(root, faults, file_warnings) if isinstance(root, Path) else _in_store(root, file_warnings)
    files = sorted(
        (replace(file, format_settings=format_settings) for file in found), key=lambda file: file.source_file
    )
    faults = dict(sorted(faults.items()))
    if faults and unreadable is None:
        raise UnreadableFilesError(faults)
    if unreadable is not None:
        unreadable |= faults
    return files


def find_file(root: RawRoot, source_file: str) -> RawFile | None:
    """The raw log of this name; None where there is none.

    Nothing is listed, unless the name leads through links. Who can write it and settings of formats are not looked at.

    Raises:
        NoRawRootError: there is no such folder.
        HealthAssetsError: nobody may look at it; the object store cannot be reached, or refuses.
    """
    if not isinstance(root, Path):
        return _object_of(root, source_file)
    if not root.exists():
        raise _no_root(root)
    path = root / source_file
    try:
        status = status_of(root, source_file)
    except FileNotFoundError:
        # a name that is not UTF-8 is written with escapes, so it is none to look up by
        return _walked_to(root, source_file) if "\\" in source_file else None
    except OSError as error:
        if error.errno in (errno.ENOTDIR, errno.ELOOP):  # as of a link, to who follows none
            return _walked_to(root, source_file)
        raise HealthAssetsError(f"cannot read the raw log {as_text(path)}: {why_not(error)}") from error
    if stat.S_ISLNK(status.st_mode):
        return _walked_to(root, source_file)
    if not stat.S_ISREG(status.st_mode):
        return None
    return RawFile(
        source_file=source_file,
        path=path,
        size_bytes=status.st_size,
        modified_ns=within_calendar(status.st_mtime_ns),
        changed_ns=status.st_ctime_ns,
        root=root,
    )


def _walked_to(root: Path, source_file: str) -> RawFile | None:
    faults: Faults = {}
    files = list_files(root, faults)
    if is_among(faults, source_file):
        raise HealthAssetsError(reason_of(faults, source_file))
    return next((file for file in files if file.source_file == source_file), None)


def _object_of(url: str, source_file: str) -> RawFile | None:
    with _told("look at", f"the raw log {source_file} in {url}", url):
        store, prefix = _connected(url)
        store.invalidate_cache()
        try:
            details = store.info(f"{prefix}/{source_file}")
        except FileNotFoundError:
            return None
    return _object(details["name"], source_file, details, store) if details["type"] == "file" else None


def _object(path: str, source_file: str, details: dict[str, Any], store: Any) -> RawFile:
    return RawFile(
        source_file=source_file,
        path=path,
        size_bytes=details["size"],
        modified_ns=_modified_ns(path, details),
        writers=NOBODY,
        store=store,
    )


def names_of(files: Iterable[RawFile]) -> set[str]:
    """The names by which the ledger knows these files."""
    return {file.source_file for file in files}


def is_among(unreadable: Collection[str], source_file: str) -> bool:
    """Whether a file is among what cannot be read, by its own name or by that of a folder above it."""
    return source_file in unreadable or any(name.endswith("/") and source_file.startswith(name) for name in unreadable)


def reason_of(unreadable: Mapping[str, str], source_file: str) -> str:
    """The reason for which a file cannot be read; that of a folder above it where it has none of its own."""
    if source_file in unreadable:
        return unreadable[source_file]
    return next(why for name, why in unreadable.items() if is_among([name], source_file))


def is_trusted(file: RawFile, trust: Trust) -> bool:
    """Whether a log's judgements count as whose they say they are."""
    return trust.covers(file.source_file, file.writers)


def distrusted(files: Collection[RawFile], trust: Trust) -> dict[str, str]:
    """Tell of each log that has a trusted name why its judgements count as the agents' own all the same."""
    named = [(file, why) for file in files if trust.names(file.source_file) and (why := trust.why_not(file.writers))]
    return {file.source_file: f"its judgements count as the agents' own, since {why}" for file, why in named}


def require_root(root: RawRoot) -> None:
    """Make sure that there is something to list; of an object store, one request finds out.

    Raises:
        NoRawRootError: there is no such folder, or nothing at the URL.
        HealthAssetsError: the object store cannot be reached, refuses, or needs a package that is not installed.
    """
    if isinstance(root, Path):
        is_there = root.exists()
    else:
        with _told("look at", f"the raw logs in {root}", root):
            store, prefix = _connected(root)
            store.invalidate_cache()
            is_there = store.exists(prefix)
    if not is_there:
        raise _no_root(root)


def _no_root(root: RawRoot) -> NoRawRootError:
    what = f"there is no raw root {root}" if isinstance(root, Path) else f"there is nothing at {shown(root)}"
    return NoRawRootError(f"{what}; set HEALTH_RAW or --raw to where the logs are")


def _in_folder(root: Path, faults: Faults, file_warnings: dict[str, str]) -> list[RawFile]:
    if not root.exists():
        raise _no_root(root)
    if not root.is_dir():
        raise HealthAssetsError(f"the raw root {root} is not a folder; set HEALTH_RAW or --raw to where the logs are")

    walk = Walk(root, LOG_NAME.search, NEAR_MISS.search)
    files = [
        RawFile(
            source_file=file.name,
            path=file.path,
            size_bytes=file.size_bytes,
            modified_ns=file.modified_ns,
            changed_ns=file.changed_ns,
            root=root,
            writers=file.writers,
        )
        for file in walk.files()
    ]
    faults |= walk.faults
    file_warnings |= _passed_over(walk.near_misses) | walk.file_warnings
    return files


def _passed_over(names: Sequence[str]) -> dict[str, str]:
    return dict.fromkeys(names[:MOST_NEAR_MISSES], f"it is not read, for its name: {NAMES_THAT_COUNT}")


def _in_store(url: str, file_warnings: dict[str, str]) -> list[RawFile]:
    with _told("list", f"the raw logs in {url}", url):
        store, prefix = _connected(url)
        store.invalidate_cache()  # what was listed before is of no interest
        found = store.find(prefix, detail=True)
        is_there = bool(found) or store.exists(prefix)
        named = {
            path.removeprefix(prefix).lstrip("/"): path for path, details in found.items() if details["type"] == "file"
        }
        logs = [_object(path, name, found[path], store) for name, path in named.items() if LOG_NAME.search(name)]
    file_warnings |= _passed_over(
        sorted(name for name in named if NEAR_MISS.search(name) and not LOG_NAME.search(name))
    )
    if not is_there:
        raise _no_root(url)
    if prefix in found:
        raise HealthAssetsError(f"the raw root {shown(url)} is a file; name the prefix above it")
    return logs


def _connected(url: str) -> tuple[Any, str]:
    protocol = url.partition(":")[0]
    try:
        import fsspec  # a raw root in a folder does without

        fsspec_loop.stop_the_thread_at_exit()
        store, prefix = fsspec.core.url_to_fs(url)
    except ImportError as error:
        extra = EXTRAS.get(protocol)
        install = f"install health-assets[{extra}]" if extra else str(error)
        sentence = f"the raw root {url} needs a package that is not installed: {install}"
        raise HealthAssetsError(without_password(sentence, url)) from _cause(error, url)
    except ValueError as error:
        sentence = f"the raw root {url} is not a URL that can be read: {_sentence(error)}"
        raise HealthAssetsError(without_password(sentence, url)) from _cause(error, url)
    return store, prefix.rstrip("/")


def _modified_ns(path: str, details: dict[str, Any]) -> int:
    """The store's time of the last change; its tag of the content tells changes within one tick of that time.

    Stores keep whole seconds or milliseconds. What lies below is filled from the tag, so that an object that was
    replaced by another of equal size within a tick has another stamp.
    """
    value = next((details[name] for name in TIME_FIELDS if details.get(name)), None)
    if value is None:
        raise HealthAssetsError(f"the store does not tell when {path} was last changed")
    if isinstance(value, str):
        value = datetime.fromisoformat(value)
    if isinstance(value, datetime):
        aware = value if value.tzinfo else value.replace(tzinfo=UTC)
        microseconds = (aware - EPOCH) // timedelta(microseconds=1)
    else:
        microseconds = int(value * 1e6)
    tag = next((details[name] for name in TAG_FIELDS if details.get(name)), None)
    below = int.from_bytes(hashlib.sha256(str(tag).encode()).digest()[:8]) % 1_000_000 if tag else 0
    return within_calendar(microseconds // 1000 * 1_000_000 + (below if tag else microseconds % 1000 * 1000))


@contextmanager
def _told(verb: str, name: str, url: str = "") -> Iterator[None]:
    """Turn whatever the store's library raises into one sentence; there is no common class of its errors.

    Args:
        verb: the act that failed.
        name: to what.
        url: the raw root, whose password is not told.
    """
    try:
        yield
    except (HealthAssetsError, GeneratorExit, KeyboardInterrupt):
        raise
    except Exception as error:
        sentence = f"cannot {verb} {name}: {_sentence(error)}"
        raise HealthAssetsError(without_password(sentence, url)) from _cause(error, url)


def _sentence(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, FileNotFoundError):
        return f"it is not there ({text})"
    return text if type(error).__name__ in text or isinstance(error, OSError) else f"{type(error).__name__}: {text}"

"""Tables about the warehouse itself: the files and roots it was filled from, its hours and its version."""

from datetime import datetime

from sqlmodel import SQLModel

from health_assets.schema.columns import Hourly, at, count, text


class RawFile(SQLModel, table=True):
    """The raw logs that were read, as they were then; a file is read again only when it differs."""

    __tablename__ = "raw_files"

    source_file: str = text("Raw log, relative to the raw root.", key=True)
    size_bytes: int = count("Size when it was read.")
    modified_ns: int = count("Modification time when it was read, nanoseconds since 1970.")
    changed_ns: int | None = count(
        "Change time when it was read, which only the system sets, nanoseconds since 1970; null in an object store and "
        "of files that an older version read."
    )
    lines: int = count("Records in it: lines that were not blank, and where a line holds spans, these.")
    rejected: int = count("Records among them that were rejected.")
    plain_bytes: int | None = count("Bytes that it holds, unpacked.")
    content_digest: str | None = text("Digest of these bytes, by which the log is known under another name.")
    head_digests: str | None = text("Digests of its first 1, 2, 4, ... 4096 bytes, as far as it has so many.")
    copy_of: str | None = text("Raw log that begins with all that this one holds, and counts in its place.")
    gone_at: datetime | None = at("When a run first found it gone, without its lines elsewhere.", nullable=True)
    future_at: datetime | None = at(
        "Earliest time of those that were rejected for being in the future, after which the file is read again; null "
        "where there is none.",
        nullable=True,
    )
    formats_digest: str | None = text(
        "Digest of the settings of formats when it was read: declared ones, and how sessions' agents are called. Null "
        "of files of which every line was read as it is and none was rejected."
    )


class RawFileNote(SQLModel, table=True):
    """Counts of what readers found in the raw logs besides lines, and the logs that could not be read."""

    __tablename__ = "raw_file_notes"

    source_file: str = text("Raw log, relative to the raw root.", key=True)
    note: str = text("What was counted, as records that no table has a place for; or why it was not read.", key=True)
    records: int = count("How many.")


class RawRoot(SQLModel, table=True):
    """The raw roots that the warehouse was filled from: one, or the places that it has moved through."""

    __tablename__ = "raw_roots"

    root: str = text("Folder of the raw logs.", key=True)


class DigestSalt(SQLModel, table=True):
    """The salt of this warehouse's digests of arguments, results and answers: one row, random."""

    __tablename__ = "digest_salt"

    salt: str = text("32 hexadecimal digits.", key=True)


class PartitionState(Hourly, table=True):
    """Hours of assets that have been materialized; an hour without rows is told from one never computed."""

    __tablename__ = "partition_states"

    asset: str = text("Asset that was materialized.", key=True)
    rows: int = count("Rows that the hour has.")
    materialized_at: datetime = at("When it was last materialized.")
    changed_at: datetime | None = at("When its rows last changed; null while it has never had any.", nullable=True)
    as_of: datetime | None = at(
        "Of `raw_logs`, and of assets whose rows say it: up to when the logs of an hour that was not over were known; "
        "null once it was made after its end.",
        nullable=True,
    )
    dropped_digest: str | None = text(
        "Fingerprint of the rows that retention dropped, empty where there was none to take; null while the hour has "
        "its rows."
    )
    formula_version: str | None = text(
        "Version of the formula that made its rows, with a remark where they rest on components of an older one; null "
        "where the asset has no formula, and in hours from before versions were kept, which is 1.0."
    )
    rows_digest: str | None = text(
        "Fingerprint of the rows as they were written, empty where there were none; null where none was taken."
    )
    inputs_fingerprint: str | None = text(
        "Digest of what the rows follow from besides the logs: the run's hours, settings, targets and program, and the "
        "states of upstream tables; null where it is not known."
    )
    checks_fingerprint: str | None = text(
        "Digest of what the checks of these rows look at, with their outcome; null from when the rows are written "
        "until all checks have judged them."
    )


class WarehouseVersion(SQLModel, table=True):
    """The version of the tables, so that an older program refuses a newer warehouse."""

    __tablename__ = "warehouse_version"

    version: int = count("Version of the tables.", key=True)


TABLES = (RawFile, RawFileNote, RawRoot, DigestSalt, PartitionState, WarehouseVersion)

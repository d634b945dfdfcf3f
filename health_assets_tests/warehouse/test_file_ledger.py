"""The ledger's account of files: whatever keeps the name of a log follows the log."""

from health_assets.schema.catalog import ALL_TABLES, TABLE_OF_RECORD, columns_of
from health_assets.warehouse.file_ledger import FileLedger
from health_assets_tests.support.constraints import drop_constraints
from health_assets_tests.support.logs_made import START
from health_assets_tests.support.projects import Project


def test_every_table_that_keeps_the_name_of_a_log_has_the_new_one_once_the_log_is_renamed(project: Project) -> None:
    tables = [name for name in ALL_TABLES if "source_file" in columns_of(name)]
    assert {"raw_files", "executions", "rejected_records", "model_components"} <= set(tables)
    with project.warehouse.write() as session:
        for statement in drop_constraints(*tables):
            session.query(statement)
        for name in {*tables} - {"raw_logs"}:
            row = {"source_file": "old.jsonl"} | ({"hour": START} if "hour" in columns_of(name) else {})
            marks = ", ".join("?" for _ in row)
            session.query(f"INSERT INTO {name} ({', '.join(row)}) VALUES ({marks})", [*row.values()])
        for record in TABLE_OF_RECORD:
            sql = "INSERT INTO raw_logs (hour, source_file, record_type) VALUES (?, 'old.jsonl', ?)"
            session.query(sql, [START, record])
        FileLedger(session)._rename({"old.jsonl": "new.jsonl"})
        names = {name: session.query(f"SELECT DISTINCT source_file FROM {name}") for name in tables}
    assert names == {name: [("new.jsonl",)] for name in tables}

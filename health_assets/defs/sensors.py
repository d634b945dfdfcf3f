"""The late-log sensor: what came after its hour was materialised changes exactly the hours that depend on it."""

import hashlib
from datetime import UTC, datetime, timedelta

import dagster as dg

from health_assets.defs.assets import ONLY_STALE_TAG
from health_assets.defs.partitions import hours_tags
from health_assets.defs.pipeline import Pipeline
from health_assets.hours import HOUR, KEY_FORMAT, floor_hour
from health_assets.ingestion import changed_hours
from health_assets.logs.files import list_files
from health_assets.planning import late_ranges, newest_finished_hour
from health_assets.settings import Settings

INTERVAL_S = 60


def late_logs_sensor(job_name: str, settings: Settings) -> dg.SensorDefinition:
    """Find new and changed files, and request the hours that they touch and every later hour that depends on them.

    The state is in the warehouse: hours are requested for as long as their tables disagree with the logs, so nothing is
    lost when a run fails. The same disagreement is requested once an hour at most.
    """

    @dg.sensor(
        name="late_logs",
        job_name=job_name,
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def _late_logs(pipeline: Pipeline) -> dg.SensorResult | dg.SkipReason:
        now = datetime.now(UTC)
        files = list_files(pipeline.raw_root)
        warehouse = pipeline.open()
        if not warehouse.exists:
            return dg.SkipReason("nothing has been materialised yet, so nothing is late")
        with warehouse.read() as session:
            (last,) = session.query("SELECT max(hour) FROM materialized_hours WHERE asset = 'system_health'")[0]
            if last is None:
                return dg.SkipReason("nothing has been materialised yet, so nothing is late")
            # the hour that is still the schedule's is not late
            newest = newest_finished_hour(now, timedelta(minutes=settings.schedule_minute + 1))
            touched = {hour for hour in changed_hours(session, files) if hour <= newest}
        if not touched:
            return dg.SkipReason(f"the tables agree with all {len(files)} raw logs")
        ranges = late_ranges(touched, pipeline.lookback_hours, max(last, max(touched)) + HOUR)
        digest = hashlib.sha256(
            repr((sorted(touched), [(f.source_file, f.modified_ns, f.size_bytes) for f in files])).encode()
        )
        return dg.SensorResult(
            run_requests=[
                dg.RunRequest(
                    run_key=f"{floor_hour(now):{KEY_FORMAT}} {hours} {digest.hexdigest()[:16]}",
                    tags={**hours_tags(hours), ONLY_STALE_TAG: "true"},
                )
                for hours in ranges
            ]
        )

    return _late_logs

"""The sensor that tells: it judges the hours that are new and delivers what waits."""

from datetime import UTC, datetime

import dagster as dg

from health_assets.apps.alerts.config import load_alerts
from health_assets.apps.alerts.tick_runner import tick
from health_assets.core.errors import HealthAssetsError, NoWarehouseError, WarehouseBusyError
from health_assets.core.settings import Settings
from health_assets.defs.naming import STANDALONE, Naming
from health_assets.defs.schedules import default_sensor_status
from health_assets.pipeline.publishing import publish_or_warn

INTERVAL_S = 60
NO_ALERTS = "no alerts are configured; name a file of rules and channels in HEALTH_ALERTS"


def alerts_sensor(settings: Settings, naming: Naming = STANDALONE) -> dg.SensorDefinition:
    """Judge new hours and deliver what waits, once a minute; it starts no run.

    What is to be told is in the warehouse before anything is sent, so a tick that fails loses nothing.
    """

    @dg.sensor(
        name=naming.name("alerts"),
        required_resource_keys={naming.resource},
        description="Opens and closes incidents by the rules of HEALTH_ALERTS, and tells its channels.",
        minimum_interval_seconds=INTERVAL_S,
        default_status=default_sensor_status(settings, naming),
    )
    def _alerts(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        pipeline = naming.pipeline(context)
        if settings.alerts is None:
            return dg.SkipReason(NO_ALERTS)
        try:
            done = tick(settings, load_alerts(settings.alerts), pipeline.load_targets(), datetime.now(UTC))
        except NoWarehouseError:
            return dg.SkipReason("nothing has been materialized yet, so there is nothing to tell")
        except WarehouseBusyError as error:
            return dg.SkipReason(f"{error}; the next tick looks again")
        except HealthAssetsError as error:
            raise dg.Failure(str(error), allow_retries=False) from error
        publish_or_warn(settings)
        context.log.info(str(done))
        return dg.SkipReason(str(done))

    return _alerts

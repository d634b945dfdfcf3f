"""The backfill as bare SQL: what a person would write by hand in DuckDB who trusts every line and checks nothing.

Reads the files with typed columns and fills executions, components, scores and the fleet in a new file. The windows are
one pass with a sliding frame over a dense grid of agents and hours.
"""

import duckdb

from bench.fleet import LINE_COLUMNS, TARGETS

EXECUTIONS = """
CREATE TABLE executions AS
SELECT date_trunc('hour', ended_at) AS hour, filename AS source_file, * EXCLUDE (type, filename),
    status = 'success' AS succeeded, (epoch_us(ended_at) - epoch_us(started_at)) / 1e6 AS runtime_s,
    runtime_s > $sla_s AS sla_breached
FROM read_json($raw, format = 'newline_delimited', filename = true, columns = {columns})
"""

COMPONENTS = """
CREATE TABLE health_components AS
SELECT hour, agent_id, count(*) AS executions, count_if(succeeded) AS successes, count_if(NOT succeeded) AS failures,
    sum(round(runtime_s * 1e6)::BIGINT)::BIGINT AS runtime_us_sum,
    count_if(runtime_s > 5 * $expected_runtime_s) AS long_running, count_if(sla_breached) AS sla_breaches,
    0::BIGINT AS triggers, 0::BIGINT AS trigger_failures
FROM executions GROUP BY hour, agent_id
"""

AGENT_HEALTH = """
CREATE TABLE agent_health AS
WITH grid AS (
    SELECT agent_id, hour
    FROM (SELECT DISTINCT agent_id FROM health_components),
        (SELECT unnest(generate_series(min(hour), max(hour), INTERVAL 1 HOUR)) AS hour FROM health_components)
), sums AS (
    SELECT hour, agent_id, max(own.hour) OVER so_far AS last_seen, sum(executions) OVER slide AS n,
        sum(successes) OVER slide AS successes, sum(failures) OVER slide AS failures,
        sum(runtime_us_sum) OVER slide AS runtime_us, sum(long_running) OVER slide AS long_running,
        sum(sla_breaches) OVER slide AS sla_breaches, sum(trigger_failures) OVER slide AS trigger_failures
    FROM grid LEFT JOIN health_components AS own USING (agent_id, hour)
    WINDOW so_far AS (PARTITION BY agent_id ORDER BY hour),
        slide AS (PARTITION BY agent_id ORDER BY hour ROWS BETWEEN 23 PRECEDING AND CURRENT ROW)
), known AS (
    SELECT hour, agent_id, coalesce(n, 0)::BIGINT AS n, coalesce(successes, 0)::BIGINT AS successes,
        coalesce(failures, 0)::BIGINT AS failures, runtime_us, coalesce(long_running, 0)::BIGINT AS long_running,
        coalesce(sla_breaches, 0)::BIGINT AS sla_breaches, coalesce(trigger_failures, 0)::BIGINT AS trigger_failures
    FROM sums WHERE last_seen > hour - INTERVAL 168 HOUR
), parts AS (
    SELECT *, successes / nullif(n, 0) AS asr, failures / 24 AS afh, runtime_us / 1e6 / nullif(n, 0) AS ar_s,
        CASE WHEN n > 0 THEN least(1, asr / 0.95) END AS success_score,
        CASE WHEN n > 0 THEN CASE WHEN failures = 0 THEN 1 ELSE least(1, 1.0 / afh) END END AS failure_score,
        0.7 * success_score + 0.3 * failure_score AS reliability_raw, least(1, n / 20) AS confidence_factor,
        confidence_factor * reliability_raw + 1 - confidence_factor AS reliability_score,
        (ar_s - $expected_runtime_s) / $expected_runtime_s AS deviation,
        CASE WHEN n > 0 THEN 1 - least(1, greatest(0, deviation / 0.2)) END AS performance_score,
        CASE WHEN n > 0 THEN 1 - least(1, ln(long_running + 1) / ln(16)) END AS stability_score,
        CASE WHEN n > 0 THEN 1 - least(1, sla_breaches / 5) END AS sla_score,
        CASE WHEN n > 0 THEN 1 - least(1, trigger_failures / 5) END AS trigger_score,
        0.6 * sla_score + 0.4 * trigger_score AS operational_score,
        40 * reliability_score + 20 * performance_score + 20 * stability_score + 20 * operational_score AS health_score
    FROM known
)
SELECT hour, hour - INTERVAL 23 HOUR AS window_start, hour + INTERVAL 1 HOUR AS window_end, 24::BIGINT AS hours_covered,
    * EXCLUDE (hour, runtime_us),
    CASE WHEN n = 0 THEN 'inactive' WHEN health_score >= 85 THEN 'healthy' WHEN health_score >= 65 THEN 'degraded'
        ELSE 'unhealthy' END AS state,
    0.95::DOUBLE AS expected_success_rate, 1::DOUBLE AS expected_failures_per_hour,
    $expected_runtime_s::DOUBLE AS expected_runtime_s, 0.2::DOUBLE AS deviation_allowed, 20::BIGINT AS n_full,
    5::DOUBLE AS long_running_factor, 15::DOUBLE AS stability_threshold, 5::DOUBLE AS sla_breach_threshold,
    5::DOUBLE AS trigger_failure_threshold, $sla_s::DOUBLE AS sla_s, 85::DOUBLE AS healthy_at, 65::DOUBLE AS degraded_at
FROM parts
"""

SYSTEM_HEALTH = """
CREATE TABLE system_health AS
SELECT hour, avg(health_score) AS health_score, count(*) AS agents, count_if(state = 'healthy') AS healthy,
    count_if(state = 'degraded') AS degraded, count_if(state = 'unhealthy') AS unhealthy,
    count_if(state = 'inactive') AS inactive
FROM agent_health GROUP BY hour
"""


def backfill(raw: str, warehouse: str) -> int:
    """Fill a new file from all logs in a folder; returns the rows of `agent_health`."""
    values = {"raw": f"{raw}/*.jsonl", **TARGETS}
    with duckdb.connect(warehouse, config={"memory_limit": "3GB"}) as connection:
        connection.execute(
            "SET TimeZone = 'UTC'; SET preserve_insertion_order = false; SET enable_progress_bar = false"
        )
        for sql in (EXECUTIONS.format(columns=LINE_COLUMNS), COMPONENTS, AGENT_HEALTH, SYSTEM_HEALTH):
            connection.execute(sql, {name: value for name, value in values.items() if f"${name}" in sql})
        return connection.execute("SELECT count(*) FROM agent_health").fetchall()[0][0]

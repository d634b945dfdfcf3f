CREATE TABLE public.agent_health (
    hour timestamp with time zone,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    hours_covered bigint,
    agent_id character varying COLLATE pg_catalog."C",
    state character varying COLLATE pg_catalog."C",
    health_score double precision,
    n bigint,
    successes bigint,
    failures bigint,
    asr double precision,
    afh double precision,
    ar_s double precision,
    success_score double precision,
    failure_score double precision,
    reliability_raw double precision,
    confidence_factor double precision,
    reliability_score double precision,
    deviation double precision,
    performance_score double precision,
    stability_score double precision,
    sla_score double precision,
    trigger_score double precision,
    operational_score double precision,
    long_running bigint,
    sla_breaches bigint,
    trigger_failures bigint,
    expected_success_rate double precision,
    expected_failures_per_hour double precision,
    expected_runtime_s double precision,
    deviation_allowed double precision,
    n_full bigint,
    long_running_factor double precision,
    stability_threshold double precision,
    sla_breach_threshold double precision,
    trigger_failure_threshold double precision,
    sla_s double precision,
    healthy_at double precision,
    degraded_at double precision,
    formula_version character varying COLLATE pg_catalog."C",
    is_provisional boolean,
    untimed bigint
);
CREATE TABLE public.agent_health_state (
    hour timestamp with time zone,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    hours_covered bigint,
    agent_id character varying COLLATE pg_catalog."C",
    status character varying COLLATE pg_catalog."C",
    last_healthy_at timestamp with time zone,
    uptime_seconds double precision,
    response_ratio double precision,
    error_ratio double precision,
    latency_p50_ms double precision,
    latency_p99_ms double precision,
    measurement_window_seconds bigint,
    sample_count bigint,
    calibration_trend character varying COLLATE pg_catalog."C",
    previous_response_ratio double precision,
    days_since_model_change double precision,
    last_capability_update timestamp with time zone,
    baseline_latency_ms double precision,
    formula_version character varying COLLATE pg_catalog."C",
    latency_sample_count bigint
);
CREATE TABLE public.agent_probes (
    hour timestamp with time zone,
    url character varying COLLATE pg_catalog."C",
    name character varying COLLATE pg_catalog."C",
    platform character varying COLLATE pg_catalog."C",
    probed_at timestamp with time zone,
    outcome character varying COLLATE pg_catalog."C",
    status character varying COLLATE pg_catalog."C",
    http_status bigint,
    latency_ms double precision,
    error character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.agent_reliability (
    hour timestamp with time zone,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    hours_covered bigint,
    agent_id character varying COLLATE pg_catalog."C",
    reliability double precision,
    r_con double precision,
    c_out double precision,
    c_traj_d double precision,
    c_traj_s double precision,
    c_conf double precision,
    c_res double precision,
    outcome_agreement double precision,
    r_pred double precision,
    p_rc double precision,
    p_cal double precision,
    p_auroc double precision,
    p_brier double precision,
    r_rob double precision,
    r_fault double precision,
    r_struct double precision,
    r_prompt double precision,
    r_saf double precision,
    s_comp double precision,
    s_harm double precision,
    baseline_accuracy double precision,
    tasks bigint,
    runs bigint,
    baseline_runs bigint,
    runs_with_confidence bigint,
    judged bigint,
    violated bigint,
    formula_version character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.agent_updates (
    hour timestamp with time zone,
    source_file character varying COLLATE pg_catalog."C",
    line_number bigint,
    agent_id character varying COLLATE pg_catalog."C",
    updated_at timestamp with time zone,
    kind character varying COLLATE pg_catalog."C",
    detail character varying COLLATE pg_catalog."C",
    agent_id_reported character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.agent_usage (
    hour timestamp with time zone,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    hours_covered bigint,
    agent_id character varying COLLATE pg_catalog."C",
    executions bigint,
    successes bigint,
    executions_with_tokens bigint,
    executions_with_cost bigint,
    input_tokens bigint,
    output_tokens bigint,
    cost_usd double precision,
    cost_per_success_usd double precision,
    formula_version character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE public.alert_deliveries (
    hour timestamp with time zone,
    incident_id character varying COLLATE pg_catalog."C",
    event character varying COLLATE pg_catalog."C",
    channel character varying COLLATE pg_catalog."C",
    written_at timestamp with time zone,
    attempts bigint,
    next_attempt_at timestamp with time zone,
    delivered_at timestamp with time zone,
    last_error character varying COLLATE pg_catalog."C",
    hushed_by character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.alert_digests (
    hour timestamp with time zone,
    digest_id character varying COLLATE pg_catalog."C",
    cadence character varying COLLATE pg_catalog."C",
    due_at timestamp with time zone,
    written_at timestamp with time zone,
    content json
);
CREATE TABLE public.alert_silences (
    hour timestamp with time zone,
    silence_id character varying COLLATE pg_catalog."C",
    agents json,
    rules json,
    starts_at timestamp with time zone,
    ends_at timestamp with time zone,
    reason character varying COLLATE pg_catalog."C",
    added_by character varying COLLATE pg_catalog."C",
    added_at timestamp with time zone,
    ended_at timestamp with time zone,
    is_of_file boolean
);
CREATE TABLE public.alerts (
    hour timestamp with time zone,
    incident_id character varying COLLATE pg_catalog."C",
    rule character varying COLLATE pg_catalog."C",
    subject_kind character varying COLLATE pg_catalog."C",
    subject_id character varying COLLATE pg_catalog."C",
    severity character varying COLLATE pg_catalog."C",
    opened_at timestamp with time zone,
    closed_at timestamp with time zone,
    reason character varying COLLATE pg_catalog."C",
    recovery character varying COLLATE pg_catalog."C",
    recovers_at double precision,
    good_hours bigint,
    is_personal boolean,
    evidence json,
    silenced_by character varying COLLATE pg_catalog."C",
    unsilenced_at timestamp with time zone
);
CREATE TABLE public.error_budget (
    hour timestamp with time zone,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    hours_covered bigint,
    agent_id character varying COLLATE pg_catalog."C",
    n bigint,
    failures bigint,
    allowed_failures double precision,
    budget_spent double precision,
    n_1h bigint,
    failures_1h bigint,
    burn_rate_1h double precision,
    n_6h bigint,
    failures_6h bigint,
    burn_rate_6h double precision,
    expected_success_rate double precision,
    formula_version character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.evidence_components (
    hour timestamp with time zone,
    agent_id character varying COLLATE pg_catalog."C",
    kind character varying COLLATE pg_catalog."C",
    rank bigint,
    event_id character varying COLLATE pg_catalog."C",
    happened_at timestamp with time zone,
    runtime_s double precision
);
CREATE TABLE public.executions (
    hour timestamp with time zone,
    source_file character varying COLLATE pg_catalog."C",
    line_number bigint,
    execution_id character varying COLLATE pg_catalog."C",
    agent_id character varying COLLATE pg_catalog."C",
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    status character varying COLLATE pg_catalog."C",
    succeeded boolean,
    runtime_s double precision,
    session_id character varying COLLATE pg_catalog."C",
    task_id character varying COLLATE pg_catalog."C",
    condition character varying COLLATE pg_catalog."C",
    trigger_id character varying COLLATE pg_catalog."C",
    model character varying COLLATE pg_catalog."C",
    platform character varying COLLATE pg_catalog."C",
    error character varying COLLATE pg_catalog."C",
    sla_s double precision,
    sla_breached_reported boolean,
    sla_breached boolean,
    confidence double precision,
    cost_usd double precision,
    api_calls bigint,
    error_count bigint,
    call_latency_s double precision,
    actions character varying[] COLLATE pg_catalog."C",
    action_count bigint,
    signal_confidence double precision,
    signal_loop_detection double precision,
    signal_tool_correctness double precision,
    signal_coherence double precision,
    violations json,
    span_id character varying COLLATE pg_catalog."C",
    agent_id_reported character varying COLLATE pg_catalog."C",
    agent_version character varying COLLATE pg_catalog."C",
    cost_usd_reported double precision,
    input_tokens bigint,
    input_tokens_reported bigint,
    output_tokens bigint,
    output_tokens_reported bigint
);
CREATE TABLE public.expectation_results (
    hour timestamp with time zone,
    asset character varying COLLATE pg_catalog."C",
    expectation character varying COLLATE pg_catalog."C",
    success boolean,
    element_count bigint,
    unexpected_count bigint,
    severity character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.health_components (
    hour timestamp with time zone,
    agent_id character varying COLLATE pg_catalog."C",
    executions bigint,
    successes bigint,
    failures bigint,
    runtime_us_sum bigint,
    runtime_s_sum double precision,
    long_running bigint,
    sla_breaches bigint,
    triggers bigint,
    trigger_failures bigint,
    untimed bigint
);
CREATE TABLE public.held_hours (
    hour timestamp with time zone,
    source_file character varying COLLATE pg_catalog."C",
    reason character varying COLLATE pg_catalog."C",
    lines bigint,
    held_at timestamp with time zone,
    held_until timestamp with time zone
);
CREATE TABLE public.judgements (
    hour timestamp with time zone,
    source_file character varying COLLATE pg_catalog."C",
    line_number bigint,
    execution_id character varying COLLATE pg_catalog."C",
    judged_at timestamp with time zone,
    agent_id character varying COLLATE pg_catalog."C",
    violations json,
    agent_id_reported character varying COLLATE pg_catalog."C",
    judged_by character varying COLLATE pg_catalog."C",
    judged_by_reported character varying COLLATE pg_catalog."C",
    judge character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.materialized_hours (
    hour timestamp with time zone,
    asset character varying COLLATE pg_catalog."C",
    rows bigint,
    materialized_at timestamp with time zone,
    changed_at timestamp with time zone,
    dropped_digest character varying COLLATE pg_catalog."C",
    formula_version character varying COLLATE pg_catalog."C",
    rows_digest character varying COLLATE pg_catalog."C",
    made_with character varying COLLATE pg_catalog."C",
    checked_with character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.model_calls (
    hour timestamp with time zone,
    source_file character varying COLLATE pg_catalog."C",
    line_number bigint,
    call_id character varying COLLATE pg_catalog."C",
    model character varying COLLATE pg_catalog."C",
    ended_at timestamp with time zone,
    status character varying COLLATE pg_catalog."C",
    agent_id character varying COLLATE pg_catalog."C",
    execution_id character varying COLLATE pg_catalog."C",
    latency_ms double precision,
    error character varying COLLATE pg_catalog."C",
    span_id character varying COLLATE pg_catalog."C",
    agent_id_reported character varying COLLATE pg_catalog."C",
    input_tokens bigint,
    output_tokens bigint,
    cost_usd double precision
);
CREATE TABLE public.model_components (
    hour timestamp with time zone,
    model character varying COLLATE pg_catalog."C",
    call_id character varying COLLATE pg_catalog."C",
    ended_at timestamp with time zone,
    succeeded boolean,
    latency_ms double precision,
    error character varying COLLATE pg_catalog."C",
    source_file character varying COLLATE pg_catalog."C",
    line_number bigint,
    window_calls bigint
);
CREATE TABLE public.model_health (
    hour timestamp with time zone,
    model character varying COLLATE pg_catalog."C",
    health_score double precision,
    success_count bigint,
    failure_count bigint,
    p50_latency_ms double precision,
    p95_latency_ms double precision,
    is_degraded boolean,
    last_error character varying COLLATE pg_catalog."C",
    last_call_at timestamp with time zone,
    window_calls bigint,
    degraded_threshold double precision,
    formula_version character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.raw_file_notes (
    source_file character varying COLLATE pg_catalog."C",
    note character varying COLLATE pg_catalog."C",
    records bigint
);
CREATE TABLE public.raw_files (
    source_file character varying COLLATE pg_catalog."C",
    size_bytes bigint,
    modified_ns bigint,
    lines bigint,
    rejected bigint,
    plain_bytes bigint,
    content_digest character varying COLLATE pg_catalog."C",
    head_digests character varying COLLATE pg_catalog."C",
    copy_of character varying COLLATE pg_catalog."C",
    gone_at timestamp with time zone,
    future_at timestamp with time zone
);
CREATE TABLE public.raw_logs (
    hour timestamp with time zone,
    source_file character varying COLLATE pg_catalog."C",
    record_type character varying COLLATE pg_catalog."C",
    lines bigint,
    digest character varying COLLATE pg_catalog."C",
    is_loaded boolean,
    superseded bigint,
    is_dropped boolean,
    lost bigint
);
CREATE TABLE public.raw_roots (
    root character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.rejected_records (
    hour timestamp with time zone,
    source_file character varying COLLATE pg_catalog."C",
    line_number bigint,
    reason character varying COLLATE pg_catalog."C",
    raw character varying COLLATE pg_catalog."C",
    lines bigint
);
CREATE TABLE public.score_evidence (
    hour timestamp with time zone,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    hours_covered bigint,
    agent_id character varying COLLATE pg_catalog."C",
    kind character varying COLLATE pg_catalog."C",
    rank bigint,
    event_id character varying COLLATE pg_catalog."C",
    happened_at timestamp with time zone,
    runtime_s double precision,
    formula_version character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.session_scores (
    hour timestamp with time zone,
    session_id character varying COLLATE pg_catalog."C",
    agent_id character varying COLLATE pg_catalog."C",
    total_traces bigint,
    traces_evaluated bigint,
    agent_reliability double precision,
    raw_risk double precision,
    mean_top_k_risk double precision,
    max_risk double precision,
    flagged_traces character varying[] COLLATE pg_catalog."C",
    agent_consistency double precision,
    raw_instability double precision,
    consistency_traces_evaluated bigint,
    reliability_passed boolean,
    consistency_passed boolean,
    reliability_band character varying COLLATE pg_catalog."C",
    consistency_band character varying COLLATE pg_catalog."C",
    weight_confidence double precision,
    weight_loop_detection double precision,
    weight_tool_correctness double precision,
    weight_coherence double precision,
    flag_threshold double precision,
    pass_threshold double precision,
    top_k_share double precision,
    ensemble_weight double precision,
    formula_version character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.signals (
    hour timestamp with time zone,
    source_file character varying COLLATE pg_catalog."C",
    line_number bigint,
    execution_id character varying COLLATE pg_catalog."C",
    given_at timestamp with time zone,
    agent_id character varying COLLATE pg_catalog."C",
    session_id character varying COLLATE pg_catalog."C",
    signal_confidence double precision,
    signal_loop_detection double precision,
    signal_tool_correctness double precision,
    signal_coherence double precision,
    agent_id_reported character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.spans (
    hour timestamp with time zone,
    source_file character varying COLLATE pg_catalog."C",
    line_number bigint,
    "position" character varying COLLATE pg_catalog."C",
    trace_id character varying COLLATE pg_catalog."C",
    span_id character varying COLLATE pg_catalog."C",
    parent_span_id character varying COLLATE pg_catalog."C",
    kind character varying COLLATE pg_catalog."C",
    name character varying COLLATE pg_catalog."C",
    convention character varying COLLATE pg_catalog."C",
    agent_id character varying COLLATE pg_catalog."C",
    service_name character varying COLLATE pg_catalog."C",
    session_id character varying COLLATE pg_catalog."C",
    model character varying COLLATE pg_catalog."C",
    tool_name character varying COLLATE pg_catalog."C",
    started_at timestamp with time zone,
    ended_at timestamp with time zone,
    failed boolean,
    error character varying COLLATE pg_catalog."C",
    input_tokens bigint,
    output_tokens bigint,
    cost_usd double precision,
    operation character varying COLLATE pg_catalog."C",
    agent_version character varying COLLATE pg_catalog."C",
    service_version character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.state_components (
    hour timestamp with time zone,
    agent_id character varying COLLATE pg_catalog."C",
    latency_buckets smallint[],
    first_event_at timestamp with time zone,
    last_restart_at timestamp with time zone,
    last_model_update_at timestamp with time zone,
    last_capability_update_at timestamp with time zone,
    first_model character varying COLLATE pg_catalog."C",
    last_model character varying COLLATE pg_catalog."C",
    first_model_at timestamp with time zone,
    last_model_switch_at timestamp with time zone
);
CREATE TABLE public.survey_summary (
    hour timestamp with time zone,
    platform character varying COLLATE pg_catalog."C",
    agents bigint,
    healthy bigint,
    responsive bigint,
    survival_rate double precision,
    formula_version character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.system_health (
    hour timestamp with time zone,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    hours_covered bigint,
    health_score double precision,
    agents bigint,
    healthy bigint,
    degraded bigint,
    unhealthy bigint,
    inactive bigint,
    formula_version character varying COLLATE pg_catalog."C",
    provisional bigint
);
CREATE TABLE public.task_consistency (
    hour timestamp with time zone,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    hours_covered bigint,
    agent_id character varying COLLATE pg_catalog."C",
    task_id character varying COLLATE pg_catalog."C",
    runs bigint,
    successes bigint,
    c_out double precision,
    outcome_agreement double precision,
    pairs bigint,
    c_traj_d double precision,
    c_traj_s double precision,
    c_conf double precision,
    c_res double precision,
    cv_cost_usd double precision,
    cv_runtime_s double precision,
    cv_api_calls double precision,
    cv_action_count double precision,
    cv_error_count double precision,
    cv_call_latency_s double precision,
    formula_version character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.tool_calls (
    hour timestamp with time zone,
    source_file character varying COLLATE pg_catalog."C",
    line_number bigint,
    call_id character varying COLLATE pg_catalog."C",
    tool character varying COLLATE pg_catalog."C",
    ended_at timestamp with time zone,
    status character varying COLLATE pg_catalog."C",
    agent_id character varying COLLATE pg_catalog."C",
    agent_id_reported character varying COLLATE pg_catalog."C",
    execution_id character varying COLLATE pg_catalog."C",
    latency_ms double precision,
    error character varying COLLATE pg_catalog."C",
    span_id character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.tool_components (
    hour timestamp with time zone,
    agent_id character varying COLLATE pg_catalog."C",
    tool character varying COLLATE pg_catalog."C",
    calls bigint,
    failures bigint,
    latency_buckets smallint[],
    last_error character varying COLLATE pg_catalog."C",
    last_error_at timestamp with time zone
);
CREATE TABLE public.tool_health (
    hour timestamp with time zone,
    window_start timestamp with time zone,
    window_end timestamp with time zone,
    hours_covered bigint,
    agent_id character varying COLLATE pg_catalog."C",
    tool character varying COLLATE pg_catalog."C",
    calls bigint,
    failures bigint,
    failure_share double precision,
    failure_share_at_least double precision,
    p50_latency_ms double precision,
    p95_latency_ms double precision,
    last_error character varying COLLATE pg_catalog."C",
    last_error_at timestamp with time zone,
    formula_version character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.trace_risks (
    hour timestamp with time zone,
    trace_id character varying COLLATE pg_catalog."C",
    session_id character varying COLLATE pg_catalog."C",
    agent_id character varying COLLATE pg_catalog."C",
    traced_at timestamp with time zone,
    oldest_event_at timestamp with time zone,
    confidence_risk double precision,
    loop_risk double precision,
    tool_risk double precision,
    coherence_risk double precision,
    step_risk double precision,
    situational_penalty double precision,
    weighted_uncertainty double precision,
    is_flagged boolean,
    formula_version character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.trigger_events (
    hour timestamp with time zone,
    source_file character varying COLLATE pg_catalog."C",
    line_number bigint,
    trigger_id character varying COLLATE pg_catalog."C",
    agent_id character varying COLLATE pg_catalog."C",
    fired_at timestamp with time zone,
    status character varying COLLATE pg_catalog."C",
    reason character varying COLLATE pg_catalog."C",
    agent_id_reported character varying COLLATE pg_catalog."C"
);
CREATE TABLE public.usage_components (
    hour timestamp with time zone,
    agent_id character varying COLLATE pg_catalog."C",
    executions bigint,
    successes bigint,
    executions_with_tokens bigint,
    executions_with_cost bigint,
    input_tokens bigint,
    output_tokens bigint,
    cost_usd double precision
);
CREATE TABLE public.warehouse_version (
    version bigint
);
INSERT INTO public.agent_health VALUES ('2026-06-07 12:00:00+00', '2026-06-06 13:00:00+00', '2026-06-07 13:00:00+00', 24, 'crm-sync', 'inactive', NULL, 0, 0, 0, NULL, 0, NULL, NULL, NULL, NULL, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 0, 0.95, 1, NULL, 0.2, 20, 5, 15, 5, 5, NULL, 85, 65, '1.0', false, 0);
INSERT INTO public.agent_health VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'crm-sync', 'healthy', 98.4, 1, 1, 0, 1, 0, 12, 1, 1, 1, 0.05, 1, NULL, 1, 1, 1, 0.8, 0.92, 0, 0, 1, 0.95, 1, NULL, 0.2, 20, 5, 15, 5, 5, NULL, 85, 65, '1.0', true, 0);
INSERT INTO public.agent_health VALUES ('2026-06-07 12:00:00+00', '2026-06-06 13:00:00+00', '2026-06-07 13:00:00+00', 24, 'invoice-reader', 'healthy', 98.67368421052632, 2, 1, 1, 0.5, 0.041666666666666664, 66, 0.5263157894736842, 1, 0.6684210526315789, 0.1, 0.966842105263158, NULL, 1, 1, 1, 1, 1, 0, 0, 0, 0.95, 1, NULL, 0.2, 20, 5, 15, 5, 5, NULL, 85, 65, '1.0', true, 0);
INSERT INTO public.agent_health VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'invoice-reader', 'healthy', 98.67368421052632, 2, 1, 1, 0.5, 0.041666666666666664, 66, 0.5263157894736842, 1, 0.6684210526315789, 0.1, 0.966842105263158, NULL, 1, 1, 1, 1, 1, 0, 0, 0, 0.95, 1, NULL, 0.2, 20, 5, 15, 5, 5, NULL, 85, 65, '1.0', true, 0);
INSERT INTO public.agent_health VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'triage', 'healthy', 100, 1, 1, 0, 1, 0, 30, 1, 1, 1, 0.05, 1, NULL, 1, 1, 1, 1, 1, 0, 0, 0, 0.95, 1, NULL, 0.2, 20, 5, 15, 5, 5, NULL, 85, 65, '1.0', true, 0);
INSERT INTO public.agent_health_state VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'crm-sync', 'unknown', NULL, 3660, 1, 0, 12084.855056814817, 12084.855056814817, 86400, 1, 'stable', NULL, NULL, NULL, NULL, '1.0', 1);
INSERT INTO public.agent_health_state VALUES ('2026-06-07 12:00:00+00', '2026-06-06 13:00:00+00', '2026-06-07 13:00:00+00', 24, 'crm-sync', 'unknown', NULL, 60, NULL, NULL, NULL, NULL, 86400, 0, 'stable', NULL, NULL, NULL, NULL, '1.0', 0);
INSERT INTO public.agent_health_state VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'triage', 'unknown', NULL, 3595, 1, 0, 30050.337015127545, 30050.337015127545, 86400, 1, 'stable', NULL, NULL, NULL, NULL, '1.0', 1);
INSERT INTO public.agent_health_state VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'invoice-reader', 'unknown', NULL, 6570, 0.5, 0.5, 42077.726549272724, 89301.50824253562, 86400, 2, 'stable', NULL, NULL, NULL, NULL, '1.0', 2);
INSERT INTO public.agent_health_state VALUES ('2026-06-07 12:00:00+00', '2026-06-06 13:00:00+00', '2026-06-07 13:00:00+00', 24, 'invoice-reader', 'unknown', NULL, 2970, 0.5, 0.5, 42077.726549272724, 89301.50824253562, 86400, 2, 'stable', NULL, NULL, NULL, NULL, '1.0', 2);
INSERT INTO public.agent_reliability VALUES ('2026-06-07 12:00:00+00', '2026-06-06 13:00:00+00', '2026-06-07 13:00:00+00', 24, 'invoice-reader', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 1, 1, 0, 0, 0, '1.0');
INSERT INTO public.agent_reliability VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'invoice-reader', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 0, 0, 1, 1, 0, 0, 0, '1.0');
INSERT INTO public.agent_updates VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 10, 'crm-sync', '2026-06-07 12:59:00+00', 'restart', NULL, NULL);
INSERT INTO public.agent_usage VALUES ('2026-06-07 12:00:00+00', '2026-06-06 13:00:00+00', '2026-06-07 13:00:00+00', 24, 'invoice-reader', 2, 1, 0, 0, NULL, NULL, NULL, NULL, '1.0');
INSERT INTO public.agent_usage VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'triage', 1, 1, 0, 0, NULL, NULL, NULL, NULL, '1.0');
INSERT INTO public.agent_usage VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'invoice-reader', 2, 1, 0, 0, NULL, NULL, NULL, NULL, '1.0');
INSERT INTO public.agent_usage VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'crm-sync', 1, 1, 0, 1, NULL, NULL, 0.25, 0.25, '1.0');
INSERT INTO public.alembic_version VALUES ('0008');
INSERT INTO public.error_budget VALUES ('2026-06-07 12:00:00+00', '2026-06-06 13:00:00+00', '2026-06-07 13:00:00+00', 24, 'crm-sync', 0, 0, 0, NULL, 0, 0, NULL, 0, 0, NULL, 0.95, '1.0');
INSERT INTO public.error_budget VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'crm-sync', 1, 0, 0.05, 0, 1, 0, 0, 1, 0, 0, 0.95, '1.0');
INSERT INTO public.error_budget VALUES ('2026-06-07 12:00:00+00', '2026-06-06 13:00:00+00', '2026-06-07 13:00:00+00', 24, 'invoice-reader', 2, 1, 0.1, 10, 2, 1, 10, 2, 1, 10, 0.95, '1.0');
INSERT INTO public.error_budget VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'invoice-reader', 2, 1, 0.1, 10, 0, 0, NULL, 2, 1, 10, 0.95, '1.0');
INSERT INTO public.error_budget VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'triage', 1, 0, 0.05, 0, 1, 0, 0, 1, 0, 0, 0.95, '1.0');
INSERT INTO public.evidence_components VALUES ('2026-06-07 12:00:00+00', 'invoice-reader', 'failure', 1, 'e-2', '2026-06-07 12:21:30+00', 90);
INSERT INTO public.evidence_components VALUES ('2026-06-07 13:00:00+00', 'crm-sync', 'trigger_failure', 1, 'g-1', '2026-06-07 13:00:00+00', NULL);
INSERT INTO public.executions VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 1, 'e-1', 'invoice-reader', '2026-06-07 12:10:00+00', '2026-06-07 12:10:42+00', 'success', true, 42, 's-1', NULL, 'baseline', NULL, 'atlas', NULL, NULL, NULL, NULL, false, 0.9, NULL, NULL, NULL, NULL, '{look,read}', 2, 0.9, NULL, NULL, 0.4, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.executions VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 2, 'e-2', 'invoice-reader', '2026-06-07 12:20:00+00', '2026-06-07 12:21:30+00', 'failure', false, 90, 's-1', 't-1', 'baseline', NULL, 'atlas', NULL, 'no such file', NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.executions VALUES ('2026-06-07 13:00:00+00', 'native.jsonl', 4, 'e-3', 'crm-sync', '2026-06-07 13:05:00+00', '2026-06-07 13:05:12+00', 'success', true, 12, NULL, NULL, 'baseline', NULL, NULL, NULL, NULL, NULL, NULL, false, NULL, 0.25, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, '[]', NULL, NULL, NULL, 0.25, NULL, NULL, NULL, NULL);
INSERT INTO public.executions VALUES ('2026-06-07 13:00:00+00', 'traces.jsonl', 1, '5b8efff798038103d269b633813fc60c:eee19b7ec3c1b174', 'triage', '2026-06-07 13:00:00+00', '2026-06-07 13:00:30+00', 'success', true, 30, NULL, NULL, 'baseline', NULL, 'atlas', NULL, NULL, NULL, NULL, false, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 'eee19b7ec3c1b174', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.expectation_results VALUES ('2026-06-07 12:00:00+00', 'agent_updates', 'columns_have_declared_types', true, 1, 0, 'error');
INSERT INTO public.expectation_results VALUES ('2026-06-07 13:00:00+00', 'agent_updates', 'columns_have_declared_types', true, 1, 0, 'error');
INSERT INTO public.expectation_results VALUES ('2026-06-07 12:00:00+00', 'agent_updates', 'required_values_are_present', true, 1, 0, 'error');
INSERT INTO public.expectation_results VALUES ('2026-06-07 13:00:00+00', 'agent_updates', 'required_values_are_present', true, 0, 0, 'error');
INSERT INTO public.health_components VALUES ('2026-06-07 12:00:00+00', 'crm-sync', 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
INSERT INTO public.health_components VALUES ('2026-06-07 12:00:00+00', 'invoice-reader', 2, 1, 1, 132000000, 132, 0, 0, 0, 0, 0);
INSERT INTO public.health_components VALUES ('2026-06-07 13:00:00+00', 'crm-sync', 1, 1, 0, 12000000, 12, 0, 0, 1, 1, 0);
INSERT INTO public.health_components VALUES ('2026-06-07 13:00:00+00', 'triage', 1, 1, 0, 30000000, 30, 0, 0, 0, 0, 0);
INSERT INTO public.judgements VALUES ('2026-06-07 13:00:00+00', 'native.jsonl', 9, 'e-1', '2026-06-07 13:30:00+00', NULL, '[{"constraint":"no secrets","severity":"low"}]', NULL, 'agent', NULL, NULL);
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'spans', 0, '2026-11-25 22:35:10.284366+00', NULL, NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '9207b47d19a353263e696d9a192eb388288c1b9ccf9f2b9f7117fa6eec738202');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'spans', 2, '2026-11-25 22:35:10.284366+00', '2026-11-25 22:35:10.284366+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '9207b47d19a353263e696d9a192eb388288c1b9ccf9f2b9f7117fa6eec738202');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'tool_calls', 0, '2026-11-25 22:35:10.306873+00', NULL, NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', 'bb39a4fc563e33d0405ce59d91ee7d8cde93d4e5ace38544139022a8f863dcd6');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'tool_calls', 0, '2026-11-25 22:35:10.306873+00', NULL, NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', 'bb39a4fc563e33d0405ce59d91ee7d8cde93d4e5ace38544139022a8f863dcd6');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'trigger_events', 0, '2026-11-25 22:35:10.295817+00', NULL, NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '3691d0ed38d37f62ebbaa2d97c6d48fd06909e115df6007947a4e641d54f186a');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'trigger_events', 1, '2026-11-25 22:35:10.295817+00', '2026-11-25 22:35:10.295817+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '3691d0ed38d37f62ebbaa2d97c6d48fd06909e115df6007947a4e641d54f186a');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'model_components', 1, '2026-11-25 22:35:13.229975+00', '2026-11-25 22:35:13.229975+00', NULL, '1.0', '-5040612938799806223', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '84580b96563dcaffce02f74e153dfaf684290ae84cea3a629288008e08d01a61');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'model_components', 2, '2026-11-25 22:35:13.229975+00', '2026-11-25 22:35:13.229975+00', NULL, '1.0', '-11031898862723313184', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '84580b96563dcaffce02f74e153dfaf684290ae84cea3a629288008e08d01a61');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'agent_updates', 1, '2026-11-25 22:35:10.320865+00', '2026-11-25 22:35:10.320865+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '181f26ed7ac1cc18f8c9240a9d9567544953148bca87e335f4554d4c90745930');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'agent_updates', 0, '2026-11-25 22:35:10.320865+00', NULL, NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '181f26ed7ac1cc18f8c9240a9d9567544953148bca87e335f4554d4c90745930');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'executions', 2, '2026-11-25 22:35:10.289914+00', '2026-11-25 22:35:10.289914+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '72da48e17669b696dcea81646f4bbfdfffb75064a065abaae8721176154f1219');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'executions', 2, '2026-11-25 22:35:10.289914+00', '2026-11-25 22:35:10.289914+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '72da48e17669b696dcea81646f4bbfdfffb75064a065abaae8721176154f1219');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'judgements', 0, '2026-11-25 22:35:10.316271+00', NULL, NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '40ef816c3efcdbb017a5cc67b3aba763446f80364c4263fed246f1d0ab6f4ca7');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'judgements', 1, '2026-11-25 22:35:10.316271+00', '2026-11-25 22:35:10.316271+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '40ef816c3efcdbb017a5cc67b3aba763446f80364c4263fed246f1d0ab6f4ca7');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'model_calls', 1, '2026-11-25 22:35:10.301247+00', '2026-11-25 22:35:10.301247+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '51312aab84ce08b2591fbb591e32deac30061429920ed6189c64c22b70c115c1');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'model_calls', 2, '2026-11-25 22:35:10.301247+00', '2026-11-25 22:35:10.301247+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '51312aab84ce08b2591fbb591e32deac30061429920ed6189c64c22b70c115c1');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'raw_logs', 5, '2026-11-25 22:35:10.276711+00', '2026-11-25 22:35:10.276711+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '666186f0f2504171c63b6c49a4db8a6430ebd49b6b168f71cfb543ba20eb00a3');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'raw_logs', 7, '2026-11-25 22:35:10.276711+00', '2026-11-25 22:35:10.276711+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '666186f0f2504171c63b6c49a4db8a6430ebd49b6b168f71cfb543ba20eb00a3');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'rejected_records', 1, '2026-11-25 22:35:10.32539+00', '2026-11-25 22:35:10.32539+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '5cca65c9e3ff72d708d0e4aae8637a2e1225aec1bce40b7cfc5478d717368adb');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'rejected_records', 0, '2026-11-25 22:35:10.32539+00', NULL, NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '5cca65c9e3ff72d708d0e4aae8637a2e1225aec1bce40b7cfc5478d717368adb');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'signals', 1, '2026-11-25 22:35:10.311674+00', '2026-11-25 22:35:10.311674+00', NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', 'd72042a3ccb56d1d133c9a60d18be510c9de50c97b689386f3b071c43772318a');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'signals', 0, '2026-11-25 22:35:10.311674+00', NULL, NULL, NULL, NULL, '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', 'd72042a3ccb56d1d133c9a60d18be510c9de50c97b689386f3b071c43772318a');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'task_consistency', 0, '2026-11-25 22:35:13.354713+00', NULL, NULL, '1.0', '', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', 'ff26378782cec15492d36efe5dc73e00c639f9a26906d872d0b4e14efc5b1916');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'task_consistency', 0, '2026-11-25 22:35:13.354713+00', NULL, NULL, '1.0', '', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', 'ff26378782cec15492d36efe5dc73e00c639f9a26906d872d0b4e14efc5b1916');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'usage_components', 1, '2026-11-25 22:35:13.437877+00', '2026-11-25 22:35:13.437877+00', NULL, '1.0', '-3940760145526601204', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '79bdd769a03807e6fb9a9fc10442ec9c865fbbf992cb11328c781219d99cad15');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'usage_components', 2, '2026-11-25 22:35:13.437877+00', '2026-11-25 22:35:13.437877+00', NULL, '1.0', '-7568107247657875439', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '79bdd769a03807e6fb9a9fc10442ec9c865fbbf992cb11328c781219d99cad15');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'trace_risks', 2, '2026-11-25 22:35:13.630013+00', '2026-11-25 22:35:13.630013+00', NULL, '1.0', '-5276900863788192517', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '7d9a85a4db0207f13a3fd8aae39098052ab8249af8068437ad8ef05c930174c7');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'trace_risks', 0, '2026-11-25 22:35:13.630013+00', NULL, NULL, '1.0', '', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '7d9a85a4db0207f13a3fd8aae39098052ab8249af8068437ad8ef05c930174c7');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'tool_components', 0, '2026-11-25 22:35:13.755103+00', NULL, NULL, '1.0', '', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', 'e6dc34edf0fbdae2001a47f03427fcd034a5254ed1b9bd7879b73b576b913fe6');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'evidence_components', 1, '2026-11-25 22:35:13.93485+00', '2026-11-25 22:35:13.93485+00', NULL, '1.0', '-271080675581368031', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '4b1c4ed8c083e054940273ac13fd71be5581bb29454466fa79651a8af388e2de');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'health_components', 2, '2026-11-25 22:35:14.1014+00', '2026-11-25 22:35:14.1014+00', NULL, '1.0', '-3492982673707184073', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '191e5ac80dd57b23ab18f1939a65c94283e5fcc0fc6991950018c202203e74a2');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'health_components', 2, '2026-11-25 22:35:14.1014+00', '2026-11-25 22:35:14.1014+00', NULL, '1.0', '1990139743991301470', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '191e5ac80dd57b23ab18f1939a65c94283e5fcc0fc6991950018c202203e74a2');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'state_components', 2, '2026-11-25 22:35:14.315027+00', '2026-11-25 22:35:14.315027+00', NULL, '1.0', '22711484084502007', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', 'c65b66f700278cf2931d83ab3f10ac0cd50f8562287edc9c9afb3dd297d6afbf');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'tool_components', 0, '2026-11-25 22:35:13.755103+00', NULL, NULL, '1.0', '', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', 'e6dc34edf0fbdae2001a47f03427fcd034a5254ed1b9bd7879b73b576b913fe6');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'evidence_components', 1, '2026-11-25 22:35:13.93485+00', '2026-11-25 22:35:13.93485+00', NULL, '1.0', '7228075189652512365', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', '4b1c4ed8c083e054940273ac13fd71be5581bb29454466fa79651a8af388e2de');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'state_components', 2, '2026-11-25 22:35:14.315027+00', '2026-11-25 22:35:14.315027+00', NULL, '1.0', '-7684281159246053363', '1e07d4120310a0e576e13ba410a702fa4b176fc3d79290eac4b9e486ae018f31', 'c65b66f700278cf2931d83ab3f10ac0cd50f8562287edc9c9afb3dd297d6afbf');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'model_health', 1, '2026-11-25 22:35:16.063473+00', '2026-11-25 22:35:16.063473+00', NULL, '1.0', '4832411898663158200', 'd40b6ae642678ce5f11539b9136a3680172e028917011b71192062518376fa47', '6b67ff78e740a09635f4058c3208056509eadd0494ec3fb98d660d1f1f6c1d98');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'model_health', 1, '2026-11-25 22:35:16.063473+00', '2026-11-25 22:35:16.063473+00', NULL, '1.0', '-2575731028170219762', 'd40b6ae642678ce5f11539b9136a3680172e028917011b71192062518376fa47', '6b67ff78e740a09635f4058c3208056509eadd0494ec3fb98d660d1f1f6c1d98');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'agent_reliability', 1, '2026-11-25 22:35:16.393866+00', '2026-11-25 22:35:16.393866+00', NULL, '1.0', '-3291315173846400350', '4ea0343150f1acb0314a0879dfc54fa7bd5a73e016c8841db432d682809bd9a1', 'adfac216be34bc74f9cbe11f279b57086660a36a52b8b42ffd273fa7cb01413f');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'agent_reliability', 1, '2026-11-25 22:35:16.393866+00', '2026-11-25 22:35:16.393866+00', NULL, '1.0', '8854052427298559874', '4ea0343150f1acb0314a0879dfc54fa7bd5a73e016c8841db432d682809bd9a1', 'adfac216be34bc74f9cbe11f279b57086660a36a52b8b42ffd273fa7cb01413f');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'agent_usage', 1, '2026-11-25 22:35:16.584139+00', '2026-11-25 22:35:16.584139+00', NULL, '1.0', '-6638853348959903154', '78026e02345e650726e2d68cce6eb9a4daf0ff3a383c74c376aa9543a65ad01b', '1a6a21e5899ced162235a8980e3ddf854775c9de91cfacfe85055533ce2b9d12');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'agent_usage', 3, '2026-11-25 22:35:16.584139+00', '2026-11-25 22:35:16.584139+00', NULL, '1.0', '-2212149026310483291', '78026e02345e650726e2d68cce6eb9a4daf0ff3a383c74c376aa9543a65ad01b', '1a6a21e5899ced162235a8980e3ddf854775c9de91cfacfe85055533ce2b9d12');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'session_scores', 1, '2026-11-25 22:35:16.847116+00', '2026-11-25 22:35:16.847116+00', NULL, '1.0', '-2301532326559232352', '51ec054b924d0eb79779c8b00dca9ced6fe4cd1aed0ed7582fdaa4b2a60443c3', '2271c0c384184ab0e44a43ff11acf3ea59867d2603e77114e10a679dc7d3170d');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'session_scores', 0, '2026-11-25 22:35:16.847116+00', NULL, NULL, '1.0', '', '51ec054b924d0eb79779c8b00dca9ced6fe4cd1aed0ed7582fdaa4b2a60443c3', '2271c0c384184ab0e44a43ff11acf3ea59867d2603e77114e10a679dc7d3170d');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'tool_health', 0, '2026-11-25 22:35:16.993884+00', NULL, NULL, '1.0', '', '64326ba7b129ee0fc8e17024d09862861ac28790dda1c052424fa7918cb8d537', '80bc8988394b8e2276eb16efcbf541bd2794c3783611234ce7070157c783f5f0');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'tool_health', 0, '2026-11-25 22:35:16.993884+00', NULL, NULL, '1.0', '', '64326ba7b129ee0fc8e17024d09862861ac28790dda1c052424fa7918cb8d537', '80bc8988394b8e2276eb16efcbf541bd2794c3783611234ce7070157c783f5f0');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'agent_health', 2, '2026-11-25 22:35:17.176381+00', '2026-11-25 22:35:17.176381+00', NULL, '1.0', '1333377697840374061', 'c46f534ce3d9ba6fc05e7c9f84b8f7f23e2bc2d6d98ede81c3c4161d2320253f', 'ce7176c52750e0a6d0fef28d16ff2e0a74b87cdf9b04112696b48c4b50c6d40b');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'agent_health', 3, '2026-11-25 22:35:17.176381+00', '2026-11-25 22:35:17.176381+00', NULL, '1.0', '-20609817724653877765', 'c46f534ce3d9ba6fc05e7c9f84b8f7f23e2bc2d6d98ede81c3c4161d2320253f', 'ce7176c52750e0a6d0fef28d16ff2e0a74b87cdf9b04112696b48c4b50c6d40b');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'error_budget', 2, '2026-11-25 22:35:17.380728+00', '2026-11-25 22:35:17.380728+00', NULL, '1.0', '-3922863473099915997', 'c46f534ce3d9ba6fc05e7c9f84b8f7f23e2bc2d6d98ede81c3c4161d2320253f', 'c0e3ca41931fc22a9ecdf3a7b25a08b4ef337cd880da513afbce385ba156bc3c');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'error_budget', 3, '2026-11-25 22:35:17.380728+00', '2026-11-25 22:35:17.380728+00', NULL, '1.0', '-11301871596257890472', 'c46f534ce3d9ba6fc05e7c9f84b8f7f23e2bc2d6d98ede81c3c4161d2320253f', 'c0e3ca41931fc22a9ecdf3a7b25a08b4ef337cd880da513afbce385ba156bc3c');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'agent_health_state', 2, '2026-11-25 22:35:17.754158+00', '2026-11-25 22:35:17.754158+00', NULL, '1.0', '-11506031350523606355', 'a82eb89a0ea400a74a5f18b6db09b03c4e9e18b456430d49653ff5af2cbbe75d', '1a35255a1b88999687021d7ec4d830d47ed85a09abfa79c3e85a3ac4dc6af84c');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'agent_health_state', 3, '2026-11-25 22:35:17.754158+00', '2026-11-25 22:35:17.754158+00', NULL, '1.0', '1982439393197972823', 'a82eb89a0ea400a74a5f18b6db09b03c4e9e18b456430d49653ff5af2cbbe75d', '1a35255a1b88999687021d7ec4d830d47ed85a09abfa79c3e85a3ac4dc6af84c');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'score_evidence', 1, '2026-11-25 22:35:20.411239+00', '2026-11-25 22:35:20.411239+00', NULL, '1.0', '-3753947688031306617', '8192641e25b02835c006c8bf8e783cf94a4ff2492495285659e238b7cd622b66', 'd8a7fb653c3bae6c202ff12c8439462db0c13826e47f48229555c1ef760e4125');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'score_evidence', 2, '2026-11-25 22:35:20.411239+00', '2026-11-25 22:35:20.411239+00', NULL, '1.0', '-14371953103574024536', '8192641e25b02835c006c8bf8e783cf94a4ff2492495285659e238b7cd622b66', 'd8a7fb653c3bae6c202ff12c8439462db0c13826e47f48229555c1ef760e4125');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'system_health', 1, '2026-11-25 22:35:20.532524+00', '2026-11-25 22:35:20.532524+00', NULL, '1.0', '-107772394113642570', '8134f4600b2bbf75632990b29c8669cad89bf896b5b6c53d6a6437544918a78e', 'cf3ea9490765092cfe956db165b0e6703b3958e88ea81a7da3f618c02b0240c3');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'system_health', 1, '2026-11-25 22:35:20.532524+00', '2026-11-25 22:35:20.532524+00', NULL, '1.0', '2383744732110262890', '8134f4600b2bbf75632990b29c8669cad89bf896b5b6c53d6a6437544918a78e', 'cf3ea9490765092cfe956db165b0e6703b3958e88ea81a7da3f618c02b0240c3');
INSERT INTO public.model_calls VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 6, 'c-1', 'atlas', '2026-06-07 12:10:30+00', 'success', 'invoice-reader', 'e-1', 800, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.model_calls VALUES ('2026-06-07 13:00:00+00', 'native.jsonl', 7, 'c-2', 'atlas', '2026-06-07 13:05:05+00', 'failure', 'crm-sync', 'e-3', 1200, 'HTTP 503', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.model_calls VALUES ('2026-06-07 13:00:00+00', 'traces.jsonl', 1, '5b8efff798038103d269b633813fc60c:eee19b7ec3c1b175', 'atlas', '2026-06-07 13:00:05+00', 'success', 'triage', '5b8efff798038103d269b633813fc60c:eee19b7ec3c1b174', 4000, NULL, 'eee19b7ec3c1b175', NULL, NULL, NULL, NULL);
INSERT INTO public.model_components VALUES ('2026-06-07 12:00:00+00', 'atlas', 'c-1', '2026-06-07 12:10:30+00', true, 800, NULL, 'native.jsonl', 6, 50);
INSERT INTO public.model_components VALUES ('2026-06-07 13:00:00+00', 'atlas', 'c-2', '2026-06-07 13:05:05+00', false, 1200, 'HTTP 503', 'native.jsonl', 7, 50);
INSERT INTO public.model_components VALUES ('2026-06-07 13:00:00+00', 'atlas', '5b8efff798038103d269b633813fc60c:eee19b7ec3c1b175', '2026-06-07 13:00:05+00', true, 4000, NULL, 'traces.jsonl', 1, 50);
INSERT INTO public.model_health VALUES ('2026-06-07 12:00:00+00', 'atlas', 1, 1, 0, 800, 800, false, NULL, '2026-06-07 12:10:30+00', 50, 0.7, '1.0');
INSERT INTO public.model_health VALUES ('2026-06-07 13:00:00+00', 'atlas', 0.6666666666666666, 2, 1, 1200, 4000, true, 'HTTP 503', '2026-06-07 13:05:05+00', 50, 0.7, '1.0');
INSERT INTO public.raw_files VALUES ('native.jsonl', 1846, 1780840800000000000, 11, 1, 1846, 'fa2687a2c6ecf260069edf9b03a80c01a959beabce014a9766c4b675bbc5c126', '3967cc17c2674483a3eb574b037c095574f1c0adca8d45f28fad9e1f7ddb7a8c55a2326ffb4565f5dffc373f', NULL, NULL, NULL);
INSERT INTO public.raw_files VALUES ('traces.jsonl', 872, 1780840800000000000, 2, 0, 872, '21369077658109ad482e72566c3955c62010d8a989c6fd2a4fc7a54b993564eb', '3967cc17c267448330cbdc7c4d6e3f8999ec7ae88cd40af15fc1faa1738ec5441edcc544ed333213', NULL, NULL, NULL);
INSERT INTO public.raw_logs VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 'agent_update', 1, '16569619222946329453', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 13:00:00+00', 'native.jsonl', 'judgement', 1, '8794586452334826422', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 13:00:00+00', 'native.jsonl', 'trigger', 1, '11050741352032180156', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 'signals', 1, '15706772902049064091', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 13:00:00+00', 'traces.jsonl', 'span', 2, '3575955235879343250', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 13:00:00+00', 'native.jsonl', 'model_call', 1, '9033784211510390179', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 'execution', 2, '2403899675889876465', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 'rejected', 1, '47544103429809003', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 'model_call', 1, '14477034779511645410', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 13:00:00+00', '(traces)', 'execution', 1, '8471301724956323971', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 13:00:00+00', '(traces)', 'model_call', 1, '2051321521341237291', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 13:00:00+00', 'native.jsonl', 'execution', 2, '4838044856813456573', true, 1, false, 0);
INSERT INTO public.raw_roots VALUES ('/var/lib/agents/logs');
INSERT INTO public.rejected_records VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 11, 'not valid JSON', 'not json at all', 1);
INSERT INTO public.score_evidence VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'crm-sync', 'trigger_failure', 1, 'g-1', '2026-06-07 13:00:00+00', NULL, '1.0');
INSERT INTO public.score_evidence VALUES ('2026-06-07 12:00:00+00', '2026-06-06 13:00:00+00', '2026-06-07 13:00:00+00', 24, 'invoice-reader', 'failure', 1, 'e-2', '2026-06-07 12:21:30+00', 90, '1.0');
INSERT INTO public.score_evidence VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 'invoice-reader', 'failure', 1, 'e-2', '2026-06-07 12:21:30+00', 90, '1.0');
INSERT INTO public.session_scores VALUES ('2026-06-07 12:00:00+00', 's-1', 'invoice-reader', 2, 2, 0.2, 0.8, 0.8, 0.8, '{e-2,e-1}', 0.84, 0.16, 1, false, true, 'high_risk', 'generally_consistent', 1, 1, 0.8, 1, 0.5, 0.5, 0.15, 0.1, '1.0');
INSERT INTO public.signals VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 8, 'e-2', '2026-06-07 12:30:00+00', NULL, NULL, NULL, 0.2, NULL, NULL, NULL);
INSERT INTO public.spans VALUES ('2026-06-07 13:00:00+00', 'traces.jsonl', 1, '0.0.0', '5b8efff798038103d269b633813fc60c', 'eee19b7ec3c1b174', NULL, 'agent', 'invoke_agent triage', 'gen_ai', 'triage', 'support', NULL, NULL, NULL, '2026-06-07 13:00:00+00', '2026-06-07 13:00:30+00', false, NULL, NULL, NULL, NULL, 'invoke_agent', NULL, NULL);
INSERT INTO public.spans VALUES ('2026-06-07 13:00:00+00', 'traces.jsonl', 1, '0.0.1', '5b8efff798038103d269b633813fc60c', 'eee19b7ec3c1b175', 'eee19b7ec3c1b174', 'chat', 'chat atlas', 'gen_ai', NULL, 'support', NULL, 'atlas', NULL, '2026-06-07 13:00:01+00', '2026-06-07 13:00:05+00', false, NULL, NULL, NULL, NULL, 'chat', NULL, NULL);
INSERT INTO public.state_components VALUES ('2026-06-07 12:00:00+00', 'crm-sync', NULL, '2026-06-07 12:59:00+00', '2026-06-07 12:59:00+00', NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.state_components VALUES ('2026-06-07 12:00:00+00', 'invoice-reader', '{887,925}', '2026-06-07 12:10:30+00', NULL, NULL, NULL, 'atlas', 'atlas', '2026-06-07 12:10:42+00', NULL);
INSERT INTO public.state_components VALUES ('2026-06-07 13:00:00+00', 'crm-sync', '{824}', '2026-06-07 13:00:00+00', NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.state_components VALUES ('2026-06-07 13:00:00+00', 'triage', '{870}', '2026-06-07 13:00:05+00', NULL, NULL, NULL, 'atlas', 'atlas', '2026-06-07 13:00:30+00', NULL);
INSERT INTO public.system_health VALUES ('2026-06-07 12:00:00+00', '2026-06-06 13:00:00+00', '2026-06-07 13:00:00+00', 24, 98.673684211, 2, 1, 0, 0, 1, '1.0', 1);
INSERT INTO public.system_health VALUES ('2026-06-07 13:00:00+00', '2026-06-06 14:00:00+00', '2026-06-07 14:00:00+00', 24, 99.02456140366667, 3, 3, 0, 0, 0, '1.0', 3);
INSERT INTO public.trace_risks VALUES ('2026-06-07 12:00:00+00', 'e-1', 's-1', 'invoice-reader', '2026-06-07 12:10:42+00', '2026-06-07 12:10:42+00', 0.1, NULL, NULL, 0.6, 0.6, 0.6, 0.16, true, '1.0');
INSERT INTO public.trace_risks VALUES ('2026-06-07 12:00:00+00', 'e-2', 's-1', 'invoice-reader', '2026-06-07 12:21:30+00', '2026-06-07 12:21:30+00', NULL, 0.8, NULL, NULL, 0.8, NULL, NULL, true, '1.0');
INSERT INTO public.trigger_events VALUES ('2026-06-07 13:00:00+00', 'native.jsonl', 5, 'g-1', 'crm-sync', '2026-06-07 13:00:00+00', 'failed', 'queue full', NULL);
INSERT INTO public.usage_components VALUES ('2026-06-07 13:00:00+00', 'triage', 1, 1, 0, 0, NULL, NULL, NULL);
INSERT INTO public.usage_components VALUES ('2026-06-07 13:00:00+00', 'crm-sync', 1, 1, 0, 1, NULL, NULL, 0.25);
INSERT INTO public.usage_components VALUES ('2026-06-07 12:00:00+00', 'invoice-reader', 2, 1, 0, 0, NULL, NULL, NULL);
INSERT INTO public.warehouse_version VALUES (8);
ALTER TABLE ONLY public.alembic_version
    ADD CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num);
CREATE INDEX agent_health_by_hour ON public.agent_health USING btree (hour);
CREATE INDEX agent_health_state_by_hour ON public.agent_health_state USING btree (hour);
CREATE INDEX agent_probes_by_hour ON public.agent_probes USING btree (hour);
CREATE INDEX agent_reliability_by_hour ON public.agent_reliability USING btree (hour);
CREATE INDEX agent_updates_by_hour ON public.agent_updates USING btree (hour);
CREATE INDEX agent_usage_by_hour ON public.agent_usage USING btree (hour);
CREATE INDEX alert_deliveries_by_hour ON public.alert_deliveries USING btree (hour);
CREATE INDEX alert_digests_by_hour ON public.alert_digests USING btree (hour);
CREATE INDEX alert_silences_by_hour ON public.alert_silences USING btree (hour);
CREATE INDEX alerts_by_hour ON public.alerts USING btree (hour);
CREATE INDEX error_budget_by_hour ON public.error_budget USING btree (hour);
CREATE INDEX evidence_components_by_hour ON public.evidence_components USING btree (hour);
CREATE INDEX executions_by_hour ON public.executions USING btree (hour);
CREATE INDEX executions_by_hour_with_agent_id_reported ON public.executions USING btree (hour) WHERE (agent_id_reported IS NOT NULL);
CREATE INDEX executions_by_hour_with_task_id ON public.executions USING btree (hour) WHERE (task_id IS NOT NULL);
CREATE INDEX expectation_results_by_hour ON public.expectation_results USING btree (hour);
CREATE INDEX health_components_by_hour ON public.health_components USING btree (hour);
CREATE INDEX held_hours_by_hour ON public.held_hours USING btree (hour);
CREATE INDEX judgements_by_hour ON public.judgements USING btree (hour);
CREATE INDEX materialized_hours_by_hour ON public.materialized_hours USING btree (hour);
CREATE INDEX model_calls_by_hour ON public.model_calls USING btree (hour);
CREATE INDEX model_components_by_hour ON public.model_components USING btree (hour);
CREATE INDEX model_health_by_hour ON public.model_health USING btree (hour);
CREATE INDEX raw_logs_by_hour ON public.raw_logs USING btree (hour);
CREATE INDEX rejected_records_by_hour ON public.rejected_records USING btree (hour);
CREATE INDEX score_evidence_by_hour ON public.score_evidence USING btree (hour);
CREATE INDEX session_scores_by_hour ON public.session_scores USING btree (hour);
CREATE INDEX signals_by_hour ON public.signals USING btree (hour);
CREATE INDEX spans_by_hour ON public.spans USING btree (hour);
CREATE INDEX state_components_by_hour ON public.state_components USING btree (hour);
CREATE INDEX survey_summary_by_hour ON public.survey_summary USING btree (hour);
CREATE INDEX system_health_by_hour ON public.system_health USING btree (hour);
CREATE INDEX task_consistency_by_hour ON public.task_consistency USING btree (hour);
CREATE INDEX tool_calls_by_hour ON public.tool_calls USING btree (hour);
CREATE INDEX tool_components_by_hour ON public.tool_components USING btree (hour);
CREATE INDEX tool_health_by_hour ON public.tool_health USING btree (hour);
CREATE INDEX trace_risks_by_hour ON public.trace_risks USING btree (hour);
CREATE INDEX trigger_events_by_hour ON public.trigger_events USING btree (hour);
CREATE INDEX usage_components_by_hour ON public.usage_components USING btree (hour);

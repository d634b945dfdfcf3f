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
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'spans', 0, '2026-11-26 02:23:09.05743+00', NULL, NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'f21902b1daf40b2b58fb50347a85a06cbb08db6ea9d133e6e2172ddd3210e65a');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'spans', 2, '2026-11-26 02:23:09.05743+00', '2026-11-26 02:23:09.05743+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'f21902b1daf40b2b58fb50347a85a06cbb08db6ea9d133e6e2172ddd3210e65a');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'tool_calls', 0, '2026-11-26 02:23:09.188241+00', NULL, NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '2e9f653f4b0504e16ab4d6e7e8efbc56aa938512f2da27b2804dd8cbba25931f');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'tool_calls', 0, '2026-11-26 02:23:09.188241+00', NULL, NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '2e9f653f4b0504e16ab4d6e7e8efbc56aa938512f2da27b2804dd8cbba25931f');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'trigger_events', 0, '2026-11-26 02:23:09.116746+00', NULL, NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'ec1e168eb7af4c4b24edcab18113042968fb987d0800a97325a91eb07ccdaad3');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'trigger_events', 1, '2026-11-26 02:23:09.116746+00', '2026-11-26 02:23:09.116746+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'ec1e168eb7af4c4b24edcab18113042968fb987d0800a97325a91eb07ccdaad3');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'model_components', 1, '2026-11-26 02:23:21.672917+00', '2026-11-26 02:23:21.672917+00', NULL, '1.0', '-5040612938799806223', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '573a480e41d2fda8e275ccaf7b505bc045a0cf37ad15ed5af770b8bb7b0cb53c');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'model_components', 2, '2026-11-26 02:23:21.672917+00', '2026-11-26 02:23:21.672917+00', NULL, '1.0', '-11031898862723313184', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '573a480e41d2fda8e275ccaf7b505bc045a0cf37ad15ed5af770b8bb7b0cb53c');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'agent_updates', 1, '2026-11-26 02:23:09.309836+00', '2026-11-26 02:23:09.309836+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '71c5ffdab15ae1d8ac422d80f06ae3dbf8a9a37e8980e7988c8c02359ec6f810');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'agent_updates', 0, '2026-11-26 02:23:09.309836+00', NULL, NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '71c5ffdab15ae1d8ac422d80f06ae3dbf8a9a37e8980e7988c8c02359ec6f810');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'executions', 2, '2026-11-26 02:23:09.091252+00', '2026-11-26 02:23:09.091252+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '04ad9da71255191baf6d3cf146f35d46658a354ee4da5d6a744807812ff77aa7');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'executions', 2, '2026-11-26 02:23:09.091252+00', '2026-11-26 02:23:09.091252+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '04ad9da71255191baf6d3cf146f35d46658a354ee4da5d6a744807812ff77aa7');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'judgements', 0, '2026-11-26 02:23:09.275329+00', NULL, NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '3b539f9888283ad67cfbd3d4aebd7ab0f4f69cb33e0dcd2a2ceb0138e560a791');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'judgements', 1, '2026-11-26 02:23:09.275329+00', '2026-11-26 02:23:09.275329+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '3b539f9888283ad67cfbd3d4aebd7ab0f4f69cb33e0dcd2a2ceb0138e560a791');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'model_calls', 1, '2026-11-26 02:23:09.145078+00', '2026-11-26 02:23:09.145078+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '8a0811ea158e9e37cddeef31736fe5ea5a89b6b7849dbb754c4f56de72f77652');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'model_calls', 2, '2026-11-26 02:23:09.145078+00', '2026-11-26 02:23:09.145078+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '8a0811ea158e9e37cddeef31736fe5ea5a89b6b7849dbb754c4f56de72f77652');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'raw_logs', 5, '2026-11-26 02:23:09.01629+00', '2026-11-26 02:23:09.01629+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'f7f9e2d8da24ccd3ba429d2a716851191e9aa199ef3249490d36f4f72ee950e6');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'raw_logs', 7, '2026-11-26 02:23:09.01629+00', '2026-11-26 02:23:09.01629+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'f7f9e2d8da24ccd3ba429d2a716851191e9aa199ef3249490d36f4f72ee950e6');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'rejected_records', 1, '2026-11-26 02:23:09.328724+00', '2026-11-26 02:23:09.328724+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '6e945103b77d909bc0b7b6c7a36285a268942a63efbe3564f0d1f15f8aa05a5b');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'rejected_records', 0, '2026-11-26 02:23:09.328724+00', NULL, NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '6e945103b77d909bc0b7b6c7a36285a268942a63efbe3564f0d1f15f8aa05a5b');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'signals', 1, '2026-11-26 02:23:09.224422+00', '2026-11-26 02:23:09.224422+00', NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'd4cdbf51876be2cc81158ce265dd2495e08d58afaed3c77cf21d38a5be53c397');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'signals', 0, '2026-11-26 02:23:09.224422+00', NULL, NULL, NULL, NULL, '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'd4cdbf51876be2cc81158ce265dd2495e08d58afaed3c77cf21d38a5be53c397');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'task_consistency', 0, '2026-11-26 02:23:22.320108+00', NULL, NULL, '1.0', '', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '5711767fe56e7ab180918ae27fd435c74081bec2069014fe2d566c1be33b8c61');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'task_consistency', 0, '2026-11-26 02:23:22.320108+00', NULL, NULL, '1.0', '', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '5711767fe56e7ab180918ae27fd435c74081bec2069014fe2d566c1be33b8c61');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'usage_components', 1, '2026-11-26 02:23:22.686139+00', '2026-11-26 02:23:22.686139+00', NULL, '1.0', '-3940760145526601204', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'c00e437e592ad00eb5a973ec03dece6bb1248041b2203a6bd2ec41238c983df3');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'usage_components', 2, '2026-11-26 02:23:22.686139+00', '2026-11-26 02:23:22.686139+00', NULL, '1.0', '-7568107247657875439', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'c00e437e592ad00eb5a973ec03dece6bb1248041b2203a6bd2ec41238c983df3');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'trace_risks', 2, '2026-11-26 02:23:23.50031+00', '2026-11-26 02:23:23.50031+00', NULL, '1.0', '-5276900863788192517', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'b3e8ad4d889d1bffb47a87ef286eb02b9f5aba43721a6b3719464a5d81acece7');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'trace_risks', 0, '2026-11-26 02:23:23.50031+00', NULL, NULL, '1.0', '', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'b3e8ad4d889d1bffb47a87ef286eb02b9f5aba43721a6b3719464a5d81acece7');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'tool_components', 0, '2026-11-26 02:23:23.949919+00', NULL, NULL, '1.0', '', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '0fbb677179046c390b5c0f5c97b4178e0086e147b2c746d574befafbd5b19e9a');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'evidence_components', 1, '2026-11-26 02:23:24.549179+00', '2026-11-26 02:23:24.549179+00', NULL, '1.0', '-271080675581368031', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'dfa7e00a8f98267b770071a7a6f1bbfa8fec1bdaf6ec8d4a83d048150b8962c8');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'health_components', 2, '2026-11-26 02:23:25.108079+00', '2026-11-26 02:23:25.108079+00', NULL, '1.0', '-3492982673707184073', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '83cfa9ea75f729aba9539f7fd5102de9d017906ed3e8b65dbd40acd4be997c64');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'health_components', 2, '2026-11-26 02:23:25.108079+00', '2026-11-26 02:23:25.108079+00', NULL, '1.0', '1990139743991301470', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '83cfa9ea75f729aba9539f7fd5102de9d017906ed3e8b65dbd40acd4be997c64');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'state_components', 2, '2026-11-26 02:23:25.884825+00', '2026-11-26 02:23:25.884825+00', NULL, '1.0', '22711484084502007', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '694843051a9b1b75938373f668a8f7c9e6a5ff3a10f70b0e0cfc957e47dccae5');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'tool_components', 0, '2026-11-26 02:23:23.949919+00', NULL, NULL, '1.0', '', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '0fbb677179046c390b5c0f5c97b4178e0086e147b2c746d574befafbd5b19e9a');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'evidence_components', 1, '2026-11-26 02:23:24.549179+00', '2026-11-26 02:23:24.549179+00', NULL, '1.0', '7228075189652512365', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', 'dfa7e00a8f98267b770071a7a6f1bbfa8fec1bdaf6ec8d4a83d048150b8962c8');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'state_components', 2, '2026-11-26 02:23:25.884825+00', '2026-11-26 02:23:25.884825+00', NULL, '1.0', '-7684281159246053363', '342b03c72aa554dd1db5e14ce85eaee84a4a922f78d1e0fa473b4b06e628a8c9', '694843051a9b1b75938373f668a8f7c9e6a5ff3a10f70b0e0cfc957e47dccae5');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'model_health', 1, '2026-11-26 02:23:37.962325+00', '2026-11-26 02:23:37.962325+00', NULL, '1.0', '4832411898663158200', '46b290c3a70448d2717ecc271f86ded43e1240e3b9fee90065985fa97e0b9c6e', '581e954ad74dbc2ebc062ef2a763647e886200c0f1d8d0e4f85154899f9542d3');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'model_health', 1, '2026-11-26 02:23:37.962325+00', '2026-11-26 02:23:37.962325+00', NULL, '1.0', '-2575731028170219762', '46b290c3a70448d2717ecc271f86ded43e1240e3b9fee90065985fa97e0b9c6e', '581e954ad74dbc2ebc062ef2a763647e886200c0f1d8d0e4f85154899f9542d3');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'agent_reliability', 1, '2026-11-26 02:23:39.49209+00', '2026-11-26 02:23:39.49209+00', NULL, '1.0', '-3291315173846400350', '62eb756205bac85806ccef9907b1a41e9382abeb705f213b5c7a942f1d481c04', 'bce285945c61de215e8d5eac709fdab3a14e7ab3a55725ddd02ca317b56267cd');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'agent_reliability', 1, '2026-11-26 02:23:39.49209+00', '2026-11-26 02:23:39.49209+00', NULL, '1.0', '8854052427298559874', '62eb756205bac85806ccef9907b1a41e9382abeb705f213b5c7a942f1d481c04', 'bce285945c61de215e8d5eac709fdab3a14e7ab3a55725ddd02ca317b56267cd');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'agent_usage', 1, '2026-11-26 02:23:40.125437+00', '2026-11-26 02:23:40.125437+00', NULL, '1.0', '-6638853348959903154', '739528c5d279859e01f376b59437d1d366e110733f0bddd702da1a7efc248a8c', 'bdaa0ebb336a713c4e2b40d7b4387ac1bb8032a13f7887df41adae85e3fb816d');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'agent_usage', 3, '2026-11-26 02:23:40.125437+00', '2026-11-26 02:23:40.125437+00', NULL, '1.0', '-2212149026310483291', '739528c5d279859e01f376b59437d1d366e110733f0bddd702da1a7efc248a8c', 'bdaa0ebb336a713c4e2b40d7b4387ac1bb8032a13f7887df41adae85e3fb816d');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'session_scores', 1, '2026-11-26 02:23:41.094262+00', '2026-11-26 02:23:41.094262+00', NULL, '1.0', '-2301532326559232352', '81e703597667a9753f632706fa20249b707463bbf285c8e679ab8c2ec2408f73', 'f24e6ee3f635de50b18f627f75b62d0fc0aa626a600487522fd6afca36b44153');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'session_scores', 0, '2026-11-26 02:23:41.094262+00', NULL, NULL, '1.0', '', '81e703597667a9753f632706fa20249b707463bbf285c8e679ab8c2ec2408f73', 'f24e6ee3f635de50b18f627f75b62d0fc0aa626a600487522fd6afca36b44153');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'tool_health', 0, '2026-11-26 02:23:42.093642+00', NULL, NULL, '1.0', '', 'f3d87175d9edbf0acc091b974e6d88a52e59446fe1eef7232f0a5b2075e07346', '7e460e2c3328a4477a133c340113bf772603988e8cf6e373ccdde59b2735602e');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'tool_health', 0, '2026-11-26 02:23:42.093642+00', NULL, NULL, '1.0', '', 'f3d87175d9edbf0acc091b974e6d88a52e59446fe1eef7232f0a5b2075e07346', '7e460e2c3328a4477a133c340113bf772603988e8cf6e373ccdde59b2735602e');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'agent_health', 2, '2026-11-26 02:23:43.910232+00', '2026-11-26 02:23:43.910232+00', NULL, '1.0', '1333377697840374061', 'df79744fc4975c9d47ddc1a58c1b438d8e8693f6c43e756d7a07f5030931770a', '22d897a5c57a92a72a849fb236dd2d25cb366727846ed29b00e6ede099d8666a');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'agent_health', 3, '2026-11-26 02:23:43.910232+00', '2026-11-26 02:23:43.910232+00', NULL, '1.0', '-20609817724653877765', 'df79744fc4975c9d47ddc1a58c1b438d8e8693f6c43e756d7a07f5030931770a', '22d897a5c57a92a72a849fb236dd2d25cb366727846ed29b00e6ede099d8666a');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'error_budget', 2, '2026-11-26 02:23:44.880015+00', '2026-11-26 02:23:44.880015+00', NULL, '1.0', '-3922863473099915997', 'df79744fc4975c9d47ddc1a58c1b438d8e8693f6c43e756d7a07f5030931770a', 'dc16bac1d060147dd67a538a9a00864dba03557f74caf0900766f97c7073b00b');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'error_budget', 3, '2026-11-26 02:23:44.880015+00', '2026-11-26 02:23:44.880015+00', NULL, '1.0', '-11301871596257890472', 'df79744fc4975c9d47ddc1a58c1b438d8e8693f6c43e756d7a07f5030931770a', 'dc16bac1d060147dd67a538a9a00864dba03557f74caf0900766f97c7073b00b');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'agent_health_state', 2, '2026-11-26 02:23:47.687433+00', '2026-11-26 02:23:47.687433+00', NULL, '1.0', '-11506031350523606355', '2cb399e2ff6f5f4efc4822f51bbb9bce9a54b95f58a78d9f5174f39cb7d3ce35', 'e9cddaae249101d4a9bf44a2a31bd2879820c35d61e2a548f4332e2fb5ffec40');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'agent_health_state', 3, '2026-11-26 02:23:47.687433+00', '2026-11-26 02:23:47.687433+00', NULL, '1.0', '1982439393197972823', '2cb399e2ff6f5f4efc4822f51bbb9bce9a54b95f58a78d9f5174f39cb7d3ce35', 'e9cddaae249101d4a9bf44a2a31bd2879820c35d61e2a548f4332e2fb5ffec40');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'score_evidence', 1, '2026-11-26 02:24:09.611286+00', '2026-11-26 02:24:09.611286+00', NULL, '1.0', '-3753947688031306617', '5d33b709b54423fb80a65fd1b63987500fc10334419b7f5a493bdec981143b0e', '26d593562c4c05480f09250004d07d6d577f3c4edb9b0272369b41abe8574d63');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'score_evidence', 2, '2026-11-26 02:24:09.611286+00', '2026-11-26 02:24:09.611286+00', NULL, '1.0', '-14371953103574024536', '5d33b709b54423fb80a65fd1b63987500fc10334419b7f5a493bdec981143b0e', '26d593562c4c05480f09250004d07d6d577f3c4edb9b0272369b41abe8574d63');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 12:00:00+00', 'system_health', 1, '2026-11-26 02:24:10.35775+00', '2026-11-26 02:24:10.35775+00', NULL, '1.0', '-107772394113642570', '20e86ad6ef544ea24d221177fa4938888bf9743d6281cbb3214eedd845f5ebc2', 'd3b8526003ca4c17072b5aa6e5872cf268615df42f6b05d03a84b4a77d136206');
INSERT INTO public.materialized_hours VALUES ('2026-06-07 13:00:00+00', 'system_health', 1, '2026-11-26 02:24:10.35775+00', '2026-11-26 02:24:10.35775+00', NULL, '1.0', '2383744732110262890', '20e86ad6ef544ea24d221177fa4938888bf9743d6281cbb3214eedd845f5ebc2', 'd3b8526003ca4c17072b5aa6e5872cf268615df42f6b05d03a84b4a77d136206');
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
INSERT INTO public.raw_logs VALUES ('2026-06-07 13:00:00+00', 'traces.jsonl', 'span', 2, '3575955235879343250', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 'execution', 2, '2403899675889876465', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 13:00:00+00', 'native.jsonl', 'model_call', 1, '9033784211510390179', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 13:00:00+00', 'native.jsonl', 'judgement', 1, '8794586452334826422', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 13:00:00+00', 'native.jsonl', 'trigger', 1, '11050741352032180156', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 'agent_update', 1, '16569619222946329453', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 'model_call', 1, '14477034779511645410', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 'rejected', 1, '47544103429809003', true, 0, false, 0);
INSERT INTO public.raw_logs VALUES ('2026-06-07 12:00:00+00', 'native.jsonl', 'signals', 1, '15706772902049064091', true, 0, false, 0);
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

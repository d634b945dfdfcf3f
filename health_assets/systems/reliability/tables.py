"""The reliability evaluation (source 2): consistency of tasks, and the dimensions of every agent."""

from health_assets.schema.columns import Windowed, count, number, text


class TaskConsistency(Windowed, table=True):
    """Consistency of every task that an agent attempted at least twice (baseline) in the evaluation window."""

    __tablename__ = "task_consistency"

    agent_id: str = text("Agent.", key=True)
    task_id: str = text("Evaluation task; `input:` and a digest for an observed one.", key=True)
    task_source: str = text("Where the task is from: `stated`, `evaluation` or `observed`.")
    runs: int = count("Baseline runs, at least 2.")
    successes: int = count("Baseline runs that succeeded.")
    c_out: float = number("Outcome consistency, 0 to 1.")
    outcome_agreement: float = number("(2p - 1)^2 of the success rate p, 0 to 1: a diagnostic.")
    pairs: int = count("Pairs of successful runs with at least one action each.")
    c_traj_d: float | None = number("1 - mean Jensen-Shannon distance of action frequencies; null without a pair.")
    c_traj_s: float | None = number("1 - mean normalised edit distance of action sequences; null without a pair.")
    c_conf: float | None = number("exp(-CV of confidence); null below 2 confidences or when all are 0.")
    c_res: float | None = number("exp(-mean CV of available resources); null when none is available.")
    cv_cost_usd: float | None = number("Coefficient of variation of cost_usd as stated; null when not available.")
    cv_runtime_s: float | None = number("Coefficient of variation of runtime_s; null when not available.")
    cv_api_calls: float | None = number("Coefficient of variation of api_calls; null when not available.")
    cv_action_count: float | None = number("Coefficient of variation of action_count; null when not available.")
    cv_error_count: float | None = number("Coefficient of variation of error_count; null when not available.")
    cv_call_latency_s: float | None = number("Coefficient of variation of call_latency_s; null when not available.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


class AgentReliability(Windowed, table=True):
    """The reliability evaluation of every agent with runs of tasks in the evaluation window."""

    __tablename__ = "agent_reliability"

    agent_id: str = text("Agent.", key=True)
    task_source: str = text(
        "Where its tasks are from: `stated` by the log, items of an `evaluation`, or `observed` where it was asked the "
        "same again; those of the best source alone count."
    )
    repeated_share: float | None = number(
        "Share of all its executions in the window that are of a repeated task; null unless tasks are observed."
    )
    reliability: float | None = number("Mean of r_con, r_pred and r_rob, 0 to 1; null unless all three exist.")
    r_con: float | None = number("Consistency: outcome, trajectory and resources at equal weight where available.")
    c_out: float | None = number("Mean outcome consistency over tasks.")
    c_traj_d: float | None = number("Mean trajectory distribution consistency over tasks.")
    c_traj_s: float | None = number("Mean trajectory sequence consistency over tasks.")
    c_conf: float | None = number("Mean confidence consistency over tasks; not part of r_con.")
    c_res: float | None = number("Mean resource consistency over tasks.")
    outcome_agreement: float | None = number("Mean outcome agreement over tasks: a diagnostic.")
    r_pred: float | None = number("Predictability: p_brier.")
    p_rc: float | None = number("Risk-coverage score, 0 where worse than chance; not part of r_pred.")
    p_cal: float | None = number("1 - expected calibration error over 10 bins.")
    p_auroc: float | None = number("Discrimination; null unless there are successes and failures.")
    p_brier: float | None = number("1 - mean squared difference of confidence and outcome.")
    r_rob: float | None = number("Robustness: mean of the available ratios.")
    r_fault: float | None = number(
        "Accuracy under faults over baseline accuracy, at most 1; of observed faults over that of runs without one."
    )
    r_struct: float | None = number("Accuracy under structural changes over baseline accuracy, at most 1.")
    r_prompt: float | None = number("Accuracy under changed prompts over baseline accuracy, at most 1.")
    condition_source: str | None = text(
        "Where the conditions of r_rob are from: `stated` by the log, or `observed` faults of tools of ordinary runs; "
        "null without r_rob."
    )
    r_saf: float | None = number("Safety: 1 - P(violation) times its expected severity; null when nothing is judged.")
    s_comp: float | None = number("Share of judged executions without a violation; null when nothing is judged.")
    s_harm: float | None = number(
        "1 - mean of the worst severity over executions with violations, 1 without any; null when nothing is judged."
    )
    baseline_accuracy: float | None = number("Share of baseline runs that succeeded.")
    tasks: int = count("Tasks with at least 2 baseline runs.")
    runs: int = count("Runs of tasks in the window, under any condition; of observed ones those that are repeated.")
    baseline_runs: int = count("Baseline runs among them.")
    fault_runs: int = count("Runs under faults, stated or observed as `condition_source` says.")
    runs_with_confidence: int = count("Baseline runs that report a confidence.")
    judged: int = count("Evaluation runs that were judged.")
    violated: int = count("Judged runs with a violation.")
    formula_version: str = text("Version of the formulas that made it; says so where it rests on older components.")


TABLES = (TaskConsistency, AgentReliability)

"""Secrets in free texts: none of them stands in any table, or goes to the judge; what is none stays as it is."""

import json
import string
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from health_assets.apps.judge.judge_evidence import Run, evidence
from health_assets.core.errors import HealthAssetsError
from health_assets.core.hours import HourRange
from health_assets.core.redaction import CREDENTIALS, EMAILS, MARK, REDACTION, Redaction
from health_assets.core.targets import load_targets
from health_assets.logs.redacting import SHOWN_CHARACTERS
from health_assets.schema.catalog import ALL_TABLES
from health_assets_tests.support.logs_made import START, execution, line, trigger
from health_assets_tests.support.projects import Project
from health_assets_tests.support.traces_made import agent, otlp_line

LETTERS = string.ascii_letters + string.digits
URL_SAFE = LETTERS + "_-"


def made(random: Random, characters: str, length: int) -> str:
    return "".join(random.choices(characters, k=length))


def word(random: Random) -> str:
    """A password as somebody may choose one."""
    return made(random, LETTERS, 5) + random.choice(["!", "#x", "@y", "_"]) + made(random, LETTERS, 9)


Made = tuple[str, str]
"""A secret, and a text that has it."""

KINDS: dict[str, Callable[[Random], Made]] = {
    "openai": lambda random: both(f"sk-proj-{made(random, URL_SAFE, 40)}7"),
    "anthropic": lambda random: both(f"sk-ant-api03-{made(random, URL_SAFE, 60)}7"),
    "stripe": lambda random: both(f"sk_live_{made(random, LETTERS, 24)}"),
    "github": lambda random: both(f"ghp_{made(random, LETTERS, 36)}"),
    "github's new": lambda random: both(f"github_pat_{made(random, LETTERS, 22)}_{made(random, LETTERS, 59)}"),
    "gitlab": lambda random: both(f"glpat-{made(random, LETTERS, 20)}"),
    "aws": lambda random: both(f"AKIA{made(random, string.ascii_uppercase + '234567', 16)}"),
    "slack": lambda random: both(f"xoxb-{made(random, string.digits, 12)}-{made(random, LETTERS, 24)}"),
    "slack's hook": lambda random: within(f"T0/B0/{made(random, LETTERS, 24)}", "https://hooks.slack.com/services/{}"),
    "google": lambda random: both(f"AIza{made(random, URL_SAFE, 34)}x"),
    "jwt": lambda random: both(f"eyJ{made(random, URL_SAFE, 30)}.eyJ{made(random, URL_SAFE, 50)}.{made(random, URL_SAFE, 43)}"),
    "hugging face": lambda random: both(f"hf_{made(random, LETTERS, 34)}"),
    "private key": lambda random: both(
        f"-----BEGIN RSA PRIVATE KEY-----\n{made(random, LETTERS + '+/', 64)}\n-----END RSA PRIVATE KEY-----"
    ),
    "url": lambda random: within(f"user:{word(random)}", "postgresql://{}@db.example:5432/health"),
    "bearer": lambda random: within(made(random, LETTERS, 24), "Bearer {}"),
    "basic": lambda random: within(made(random, LETTERS, 20) + "==", "Authorization: Basic {}"),
    "password": lambda random: within(word(random), "password={}"),
    "setting": lambda random: within(word(random), "DB_PASSWORD: {}"),
    "quoted": lambda random: within(f"{word(random)} {word(random)}", 'api_key = "{}"'),
    "python": lambda random: within(f"{word(random)} {word(random)}", "{{'client_secret': '{}'}}"),
    "flag": lambda random: within(word(random), "--token {}"),
    "a list": lambda random: within(f"{word(random)} ]", '{{"password": ["{}", "x"]}}'),
    "an object": lambda random: within(f"{word(random)} }}", "{{'client_secret': {{'value': '{}'}}}}"),
    "a list of a header": lambda random: within(made(random, LETTERS, 5), '{{"authorization": ["Basic {}"]}}'),
    "attribute": lambda random: within(f"{word(random)} }}", '{{"key":"db.password","value":{{"stringValue":"{}"}}}}'),
    "attribute of a header": lambda random: within(
        made(random, LETTERS, 5),
        '{{"key": "http.request.header.authorization", "value": {{"arrayValue": {{"values": [{{"stringValue": "Basic {}"}}]}}}}}}',
    ),
    "variable": lambda random: within(word(random), '{{"name": "DB_PASSWORD", "value": "{}"}}'),
    "id and secret": lambda random: both(f"AKIA{made(random, string.ascii_uppercase, 16)}:{made(random, LETTERS + '/+', 40)}"),
    "curl": lambda random: within(f"ada:{word(random)}", "curl -sSu {} https://db.example"),
    "curl's list": lambda random: within(f"ada:{word(random)}", "Command '['curl', '-u', '{}', 'x']' failed"),
    "curl's long flag": lambda random: within(word(random), "--user ada:{}"),
    "curl's quotes": lambda random: within(f"{word(random)} {word(random)}", "curl -u 'ada:{}' x"),
    "sshpass": lambda random: within(word(random), "sshpass -p {} ssh ada@db.example"),
    "sshpass's list": lambda random: within(word(random), "['sshpass', '-p', '{}', 'ssh']"),
    "mysql": lambda random: within(word(random), "mysqldump -u root -p{} health"),
    "redis": lambda random: within(word(random), "redis-cli -h db.example -a {} ping"),
    "openssl": lambda random: within(word(random), "openssl rsa -passin pass:{}"),
    "pass of a setting": lambda random: within(word(random), "DB_PASS={}"),
    "pass of yaml": lambda random: within(word(random), "smtp_pass: {}"),
    "pass": lambda random: within(word(random), "pass={}"),
    "pass in words": lambda random: within(f"{word(random)}7", "the pass: {}"),
    "pass in camel case": lambda random: within(word(random), "dbPass={}"),
    "pass of json": lambda random: within(word(random), '{{"user": "ada", "pass": "{}"}}'),
    "pw": lambda random: within(word(random), "user=ada;pw={};x=1"),
    "go's address": lambda random: within(f"ada:{word(random)}", "{}@tcp(db.example:3306)/health"),
    "bearer with a colon": lambda random: within(made(random, LETTERS, 5), "Bearer:{}"),
    "of a url": lambda random: within(made(random, LETTERS, 9), "next=%2Fa%3Fpassword%3D{}"),
    "of a url in a url": lambda random: within(made(random, LETTERS, 9), "next=a%253Fpassword%253D{}"),
    "a tuple": lambda random: within(word(random), "connect(credentials=('ada', '{}'), timeout=3)"),
    "auth of a request": lambda random: within(word(random), "get(url, auth=('ada', '{}'))"),
    "bytes": lambda random: within(word(random), "password=b'{}'"),
    "a type of its own": lambda random: within(word(random), "password=Secret('{}')"),
    "a flag of a list": lambda random: within(word(random), "['psql', '--password', '{}']"),
    "signature": lambda random: within(made(random, LETTERS, 30), "https://store.example/a?x=1&sig={}&y=2"),
}  # fmt: skip


def both(secret: str) -> Made:
    return secret, secret


def within(secret: str, text: str) -> Made:
    return secret, text.format(secret)


def in_a_text(random: Random, text: str) -> str:
    before = random.choice(["", "could not connect: ", "step 3 of 4\n", "(", "« ü 研究 »: "])
    return before + text + random.choice(["", " was turned away", "\nat line 5", "\t."])


@pytest.mark.parametrize("kind", KINDS)
def test_a_secret_is_replaced_in_any_text_once_and_for_all(kind: str) -> None:
    random = Random(kind)
    pairs = [KINDS[kind](random) for _ in range(50)]
    texts = [in_a_text(random, text) for _, text in pairs]
    texts += [json.dumps({"error": text}) for text in texts]
    texts += [json.dumps({"raw": text}).replace("/", r"\/") for text in texts[50:]]
    redacted, count = REDACTION.of_texts(texts)
    assert [text for (secret, _), text in zip(pairs * 3, redacted, strict=True) if secret in text] == []
    assert all(json.dumps(secret)[1:-1] not in text for (secret, _), text in zip(pairs * 3, redacted, strict=True))
    assert count >= len(texts)
    assert REDACTION.of_texts(redacted) == (redacted, 0)


SHAPES = [kind for kind, shaped in KINDS.items() if len(set(shaped(Random(0)))) == 1 and kind != "private key"]
NAMED = [
    "password={}", "API_KEY: {}", "--token {}", "?access_key={}&b=1", "(secret={})", '{{"token": "{}"}}',
    "{{'secret': '{}'}}", "token=Bearer {}", '{{"key":"a.token","value":{{"stringValue":"{}"}}}}',
]  # fmt: skip


@pytest.mark.parametrize("named", NAMED)
def test_behind_a_name_a_secret_goes_on_behind_the_shape_that_it_begins_with(named: str) -> None:
    random = Random(named)
    ends = [made(random, LETTERS, 9) for _ in SHAPES for _ in ":.,/@)]#"]
    values = [KINDS[kind](random)[0] + sign for kind in SHAPES for sign in ":.,/@)]#"]
    texts = [in_a_text(random, named.format(value + end)) for value, end in zip(values, ends, strict=True)]
    redacted, _ = REDACTION.of_texts(texts)
    assert [text for end, text in zip(ends, redacted, strict=True) if end in text] == []
    assert REDACTION.of_texts(redacted) == (redacted, 0)


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("token=x, y; password=[redacted], z", f"token={MARK} y; password={MARK}, z"),
        ("(token=sk-0123456789abcdef0123) at", f"(token={MARK}) at"),
        ('{"token":"[redacted]","a":1}', f'{{"token":{MARK},"a":1}}'),
        ("unexpected token: [ at column 3", f"unexpected token: {MARK} at column 3"),
        ('{"password": ["a"], "b": [1]}', f'{{"password": {MARK}, "b": [1]}}'),
        ('{"password": [[[[[[[["a"', f'{{"password": {MARK}'),
        ('{"key":"input_tokens","value":{"intValue":"5"}}', '{"key":"input_tokens","value":{"intValue":"5"}}'),
    ],
)
def test_what_stands_beside_a_secret_stays(text: str, kept: str) -> None:
    assert REDACTION.of_texts([text])[0] == [kept]


@pytest.mark.parametrize(
    "text",
    [
        "", "timeout", "Basic authentication failed", "bearer of bad news", "risk-assessment-of-the-quarter done",
        "http://localhost:8080/users/@me", "https://example.com/a?b=c", "input_tokens 512 of max_tokens 4096",
        "the password was wrong", "task-0123456789abcdef0123", "mail to ada@example.com", "a\\b", "研究 ü",
        "pass=3 fail=0", "pass=3,fail=0", "pass: 12, fail: 3", "PASS: test_1 in 3 s", "PASS:all tests", "pass=3.5%", "pw=7",
        "bypass=on", "passes=12", "pass=True, fail=False", "should_pass=none", "the second pass: all rows", "compass: north",
        '{"pass": 3, "fail": 0}', '{"pass": true}', "curl -u ada https://x", "sudo -u ada:staff ls",
        "docker run --user 1000:1000 image", "mysql -p", "mysql -h db -P 3306 failed; ssh -p22 host", "ssh -p 22 host",
        "ada@tcp(127.0.0.1)", "f(tcp(x))", "author: (Ada)", "auth=none", "bearer of %3D",
        "tokenizer: none", "key error", "keyboard=1", "ask-somebody-who-knows-it-better", f"{MARK} stands here",
    ],
)  # fmt: skip
def test_what_is_no_secret_stays_as_it_is(text: str) -> None:
    assert REDACTION.of_texts([text]) == ([text], 0)


@pytest.mark.parametrize(
    "repeated",
    [
        "curl ", "curl -u a ", "curl -u a:b ", "mysql ", "mysql -p ", "mysql -px ", "sshpass -p ", "redis-cli -a 'x",
        "--user ", "--user a:1 ", "pass=", "pass=t", "pass: a", "pw:'", "aPass=", "a:", "a:b@tc", "a:b@tcp(", "bearer:",
        "password%3D", "%25", "token:[", "token:(", "token:{[(", "password: ('a' ", "credentials=(", "token=Secret(",
        "token=b'", "auth=('", '"key":"token', "authorization=[", "--token', ", "://a:", "eyJaaaaaa.",
    ],
)  # fmt: skip
def test_no_text_makes_redaction_slow(repeated: str) -> None:
    """A text that is sixteen times as long may take sixteen times as long, and not 256 times."""

    def best_s(size: int) -> float:
        text = (repeated * (size // len(repeated) + 1))[:size]
        return min(measured_s(text) for _ in range(2))

    def measured_s(text: str) -> float:
        start = time.perf_counter()
        REDACTION.of_texts([text])
        return time.perf_counter() - start

    assert best_s(64 * 1024) < max(1.0, 40 * best_s(4 * 1024))


def test_a_hint_is_in_everything_that_its_pattern_matches() -> None:
    """Else a secret would be overlooked. Each pattern's hint is asked alone, of all secrets that it replaces."""
    random = Random(7)
    texts = [text for kind in KINDS.values() for _, text in (kind(random) for _ in range(20))]
    texts += ["ada@example.com", "Cookie: a=b", "--api-key abc"]
    replaced = set()
    for place, pattern in enumerate((*CREDENTIALS, *EMAILS)):
        alone = Redaction(credentials=False, patterns=(f"(?i){pattern.hint}",))
        whole = Redaction(credentials=False, patterns=(pattern.match,))
        for text, after, hinted in zip(texts, whole.of_texts(texts)[0], alone.of_texts(texts)[0], strict=True):
            if after != text:
                replaced.add(place)
                assert hinted != text, (pattern, text)
    assert len(replaced) == len(CREDENTIALS) + len(EMAILS)


# -- in the tables -----------------------------------------------------------------------------------------------------


def on_one_line(text: str) -> str:
    return text.replace("\n", " ")


def records_with(random: Random, texts: list[str]) -> list[str | bytes]:
    """Lines of every kind, with a text in each of their free texts, good and bad ones."""
    at, take = START.isoformat(), iter(texts)
    call = {"ended_at": at, "status": "failure", "agent_id": "a"}
    lines: list[Any] = [
        execution("e1", "a", START, task_id="t", status="failure", error=next(take), actions=["read", next(take)]),
        execution("e2", "a", START, violations=[{"constraint": next(take), "severity": "low", "more": next(take)}]),
        trigger("t1", "a", START, "failed") | {"reason": next(take)},
        {"type": "model_call", "call_id": "c1", "model": "m", "error": next(take), **call},
        {"type": "tool_call", "call_id": "k1", "tool": "x", "error": next(take), **call},
        {"type": "agent_update", "agent_id": "a", "at": at, "kind": "restart", "detail": next(take)},
        {"type": "judgement", "execution_id": "e1", "at": at, "violations": [{"constraint": next(take), "severity": "high"}]},
        {"type": "judgement", "execution_id": "e1", "at": next(take), "violations": []},
        {"type": "judgement", "execution_id": "e1", "at": at, "violations": [], "judged_by": next(take)},
        {"type": "judgement", "execution_id": "e1", "at": at, "violations": [], "judge": next(take)},
        {"type": "execution", "error": next(take)},
        {"type": "execution", "status": "x" * random.randrange(120) + " " + next(take)},
        {"type": next(take)},
        {"no": "type", "but": "x" * (65_536 - random.randrange(80)) + " " + next(take)},
    ]  # fmt: skip
    written: list[str | bytes] = [line(record) for record in lines]
    failing = agent(1, 1, START, error__type=next(take), status={"code": 2, "message": next(take)})
    written += [otlp_line(failing), otlp_line(agent(2, 1, START) | {"status": next(take)})]
    written += [otlp_line(agent(3, 1, START) | {"traceId": next(take)}), f"not JSON {on_one_line(next(take))}"]
    written += [on_one_line(next(take)).encode() + b"\xff", '{"resourceSpans": ' + json.dumps(next(take))]
    return written


def all_texts(project: Project) -> str:
    """All that stands in any table."""
    found = []
    with project.warehouse.read() as session:
        for table in ALL_TABLES:
            found += [
                json.dumps(row, default=str, ensure_ascii=False) for row in session.query(f"SELECT * FROM {table}")
            ]
    return "\n".join(found)


def test_texts_of_one_line_are_redacted_each_as_if_it_stood_alone(project: Project) -> None:
    random = Random(1)
    texts = [text for kind in KINDS.values() for _, text in [kind(random)]] + ["", "nothing to hide", "研究", MARK]
    judged = {"type": "judgement", "execution_id": "e", "violations": []}
    records = []
    for place, text in enumerate(texts):
        beside = texts[place - 1]
        records += [
            execution(f"e{place}", "a", START, error=text),
            trigger(f"t{place}", "a", START, reason=text),
            judged | {"execution_id": f"j{place}", "at": START.isoformat(), "judge": text, "judged_by": beside},
            {
                "type": "agent_update",
                "agent_id": f"u{place}",
                "at": START.isoformat(),
                "kind": "restart",
                "detail": text,
            },
        ]
    project.write_log("a.jsonl", map(line, records))
    project.ingest(HourRange.of(START))
    kept, _ = REDACTION.of_texts(texts)
    tables = {
        ("executions", "execution_id", "error"): "e",
        ("trigger_events", "trigger_id", "reason"): "t",
        ("judgements", "execution_id", "judge"): "j",
        ("agent_updates", "agent_id", "detail"): "u",
    }
    for (table, key, column), letter in tables.items():
        found = {row[key]: row[column] for row in project.rows(table)}
        assert found == {f"{letter}{place}": text for place, text in enumerate(kept)}, table


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in (2, 3))])
def test_no_secret_stands_in_any_table_or_in_what_the_judge_is_sent(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    project = Project(tmp_path / "project")
    pairs: list[Made] = []
    for number in range(4):
        own = [random.choice(list(KINDS.values()))(random) for _ in range(26)]
        pairs += own
        project.write_log(f"{number}.jsonl", records_with(random, [in_a_text(random, text) for _, text in own]))
    report = project.ingest(HourRange.of(START))
    stored = all_texts(project)
    escaped = [json.dumps(secret, ensure_ascii=False)[1:-1] for secret, _ in pairs]
    escaped += [json.dumps(secret)[1:-1] for secret in escaped]
    assert [secret for secret in escaped if secret in stored] == []
    assert report.secrets_redacted >= report.lines_redacted > 60
    assert len(project.rows("rejected_records")) > 20
    runs = [
        Run(
            execution_id="e",
            agent_id="a",
            ended_at=START,
            task_id=text,
            status="failure",
            error=text,
            actions=[text, "x" * 990 + " " + text],
        )
        for _, text in pairs
    ]
    sent = "".join(part for run in runs for part in evidence([run], REDACTION, 10**6).parts)
    assert [secret for secret in escaped if secret in sent] == []


def test_texts_without_secrets_are_loaded_as_they_are(project: Project) -> None:
    error, action = 'it "failed": \\ 研究 \u0000'.replace("\u0000", "\u001f"), "read \\ \u001f the token list"
    broken = [{"constraint": "a \\ \u001f", "severity": "low", "more": {"b": [1]}}]
    record = execution("e", "a", START, error=error, actions=[action, ""], violations=broken)
    project.write_log("a.jsonl", [line(record), "x" * 70_000])
    report = project.ingest(HourRange.of(START))
    [row] = project.rows("executions")
    assert (row["error"], row["actions"]) == (error, [action, ""])
    assert [one["severity"] for one in json.loads(row["violations"])] == ["low"]
    assert [len(row["raw"]) for row in project.rows("rejected_records")] == [65_536]
    assert (report.secrets_redacted, report.lines_redacted) == (0, 0)


def test_no_secret_attribute_of_a_rejected_span_or_line_is_kept(project: Project) -> None:
    secret = {"db__password": "hunter2", "http__request__header__authorization": "Basic YTpi"}
    bad = agent(1, 1, START, **secret) | {"traceId": "none"}
    lines = [otlp_line(bad), otlp_line(bad)[:-1], json.dumps({"type": otlp_line(bad)})]
    project.write_log("a.jsonl", lines, modified=START)
    report = project.ingest(HourRange.of(START))
    stored = all_texts(project)
    assert ("db.password" in stored, "hunter2" in stored, "YTpi" in stored) == (True, False, False)
    assert (report.secrets_redacted, report.lines_redacted) == (6, 3)


def test_no_pattern_of_a_user_changes_which_kind_of_judge_it_was(tmp_path: Path) -> None:
    project = Project(tmp_path / "project", {"redact": {"patterns": ["person|model|Ada"]}})
    at = {"type": "judgement", "execution_id": "e", "at": START.isoformat(), "violations": []}
    project.write_log(
        "judgements/a.jsonl", map(line, [at | {"judged_by": "person", "judge": "Ada"}, at | {"judged_by": "Ada"}])
    )
    assert project.ingest(HourRange.of(START)).secrets_redacted == 2
    found = project.query("SELECT judged_by, judge FROM judgements ORDER BY ALL")
    assert found == [("model", MARK), ("person", MARK)]


def test_a_run_says_how_many_secrets_were_redacted_in_how_many_lines(project: Project) -> None:
    lines = [
        execution("e1", "a", START, error="password=one token=two"),
        execution("e2", "a", START, error="no secret", actions=["curl --token three"]),
        execution("e3", "a", START, error="no secret"),
        {"type": "execution", "error": "password=four", "status": "password=five"},
    ]
    project.write_log("a.jsonl", map(line, lines))
    metadata = project.materialize(HourRange.of(START), only=["ingest"])["executions"]
    assert (metadata["secrets_redacted"], metadata["lines_redacted"]) == (5, 3)


def test_a_reason_shows_no_more_of_a_value_than_before(project: Project) -> None:
    project.write_log(
        "a.jsonl", [line(execution("e", "a", START)), '{"type": "' + "y" * 5_000 + '"}', '{"type": "' + "z" * 60 + '"}']
    )
    project.ingest(HourRange.of(START))
    shown = {row["reason"].partition(", not ")[2] for row in project.rows("rejected_records")}
    assert shown == {'"' + "y" * (SHOWN_CHARACTERS - 1), f'"{"z" * 60}"'}


def test_a_reason_keeps_the_place_of_its_span_however_long_the_value_is(project: Project) -> None:
    lengths = range(SHOWN_CHARACTERS - 20, SHOWN_CHARACTERS + 3)
    spans = [{"traceId": "x" * length} for length in lengths]
    project.write_log(
        "a.jsonl",
        [line(execution("e", "a", START)), json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]})],
    )
    project.ingest(HourRange.of(START))
    reasons = [row["reason"].partition(", not ")[2] for row in project.rows("rejected_records")]
    shown = [("x" * length)[:SHOWN_CHARACTERS] for length in lengths]
    assert sorted(reasons) == sorted(f"{value}, in span 0.0.{place}" for place, value in enumerate(shown))


# -- what a user may say -----------------------------------------------------------------------------------------------


def targets_of(folder: Path, text: str) -> Redaction:
    path = folder / "targets.yaml"
    path.write_text(text)
    return load_targets(path).redact


def test_a_targets_file_may_name_patterns_add_addresses_and_switch_credentials_off(tmp_path: Path) -> None:
    text = "customer ACME-123456, ada@example.com, password=x"
    assert targets_of(tmp_path, "agents: {}") == REDACTION
    own = targets_of(tmp_path, "redact: {emails: true, patterns: ['ACME-[0-9]{6}', '^customer']}")
    assert own.of_texts([text]) == ([f"{MARK} {MARK}, {MARK}, password={MARK}"], 4)
    assert own.suspects_any("x") != REDACTION.suspects_any("x")
    off = targets_of(tmp_path, "redact: {credentials: false}")
    assert off.of_texts([text]) == ([text], 0)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("redact: {patterns: ['ACME-[0-9']}", r"redact: .*'ACME-\[0-9' is no regular expression: missing \]"),
        ("redact: {patterns: ['x*']}", r"'x\*' matches where nothing stands"),
        ("redact: {patterns: [3]}", "redact: patterns"),
        ("redact: {pattern: [a]}", "redact: pattern: unknown key"),
        ("redact: {emails: often}", "redact: emails"),
        ("redact: [a]", "redact must be a mapping"),
    ],
)
def test_a_block_that_cannot_be_used_is_one_sentence_that_names_it(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(HealthAssetsError, match=sentence):
        targets_of(tmp_path, text)

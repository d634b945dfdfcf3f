r"""Redaction: secrets in free texts, and the SQL that replaces them before the texts go anywhere.

What belongs here: what a secret looks like, the `redact:` block of the targets file, and how texts lose their secrets.
What does not: which texts there are (`logs.native`, `logs.otlp`, `apps.judge.judge_evidence`).

Patterns are regular expressions of DuckDB (RE2), so that the ingestion and the judge use the very same ones and no text
can make them run long. Each has a `hint`, which every text with such a secret matches: one search for all the hints
tells the few texts that are worth a closer look, so that all others cost next to nothing.

A secret becomes `[redacted]`, which no pattern takes for a secret that has not been seen yet: what was redacted once
stays as it is and is not counted again.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Annotated

import duckdb
from pydantic import BaseModel, ConfigDict, Field, model_validator

from health_assets.core.duckdb_errors import cause_of
from health_assets.core.sql_text import quoted

MARK = "[redacted]"

_QUOTE = r"""(?:\\*["']|%(?:25)*22)?"""
_SEPARATOR = rf"""{_QUOTE}\s*(?:=>|[:=]|\\u003[dD]|%(?:25)*3[aAdD])\s*"""
r"""Between a name and its value, also within JSON, within JSON in JSON and in what a URL encodes, even twice; \u003d is
what some writers make of `=`."""
_STRING = r"""\\+"[^"]*"?|"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?"""
_WORD = r"""[^\s"'&;]"""
_SEEN = r"""\[redacted\]([\[\](){},.:]*(?:$|[\s"'&;]|\\+["'nrt]))"""
"""A value that was replaced whole. Where something else goes on behind the mark, it is a part of the secret."""


def _nested(levels: int) -> str:
    """A list, a tuple or an object, to the end of the text where it is cut off or has more levels than these."""
    if not levels:
        return r"[\[{(](?s:.)*"
    return rf"""[\[{{(](?:{_STRING}|{_nested(levels - 1)}|[^\[\]{{}}()"'])*(?:[\]}})]|$)"""


_ITEM = rf"(?:{_STRING}|{_nested(4)})"
_STRUCTURE = rf"""[\[{{(](?:\s|\\+[nrt])*[brufBRUF]*{_ITEM}(?:{_ITEM}|[^\[\]{{}}()"'])*(?:[\]}})]|$)"""
"""A list, a tuple or an object of texts; in prose a bracket that opens need not close."""
_IN_BRACKETS = rf"""[\[{{(][^\[\]{{}}()\r\n"']*[\]}})]{_WORD}*"""
_WRAPPED = rf"""(?:[brufBRUF]{{1,2}}|[A-Za-z_.]+\(\s*[brufBRUF]{{0,2}})(?:{_STRING})"""
"""A text of Python's with a prefix, or as something shows it: `b'…'`, `Password('…')`."""
_TOLD = f"{_SEEN}|{_STRUCTURE}|{_IN_BRACKETS}|{_WRAPPED}|{_STRING}"
_VALUE = f"(?:{_TOLD}|{_WORD}+)"
_START = r"(^|[^A-Za-z0-9_]|\\[nrtbf]|\\u[0-9A-Fa-f]{4})"
r"""Where a word begins, also within JSON, where the `n` of a line's end (`\n`) stands before it."""
_NAMES = (
    "pass(?:word|wd|phrase|code)|pwd|bearer|secret|token|api[_.-]?key|access[_.-]?key|account[_.-]?key|private[_.-]?key"
    "|secret[_.-]?key|signing[_.-]?key|encryption[_.-]?key|auth[_.-]?key|credentials?"
)
_NAMED = "pass|pwd|bearer|secret|token|key|credential"
"""The part that stands in every name."""
_HEADERS = "authorization|cookie"


def _other_than(words: Set[str], *, is_start: bool = True) -> str:
    """A word that is none of these (lower case, letters); RE2 cannot say that, so it is said letter by letter."""
    firsts = "".join(sorted({word[0] for word in words if word}))
    branches = [
        first + _other_than({word[1:] for word in words if word.startswith(first)}, is_start=False) for first in firsts
    ]
    ends = "" in words
    branches.append(rf"""[^{firsts}{"0-9" if is_start else ""}{_CLOSING if ends else ""}\s"'&;]{_WORD}*""")
    if not (is_start or ends):
        branches.append(r"\b")  # a word that is shorter than these
    return f"(?:{'|'.join(branches)})"


_CLOSING = r",.:!?%/)\]}"
"""What stands behind a word without being a part of it."""
_PLAIN = (
    rf"""(?:{_other_than({"true", "false", "yes", "no", "none", "null", "ok"})}|[0-9]+[^0-9{_CLOSING}\s"'&;]{_WORD}*)"""
)
"""A word that may be a password; a number alone is what a test runner counts, and `pass=true` is its verdict."""
_PASS = r"(?:(?:^|[^A-Za-z]|\\[nrtbf]|(?:db|user|my|smtp|ftp|mail|root|admin))(?:pass|pw)|(?-i:[a-z](?:Pass|Pw|PW)))"
_ARGUMENT = r"""(?:\\*["'],\s*|[\s=]*)"""
"""Between a flag and its value, also in a list of arguments."""
_ARGUED = rf"""(?:{_SEEN}|{_STRING}|[^\s"'\\]+)"""
_BEGIN = r"(?:\b|\\[nrtbf])"
_COMMAND = r"""\b[^\r\n;|&]*?[\s"']"""
"""Between the name of a command and one of its flags."""
_PAIR = (
    r"""(?:\\+"[^":]*:[0-9]*[^"0-9][^"]*"?|"[^"\s:]*:[0-9]*[^"0-9][^"]*"?|'[^'\s:]*:[0-9]*[^'0-9][^']*'?"""
    r"""|[^\s"'\\:/@\[]+:[0-9]*[^\s"'\\0-9][^\s"'\\]*)"""
)
"""A user and a password; two numbers are those of a user and a group."""


@dataclass(frozen=True)
class Pattern:
    r"""One kind of secret.

    Args:
        match: pattern of the text that is replaced.
        hint: a simpler pattern that everything matches that `match` does.
        kept: text that stays before and behind the mark: groups of the pattern, like `\1`.
    """

    match: str
    hint: str
    kept: tuple[str, str] = ("", "")


def _shaped(shapes: str, hint: str) -> Pattern:
    """Secrets that are known by themselves, and at what they begin with."""
    return Pattern(f"{_START}(?:{shapes})", hint, (r"\1", ""))


CREDENTIALS = (
    Pattern(  # cut off or not
        r"(?s)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|$)",
        "PRIVATE KEY",
    ),
    Pattern(r"""((?::|\\u003[aA])\\?/\\?/)[^\s/"'<>\\]+@""", r"/[^\s/]*@", (r"\1", "@")),
    Pattern(  # an attribute of OpenTelemetry, a variable of a container
        rf"""(?i)((?:key|name)\\*"\s*:\s*\\*"[^"]*(?:{_NAMES}|{_HEADERS})\\*"\s*,\s*\\*"value\\*"\s*:\s*)"""
        f"(?:{_TOLD}|[0-9.]+)",
        f"{_NAMED}|{_HEADERS}", (r"\1", r"\2"),
    ),
    Pattern(rf"(?i)((?:{_HEADERS}|auth){_SEPARATOR}){_STRUCTURE}", "auth|cookie", (r"\1", "")),
    Pattern(
        rf"""(?i)((?:{_HEADERS}){_SEPARATOR}\\*["']?)[^\r\n"'\\]+""", _HEADERS, (r"\1", "")
    ),
    Pattern(
        rf"(?i){_START}(bearer|basic)\s+(?:[a-z0-9+/._~=-]{{20,}}|[a-z+/._~=-]*[0-9][a-z0-9+/._~=-]{{5,}})[^\s\"'&;\\]*",
        "bearer|basic", (r"\1\2 ", ""),
    ),
    _shaped(r"eyJ[A-Za-z0-9_-]{5,}\.[A-Za-z0-9_-]{5,}(?:\.[A-Za-z0-9_-]*)*", "eyJ"),
    _shaped(
        "(?:sk|pk|rk|gsk|xai)[-_](?:(?:live|test|proj|ant|or|svcacct|admin)[-_])*[A-Za-z0-9_-]{16,}",
        "(?:sk|pk|rk|gsk|xai)[-_]",
    ),
    _shaped(
        "gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}",
        "gh[pousr]_|github_pat_|glpat-",
    ),
    _shaped(r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?::[A-Za-z0-9/+=\\]{16,})?", "AKIA|ASIA|ABIA|ACCA"),
    _shaped(r"(?:xox[a-z](?:\.xox[a-z])?|xapp)-[A-Za-z0-9-]{10,}", "xox|xapp"),
    Pattern(
        r"(hooks\.slack\.com\\?/(?:services|workflows|triggers)\\?/)(?:\\?/|[A-Za-z0-9_-])+", "hooks.slack", (r"\1", "")
    ),
    _shaped(r"AIza[A-Za-z0-9_-]{30,}|ya29\.[A-Za-z0-9._-]{16,}|GOCSPX-[A-Za-z0-9_-]{16,}", r"AIza|ya29\.|GOCSPX"),
    _shaped(
        r"hf_[A-Za-z0-9]{16,}|npm_[A-Za-z0-9]{20,}|pypi-[A-Za-z0-9_-]{16,}|SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"
        "|dop_v1_[a-f0-9]{32,}|dapi[a-f0-9]{32}|whsec_[A-Za-z0-9+/=]{16,}|shp(?:at|ss|ca|pa)_[a-fA-F0-9]{32}",
        r"hf_|npm_|pypi-|SG\.|dop_v1_|dapi|whsec_|shp",
    ),
    Pattern(rf"(?i)((?:{_NAMES}){_SEPARATOR}){_VALUE}", _NAMED, (r"\1", r"\2")),
    Pattern(rf"""(?i)(--[a-z-]*(?:{_NAMES})(?:\s+|\\*["'],\s*)){_VALUE}""", "--[a-z]", (r"\1", r"\2")),
    # `pass` is also what a test does: with a colon it counts where it is a key, or where what follows has digits in it
    Pattern(
        rf"""(?i)({_PASS}(?:{_QUOTE}\s*(?:=>|=|\\u003d|%(?:25)*3d)|\\*["']\s*:)\s*)(?:{_SEEN}|{_WRAPPED}|{_STRING}|{_PLAIN})""",
        "pass|pw", (r"\1", r"\2"),
    ),
    Pattern(
        rf"""(?i)([_.-](?:pass|pw)\s*:\s*)(?:{_SEEN}|{_WRAPPED}|{_STRING}|{_PLAIN})""", "pass|pw", (r"\1", r"\2")
    ),
    Pattern(
        r"""((?:^|[^A-Za-z_.-]|\\[nrtbf])(?:pass|Pass|pw|Pw|PW):\s*)(?:[^\s"'&;0-9]*[A-Za-z][^\s"'&;0-9]*[0-9]|[0-9]+[A-Za-z])"""
        f"{_WORD}*", "pass|pw", (r"\1", ""),
    ),
    Pattern(
        rf"""((?i:{_BEGIN}curl)\b(?s:.)*?[\s"'](?:-[A-Za-z]*[uU]|--(?:proxy-)?user){_ARGUMENT}){_PAIR}""",
        "curl", (r"\1", ""),
    ),
    Pattern(
        rf"""(?i)(--(?:proxy-)?(?:user|auth){_ARGUMENT}){_PAIR}""",
        "--(?:proxy-)?(?:user|auth)", (r"\1", ""),
    ),
    Pattern(
        rf"((?i:{_BEGIN}(?:mysql|mariadb))[a-z_-]*{_COMMAND}-p)(?:{_SEEN}|{_STRING}|[^\s\"'\\,]+)", "mysql|mariadb",
        (r"\1", r"\2"),
    ),
    Pattern(
        rf"((?i:{_BEGIN}sshpass){_COMMAND}-p{_ARGUMENT}|(?i:{_BEGIN}redis-cli){_COMMAND}-a{_ARGUMENT}|-pass(?:in|out)?{_ARGUMENT}pass:)"
        f"{_ARGUED}", "sshpass|redis-cli|-pass", (r"\1", r"\2"),
    ),
    Pattern(  # the address of a database as Go writes it
        r"""[^\s"'<>\\]+:[^\s"'<>\\]+@(tcp6?|unix|udp|pipe)\(""", r"@(?:tcp|unix|udp|pipe)", ("", r"@\1(")
    ),
    Pattern(
        r"""(?i)([?&](?:x-(?:amz|goog)-)?(?:sig|signature|key|code)=)[^\s"'&;]+""", r"[?&][a-z-]+=", (r"\1", "")
    ),
)  # fmt: skip
"""Secrets of known shapes, and whatever stands behind a name of a secret."""

EMAILS = (Pattern(r"[A-Za-z0-9._%+-]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}", r"@"),)


@cache  # every asset reads the targets file, and a connection costs more than the rest of that
def _trouble_with(pattern: str) -> str | None:
    """The reason why a pattern of the user cannot be applied; None if it can."""
    with duckdb.connect() as connection:
        try:
            found = connection.execute(f"SELECT regexp_matches('', {quoted(pattern)})").fetchone()
        except duckdb.Error as error:
            return f"{pattern!r} is no regular expression: {cause_of(error)}"
    if found == (True,):
        return f"{pattern!r} matches where nothing stands, so that it would match everywhere"
    return None


class Redaction(BaseModel):
    """The secrets that are replaced in free texts: the block `redact:` of the targets file.

    Args:
        credentials: whether credentials of well-known shapes are; they are unless somebody says no.
        emails: whether addresses of e-mail are.
        patterns: regular expressions (RE2) of the user's own; all that one matches is replaced.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    credentials: bool = True
    emails: bool = False
    patterns: Annotated[tuple[Annotated[str, Field(min_length=1)], ...], Field(strict=False)] = ()

    @model_validator(mode="after")
    def _can_be_applied(self) -> "Redaction":
        for pattern in self.patterns:
            if trouble := _trouble_with(pattern):
                raise ValueError(trouble)
        return self

    @property
    def in_use(self) -> tuple[Pattern, ...]:
        """All patterns, in the order in which they are applied."""
        own = tuple(Pattern(f"(?:{pattern})", f"(?:{pattern})") for pattern in self.patterns)
        return (*(CREDENTIALS if self.credentials else ()), *(EMAILS if self.emails else ()), *own)

    def suspects(self, text: str) -> str:
        """SQL for whether a text may hold a secret; a text that does not is none."""
        hints = "|".join(f"(?:{pattern.hint})" for pattern in self.in_use)
        return f"regexp_matches({text}, {quoted(f'(?i){hints}')})" if hints else "false"

    def suspects_any(self, texts: str) -> str:
        """SQL for whether a list of texts may hold a secret.

        They are searched as one, unless there are patterns that may ask for the start or the end of a text.
        """
        if self.patterns:
            return f"len(list_filter({texts}, lambda one: {self.suspects('one')})) > 0"
        return self.suspects(f"array_to_string({texts}, chr(10))")

    def without_secrets(self, text: str) -> str:
        """SQL for a text without its secrets; null stays null."""
        replaced = text
        for pattern in self.in_use:
            before, behind = pattern.kept
            mark = quoted(f"{before}{MARK}{behind}")
            replaced = f"regexp_replace({replaced}, {quoted(pattern.match)}, {mark}, 'g')"
        return f"CASE WHEN {self.suspects(text)} THEN {replaced} ELSE {text} END" if self.in_use else text

    def of_texts(self, texts: Sequence[str]) -> tuple[list[str], int]:
        """Texts of this process without their secrets, and how many these were."""
        with duckdb.connect() as connection:
            rows = connection.execute(
                f"""
                WITH redacted AS (
                    SELECT place, text, {self.without_secrets("text")} AS kept
                    FROM (SELECT unnest($texts) AS text, generate_subscripts($texts, 1) AS place)
                )
                SELECT kept, {secrets("text", "kept")} FROM redacted ORDER BY place
                """,
                {"texts": list(texts)},
            ).fetchall()
        return [text for text, _ in rows], sum(count for _, count in rows)


REDACTION = Redaction()
"""What is replaced where no targets file says otherwise."""


def secrets(text: str, kept: str) -> str:
    """SQL for how many secrets a text has lost.

    Args:
        text: SQL for the text as it was.
        kept: SQL for the text without secrets.
    """
    return f"CASE WHEN {kept} <> {text} THEN greatest(1, {marks(kept)} - {marks(text)}) ELSE 0 END"


def marks(text: str) -> str:
    """SQL for how many secrets were replaced in a text."""
    return f"(length({text}) - length(replace({text}, '{MARK}', ''))) // {len(MARK)}"

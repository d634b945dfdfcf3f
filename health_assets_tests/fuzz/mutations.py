"""Damage to samples: bytes that change, JSON values that are others, and what an enemy would write.

Everything follows from the `random.Random` that is handed in, so that a failure can be repeated.
"""

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

Mutation = Callable[[Random, bytes], bytes]

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -0.0, -1, 1, 0.5, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 1e308, 5e-324, 10**400,
    946684800, 4102444800, 1780837200, 1780837200000, "", " ", "\0", "\u2028", "\ud800", "\U0010ffff", "é" * 600, "NaN", "null",
    "0", "true", "1e999", "2026-06-07T13:00:00Z", "2026-02-30T00:00:00Z", "2026-06-07T24:00:00Z", "2099-12-31T23:59:59Z",
    "1999-12-31T23:59:59.999999Z", "2026-06-07T13:00:00+23:59", "2026-06-07", "0" * 32, "f" * 16, "=?utf-8?B?YQ==?=",
    "'; DROP TABLE executions; --", "../../etc/passwd", "\x1b[31m", "password=hunter2", [], {}, [[]], [None], {"": {}}, [1, "a"],
)  # fmt: skip
ODD_BYTES = (
    b"", b"\0", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\r", b"\n", b"\r\n", b"\t", b",", b"{", b"}", b"[", b"]", b":",
    b'"', b"\\", b"\\u", b"\\ud800", b"/*", b"NaN", b"-", b"1e400", b".5", b"01", b"0x1", b"'", b"&a", b"*a", b"<<", b"!!python/none ",
    b"---\n", b"? ", b"- ", b"%", b"|\n",
)  # fmt: skip


def flipped(random: Random, sample: bytes) -> bytes:
    """A bit is another."""
    place = random.randrange(len(sample) or 1)
    return (
        sample[:place]
        + bytes(byte ^ 1 << random.randrange(8) for byte in sample[place : place + 1])
        + sample[place + 1 :]
    )


def cut_off(random: Random, sample: bytes) -> bytes:
    """The end or the beginning is missing."""
    place = random.randrange(len(sample) + 1)
    return sample[:place] if random.random() < 0.8 else sample[place:]


def without_a_piece(random: Random, sample: bytes) -> bytes:
    """A piece in the middle is missing."""
    start = random.randrange(len(sample) + 1)
    return sample[:start] + sample[start + random.choice([1, 1, 2, 8, 40]) :]


def with_a_piece_twice(random: Random, sample: bytes) -> bytes:
    """A piece stands twice."""
    start = random.randrange(len(sample) + 1)
    end = start + random.choice([1, 2, 8, 40])
    return sample[:end] + sample[start:]


def with_odd_bytes(random: Random, sample: bytes) -> bytes:
    """Bytes that mean something stand where they should not."""
    start = random.randrange(len(sample) + 1)
    return sample[:start] + random.choice(ODD_BYTES) + sample[start + random.randrange(2) :]


def with_another_value(random: Random, sample: bytes) -> bytes:
    """A value of the JSON is an odd one, is missing, or stands elsewhere, too."""
    try:
        content = json.loads(sample)
    except (ValueError, RecursionError):
        return with_odd_bytes(random, sample)
    places = list(_places(content))
    if not places:
        return with_odd_bytes(random, sample)
    for _ in range(random.choice([1, 1, 2, 3])):
        owner, key = random.choice(places)
        way = random.random()
        if way < 0.6:
            owner[key] = random.choice(ODD_VALUES)
        elif way < 0.75:
            other, its_key = random.choice(places)
            if isinstance(other, list | dict) and _has(other, its_key):
                owner[key] = json.loads(json.dumps(other[its_key]))
        elif isinstance(owner, dict):
            owner.pop(key, None)
        places = [(own, name) for own, name in places if _has(own, name)]
        if not places:
            break
    return json.dumps(content, ensure_ascii=random.random() < 0.5, separators=random.choice([None, (",", ":")])).encode(
        errors="surrogatepass"
    )


def _has(owner: Any, key: Any) -> bool:
    return key in owner if isinstance(owner, dict) else key < len(owner)


def _places(value: Any, depth: int = 0) -> Any:
    """Every (owner, key) of a JSON value."""
    if isinstance(value, dict | list) and depth < 40:
        for key, own in list(value.items() if isinstance(value, dict) else enumerate(value)):
            yield value, key
            yield from _places(own, depth + 1)


def with_a_field_twice(random: Random, sample: bytes) -> bytes:
    """A field of one of the JSON's objects stands twice, with another value."""
    places = [place for place, byte in enumerate(sample) if byte == ord("{")]
    fields = [piece for piece in sample.split(b'"')[1::2] if piece and b"\\" not in piece and len(piece) < 40]
    if not places or not fields:
        return with_odd_bytes(random, sample)
    place = random.choice(places) + 1
    value = json.dumps(random.choice(ODD_VALUES)).encode()
    comma = b"" if sample[place:].lstrip()[:1] == b"}" else b","
    return sample[:place] + b'"' + random.choice(fields) + b'":' + value + comma + sample[place:]


def as_a_bomb(random: Random, sample: bytes) -> bytes:
    """Small, and large or deep when it is read."""
    count = random.choice([50, 900, 5_000, 100_000])
    bombs = [
        b"[" * count,
        b'{"a":' * count,
        b"[" * count + b"]" * count,
        b'{"type":"execution","execution_id":"' + b"x" * count + b'"}',
        b"9" * count,
        b"a: &a [x, x]\n"
        + b"".join(b"%c: &%c [*%c, *%c]\n" % (n + 1, n + 1, n, n) for n in range(97, 97 + min(25, count // 36))),
        sample.rstrip(b"}\n") + b',"extensions":' + b'{"a.b":' * count + b"1" + b"}" * (count + 1),
    ]
    return random.choice(bombs)


EVERYDAY: tuple[Mutation, ...] = (
    flipped, cut_off, without_a_piece, with_a_piece_twice, with_odd_bytes, with_another_value, with_another_value,
    with_another_value, with_another_value,
)  # fmt: skip
SELDOM: tuple[Mutation, ...] = (with_a_field_twice, as_a_bomb)


def mutated(random: Random, samples: Sequence[bytes]) -> bytes:
    """One of the samples with one to three mutations; seldom, what an enemy would write."""
    sample = random.choice(samples)
    if random.random() < 0.03:
        return random.choice(SELDOM)(random, sample)
    for _ in range(random.choice([1, 1, 1, 2, 3])):
        sample = random.choice(EVERYDAY)(random, sample)
    return sample

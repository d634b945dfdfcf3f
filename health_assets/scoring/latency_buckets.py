"""Latency buckets: a runtime as a small integer, so that an hour's latencies are a short list that merges exactly.

Bucket 0 holds what is shorter than a microsecond; bucket b >= 1 holds the microseconds in [GAMMA^(b-1), GAMMA^b). What
is reported of a bucket is its geometric middle, which lies within sqrt(GAMMA) - 1, just below 1%, of everything in it.
Buckets keep the order of runtimes, so the bucket at a rank is that of the runtime at the rank.
"""

import math

import ibis
from ibis import ir

GAMMA = 1.02
LAST_BUCKET = 2047
"""Eleven bits; a runtime of 12,000 years falls into it, and logs tell of at most 100."""


def bucket_of(runtime_s: ir.NumericValue) -> ir.IntegerValue:
    """Bucket, 0 to `LAST_BUCKET`, of a runtime in seconds from 0 on, of whole microseconds."""
    return bucket_of_us((runtime_s * 1e6).round().cast("float64"))


def bucket_of_us(latency_us: ir.FloatingValue) -> ir.IntegerValue:
    """Bucket, 0 to `LAST_BUCKET`, of microseconds from 0 on; null for null."""
    place = (ibis.greatest(latency_us, 1.0).ln() / math.log(GAMMA)).floor() + 1
    # the greatest of null and 1 is 1, so null must not come to the bucket of it
    return (latency_us >= 1).ifelse(ibis.least(place, LAST_BUCKET), latency_us * 0).cast("int16")


def latency_ms(bucket: ir.IntegerValue) -> ir.FloatingValue:
    """The latency that a bucket stands for, in milliseconds; null for null."""
    return (bucket == 0).ifelse(0.0, ((bucket.cast("float64") - 0.5) * math.log(GAMMA)).exp() / 1e3)


def upper_end_us(bucket: int) -> float:
    """The microseconds below which all of a bucket lies: a limit that none of its runtimes exceeds."""
    return GAMMA**bucket

"""Checks the compute canary against the profile and the node's golden values, and its drift over a run.

The compute canary is a fixed computation, run before and after a run; golden values are its results on the well node.
"""

from __future__ import annotations

from collections.abc import Iterator

from memarena_spark.errors import Refusal
from memarena_spark.facts import CanaryResult, Unknown
from memarena_spark.plans import Golden
from memarena_spark.profiles import CanarySettings
from memarena_spark.refusal_codes import refusal


def check_canary(result: CanaryResult | Unknown, settings: CanarySettings, golden: Golden | None) -> Iterator[Refusal]:
    """Check a canary against the profile's floor and the node's golden values."""
    if isinstance(result, Unknown):
        yield refusal("canary-failed", f"cannot be told: {result.unknown}")
        return
    share = settings.golden_share
    least, expectation = _expected(settings.tflops_at_least, share, golden.tflops if golden else None)
    if result.tflops < least:
        yield refusal("canary-slow", f"{result.tflops:.4g} TFLOP/s, expected at least {expectation}")
    least, expectation = _expected(settings.clock_mhz_at_least or 0, share, golden.clock_mhz if golden else None)
    if least > 0:
        if isinstance(result.clock_mhz, Unknown):
            yield refusal("canary-clock", f"cannot be told: {result.clock_mhz.unknown}")
        elif result.clock_mhz < least:
            yield refusal("canary-clock", f"{result.clock_mhz:.0f} MHz, expected at least {expectation} MHz")
    if golden is None and settings.golden_required:
        yield refusal(
            "canary-golden", f"the plan gives no golden value of this node; it now does {result.tflops:.4g} TFLOP/s"
        )


def _expected(floor: float, share: float, golden: float | None) -> tuple[float, str]:
    """Return the higher of the profile's floor and the share of the node's golden value, and its text in a message."""
    if golden is None or floor > share * golden:
        return floor, f"the profile's {floor:g}"
    return share * golden, f"{share:.0%} of the golden {golden:g}"


def drift_percent(before: CanaryResult, after: CanaryResult) -> float:
    """Return by how many percent of the first the second canary's TFLOP/s differ, with sign."""
    return (after.tflops / before.tflops - 1) * 100


def check_drift(
    before: CanaryResult | Unknown, after: CanaryResult | Unknown, settings: CanarySettings
) -> Iterator[Refusal]:
    """Check the canary after the run against the canary before it."""
    for moment, result in (("before", before), ("after", after)):
        if isinstance(result, Unknown):
            yield refusal("canary-drift", f"the canary {moment} the run cannot be told: {result.unknown}")
            return
    limit = settings.drift_percent
    if isinstance(before, CanaryResult) and isinstance(after, CanaryResult) and limit is not None:
        drift = drift_percent(before, after)
        if abs(drift) > limit:
            yield refusal(
                "canary-drift", f"the canary changed by {drift:+.1f}% during the run, expected at most {limit:g}%"
            )

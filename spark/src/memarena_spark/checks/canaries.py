"""Does the canary stay in its band, and did it before and after the run?"""

from __future__ import annotations

from collections.abc import Iterator

from memarena_spark.errors import Refusal
from memarena_spark.facts import CanaryResult, Unknown
from memarena_spark.plans import Golden
from memarena_spark.profiles import CanarySettings
from memarena_spark.refusal_codes import refusal


def check_canary(found: CanaryResult | Unknown, settings: CanarySettings, golden: Golden | None) -> Iterator[Refusal]:
    """One canary against the profile's floor and the node's golden values."""
    if isinstance(found, Unknown):
        yield refusal("canary-failed", f"cannot be told: {found.unknown}")
        return
    share = settings.golden_share
    least, said = _expected(settings.tflops_at_least, share, golden.tflops if golden else None)
    if found.tflops < least:
        yield refusal("canary-slow", f"{found.tflops:.4g} TFLOP/s, expected at least {said}")
    least, said = _expected(settings.clock_mhz_at_least or 0, share, golden.clock_mhz if golden else None)
    if least > 0:
        if isinstance(found.clock_mhz, Unknown):
            yield refusal("canary-clock", f"cannot be told: {found.clock_mhz.unknown}")
        elif found.clock_mhz < least:
            yield refusal("canary-clock", f"{found.clock_mhz:.0f} MHz, expected at least {said} MHz")
    if golden is None and settings.golden_required:
        yield refusal(
            "canary-golden", f"the plan gives no golden value of this node; it now does {found.tflops:.4g} TFLOP/s"
        )


def _expected(floor: float, share: float, golden: float | None) -> tuple[float, str]:
    """The profile's floor or the share of the node's golden value, whichever is higher, and how it is said."""
    if golden is None or floor > share * golden:
        return floor, f"the profile's {floor:g}"
    return share * golden, f"{share:.0%} of the golden {golden:g}"


def drift_percent(before: CanaryResult, after: CanaryResult) -> float:
    """By how much the second canary differs from the first."""
    return (after.tflops / before.tflops - 1) * 100


def check_drift(
    before: CanaryResult | Unknown, after: CanaryResult | Unknown, settings: CanarySettings
) -> Iterator[Refusal]:
    """The canary after the run against that before it."""
    for when, found in (("before", before), ("after", after)):
        if isinstance(found, Unknown):
            yield refusal("canary-drift", f"the canary {when} the run cannot be told: {found.unknown}")
            return
    limit = settings.drift_percent
    if isinstance(before, CanaryResult) and isinstance(after, CanaryResult) and limit is not None:
        drift = drift_percent(before, after)
        if abs(drift) > limit:
            yield refusal(
                "canary-drift", f"the canary changed by {drift:+.1f}% during the run, expected at most {limit:g}%"
            )

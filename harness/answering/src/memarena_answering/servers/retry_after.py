"""Reads from a reply after how many seconds a busy server wants the request again."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return ``Retry-After`` in seconds (RFC 9110, 10.2.3: seconds or a date); None if it is missing or unreadable."""
    scale, header = 1000.0, headers.get("retry-after-ms", "")  # as OpenAI's own servers send it
    if not header:
        scale, header = 1.0, headers.get("Retry-After", headers.get("retry-after", "")).strip()
    try:
        seconds = float(header) / scale
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (TypeError, ValueError, IndexError, OverflowError):
            return None
    return max(0.0, seconds) if math.isfinite(seconds) else None

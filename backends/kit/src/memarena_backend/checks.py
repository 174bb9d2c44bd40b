"""Checks single fields of a request. ``field`` is the field's path in it, which the error names (``header.owner``)."""

from __future__ import annotations

import re
from datetime import date, datetime

from memarena_backend.errors import above_limit, invalid_argument
from memarena_backend.limits import FRAME_BYTES, ID_BYTES

_RFC3339 = re.compile(r"(\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}):(\d{2})((?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2}))", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)


def utf8_bytes(value: str) -> int:
    """Return the bytes of a string in UTF-8."""
    return len(value) if value.isascii() else len(value.encode())


def check_text(field: str, value: str, limit_bytes: int = FRAME_BYTES) -> str:
    """Return the text. Raises CallError if it holds U+0000 or is above the limit (by default that of its frame)."""
    if "\0" in value:
        raise invalid_argument(field, "U+0000 is not allowed in text")
    # A code point takes at most four bytes, so most texts fit for sure without being encoded.
    if len(value) * 4 > limit_bytes and (size := utf8_bytes(value)) > limit_bytes:
        raise above_limit(field, size, limit_bytes)
    return value


def check_required_text(field: str, value: str, limit_bytes: int = FRAME_BYTES) -> str:
    """Return the text, checked as by :func:`check_text`. Raises CallError also if it is empty."""
    if not value:
        raise invalid_argument(field, "is required")
    return check_text(field, value, limit_bytes)


def check_id(field: str, value: str) -> str:
    """Return the id. Raises CallError if it is empty, holds U+0000 or is above 128 bytes."""
    return check_required_text(field, value, ID_BYTES)


def parse_moment(field: str, value: str) -> datetime:
    """Parse an RFC 3339 time with its offset. Raises CallError if it is missing or malformed."""
    if not value:
        raise invalid_argument(field, "is required")
    if match := _RFC3339.fullmatch(value):
        minute, second, rest = match.groups()
        # RFC 3339 allows a leap second, which datetime cannot hold: it becomes the second before.
        second = "59" if second == "60" else second
        try:
            return datetime.fromisoformat(f"{minute}:{second}{rest}".upper())
        except ValueError:
            pass
    raise invalid_argument(field, f"expected an RFC 3339 time with an offset, got {value[:60]!r}")


def parse_date(field: str, value: str) -> date:
    """Parse a calendar date YYYY-MM-DD. Raises CallError if it is missing or malformed."""
    if not value:
        raise invalid_argument(field, "is required")
    if _DATE.fullmatch(value):
        try:
            return date.fromisoformat(value)
        except ValueError:
            pass
    raise invalid_argument(field, f"expected a date YYYY-MM-DD, got {value[:60]!r}")

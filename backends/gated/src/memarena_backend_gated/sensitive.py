"""Recognizes texts that the gate keeps private by default: codes, account numbers, addresses, health.

Without a wish, only the owner and the participants of its session may know such a text. The words are in
``english.toml``.
"""

from __future__ import annotations

import re

from memarena_backend_gated.english import sensitive
from memarena_backend_gated.prefilter import PrefilteredPattern

_PATTERN = PrefilteredPattern(
    rf"\b(?:{'|'.join(sensitive(name) for name in ('credentials', 'numbers', 'health'))})\b", re.I
)
_ADDRESS = re.compile(rf"\b(?:{sensitive('address')})")


def is_sensitive(text: str) -> bool:
    """Whether a text speaks of codes, passwords, account or identity numbers, an address, or health."""
    return _PATTERN.search(text) is not None or _ADDRESS.search(text) is not None

"""What no asker is told without a wish but the owner and who said it: codes, numbers, addresses, matters of health."""

from __future__ import annotations

import re

from memarena_backend_gated.english import sensitive
from memarena_backend_gated.prefilter import Pattern

_PATTERN = Pattern(rf"\b(?:{'|'.join(sensitive(name) for name in ('credentials', 'numbers', 'health'))})\b", re.I)
_ADDRESS = re.compile(rf"\b(?:{sensitive('address')})")


def is_sensitive(text: str) -> bool:
    """Whether a text speaks of codes, passwords, account or identity numbers, an address, or health."""
    return _PATTERN.search(text) is not None or _ADDRESS.search(text) is not None

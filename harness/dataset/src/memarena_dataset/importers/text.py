"""Cleans texts of published data sets for importers: removes what no backend may be sent, truncates turns."""

from __future__ import annotations

import re

from memarena_dataset.importers.account import Account
from memarena_dataset.io.rows import MAX_TEXT_BYTES


def slug(text: str) -> str:
    """Return a text as part of an agent id: lower case, words joined by underscores."""
    return "_".join(re.findall(r"[^\W_]+", text.casefold())) or "unnamed"


def clean(text: str) -> str:
    """Return the text without U+0000 and half surrogates, which no backend may be sent."""
    return text.replace("\0", "").encode("utf-8", "ignore").decode("utf-8")


def truncate_text(text: str, what: str, account: Account) -> str:
    """Return a turn's text, cleaned and truncated to MAX_TEXT_BYTES; a truncation is recorded under ``what``."""
    text = clean(text).strip()
    data = text.encode()
    if len(data) <= MAX_TEXT_BYTES:
        return text
    account.change(what, f"{len(data):,} bytes long: cut to the {MAX_TEXT_BYTES:,} that a turn may have")
    return data[:MAX_TEXT_BYTES].decode("utf-8", "ignore")

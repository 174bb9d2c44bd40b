"""Counts the outcome of a day's sessions, as notices with the codes that the report puts into its table."""

from __future__ import annotations

from dataclasses import dataclass

from memarena_backend import Notice

_ALWAYS = ("sessions_given", "memories_stored")
"""Counts that are reported even if they are 0."""
_MESSAGES = {
    "sessions_given": "sessions with text that Mem0 was given",
    "extraction_calls": "calls of the extracting model",
    "extraction_unusable": "replies of which nothing could be used: empty, cut off, no JSON, or of another shape",
    "extraction_empty": "sessions of which nothing was stored",
    "memories_stored": "memories added to the store",
    "sessions_failed": "sessions that were lost, the first because",
    "embedding_cut": "texts of which only the beginning was embedded",
}


@dataclass
class Tally:
    """Counts of one day."""

    sessions_given: int = 0  # words: a name of the file format
    extraction_calls: int = 0
    extraction_unusable: int = 0
    extraction_empty: int = 0
    memories_stored: int = 0
    sessions_failed: int = 0
    embedding_cut: int = 0
    reason: str = ""
    """Why the first of the failed sessions was lost; empty if none was."""

    def lost(self, reason: str) -> None:
        """Count a session that is lost although its day will be committed."""
        self.sessions_failed += 1
        self.reason = self.reason or reason

    def notices(self) -> list[Notice]:
        """Return a notice for each count that is not 0 or is in ``_ALWAYS``; none for a day without sessions."""
        if not self.sessions_given:
            return []
        return [
            Notice(code, self._message(code), count)
            for code in _MESSAGES
            if (count := int(getattr(self, code))) or code in _ALWAYS
        ]

    def _message(self, code: str) -> str:
        message = _MESSAGES[code]
        return f"{message}: {self.reason}" if code == "sessions_failed" else message

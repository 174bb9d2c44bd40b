"""When a judging ends before all was tried: where nothing but failures comes, the server is not there."""

from __future__ import annotations

from memarena.judging.llm.request import Record

_LEAST_IN_A_ROW = 8
"""So many jobs in a row (or as many as run side by side) that fail end a judging."""


class Streak:
    """Failures in a row. What the rules settled without a call says nothing of the server and breaks no row."""

    def __init__(self, concurrency: int) -> None:
        self._most = max(_LEAST_IN_A_ROW, concurrency)
        self._failed = 0

    def add(self, record: Record) -> str:
        """Count how a job ended; why the judging ends with it, empty if it goes on."""
        if record.kind != "judging_failed":
            self._failed = self._failed if record.handed_over else 0
            return ""
        self._failed += 1
        if self._failed < self._most:
            return ""
        return f"{self._failed} answers in a row could not be judged; the last: {record.message}"

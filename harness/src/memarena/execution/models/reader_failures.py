"""Whether a reader works at all: a run does not go through thousands of questions that none of them can pass."""

from __future__ import annotations

from memarena.execution.errors import InfraError
from memarena.log.records import QuestionAsked

MOST_IN_A_ROW = 5
"""Questions in a row that may fail for the reader's sake before it has answered any."""
MOST_IN_A_ROW_LATER = 20
"""The same for a reader that has answered."""


class ReaderFailures:
    """Counts, for each reader, the questions that failed since it last answered one."""

    def __init__(self) -> None:
        self._failed: dict[str, set[tuple[str, str]]] = {}
        self._answered: set[str] = set()

    def note(self, reader: str, attempt: QuestionAsked) -> None:
        """Take in an attempt. Raises InfraError, in one line, where too many questions in a row failed."""
        if attempt.status == "answered":
            self._answered.add(reader)
            self._failed.pop(reader, None)
        if attempt.status != "infra_failed":
            return
        failures = self._failed.setdefault(reader, set())
        failures.add((attempt.cell_id, attempt.instance_id))
        most = MOST_IN_A_ROW_LATER if reader in self._answered else MOST_IN_A_ROW
        if len(failures) >= most:
            raise InfraError(f"{len(failures)} questions in a row failed, the last with: {attempt.cause}")

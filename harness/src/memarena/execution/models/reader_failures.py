"""Stops a run whose reader fails question after question, so that it does not fail thousands of them."""

from __future__ import annotations

from memarena.execution.errors import InfraError
from memarena.log.records import QuestionAsked

MOST_IN_A_ROW = 5
"""Most questions that may fail in a row because of a reader that has not answered any."""
MOST_IN_A_ROW_LATER = 20
"""The same for a reader that has answered a question."""


class ReaderFailures:
    """Counts, for each reader, the questions that failed since its last answer; a question counts once."""

    def __init__(self) -> None:
        self._failed: dict[str, set[tuple[str, str]]] = {}
        self._answered: set[str] = set()

    def note(self, reader: str, attempt: QuestionAsked) -> None:
        """Count an attempt. Raises InfraError, in one line, if too many questions in a row failed."""
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

"""Judges D4 conflict questions: a right answer gives both versions."""

from __future__ import annotations

from memarena_dataset.gold import ConflictGold

from memarena.judging.judgment import Judgment
from memarena.judging.kinds.open_answer import OpenAnswer
from memarena.judging.text_gold.judge import judge_text


class Conflict(OpenAnswer[ConflictGold]):
    """Two accounts of the same thing, both of which a right answer gives."""

    def judge_text(self, question: str, gold: ConflictGold, answer: str) -> Judgment:
        """Judge an answer right if it gives both accounts."""
        details = (gold.original_detail, gold.changed_detail)
        # The other account belongs to the question, so that its words are not new content of the answer.
        accounts = [
            judge_text(f"{question} {other}", (detail,), answer) for detail, other in (details, reversed(details))
        ]
        return next((account for account in accounts if not account.correct), accounts[0])

    def key(self, gold: ConflictGold) -> str:
        """Return both accounts."""
        return f"One account: {gold.original_detail}\nThe other account: {gold.changed_detail}"

    def control(self, gold: ConflictGold) -> str:
        """Return both accounts, each in its own sentence."""
        return f"There are two accounts. One: {gold.original_detail}. The other: {gold.changed_detail}."

    def constant(self, gold: ConflictGold) -> str:
        """Return both accounts."""
        return f"{gold.original_detail}, but also {gold.changed_detail}"

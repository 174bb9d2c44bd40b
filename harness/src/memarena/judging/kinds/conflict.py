"""D4 conflict: an answer that gives both versions."""

from __future__ import annotations

from memarena_dataset.gold import ConflictGold

from memarena.judging.kinds.open_answer import OpenAnswer


class Conflict(OpenAnswer[ConflictGold]):
    """Two accounts of the same thing, both of which a right answer gives."""

    def key(self, gold: ConflictGold) -> str:
        """Both accounts."""
        return f"One account: {gold.original_detail}\nThe other account: {gold.changed_detail}"

    def control(self, gold: ConflictGold) -> str:
        """Both accounts in a sentence each."""
        return f"There are two accounts. One: {gold.original_detail}. The other: {gold.changed_detail}."

    def constant(self, gold: ConflictGold) -> str:
        """Both accounts."""
        return f"{gold.original_detail}, but also {gold.changed_detail}"

"""D2, D3 (factual, temporal) and the answer half of D5: an answer that states what one of the right answers does."""

from __future__ import annotations

from memarena_dataset.gold import TextGold

from memarena.judging.kinds.open_answer import OpenAnswer


class Text(OpenAnswer[TextGold]):
    """A question with its right answers written down."""

    def key(self, gold: TextGold) -> str:
        """Every right answer."""
        return gold.described

    def control(self, gold: TextGold) -> str:
        """The first right answer."""
        return " ".join(gold.answers[:1])

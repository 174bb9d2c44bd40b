"""Judges D2, D3 (factual, temporal) and the answer half of D5: an answer has to state one of the right answers."""

from __future__ import annotations

from memarena_dataset.gold import TextGold

from memarena.judging.kinds.open_answer import OpenAnswer


class Text(OpenAnswer[TextGold]):
    """A question whose right answers are listed."""

    def key(self, gold: TextGold) -> str:
        """Return every right answer."""
        return gold.described

    def control(self, gold: TextGold) -> str:
        """Return the first right answer."""
        return " ".join(gold.answers[:1])

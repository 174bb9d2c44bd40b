"""Judges D4 anaphora questions: a right answer names what a reference points to."""

from __future__ import annotations

from memarena_dataset.gold import AnaphoraGold

from memarena.judging.kinds.open_answer import OpenAnswer


class Anaphora(OpenAnswer[AnaphoraGold]):
    """A question about the referent of an expression such as "there" or "that one"."""

    def key(self, gold: AnaphoraGold) -> str:
        """Return the referent, and where it was named."""
        return f"What was meant: {gold.referent}\nWhere it was named: {gold.antecedent_text}"

    def control(self, gold: AnaphoraGold) -> str:
        """Return the referent."""
        return gold.referent

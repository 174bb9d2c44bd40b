"""D4 anaphora: an answer that names what a reference points to."""

from __future__ import annotations

from memarena_dataset.gold import AnaphoraGold

from memarena.judging.kinds.open_answer import OpenAnswer


class Anaphora(OpenAnswer[AnaphoraGold]):
    """What a reference such as "there" or "that one" points to."""

    def key(self, gold: AnaphoraGold) -> str:
        """The referent, and where it was named."""
        return f"What was meant: {gold.referent}\nWhere it was named: {gold.antecedent_text}"

    def control(self, gold: AnaphoraGold) -> str:
        """The referent."""
        return gold.referent

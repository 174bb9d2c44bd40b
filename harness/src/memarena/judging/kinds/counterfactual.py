"""D3 counterfactual: an answer that corrects the question's premise."""

from __future__ import annotations

from memarena_dataset.gold import CounterfactualGold

from memarena.judging.kinds.open_answer import OpenAnswer


class Counterfactual(OpenAnswer[CounterfactualGold]):
    """A question with a wrong premise: right is what was really the case."""

    def key(self, gold: CounterfactualGold) -> str:
        """The fact and the premise."""
        return f"What was really the case: {gold.real_fact}\nWhat the question wrongly supposes: {gold.altered_detail}"

    def control(self, gold: CounterfactualGold) -> str:
        """A correction of the premise."""
        return f"Not {gold.altered_detail}: it was {gold.real_fact}."

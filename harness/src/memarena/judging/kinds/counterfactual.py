"""Judges D3 counterfactual questions: a right answer corrects the question's premise."""

from __future__ import annotations

from memarena_dataset.gold import CounterfactualGold

from memarena.judging.judgment import Code, Judgment, wrong
from memarena.judging.kinds.open_answer import OpenAnswer
from memarena.judging.text_gold.judge import affirms, judge_text


class Counterfactual(OpenAnswer[CounterfactualGold]):
    """A question with a wrong premise. A right answer states the fact."""

    def judge_text(self, question: str, gold: CounterfactualGold, answer: str) -> Judgment:
        """Judge an answer right if it states the fact and does not affirm the premise as well."""
        judgment = judge_text(question, gold.texts, answer)
        if judgment.correct and affirms(question, gold.altered_detail, gold.real_fact, answer):
            return wrong("text", Code.AFFIRMS_PREMISE, judgment.score)
        return judgment

    def key(self, gold: CounterfactualGold) -> str:
        """Return the fact and the premise."""
        return f"What was really the case: {gold.real_fact}\nWhat the question wrongly supposes: {gold.altered_detail}"

    def control(self, gold: CounterfactualGold) -> str:
        """Return a correction of the premise."""
        return f"Not {gold.altered_detail}: it was {gold.real_fact}."

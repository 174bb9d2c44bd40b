"""Judges an answer against a gold that is text: by its typed values, else by a small model of whether it says the same.

The first of these steps that decides counts: a typed value of the gold (:mod:`typed`), a list of many other things, the
gold word for word, an answer that declines, and the model over what the answer has of the gold (:mod:`features`,
``models/text_gold.npz``; its card is ``harness/judge_training/MODEL_CARD.text_gold.md``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from memarena_dataset.values.alternatives import alternatives
from memarena_dataset.values.words import token_f1

from memarena.judging.judgment import Code, Judgment, right, wrong
from memarena.judging.linear_model import LinearModel, stored_model
from memarena.judging.text_gold.features import features_of, own_tokens, recall
from memarena.judging.text_gold.reading import TextReading, frame_words, read
from memarena.judging.text_gold.typed import TypedOutcome, decide_typed
from memarena.judging.typed_value.plain_text import plain_text

MODEL = "text_gold"
_MAY_STATE_GOLD = 0.5
"""Share of the gold's own words above which an answer with a phrase of declining may still state the gold."""
_MAX_ITEM_WORDS = 4
"""Most words of a thing in a list."""
_MAX_LISTED = 5
"""Other things in a list from which on an answer lists everything instead of answering."""
_REASON_CHARACTERS = 80
"""Characters of gold and answer that a reason shows."""


def judge_text(question: str, golds: Sequence[str], answer: str, *, model: LinearModel | None = None) -> Judgment:
    """Judge whether an answer says what one of the golds says. Pure.

    Args:
        question: its text; its words are not new content in an answer.
        golds: right answers in text; each may name several (:func:`alternatives`).
        answer: as parsed, not empty.
        model: another model than the stored one, for measuring.

    Returns:
        A judgment of route ``text``; its score is the best token-F1, a figure for comparison that decides nothing.
    """
    outcomes = [_judge(*reading, model or stored_model(MODEL)) for reading in readings(question, golds, answer)]
    best = next((outcome for outcome in outcomes if outcome.correct), outcomes[0])
    f1 = max(token_f1(answer, gold) for gold in golds)
    judgment = right if best.correct else wrong
    return judgment("text", best.code, f1, value=golds[0][:_REASON_CHARACTERS], words=best.claim[:_REASON_CHARACTERS])


def readings(
    question: str, golds: Sequence[str], answer: str
) -> Iterator[tuple[TextReading, TextReading, TextReading]]:
    """Yield question, gold and answer as read, for each right answer that the golds name."""
    answer_reading = TextReading(plain_text(answer, question))
    yield from ((read(question), read(wording), answer_reading) for gold in golds for wording in alternatives(gold))


def decide_without_model(question: TextReading, gold: TextReading, answer: TextReading) -> TypedOutcome | None:
    """Return the decision of the steps before the model; None if none of them decides.

    They are typed values, a list of many other things, the gold word for word, and declining.
    """
    typed = decide_typed(question, gold, answer)
    if typed is not None:
        return typed
    if (others := _count_listed(question, gold, answer)) >= _MAX_LISTED:
        return TypedOutcome(False, Code.TOO_MUCH, f"{others} other things in a list")
    if _is_verbatim(question, gold, answer):
        return TypedOutcome(True, Code.STATES_GOLD, gold.text)
    if answer.declines and not gold.declines and recall(own_tokens(question, gold), answer.tokens) < _MAY_STATE_GOLD:
        return TypedOutcome(False, Code.DECLINES, answer.text)
    return None


def _judge(question: TextReading, gold: TextReading, answer: TextReading, model: LinearModel) -> TypedOutcome:
    decided = decide_without_model(question, gold, answer)
    if decided is not None:
        return decided
    correct = model.score(features_of(question, gold, answer)) > 0
    gold_tokens = own_tokens(question, gold)
    nearest = max(answer.sentences, key=lambda sentence: recall(gold_tokens, sentence.tokens))
    return TypedOutcome(correct, Code.STATES_GOLD if correct else Code.OTHER_CONTENT, nearest.text)


def _count_listed(question: TextReading, gold: TextReading, answer: TextReading) -> int:
    """Return how many other things an answer lists that is mostly a list; 0 if the gold is not a single thing."""
    if len(gold.items) != 1 or len(gold.words) > _MAX_ITEM_WORDS:
        return 0
    gold_tokens = own_tokens(question, gold)
    short = [item for item in answer.items if len(item.words) <= _MAX_ITEM_WORDS]
    others = sum(not recall(gold_tokens, item.tokens) and not item.token_set <= question.token_set for item in short)
    # An answer is mostly a list if other things are three quarters of its items, apart from the item of the gold.
    return others if 4 * others >= 3 * len(answer.items) - 3 else 0


def _is_verbatim(question: TextReading, gold: TextReading, answer: TextReading) -> bool:
    """Whether an answer has the gold word for word, with only filler around it (``Based on the talk, it was``)."""
    gold_words, answer_words = gold.words, answer.words
    size = len(gold_words)
    start = (
        next((i for i in range(len(answer_words) - size + 1) if answer_words[i : i + size] == gold_words), None)
        if size
        else None
    )
    if start is None:
        return False
    frame = frame_words() | set(question.words)
    return all(word in frame for word in (*answer_words[:start], *answer_words[start + size :]))


def affirms(question: str, premise: str, fact: str, answer: str) -> bool:
    """Whether a sentence without a negation states all that a wrong premise adds to the fact."""
    context = {*read(fact).tokens, *read(question).tokens}
    premise_tokens = [token for token in read(premise).tokens if token not in context] or list(read(premise).tokens)
    sentences = TextReading(plain_text(answer, question)).sentences
    return bool(premise_tokens) and any(recall(premise_tokens, s.tokens) >= 1.0 and not s.negates for s in sentences)

"""Token-F1 fallback: how close an answer is to a gold that is text only, with a threshold per family."""

from __future__ import annotations

import tomllib
from datetime import date
from functools import cache
from importlib.resources import files

from memarena_dataset.gold import ConflictGold, CounterfactualGold, OpenGold, TextGold
from memarena_dataset.model import Family
from memarena_dataset.values.mentions import DateMention
from memarena_dataset.values.reading import read_text
from memarena_dataset.values.terms import phrase_spans
from memarena_dataset.values.words import squad_tokens, token_f1, words

from memarena.judging.abstention import declines
from memarena.judging.judgment import Code, Judgment, right, wrong
from memarena.judging.typed_value.segments import phrases
from memarena.log.records import Question


@cache
def _thresholds() -> dict[str, float]:
    text = (files("memarena.judging") / "tables" / "token_f1.v1.toml").read_text(encoding="utf-8")
    return {family: float(value) for family, value in tomllib.loads(text)["threshold"].items()}


def threshold_of(family: Family) -> float:
    """Least F1 that counts as right in a family."""
    return _thresholds().get(family.value, _thresholds()["default"])


def rule_by_token_f1(question: Question, gold: OpenGold, answer: str, today: date | None) -> Judgment:
    """Judge an answer against gold text. An answer that declines is wrong.

    Temporal questions are decided by the key date where gold and answer both name one: two dates a day apart share
    most of their words. A conflict needs words of either version, a counterfactual must be nearer to the fact than to
    the premise.
    """
    family = question.instance.family
    if _declines(question, gold, answer):
        return wrong("token_f1", Code.DECLINES, said=answer.strip()[:80])
    if isinstance(gold, ConflictGold):
        return _conflict(family, gold, answer)
    if isinstance(gold, CounterfactualGold):
        return _counterfactual(family, gold, answer)
    if family is Family.TEMPORAL and (judgment := _by_key_date(gold.texts, answer, today)):
        return judgment
    return _nearest(family, gold.texts, answer)


def _declines(question: Question, gold: OpenGold, answer: str) -> bool:
    """Whether an answer declines. Gold that itself reads like that ("keep it to herself") is left to its words."""
    names = (question.ego_name, question.asker_name)
    if not declines(answer, question.question_text, names):
        return False
    texts = gold.texts if isinstance(gold, TextGold) else ()
    return not any(declines(text, question.question_text, names) and token_f1(answer, text) > 0 for text in texts)


def _nearest(family: Family, answers: tuple[str, ...], answer: str) -> Judgment:
    best = max((token_f1(answer, gold) for gold in answers), default=0.0)
    return _settle(family, best)


def _settle(family: Family, f1: float) -> Judgment:
    least = threshold_of(family)
    verdict = right if f1 >= least else wrong
    return verdict("token_f1", Code.TOKEN_F1, f1, threshold=least)


def _by_key_date(answers: tuple[str, ...], answer: str, today: date | None) -> Judgment | None:
    """A judgment if some gold and the answer name dates as fine as each other; None leaves it to token-F1."""
    said = _dates(answer, today)
    named = [_dates(gold, None) for gold in answers]
    if not said or not any(named):
        return None
    for wanted in named:
        if wanted and all(any(s.fineness >= w.fineness and s.same(w) for s in said) for w in wanted):
            return right("token_f1", Code.KEY_DATE)
    comparable = any(s.fineness >= w.fineness for wanted in named for w in wanted for s in said)
    return wrong("token_f1", Code.KEY_DATE) if comparable else None


def _dates(text: str, today: date | None) -> list[DateMention]:
    return [m for m in read_text(text, today).mentions if isinstance(m, DateMention)]


def _conflict(family: Family, gold: ConflictGold, answer: str) -> Judgment:
    original, changed = set(squad_tokens(gold.original_detail)), set(squad_tokens(gold.changed_detail))
    said = set(squad_tokens(answer))
    f1 = token_f1(answer, f"{gold.original_detail} {gold.changed_detail}")
    for own, name in ((original - changed, "original"), (changed - original, "changed")):
        if own and not own & said:
            return wrong("token_f1", Code.MISSING_VERSION, f1, said=name)
    return _settle(family, f1)


def _counterfactual(family: Family, gold: CounterfactualGold, answer: str) -> Judgment:
    f1 = token_f1(answer, gold.real_fact)
    text = read_text(answer).text
    affirmed = [s for s in phrase_spans(gold.altered_detail, text) if not _denied(text[: s.start])]
    if affirmed and token_f1(answer, gold.altered_detail) > f1:
        return wrong("token_f1", Code.AFFIRMS_PREMISE, f1)
    return _settle(family, f1)


def _denied(before: str) -> bool:
    return bool(phrases("denied_before").search(" ".join(words(before)) + " "))


def best_token_f1(texts: tuple[str, ...], answer: str) -> float | None:
    """Token-F1 with the most similar gold text; None without one. A figure for reports, which decides nothing."""
    return max((token_f1(answer, text) for text in texts), default=None)

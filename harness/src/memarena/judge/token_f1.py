"""Token-F1 fallback: how close an answer is to a gold that is text only, with a threshold per family."""

from __future__ import annotations

import tomllib
from datetime import date
from functools import cache
from importlib.resources import files

from memarena.dataset.gold import AnaphoraGold, ConflictGold, CounterfactualGold, TextGold
from memarena.dataset.model import Family
from memarena.judge.ruling import Ruling, right, wrong
from memarena.text.mentions import DateMention, PartialDate
from memarena.text.reading import read_text
from memarena.text.stating import denied, phrase_places
from memarena.text.words import squad_tokens, token_f1

Judged = TextGold | CounterfactualGold | ConflictGold | AnaphoraGold


@cache
def _thresholds() -> dict[str, float]:
    text = (files("memarena.judge") / "tables" / "token_f1.v1.toml").read_text(encoding="utf-8")
    return {family: float(value) for family, value in tomllib.loads(text)["threshold"].items()}


def threshold_of(family: Family) -> float:
    """Least F1 that counts as right in a family."""
    return _thresholds().get(family.value, _thresholds()["default"])


def rule_by_token_f1(family: Family, gold: Judged, answer: str, today: date | None) -> Ruling:
    """Judge an answer against gold text.

    Temporal questions are decided by the key date where gold and answer both name one: two dates a day apart share
    most of their words. A conflict needs words of either version, a counterfactual must be nearer to the fact than to
    the premise.
    """
    if isinstance(gold, ConflictGold):
        return _conflict(family, gold, answer)
    if isinstance(gold, CounterfactualGold):
        return _counterfactual(family, gold, answer)
    answers = (gold.referent, gold.antecedent_text) if isinstance(gold, AnaphoraGold) else gold.answers
    if family is Family.TEMPORAL and (ruling := _by_key_date(answers, answer, today)):
        return ruling
    return _nearest(family, answers, answer)


def _nearest(family: Family, answers: tuple[str, ...], answer: str) -> Ruling:
    best = max((token_f1(answer, gold) for gold in answers), default=0.0)
    return _settle(family, best)


def _settle(family: Family, f1: float) -> Ruling:
    least = threshold_of(family)
    verdict = right if f1 >= least else wrong
    sign = "reaches" if f1 >= least else "below"
    return verdict("token_f1", f"token-F1 {f1:.2f} {sign} {least:.2f}", f1)


def _by_key_date(answers: tuple[str, ...], answer: str, today: date | None) -> Ruling | None:
    """A ruling if some gold and the answer name dates as fine as each other; None leaves it to token-F1."""
    said = _dates(answer, today)
    named = [_dates(gold, None) for gold in answers]
    if not said or not any(named):
        return None
    for wanted in named:
        if wanted and all(any(_settles(s, w) and s.same(w) for s in said) for w in wanted):
            return right("token_f1", "names the key date")
    comparable = any(_settles(s, w) for wanted in named for w in wanted for s in said)
    return wrong("token_f1", "names another date than the key date") if comparable else None


def _dates(text: str, today: date | None) -> list[DateMention]:
    return [m for m in read_text(text, today).mentions if isinstance(m, DateMention)]


def _settles(said: DateMention, wanted: DateMention) -> bool:
    """Whether the answer's date says no less than the gold's."""
    return any(_fineness(s) >= _fineness(w) for s in said.readings for w in wanted.readings)


def _fineness(partial: PartialDate) -> int:
    return 3 if partial.day is not None else 2 if partial.month is not None else 1


def _conflict(family: Family, gold: ConflictGold, answer: str) -> Ruling:
    original, changed = set(squad_tokens(gold.original_detail)), set(squad_tokens(gold.changed_detail))
    said = set(squad_tokens(answer))
    f1 = token_f1(answer, f"{gold.original_detail} {gold.changed_detail}")
    for own, name in ((original - changed, "original"), (changed - original, "changed")):
        if own and not own & said:
            return wrong("token_f1", f"says nothing of the {name} version", f1)
    return _settle(family, f1)


def _counterfactual(family: Family, gold: CounterfactualGold, answer: str) -> Ruling:
    f1 = token_f1(answer, gold.real_fact)
    text = read_text(answer)
    affirmed = [p for p in phrase_places(gold.altered_detail, text) if not denied(text, p)]
    if affirmed and token_f1(answer, gold.altered_detail) > f1:
        return wrong("token_f1", "affirms the premise", f1)
    return _settle(family, f1)

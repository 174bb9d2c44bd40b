"""Selects the questions that a model may reword, and the parts of each that must stay."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from memarena_dataset.model import Family
from memarena_dataset.values import Value
from memarena_dataset.values.phrases import normal, phrase_occurs
from memarena_dataset.values.possible import names_value
from pydantic import TypeAdapter

from memarena_masim.engines.model import Question
from memarena_masim.questions.book import Book
from memarena_masim.questions.derive import Asked

REWORDED = (Family.METADATA, Family.QA, Family.TEMPORAL, Family.CONFLICT, Family.ANAPHORA, Family.PERMISSION)
"""Families whose questions may be reworded.

Cloze and counterfactual questions may not: they use words of their evidence by design. Nor may abstention and witness
pairs: their two halves must look the same, and a limit on words of the evidence would hold for one half only.
"""
_GOLD_KEYS = ("values", "changed_values", "altered_values")
_VALUE: TypeAdapter[Value] = TypeAdapter(Value)


def rewordable(asked: Sequence[Asked], book: Book, texts: Mapping[str, str], epoch: date) -> list[Question]:
    """Return the questions that may be reworded. ``texts`` are the turns of evidence sessions, by turn id."""
    golds: defaultdict[tuple[str, str], list[Value]] = defaultdict(list)
    for question in asked:
        golds[question.draft.ego, question.draft.fact_id] += _gold(question.draft.truth)
    sessions: defaultdict[str, list[str]] = defaultdict(list)
    for turn_id, text in texts.items():
        sessions[turn_id.rsplit("_t", 1)[0]].append(text)
    return [
        _question(question, book, sessions, tuple(golds[question.draft.ego, question.draft.fact_id]), epoch)
        for question in asked
        if question.draft.family in REWORDED and question.draft.truth.get("temporal_type") != "ordering"
    ]


def _question(
    question: Asked, book: Book, sessions: Mapping[str, list[str]], golds: tuple[Value, ...], epoch: date
) -> Question:
    """Return a question with what a rewording must keep (names, anchors) and must not state (the gold)."""
    draft = question.draft
    words = normal(draft.query)
    evidence = dict.fromkeys(stated.session_id for stated in draft.evidence)
    facts = {stated.fact.fact_id: stated.fact for stated in draft.evidence if stated.fact.fact_id in draft.uses}
    items = dict.fromkeys(fact.item for fact in facts.values() if fact.item not in book.names)
    return Question(
        question_id=question.instance_id,
        text=draft.query,
        names=tuple(
            name if phrase_occurs(name, words) else first
            for name, first in book.called.items()
            if phrase_occurs(first, words)
        ),
        anchors=tuple(items),
        sources=tuple(text for session in evidence for text in sessions[session]),
        gives_away=lambda text: any(names_value(gold, text, epoch) for gold in golds),
    )


def _gold(truth: Mapping[str, Any]) -> list[Value]:
    return [_VALUE.validate_python(row) for key in _GOLD_KEYS for row in truth.get(key, ())]

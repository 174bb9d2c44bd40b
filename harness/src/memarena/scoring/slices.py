"""Accuracy by family, dimension, lag, difficulty, context tier and interference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Literal

from memarena.scoring.evidence import recall_at_k
from memarena.scoring.metrics import accuracy, count
from memarena.scoring.results import QuestionScore, Slice

By = Literal["family", "dimension", "lag", "difficulty", "tier", "interference"]

LAGS = ((0, "0"), (3, "1–3"), (7, "4–7"), (14, "8–14"))
"""Upper end and name of each bucket of days between evidence and question."""

INTERFERENCES = ((0, "0"), (1, "1"), (4, "2–4"), (16, "5–16"))
"""Upper end and name of each bucket of facts that interfere with the one asked for."""

FAMILY_ORDER = (
    "d5_cloze", "d6_metadata", "d7_qa", "d8_temporal", "d10_counterfactual", "d1_conflict", "d2_anaphora",
    "d3_confabulation", "d4_permission", "x1_witness",
)  # fmt: skip
"""Families in the order of their dimensions."""


def lag_bucket(days: int | None) -> str | None:
    """Name of the bucket that a lag falls in; None without evidence."""
    if days is None:
        return None
    return next((name for end, name in LAGS if days <= end), "15+")


def interference_bucket(count: int | None) -> str | None:
    """Name of the bucket that a count of interfering facts falls in; None where the data set does not say."""
    if count is None:
        return None
    return next((name for end, name in INTERFERENCES if count <= end), "17+")


def slices(questions: Sequence[QuestionScore]) -> tuple[Slice, ...]:
    """Every breakdown, each in a fixed order of keys. Extensions and the owner's own D6 items stand apart."""
    counted = [q for q in questions if q.dimension != "X1" and not q.self_item]
    lag_order = [name for _, name in LAGS] + ["15+"]
    interference_order = [name for _, name in INTERFERENCES] + ["17+"]
    return (
        *_by("family", [q for q in questions if not q.self_item], lambda q: q.family, FAMILY_ORDER),
        *_by("dimension", counted, lambda q: q.dimension, ("D1", "D2", "D3", "D4", "D5", "D6")),
        *_by("lag", counted, lambda q: lag_bucket(q.lag_days), lag_order),
        *_by("difficulty", counted, lambda q: q.difficulty, ("easy", "medium", "hard")),
        *_by("tier", counted, lambda q: q.context_tier, ("single_session", "cross_session", "full_ego")),
        *_by("interference", counted, lambda q: interference_bucket(q.interference), interference_order),
    )


def _by(
    by: By, questions: Sequence[QuestionScore], key_of: Callable[[QuestionScore], str | None], order: Iterable[str]
) -> list[Slice]:
    groups: dict[str, list[QuestionScore]] = {}
    for question in questions:
        key = key_of(question)
        if key is not None:
            groups.setdefault(key, []).append(question)
    known = [key for key in order if key in groups]
    rest = sorted(set(groups) - set(known))
    return [_slice(by, key, groups[key]) for key in (*known, *rest)]


def _slice(by: By, key: str, questions: Sequence[QuestionScore]) -> Slice:
    open_answers = [q.token_f1 for q in questions if q.token_f1 is not None]
    return Slice(
        by=by,
        key=key,
        counts=count(questions),
        score=accuracy(questions),
        token_f1=fmean(open_answers) if open_answers else None,
        recall_at_k=recall_at_k(questions),
    )

"""Compares two rows of one world question by question: outcomes, answers, figures by family, differing settings.

``memarena compare --questions`` prints it, to see which questions a change of a memory or a setting gained or lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Any, Literal

from memarena.log.base import Record
from memarena.log.records import Outcome
from memarena.scoring.compare import Chosen, cautions, incomparable
from memarena.scoring.results import QuestionScore
from memarena.scoring.run_facts import RunFacts
from memarena.scoring.uncertainty_records import Side

Change = Literal["gained", "lost", "other", "same", "unpaired"]
"""Change from A to B. ``gained``, ``lost``: right under more, fewer seeds. ``other``: right under as many, with other
outcomes. ``same``: the same outcomes. ``unpaired``: not asked on one side, or with an infrastructure failure."""
DIFFERS: tuple[Change, ...] = ("lost", "gained", "other")
"""Changes of paired questions, in the order in which they are listed."""


class AnswersOf(Record):
    """What one side answered, a value for each of its seeds."""

    outcomes: tuple[str, ...]
    """Empty if the question was not asked."""
    answers: tuple[str, ...]
    """Full texts; "" if no answer arrived."""


class QuestionChange(Record):
    """One question on both sides."""

    instance_id: str
    family: str
    dimension: str
    ego: str
    question: str
    change: Change
    a: AnswersOf
    b: AnswersOf


class FigureChange(Record):
    """A figure of both sides; ``change`` is B - A. None: no question has it."""

    a: float | None
    b: float | None
    change: float | None


class FamilyChange(Record):
    """The figures of a family over its paired questions, without controls and the owner's own items of D6."""

    family: str
    questions: int
    figures: dict[str, FigureChange]
    """By key of :data:`FIGURES`."""


class SettingChange(Record):
    """A setting that differs, as JSON; ``null`` for a side that does not have it."""

    key: str
    """Dotted key, for example ``cell.reading.max_context_tokens`` or ``versions.memarena``."""
    a: str
    b: str


class QuestionsCompared(Record):
    """Two sides question by question."""

    a: Side
    b: Side
    incomparable: tuple[str, ...]
    """Reasons why the two must not be compared; if there are any, no question is compared."""
    cautions: tuple[str, ...]
    counts: dict[Change, int]
    """Number of questions by change."""
    settings: tuple[SettingChange, ...]
    families: tuple[FamilyChange, ...]
    questions: tuple[QuestionChange, ...]
    """Sorted by change, then family and id."""


@dataclass(frozen=True)
class Figure:
    """A figure of one answer (``value``) and how it is averaged (``over``). ``share``: if it is from 0 to 1."""

    value: Callable[[QuestionScore], float | None]
    over: Callable[[Sequence[float]], float]
    share: bool = False


def _evidence(score: QuestionScore) -> float | None:
    retrieved = score.retrieved
    return (
        retrieved.found_at_k / retrieved.evidence_sessions
        if retrieved is not None and retrieved.evidence_sessions
        else None
    )


def _suffices(score: QuestionScore) -> float | None:
    return float(score.suffices) if score.retrievable and score.suffices is not None else None


FIGURES = {
    "answerable": Figure(_suffices, fmean, share=True),
    "right": Figure(lambda score: float(score.correct), fmean, share=True),
    "recall@10": Figure(_evidence, fmean, share=True),
    "search_ms": Figure(lambda score: score.spans.search_ms if score.spans else None, median),
    "ttft_ms": Figure(lambda score: score.spans.ttft_ms if score.spans else None, median),
    "tokens": Figure(lambda score: score.reader_tokens, fmean),
}
"""Figures by name: the mean of answerable, right, recall and tokens, the median of times, over questions and seeds."""
_ORDER: tuple[Change, ...] = (*DIFFERS, "unpaired", "same")


def compare_questions(a: Chosen, b: Chosen, facts: tuple[RunFacts, RunFacts]) -> QuestionsCompared:
    """Compare two sides over every question that either was asked; ``facts``: those of A's and of B's run."""
    reasons = incomparable(a, b)
    left, right = _by_question(a), _by_question(b)
    changes: list[QuestionChange] = []
    paired: list[tuple[list[QuestionScore], list[QuestionScore]]] = []
    for instance_id in [] if reasons else sorted(left.keys() | right.keys()):
        scores_a, scores_b = left.get(instance_id, []), right.get(instance_id, [])
        change = _change(scores_a, scores_b, len(a.cells), len(b.cells))
        if change != "unpaired":
            paired.append((scores_a, scores_b))
        any_score = (scores_a or scores_b)[0]
        changes.append(
            QuestionChange(
                instance_id=instance_id,
                family=any_score.family,
                dimension=any_score.dimension,
                ego=any_score.ego,
                question=facts[0 if scores_a else 1].questions[instance_id].question_text,
                change=change,
                a=_answers(scores_a, facts[0]),
                b=_answers(scores_b, facts[1]),
            )
        )
    return QuestionsCompared(
        a=a.side,
        b=b.side,
        incomparable=reasons,
        cautions=cautions(a, b),
        counts={kind: sum(each.change == kind for each in changes) for kind in _ORDER},
        settings=tuple(_settings(a, b, facts)),
        families=tuple(_families(paired)),
        questions=tuple(sorted(changes, key=lambda q: (_ORDER.index(q.change), q.family, q.instance_id))),
    )


def _by_question(side: Chosen) -> dict[str, list[QuestionScore]]:
    """Return by instance id the scores of the questions that were asked, in the order of the side's cells."""
    cells = {cell.cell_id: position for position, cell in enumerate(side.cells)}
    scores = [q for q in side.scored.questions if q.cell_id in cells and q.outcome is not None]
    questions: dict[str, list[QuestionScore]] = {}
    for score in sorted(scores, key=lambda q: cells[q.cell_id]):
        questions.setdefault(score.instance_id, []).append(score)
    return questions


def _change(ours: Sequence[QuestionScore], theirs: Sequence[QuestionScore], of_a: int, of_b: int) -> Change:
    scores = [*ours, *theirs]
    if len(ours) < of_a or len(theirs) < of_b or any(q.outcome is Outcome.INFRA_FAILED for q in scores):
        return "unpaired"
    before, after = (fmean([q.correct for q in side]) for side in (ours, theirs))
    if before != after:
        return "gained" if after > before else "lost"
    same = sorted({str(q.outcome) for q in ours}) == sorted({str(q.outcome) for q in theirs})
    return "same" if same else "other"


def _answers(scores: Sequence[QuestionScore], facts: RunFacts) -> AnswersOf:
    texts = []
    for score in scores:
        answer = facts.attempts[score.cell_id, score.instance_id][-1].record.answer
        texts.append("" if answer is None else answer.answer)
    outcomes = tuple(score.outcome.value for score in scores if score.outcome is not None)
    return AnswersOf(outcomes=outcomes, answers=tuple(texts))


def _families(paired: Sequence[tuple[list[QuestionScore], list[QuestionScore]]]) -> Iterator[FamilyChange]:
    by_family: dict[str, list[tuple[list[QuestionScore], list[QuestionScore]]]] = {}
    for pair in paired:
        if not pair[0][0].outside_f1:
            by_family.setdefault(pair[0][0].family, []).append(pair)
    for family, pairs in sorted(by_family.items()):
        figures = {}
        for name, figure in FIGURES.items():
            a, b = (_over([score for pair in pairs for score in pair[side]], figure) for side in (0, 1))
            change = None if a is None or b is None else b - a
            figures[name] = FigureChange(a=a, b=b, change=change)
        yield FamilyChange(family=family, questions=len(pairs), figures=figures)


def _over(scores: Sequence[QuestionScore], figure: Figure) -> float | None:
    values = [value for score in scores if (value := figure.value(score)) is not None]
    return figure.over(values) if values else None


# ------------------------------------------------------------------ settings


def _settings(a: Chosen, b: Chosen, facts: tuple[RunFacts, RunFacts]) -> Iterator[SettingChange]:
    left, right = _settings_of(a, facts[0]), _settings_of(b, facts[1])
    for key in sorted(left.keys() | right.keys()):
        value_a, value_b = (json.dumps(side.get(key), ensure_ascii=False) for side in (left, right))
        if value_a != value_b:
            yield SettingChange(key=key, a=value_a, b=value_b)


def _settings_of(side: Chosen, facts: RunFacts) -> dict[str, Any]:
    """Return every setting of a side by its dotted key: of the run, its first cell, the cell's reader, and versions."""
    manifest = facts.manifest
    cell = next(cell for cell in manifest.cells if cell.cell_id == side.cells[0].cell_id)
    reader = next((reader for reader in manifest.readers if reader.name == cell.reader), None)
    own_address = reader is not None and reader.kind != "url"
    return dict(
        _flat(
            {
                "run": {"protocol": manifest.protocol, **json.loads(manifest.config_json)},
                "cell": cell.model_dump(mode="json", exclude={"cell_id", "seed_label"}),
                # The address of a server that the harness started differs in each run.
                "reader": reader and reader.model_dump(mode="json", exclude={"base_url"} if own_address else None),
                "versions": manifest.versions.model_dump(mode="json"),
            }
        )
    )


def _flat(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, item in value.items():
        if isinstance(item, dict):
            yield from _flat(item, f"{above}{name}.")
        else:
            yield f"{above}{name}", item

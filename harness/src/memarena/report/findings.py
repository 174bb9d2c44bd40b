"""Derives the statements of a report from its rows: conclusions that the intervals support, and open questions.

A summary states them as sentences, so that no conclusion is drawn from a table that its intervals do not support. Each
statement is a record of its figures with a property ``text``, its sentence. A *verdict* here is a finding about which
memory has the most right answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from memarena.report.brief_rows import FEWEST_QUESTIONS, BriefRow, are_separated, ranked_groups
from memarena.report.figures import milliseconds
from memarena.report.layout import counted
from memarena.scoring.figures import Permission
from memarena.scoring.uncertainty_records import Interval

LossStage = Literal["not_ingested", "not_retrieved", "cut_from_prompt", "misread"]
"""Stage at which the evidence of a wrong answer was lost."""
_LOSS_TEXTS: dict[LossStage, str] = {
    "not_ingested": "lacked some that never arrived at the memory",
    "not_retrieved": "lacked some that Search did not return",
    "cut_from_prompt": "lacked some that was found and did not fit into the prompt",
    "misread": "had all of it in the prompt",
}


# ------------------------------------------------------------------ findings


@dataclass(frozen=True)
class NothingMeasured:
    """A verdict: the backend failed every question."""

    memory: str
    reader: str
    failed: int
    asked: int

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        return (
            f"Right answers of {self.memory} ({self.reader}): nothing was measured, since the backend failed every "
            f"question ({self.failed:,} of {self.asked:,})."
        )


@dataclass(frozen=True)
class Ranking:
    """A verdict: memories with the same reader, ranked by right answers, the best first."""

    reader: str
    right: tuple[tuple[str, float], ...]
    """(memory, share of right answers, 0 to 1) in the order of the ranking."""
    separated: tuple[bool, ...]
    """For each memory but the last: whether the intervals support its order before the next one."""

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        shares = ", ".join(f"{memory} {100 * share:.1f}%" for memory, share in self.right)
        ranks = (
            (" > " if sure else " ? ") + name for sure, (name, _) in zip(self.separated, self.right[1:], strict=True)
        )
        order = self.right[0][0] + "".join(ranks)
        if all(self.separated):
            conclusion = f"no two intervals overlap, so the order holds: {order}"
        elif any(self.separated):
            conclusion = f"what the intervals support: {order} (? = open)"
        else:
            conclusion = "the intervals support no order"
        return f"Right answers ({self.reader}): {shares}; {conclusion}."


@dataclass(frozen=True)
class EvidenceRetrieved:
    """How much of the evidence each memory's Search returned."""

    recall: tuple[tuple[str, float], ...]
    """(memory, share of the evidence among the first ten items of Search, 0 to 1), the highest share first."""

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        shares = ", ".join(f"{memory} {100 * share:.0f}%" for memory, share in self.recall)
        return f"Evidence among the first 10 items of Search: {shares}."


@dataclass(frozen=True)
class EvidenceLost:
    """The most frequent stage at which a memory's wrong answers to questions with evidence went wrong."""

    memory: str
    wrong: int
    stage: LossStage
    lost: int
    """Wrong answers lost at this stage."""

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        return (
            f"Of {self.wrong} wrong answers of {self.memory} to questions with evidence, {self.lost} "
            f"{_LOSS_TEXTS[self.stage]}."
        )


@dataclass(frozen=True)
class UpperBound:
    """A diagnostic whose prompts lacked evidence sessions of some questions, because of their budget."""

    memory: str
    short: int
    """Questions without all of their evidence sessions in the prompt."""
    questions: int
    max_context_tokens: int

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        return (
            f"{self.memory} lacked some evidence of {self.short} of {self.questions} questions in its prompts "
            f"({self.max_context_tokens:,} context tokens): it is the upper bound at this budget."
        )


@dataclass(frozen=True)
class AccessControl:
    """Memories that withhold protected facts beyond chance, or (``withholds`` False) do the reverse."""

    memories: tuple[str, ...]
    withholds: bool

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        withholds, tells = (
            "withholds from those who may not know, beyond chance",
            "tells those who may not know more than those who may",
        )
        return f"Access: {', '.join(self.memories)} {withholds if self.withholds else tells}."


@dataclass(frozen=True)
class SearchTimes:
    """The fastest and the slowest median Search above the floor."""

    quickest: tuple[str, float]
    """(memory, median Search in milliseconds)."""
    slowest: tuple[str, float]

    @property
    def text(self) -> str:
        """The finding as a sentence."""
        ends = [f"{milliseconds(ms).text} ms ({memory})" for memory, ms in (self.quickest, self.slowest)]
        return f"Search above the floor: from {ends[0]} to {ends[1]}."


Finding = NothingMeasured | Ranking | EvidenceRetrieved | EvidenceLost | UpperBound | AccessControl | SearchTimes


# ------------------------------------------------------------------ what stays open


@dataclass(frozen=True)
class NoInterval:
    """A memory without an interval, since all its questions are about one ego."""

    memory: str
    reader: str
    asked: int

    @property
    def text(self) -> str:
        """The open question in one line."""
        questions = counted(self.asked, "question")
        return f"{self.memory} ({self.reader}): {questions} of one person give no interval, so no place in an order"


@dataclass(frozen=True)
class FewEgos:
    """Memories whose intervals rest on too few egos."""

    memories: tuple[str, ...]
    reader: str
    egos: int

    @property
    def text(self) -> str:
        """The open question in one line."""
        names = ", ".join(self.memories)
        return f"{names} ({self.reader}): {self.egos} egos are too few for intervals to rely on (8)"


@dataclass(frozen=True)
class OpenOrder:
    """Two neighbours in a ranking whose intervals overlap."""

    reader: str
    upper: tuple[str, tuple[float, float]]
    """(memory, ends of its interval, 0 to 1)."""
    lower: tuple[str, tuple[float, float]]

    @property
    def text(self) -> str:
        """The open question in one line."""
        (upper, upper_ends), (lower, lower_ends) = self.upper, self.lower
        ends = ", ".join(f"{100 * low:.0f}–{100 * high:.0f}" for low, high in (upper_ends, lower_ends))
        return (
            f"whether {upper} answers more than {lower} ({self.reader}): their intervals overlap ({ends}); "
            "`memarena compare` pairs the questions and tells more"
        )


@dataclass(frozen=True)
class OpenAccess:
    """Memories for which the intervals leave open whether they control access."""

    memories: tuple[str, ...]

    @property
    def text(self) -> str:
        """The open question in one line."""
        names = ", ".join(self.memories)
        return f"whether these look at who asks: {names}; the interval of J = privacy + utility - 1 includes 0"


OpenQuestion = NoInterval | FewEgos | OpenOrder | OpenAccess


def texts(statements: Iterable[Finding | OpenQuestion]) -> tuple[str, ...]:
    """Return the sentence of each statement, in their order."""
    return tuple(statement.text for statement in statements)


# ------------------------------------------------------------------ from the rows of a summary


def findings(rows: Sequence[BriefRow]) -> list[Finding]:
    """Derive the findings, verdicts first; empty if no question was asked."""
    unmeasured = [
        NothingMeasured(row.name, row.reader, row.scores.counts.backend_failed, row.scores.counts.asked)
        for row in rows
        if row.nothing_measured
    ]
    rankings = [verdict for group in ranked_groups(rows) if (verdict := ranking(group)) is not None]
    return [*unmeasured, *rankings, *_retrieval(rows), *_losses(rows), *_bounds(rows), *_access(rows), *_times(rows)]


def split_verdicts(conclusions: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Split findings into verdicts and all others."""
    verdicts: list[Finding] = []
    others: list[Finding] = []
    for finding in conclusions:
        (verdicts if isinstance(finding, NothingMeasured | Ranking) else others).append(finding)
    return verdicts, others


def ranking(group: Sequence[BriefRow]) -> Ranking | None:
    """Rank a sorted group of rows, with the orders that the intervals support; None for fewer than two rows."""
    if len(group) < 2:
        return None
    return Ranking(
        group[0].reader,
        tuple((row.name, row.right.value or 0.0) for row in group),
        tuple(are_separated(upper, lower) for upper, lower in itertools.pairwise(group)),
    )


def unproven(rows: Sequence[BriefRow]) -> list[OpenQuestion]:
    """Derive the open questions: what the figures must not be taken to show."""
    open_questions: list[OpenQuestion] = []
    for group in ranked_groups(rows):
        open_questions += [NoInterval(r.name, r.reader, r.scores.counts.asked) for r in group if r.interval is None]
        with_interval = [(row, row.interval) for row in group if row.interval is not None]
        with_few_egos = [(row, interval) for row, interval in with_interval if interval.few_clusters]
        if with_few_egos:
            egos = max(interval.clusters for _, interval in with_few_egos)
            open_questions.append(
                FewEgos(tuple(row.name for row, _ in with_few_egos), with_few_egos[0][0].reader, egos)
            )
        with_enough_egos = [(row, interval) for row, interval in with_interval if not interval.few_clusters]
        open_questions += [
            OpenOrder(
                upper.reader,
                (upper.name, (upper_ends.low, upper_ends.high)),
                (lower.name, (lower_ends.low, lower_ends.high)),
            )
            for (upper, upper_ends), (lower, lower_ends) in itertools.pairwise(with_enough_egos)
            if not are_separated(upper, lower)
        ]
    names = [row.name for row in rows if (d6 := row.scores.permission) and gates(row) is None and d6.deny]
    return [*open_questions, OpenAccess(tuple(dict.fromkeys(names)))] if names else open_questions


def gates(row: BriefRow) -> bool | None:
    """Whether the memory controls access, if both intervals of J agree on it; None if that is open."""
    return carried_gates(row.scores.permission, row.scores.intervals.get("J"))


def carried_gates(d6: Permission | None, interval: Interval | None) -> bool | None:
    """Whether a memory controls access, from D6 and the interval of J over draws of egos; None if that is open.

    Newcombe's interval treats items as independent, although those of one ego are not; so the interval from resampling
    at least 8 egos must support the same conclusion.
    """
    if d6 is None or d6.j_low is None or d6.j_high is None:
        return None
    if interval is None or interval.few_clusters:
        return None
    if d6.j_low > 0 and interval.low > 0:
        return True
    return False if d6.j_high <= 0 and interval.high <= 0 else None


# ------------------------------------------------------------------ single findings


def _retrieval(rows: Sequence[BriefRow]) -> Iterator[Finding]:
    enough_questions = [row for row in rows if row.recall is not None and row.evidence_questions >= FEWEST_QUESTIONS]
    recall_by_label = {_label(row, enough_questions): row.recall or 0.0 for row in enough_questions}
    if recall_by_label:
        yield EvidenceRetrieved(tuple(sorted(recall_by_label.items(), key=lambda share: -share[1])))


def _losses(rows: Sequence[BriefRow]) -> Iterator[Finding]:
    for row in rows:
        split = row.scores.errors
        if split is None or row.scores.diagnostic:
            continue
        counts: dict[LossStage, int] = {stage: getattr(split, stage) for stage in _LOSS_TEXTS}
        total = sum(counts.values()) + split.unknown
        worst = max(counts, key=lambda stage: counts[stage])
        if total >= FEWEST_QUESTIONS and counts[worst]:
            yield EvidenceLost(_label(row, rows), total, worst, counts[worst])


def _bounds(rows: Sequence[BriefRow]) -> Iterator[Finding]:
    for row in rows:
        retrieval, answerable = row.scores.retrieval, row.answerable
        if not row.scores.diagnostic or retrieval is None or retrieval.complete is None or answerable is None:
            continue
        short = round((1 - retrieval.complete) * retrieval.questions)
        if short and answerable.value not in (None, 1.0):
            yield UpperBound(_label(row, rows), short, retrieval.questions, row.scores.reading.max_context_tokens)


def _label(row: BriefRow, rows: Sequence[BriefRow]) -> str:
    """Return the memory's name, with reader and run only if other rows have the same name."""
    namesakes = [r for r in rows if r.name == row.name]
    parts = [row.reader] if len({r.reader for r in namesakes}) > 1 else []
    if len([r for r in namesakes if r.reader == row.reader]) > 1:
        parts.append(f"run {row.run}")
    return f"{row.name} ({', '.join(parts)})" if parts else row.name


def _access(rows: Sequence[BriefRow]) -> Iterator[Finding]:
    for withholds in (True, False):
        names = [row.name for row in rows if gates(row) is withholds]
        if names:
            yield AccessControl(tuple(dict.fromkeys(names)), withholds)


def _times(rows: Sequence[BriefRow]) -> Iterator[Finding]:
    search_times = [(row, row.search_ms) for row in rows if row.search_ms is not None]
    if len(search_times) > 1:
        fastest, *_, slowest = sorted(search_times, key=lambda pair: pair[1])
        timed_rows = [row for row, _ in search_times]
        yield SearchTimes((_label(fastest[0], timed_rows), fastest[1]), (_label(slowest[0], timed_rows), slowest[1]))

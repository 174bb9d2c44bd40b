"""What a report states in sentences: what its intervals support, and what cannot be concluded from it.

Each statement is a record with its figures; :func:`texts` words them when they are printed.
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
"""Where the evidence of a wrong answer was lost."""
_LOSS_TEXTS: dict[LossStage, str] = {
    "not_ingested": "lacked some that never arrived at the memory",
    "not_retrieved": "lacked some that Search did not return",
    "cut_from_prompt": "lacked some that was found and did not fit into the prompt",
    "misread": "had all of it in the prompt",
}


# ------------------------------------------------------------------ findings


@dataclass(frozen=True)
class NothingMeasured:
    """A backend that failed every question; a verdict."""

    memory: str
    reader: str
    failed: int
    asked: int

    @property
    def text(self) -> str:
        """In a sentence."""
        return (
            f"Right answers of {self.memory} ({self.reader}): nothing was measured, since the backend failed every "
            f"question ({self.failed:,} of {self.asked:,})."
        )


@dataclass(frozen=True)
class Ranking:
    """Memories with the same reader by right answers, the best first; a verdict."""

    reader: str
    right: tuple[tuple[str, float], ...]
    """Memory and its share right, 0 to 1."""
    separated: tuple[bool, ...]
    """Whether the intervals of each memory and the next support the order of the two."""

    @property
    def text(self) -> str:
        """In a sentence."""
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
    """Share of evidence among the first ten items of Search, by memory, the highest first."""

    recall: tuple[tuple[str, float], ...]

    @property
    def text(self) -> str:
        """In a sentence."""
        shares = ", ".join(f"{memory} {100 * share:.0f}%" for memory, share in self.recall)
        return f"Evidence among the first 10 items of Search: {shares}."


@dataclass(frozen=True)
class EvidenceLost:
    """Where most of a memory's wrong answers to questions with evidence went wrong."""

    memory: str
    wrong: int
    stage: LossStage
    lost: int

    @property
    def text(self) -> str:
        """In a sentence."""
        return (
            f"Of {self.wrong} wrong answers of {self.memory} to questions with evidence, {self.lost} "
            f"{_LOSS_TEXTS[self.stage]}."
        )


@dataclass(frozen=True)
class UpperBound:
    """A diagnostic that could not put every evidence session of some questions into the prompt."""

    memory: str
    short: int
    """Questions of which it could not hand over every evidence session."""
    questions: int
    max_context_tokens: int

    @property
    def text(self) -> str:
        """In a sentence."""
        return (
            f"{self.memory} lacked some evidence of {self.short} of {self.questions} questions in its prompts "
            f"({self.max_context_tokens:,} context tokens): it is the upper bound at this budget."
        )


@dataclass(frozen=True)
class AccessControl:
    """Memories that control access beyond chance, or the reverse."""

    memories: tuple[str, ...]
    withholds: bool

    @property
    def text(self) -> str:
        """In a sentence."""
        withholds, tells = (
            "withholds from those who may not know, beyond chance",
            "tells those who may not know more than those who may",
        )
        return f"Access: {', '.join(self.memories)} {withholds if self.withholds else tells}."


@dataclass(frozen=True)
class SearchTimes:
    """The quickest and the slowest Search above the floor, p50."""

    quickest: tuple[str, float]
    """Memory and milliseconds."""
    slowest: tuple[str, float]

    @property
    def text(self) -> str:
        """In a sentence."""
        ends = [f"{milliseconds(ms).text} ms ({memory})" for memory, ms in (self.quickest, self.slowest)]
        return f"Search above the floor: from {ends[0]} to {ends[1]}."


Finding = NothingMeasured | Ranking | EvidenceRetrieved | EvidenceLost | UpperBound | AccessControl | SearchTimes


# ------------------------------------------------------------------ what stays open


@dataclass(frozen=True)
class NoInterval:
    """A memory whose questions are of one ego."""

    memory: str
    reader: str
    asked: int

    @property
    def text(self) -> str:
        """In a line."""
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
        """In a line."""
        names = ", ".join(self.memories)
        return f"{names} ({self.reader}): {self.egos} egos are too few for intervals to rely on (8)"


@dataclass(frozen=True)
class OpenOrder:
    """Two neighbours in a ranking whose intervals overlap, each with the ends of its interval, 0 to 1."""

    reader: str
    upper: tuple[str, tuple[float, float]]
    lower: tuple[str, tuple[float, float]]

    @property
    def text(self) -> str:
        """In a line."""
        (upper, upper_ends), (lower, lower_ends) = self.upper, self.lower
        ends = ", ".join(f"{100 * low:.0f}–{100 * high:.0f}" for low, high in (upper_ends, lower_ends))
        return (
            f"whether {upper} answers more than {lower} ({self.reader}): their intervals overlap ({ends}); "
            "`memarena compare` pairs the questions and tells more"
        )


@dataclass(frozen=True)
class OpenAccess:
    """Memories of which it is open whether they control access."""

    memories: tuple[str, ...]

    @property
    def text(self) -> str:
        """In a line."""
        names = ", ".join(self.memories)
        return f"whether these look at who asks: {names}; the interval of J = privacy + utility - 1 includes 0"


OpenQuestion = NoInterval | FewEgos | OpenOrder | OpenAccess


def texts(statements: Iterable[Finding | OpenQuestion]) -> tuple[str, ...]:
    """Each in words, in their order."""
    return tuple(statement.text for statement in statements)


# ------------------------------------------------------------------ from the rows of a summary


def findings(rows: Sequence[BriefRow]) -> list[Finding]:
    """The verdicts first; empty where nothing was asked."""
    unmeasured = [
        NothingMeasured(row.name, row.reader, row.scores.counts.backend_failed, row.scores.counts.asked)
        for row in rows
        if row.nothing_measured
    ]
    rankings = [verdict for group in ranked_groups(rows) if (verdict := ranking(group)) is not None]
    return [*unmeasured, *rankings, *_retrieval(rows), *_losses(rows), *_bounds(rows), *_access(rows), *_times(rows)]


def split_verdicts(conclusions: Iterable[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Verdicts on who answers most, and the other findings."""
    verdicts: list[Finding] = []
    others: list[Finding] = []
    for finding in conclusions:
        (verdicts if isinstance(finding, NothingMeasured | Ranking) else others).append(finding)
    return verdicts, others


def ranking(group: Sequence[BriefRow]) -> Ranking | None:
    """Who answers most, as far as the intervals support it; None for a single memory."""
    if len(group) < 2:
        return None
    return Ranking(
        group[0].reader,
        tuple((row.name, row.right.value or 0.0) for row in group),
        tuple(are_separated(upper, lower) for upper, lower in itertools.pairwise(group)),
    )


def unproven(rows: Sequence[BriefRow]) -> list[OpenQuestion]:
    """What must not be read from the figures."""
    open_questions: list[OpenQuestion] = []
    for group in ranked_groups(rows):
        open_questions += [NoInterval(r.name, r.reader, r.scores.counts.asked) for r in group if r.interval is None]
        with_interval = [(row, row.interval) for row in group if row.interval is not None]
        few = [(row, interval) for row, interval in with_interval if interval.few_clusters]
        if few:
            egos = max(interval.clusters for _, interval in few)
            open_questions.append(FewEgos(tuple(row.name for row, _ in few), few[0][0].reader, egos))
        enough = [(row, interval) for row, interval in with_interval if not interval.few_clusters]
        open_questions += [
            OpenOrder(
                upper.reader,
                (upper.name, (upper_ends.low, upper_ends.high)),
                (lower.name, (lower_ends.low, lower_ends.high)),
            )
            for (upper, upper_ends), (lower, lower_ends) in itertools.pairwise(enough)
            if not are_separated(upper, lower)
        ]
    names = [row.name for row in rows if (d6 := row.scores.permission) and gates(row) is None and d6.deny]
    return [*open_questions, OpenAccess(tuple(dict.fromkeys(names)))] if names else open_questions


def gates(row: BriefRow) -> bool | None:
    """Whether it controls access, where both intervals of J support it; None: open."""
    return carried_gates(row.scores.permission, row.scores.intervals.get("J"))


def carried_gates(d6: Permission | None, interval: Interval | None) -> bool | None:
    """As :func:`gates`, from D6 and the interval of J over draws of egos.

    Newcombe's interval treats items as independent, and an ego's are not: so the draws of at least 8 egos must say the
    same.
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
    enough = [row for row in rows if row.recall is not None and row.evidence_questions >= FEWEST_QUESTIONS]
    recall_by_label = {_label(row, enough): row.recall or 0.0 for row in enough}
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
    """The memory, with its reader and run as far as other rows need that to be told apart."""
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
        quick, *_, slow = sorted(search_times, key=lambda pair: pair[1])
        names = [row for row, _ in search_times]
        yield SearchTimes((_label(quick[0], names), quick[1]), (_label(slow[0], names), slow[1]))

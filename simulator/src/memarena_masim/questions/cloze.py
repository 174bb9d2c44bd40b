"""D1: a value left out of a sentence, with four wrong options that the ego's history does not give away.

A person who remembers only which option came up last, or most often, or most often in the mouth of or about the person
whom the question names, must not be right more often than by chance. So the options are chosen by when and how often
the ego's sessions name them, up to the day of the question: over all questions the right one is the latest, the second
latest and so on equally often, and so it is with how often. Wrong options are values of the same kind that the same
person named or was named with, as far as there are any.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from memarena_dataset.model import Family

from memarena_masim.facts.values import SpokenValue
from memarena_masim.plan.state import Fact, StatedFact
from memarena_masim.questions.book import Book, Draft, typed
from memarena_masim.questions.details import detail_draft, plain_detail
from memarena_masim.questions.lags import LagDrawer
from memarena_masim.rng import Stream

OPTIONS = 5
_LENGTH_RATIO = 1.8
"""An option is at most so many times longer or shorter than the right one."""
_SLACK = 0.5
"""Hits above chance that whoever counts mentions may have at any time."""
_SETS_TRIED = 40
"""Sets of options drawn for a question, of which the one that balances best is taken."""


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A value with its mentions in an ego's history: how many there are, and the position of the last one.

    ``theirs`` counts those by or about the person whom the question is about.
    """

    value: SpokenValue
    count: int
    theirs: int
    last: int


class ClozeQuestions:
    """Builds cloze questions one after the other and keeps their options balanced."""

    def __init__(self, book: Book, lags: LagDrawer) -> None:
        self._book, self._lags = book, lags
        self._by_recency: Counter[int] = Counter()
        """Questions by how many wrong options are mentioned later than the right one."""
        self._asked = 0
        self._hits = [0.0, 0.0]
        """Expected hits of whoever takes the option mentioned most often, one of several at random: over all mentions,
        and over those by or about the person."""

    def build(self, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
        """A question about the detail that ``stated`` states; None if no balanced set of options can be found."""
        fact = stated.fact
        if not plain_detail(self._book, ego, stated):
            return None
        last_stated_day = max(stated.day for stated in self._book.statements(ego, fact.fact_id))
        day = self._lags.propose(stream, Family.CLOZE, last_stated_day, last_stated_day)
        others = self._options(ego, fact, day, stream)
        if others is None:  # in a long life few days pass before another value comes up: any later day may do
            day = stream.between(last_stated_day, self._book.config.days - 1)
            others = self._options(ego, fact, day, stream)
        if others is None:
            return None
        self._lags.count(Family.CLOZE, day - last_stated_day)
        draft = self._draft(ego, stated, stream.shuffled([fact.value, *others]))
        draft.day = day
        return draft

    def _options(self, ego: str, fact: Fact, day: int, stream: Stream) -> list[SpokenValue] | None:
        """Four wrong options that balance what was asked before; notes the choice."""
        mentions = _mentions(self._book, ego, fact, day)
        right = mentions.pop(fact.value.text)
        pool = [mentioned for mentioned in mentions.values() if _alike(mentioned.value.text, fact.value.text)]
        later = [mentioned for mentioned in pool if mentioned.last > right.last]
        earlier = [mentioned for mentioned in pool if mentioned.last < right.last]
        wrong = OPTIONS - 1
        feasible = range(max(0, wrong - len(earlier)), min(wrong, len(later)) + 1)
        if not feasible:
            return None
        least = min(self._by_recency[rank] for rank in feasible)
        if least > min(self._by_recency[rank] for rank in range(OPTIONS)) + 1:
            return None
        rank = stream.pick([position for position in feasible if self._by_recency[position] == least])
        theirs_first = [sorted(pool, key=lambda one: -min(one.theirs, 1)) for pool in (later, earlier)]
        sets = [(*theirs_first[0][:rank], *theirs_first[1][: wrong - rank])]
        sets += [(*stream.sample(later, rank), *stream.sample(earlier, wrong - rank)) for _ in range(_SETS_TRIED)]
        chosen = min(sets, key=lambda options_set: self._off_balance(_hits(right, options_set)))
        hits = [before + hit for before, hit in zip(self._hits, _hits(right, chosen), strict=True)]
        if max(hits) > (self._asked + 1) / OPTIONS + _SLACK:
            return None
        self._by_recency[rank] += 1
        self._asked += 1
        self._hits = hits
        return [mentioned.value for mentioned in chosen]

    def _off_balance(self, hits: tuple[float, float]) -> float:
        """How far the hits of both who count mentions would be from chance after a question with these."""
        due = (self._asked + 1) / OPTIONS
        return sum(abs(before + hit - due) for before, hit in zip(self._hits, hits, strict=True))

    def _draft(self, ego: str, stated: StatedFact, options: list[SpokenValue]) -> Draft:
        book, fact = self._book, stated.fact
        lines = [f"{'ABCDE'[index]}) {option.text}" for index, option in enumerate(options)]
        gap = book.plain(ego, fact, "____", "____")
        query = "\n".join([f"Which option fills the gap? {gap[0].upper()}{gap[1:]}.", *lines])
        truth = {
            "answer_letter": "ABCDE"[options.index(fact.value)],
            "blank_word": fact.value.text,
            "options": [option.text for option in options],
            "option_values": typed(*(option.value for option in options)),
            "values": typed(fact.value.value),
            "session_id": stated.session_id,
        }
        draft = detail_draft(book, Family.CLOZE, ego, fact, query, truth)
        draft.wanted = book.wanted("gap", ego, fact, ego, options="\n".join(lines))
        return draft


def _mentions(book: Book, ego: str, fact: Fact, day: int) -> dict[str, Mentioned]:
    """Values that the ego's sessions state of a fact's attribute up to a day, by text, with all their mentions."""
    by_text: dict[str, Mentioned] = {}
    for stated in book.by_attribute[ego, fact.attribute]:
        text = stated.value.text
        if stated.day <= day and text not in by_text:
            mentions = [(index, book.said[index]) for index, said_day in book.mentions(ego, text) if said_day <= day]
            theirs = sum(fact.subject in (one.speaker, one.fact.subject) for _, one in mentions)
            by_text[text] = Mentioned(stated.value, len(mentions), theirs, mentions[-1][0])
    return by_text


def _hits(right: Mentioned, wrong: tuple[Mentioned, ...]) -> tuple[float, float]:
    """How likely whoever takes the option mentioned most often is right: over all mentions, and over the person's."""
    counts = [(mentioned.count, mentioned.theirs) for mentioned in (right, *wrong)]
    overall, of_the_person = (_hit([pair[at] for pair in counts]) for at in (0, 1))
    return overall, of_the_person


def _hit(counts: list[int]) -> float:
    """How likely the first of several is taken by whoever takes the highest count, one of equals at random."""
    return 1 / counts.count(counts[0]) if counts[0] == max(counts) else 0.0


def _alike(left: str, right: str) -> bool:
    short, long = sorted((len(left), len(right)))
    same_form = left[:1].isupper() == right[:1].isupper() and _digits(left) == _digits(right)
    return long <= _LENGTH_RATIO * short and same_form


def _digits(text: str) -> bool:
    return any(char.isdigit() for char in text)

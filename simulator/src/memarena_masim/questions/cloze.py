"""Builds cloze questions (D1): a sentence with a gap, and four wrong options that the ego's history does not give away.

A memory that knows only which option came up last, or most often, or most often by or about the person whom the
question names, must not be right more often than by chance. So the options are chosen by when and how often the ego's
sessions name them, up to the day of the question: over all questions, the right one is the latest, the second latest
and so on equally often, and the same holds for the number of mentions. Wrong options are values of the same attribute,
if possible of statements by or about the same person.
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
"""Maximum ratio between the lengths of an option and of the right one."""
_SLACK = 0.5
"""Maximum hits above chance of a guesser that counts mentions, at any time."""
_SETS_TRIED = 40
"""Number of sets of options drawn for a question; the one that balances best is used."""


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A value and its mentions in an ego's history: ``last`` is the index of the last among all statements.

    ``theirs`` counts those by or about the person whom the question is about.
    """

    value: SpokenValue
    count: int
    theirs: int
    last: int


class ClozeQuestions:
    """Builds cloze questions one after another, and balances their options over all of them."""

    def __init__(self, book: Book, lags: LagDrawer) -> None:
        self._book, self._lags = book, lags
        self._by_recency: Counter[int] = Counter()
        """Number of questions by rank: how many wrong options are mentioned later than the right one."""
        self._asked = 0
        self._hits = [0.0, 0.0]
        """Expected hits of two guessers of the option mentioned most often (ties at random): one counts all mentions,
        the other those by or about the person."""

    def build(self, ego: str, stated: StatedFact, stream: Stream) -> Draft | None:
        """Build a question about the detail that ``stated`` states; None if no set of options is balanced."""
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
        """Choose four wrong options that balance earlier questions, and record the choice; None if there are none."""
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
        """Return how far the hits of both guessers would be from chance after a question with ``hits``, as a sum."""
        due = (self._asked + 1) / OPTIONS
        return sum(abs(before + hit - due) for before, hit in zip(self._hits, hits, strict=True))

    def _draft(self, ego: str, stated: StatedFact, options: list[SpokenValue]) -> Draft:
        """Return the question with five lettered options of a statement with a gap."""
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
    """Return values of a fact's attribute in the ego's sessions up to a day, with their mentions, by text."""
    by_text: dict[str, Mentioned] = {}
    for stated in book.by_attribute[ego, fact.attribute]:
        text = stated.value.text
        if stated.day <= day and text not in by_text:
            mentions = [(index, book.said[index]) for index, said_day in book.mentions(ego, text) if said_day <= day]
            theirs = sum(fact.subject in (one.speaker, one.fact.subject) for _, one in mentions)
            by_text[text] = Mentioned(stated.value, len(mentions), theirs, mentions[-1][0])
    return by_text


def _hits(right: Mentioned, wrong: tuple[Mentioned, ...]) -> tuple[float, float]:
    """Return the chance that the option mentioned most often is right: by all mentions, and by the person's."""
    counts = [(mentioned.count, mentioned.theirs) for mentioned in (right, *wrong)]
    overall, of_the_person = (_hit([pair[index] for pair in counts]) for index in (0, 1))
    return overall, of_the_person


def _hit(counts: list[int]) -> float:
    """Return the chance that a guesser of the highest count, with ties at random, chooses the first of ``counts``."""
    return 1 / counts.count(counts[0]) if counts[0] == max(counts) else 0.0


def _alike(left: str, right: str) -> bool:
    """Whether two options have a similar length, and both or neither have a capital, and both or neither a digit."""
    short, long = sorted((len(left), len(right)))
    same_form = left[:1].isupper() == right[:1].isupper() and _digits(left) == _digits(right)
    return long <= _LENGTH_RATIO * short and same_form


def _digits(text: str) -> bool:
    return any(char.isdigit() for char in text)

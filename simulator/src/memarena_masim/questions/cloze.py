"""D1: a value left out of a sentence, with four wrong options that the ego's history does not give away.

A person who remembers only which option came up last, or most often, must not be right more often than by chance. So
the options are chosen by when and how often the ego's sessions name them, up to the day of the question: over all
questions the right one is the latest, the second latest and so on equally often, and so it is with how often.
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
_SETS_TRIED = 40
"""Sets of options drawn for a question, of which the one that balances best is taken."""


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A value with its mentions in an ego's history: how many there are, and the position of the last one."""

    value: SpokenValue
    count: int
    last: int


class ClozeQuestions:
    """Builds cloze questions one after the other and keeps their options balanced."""

    def __init__(self, book: Book, lags: LagDrawer) -> None:
        self._book, self._lags = book, lags
        self._by_recency: Counter[int] = Counter()
        """Questions by how many wrong options are mentioned later than the right one."""
        self._asked = 0
        self._most_often = 0.0
        """Expected hits of a person who takes the option mentioned most often, one of several at random."""

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
        mentions = _mentions(self._book, ego, fact.attribute, day)
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
        sets = [
            (*stream.sample(later, rank), *stream.sample(earlier, wrong - rank)) for _ in range(_SETS_TRIED)
        ]  # fmt: skip
        due = (self._asked + 1) / OPTIONS - self._most_often
        chosen = min(sets, key=lambda options_set: abs(_most_often(right, options_set) - due))
        hit = _most_often(right, chosen)
        if self._most_often + hit > (self._asked + 1) / OPTIONS + 1:
            return None
        self._by_recency[rank] += 1
        self._asked += 1
        self._most_often += hit
        return [mentioned.value for mentioned in chosen]

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


def _mentions(book: Book, ego: str, attribute: str, day: int) -> dict[str, Mentioned]:
    """Values that the ego's sessions state of an attribute up to a day, by text, with all mentions of that text."""
    by_text: dict[str, Mentioned] = {}
    for stated in book.by_attribute[ego, attribute]:
        text = stated.value.text
        if stated.day <= day and text not in by_text:
            places = [index for index, stated_day in book.mentions(ego, text) if stated_day <= day]
            by_text[text] = Mentioned(stated.value, len(places), places[-1])
    return by_text


def _most_often(right: Mentioned, wrong: tuple[Mentioned, ...]) -> float:
    """How likely the right option is taken by a person who takes the one mentioned most often."""
    most = max(mentioned.count for mentioned in wrong)
    if right.count != most:
        return float(right.count > most)
    return 1 / (1 + sum(mentioned.count == most for mentioned in wrong))


def _alike(left: str, right: str) -> bool:
    short, long = sorted((len(left), len(right)))
    same_form = left[:1].isupper() == right[:1].isupper() and _digits(left) == _digits(right)
    return long <= _LENGTH_RATIO * short and same_form


def _digits(text: str) -> bool:
    return any(char.isdigit() for char in text)

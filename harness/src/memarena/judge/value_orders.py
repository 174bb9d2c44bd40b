"""Orders: does an answer tell items in their order, once, and stand by it?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memarena.dataset.values import OrderValue, TermValue
from memarena.judge.ruling import Ruling, right, wrong
from memarena.judge.value_case import describe
from memarena.judge.value_stands import asked_back, refused_place, supposed, uncommitted
from memarena.text.reading import ReadText
from memarena.text.stating import Place, hedge_in, hedged, places

_TURNS_ROUND = re.compile(r"\b(?:after|following|later than|preceded by|succeeds?|followed)\b")
_KEEPS_ORDER = re.compile(
    r"\b(?:was|were|is|are|being)? ?followed by\b|\bafter (?:that|this|which|it|them)\b|\bafterwards?\b"
)
_ASKS_FIRST = re.compile(r"\b(?:first|earlier|before|earliest)\b", re.IGNORECASE)
_OPENING = re.compile(r"(?:[\s;\"'(]|\b(?:first|firstly|first of all|at first|1|initially)\b[,:]?)+$", re.IGNORECASE)
_OWN_STOP = re.compile(r"\.(?=\s+[a-z]|[,;:.?!])")
_STANDS_FOR_IT = "sequence"
_WHERE_FROM = re.compile(r"^(?:one|some|most) of (?:them|these|those)$|^might be$")


@dataclass(frozen=True)
class _Said:
    """An item where an answer says it."""

    position: int
    place: Place


@dataclass(frozen=True)
class _Round:
    """Items that are said one behind the other, none of them twice."""

    said: tuple[_Said, ...]

    @property
    def positions(self) -> list[int]:
        return [said.position for said in self.said]


def rule_order(value: OrderValue, answer: ReadText, question: ReadText) -> Ruling:
    """Items in their order. Of two, the first alone will do where the question asks for the first."""
    rounds = _rounds(value, answer)
    whole, told = _without_items(answer, rounds)
    if phrase := uncommitted(whole):
        return wrong("value", f"does not stand by it ({phrase!r})")
    reasons = [_not_given(whole, place) for place in told]
    given = [one for one, reason in zip(rounds, reasons, strict=True) if not reason]
    if rounds and not given:
        return wrong("value", f"{reasons[0]}: {describe(value)}")
    positions = {p for one in given for p in one.positions}
    if positions == {0} and len(value.items) == 2 and _ASKS_FIRST.search(question.text):
        return right("value", "names the first")
    missing = [item.text for n, item in enumerate(value.items) if n not in positions]
    if missing:
        return wrong("value", f"leaves out {', '.join(missing)}")
    return _in_order(value, answer, given)


def _in_order(value: OrderValue, answer: ReadText, given: Sequence[_Round]) -> Ruling:
    # An order spans clauses: a hedge between its items takes all of it back.
    spans = [(one.said[0].place.start, one.said[-1].place.end) for one in given]
    within = [c.text for c in answer.clauses if any(c.end > start and c.start < end for start, end in spans)]
    hedges = [h for text in within if (h := hedge_in(text)) and not _WHERE_FROM.match(h)]
    if hedges:
        return wrong("value", f"hedges the order away ({hedges[0]!r})")
    every = [said for one in given for said in one.said]
    if len(value.items) > 2 and not _goes_round([s.position for s in every], len(value.items)):
        return wrong("value", "tells two orders")
    first: dict[int, _Said] = {}
    for said in every:
        first.setdefault(said.position, said)
    told = [said.position for said in _as_told(answer, list(first.values()))]
    if told == list(range(len(value.items))):
        return right("value", f"tells the order {describe(value)}")
    return wrong("value", f"tells another order than {describe(value)}")


def _rounds(value: OrderValue, answer: ReadText) -> list[_Round]:
    every = [_Said(n, place) for n, item in enumerate(_told_apart(value.items)) for place in places(item, answer)]
    rounds: list[list[_Said]] = []
    for said in sorted(every, key=lambda s: s.place.start):
        if not rounds or said.position in {s.position for s in rounds[-1]}:
            rounds.append([])
        rounds[-1].append(said)
    return [_Round(tuple(one)) for one in rounds]


def _without_items(answer: ReadText, rounds: Sequence[_Round]) -> tuple[ReadText, list[Place]]:
    """The answer with a single word for each round of items, and where these words stand."""
    text, end, told = "", 0, []
    for one in rounds:
        ahead = answer.text[end : one.said[0].place.start]
        opening = _OPENING.search(ahead)
        text += f"{ahead[: opening.start()]} " if opening else ahead
        told.append(Place(len(text), len(text) + len(_STANDS_FOR_IT)))
        text += _STANDS_FOR_IT
        # An item that is a sentence brings its own full stop.
        stop = _OWN_STOP.match(answer.text, one.said[-1].place.end)
        end = stop.end() if stop else one.said[-1].place.end
    return ReadText(text + answer.text[end:], answer.today), told


def _not_given(whole: ReadText, place: Place) -> str:
    reason = refused_place(whole, place) or hedged(whole, place) or supposed(whole, place)
    return reason or ("only asks about it" if asked_back(whole, place) else "")


def _goes_round(positions: Sequence[int], count: int) -> bool:
    """Whether what is said after all items were named once tells the same order again, as far as it goes."""
    whole = next((n for n in range(len(positions) + 1) if len(set(positions[:n])) == count), len(positions))
    rest = positions[whole:]
    return all(p in (0, before + 1) for before, p in zip([-1, *rest], rest, strict=False))


def _told_apart(items: Sequence[TermValue]) -> list[TermValue]:
    """The items without those aliases that another item has too (two people did the same)."""
    forms = [{item.text.lower(), *(a.lower() for a in item.aliases)} for item in items]
    counts = Counter(form for own in forms for form in own)
    return [
        item.model_copy(update={"aliases": tuple(a for a in item.aliases if counts[a.lower()] == 1)}) for item in items
    ]


def _as_told(answer: ReadText, found: Sequence[_Said]) -> list[_Said]:
    """The items as told; two are exchanged where the words turn the order round (``B after A``, ``before B, A``)."""
    in_text = sorted(found, key=lambda s: s.place.start)
    if len(in_text) != 2:
        return in_text
    first, second = in_text
    between = answer.text[first.place.end : second.place.start].lower()
    ahead = answer.text[: first.place.start].lower()
    opens_before = re.search(r"\bbefore (?:the |a |an |her |his |their )?$", ahead) is not None
    turned = bool(_TURNS_ROUND.search(_KEEPS_ORDER.sub(" ", between)))
    return [second, first] if turned != opens_before else in_text

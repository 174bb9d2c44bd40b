"""Answers of the extractive reader: a sentence, or what the prompt shows around it, or several held together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from memarena_answering import ContextItem

from memarena.readers.extractive_dates import day_meant, day_of, written
from memarena.readers.extractive_kinds import OF_TALK, Want, halves, listed, quotes
from memarena.readers.extractive_question import Asked, about, addresses, asked_of, called, owner_of, told_by, values
from memarena.readers.extractive_scoring import Index, Sentence, first_name, setting_of
from memarena.readers.extractive_stems import content_words

_NEAR = 0.7
"""Sentences with so much of the best one's score are about the same thing."""
_SAME = 0.15
"""What counts for a second version that tells the same value, and for one with nothing of the first one's words."""
_QUOTED_SHARE = 0.6
"""A sentence with so many of a quote's words is the one quoted, and says nothing new."""
_QUOTED, _ASKS, _ADDRESSES, _WITHOUT_KIND = 0.1, 0.3, 0.5, 0.35
"""What is left of the score of a sentence that is quoted, asks, speaks to somebody, or holds nothing of the kind."""
_LEAST_COVERED, _LEAST_TYPED = 0.12, 0.04
"""A sentence that covers less of the question is about something else."""
_POINTS = re.compile(
    r"\b(?:the|that|this|those|these) (?:\w+ )?(?:thing|object|item|piece|find|purchase)s?\b"
    r"|(?<!that's )(?<!that’s )(?<!is )(?<!was )\bwhat (?:I|he|she|they|we|[A-Z]\w+) "
    r"(?:got|bought|found|won|brought|had|took)\b"
)
_INDEFINITE = re.compile(r"\b(?:an?|some|two|three|four|five|six)\b (?!bit\b|lot\b|while\b|few\b)\w", re.IGNORECASE)
_ME = re.compile(r"\b(?:me|myself|I)\b")
_ASSISTANT = re.compile(r"\bassistant$", re.IGNORECASE)
_SAME_TALK_MIN = 15
"""Minutes between two passages of one conversation at most."""
_CLOCK = re.compile(r"\b\d{1,2}(?::\d{2}| ?[ap]m\b)|\bo'clock\b")
_WH = (
    r"(?:(?:in|at|on|by|for|from|to|with) )?"
    r"(?:which|what|where|when|whose|whom?|how (?:many|much|far|long|old|large))"
)
_WONDERS = re.compile(
    r"\b(?:asked|wonder(?:s|ed)?|curious|to know|now I know)\b"
    rf"|^\W*(?:(?:ah|oh|aha|thanks|right|so|well|hm|strange|really)\b\W*){{0,2}}{_WH}\b"
    rf"|(?:, |\bthat's |\bthere's ){_WH} (?:\w+ ){{1,4}}(?-i:you|he|she|they|[A-Z][a-z]+)\b",
    re.IGNORECASE,
)
"""Who takes up a question or an answer ("Ah, which place you booked"), and tells nothing."""
_PAST = re.compile(r"\b(?:did|was|were|had|has|have)\b", re.IGNORECASE)

Answer = tuple[str, tuple[Sentence, ...]]
"""An answer and the sentences that it tells from, the one that it rests on first."""


@dataclass(frozen=True, slots=True)
class Talk:
    """What the prompt shows: its sentences, its items, who talks, and who asks (first names in lower case)."""

    index: Index
    items: Sequence[ContextItem]
    speakers: frozenset[str]
    asker: str


def composed(index: Index, items: Sequence[ContextItem], question: str, want: Want, asked_by: str) -> Answer | None:
    """The answer and the sentences that it rests on; None if the context tells nothing of what is asked."""
    speakers = frozenset(filter(None, (first_name(each.speaker) for each in index.sentences)))
    talk = Talk(index, items, speakers, owner_of(index.sentences, asked_by))
    asked = asked_of(question, talk.asker, speakers, of_talk=want in OF_TALK)
    if want is Want.REFERENT:
        asked = replace(asked, kind=None)
    ranked = _ranked(talk, asked, want)
    if not ranked:
        return None
    together = _together(talk, question, asked, want, ranked)
    if together is not None:
        return together
    typed = asked.kind is not None and ranked[0].typed
    if not (ranked[0].sure or want in OF_TALK) or ranked[0].covered < (_LEAST_TYPED if typed else _LEAST_COVERED):
        return None
    best = _timed(ranked, items, want)
    return _around(best, talk, question, asked, want) or (_resolved(best, want), (best,))


@dataclass(frozen=True, slots=True)
class Scored:
    """A sentence with its score and the share of the question that it covers."""

    score: float
    covered: float
    sure: bool
    """It shares more with the question than one related word."""
    sentence: Sentence
    typed: bool
    """It holds what an answer of the kind asked for looks like."""
    asks: bool
    """It takes up a question or an answer, and tells nothing."""


def _ranked(talk: Talk, asked: Asked, want: Want = Want.SENTENCE) -> list[Scored]:
    """Sentences that share something with a question, best first; of equals the shortest, then the first."""
    index = talk.index
    quoted = [words for quote in quotes(asked.text) if (words := content_words(quote))]
    found = []
    for place, ((covered, sure), sentence) in enumerate(zip(index.shared(asked.words), index.sentences, strict=True)):
        if not covered:
            continue
        score = covered * index.brevity(sentence) * index.news(sentence, asked.words) * about(sentence, asked)
        if any(len(words & sentence.words) >= _QUOTED_SHARE * len(words) for words in quoted):
            score *= _QUOTED
        asks = sentence.is_question or bool(_WONDERS.search(sentence.said))
        if asks:
            score *= _ASKS
        elif addresses(sentence):
            score *= _ADDRESSES
        if want is Want.DATE:
            typed = _names_day(sentence, talk.items)
        else:
            typed = asked.kind is None or bool(values(sentence, asked.kind, talk.speakers))
        score *= 1.0 if typed else _WITHOUT_KIND
        if want in OF_TALK:
            score *= told_by(sentence, asked, want is Want.TELLER)
        found.append((-score, len(sentence.text), place, Scored(score, covered, sure, sentence, typed, asks)))
    return [each for *_, each in sorted(found, key=lambda each: each[:3])]


def _names_day(sentence: Sentence, items: Sequence[ContextItem]) -> bool:
    said_on = day_of(items[sentence.item].time)
    return said_on is not None and day_meant(sentence.said, said_on) is not None


def _resolved(best: Sentence, want: Want) -> str:
    """A sentence as an answer; in a list of people "me" is who says it."""
    if want is Want.PEOPLE and best.speaker:
        return _ME.sub(lambda _: best.speaker, best.said)
    return best.text


# ------------------------------------------------------------------ one sentence


def _timed(ranked: Sequence[Scored], items: Sequence[ContextItem], want: Want) -> Sentence:
    """The best sentence, or the last or first said of those about the same thing."""
    best = ranked[0].sentence
    if want not in (Want.LATEST, Want.EARLIEST):
        return best
    least = _NEAR * ranked[0].score
    near = [each.sentence for each in ranked if each.score >= least and items[each.sentence.item].time]
    if not near or day_of(items[near[0].item].time) is None:
        return best
    moments = sorted(near, key=lambda each: _moment(items[each.item].time))
    return moments[-1] if want is Want.LATEST else moments[0]


def _moment(time: str) -> str:
    day = day_of(time)
    clock = re.search(r"\d{1,2}:\d{2}", time)
    return f"{day or ''} {clock.group().zfill(5) if clock else ''}"


def _around(best: Sentence, talk: Talk, question: str, asked: Asked, want: Want) -> Answer | None:
    """What the prompt shows around a sentence, where the question is after that."""
    item = talk.items[best.item]
    said_on = day_of(item.time)
    setting = setting_of(item)
    text = ""
    if want is Want.TELLER:
        text = best.speaker
    elif want is Want.PRESENT:
        text = ", ".join(_listeners(best, talk, asked))
    elif want is Want.TALK_MEANS:
        text = setting[0] if setting else ""
    elif want is Want.TALK_PLACE:
        text = next((part.removeprefix("at ") for part in setting if part.startswith("at ")), "")
    elif want is Want.PLACE:
        text = best.said  # who says it is no place
    elif want is Want.TALK_DATE:
        text = written(said_on) if said_on else ""
    elif want is Want.DATE and said_on is not None:
        text = _date_told(best, said_on, question)
    return (text, (best,)) if text else None


def _date_told(best: Sentence, said_on: date, question: str) -> str:
    """The day of what a sentence tells; the day it was told on where it tells of the past and names none."""
    day = day_meant(best.text, said_on)
    if day is None and not _CLOCK.search(best.text) and _PAST.search(question):
        day = said_on
    return written(day) if day else ""


# ------------------------------------------------------------------ several sentences


def _together(talk: Talk, question: str, asked: Asked, want: Want, ranked: Sequence[Scored]) -> Answer | None:
    """Answers that take several sentences; None where they are not to be had."""
    if want is Want.VERSIONS:
        return _versions(ranked, asked, talk)
    if want is Want.REFERENT:
        return _referent(ranked, asked, talk)
    if want is Want.INTERVAL:
        return _interval(talk, question)
    return _order(talk, question) if want is Want.ORDER else None


def _listeners(best: Sentence, talk: Talk, asked: Asked) -> list[str]:
    """Who else talks where a sentence was said: neither its speaker, nor who asks, nor whom the question names."""
    apart = {first_name(best.speaker), talk.asker, *asked.people, *asked.teller}
    names = {first_name(each.speaker): each.speaker for each in talk.index.sentences if each.speaker}
    there = [each for each in talk.index.sentences if _together_in(talk.items, each.item, best.item)]
    met = {first_name(each.speaker): each.speaker for each in there}
    for each in there:
        met |= {name.lower(): names.get(name.lower(), name) for name in called(each, names) if each.item == best.item}
    return [name for first, name in met.items() if first and first not in apart and not _ASSISTANT.search(name)]


def _together_in(items: Sequence[ContextItem], one: int, other: int) -> bool:
    """Whether two items are of one conversation: the same, or in the same setting at nearly the same time."""
    if one == other:
        return True
    day, clock = _when(items[one].time)
    there, then = _when(items[other].time)
    if day is None or day != there or clock is None or then is None or abs(clock - then) > _SAME_TALK_MIN:
        return False
    return setting_of(items[one]) == setting_of(items[other]) != ()


def _when(time: str) -> tuple[date | None, int | None]:
    """Day and minute of the day of a time as a prompt shows it."""
    clock = re.search(r"(\d{1,2}):(\d{2})", time)
    return day_of(time), 60 * int(clock[1]) + int(clock[2]) if clock else None


def _versions(ranked: Sequence[Scored], asked: Asked, talk: Talk) -> Answer | None:
    """What two people say about the same thing: the best sentence that tells, and the best that tells another thing."""
    ranked = [each for each in ranked if not each.asks] or ranked
    best = ranked[0].sentence
    facts, weigh = _facts(best, frozenset()), talk.index.weights
    total = sum(sorted(weigh[word] for word in facts)) or 1.0
    known = values(best, asked.kind, talk.speakers) or _figures(best)
    rivals = []
    for place, each in enumerate(ranked[1:], start=1):
        other = each.sentence
        if other.said == best.said:
            continue
        same = sum(sorted(weigh[word] for word in facts & other.words)) / total
        if known:
            told = values(other, asked.kind, talk.speakers) or _figures(other)
            fit = (_SAME + same) * (1.0 if told - known else _SAME)
        else:
            fit = _SAME + 4 * same * (1 - same)
        rivals.append((-each.score * fit * (1.0 if other.speaker != best.speaker else _ADDRESSES), place, other))
    if rivals:
        rival = min(rivals)[2]
        return f"{best.said} But {rival.said}", (best, rival)
    return best.text, (best,)


def _figures(sentence: Sentence) -> frozenset[str]:
    return frozenset(re.findall(r"\d[\d.,:]*\d|\d", sentence.said))


def _facts(sentence: Sentence, asked: frozenset[str]) -> frozenset[str]:
    """What a sentence adds to the question: the words of it that the question does not have."""
    return sentence.words - asked - content_words(sentence.speaker)


def _referent(ranked: Sequence[Scored], asked: Asked, talk: Talk) -> Answer | None:
    """A thing that a later sentence only points at: where the words that both share name it first ("a …", "an …")."""
    later = next((each.sentence for each in ranked if _POINTS.search(each.sentence.said)), ranked[0].sentence)
    weigh = talk.index.weights
    hints = _facts(later, frozenset())
    total = sum(sorted(weigh[word] for word in hints)) or 1.0
    named = []
    for place, ((covered, _), each) in enumerate(
        zip(talk.index.shared(asked.words), talk.index.sentences, strict=True)
    ):
        if each.said == later.said or _POINTS.search(each.said):
            continue
        score = covered + sum(sorted(weigh[word] for word in hints & each.words)) / total
        score *= talk.index.brevity(each) * about(each, asked)
        score *= 1.0 if _INDEFINITE.search(each.said) else _WITHOUT_KIND
        score *= (1.0 if each.speaker == later.speaker else _ADDRESSES) * (_ASKS if each.is_question else 1.0)
        named.append((-score, place, each))
    if not named:
        return None
    found = min(named)[2]
    return found.text, (found,)


def _event(talk: Talk, text: str) -> tuple[float, Sentence, date] | None:
    """The best sentence about an event that a day can be had of, with its score."""
    for each in _ranked(talk, asked_of(text, talk.asker, talk.speakers), Want.DATE)[:1]:
        said_on = day_of(talk.items[each.sentence.item].time)
        if said_on is not None:
            return each.score, each.sentence, day_meant(each.sentence.text, said_on) or said_on
    return None


def _interval(talk: Talk, question: str) -> Answer | None:
    """Days between the two events of a question, cut where both halves are told of best."""
    found: list[tuple[float, int, tuple[Sentence, ...]]] = []
    for left, right in halves(question):
        one, other = _event(talk, left), _event(talk, right)
        if one is not None and other is not None and one[1] is not other[1]:
            found.append((min(one[0], other[0]), abs((one[2] - other[2]).days), (one[1], other[1])))
    if not found:
        return None
    _, days, told = max(found, key=lambda each: each[0])
    return f"{days} day{'' if days == 1 else 's'}", told


def _order(talk: Talk, question: str) -> Answer | None:
    """The members of the question's list by the days on which they happened."""
    told = [(member, _event(talk, member)) for member in listed(question)]
    known = [(event[2], member, event[1]) for member, event in told if event is not None]
    if not known or len(known) < len(told):
        return None
    ordered = sorted(known, key=lambda each: each[0])
    return "; ".join(member for _, member, _ in ordered), tuple(each[2] for each in ordered)

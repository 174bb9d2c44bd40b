"""Answers of the extractive reader: a sentence, or what the prompt shows around it, or several held together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

from memarena_answering import ContextItem

from memarena.readers.extractive_dates import day_meant, day_of, written
from memarena.readers.extractive_kinds import Want, halves, listed, quotes
from memarena.readers.extractive_scoring import Index, Sentence, content_words, setting_of

_NEAR = 0.7
"""Sentences with so much of the best one's score are about the same thing."""
_ANOTHER = 0.4
"""A second version has to share so much of what the first one shares with the question."""
_QUOTED_SHARE = 0.6
"""A sentence with so many of a quote's words is the one quoted, and says nothing new."""
_CLOCK = re.compile(r"\b\d{1,2}(?::\d{2}| ?[ap]m\b)|\bo'clock\b")
_WONDERS = re.compile(
    r"\b(?:asked|wonder(?:s|ed)?|curious|to know|now I know)\b"
    r"|^\W*(?:(?:ah|oh|aha|thanks|right|so|well|hm|strange|really)\b\W*){0,2}"
    r"(?:(?:in|at|on|by|for|from|to) )?(?:which|what|where|when|whose|who|how (?:many|much|far|long|old))\b",
    re.IGNORECASE,
)
"""Who takes up a question or an answer ("Ah, which place you booked"), and tells nothing."""
_PAST = re.compile(r"\b(?:did|was|were|had|has|have)\b", re.IGNORECASE)

Answer = tuple[str, Sentence]


def composed(index: Index, items: Sequence[ContextItem], question: str, want: Want) -> Answer | None:
    """The answer and the sentence that it rests on; None if nothing shares a word with the question."""
    ranked = _ranked(index, question)
    if not ranked:
        return None
    together = _together(index, items, question, want, ranked)
    if together is not None:
        return together
    best = _timed(ranked, items, want)
    return _around(best, items, question, want) or (best.text, best)


def _ranked(index: Index, text: str) -> list[tuple[float, Sentence]]:
    """Sentences that share something with a text, best first; of equals the shortest, then the first."""
    scores = index.scores(content_words(text))
    quoted = [words for quote in quotes(text) if (words := content_words(quote))]
    for place, sentence in enumerate(index.sentences):
        if any(len(words & sentence.words) >= _QUOTED_SHARE * len(words) for words in quoted):
            scores[place] *= 0.1
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], len(index.sentences[i].text), i))
    return [(scores[i], index.sentences[i]) for i in order if scores[i] > 0]


# ------------------------------------------------------------------ one sentence


def _timed(ranked: Sequence[tuple[float, Sentence]], items: Sequence[ContextItem], want: Want) -> Sentence:
    """The best sentence, or the last or first said of those about the same thing."""
    best = ranked[0][1]
    if want not in (Want.LATEST, Want.EARLIEST, Want.REFERENT):
        return best
    least = (_ANOTHER if want is Want.REFERENT else _NEAR) * ranked[0][0]
    near = [each for score, each in ranked if score >= least and items[each.item].time]
    if not near or day_of(items[near[0].item].time) is None:
        return best
    moments = sorted(near, key=lambda each: _moment(items[each.item].time))
    return moments[-1] if want is Want.LATEST else moments[0]


def _moment(time: str) -> str:
    day = day_of(time)
    clock = re.search(r"\d{1,2}:\d{2}", time)
    return f"{day or ''} {clock.group().zfill(5) if clock else ''}"


def _around(best: Sentence, items: Sequence[ContextItem], question: str, want: Want) -> Answer | None:
    """What the prompt shows around a sentence, where the question is after that."""
    item = items[best.item]
    said_on = day_of(item.time)
    setting = setting_of(item)
    text = ""
    if want is Want.TELLER:
        text = best.speaker
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
    return (text, best) if text else None


def _date_told(best: Sentence, said_on: date, question: str) -> str:
    """The day of what a sentence tells; the day it was told on where it tells of the past and names none."""
    day = day_meant(best.text, said_on)
    if day is None and not _CLOCK.search(best.text) and _PAST.search(question):
        day = said_on
    return written(day) if day else ""


# ------------------------------------------------------------------ several sentences


def _together(
    index: Index, items: Sequence[ContextItem], question: str, want: Want, ranked: Sequence[tuple[float, Sentence]]
) -> Answer | None:
    """Answers that take several sentences; None where they are not to be had."""
    if want is Want.VERSIONS:
        return _versions(ranked, question)
    if want is Want.INTERVAL:
        return _interval(index, items, question)
    return _order(index, items, question) if want is Want.ORDER else None


def _versions(ranked: Sequence[tuple[float, Sentence]], question: str) -> Answer | None:
    """What two people say about the same thing: the best sentence that tells, and the best that tells another thing."""
    told = [(score, each) for score, each in ranked if not each.is_question and not _WONDERS.search(each.said)]
    if not told:
        return None
    top, best = told[0]
    near = [each for score, each in told[1:] if score >= _ANOTHER * top and each.said != best.said]
    asked, figures = content_words(question), _figures(best)
    apart = [each for each in near if _facts(each, asked) - _facts(best, asked)]
    if figures:
        apart = [each for each in apart if _figures(each) - figures]
    for found in (apart, near):
        if found:
            other = next((each for each in found if each.speaker != best.speaker), found[0])
            return f"{best.said} But {other.said}", best
    return best.text, best


def _figures(sentence: Sentence) -> frozenset[str]:
    return frozenset(re.findall(r"\d[\d.,:]*\d|\d", sentence.said))


def _facts(sentence: Sentence, asked: frozenset[str]) -> frozenset[str]:
    """What a sentence adds to the question: the words of it that the question does not have."""
    return sentence.words - asked - content_words(sentence.speaker)


def _event(index: Index, items: Sequence[ContextItem], text: str) -> tuple[float, Sentence, date] | None:
    """The best sentence about an event that a day can be had of, with its score."""
    for score, sentence in _ranked(index, text)[:1]:
        said_on = day_of(items[sentence.item].time)
        if said_on is not None:
            return score, sentence, day_meant(sentence.text, said_on) or said_on
    return None


def _interval(index: Index, items: Sequence[ContextItem], question: str) -> Answer | None:
    """Days between the two events of a question, cut where both halves are told of best."""
    found: list[tuple[float, int, Sentence]] = []
    for left, right in halves(question):
        one, other = _event(index, items, left), _event(index, items, right)
        if one is not None and other is not None and one[1] is not other[1]:
            found.append((min(one[0], other[0]), abs((one[2] - other[2]).days), one[1]))
    if not found:
        return None
    _, days, sentence = max(found, key=lambda each: each[0])
    return f"{days} day{'' if days == 1 else 's'}", sentence


def _order(index: Index, items: Sequence[ContextItem], question: str) -> Answer | None:
    """The members of the question's list by the days on which they happened."""
    told = [(member, _event(index, items, member)) for member in listed(question)]
    known = [(event[2], member, event[1]) for member, event in told if event is not None]
    if not known or len(known) < len(told):
        return None
    ordered = sorted(known, key=lambda each: each[0])
    return "; ".join(member for _, member, _ in ordered), ordered[0][2]

"""Reads one detail from the evidence: candidates of the wanted type, weighed by the question and by agreement."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from memarena.dataset.date_words import WEEKDAYS, dates_in, explicit_dates_in
from memarena.dataset.number_words import numbers_in, times_in
from memarena.dataset.value_matching import normal, phrase_occurs, tokens_of

from masim_bars.solver.evidence import Said, Task, content, overlap
from masim_bars.solver.lexicon import COMMUNITY, Lexicon

_OPTION = re.compile(r"(?:^|\s)\(?([A-J])[).:]\s+(.+?)(?=\s+\(?[A-J][).:]\s|\n|$)", re.MULTILINE)
_CAPITALISED = re.compile(r"(?<=[a-z,;:] )((?:[A-Z][\w'-]+)(?: (?:of |the |de |van )?[A-Z][\w'-]+)*)")
_WORD = re.compile(r"[^\W_][\w'’-]*")
KNOWN, UNKNOWN = 1.0, 0.5
"""Trust in what is a value elsewhere, and in what only looks like one."""
COMMON_RARITY, RARE_SUM = 3.5, 8.0
"""Words said in every thirtieth turn or more often are no value; two rare words are worth full trust."""
LONGEST_VALUE = 4
_I_WITH_VERB = ("I'", "I’")
_COMMUNITY = {**{name: name for name in COMMUNITY}, "group_meeting_place": "group_place"}
_CODE = re.compile(r"\b(?=\w*\d)[\w-]{3,}\b")


def candidates(task: Task, lexicon: Lexicon, limit: int) -> list[str]:
    """The best-supported values of the wanted types, best first.

    Every turn votes for each candidate with the words that its sentence shares with the question; what the question
    says itself is no answer.
    """
    wanted = content(task.query)
    given = normal(task.query)
    votes: defaultdict[str, float] = defaultdict(float)
    shown: dict[str, str] = {}
    for said in task.said:
        best: dict[str, float] = {}
        closest = max((overlap(wanted, sentence) for sentence in said.sentences), default=0.0)
        for sentence in said.sentences:
            shared = overlap(wanted, sentence)
            weight = 1.0 + shared
            found = list(_read(task, said, sentence, lexicon))
            if shared == closest and not any(trust >= KNOWN for _, _, trust in found):
                found += _rare(task, said, sentence, lexicon)
            for key, text, trust in found:
                if not phrase_occurs(text, given):
                    best[key] = max(best.get(key, 0.0), weight * trust)
                    shown[key] = text
        for key, weight in best.items():
            votes[key] += weight
    order = sorted(votes, key=lambda key: (-votes[key], key))
    return [shown[key] for key in order[:limit]]


def _read(task: Task, said: Said, sentence: str, lexicon: Lexicon) -> Iterator[tuple[str, str, float]]:
    """Key, text and trust of every candidate in a sentence."""
    for kind in task.kinds:
        if kind == "amount":
            digits = {value for text in re.findall(r"\d+(?:[.,]\d+)*", sentence) for value in numbers_in(text)}
            for value in numbers_in(sentence):
                yield f"{value:g}", f"{value:g}", 1.0 if value in digits else 0.3
        elif kind == "time":
            for minutes in _exact_times(sentence):
                text = f"{minutes // 60:02d}:{minutes % 60:02d}"
                yield text, text, 1.0
        elif kind == "weekday":
            for day in WEEKDAYS:
                if f" {day} " in normal(sentence) or f" {day}s " in normal(sentence):
                    yield day, day.capitalize(), 1.0
        elif kind == "date":
            explicit = explicit_dates_in(sentence, said.day)
            for moment in explicit or dates_in(sentence, said.day) - {said.day}:
                yield moment.isoformat(), f"{moment:%B} {moment.day}, {moment.year}", 1.0 if explicit else 0.2
        else:
            yield from _phrases(_COMMUNITY.get(task.attribute or "", kind), task, sentence, lexicon)


def _rare(task: Task, said: Said, sentence: str, lexicon: Lexicon) -> Iterator[tuple[str, str, float]]:
    """Stretches of a sentence whose words the question does not hold and that are seldom said: unknown values."""
    if not set(task.kinds) & {"name", "place", "term"}:
        return
    wanted = content(task.query)
    people = {word for name in (said.speaker, *said.others) for word in tokens_of(name)}
    words = [(match.group(), tokens_of(match.group())) for match in _WORD.finditer(sentence)]
    weights = [
        lexicon.rarity(tokens[-1]) - COMMON_RARITY
        if tokens and content(text) - wanted and not set(tokens) & people and text[:2] not in _I_WITH_VERB
        else 0.0
        for text, tokens in words
    ]
    for first in range(len(words)):
        for last in range(first, min(len(words), first + LONGEST_VALUE)):
            inside = weights[first : last + 1]
            if inside[0] <= 0 or inside[-1] <= 0:
                continue
            text = " ".join(word for word, _ in words[first : last + 1])
            yield text.lower(), text, UNKNOWN * max(0.0, sum(inside)) / RARE_SUM


def _exact_times(sentence: str) -> frozenset[int]:
    """Clock times; where morning or evening is said, only those."""
    halves = frozenset(
        minutes
        for match in re.finditer(r"\b\d{1,2}(?:[:.]\d{2})?\s*[ap]\.?\s?m\b", sentence.lower())
        for minutes in times_in(match.group())
    )
    return halves or times_in(sentence)


def _phrases(kind: str, task: Task, sentence: str, lexicon: Lexicon) -> Iterator[tuple[str, str, float]]:
    known = lexicon.found(kind, tokens_of(sentence), task.own)
    people = {word for said in task.said for name in (said.speaker, *said.others) for word in tokens_of(name)}
    for text in known:
        yield text.lower(), text, 0.3 if set(tokens_of(text)) <= people else 1.0
    for match in (*_CAPITALISED.finditer(sentence), *_CODE.finditer(sentence)):
        text = match.group()
        unknown = not any(set(tokens_of(text)) & set(tokens_of(one)) for one in known)
        if unknown and not set(tokens_of(text)) & people and text.lower() not in WEEKDAYS:
            yield text.lower(), text, 0.25


def option(task: Task) -> str:
    """For a question with lettered options: the text of the one that the evidence states most."""
    options = {letter: text.strip() for letter, text in _OPTION.findall(task.query)}
    wanted = content(_OPTION.sub(" ", task.query))
    support: dict[str, float] = dict.fromkeys(options, 0.0)
    for said in task.said:
        for sentence in said.sentences:
            for letter, text in options.items():
                if _holds(sentence, text):
                    support[letter] += 1.0 + overlap(wanted, sentence)
    best = max(support, key=lambda letter: (support[letter], letter), default="")
    return best if best and support[best] else ""


def _holds(sentence: str, text: str) -> bool:
    times = _exact_times(text) if re.search(r"\d[:.]\d\d|\d\s?[ap]m", text.lower()) else frozenset()
    if times:
        return bool(times & _exact_times(sentence))
    numbers = numbers_in(text) if re.fullmatch(r"[\d.,]+( \w+)?", text) else frozenset()
    return bool(numbers & numbers_in(sentence)) if numbers else phrase_occurs(text, normal(sentence))

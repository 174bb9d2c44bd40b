"""Finds one detail in the evidence: candidates of the expected type, ranked by overlap with the question."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from memarena_dataset.values.calendar import WEEKDAYS
from memarena_dataset.values.generous import dates_in, explicit_dates_in, numbers_in, times_in
from memarena_dataset.values.phrases import normal, phrase_occurs, tokens_of

from memarena_dataset_quality.solver.evidence import EvidenceTurn, Task, content, overlap
from memarena_dataset_quality.solver.lexicon import COMMUNITY, Lexicon

_OPTION = re.compile(r"(?:^|\s)\(?([A-J])[).:]\s+(.+?)(?=\s+\(?[A-J][).:]\s|\n|$)", re.MULTILINE)
_CAPITALISED = re.compile(r"(?<=[a-z,;:] )((?:[A-Z][\w'-]+)(?: (?:of |the |de |van )?[A-Z][\w'-]+)*)")
_WORD = re.compile(r"[^\W_][\w'’-]*")
KNOWN, NAMED, UNKNOWN = 1.0, 0.6, 0.4
"""Trust in a value known from elsewhere, in two capitalised words, and in words that only look like a value."""
COMMON_RARITY, RARE_SUM = 3.5, 8.0
"""A word that occurs in every thirtieth turn or more often is not a value; two rare words get full trust."""
LONGEST_VALUE = 4
_VERSIONS_WEIGHED = 4
_I_WITH_VERB = ("I'", "I’")
_COMMUNITY = {**{name: name for name in COMMUNITY}, "group_meeting_place": "group_place"}
"""Kind of phrase in the lexicon, by attribute of a question about a home, a workplace or a group."""
_ALSO = {"work_location": frozenset({"job"})}
"""Stems of synonyms of each attribute."""
_AT = re.compile(r"\b[Aa]t the ((?:[a-z'-]+ )?[a-z'-]+)")
_ARTICLES = ("the", "a", "an")
_TITLES = ("Dr", "Mr", "Mrs", "Ms")
_TITLED = re.compile(r"\b(?:Dr|Mr|Mrs|Ms)\. [A-Z][\w'-]+(?: [A-Z][\w'-]+)?")
_PART_OF_YEAR = re.compile(r"\b(?:early |late |mid-)[A-Z][a-z]+")
_LEADING = frozenset(
    (
        *("the", "a", "an", "in", "on", "under", "behind", "inside", "at", "beside", "above"),
        *("early", "mid", "late"),
    )
)
"""Words before an unknown value that are part of it: "in the umbrella stand", "early November"."""
_LONGEST_NAME = 3
_CODE = re.compile(r"\b(?=\w*\d)[\w-]{3,}\b")


def candidates(task: Task, lexicon: Lexicon, limit: int) -> list[str]:
    """Return the best-supported values of the expected types, best first.

    Every turn votes for each candidate with the words that its sentence shares with the question; a value that the
    question itself contains is not an answer.
    """
    asked_stems = content(task.query) | _ALSO.get(task.attribute or "", frozenset())
    query = normal(task.query)
    votes: defaultdict[str, float] = defaultdict(float)
    texts: dict[str, str] = {}
    for turn in task.turns:
        best: dict[str, float] = {}
        overlaps = _overlaps(asked_stems, turn.sentences)
        closest = max(overlaps, default=0.0)
        for sentence, shared in zip(turn.sentences, overlaps, strict=True):
            weight = 1.0 + shared
            matches = list(_typed_values(task, turn, sentence, lexicon))
            if shared == closest and not any(trust >= KNOWN for _, _, trust in matches):
                matches += _rare(task, turn, sentence, lexicon)
            for key, text, trust in matches:
                if not phrase_occurs(text, query):
                    best[key] = max(best.get(key, 0.0), weight * trust)
                    texts[key] = text
        for key, weight in best.items():
            votes[key] += weight
    order = sorted(votes, key=lambda key: (-votes[key], key))
    return [texts[key] for key in order[:limit]]


def two_versions(task: Task, lexicon: Lexicon) -> list[str]:
    """Return the two best-supported values, preferably a pair of one kind ("fish sauce", "nutmeg")."""
    versions = candidates(task, lexicon, _VERSIONS_WEIGHED)
    pairs = [(value, other) for index, value in enumerate(versions) for other in versions[index + 1 :]]
    alike = [pair for pair in pairs if lexicon.same_kind(*pair)]
    return list((alike or pairs)[0]) if pairs else versions


def _overlaps(stems: frozenset[str], sentences: tuple[str, ...]) -> list[float]:
    """Return the overlap of each sentence with the question; a sentence after a question has at least that one's."""
    result: list[float] = []
    for index, sentence in enumerate(sentences):
        question_overlap = result[-1] if index and sentences[index - 1].rstrip().endswith("?") else 0.0
        result.append(max(overlap(stems, sentence), question_overlap))
    return result


def _typed_values(task: Task, turn: EvidenceTurn, sentence: str, lexicon: Lexicon) -> Iterator[tuple[str, str, float]]:
    """Yield key, text and trust of every candidate in a sentence."""
    for kind in task.kinds:
        if kind == "amount":
            digits = {value for text in re.findall(r"\d+(?:[.,]\d+)*", sentence) for value in numbers_in(text)}
            for value in numbers_in(sentence):  # 0.3: a number in words ("one of them") may be no number
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
            # a date that is counted from the day of the turn ("next week") counts less than an explicit one
            explicit = explicit_dates_in(sentence, turn.day)
            for moment in explicit or dates_in(sentence, turn.day) - {turn.day}:
                yield moment.isoformat(), f"{moment:%B} {moment.day}, {moment.year}", 1.0 if explicit else 0.2
        else:
            yield from _phrases(_COMMUNITY.get(task.attribute or "", kind), task, sentence, lexicon)


def _rare(task: Task, turn: EvidenceTurn, sentence: str, lexicon: Lexicon) -> Iterator[tuple[str, str, float]]:
    """Yield stretches of a sentence that may be unknown values: words that are rare and not in the question."""
    if not set(task.kinds) & {"name", "place", "term"}:
        return
    asked_stems = content(task.query)
    people = {word for name in (turn.speaker, *turn.others) for word in tokens_of(name)}
    words = [(match.group(), tokens_of(match.group())) for match in _WORD.finditer(sentence)]
    weights = [
        lexicon.rarity(tokens[-1]) - COMMON_RARITY
        if tokens and content(text) - asked_stems and not set(tokens) & people and text[:2] not in _I_WITH_VERB
        else 0.0
        for text, tokens in words
    ]
    for first in range(len(words)):
        for last in range(first, min(len(words), first + LONGEST_VALUE)):
            inside = weights[first : last + 1]
            if inside[0] <= 0 or inside[-1] <= 0:
                continue
            if task.kinds == ("name",) and not words[last][0][0].isupper():
                continue
            begin = first
            while begin and words[begin - 1][0] in _LEADING:
                begin -= 1
            text = " ".join(word for word, _ in words[begin : last + 1])
            yield text.lower(), text, UNKNOWN * min(1.0, max(0.0, sum(inside)) / RARE_SUM)


def _exact_times(sentence: str) -> frozenset[int]:
    """Return clock times, in minutes; only those with am or pm if there are any."""
    halves = frozenset(
        minutes
        for match in re.finditer(r"\b\d{1,2}(?:[:.]\d{2})?\s*[ap]\.?\s?m\b", sentence.lower())
        for minutes in times_in(match.group())
    )
    return halves or times_in(sentence)


def _phrases(kind: str, task: Task, sentence: str, lexicon: Lexicon) -> Iterator[tuple[str, str, float]]:
    """Yield key, text and trust of each name, place or term in a sentence: known ones first, then likely ones."""
    tokens = tokens_of(sentence)
    positions = lexicon.positions_of(kind, tokens, task.own)
    people = {word for turn in task.turns for name in (turn.speaker, *turn.others) for word in tokens_of(name)}
    for text, position in positions.items():
        if kind == "name" and not any(re.search(rf"\b{re.escape(word)}\b", sentence) for word in text.split()):
            continue  # "a button" is not Button
        # 0.3: the name of a person in the session may be an address
        full_name = _whole_name(tokens, position, text)
        yield full_name.lower(), full_name, 0.3 if set(tokens_of(text)) <= people else 1.0
    if kind == "work_location" and not positions:
        for match in _AT.finditer(sentence):
            yield match.group(1), match.group(1), NAMED
    people |= {word for name in task.people for word in tokens_of(name)}
    for match in (
        *_CAPITALISED.finditer(sentence),
        *_TITLED.finditer(sentence),
        *_PART_OF_YEAR.finditer(sentence),
        *_CODE.finditer(sentence),
    ):
        text = match.group()
        unknown = not any(set(tokens_of(text)) & set(tokens_of(known_value)) for known_value in positions)
        if unknown and not set(tokens_of(text)) & people and text.lower() not in WEEKDAYS and text not in _TITLES:
            yield text.lower(), text, NAMED if len(text.split()) > 1 else 0.25


def _whole_name(tokens: list[str], position: int, text: str) -> str:
    """Return a known place with the words after its article: "the music school" for "the school"."""
    if text.split(maxsplit=1)[0].lower() not in _ARTICLES:
        return text
    for start in range(position - 1, max(-1, position - _LONGEST_NAME - 1), -1):
        if tokens[start] in _ARTICLES:
            return " ".join((*tokens[start:position], text.split(maxsplit=1)[1]))
    return text


def option(task: Task) -> str:
    """Return the text of the lettered option that the evidence states most; "" if it states none."""
    options = {letter: text.strip() for letter, text in _OPTION.findall(task.query)}
    asked_stems = content(_OPTION.sub(" ", task.query))
    support: dict[str, float] = dict.fromkeys(options, 0.0)
    for turn in task.turns:
        for sentence in turn.sentences:
            for letter, text in options.items():
                if _holds(sentence, text):
                    support[letter] += 1.0 + overlap(asked_stems, sentence)
    best = max(support, key=lambda letter: (support[letter], letter), default="")
    return best if best and support[best] else ""


def _holds(sentence: str, text: str) -> bool:
    times = _exact_times(text) if re.search(r"\d[:.]\d\d|\d\s?[ap]m", text.lower()) else frozenset()
    if times:
        return bool(times & _exact_times(sentence))
    numbers = numbers_in(text) if re.fullmatch(r"[\d.,]+( \w+)?", text) else frozenset()
    return bool(numbers & numbers_in(sentence)) if numbers else phrase_occurs(text, normal(sentence))

"""Rivals of plain terms, which no type gives away: what is joined to the gold, or offered beside it by a clause.

A term has no kind by which another term could be told from other words. What can be seen is where a rival stands: in a
list with the gold (``miso and paprika``), behind ``also`` or ``too``, or as what somebody else said. A thing that
stands there and is neither the gold's nor part of what the evidence says together with the gold competes with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memarena.dataset.values import NameValue, PlaceValue, TermValue
from memarena.log.records import EvidenceSession
from memarena.text.lexicon import word_list
from memarena.text.reading import ReadText, read_text
from memarena.text.stating import Place, ScalarValue, places
from memarena.text.words import content_words, stem, words

_LONGEST_THING = 5
"""Words of the longest thing that is taken for a rival, articles included."""
_LONGEST_NEW_THING = 9
"""The same where it is introduced as something new (``a tub of black garlic ice cream``)."""
_JOINS = (
    r"and|or|plus|as well as|along with|together with|in addition to|besides|combined with|accompanied by|alongside|"
    r"coupled with|paired with|next to|with(?= (?:an?|some|\d+) )"
)
_JOINED_BEHIND = re.compile(
    rf"^[\s\"'*_]*(?:[,;(\[\u2014-]\s*)?(?:(?:{_JOINS})\b\s*|[&+/]\s*)(?:also |maybe |perhaps |possibly |with |by |"
    rf",?\s?(?:of course|naturally|indeed|obviously|needless to say|last but not least),?\s?)*",
    re.IGNORECASE,
)
_TURNS_INTO = re.compile(r"^[\s\"'*_]*,?\s*(?:to|then|into)\s+(?=(?:an?|some) )", re.IGNORECASE)
_JOINED_AHEAD = re.compile(
    rf"(?:(?:^|[\s,])(?:{_JOINS})\s+(?:also |maybe |perhaps )*|[&+/]\s*)[\"'*_]*(?:a |an |the )?[\"'*_]*$",
    re.IGNORECASE,
)
_LISTED_AHEAD = re.compile(r",\s*[\"'*_]*(?:a |an |the )?[\"'*_]*$", re.IGNORECASE)
_LIST_GOES_ON = re.compile(r"^[\s\"'*_]*(?:,|and\b|or\b|&)", re.IGNORECASE)
_LISTED = re.compile(r"^[\s\"'*_]*,\s*[\"'*_]*")
_STOP = re.compile(
    r"[.!?;:=\n()\[\]]|,|\s(?:and|or|plus|but|while|which|who|that|because|since|so|as|when|where|not)\b|\s[—-]\s|/|&"
)
_BESIDES = re.compile(
    r"\b(?:also|too|additionally|as well(?! as)|furthermore|moreover|besides|in addition|apart from that|"
    r"on top of that|another|"
    r"a (?:second|third|further) (?:one|version|answer)|(?:some|any)body else|(?:some|any)one else|a third|"
    r"added|adding|adds|"
    r"others?(?! (?:things?|matters?|topics?|subjects?|points?|details?|stuff|news)\b))\b"
)
_NEW_THING = re.compile(r"\b(?:an?|some|two|three|four|[2-9])\s+(?=[a-z])", re.IGNORECASE)
_CLOSES = re.compile(
    r"(?:but |and )?of course|naturally|obviously|what else|who else|as it happens|"
    r"respectively|in that order|full stop|period|end of (?:the )?story|(?:the )?case (?:is )?closed|job done|"
    r"hands down|bar none|(?:as )?simple as that|"
    r"for (?:sure|certain)|to be (?:exact|precise|specific)|loud and clear|clear as day|as (?:recorded|noted|"
    r"stated|requested|"
    r"promised|expected|always|usual)|black (?:on|and) white|crystal clear|word for word|short and sweet|"
    r"(?:just )?like that"
)
"""How an answer closes behind its value."""
_CLOSES_HERE = re.compile(rf"(?:{_CLOSES.pattern})(?=\s*(?:[.!?,;)\n]|$))", re.IGNORECASE)
_NAME_OR_NEW = re.compile(r"[A-Z]|\b(?:[aA]n?|[tT]he|some)\b")
_VERB_BEHIND = frozenset(
    (
        "can",
        "could",
        "will",
        "would",
        "may",
        "might",
        "shall",
        "should",
        "must",
        "to",
        "i",
        "you",
        "we",
        "they",
        "did",
        "do",
    )
)
"""Behind these, ``also`` stands before a verb (``I can also remind you``)."""
_LAST = frozenset(("last", "lastly", "finally", "first", "third", "fourth", "later"))
_BREAKING_WORDS = """
i me you he she it we they this that there is are was were be been has have had do does did will would can could
should may might must on at during until if whether who whom which what when where why how not never about from by for
because since so then now here yes no please thanks thank nowhere everywhere anything nothing something everything
"""
_BREAKS_A_THING = frozenset(_BREAKING_WORDS.split())
_DETERMINING_WORDS = """
a an the some two three four five six seven eight nine ten several my your his her their our its
"""
_DETERMINERS = frozenset(_DETERMINING_WORDS.split())


@dataclass(frozen=True)
class Beside:
    """What an answer is held against when things beside its gold are looked for."""

    answer: ReadText
    question: str
    evidence: Sequence[EvidenceSession]
    required: tuple[ScalarValue, ...]
    barred: tuple[ScalarValue, ...] = ()


def rival_term(case: Beside) -> str:
    """The first thing that competes with the gold's terms; empty if there is none."""
    terms = [v for v in case.required if isinstance(v, TermValue | PlaceValue | NameValue)]
    if not terms or len(terms) != len(case.required):
        return ""
    for term in terms:
        for place in places(term, case.answer):
            for thing, by_word in (*_behind(case, place), *_ahead(case, place)):
                if competes(case, thing, term, by_word=by_word):
                    return thing.strip()
    return _second_answer(case, terms) or _offered_besides(case)


_ANSWER_IS = re.compile(
    r"\b(?:(?:answer|reply|result|value) (?:is|was|=|reads|would be)|(?:it|that|this) (?:is|"
    r"was)(?= also\b))\s+(?:also |then |in fact )*"
    r"(?P<thing>(?:(?:Dr|Mr|Mrs|Ms|Prof)\.|[^.;,:!?\n])+?)(?=[.;,:!?\n]|\s+(?:and|but|or)\b|$)",
    re.IGNORECASE,
)


def answered_twice(case: Beside) -> str:
    """What a sentence gives as the answer in the words with which another gives the gold; empty if there is none."""
    terms = [v for v in case.required if isinstance(v, TermValue | PlaceValue | NameValue)]
    given = [m["thing"] for m in _ANSWER_IS.finditer(case.answer.text) if _SAYS_ANSWER.match(m.group())]
    holding = [thing for thing in given if any(places(t, read_text(thing)) for t in terms)]
    if not holding or len(terms) != 1:
        return ""
    others = (thing for thing in given if thing not in holding and competes(case, thing, terms[0], by_word=True))
    return next(others, "").strip()


_SAYS_ANSWER = re.compile(r"(?:answer|reply|result|value)\b", re.IGNORECASE)


def _second_answer(case: Beside, terms: Sequence[ScalarValue]) -> str:
    """What is given as the answer in so many words and is another thing than the gold's."""
    for match in _ANSWER_IS.finditer(case.answer.text):
        thing = match["thing"]
        first, second = (*words(thing), "", "")[:2]
        grammar = second in word_list("function_words.v1.txt")
        if first.endswith("ly") or stem(first) in _talk() or (first.endswith(("ed", "en")) and (grammar or not second)):
            # `The answer is given as …`, `was clearly …`: no thing.
            continue
        if not any(places(t, read_text(thing)) for t in terms) and competes(case, thing, terms[0], by_word=True):
            return thing
    return ""


def _behind(case: Beside, place: Place) -> Iterator[tuple[str, bool]]:
    """Things joined to a place from behind: ``X and Y``, ``X, Y and Z``, ``X, Y``; and whether by a word or a comma."""
    rest = case.answer.text[place.end :]
    turns = _TURNS_INTO.match(rest) if len(case.required) > 1 else None
    if match := _JOINED_BEHIND.match(rest) or turns:
        yield _thing(rest[match.end() :]), True
    elif match := _LISTED.match(rest):
        listed = rest[match.end() :]
        if _CLOSES_HERE.match(listed):
            return
        thing = _thing(listed)
        stop = _STOP.search(listed)
        behind = listed[stop.start() :] if stop else ""
        # A comma alone joins a list only if the list goes on or ends there.
        if re.match(r"\s*(?:,|and\b|or\b|&|[.!?]?\s*$)", behind):
            yield thing, False


def _ahead(case: Beside, place: Place) -> Iterator[tuple[str, bool]]:
    """Things joined to a place from the front: ``Y and X``."""
    lead = case.answer.text[: place.start]
    if match := _JOINED_AHEAD.search(lead):
        yield _last_thing(lead[: match.start()]), True
    elif (match := _LISTED_AHEAD.search(lead)) and _LIST_GOES_ON.match(case.answer.text[place.end :]):
        yield _last_thing(lead[: match.start()]), False


def _thing(text: str) -> str:
    """The thing with which a text begins; one that is introduced as new may come behind words of grammar."""
    stop = _STOP.search(text)
    thing = text[: stop.start()] if stop else text
    new = _NEW_THING.search(thing)
    grammar = word_list("function_words.v1.txt")
    if new and all(w in grammar or w in _LAST or stem(w) in _talk() for w in words(thing[: new.start()])):
        return thing[new.start() :]
    return thing


def _last_thing(text: str) -> str:
    """The thing with which a text ends; one that is introduced as new may come behind any words."""
    ends = [m.end() for m in _STOP.finditer(text)]
    thing = text[ends[-1] :] if ends else text
    new = [m.start() for m in _NEW_THING.finditer(thing)]
    return thing[new[-1] :] if new else thing


def competes(case: Beside, thing: str, term: ScalarValue, *, by_word: bool) -> bool:
    """Whether a thing is another than the gold's and no talk. ``by_word``: joined by more than a comma."""
    spoken = words(thing)
    if _CLOSES.fullmatch(" ".join(spoken)):
        return False
    if not by_word and isinstance(term, NameValue) and not _NAME_OR_NEW.search(thing):
        return False  # `Ms. Ray, plain as day`: behind a comma alone nothing small competes with a name.
    moment = not by_word and not _is_moment(_text(term)) and _is_moment(thing)
    if not _is_thing(spoken) or _is_known_value(case, thing) or moment:
        return False
    people = {w for s in case.evidence for t in s.turns for w in content_words(t.speaker)}
    news = set(content_words(thing)) - _talk() - set(content_words(case.question)) - people
    if any(word.isdigit() for word in spoken[:1]) and set(content_words(" ".join(spoken[1:2]))) <= _talk():
        # `2 accounts exist`: a number of things that an answer speaks about.
        return False
    return bool(news) and not _goes_with(case, news, term)


def _is_thing(spoken: Sequence[str]) -> bool:
    longest = _LONGEST_NEW_THING if spoken[:1] in (["a"], ["an"]) else _LONGEST_THING
    return 0 < len(spoken) <= longest and not _BREAKS_A_THING & set(spoken)


def _is_known_value(case: Beside, thing: str) -> bool:
    """Whether the thing is (part of) another required or barred value."""
    read = read_text(thing)
    return any(
        places(v, read) or set(content_words(thing)) <= set(content_words(_text(v)))
        for v in (*case.required, *case.barred)
    )


def _is_moment(thing: str) -> bool:
    """Whether the thing is a date or a time and nothing else, as it stands behind a comma to say when."""
    read = read_text(thing)
    rest = list(read.text)
    for mention in read.of_kind("date", "weekday", "time", "duration"):
        rest[mention.start : mention.end] = " " * (mention.end - mention.start)
    return not content_words("".join(rest))


def _text(value: ScalarValue) -> str:
    if isinstance(value, TermValue):
        return " ".join((value.text, *value.aliases))
    return " ".join((value.name, *value.aliases)) if isinstance(value, NameValue | PlaceValue) else ""


def _goes_with(case: Beside, news: set[str], term: ScalarValue) -> bool:
    """Whether the evidence says the thing in one breath with the gold."""
    for session in case.evidence:
        for turn in session.turns:
            for sentence in re.split(r"[.!?\n]+", turn.text):
                read = read_text(sentence)
                if places(term, read) and news <= set(content_words(sentence)):
                    return True
    return False


def _offered_besides(case: Beside) -> str:
    """Something unheard of in a clause that offers one thing more (``she also bought a comb``)."""
    offers = [words(c.text) for c in case.answer.clauses if _BESIDES.search(" ".join(words(c.text)))]
    if not offers:
        return ""
    known = {w for s in case.evidence for t in s.turns for w in content_words(f"{t.speaker} {t.text}")}
    known |= set(content_words(case.question)) | _talk()
    known |= {w for v in (*case.required, *case.barred) for w in content_words(_text(v))}
    for spoken in offers:
        for position, word in enumerate(spoken):
            if word in ("also", "additionally") and position and spoken[position - 1] in _VERB_BEHIND:
                continue
            if word in _DETERMINERS or word.isdigit() or word in ("also", "additionally"):
                thing = _up_to_grammar(spoken[position + 1 :])
                if (
                    thing
                    # `which also covered …`: what else was talked about, and no thing.
                    and not (word in ("also", "additionally") and thing[0].endswith(("ed", "ing")))
                    and not {stem(w) for w in thing} & known
                    and not set(thing) <= word_list("common_words.v1.txt")
                ):
                    return " ".join([word, *thing])
    return ""


def _up_to_grammar(spoken: Sequence[str]) -> list[str]:
    found: list[str] = []
    for word in spoken[:4]:
        if word in word_list("function_words.v1.txt") and word != "of":
            break
        found.append(word)
    return [w for w in found if w != "of"]


def _talk() -> frozenset[str]:
    """Stems of words that name nothing."""
    return frozenset(stem(w) for w in word_list("talk_words.v1.txt"))

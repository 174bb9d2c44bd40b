"""The record of one thread of conversation: what it is about, drawn once, and what has been said of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from memarena_masim.phrases.grammar import Scope, Sequence_, Voice, phrase
from memarena_masim.phrases.library import Library, Topic
from memarena_masim.phrases.matters import Deed, Exchange, Matter, head
from memarena_masim.rng import Stream

_MARK = re.compile(r"\*([^*]*)\*")
_PERSON = {
    "i": "you", "me": "you", "my": "your", "mine": "yours", "we": "you", "us": "you", "our": "your", "ours": "yours",
    "myself": "yourself", "i'm": "you're", "i've": "you've", "i'd": "you'd", "i'll": "you'll", "we're": "you're",
    "we've": "you've", "we'd": "you'd", "we'll": "you'll", "am": "are",
}  # fmt: skip
"""A speaker's words in the mouth of the one spoken to."""
_BACK = {"you": "I", "your": "my", "yours": "mine", "yourself": "myself", "you're": "I'm", "you've": "I've"}
"""The words of one who speaks to us in our own mouth; ``you`` as an object is left to what follows."""
_WORD = re.compile(r"[A-Za-z']+")
_WAS = re.compile(r"\b([Ii] was)\b")
_LAST = re.compile(r"\b(?:the|a|an|my|our|your|that|those|these|every|some) (?:[a-z'-]+ )?[a-z'-]+$")
"""A noun with its article at the end of a clause."""
_PREPOSITIONS = frozenset(
    (
        *("in", "on", "at", "into", "onto", "with", "for", "from", "over", "under", "behind", "through", "round", "to"),
        *(
            "about",
            "without",
            "off",
            "by",
            "past",
            "after",
            "before",
            "like",
            "between",
            "beside",
            "near",
            "of",
            "until",
        ),
        *("till", "since", "than", "as", "along", "across", "against", "towards", "within", "during"),
    )
)
_DETERMINERS = frozenset(
    ("the", "a", "an", "my", "our", "your", "his", "her", "their", "that", "those", "these", "some", "one")
)
_NO_NOUN = frozenset(
    (
        *("it", "them", "him", "her", "me", "us", "you", "that", "this", "again", "now", "then", "too"),
        *("either", "more", "less", "well", "up", "down", "off", "out", "over", "away", "back", "there", "here"),
        *("was", "is", "were", "are", "did", "does", "had", "has", "got", "went", "came", "could", "would"),
        "should",
    )
)
_NO_KEY = frozenset(
    (
        *(
            "where",
            "when",
            "who",
            "whoever",
            "what",
            "how",
            "why",
            "if",
            "because",
            "while",
            "none",
            "nobody",
            "nothing",
        ),
        *("lit", "cut", "lost", "gone", "open", "shut", "early", "late", "easy", "hard", "alone", "twice", "once"),
        *("always", "never", "rarely", "better", "worse", "yes", "no", "not", "hardly", "rather", "mostly", "only"),
    )
)
"""First words of what nobody can speak "about"."""


@dataclass(frozen=True, slots=True)
class Said:
    """A stretch of text and what in it can be taken up, in the speaker's own words ("" for nothing)."""

    text: str
    key: str = ""


def marked(text: str) -> Said:
    """``text`` without its marks; the key is the last stretch that was marked, if that is something to speak of."""
    keys = [key for key in _MARK.findall(text) if key]
    return Said(text.replace("*", ""), noun_of(keys[-1]) if keys else "")


def noun_of(key: str) -> str:
    """A marked stretch as what one can speak about: ``over a fire`` is ``a fire``, ``where it ended`` is nothing."""
    words = key.split()
    if words[0].lower() in _PREPOSITIONS:
        words = words[1:]
        if not words or words[0] not in _DETERMINERS:
            return ""
    first, last = words[0].lower(), words[-1].lower()
    if first in _NO_KEY or last in _NO_NOUN or last in _PREPOSITIONS:
        return ""
    return " ".join(words)


def last_noun(text: str) -> str:
    """What ends a clause that marks nothing, where that is a noun: ``the greenhouse``, ``a beehive``; or ""."""
    found = _LAST.search(text.rstrip('.?!" '))
    if found is None or found.group().split()[-1] in _NO_NOUN or "ed " in f"{found.group()} ":
        return ""
    return found.group()


def to_you(text: str) -> str:
    """A speaker's words as the other one takes them up: ``my back`` is ``your back``."""
    text = _WAS.sub("you were", text)
    return _WORD.sub(lambda match: _PERSON.get(match.group().lower(), match.group()), text)


def to_me(text: str) -> str:
    """Words of a question as the one who is asked takes them up: ``your balcony`` is ``my balcony``."""
    if text.lower() == "you":
        return "me"
    return _WORD.sub(lambda match: _BACK.get(match.group().lower(), match.group()), text)


@dataclass(slots=True)
class Record:
    """Referents of one thread. ``kin`` is a person of each speaker's life, by index."""

    matter: Matter
    topic: Topic
    narrator: int
    noun: str
    stream: Stream
    kin: dict[int, str] = field(default_factory=dict)
    named: bool = False
    """Whether the thing was named in full in this session."""
    keys: list[str] = field(default_factory=list)
    """What was dwelt on so far, in the teller's words."""
    _decks: dict[str, list[int]] = field(default_factory=dict)

    def full(self, speaker: int) -> str:
        """The thing by its full name, in the mouth of ``speaker``."""
        return f"{self._own(speaker)} {self.noun}"

    def short(self, speaker: int) -> str:
        """The thing by its head noun."""
        own = self._own(speaker)
        return f"{'the' if own == 'this' else own} {head(self.noun)}"

    def _own(self, speaker: int) -> str:
        own = self.matter.own
        return own if speaker == self.narrator or own in ("the", "this") else "your"

    def left(self, kind: str) -> int:
        """How many lines of a list were not used yet."""
        return len(self._deck(kind))

    def clause(self, kind: str) -> Sequence_ | None:
        """A clause of the matter that was not said in this session; None when all were."""
        at = self._draw(kind)
        return None if at is None else self.matter.clauses[kind][at]

    def deed(self, kind: str) -> Deed | None:
        """A plan or a hope that was not spoken of."""
        at = self._draw(kind)
        return None if at is None else self.matter.deeds[kind][at]

    def talk(self, kind: str) -> Exchange | None:
        """A question with its answers that was not asked."""
        at = self._draw(kind)
        return None if at is None else self.matter.talks[kind][at]

    def _deck(self, kind: str) -> list[int]:
        if kind not in self._decks:
            matter = self.matter
            lines = matter.clauses.get(kind) or matter.deeds.get(kind) or matter.talks[kind]
            self._decks[kind] = self.stream.shuffled(range(len(lines)))
        return self._decks[kind]

    def _draw(self, kind: str) -> int | None:
        deck = self._deck(kind)
        return deck.pop() if deck else None


def new_record(
    library: Library, topic: Topic, narrator: int, speakers: int, stream: Stream, taken: frozenset[str]
) -> Record:
    """A record on a matter of ``topic``, one that is not in ``taken`` where possible."""
    matters = [one for one in topic.matters if one.key not in taken] or list(topic.matters)
    matter = stream.pick(matters)
    scope = Scope(stream, Voice(), {}, topic.bank)
    kin = library.dialogue.rules["kin"]
    people: dict[int, str] = {}
    for speaker in range(speakers):
        people[speaker] = phrase(kin.draw(stream), scope)
    return Record(matter, topic, narrator, phrase(stream.pick(matter.nouns), scope), stream, people)

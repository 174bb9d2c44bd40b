"""Computes the features from which the abstention model decides: words of an answer and their classes, by clause.

A word of the question becomes ``Q``, a number ``NUM``, a name ``NAME``, any other word that is neither grammar nor in
``tables/word_classes.v1.txt`` ``NEW``. The other words are features as they are, and a second time as their class. So
the model sees how an answer speaks and not of what. Names of features (``reach:``, ``shape:``) are part of the stored
model.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

from memarena_dataset.values.numbers import digits_for_words
from memarena_dataset.values.word_lists import word_list
from memarena_dataset.values.words import clauses, stem, tidy, words

from memarena.judging.tables import word_classes, word_groups

LONGEST = 3
"""Words of the longest n-gram."""
_REACH = 5
"""Words after a negation that count as within its reach."""
_SHORT = 3
"""Answers of at most this many words yield each of their words as a feature."""
_NEWS = frozenset(("NEW", "NAME", "NUM", "QUOTE"))
"""Classes of words that the question does not have: new content of an answer."""
_TURNS = frozenset(("NEG", "LACK"))
"""Classes of words that negate (``not``) or speak of lacking (``unknown``, ``missing``)."""
_KEEPS = frozenset(("SECRET", "WITHHOLD", "PERMIT"))
"""Classes of words with which an answer keeps a secret: ``private``, ``can't share``, ``not allowed``."""
_MARKS = _TURNS | _KEEPS | {"ASK", "SORRY"}
"""Classes of which an answer that declines nearly always has a word."""
_SPOKEN = frozenset(("I", "YOU", "RECORD", "GUESS", "TELL", "KNOW", "FIND", "GIVE", "MAYBE"))
"""Classes of words with which an answer speaks of answering."""
_OWN_VOICE = frozenset(("I", "THERE", "RECORD"))
"""Subjects with which an answer speaks for itself: ``I don't know``, ``there is no record``."""
_SUBJECTS = frozenset(("I", "YOU", "THIRD", "Q", "NAME", "THERE", "RECORD", "NEG", "THAT", "NEW", "NUM"))
"""Classes of words that can be a clause's subject."""
_SPEAKING = frozenset(("TELL", "GIVE", "FIND", "KNOW"))
"""Classes of verbs of answering: ``tell``, ``give``, ``find``, ``know``."""
_QUESTION_WORD = re.compile(r"\b(what|when|where|who|whom|whose|which|why|how (?:much|many|long|old)|how)\b")
"""The question word: ``how much`` of "How much did the boat cost?"."""
_FOR_ANOTHER = re.compile(r"\b(?:asks?|asked|asking|wants? to know|wonder(?:s|ing)|curious|tell)\b")
"""Words of a question that is passed on for another person: "Nina wants to know when …"."""
_ATTRIBUTE_OF = {
    "when": "WHEN", "who": "WHO", "whom": "WHO", "whose": "WHO", "where": "WHERE", "why": "WHY",
    "how much": "MUCH", "how many": "MUCH",
}  # fmt: skip
"""Class of words of the attribute that a question word asks for: a time, a person, an amount …"""
_WRAPPING = re.compile(r"^\s*\{?\s*\"?(?:answer|response)\"?\s*:\s*(?=\S)|\*\*|^[#>\s]+", re.IGNORECASE | re.MULTILINE)
"""Marks around an answer that are not part of it: ``{"answer":``, ``**``, ``> ``."""
_QUOTED = re.compile(r'"([^"\n]*)"|(?<!\w)\'([^\'\n]{2,})\'(?!\w)')
"""Quoted speech: ``"I lost it"``, ``'for good'``."""
_QUOTE_MARK = "quotation"
"""The word that replaces quoted speech."""


@dataclass(frozen=True)
class QuestionWords:
    """The words of a question, and what it asks for.

    ``stems`` are those of its words without grammar; ``wh`` is the question word, ``-`` if it has none.
    """

    stems: frozenset[str]
    wh: str
    for_another: bool


@dataclass(frozen=True)
class Clause:
    """One clause of an answer."""

    text: str
    words: tuple[str, ...]
    """In lower case; a group of words that is read as a single word is joined by underscores."""
    classes: tuple[str, ...]
    """The class of each word (:func:`_class_of`)."""
    forms: tuple[str, ...]
    """The words, with ``Q``, ``NUM``, ``NAME``, ``QUOTE`` and ``NEW`` for those that are open."""

    @cached_property
    def turns(self) -> bool:
        """Whether it negates or speaks of lacking."""
        return bool(_TURNS & set(self.classes))

    @cached_property
    def news(self) -> bool:
        """Whether it has a word that the question does not have."""
        return bool(_NEWS & set(self.classes))

    @cached_property
    def subject(self) -> str:
        """Class of the first word that can be a subject."""
        return next((c for c in self.classes if c in _SUBJECTS), "-")

    @cached_property
    def shape(self) -> str:
        """A code of the clause: negation (``-``), subject, news (``n``), verb of answering (``t``), secrecy (``k``)."""
        subject = self.subject if self.subject in (*_OWN_VOICE, "Q", "NEG", "NEW", "NAME", "THIRD", "YOU") else "o"
        speaks = "t" if _SPEAKING & set(self.classes) else ""
        keeps = "k" if _KEEPS & set(self.classes) else ""
        return f"{'-' if self.turns else '+'}{subject}{'n' if self.news else ''}{speaks}{keeps}"

    @cached_property
    def declines(self) -> bool:
        """Whether it looks like declining by itself: in the answer's own voice, or about records and telling."""
        if not self.turns:
            return bool(_KEEPS & set(self.classes)) and self.subject in _OWN_VOICE
        return self.subject in _OWN_VOICE or "LACK" in self.classes or bool(_SPEAKING & set(self.classes))

    @property
    def offers(self) -> bool:
        """Whether it tells news without a negation."""
        return self.news and not self.turns


@lru_cache(maxsize=4096)
def read_question(question: str) -> QuestionWords:
    """Read a question."""
    grammar = word_list("function_words.v1.txt")
    match = _QUESTION_WORD.search(question.lower())
    stems = frozenset(stem(w) for w in words(digits_for_words(question)) if w not in grammar)
    return QuestionWords(stems, match.group(1) if match else "-", bool(_FOR_ANOTHER.search(question.lower())))


@lru_cache(maxsize=8192)
def read_clauses(answer: str, question: str, names: tuple[str, ...] = ()) -> tuple[Clause, ...]:
    """Return the clauses of an answer, their words classified with the question's words in mind.

    ``names`` are those by which the answer may address its asker: a clause of nothing else is left out.
    """
    question_words = read_question(question)
    text = _mask_quotations(_WRAPPING.sub("", digits_for_words(tidy(answer))).strip().strip("{}").strip())
    addressed = {w for name in names for w in words(name)}
    read = [_clause_of_text(clause.text, question_words) for clause in clauses(text)]
    return tuple(c for c in read if c.words and not set(c.words) <= addressed) or tuple(c for c in read if c.words)


def features_of(answer: str, question: str, names: Iterable[str] = ()) -> frozenset[str]:
    """Return the features of an answer to a question, such as ``shape:-It`` or ``reach:NEG>KNOW``.

    ``names`` are those by which the answer may address its asker: a clause of nothing else is left out.
    """
    question_words = read_question(question)
    read = read_clauses(answer, question, tuple(names))
    features: set[str] = set()
    for index, clause in enumerate(read):
        features.update(_clause_features(clause, question_words, index == 0, index == len(read) - 1))
    features.update(_answer_features(read, question_words, answer))
    return frozenset(features)


def is_unmarked(answer: str, question: str, names: Iterable[str] = ()) -> bool:
    """Whether the answer has no word of the classes that nearly every answer that declines has."""
    return not any(_MARKS & set(clause.classes) for clause in read_clauses(answer, question, tuple(names)))


def is_plain(answer: str, question: str, names: Iterable[str] = ()) -> bool:
    """Whether the answer has no word of declining, of speaker or asker, of knowing or telling."""
    return not any((_MARKS | _SPOKEN) & set(clause.classes) for clause in read_clauses(answer, question, tuple(names)))


# ------------------------------------------------------------------ reading


def _mask_quotations(text: str) -> str:
    """Return the text with one word for quoted speech, which is another person's; unless it is most of the answer."""
    quoted = max((m.group(1) or m.group(2) or "" for m in _QUOTED.finditer(text)), key=len, default="")
    return quoted if 2 * len(quoted) > len(text) else _QUOTED.sub(f" {_QUOTE_MARK} ", text)


@lru_cache(maxsize=16_384)
def _clause_of_text(text: str, question: QuestionWords) -> Clause:
    return _read_clause(
        text, question.stems & frozenset(stem(w) for w in words(text)), _ATTRIBUTE_OF.get(question.wh, "")
    )


@lru_cache(maxsize=16_384)
def _read_clause(text: str, shared: frozenset[str], attribute: str) -> Clause:
    """Return a clause with its words classified. ``shared``: stems that it has in common with the question."""
    grammar = word_list("function_words.v1.txt")
    clause_words = tuple(_join_groups(words(text)))
    capitals = {w for token in re.findall(r"(?<=\W)[A-Z][\w'-]*", text) for w in words(token)}
    classes, forms = [], []
    for word in clause_words:
        word_class = _class_of(word, shared, capitals, grammar, attribute)
        classes.append(word_class)
        forms.append(word_class if word_class in _NEWS or word_class == "Q" else word)
    return Clause(text, clause_words, tuple(classes), tuple(forms))


def _class_of(  # noqa: PLR0911 (one return for each class)
    word: str, shared: frozenset[str], capitals: set[str], grammar: frozenset[str], attribute: str
) -> str:
    """Return the class of a word; the first rule that fits decides."""
    if word == _QUOTE_MARK:
        return "QUOTE"
    if any(c.isdigit() for c in word):
        return "NUM"
    if word not in grammar and stem(word) in shared:
        return "Q"
    entry = _classes().get(word) or _classes().get(stem(word) + "~")
    if entry and entry.startswith("ATTR"):
        return "ATTR=" if entry == f"ATTR{attribute}" else "ATTR!" if attribute or entry == "ATTRSIDE" else "ATTR?"
    if entry:
        return entry
    if word in capitals and word not in grammar:
        return "NAME"
    return "G" if word in grammar else "NEW"


@cache
def _classes() -> dict[str, str]:
    """Map words to classes, and stems with a final ``~``; attributes of a thing come before other classes."""
    tables = word_classes()
    exact = {w: name for name, members in reversed(list(tables.items())) for w in members}
    stems = {stem(w) + "~": name for w, name in exact.items() if not name.startswith("ATTR")}
    wh = dict.fromkeys(tables["WH"], "WH")
    attributes = {w: n for n, members in tables.items() if n.startswith("ATTR") for w in members}
    groups = {w: name for name, members in word_groups().items() for w in members}
    return {**stems, **exact, **attributes, **wh, **groups}


@cache
def _groups() -> tuple[frozenset[str], dict[str, int]]:
    """Return the groups of words, and the number of words of the longest group by its first word."""
    groups = frozenset(w for members in word_groups().values() for w in members)
    longest: dict[str, int] = {}
    for group in groups:
        first = group.split("_")[0]
        longest[first] = max(longest.get(first, 0), group.count("_") + 1)
    return groups, longest


def _join_groups(spoken: list[str]) -> Iterator[str]:
    """Yield the words, with each group joined by underscores; the longest group is preferred."""
    groups, longest = _groups()
    start = 0
    while start < len(spoken):
        width = 1
        if spoken[start] in longest:
            width = next(
                (n for n in range(longest[spoken[start]], 1, -1) if "_".join(spoken[start : start + n]) in groups), 1
            )
        yield "_".join(spoken[start : start + width])
        start += width


# ------------------------------------------------------------------ features


@lru_cache(maxsize=8192)
def _clause_features(clause: Clause, question: QuestionWords, first: bool, last: bool) -> frozenset[str]:
    # Answers to a question share most of their clauses.
    return frozenset(_iter_clause_features(clause, question, first=first, last=last))


def _iter_clause_features(clause: Clause, question: QuestionWords, *, first: bool, last: bool) -> Iterator[str]:
    """Yield the features of a clause; ``first`` and ``last`` are its position in the answer."""
    classes, shape = clause.classes, clause.shape
    turn = next((i for i, c in enumerate(classes) if c in _TURNS), None)
    yield from word_ngrams(clause.forms)
    yield from (f"stem:{stem(w)}" for w, f in zip(clause.words, clause.forms, strict=True) if w == f)
    yield from word_ngrams(classes, mark="c:")
    for index, word_class in enumerate(classes):
        if word_class in _TURNS or word_class in _KEEPS:
            yield from (f"reach:{word_class}>{following}" for following in classes[index + 1 : index + 1 + _REACH])
    yield f"place:{'F' if first else ''}{'L' if last else ''}:{shape}"
    yield f"shape:{shape}"
    yield f"asked:{question.wh}:{shape}"
    yield f"fits:{question.wh}:{'NUM' in classes}:{'NAME' in classes}:{clause.turns}"
    yield f"another:{question.for_another}:{shape}"
    yield f"news:{min(sum(c in _NEWS for c in classes), 3)}:{clause.turns}"
    yield f"long:{min(len(classes).bit_length(), 5)}:{clause.turns}"
    if turn is not None:
        class_set = set(classes)
        object_ = "".join(
            mark for mark, c in (("Q", "Q"), ("A", "ATTR="), ("S", "ATTR!"), ("W", "WH")) if c in class_set
        )
        yield f"object:{object_}:{clause.news}:{clause.declines}"
        yield from (f"turned:{question.wh}:{w}" for w, c in zip(clause.words, classes, strict=True) if c in _TURNS)
        wh = [w for w, c in zip(clause.words, classes, strict=True) if c == "WH"]
        if wh:
            yield f"wh:{question.wh.startswith(wh[0])}"
    if first:
        yield f"opens:{question.wh}:{clause.forms[0]}"
        yield f"opens:{question.for_another}:{clause.forms[0]}"


def _answer_features(read: tuple[Clause, ...], question: QuestionWords, answer: str) -> Iterator[str]:
    """Yield features of how the clauses follow each other, and of the answer's length and end."""
    shapes = ("^", *(clause.shape for clause in read), "$")
    yield from (f"next:{a}>{b}" for a, b in itertools.pairwise(shapes))
    offers = [i for i, clause in enumerate(read) if clause.offers]
    declines = [i for i, clause in enumerate(read) if clause.declines]
    if declines:
        offers_after = [i for i in offers if i > declines[-1]]
        but = any(read[i].classes[0] == "CONTRAST" for i in offers_after)
        state = f"{bool([i for i in offers if i < declines[0]])}:{bool(offers_after)}:{but}"
        yield f"stand:{state}"
        yield f"stand:{state}:{read[declines[-1]].shape}"
        yield f"stand:{question.wh}:{state}"
    else:
        yield f"plain:{bool(offers)}"
        yield f"plain:{question.wh}:{bool(offers)}:{min(len(read), 3)}"
    answer_words = [w for clause in read for w in clause.words]
    if len(answer_words) <= _SHORT:
        yield from (f"short:{word}" for word in answer_words)
    yield f"clauses:{min(len(read), 5)}"
    if not any(_MARKS & set(clause.classes) for clause in read):
        yield f"unmarked:{bool(offers)}:{min(len(answer_words) // 4, 4)}"
    if answer.rstrip().endswith("?"):
        yield "asks"


def word_ngrams(tokens: Sequence[str], *, longest: int = LONGEST, mark: str = "") -> Iterator[str]:
    """Yield every run of 1 to ``longest`` tokens between ``^`` and ``$``, joined by blanks, prefixed with ``mark``."""
    yield from (mark + token for token in tokens)
    framed = ("^", *tokens, "$")
    for width in range(2, longest + 1):
        for start in range(len(framed) - width + 1):
            yield mark + " ".join(framed[start : start + width])

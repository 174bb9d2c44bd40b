"""How questions and answers are read for their stance: clauses of words, each with what it does.

Word classes stand in ``lexicons/stance_words.v1.txt``, groups of words that are one in ``stance_phrases.v1.txt``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from memarena.text.lexicon import table, word_list
from memarena.text.mentions import Kind
from memarena.text.reading import read_text
from memarena.text.words import clauses, content_words, stem, tidy, words

_CLASSES = "stance_words.v1.txt"
_PHRASES = "stance_phrases.v1.txt"
_IRREGULAR = "irregular_forms.v1.txt"
_CURB = 8
"""Words of the longest opening clause of asking (``what she paid, …``) that is read as one with the clause behind."""
_QUOTED = re.compile(r'"[^"\n]*"|(?<!\w)\'[^\'\n]{2,}\'(?!\w)')
_WRAPPING = re.compile(r"^\s*\{?\s*\"?(?:answer|response)\"?\s*:\s*(?=\S)|\*\*", re.IGNORECASE)
_ASKING = re.compile(
    r"(?:and |but |as for )?(?:what|when|where|who|whom|which|why|how|whether|as for|regarding)\b", re.IGNORECASE
)
_COURTESY = re.compile(
    r"^\W*(?:and |or |but )?(?:is there (?:anything|something) (?:else|more)|would you like|"
    r"do you (?:want|need)|can i help|could you (?:tell|share|give|provide|clarify)|shall i|want me|let me know|"
    r"if you (?:can|could|have|tell|need|want|give|share|let|know|would|like)|thanks|thank you|"
    r"(?:i )?hope (?:this|that|it) helps|feel free|do(?: not|n't) hesitate|"
    r"i(?:'d| would|'ll| will) be (?:happy|glad)|happy to help|good question|please let me|sorry about that)\b",
    re.IGNORECASE,
)
_ASKS = re.compile(r"\b(what|when|where|who|whom|whose|which|why|how (?:much|many|long|old)|how)\b")
_ASKS_WORDS = re.compile(
    r"\b(?:say|said|tell|told|answer|advice|feel|afraid|learn|realize|mean|happen|note|secret|opinion|think)"
)
_ASKS_QUOTATION = re.compile(
    r"\b(?:say|said|tell|told|answer|advice|suggest|whisper|write|wrote|note|letter|text|message|excuse|reply|replied|"
    r"song|title|film|movie|book|novel|play|show|series|game|called|name|nickname|motto|slogan|password|shout|promise)"
)
_FOCUS = re.compile(
    r"\b(?:what|which|whose|how many|how much)(?:'s| is| was| are| were)? (?P<noun>(?:(?!(?:is|was|are|were|do|does|"
    r"did|has|have|had|can|could|will|would|should|of|in|on|at|for|to|from|with|about|that|by|when|after|before)\b)"
    r"[\w'-]+ ?)+)"
)
_FOR_ANOTHER = re.compile(
    r"\b(?:asks?|asked|asking|wants? to know|would like|wonders?|wondering|curious|nosy|here\b|it's|"
    r"this is|tell h(?:im|er))|^\w+: "
)
_OF_TELLING = re.compile(
    r"\b(?:(?:did|do|have|has|can|may|should|could) (?:you|i|we)|tell|told|said?|share|show|give)\b"
)
_KINDS: tuple[tuple[str, frozenset[Kind]], ...] = (
    (r"\bwhat time\b|\bat what hour\b", frozenset({"time"})),
    (r"\bwhen\b|\b(?:what|which) (?:date|day|month|year|week|weekday)\b", frozenset({"date", "weekday", "time"})),
    (r"\bhow long\b|\bduration\b", frozenset({"duration"})),
    (
        r"\bhow (?:much|many|old|far|tall|big|often)\b|\b(?:costs?|prices?|number|amount|salary|pin|codes?)\b",
        frozenset({"amount", "duration"}),
    ),
)
"""What kind of value a question asks for, by its words; the first that matches decides."""
_NO_WORD = "-"
"""Stands for a noun that is asked for and that a clause does not have."""
_NO_NAME = re.compile(r"\w+ly$|un\w+|\w+able$")
TURNING = frozenset(("NEG", "LACK"))
WH_WORDS = frozenset(("what", "when", "where", "who", "whom", "which", "why", "how"))


# ------------------------------------------------------------------ questions


@dataclass(frozen=True)
class Asked:
    """What a question already says and what it asks for."""

    stems: frozenset[str]
    """Of its content words, irregular forms under their base too."""
    kinds: frozenset[Kind]
    wh: str
    """``when``, ``how_many`` …; ``yn`` where it asks none of them."""
    sort: str
    """A coarser sort: why, say (asks for words or feelings), yn, how_many, which, who, or x."""
    words: bool = False
    """Whether what somebody said or a title is asked for, so that a quotation is the answer itself."""
    names: frozenset[str] = frozenset()
    """Words of the names by which an answer may address its asker."""
    focus: str = ""
    """The stem of the noun that is asked for (``breed`` in ``What breed is the dog?``), empty where none is named."""
    asker: str = ""
    """How it is asked: ``t`` for somebody else or by name, ``d`` where it speaks of doing or telling."""


def beside(asked: Asked, clause: Clause) -> Asked:
    """What of a question bears on one clause: the same for all questions that share no word with it and ask alike."""
    focus = asked.focus if not asked.focus or asked.focus in clause.stems else _NO_WORD
    return Asked(asked.stems & clause.stems, asked.kinds, asked.wh, asked.sort, focus=focus, asker=asked.asker)


@lru_cache(maxsize=4096)
def read_question(question: str, names: tuple[str, ...] = ()) -> Asked:
    """Read a question; ``names`` are those by which an answer may address its asker."""
    lowered = question.lower()
    grammar = word_list("function_words.v1.txt")
    stems = frozenset(content_words(question)) | {_base(w) for w in words(question) if w not in grammar}
    kinds = next((kinds for pattern, kinds in _KINDS if re.search(pattern, lowered)), frozenset[Kind]())
    found = _ASKS.search(lowered)
    wh = found.group(1).replace(" ", "_") if found else "yn"
    if "why" in lowered or "reason" in lowered:
        sort = "why"
    elif _ASKS_WORDS.search(lowered):
        sort = "say"
    else:
        sort = wh if wh in ("yn", "how_many", "which", "who") else "x"
    quotes = bool(_ASKS_QUOTATION.search(lowered))
    noun = _FOCUS.search(lowered)
    focus = stem(words(noun["noun"])[-1]) if noun and words(noun["noun"]) else ""
    asker = ("t" if _FOR_ANOTHER.search(lowered) else "") + ("d" if _OF_TELLING.search(lowered) else "")
    named = frozenset(w for name in names for w in words(name))
    return Asked(stems, kinds, wh, sort, quotes, named, focus, asker)


# ------------------------------------------------------------------ clauses


@dataclass(frozen=True)
class Said:
    """A word with what it does, whatever was asked."""

    word: str
    stem: str
    base: str
    role: str
    """Its class; NUM, NAME, QUOTE, ATTR…; G for mere grammar; NEW for all else."""
    grammar: bool


@dataclass(frozen=True, eq=False)
class Clause:
    """A clause and its words. Compared by identity: it is a key in caches."""

    text: str
    end: str
    """The mark behind it: ``:`` and ``?`` make it a heading of what follows."""
    said: tuple[Said, ...]
    kinds: frozenset[Kind]
    stems: frozenset[str]
    """Of its words, irregular forms under their base too."""


@lru_cache(maxsize=8192)
def read_clauses(answer: str, words_asked: bool) -> tuple[Clause, ...]:
    # Answers come round again: those of a baseline for every question, short ones for every cell.
    body = _unquoted(tidy(answer), words_asked=words_asked)
    found = [c.text for c in clauses(body)]
    kept = _joined([c for c in found if not _COURTESY.match(c)] or found, body)
    return tuple(_read_clause(clause, _end(clause, body)) for clause in kept)


def _end(clause: str, body: str) -> str:
    at = body.find(clause)
    mark = body[at + len(clause) : at + len(clause) + 1] if at >= 0 else ""
    return mark if mark in (":", "?") else ""


def _joined(found: list[str], body: str) -> list[str]:
    """Clauses, with a leading clause of asking joined to the one that turns it (``What it cost, I can't say``)."""
    joined: list[str] = []
    for clause in found:
        ahead = joined[-1] if joined else ""
        leads = bool(ahead) and _ASKING.match(ahead) and len(words(ahead)) <= _CURB and f"{ahead}," in body
        if leads and _turns(clause) and not _turns(ahead) and words(clause)[0] != "not":
            joined[-1] += f" {clause}"
        else:
            joined.append(clause)
    return joined


def _turns(clause: str) -> bool:
    return any(_class_of(w) in TURNING for w in words(clause))


@lru_cache(maxsize=16_384)
def _read_clause(text: str, end: str = "") -> Clause:
    read = read_text(text)
    spoken = _phrased(words(text))
    typed = {w for m in read.mentions if m.kind != "proper" for w in words(read.text[m.start : m.end])}
    names: set[str] = set()
    for mention in read.of_kind("proper"):
        name = read.text[mention.start : mention.end]
        # A first word with a capital is no name for that alone, unless it is all that is said.
        opens = mention.start == 0 and " " not in name
        if not opens or (len(spoken) == 1 and not _NO_NAME.match(spoken[0])):
            names |= {stem(w) for w in words(name)}
    said = tuple(Said(w, stem(w), _base(w), _role(w, typed, names), w in _grammar()) for w in spoken)
    stems = frozenset(form for s in said for form in (s.stem, s.base))
    return Clause(text, end, said, frozenset(m.kind for m in read.mentions if m.kind != "proper"), stems)


def _phrased(spoken: list[str]) -> list[str]:
    """The words with those groups that are read as one joined by underscores; the longest group first."""
    known, longest = _phrases()
    joined: list[str] = []
    at = 0
    while at < len(spoken):
        width = next((n for n in range(longest, 1, -1) if "_".join(spoken[at : at + n]) in known), 1)
        joined.append("_".join(spoken[at : at + width]))
        at += width
    return joined


@cache
def _phrases() -> tuple[dict[str, str], int]:
    known = {phrase: name for name, members in table(_PHRASES).items() for phrase in members}
    return known, max(phrase.count("_") + 1 for phrase in known)


def _role(word: str, typed: set[str], names: set[str]) -> str:
    if word in typed or any(c.isdigit() for c in word):
        return "NUM"
    if word == "quotation":
        return "QUOTE"
    found = _class_of(word)
    if stem(word) in names and found is None:
        return "NAME"
    attribute = _attributes().get(word)
    if attribute is not None and word not in WH_WORDS:
        return attribute
    return found or ("G" if word in _grammar() else "NEW")


# ------------------------------------------------------------------ words


def _unquoted(text: str, *, words_asked: bool) -> str:
    """Quoted speech is somebody else's: blanked, unless it is most of the answer and no words are asked for."""
    stripped = _WRAPPING.sub("", text).strip().strip("{}").strip()
    if _WRAPPING.match(text) and _QUOTED.fullmatch(stripped):
        # The value of an object, not somebody's words.
        return stripped[1:-1]
    if not words_asked:
        held = max((m.group()[1:-1] for m in _QUOTED.finditer(stripped)), key=len, default="")
        if 2 * len(held) > len(stripped):
            return held
    return _QUOTED.sub(" quotation ", stripped)


@lru_cache(maxsize=16_384)
def _class_of(word: str) -> str | None:
    exact, stems = _class_tables()
    if "_" in word:
        return _phrases()[0].get(word)
    return exact.get(word) or stems.get(stem(word))


@cache
def _class_tables() -> tuple[dict[str, str], dict[str, str]]:
    exact: dict[str, str] = {}
    stems: dict[str, str] = {}
    for name, members in table(_CLASSES).items():
        if not name.startswith("ATTR"):
            for word in members:
                exact.setdefault(word, name)
    for word, name in exact.items():
        stems.setdefault(stem(word), name)
    return exact, stems


@cache
def _attributes() -> dict[str, str]:
    rows = ((w, name) for name, members in table(_CLASSES).items() if name.startswith("ATTR") for w in members)
    return dict(rows)


@lru_cache(maxsize=16_384)
def _base(word: str) -> str:
    return stem(_irregular().get(word, word))


@cache
def _irregular() -> dict[str, str]:
    return {form: base for base, forms in table(_IRREGULAR).items() for form in forms}


@cache
def _grammar() -> frozenset[str]:
    return word_list("function_words.v1.txt")

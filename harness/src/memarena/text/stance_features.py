"""What can be seen in an answer that tells whether it declines: the features over which the weights are learned.

Each clause is reduced to what its words do: words of the question, values that the question does not have, words of
negation, knowing, telling, keeping (``lexicons/stance_words.v1.txt``) and words of no class, which are news. Features
are names of what stands there alone, side by side and in the scope of a negation, of the shape of each clause, and of
how a clause that declines stands to those that tell something. A feature's name says what was seen.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
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
_REACH = 5
"""So many words behind a negation are taken to be in its reach."""
_SHORT = 3
"""Answers of so few words are also seen whole."""

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
_OWN_ATTRIBUTE = {
    "when": "ATTRWHEN",
    "who": "ATTRWHO",
    "whom": "ATTRWHO",
    "whose": "ATTRWHO",
    "where": "ATTRWHERE",
    "why": "ATTRWHY",
    "how_much": "ATTRMUCH",
    "how_many": "ATTRMUCH",
}
_NO_NAME = re.compile(r"\w+ly$|un\w+|\w+able$")
_TURNING = frozenset(("NEG", "LACK"))
_HOLDING = frozenset(("SECRET", "WITHHOLD", "PERMIT"))
_MARKS = frozenset(("NEG", "LACK", "SECRET", "WITHHOLD", "PERMIT", "ASK", "GUESS", "WISH", "SORRY"))
"""Classes of which an answer that declines nearly always has a word."""
_NEWS = frozenset(("NEW", "NAME", "NUM"))
_OTHERS = frozenset(("THIRD", "Q", "NAME"))
_TELLING = frozenset(("TELL", "GIVE", "FIND", "KNOW"))
_VERBS = frozenset(("BE", "DO", "MODAL", "TELL", "GIVE", "FIND", "KNOW", "GUESS", "I", "THIRD"))
_SUBJECTS = frozenset(("I", "YOU", "THIRD", "Q", "NAME", "THERE", "RECORD", "NEG", "THAT", "NEW"))
_SUBJECT_LETTER = {"I": "i", "THERE": "h", "RECORD": "c", "THIRD": "p", "Q": "q", "NAME": "p", "NEG": "0", "YOU": "y"}
_WH_WORDS = frozenset(("what", "when", "where", "who", "whom", "which", "why", "how"))


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
    return Asked(stems, kinds, wh, sort, quotes, frozenset(w for name in names for w in words(name)))


# ------------------------------------------------------------------ clauses


@dataclass(frozen=True)
class _Said:
    """A word with what it does, whatever was asked."""

    word: str
    stem: str
    base: str
    role: str
    """Its class; NUM, NAME, QUOTE, ATTR…; G for mere grammar; NEW for all else."""
    grammar: bool


@dataclass(frozen=True)
class _Clause:
    text: str
    end: str
    """The mark behind it: ``:`` and ``?`` make it a heading of what follows."""
    said: tuple[_Said, ...]
    kinds: frozenset[Kind]


@dataclass
class Seen:
    """The features of one clause, beside its text."""

    clause: str
    features: list[str]
    shape: str = ""
    turns: bool = False
    """Whether it negates or speaks of lacking."""
    declines: bool = False
    """Whether it looks like declining by itself."""
    aside: bool = False
    """Whether what it declines looks like something else than what was asked for."""
    offers: bool = False
    """Whether it tells news without a negation."""
    marked: bool = False
    """Whether it has a word as answers that decline have them."""


@dataclass
class Sight:
    """All features of an answer: those of each clause and those of the whole."""

    clauses: list[Seen] = field(default_factory=list)
    whole: list[str] = field(default_factory=list)

    def features(self) -> list[str]:
        """Every feature once."""
        return list(dict.fromkeys(f for part in (*(c.features for c in self.clauses), self.whole) for f in part))


def see(answer: str, question: str = "", names: Iterable[str] = ()) -> Sight:
    """The features of an answer to a question."""
    asked = read_question(question, tuple(names))
    sight = Sight()
    read = _clauses(answer, asked.words)
    kept = [c for c in read if not {s.word for s in c.said} <= asked.names] or list(read)
    last = len(kept) - 1
    for position, clause in enumerate(kept):
        sight.clauses.append(_see(clause, asked, position, last))
    sight.whole = _see_whole(sight.clauses, asked, answer, [s.word for c in kept for s in c.said])
    return sight


@lru_cache(maxsize=8192)
def _clauses(answer: str, words_asked: bool) -> tuple[_Clause, ...]:
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
    return any(_class_of(w) in _TURNING for w in words(clause))


@lru_cache(maxsize=16_384)
def _read_clause(text: str, end: str = "") -> _Clause:
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
    said = tuple(_Said(w, stem(w), _base(w), _role(w, typed, names), w in _grammar()) for w in spoken)
    return _Clause(text, end, said, frozenset(m.kind for m in read.mentions if m.kind != "proper"))


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
    if attribute is not None and word not in _WH_WORDS:
        return attribute
    return found or ("G" if word in _grammar() else "NEW")


def _see(clause: _Clause, asked: Asked, position: int, last: int) -> Seen:
    tokens = [_token(said, asked) for said in clause.said]
    seen = Seen(clause.text, [])
    out = seen.features
    turn = next((i for i, t in enumerate(tokens) if t in _TURNING), None)
    seen.turns = turn is not None
    seen.marked = bool(_MARKS & set(tokens))
    neg = "neg" if seen.turns else "pos"
    news = [i for i, t in enumerate(tokens) if t in _NEWS]
    out += _word_features(clause, tokens)
    out += [f"n:{'reach' if turn is not None and i > turn else 'free'}:{tokens[i]}" for i in news]
    fits = _fits(clause, asked)
    named = "NAME" in tokens
    wh = [s.word for s in clause.said if s.word in _WH_WORDS]
    subject = next((t for t in tokens if t in _SUBJECTS), "-")
    kept = bool(_HOLDING & set(tokens))
    out.append(f"nn:{min(len(news), 3)}:{neg}")
    out.append(f"open:{tokens[0]}:{neg}:{bool(news)}")
    out.append(f"kind:{fits}:{neg}")
    if asked.wh in ("who", "whom", "whose"):
        out.append(f"whoname:{named}:{neg}")
    if wh and seen.turns:
        out.append("wh:same" if asked.wh.startswith(wh[0]) else "wh:other")
    if seen.turns:
        marks = ("Q" in tokens, bool(news), "THAT" in tokens, "SIDE" in tokens)
        out.append("object:" + "".join(m if there else "-" for m, there in zip("QNTS", marks, strict=True)))
    speaks = bool(_TELLING - {"KNOW"} & set(tokens))
    out.append(f"subj:{subject}:{neg}:{bool(news)}:{'KNOW' in tokens}:{speaks}")
    out.append(f"subjkeep:{subject}:{neg}:{kept}")
    _shape(seen, tokens, turn, subject, fits=fits, kept=kept)
    seen.shape += clause.end
    if clause.end:
        out.append(f"end:{clause.end}:{neg}:{bool(news)}:{position == last}")
    _stand(seen, tokens, turn, subject, wh, asked)
    own = subject in ("I", "THERE", "RECORD")
    place = ("F" if position == 0 else "") + ("L" if position == last else "") or "M"
    out.append(f"pos:{place}:{neg}:{bool(news)}:{own}")
    if tokens[0] == "CONTRAST":
        out.append(f"but:{neg}:{bool(news)}:{own}:{subject}")
    if not seen.turns and news and tokens.count("Q") > 1:
        out.append(f"repeats:{asked.wh}")
    return seen


def _token(said: _Said, asked: Asked) -> str:
    """What a word does in an answer to this question."""
    if said.role in ("NUM", "QUOTE"):
        return said.role
    if not said.grammar and (said.stem in asked.stems or said.base in asked.stems):
        return "Q"
    if said.role.startswith("ATTR"):
        own = _OWN_ATTRIBUTE.get(asked.wh)
        if own is None:
            return "ATTR!" if said.role == "ATTRSIDE" else "ATTR?"
        return "ATTR=" if said.role == own else "ATTR!"
    return said.role


def _word_features(clause: _Clause, tokens: list[str]) -> list[str]:
    """What stands there alone, in pairs, and within reach of a word that turns or withholds."""
    open_ = frozenset(("Q", "NAME", "NUM", "QUOTE", "NEW"))
    forms = ["^", *(t if t in open_ else s.word for s, t in zip(clause.said, tokens, strict=True)), "$"]
    framed = ["^", *tokens, "$"]
    out = [f"u:{t}" for t in tokens]
    out += [f"w:{s.stem}" for s, t in zip(clause.said, tokens, strict=True) if t not in ("Q", "NAME", "NUM", "QUOTE")]
    out += [f"b:{a}_{b}" for a, b in itertools.pairwise(framed)]
    out += [f"v:{a}_{b}" for a, b in itertools.pairwise(forms)]
    for i, token in enumerate(tokens):
        if token in _TURNING or token in _HOLDING:
            out += [f"s:{token}>{behind}" for behind in tokens[i + 1 : i + 1 + _REACH]]
    return out


def _fits(clause: _Clause, asked: Asked) -> str:
    """Whether the clause holds a value of the kind asked for; ``-`` where no kind can be told."""
    return str(bool(clause.kinds & asked.kinds)) if asked.kinds else "-"


def _shape(seen: Seen, tokens: list[str], turn: int | None, subject: str, *, fits: str, kept: bool) -> None:
    """A letter or two for what kind of clause it is, by who is its subject and what is negated."""
    news = bool(_NEWS & set(tokens))
    if turn is None:
        tells = "n" if news or "QUOTE" in tokens else "e"
        shape = tells + ("" if _VERBS & set(tokens) else "f") + ("k" if fits == "True" else "")
    else:
        other = next((i for i, t in enumerate(tokens) if t in _OTHERS), None)
        tell = [i for i, t in enumerate(tokens) if t == "TELL"]
        if tell and other is not None and other < tell[0] < turn:
            who = "r"
        elif tell and other is not None and other < turn < tell[-1]:
            who = "t"
        else:
            who = _SUBJECT_LETTER.get(subject, "o")
        shape = f"N{who}" + ("n" if news else "")
    seen.shape = shape + ("s" if kept else "")


def _stand(seen: Seen, tokens: list[str], turn: int | None, subject: str, wh: list[str], asked: Asked) -> None:
    """Whether it declines by itself, and what; or tells something."""
    there = set(tokens)
    if turn is None:
        seen.offers = bool(_NEWS & there) or "QUOTE" in there
        return
    if seen.shape.startswith("Nr"):
        return
    spoken = bool(_TELLING & set(tokens[turn + 1 :])) or (not _OTHERS & there and bool(_TELLING & there))
    bare = subject in ("NEG", "YOU") and not _NEWS & there
    if bare or subject in ("I", "THERE", "RECORD") or seen.shape.startswith("Nt") or "LACK" in there or spoken:
        main = bool({"Q", "ATTR="} & there) or any(asked.wh.startswith(w) for w in wh)
        other = any(not asked.wh.startswith(w) and w != "how" for w in wh)
        side = other or bool({"ATTR!", "SIDE", "NEW", "NAME"} & there)
        seen.declines = True
        seen.aside = side and not main
        seen.features.append(f"declines:{'m' if main else ''}{'s' if side else ''}")


def _see_whole(seen: list[Seen], asked: Asked, answer: str, spoken: list[str]) -> list[str]:
    """How the clauses stand to each other."""
    out = []
    shapes = ["^", *(c.shape for c in seen), "$"]
    out += [f"sh:{a}>{b}" for a, b in itertools.pairwise(shapes)]
    out += [f"sq:{c.shape}:{asked.sort}" for c in seen]
    if seen:
        out.append(f"first:{seen[0].shape}:{asked.wh}")
    offers = [i for i, c in enumerate(seen) if c.offers]
    declines = [i for i, c in enumerate(seen) if c.declines]
    if declines:
        at = declines[-1]
        object_ = next(f for f in seen[at].features if f.startswith("declines:"))
        before, behind = [i for i in offers if i < at], [i for i in offers if i > at]
        turned = any("but:" in f for i in behind for f in seen[i].features)
        state = f"{bool(before)}{'0' if 0 in before else ''}:{bool(behind)}{'b' if turned else ''}"
        opening = seen[0].shape if seen[0].shape.startswith("n") else "-"
        out += [f"relfirst:{opening}:{object_}:{state}", f"relfirst:{opening}:{seen[at].shape}:{at == len(seen) - 1}"]
        out += [f"rel:{object_}:{state}", f"rel:{state}", f"rel:{asked.wh}:{object_}:{state}"]
    else:
        out += [f"rel:none:{bool(offers)}", f"rel:none:{bool(offers)}:{asked.sort}"]
    if len(spoken) <= _SHORT:
        out += [f for w in spoken for f in (f"short:{w}", f"short:{asked.wh}:{w}")]
    out.append(f"clauses:{min(len(seen), 5)}")
    if not any(c.marked for c in seen):
        out.append(f"unmarked:{bool(offers)}")
    if '"' in answer:
        out.append("quotes")
    if answer.rstrip().endswith("?"):
        out.append("asks")
    return out


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

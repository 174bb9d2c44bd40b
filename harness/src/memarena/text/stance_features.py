"""What can be seen in an answer that tells whether it declines: the features over which the weights are learned.

Each clause is reduced to what its words do: words of the question, values that the question does not have, words of
negation, knowing, telling, keeping (``lexicons/stance_words.v1.txt``) and words of no class, which are news. Features
are names of what stands there alone, side by side and in the scope of a negation, of the shape of each clause, and of
how a clause that declines stands to those that tell something. A feature's name says what was seen.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from memarena.text.stance_reading import TURNING, WH_WORDS, Asked, Clause, Said, beside, read_clauses, read_question

_REACH = 5
"""So many words behind a negation are taken to be in its reach."""
_SHORT = 3
"""Answers of so few words are also seen whole."""

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
_HOLDING = frozenset(("SECRET", "WITHHOLD", "PERMIT"))
_MARKS = frozenset(("NEG", "LACK", "SECRET", "WITHHOLD", "PERMIT", "ASK", "GUESS", "WISH", "SORRY"))
"""Classes of which an answer that declines nearly always has a word."""
_NEWS = frozenset(("NEW", "NAME", "NUM"))
_OTHERS = frozenset(("THIRD", "Q", "NAME"))
_TELLING = frozenset(("TELL", "GIVE", "FIND", "KNOW"))
_VERBS = frozenset(("BE", "DO", "MODAL", "TELL", "GIVE", "FIND", "KNOW", "GUESS", "I", "THIRD"))
_SUBJECTS = frozenset(("I", "YOU", "THIRD", "Q", "NAME", "THERE", "RECORD", "NEG", "THAT", "NEW"))
_SIGNS = ("\u2014", "...", "\u2026", "null", "n/a", "N/A", "{", "[", "??", "!", ";)", "[]", ": -")
"""Signs and values of nothing that no word tells."""
_SUBJECT_LETTER = {"I": "i", "THERE": "h", "RECORD": "c", "THIRD": "p", "Q": "q", "NAME": "p", "NEG": "0", "YOU": "y"}


@dataclass(eq=False)
class Seen:
    """The features of one clause, beside its text. Answers share it: nobody changes it once it is made."""

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
    read = read_clauses(answer, asked.words)
    kept = [c for c in read if not {s.word for s in c.said} <= asked.names] or list(read)
    last = len(kept) - 1
    sight.clauses = [_see(c, beside(asked, c), first=at == 0, last=at == last) for at, c in enumerate(kept)]
    sight.whole = _see_whole(sight.clauses, asked, answer, [s.word for c in kept for s in c.said])
    return sight


@lru_cache(maxsize=4096)
def _see(clause: Clause, asked: Asked, *, first: bool, last: bool) -> Seen:
    # Readers, seeds and questions share clauses, above all those that decline.
    tokens = [_token(said, asked) for said in clause.said]
    seen = Seen(clause.text, [])
    out = seen.features
    turn = next((i for i, t in enumerate(tokens) if t in TURNING), None)
    seen.turns = turn is not None
    seen.marked = bool(_MARKS & set(tokens))
    neg = "neg" if seen.turns else "pos"
    news = [i for i, t in enumerate(tokens) if t in _NEWS]
    out += _word_features(clause, tokens)
    out += [f"n:{'reach' if turn is not None and i > turn else 'free'}:{tokens[i]}" for i in news]
    fits = _fits(clause, asked)
    named = "NAME" in tokens
    wh = [s.word for s in clause.said if s.word in WH_WORDS]
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
        out.append(f"end:{clause.end}:{neg}:{bool(news)}:{last}")
    _stand(seen, tokens, turn, subject, wh, asked)
    own = subject in ("I", "THERE", "RECORD")
    place = ("F" if first else "") + ("L" if last else "") or "M"
    out.append(f"pos:{place}:{neg}:{bool(news)}:{own}")
    if tokens[0] == "CONTRAST":
        out.append(f"but:{neg}:{bool(news)}:{own}:{subject}")
    _asked_for(seen, clause, tokens, turn, asked, first=first)
    if not seen.turns and news and tokens.count("Q") > 1:
        out.append(f"repeats:{asked.wh}")
    return seen


def _asked_for(seen: Seen, clause: Clause, tokens: list[str], turn: int | None, asked: Asked, *, first: bool) -> None:
    """Features of the clause beside what the question asks for, and how."""
    out = seen.features
    neg = "neg" if seen.turns else "pos"
    opens = clause.said[0].word if tokens[0] not in ("Q", "NAME", "NUM", "QUOTE", "NEW") else tokens[0]
    if first:
        out += [f"opens:{asked.wh}:{opens}", f"opens:{asked.asker}:{opens}", f"opens:{asked.sort}:{seen.shape}"]
    out += [f"for:{asked.asker}:{t}" for t in dict.fromkeys(tokens) if t in _MARKS]
    out += [f"for:{asked.asker}:{seen.shape}", f"wh:{asked.wh}:{seen.shape}"]
    out += [f"whneg:{asked.wh}:{s.word}" for s, t in zip(clause.said, tokens, strict=True) if t in TURNING]
    out.append(f"long:{min(len(tokens).bit_length(), 5)}:{neg}")
    if asked.focus:
        at = next((i for i, s in enumerate(clause.said) if asked.focus in (s.stem, s.base)), None)
        if at is None:
            out.append(f"focus:no:{seen.shape}")
        else:
            place = "-" if turn is None else "b" if at < turn else "a"
            out += [f"focus:{place}:{bool(_NEWS & set(tokens))}", f"focus:{place}:{seen.shape}"]
    if not seen.turns:
        return
    of = {t for t in tokens if t in ("Q", "NEW", "NAME", "NUM") or t.startswith("ATTR")}
    out.append("of:" + "+".join(sorted(of)))


def _token(said: Said, asked: Asked) -> str:
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


def _word_features(clause: Clause, tokens: list[str]) -> list[str]:
    """What stands there alone, in pairs, and within reach of a word that turns or withholds."""
    open_ = frozenset(("Q", "NAME", "NUM", "QUOTE", "NEW"))
    forms = ["^", *(t if t in open_ else s.word for s, t in zip(clause.said, tokens, strict=True)), "$"]
    framed = ["^", *tokens, "$"]
    out = [f"u:{t}" for t in tokens]
    out += [f"w:{s.stem}" for s, t in zip(clause.said, tokens, strict=True) if t not in ("Q", "NAME", "NUM", "QUOTE")]
    out += [f"b:{a}_{b}" for a, b in itertools.pairwise(framed)]
    out += [f"v:{a}_{b}" for a, b in itertools.pairwise(forms)]
    out += [f"t:{a}_{b}_{c}" for a, b, c in zip(framed, framed[1:], framed[2:], strict=False)]
    out += [f"x:{a}_{b}_{c}" for a, b, c in zip(forms, forms[1:], forms[2:], strict=False)]
    for i, token in enumerate(tokens):
        if token in TURNING or token in _HOLDING:
            out += [f"s:{token}>{behind}" for behind in tokens[i + 1 : i + 1 + _REACH]]
    return out


def _fits(clause: Clause, asked: Asked) -> str:
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
        out.append(f"unmarked:{asked.asker}:{bool(offers)}:{min(len(seen), 3)}:{min(len(spoken) // 4, 4)}")
    out += [f"mark:{m}" for m in _SIGNS if m in answer]
    if '"' in answer:
        out.append("quotes")
    if answer.rstrip().endswith("?"):
        out.append("asks")
    return out

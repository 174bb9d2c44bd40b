"""Defines the rules of the grammar: each reads a clause as a wish, or returns None and leaves it to the next rule.

Their patterns are in ``english.toml``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from memarena_backend_gated.audience import NameOf, read_audience
from memarena_backend_gated.english import pattern, patterns, piece
from memarena_backend_gated.records import CERTAIN, DOUBTFUL, PROBABLE, Audience, Effect, Wish
from memarena_backend_gated.text import identifying_tokens

_ALL = Audience(everyone=True)
_TAIL, _ONLY, _POINTER = pattern("tail"), pattern("only"), pattern("pointer")
_LEARN = piece("learn")
_DELETE, _DELETED, _OF_MEMORY = pattern("delete"), pattern("deleted"), pattern("of_memory")
_QUOTED = re.compile(r"\"([^\"]{3,80})\"|'([^']{3,80})'|\bphrase ([a-z]+(?: [a-z]+)?)\b")
_REVOKE = (pattern("revoke"), pattern("revoked"))
_DO_NOT, _NO_ONE, _MAY_NOT, _NOT_WANT = (pattern(name) for name in ("do_not", "no_one", "may_not", "not_want"))
_LEFT_OUT, _KEPT_FROM = pattern("left_out"), patterns("kept_from")
_KEEP, _STAYS, _QUIET, _HAVE_NOT_TOLD = (pattern(name) for name in ("keep", "stays", "quiet", "have_not_told"))
_YOU_MAY, _IMPERATIVE, _ONLY_TO = (pattern(name) for name in ("you_may", "imperative", "only_to"))
_THEY_MAY, _PUBLIC = patterns("they_may"), (pattern("changed"), pattern("public"))
_FROM_ME, _BUT = patterns("from_me"), piece("but")
_PASSIVE = pattern("passive")
_SHORT = (
    (pattern("short_only"), Effect.SHARE),
    (pattern("short_not"), Effect.WITHHOLD),
    (pattern("short_no"), Effect.WITHHOLD),
)
_OWN_REFUSAL = re.compile(r"\b(?:i|we) (?:can|may|could|do|will|would|must|should|am|are|did) not(?: \w+)?$", re.I)
_NEGATIVE = re.compile(r"\b(?:not|hate|afraid|scared|ever)\b", re.I)

_USED_OF_WORDS = (
    (("let",), re.compile(r".{1,60}?\b(?:know|hear|see|find out|in on|slip|get (?:out|back|around))\b")),
    (("bring",), re.compile(r"(?: \S+){0,5}? up\b")),
    (("talk", "speak"), re.compile(r" (?:\S+ ){0,3}?(?:about|of|to|with)\b")),
    (("say",), re.compile(r" (?:\S+ ){0,3}?(?:anything|a word|a thing|it|this|that|to)\b")),
    (
        ("giv", "pass", "hand", "send", "post", "show", "fill", "go a", "confirm", "involv", "answer"),
        re.compile(r" \S+"),
    ),
)
"""Beginnings of ambiguous verbs, and what must follow for a wish about sharing: "do not let them win" is none."""


@dataclass(frozen=True, slots=True)
class Clause:
    """A clause with contractions written out, and the test for names."""

    text: str
    is_name: NameOf

    @property
    def is_question(self) -> bool:
        return self.text.rstrip("\"') ").endswith("?")

    def people(self, span: str) -> Audience:
        """Return the people named in a span, up to the words (`tail` in ``english.toml``) that end the addressees."""
        cut = _TAIL.search(span)
        return read_audience(span if cut is None else span[: cut.start()], self.is_name)


Rule = Callable[[Clause], Wish | None]


def _withhold(audience: Audience, confidence: float = CERTAIN) -> Wish | None:
    return None if audience.is_empty else Wish(Effect.WITHHOLD, audience, confidence=confidence)


def _share(audience: Audience, *, only: bool = False, confidence: float = CERTAIN) -> Wish | None:
    return None if audience.is_empty else Wish(Effect.SHARE, audience, only, confidence=confidence)


def _or_all(audience: Audience) -> Audience:
    return _ALL if audience.is_empty else audience


def _deletion(clause: Clause) -> Wish | None:
    match = _DELETE.search(clause.text) or _DELETED.search(clause.text)
    if match is None or not _OF_MEMORY.search(clause.text):
        return None
    subject_text = match.group("what")
    quoted = [next(filter(None, groups)) for groups in _QUOTED.findall(subject_text)]
    values = tuple(dict.fromkeys([*sorted(identifying_tokens(subject_text)), *(text.lower() for text in quoted)]))
    return Wish(Effect.DELETE, _ALL, values=values, confidence=CERTAIN if values else DOUBTFUL)


def _revocation(clause: Clause) -> Wish | None:
    match = next(filter(None, (compiled.search(clause.text) for compiled in _REVOKE)), None)
    if match is None:
        return None
    audience = clause.people(match.group("who"))
    if audience.is_empty:
        audience = clause.people(re.sub(r"^.*?\b(?:with|for|from|to|of)\b", "", match.group("rest")))
    return _withhold(audience, PROBABLE)


# ------------------------------------------------------------------ who may not know


def _do_not(clause: Clause) -> Wish | None:
    for match in _DO_NOT.finditer(clause.text):
        head = clause.text[: match.start("verb")].strip()
        verb, rest = match.group("verb").lower(), match.group("rest").lower()
        of_words = next((follows for verbs, follows in _USED_OF_WORDS if verb.startswith(verbs)), None)
        if _OWN_REFUSAL.search(head) or (of_words is not None and of_words.match(rest) is None):
            continue
        audience = _addressee(clause, verb, match.group("rest"))
        if audience is not None:
            return _withhold(_or_all(audience))
    return None


def _addressee(clause: Clause, verb: str, rest: str) -> Audience | None:
    """Return the addressee of a verb of sharing; empty if it names no person, None for "tell me".

    ``rest`` is the clause after the verb.
    """
    if verb.lower().startswith(("tell", "let", "inform", "show", "giv", "send", "hand", "involv", "answer")):
        addressee = re.split(
            r"\b(?:know|hear|see|find out|in on|about|that|what|where|when|how|why)\b", rest, maxsplit=1
        )[0]
        if re.match(r" (?:me|us|myself)\b", addressee, re.I):
            return None
        audience = clause.people(addressee)
        if not audience.is_empty:
            return audience
    after = re.search(r"\b(?:to|with|around|in front of|from|among|at|for|by)\b(?P<who>.+)", rest, re.I)
    return clause.people(after.group("who")) if after is not None else Audience()


def _no_one(clause: Clause) -> Wish | None:
    match = _NO_ONE.search(clause.text)
    if match is None or _LEARN.search(match.group()) is None:
        return None
    audience = clause.people(match.group("who"))
    return _withhold(audience if audience.groups and not audience.everyone else replace(audience, everyone=True))


def _passive(clause: Clause) -> Wish | None:
    match = _PASSIVE.search(clause.text)
    if match is None:
        return None
    audience = clause.people(match.group("who") or "")
    how = (match.group("not") or "").strip()
    if how in {"not", "never"}:
        return _withhold(_or_all(audience))
    return _share(audience, only=how == "only" or bool(match.group("only")))


def _from_me(clause: Clause) -> Wish | None:
    for compiled in _FROM_ME:
        match = compiled.search(clause.text)
        wish = None if match is None else _withhold(clause.people(match.group("who")), PROBABLE)
        if wish is not None:
            return wish
    return None


def _may_not(clause: Clause) -> Wish | None:
    match = _MAY_NOT.search(clause.text)
    return None if match is None else _withhold(clause.people(match.group("who")))


def _not_want(clause: Clause) -> Wish | None:
    match = _NOT_WANT.search(clause.text)
    if match is None or not _NEGATIVE.search(match.group()):
        return None
    return _withhold(clause.people(match.group("who")))


def _kept_from(clause: Clause) -> Wish | None:
    match = _LEFT_OUT.search(clause.text)
    if match is not None:
        return _withhold(clause.people(match.group("who") or match.group("who2")))
    for compiled in _KEPT_FROM:
        match = compiled.search(clause.text)
        wish = None if match is None else _withhold(clause.people(match.group("who")), PROBABLE)
        if wish is not None:
            return wish
    return None


def _keep(clause: Clause) -> Wish | None:
    """Read a wish to keep a matter from or among people (``keep it from …``, ``keep it between us``); None if none."""
    match = _KEEP.search(clause.text)
    if match is None:
        return None
    if match.group("from"):
        return _withhold(clause.people(match.group("from")))
    if re.search(r"\b(?:no need to|not (?:have|need) to)$", clause.text[: match.start()].strip(), re.I):
        return _share(_ALL)
    inside = match.group("within") or match.group("pair") or (match.group("and") or "").removeprefix(" and ")
    audience = clause.people(inside or "")
    if not audience.is_empty and not audience.everyone:
        return _share(audience, only=True)
    if match.group("within") and not re.search(r"\b(?:walls|room|house|circle|us|ourselves)\b", inside, re.I):
        return None
    outsiders = re.match(r"\s*from\b(?P<who>.+)", clause.text[match.end() :], re.I)
    return _withhold(_or_all(clause.people(outsiders.group("who")) if outsiders else Audience()))


def _stays(clause: Clause) -> Wish | None:
    match = _STAYS.search(clause.text)
    if match is None:
        return None
    if match.group("within"):
        return _share(clause.people(match.group("within").removesuffix("only")), only=True)
    if match.group("barred"):
        return _withhold(_or_all(clause.people(match.group("barred"))))
    if match.group("not") or (match.group("state") or "").lower() == "no secret":
        return _share(_ALL)
    outsiders = re.match(r"\s*from\b(?P<who>.+)", clause.text[match.end() :], re.I)
    return _withhold(_or_all(clause.people(outsiders.group("who")) if outsiders else Audience()))


def _quiet(clause: Clause) -> Wish | None:
    match = _QUIET.search(clause.text)
    return None if match is None else _withhold(_or_all(clause.people(match.group("to") or "")))


def _have_not_told(clause: Clause) -> Wish | None:
    match = _HAVE_NOT_TOLD.search(clause.text)
    audience = None if match is None else _addressee(clause, "tell", match.group("rest"))
    return None if audience is None else _withhold(audience, DOUBTFUL)


# ------------------------------------------------------------------ who may know


def _you_may(clause: Clause) -> Wish | None:
    """Read a permission or an imperative to share (``you can tell …``, ``tell only …``); None if there is none."""
    match, confidence = _YOU_MAY.search(clause.text), CERTAIN
    if match is None:
        match, confidence = _IMPERATIVE.search(clause.text), PROBABLE
    if match is None:
        return None
    verb, rest = match.group("verb").lower(), match.group("rest")
    audience = _addressee(clause, verb, rest)
    if audience is None or (verb == "let" and not re.search(r"\b(?:know|hear|see|in on)\b", rest, re.I)):
        return None
    only = _ONLY.search(match.group()) is not None
    if audience.is_empty:
        # "You can share it" is for everyone, "you can tell" and "share it!" are not.
        points = _POINTER.match(rest.strip()) is not None
        if confidence < CERTAIN or not points or verb.startswith("tell") or only:
            return None
        audience = _ALL
    return _share(audience, only=only and not audience.everyone, confidence=confidence)


def _they_may(clause: Clause) -> Wish | None:
    for compiled in _THEY_MAY:
        match = compiled.search(clause.text)
        if match is None:
            continue
        audience = clause.people(match.group("who"))
        if not audience.is_empty:
            only = _ONLY.search(match.group()) is not None
            return _share(audience, only=only and not audience.everyone)
    return None


def _only_to(clause: Clause) -> Wish | None:
    match = _ONLY_TO.search(clause.text)
    return None if match is None else _share(clause.people(match.group("who")), only=True)


def _public(clause: Clause) -> Wish | None:
    if not any(compiled.search(clause.text) for compiled in _PUBLIC):
        return None
    audience = read_audience(clause.text, clause.is_name)
    return _share(replace(_ALL, except_names=audience.except_names, except_groups=audience.except_groups))


_ALSO_ASKED = (_keep, _do_not, _quiet)
"""Rules that apply to questions too: "can you keep this quiet?"."""
_RULES: tuple[Rule, ...] = (
    _deletion, _revocation, _from_me, _public, _no_one, _do_not, _passive, _may_not, _not_want, _keep, _stays,
    _only_to, _kept_from, _you_may, _they_may, _quiet, _have_not_told,
)  # fmt: skip
"""All rules. The first that matches decides, so that their order is part of the grammar."""


def read_clause(clause: Clause) -> Wish | None:
    """Return the wish that a clause states, by the first rule that matches; None if none does."""
    rules = _ALSO_ASKED if clause.is_question else _RULES
    wish = next((wish for rule in rules if (wish := rule(clause)) is not None), None)
    return None if wish is None else _with_exception(wish, clause)


def _with_exception(wish: Wish, clause: Clause) -> Wish:
    """Add exceptions that come later in the clause to a wish for everyone: "no one until Friday, apart from Ann"."""
    audience = wish.audience
    cut = _BUT.search(clause.text)
    if not audience.everyone or audience.except_names or audience.except_groups or cut is None:
        return wish
    exceptions = clause.people(clause.text[cut.end() :])
    if exceptions.is_empty or exceptions.everyone:
        return wish
    return replace(wish, audience=replace(audience, except_names=exceptions.names, except_groups=exceptions.groups))


def read_short(clause: Clause) -> Wish | None:
    """Return the wish of a clause without a verb ("only Ann", "not my brother"); used only after another wish."""
    for compiled, effect in _SHORT:
        match = compiled.search(clause.text)
        audience = Audience() if match is None else clause.people(match.group("who"))
        if not audience.is_empty:
            return _share(audience, only=True) if effect is Effect.SHARE else _withhold(audience)
    return None

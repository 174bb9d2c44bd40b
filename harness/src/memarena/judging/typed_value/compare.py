"""Compares the claims of an answer with the gold: only here are typed values judged right or wrong.

An answer is right if, in the end, it gives each value of the gold, as the asked person's and in the asked version, and
its wording commits to that. For a conflict, it gives both versions, each from its own source if it names sources.
"""

from __future__ import annotations

import re

from memarena_dataset.gold import ConflictGold, CounterfactualGold
from memarena_dataset.values.names import proper_names

from memarena.judging.judgment import Code, Judgment, right, wrong
from memarena.judging.typed_value.claims import Claim, Holder, Matter, Statement
from memarena.judging.typed_value.commitment import Wording, commits
from memarena.judging.typed_value.masking import Mask
from memarena.judging.typed_value.question import OpenQuestion, Version, describe
from memarena.judging.typed_value.segments import VALUES, joined, phrases, segment_of, words_of
from memarena.judging.typed_value.stretches import has_predicate, is_answered_elsewhere, names_more, names_other_person

_EDIT = re.compile(
    r"(?<!\S)(?:"
    r"(?:change|replace|correct|swap|amend|edit|fix|alter|update|turn|strike|delete|remove|cross out)[^.]*? "
    r"(?P<from>PREMISE|VALUE) [^.]{0,40}?(?:to|with|by|into|for|write|put|use|insert) "
    r"(?:[^. ]+ ){0,3}?(?P<to>PREMISE|VALUE)"
    r"|(?P<what>PREMISE|VALUE) (?:[^. ]+ ){0,3}?(?:should (?:be|read|say)|ought to be"
    r"|needs? (?:to be|correcting|changing)|must (?:be|read)|has to be)(?: [^. ]+){0,4}? (?P<be>PREMISE|VALUE)"
    r"|(?:where(?:ver)? (?:it|you|they|the note) (?:says?|reads?|wrote|have|has)|(?:take|strike|cross) out|delete)"
    r" (?:[^. ]+ ){0,2}?(?P<out>PREMISE|VALUE) [,;]? ?(?:and )?"
    r"(?:it should (?:say|read|be)|put(?: in)?|write|insert|use) (?:[^. ]+ ){0,2}?(?P<in>PREMISE|VALUE)"
    r")(?!\S)"
)
"""An instruction to replace one value by another, as some answers correct a premise: ``change PREMISE to VALUE``."""
_AFFIRMED = re.compile(
    r"(?:yes|right|correct|(?:(?:it|that|this)(?: is|'s)|nothing(?: is| needs?)?) (?!not|n't|wrong|a )[^.;]{0,30}?"
    r"(?:accurate|correct|right|true|fine|amending|changing|correcting|wrong))(?!\S)(?:(?!VALUE)[^.;])*? PREMISE(?!\S)"
)
"""An answer that begins by saying that the premise holds: ``yes, it was PREMISE``."""
_IN_LISTS = frozenset((",", ";", ".", ")", "/", "\n", "-", "–", "*", "•", "&", "and", "or", "the", "a", "an"))
"""Words and signs between the values of a list; numbers of lines count too."""
_MAX_LISTED = 4
"""Other values in one list from which on an answer lists everything instead of answering."""
_NEGATED = re.compile(r"(?<!\S)(?:not|n't|never|isn't)(?!\S)|n't(?!\S)")


def rule_claims(question: OpenQuestion, statement: Statement) -> Judgment:
    """Judge an answer that was read into claims."""
    fault = fault_of(question, statement)
    if fault is not None:
        return fault
    value = ", ".join(map(describe, (*question.required, *question.changed)))
    edit = _EDIT.search(joined(statement.tokens)[0]) if isinstance(question.gold, CounterfactualGold) else None
    if edit is not None and not _NEGATED.search(edit.group()):
        mask = edit["to"] or edit["be"] or edit["in"]
        code = Code.STATES_VALUE if mask == Mask.VALUE else Code.AFFIRMS_PREMISE
        return (right if mask == Mask.VALUE else wrong)("value", code, value=value)
    if isinstance(question.gold, CounterfactualGold) and _AFFIRMED.match(joined(statement.tokens)[0]):
        return wrong("value", Code.AFFIRMS_PREMISE, value=value)
    if commits(wording_of(question, statement)):
        return right("value", Code.STATES_VALUE, value=value)
    return wrong("value", Code.NOT_COMMITTED, value=value)


def fault_of(question: OpenQuestion, statement: Statement) -> Judgment | None:
    """Return the judgment if the claims are wrong whatever their wording; else None."""
    if isinstance(question.gold, ConflictGold):
        return _fault_of_conflict(question, statement)
    if _is_told_by_another(question, statement):
        return wrong("value", Code.OTHER_PERSON, value=describe(question.required[0]))
    for which, value in enumerate(question.required):
        claims = [claim for claim in statement.of(Mask.VALUE) if claim.which == which]
        if not claims:
            return wrong("value", Code.MISSING_VALUE, value=describe(value))
        faults = [_fault(question, statement, claim) for claim in claims]
        if all(faults):
            return wrong("value", next(f for f in faults if f), value=describe(value))
    if (others := _count_listed(statement)) >= _MAX_LISTED:
        return wrong("value", Code.TOO_MUCH, words=f"{others} other values in a list")
    return None


def _is_told_by_another(question: OpenQuestion, statement: Statement) -> bool:
    """Whether the question asks who told something, and the answer names only other people as its source."""
    if getattr(question.gold, "attribute", None) != "speaker":
        return False
    tokens = statement.tokens
    question_names = {part for name in proper_names(question.text) for part in name.name}
    tellers = {
        tokens[n].mask is Mask.VALUE
        for n in range(len(tokens))
        if (tokens[n].mask in (Mask.VALUE, Mask.RIVAL, Mask.OTHER) or tokens[n].word in question_names)
        and phrases("told_it").match(words_of(tokens, n + 1, n + 8))
        and not phrases("denied_before").search(words_of(tokens, max(0, n - 4), n))
    }
    return tellers == {False}


def _count_listed(statement: Statement) -> int:
    """Return the most other values of the gold's type in one list, with only list words between them."""
    most = run_length = 0
    for token in statement.tokens:
        if token.mask is Mask.RIVAL:
            run_length += 1
            most = max(most, run_length)
        elif token.mask not in VALUES and token.word.lower() not in _IN_LISTS and not token.word.isdigit():
            run_length = 0
    return most


def wording_of(question: OpenQuestion, statement: Statement) -> Wording:
    """Return the wording of an answer; other values that it explains are masked apart from those that compete."""
    apart: set[int] = set()
    if not isinstance(question.gold, ConflictGold):
        apart |= {c.at for c in statement.of(Mask.VALUE) if _fault(question, statement, c)}
        apart |= {
            c.at for c in statement.of(Mask.RIVAL) if _is_explained(question, c) or _is_aside(question, statement, c)
        }
    return Wording.of(question, statement, apart)


def _fault(question: OpenQuestion, statement: Statement, claim: Claim) -> Code | None:
    """Return why a claim of the gold's value is not the answer; None if it is. The first reason that holds counts."""
    if _is_anothers(question, statement, claim):
        return Code.OTHER_PERSON
    if claim.denied:
        return Code.DENIED
    if claim.matter is Matter.OTHER and _is_answered_otherwise(statement):
        return Code.OTHER_MATTER
    if is_answered_elsewhere(question, statement, claim):
        return Code.OTHER_MATTER
    version = question.version or Version.CURRENT
    if claim.version not in (None, version) and (question.version or _something_else_holds(statement, claim)):
        return Code.OTHER_VERSION
    return None


def _is_anothers(question: OpenQuestion, statement: Statement, claim: Claim) -> bool:
    """Whether a claim gives another person's value, or another's word that contradicts the asked person's."""
    own_word = any(c.teller is Holder.ASKED and not c.denied for c in statement.of(Mask.RIVAL))
    return (
        claim.holder is Holder.OTHER
        or (claim.holder is None and _gives_asked_person_another_value(question, statement, claim))
        or (claim.teller is Holder.OTHER and own_word)
    )


def _is_answered_otherwise(statement: Statement) -> bool:
    """Whether the answer gives another value for the matter that the question asks about."""
    return any(
        c.matter is Matter.ASKED and not c.denied and c.holder is not Holder.OTHER and c.version is not Version.FORMER
        for c in statement.of(Mask.RIVAL)
    )


def _gives_asked_person_another_value(question: OpenQuestion, statement: Statement, claim: Claim) -> bool:
    """Whether the answer gives the asked person another value, in a separate segment."""
    stretch = segment_of(statement.tokens, claim.at)
    alone = not names_other_person(question, statement, stretch)
    return any(
        c.holder is Holder.ASKED
        and not _is_elsewhere(question, c)
        and not (alone and names_more(question, statement, claim, c))
        and not c.denied
        and c.version is not Version.FORMER
        and segment_of(statement.tokens, c.at) != stretch
        for c in statement.of(Mask.RIVAL)
    )


def _something_else_holds(statement: Statement, claim: Claim) -> bool:
    """Whether an answer that calls the value a former one also says that it has changed."""
    if claim.version is not Version.FORMER:
        return False
    if [t.word for t in statement.tokens[claim.at + 1 : claim.at + 2]] == ["until"]:
        return True
    low, high = segment_of(statement.tokens, claim.at)
    other_words = joined([*statement.tokens[:low], *statement.tokens[high:]])[0]
    return bool(phrases("current").search(other_words)) or any(
        not c.denied and c.version is not Version.FORMER for c in statement.of(Mask.RIVAL, Mask.PREMISE)
    )


def _is_elsewhere(question: OpenQuestion, claim: Claim) -> bool:
    """Whether a claim names another matter and no person: ``my`` and ``your`` can go with any matter."""
    return claim.matter is Matter.OTHER and (claim.holder is not Holder.ASKED or question.own)


def _is_aside(question: OpenQuestion, statement: Statement, claim: Claim) -> bool:
    """Whether another value belongs to another matter than the gold's value."""
    values = statement.of(Mask.VALUE)
    if _is_elsewhere(question, claim) and any(c.matter is not Matter.OTHER for c in values):
        return True
    stretch = segment_of(statement.tokens, claim.at)
    return has_predicate(statement, stretch) and any(names_more(question, statement, c, claim) for c in values)


def _is_explained(question: OpenQuestion, claim: Claim) -> bool:
    """Whether another value is stated as another person's, as the other version, or as wrong."""
    version = question.version or Version.CURRENT
    return claim.denied or claim.holder is Holder.OTHER or claim.version not in (None, version)


def _fault_of_conflict(question: OpenQuestion, statement: Statement) -> Judgment | None:
    """Return the judgment if a version is missing, or the sources are exchanged; else None."""
    for mask, values in ((Mask.VALUE, question.required), (Mask.CHANGED, question.changed)):
        for which, value in enumerate(values):
            claims = [claim for claim in statement.of(mask) if claim.which == which]
            if all(phrases("unsaid_before").search(words_of(statement.tokens, 0, c.at)) for c in claims):
                return wrong("value", Code.MISSING_VALUE, value=describe(value))
    if question.sources is not None and _swapped(statement, question.sources):
        return wrong("value", Code.SWAPPED_SOURCES, value=describe(question.required[0]))
    return None


def _swapped(statement: Statement, sources: tuple[str, str]) -> bool:
    """Whether most versions with a source are stated as the other source's; versions without a source do not count."""
    _original, other = sources
    attributed = [(c.mask, c.source) for c in statement.of(Mask.VALUE, Mask.CHANGED) if c.source]
    crossed = sum((mask is Mask.VALUE) == (source == other) for mask, source in attributed)
    return crossed > len(attributed) - crossed

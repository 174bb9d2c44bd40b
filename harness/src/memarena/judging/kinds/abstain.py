"""D5, abstain half: an answer is right if it declines and states no value as the answer.

The trap's value, stated and not denied, is wrong whatever else the answer says; so is a value that is supposed
(``it's probably …``) behind a disclaimer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from memarena_dataset.gold import AbstainGold
from memarena_dataset.values import NameValue, PlaceValue, TermValue
from memarena_dataset.values.mentions import Kind as MentionKind
from memarena_dataset.values.mentions import Mention
from memarena_dataset.values.names import proper_names
from memarena_dataset.values.reading import read_text
from memarena_dataset.values.words import content_words, tidy, words

from memarena.judging.abstention import MODEL, SENTENCE_LOGITS, declines, negation_bears_on, sentences
from memarena.judging.abstention_features import features_of, read_clauses
from memarena.judging.judgment import Code, Judgment, right, wrong
from memarena.judging.kinds.kind import Kind
from memarena.judging.linear_model import stored_model
from memarena.judging.too_much import is_too_much
from memarena.judging.typed_value.plain_text import from_json
from memarena.judging.typed_value.segments import phrases
from memarena.log.records import EvidenceSession, Question

_DENIES_LOGITS = 0.0
"""From here on a clause that names a value is taken to decline it."""
_SUPPOSES = re.compile(
    r"\b(?:probably|likely|perhaps|maybe|possibly|presumably|i(?:'d| would) (?:assume|guess|say|go with|think|bet)|"
    r"i (?:think|believe|assume|guess|suspect|remember)|my (?:best )?guess|(?:should|must|might|could) be|seems?|"
    r"sounds right|looks like|either)\b",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(?:no|not|never|nobody|nothing|none|without|whether|if)\b|n't\b|\b(?:cannot|unable|unsure)\b", re.IGNORECASE
)
_ASSERTED_ALL_THE_SAME = re.compile(r"\b(?:no doubt|no question|not (?:less|more) than|nothing but|not only)\b", re.I)

_KEEPS_THAT = re.compile(
    r"(?:\b(?:not|never|cannot|rather not|unable to|without)|n't) (?:\w+ )?"
    r"(?:tell(?:ing)?|share|sharing|disclos(?:e|ing)|reveal(?:ing)?|let(?:ting)? on|pass on|give away)\b[\w ]*? that\b",
    re.IGNORECASE,
)
"""What holds back a fact by telling it: ``I won't tell you that it was …``."""
_THIRD = frozenset(("he", "she", "they", "his", "her", "hers", "their", "him", "them"))
_SECOND = frozenset(("you", "your", "yours"))
_FIRST_PERSON = re.compile(r"\b(?:I|me|my|mine)\b")
_TOLD_BY_ASKER = re.compile(
    r"\byou(?:'ve| have|'d| had)?(?: \w+ly| also| once| just)? (?:told|said|mentioned|wrote|noted|stated|remarked)\b"
    r"|\byour (?:\w+ )?(?:notes?|messages?|chats?|conversations?|memory|memories|records?|words|question)\b"
    r"|\b(?:told|tell|for|help) you\b|\byou (?:asked|see|know|want)\b|\bas you\b",
    re.IGNORECASE,
)
"""The asker as who told it, or who asks, which makes nothing theirs."""
_OF_KNOWING = frozenset(("TELL", "FIND", "RECORD", "KNOW"))


class Abstain(Kind[AbstainGold]):
    """D5, abstain half: what was asked after was never said."""

    task = "answer"
    prompt = "abstention.v2.toml"
    shows_evidence = True

    def judge(
        self, question: Question, gold: AbstainGold, evidence: Sequence[EvidenceSession], answer: str, raw_output: str
    ) -> Judgment:
        """Right if the answer declines and offers nothing. Refusing counts as much as not knowing."""
        if not answer.strip():
            return wrong("refusal", Code.EMPTY)
        if is_too_much(answer):
            return wrong("refusal", Code.TOO_MUCH, words=f"{len(answer.split())} words")
        answer = from_json(answer.strip()) or "unknown"
        context = " ".join((question.question_text, *_claimed(gold)))
        trap = gold.adversarial_answer or ""
        if trap and (clause := _stating_clause(trap, answer, context, question.question_text)):
            return wrong("refusal", Code.STATES_TRAP, words=clause)
        if not declines(_with_that_for(trap, answer), context, (question.ego_name, question.asker_name)):
            return wrong("refusal", Code.DOES_NOT_DECLINE)
        if supposed := _supposed(answer, context):
            return wrong("refusal", Code.SUPPOSES_VALUE, words=supposed)
        return right("refusal", Code.DECLINES)

    def key(self, gold: AbstainGold) -> str:
        """That it was never said, and the trap."""
        trap = gold.adversarial_answer
        return "This was never said." + (f"\nWhat falls for the question: {trap}" if trap else "")

    def control(self, gold: AbstainGold) -> str:
        """A plain decline."""
        return "I don't know: this was never said."


def _claimed(gold: AbstainGold) -> Iterator[str]:
    """What the question takes for granted, in the words of the data set: no news in an answer."""
    for value in gold.claim:
        if isinstance(value, NameValue | PlaceValue):
            yield from (value.name, *value.aliases)
        elif isinstance(value, TermValue):
            yield from (value.text, *value.aliases)


def _stating_clause(trap: str, answer: str, context: str, question: str) -> str:
    """The clause that states the trap's value for what was asked, and does not deny it; empty where none does."""
    for clause in read_clauses(answer, context):
        if not _names(trap, clause.text) or _is_denied(clause.text, answer, context, trap):
            continue
        if not _is_of_another(clause.text, trap, answer, question):
            return clause.text
    # Where the cut between clauses parts the value (`on 3 March, 2025`), the sentence is read.
    for sentence in sentences(answer):
        if _names(trap, sentence) and not _is_denied(sentence, answer, context, trap):
            if _is_of_another(sentence, trap, answer, question):
                continue
            naming = [c for c in read_clauses(sentence, context) if _names(trap, c.text)]
            if not naming:
                return sentence
    return ""


def _is_of_another(clause: str, trap: str, answer: str, question: str) -> bool:
    """Whether a clause tells the trap's value as that of a person who is not asked about.

    The asker's own where the question names a person, another name where it does not; and never where the clause speaks
    of who is asked about, by name or as ``he`` or ``she``.
    """
    if _SUPPOSES.search(clause) or len(answer.strip()) <= len(clause.strip()) + 1:
        return False
    bare = re.sub(re.escape(trap), " ", clause, flags=re.IGNORECASE)
    asked_names = {part for name in proper_names(question) for part in name.name}
    clause_names = {part for name in proper_names(tidy(bare)) for part in name.name}
    first = re.match(r"\W*([A-Z][a-z]+)", bare)
    clause_words = set(words(_TOLD_BY_ASKER.sub(" ", bare)))
    if (
        clause_names & asked_names
        or clause_words & asked_names
        or (clause_words & _THIRD and asked_names and not clause_names)
    ):
        return False
    own = bool(clause_words & _SECOND)
    if asked_names and not _FIRST_PERSON.search(question):
        return own or bool(clause_names - {first.group(1).lower()} if first else clause_names)
    return bool(clause_names) and not own


def _names(trap: str, text: str) -> bool:
    """Whether a text has the trap's value: every value that the trap mentions, or else all its content words."""
    trap_values = _typed(trap)
    if trap_values:
        there = _typed(text)
        return all(any(want.same(mention) for mention in there) for want in trap_values)
    words_of = set(content_words(trap))
    return bool(words_of) and words_of <= set(content_words(text))


def _typed(text: str) -> list[Mention]:
    typed: tuple[MentionKind, ...] = ("date", "weekday", "time", "duration", "amount")
    return [mention for mention in read_text(text).mentions if mention.kind in typed]


def _is_denied(clause: str, answer: str, context: str, trap: str) -> bool:
    """Whether a clause that names a value declines or denies it, or only asks about it."""
    if _KEEPS_THAT.search(clause):
        return False
    at = answer.find(clause)
    if at >= 0 and answer[at + len(clause) : at + len(clause) + 1] == "?" and not _SUPPOSES.search(clause):
        return len(answer.strip()) > len(clause) + 1
    if not _DENIED.search(_ASSERTED_ALL_THE_SAME.sub(" ", clause)):
        return False
    first = min((start for start, _ in _places(trap, clause)), default=0)
    if phrases("denied_before").search(" ".join(words(clause[:first])) + " "):
        return True
    read = next(iter(read_clauses(clause, context)), None)
    if read is not None and (read.words[0] in ("whether", "if") or negation_bears_on(_OF_KNOWING, read.classes, 4)):
        return True
    model = stored_model(MODEL)
    return model.score(features_of(clause, context)) > _DENIES_LOGITS * model.scale


def _with_that_for(trap: str, answer: str) -> str:
    """The answer with ``that`` in the place of a trap's value that it denies: the value alone is no news."""
    spans = _places(trap, answer) if trap else []
    text = read_text(answer).text if spans and _typed(trap) else answer
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]}that{text[end:]}"
    return text


def _places(trap: str, text: str) -> list[tuple[int, int]]:
    """Where the trap's value stands: its typed values in the text as read, else its words as they are."""
    trap_values = _typed(trap)
    if trap_values:
        return [(m.start, m.end) for m in read_text(text).mentions if any(want.same(m) for want in trap_values)]
    return [match.span() for match in re.finditer(re.escape(trap), text, re.IGNORECASE)]


def _supposed(answer: str, context: str) -> str:
    """A clause that supposes a value (``it's probably X``) without denying one; empty where none does."""
    context_values = _typed(context)
    model = stored_model(MODEL)
    for clause in read_clauses(answer, context):
        if not _SUPPOSES.search(clause.text) or _DENIED.search(clause.text):
            continue
        news = [m for m in _typed(clause.text) if not any(m.same(other) for other in context_values)]
        names_something = bool({"NAME", "QUOTE"} & set(clause.classes))
        if (news or names_something) and model.score(features_of(clause.text, context)) < SENTENCE_LOGITS * model.scale:
            return clause.text
    return ""

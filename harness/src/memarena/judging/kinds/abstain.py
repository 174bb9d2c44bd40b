"""Judges abstention questions, the abstain half of D5: a right answer declines and states no value as the answer.

Nothing in the data set answers such a question. Its gold may have a *trap* (``adversarial_answer``): what a person
answers who believes the question's premise. An answer is wrong if it

- states the trap's value and does not deny it, whatever else it says (:func:`_stating_clause`);
- does not decline;
- declines and then supposes a value: ``no record of the price, perhaps 40 euros`` (:func:`_supposing_clause`).

The trap's value of a person who is not asked about is not stated as the answer: "Nora's was 364 euros, yours never came
up." A *clause* is a part of a sentence as the abstention model reads it (``judging/abstention_features.py``).
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
from memarena_dataset.values.words import content_words, words

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
"""A clause with a negation that names the trap's value denies it if the abstention model scores it above this."""
_KNOWING_REACH_WORDS = 4
"""Words after a negation within which a word of knowing or telling counts as negated: ``nobody has ever said …``."""
_SUPPOSES = re.compile(
    r"\b(?:probably|likely|perhaps|maybe|possibly|presumably|i(?:'d| would) (?:assume|guess|say|go with|think|bet)|"
    r"i (?:think|believe|assume|guess|suspect|remember)|my (?:best )?guess|(?:should|must|might|could) be|seems?|"
    r"sounds right|looks like|either)\b",
    re.IGNORECASE,
)
"""Words of a guess: ``it's probably …``, ``I'd assume …``."""
_NEGATION = re.compile(
    r"\b(?:no|not|never|nobody|nothing|none|without|whether|if)\b|n't\b|\b(?:cannot|unable|unsure)\b", re.IGNORECASE
)
"""Words without which a clause denies nothing."""
_NEGATION_THAT_ASSERTS = re.compile(r"\b(?:no doubt|no question|not (?:less|more) than|nothing but|not only)\b", re.I)
"""Phrases with a negation that assert: ``no doubt it was …``."""
_WITHHOLDS_AND_STATES = re.compile(
    r"(?:\b(?:not|never|cannot|rather not|unable to|without)|n't) (?:\w+ )?"
    r"(?:tell(?:ing)?|share|sharing|disclos(?:e|ing)|reveal(?:ing)?|let(?:ting)? on|pass on|give away)\b[\w ]*? that\b",
    re.IGNORECASE,
)
"""Phrases that refuse to tell a fact and state it in the same breath: ``I won't tell you that it was …``."""
_THIRD_PERSON_WORDS = frozenset(("he", "she", "they", "his", "her", "hers", "their", "him", "them"))
_SECOND_PERSON_WORDS = frozenset(("you", "your", "yours"))
_FIRST_PERSON = re.compile(r"\b(?:I|me|my|mine)\b")
_ASKER_AS_SOURCE = re.compile(
    r"\byou(?:'ve| have|'d| had)?(?: \w+ly| also| once| just)? (?:told|said|mentioned|wrote|noted|stated|remarked)\b"
    r"|\byour (?:\w+ )?(?:notes?|messages?|chats?|conversations?|memory|memories|records?|words|question)\b"
    r"|\b(?:told|tell|for|help) you\b|\byou (?:asked|see|know|want)\b|\bas you\b",
    re.IGNORECASE,
)
"""Mentions of the asker as source or addressee (``you said``, ``in your notes``): they do not make a value theirs."""
_KNOWING_CLASSES = frozenset(("TELL", "FIND", "RECORD", "KNOW"))
"""Classes of words (``tables/word_classes.v1.txt``) of knowing, telling and records; negated, they decline."""
_TYPED_MENTIONS: tuple[MentionKind, ...] = ("date", "weekday", "time", "duration", "amount")
"""Kinds of mentions that are compared by value, so that ``3 March`` is ``March 3rd``; other traps by their words."""


class Abstain(Kind[AbstainGold]):
    """Judges answers to questions about something that was never said."""

    task = "answer"
    prompt = "abstention.v2.toml"
    shows_evidence = True

    def judge(
        self, question: Question, gold: AbstainGold, evidence: Sequence[EvidenceSession], answer: str, raw_output: str
    ) -> Judgment:
        """Judge an answer right if it declines and offers no value. A refusal to tell counts as much as not knowing."""
        if not answer.strip():
            return wrong("refusal", Code.EMPTY)
        if is_too_much(answer):
            return wrong("refusal", Code.TOO_MUCH, words=f"{len(answer.split())} words")
        # An object that holds only null says that nothing is known.
        answer = from_json(answer.strip()) or "unknown"
        context = " ".join((question.question_text, *_premise_texts(gold)))
        trap = gold.adversarial_answer or ""
        if trap and (clause := _stating_clause(trap, answer, context, question.question_text)):
            return wrong("refusal", Code.STATES_TRAP, words=clause)
        if not declines(_mask_trap(trap, answer), context, (question.ego_name, question.asker_name)):
            return wrong("refusal", Code.DOES_NOT_DECLINE)
        if clause := _supposing_clause(answer, context):
            return wrong("refusal", Code.SUPPOSES_VALUE, words=clause)
        return right("refusal", Code.DECLINES)

    def key(self, gold: AbstainGold) -> str:
        """Return that it was never said, and the trap if the gold has one."""
        trap = gold.adversarial_answer
        return "This was never said." + (f"\nWhat falls for the question: {trap}" if trap else "")

    def control(self, gold: AbstainGold) -> str:
        """Return a plain decline."""
        return "I don't know: this was never said."


def _premise_texts(gold: AbstainGold) -> Iterator[str]:
    """Yield names and words of the question's premise: an answer that repeats them adds nothing to the question."""
    for value in gold.claim:
        if isinstance(value, NameValue | PlaceValue):
            yield from (value.name, *value.aliases)
        elif isinstance(value, TermValue):
            yield from (value.text, *value.aliases)


# ------------------------------------------------------------------ is the trap's value stated as the answer?


def _stating_clause(trap: str, answer: str, context: str, question: str) -> str:
    """Return the first clause that states the trap's value as the answer, or an empty text if no clause does.

    Args:
        trap: the plausible wrong answer; not empty.
        answer: as plain text.
        context: the question and its premise, whose words are not new in an answer.
        question: the question alone.
    """

    def states_trap(text: str) -> bool:
        return (
            _names_trap(trap, text)
            and not _is_denied(text, answer, context, trap)
            and not _is_of_another_person(text, trap, answer, question)
        )

    for clause in read_clauses(answer, context):
        if states_trap(clause.text):
            return clause.text
    # A value that is split between two clauses (`on 3 March, 2025`) is named by no clause, only by the sentence.
    for sentence in sentences(answer):
        if states_trap(sentence) and not any(_names_trap(trap, c.text) for c in read_clauses(sentence, context)):
            return sentence
    return ""


def _names_trap(trap: str, text: str) -> bool:
    """Whether a text has every typed value of the trap, or all its content words if the trap has no typed value."""
    trap_values = _typed_mentions(trap)
    if trap_values:
        text_values = _typed_mentions(text)
        return all(any(value.same(mention) for mention in text_values) for value in trap_values)
    trap_words = set(content_words(trap))
    return bool(trap_words) and trap_words <= set(content_words(text))


def _typed_mentions(text: str) -> list[Mention]:
    return [mention for mention in read_text(text).mentions if mention.kind in _TYPED_MENTIONS]


def _locate_trap(trap: str, text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text, as it is searched for the trap, with start and end of each mention of the trap in it.

    A trap with typed values is searched for in the text with digits for numbers in words.
    """
    trap_values = _typed_mentions(trap)
    if trap_values:
        read = read_text(text)
        return read.text, [(m.start, m.end) for m in read.mentions if any(value.same(m) for value in trap_values)]
    return text, [match.span() for match in re.finditer(re.escape(trap), text, re.IGNORECASE)]


def _is_denied(clause: str, answer: str, context: str, trap: str) -> bool:
    """Whether a clause that names the trap's value declines or denies it, or only asks about it."""
    if _WITHHOLDS_AND_STATES.search(clause):
        return False
    if _is_question(clause, answer) and not _SUPPOSES.search(clause):
        # "364 euros? I have no record of that." An answer that is nothing but the question states it.
        return len(answer.strip()) > len(clause) + 1
    if not _NEGATION.search(_NEGATION_THAT_ASSERTS.sub(" ", clause)):
        return False
    searched, spans = _locate_trap(trap, clause)
    before = searched[: min((start for start, _ in spans), default=0)]
    if phrases("denied_before").search(" ".join(words(before)) + " "):
        return True
    first_clause = next(iter(read_clauses(clause, context)), None)
    if first_clause is not None and (
        first_clause.words[0] in ("whether", "if")
        or negation_bears_on(_KNOWING_CLASSES, first_clause.classes, _KNOWING_REACH_WORDS)
    ):
        return True
    model = stored_model(MODEL)
    return model.score(features_of(clause, context)) > _DENIES_LOGITS * model.scale


def _is_question(clause: str, answer: str) -> bool:
    """Whether a question mark follows the clause in the answer."""
    start = answer.find(clause)
    return start >= 0 and answer.startswith("?", start + len(clause))


def _is_of_another_person(clause: str, trap: str, answer: str, question: str) -> bool:
    """Whether a clause states the trap's value as that of a person whom the question does not ask about.

    A guess, and an answer of a single clause, are always about the question.
    """
    is_whole_answer = len(answer.strip()) <= len(clause.strip()) + 1  # it and its full stop
    if is_whole_answer or _SUPPOSES.search(clause):
        return False
    remark = re.sub(re.escape(trap), " ", clause, flags=re.IGNORECASE)
    asked_people = _name_words(question)
    people = _name_words(read_text(remark).text)  # "Twenty-three" as a first word is no name
    remark_words = set(words(_ASKER_AS_SOURCE.sub(" ", remark)))
    if _speaks_of_asked_person(asked_people, people, remark_words):
        return False
    speaks_of_asker = bool(remark_words & _SECOND_PERSON_WORDS)
    if asked_people and not _FIRST_PERSON.search(question):
        # "When did Nora move?" is not answered by "You moved on Monday" or "I heard that Emre moved on Monday". The
        # first word of a clause has a capital anyway, so it is not evidence of a name.
        first_word = re.match(r"\W*([A-Z][a-z]+)", remark)
        return speaks_of_asker or bool(people - ({first_word.group(1).lower()} if first_word else set()))
    # "What did I pay for the rug?" is not answered by "Emre paid 364 euros for his".
    return bool(people) and not speaks_of_asker


def _speaks_of_asked_person(asked_people: set[str], people: set[str], remark_words: set[str]) -> bool:
    """Whether a remark speaks of a person whom the question names: by name, or as ``he`` or ``she``.

    Args:
        asked_people: parts of the names in the question, in lower case.
        people: parts of the names in the remark; with another name in it, a pronoun may mean that person.
        remark_words: all words of the remark.
    """
    if not asked_people:
        return False
    has_pronoun = bool(remark_words & _THIRD_PERSON_WORDS) and not people
    return bool(asked_people & (people | remark_words)) or has_pronoun


def _name_words(text: str) -> set[str]:
    """Return the parts of all names in a text, in lower case."""
    return {part for mention in proper_names(text) for part in mention.name}


# ------------------------------------------------------------------ does the answer decline?


def _mask_trap(trap: str, answer: str) -> str:
    """Return the answer with ``that`` for the trap's value, which would count as new content of the answer.

    It is called on answers that do not state the trap's value as the answer.
    """
    text, spans = _locate_trap(trap, answer) if trap else (answer, [])
    if not spans:
        return answer
    for start, end in sorted(spans, reverse=True):
        text = f"{text[:start]}that{text[end:]}"
    return text


def _supposing_clause(answer: str, context: str) -> str:
    """Return the first clause that supposes a value (``it's probably X``), or an empty text if no clause does.

    A value is a typed one that the context does not have, a name or a quotation.
    """
    context_values = _typed_mentions(context)
    model = stored_model(MODEL)
    for clause in read_clauses(answer, context):
        if not _SUPPOSES.search(clause.text) or _NEGATION.search(clause.text):
            continue
        has_new_value = any(not any(m.same(v) for v in context_values) for m in _typed_mentions(clause.text))
        has_name = not {"NAME", "QUOTE"}.isdisjoint(clause.classes)
        if not (has_new_value or has_name):
            continue
        clause_declines = model.score(features_of(clause.text, context)) >= SENTENCE_LOGITS * model.scale
        if not clause_declines:
            return clause.text
    return ""

"""Trains the model that decides whether a wording commits to its value, and writes the list of words that it knows.

Texts are phrasings with placeholders (``development.v7.toml.xz`` and others in its folder) and whole answers
(``answers.v1.jsonl.xz``). A phrasing is filled with values of the questions in ``questions.v1.jsonl.xz`` and read as
the judge reads answers; an answer that the judge decides before it weighs the wording is not an example.
"""

from __future__ import annotations

import random
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from memarena.judging.calibration.synthetic_answers import AnswerContext, fill_template
from memarena.judging.kinds.open_answer import wording_of
from memarena.judging.typed_value import commitment
from memarena.judging.typed_value.commitment import MODEL, WORDS, Wording
from memarena.log.records import EvidenceSession, Question
from memarena_dataset.gold import Gold
from memarena_dataset.values import Value
from memarena_dataset.values.words import words

from judge_training.patterns import wordings
from judge_training.task import DATA, MODELS, Example, Settings, text_of
from judge_training.training import train
from judge_training.typed_answers import TypedAnswer, answers, questions

TEXTS = DATA / "commitment"
SETTINGS = Settings(inverse_penalty=0.3, least_texts=3, least_weight=0.02, threshold=-0.35)
_BY_HAND = 4.0
"""Weight of an answer that was written as a whole; a single phrasing weighs 1."""
_ROLES = 2.0
"""Weight of a phrasing of the file by roles."""
_FROM = 4
"""Phrasings, at least, that have a word which the model knows; of whole answers, twice as many."""
_FILES = ("development.v7.toml.xz", "wordings.v1.toml.xz", "pairs.v1.toml.xz", "verbose.v1.toml.xz")
_QUESTION_TEXTS = {
    "former": "Please give the former answer, not the present one, as to {q}",
    "current": "There was a revision as to {q} What is correct at present?",
}
_PLACEHOLDER = re.compile(r"\{\w+\}")
_OTHERS = ("Xavier", "Amara", "Nikolai", "Beatriz", "Tomas", "Ingrid", "Farid", "Noor")
"""Names for other people, if the evidence has none."""
_ROLES_FILE = "roles.v1.toml.xz"
_UNTYPED = "ends_untyped"

QuestionWithEvidence = tuple[Question, tuple[EvidenceSession, ...]]


@dataclass(frozen=True)
class Phrasing:
    """A template with its truth. ``version`` is the version that the question asks for, empty for none."""

    template: str
    right: bool
    shape: str
    version: str = ""
    weight: float = 1.0
    untyped: bool = False


@cache
def phrasings() -> tuple[Phrasing, ...]:
    """Return every phrasing of the files, with each alternative in brackets as a separate phrasing."""
    return (*_pattern_phrasings(), *_role_phrasings())


def _pattern_phrasings() -> Iterator[Phrasing]:
    """Yield the phrasings of the files of patterns; a pattern's wordings share its weight."""
    for name in _FILES:
        table = tomllib.loads(text_of(TEXTS / name))
        for side in ("right", "wrong"):
            for shape, kinds in table[side].items():
                for pattern in (p for patterns in kinds.values() for p in patterns):
                    texts = wordings(pattern)
                    for text in texts:
                        yield Phrasing(text, side == "right", shape, weight=len(texts) ** -0.5)


def _role_phrasings() -> Iterator[Phrasing]:
    """Yield the phrasings of the file by roles, of which some are for questions that ask for a version."""
    table = tomllib.loads(text_of(TEXTS / _ROLES_FILE))
    for head, sides in table.items():
        version = head if head in _QUESTION_TEXTS else ""
        for side, kinds in sides.items():
            for kind, templates in kinds.items():
                for template in templates:
                    shape = "plain" if version else head
                    yield Phrasing(template, side == "right", shape, version, _ROLES, kind == _UNTYPED)


def word_list() -> list[str]:
    """Return the words that the model knows: those in several phrasings or in several whole answers."""
    by_phrasings: Counter[str] = Counter()
    for phrasing in phrasings():
        by_phrasings.update(set(words(_PLACEHOLDER.sub(" ", phrasing.template))))
    by_answers = Counter(w for answer in whole_answers() for w in set(words(answer.answer)) - _of_values(answer))
    frequent = {w for w, n in by_phrasings.items() if n >= _FROM} | {w for w, n in by_answers.items() if n >= 2 * _FROM}
    return sorted(w for w in frequent if (w.isalpha() and len(w) > 1) or w in ("a", "i"))


def _of_values(answer: TypedAnswer) -> set[str]:
    gold = answer.question.instance.gold.model_dump_json().lower()
    return {w for w in words(answer.answer) if re.search(rf"\b{re.escape(w)}\b", gold)} | set(
        words(answer.question.question_text)
    )


def whole_answers() -> list[TypedAnswer]:
    """Return the answers that people wrote to the questions."""
    return answers(TEXTS / "answers.v1.jsonl.xz", questions(TEXTS / "questions.v1.jsonl.xz"))


def examples(rows: Sequence[TypedAnswer] | None = None, seeds: int = 1) -> list[Example]:
    """Return all examples. ``rows`` are the whole answers to learn from; None: all of them."""
    result = [e for seed in range(seeds) for e in _from_phrasings(seed)]
    for answer in whole_answers() if rows is None else rows:
        wording = wording_of(answer.question, answer.evidence, answer.answer)
        if wording is not None:
            result.append(_example(wording, answer.right, _BY_HAND, answer.answer))
    return result


def _example(wording: Wording, right: bool, weight: float, text: str) -> Example:
    return Example(frozenset(wording.features()), right, weight, text)


@cache
def _from_phrasings(seed: int) -> tuple[Example, ...]:
    return tuple(_fill_phrasings(seed))


def _fill_phrasings(seed: int) -> Iterator[Example]:
    """Yield an example of each phrasing, filled for a random question of its shape, in up to four tries."""
    carriers = _carriers()
    pool = [v for pairs in carriers.values() for q, _ in pairs for v in _values(q.instance.gold)]
    table = tomllib.loads(text_of(TEXTS / _FILES[0]))
    for phrasing in phrasings():
        rng = random.Random(f"{seed}/{phrasing.template}/{phrasing.shape}/{phrasing.version}")  # noqa: S311 (no secret)
        for _ in range(4):
            question, evidence = rng.choice(carriers[phrasing.shape])
            gold = question.instance.gold
            if phrasing.untyped and gold.values[0].type != "term":
                continue
            question = _ask_for_version(question, phrasing.version)
            context = AnswerContext(table["things"], table["say"], question, evidence, pool, rng)
            answer = fill_template(_with_names(phrasing.template, question, evidence, rng), context, gold)
            wording = None if answer is None else wording_of(question, evidence, answer)
            if wording is not None and answer is not None:
                yield _example(wording, phrasing.right, phrasing.weight, answer)
                break


def _carriers() -> Mapping[str, list[QuestionWithEvidence]]:
    """Group the questions whose typed values phrasings can be filled with by shape."""
    carriers: dict[str, list[QuestionWithEvidence]] = {"plain": [], "counterfactual": [], "conflict": []}
    for question, evidence in questions(TEXTS / "questions.v1.jsonl.xz").values():
        gold = question.instance.gold
        typed = _values(gold) and all(v.type not in ("order", "set") for v in _values(gold))
        shape = gold.kind if gold.kind in carriers else "plain"
        if typed and gold.kind != "cloze":
            carriers[shape].append((question, evidence))
    return carriers


def _values(gold: Gold) -> tuple[Value, ...]:
    return gold.stated_values


def _ask_for_version(question: Question, version: str) -> Question:
    if not version:
        return question
    text = _QUESTION_TEXTS[version].replace("{q}", question.question_text)
    return question.model_copy(update={"question_text": text})


def _with_names(template: str, question: Question, evidence: Sequence[EvidenceSession], rng: random.Random) -> str:
    """Return the template with people's names in its placeholders."""
    text = question.question_text
    speakers = sorted({t.speaker.removesuffix("'s assistant") for s in evidence for t in s.turns})
    subject = next((name for name in speakers if name in text), "")
    others = [n.split()[0] for n in speakers if n not in (subject, question.asker_name)] or list(_OTHERS)
    gold = question.instance.gold
    names = {
        "me": subject.split()[0] if subject else "you",
        "her": rng.choice([*others, *_OTHERS]),
        "src": (getattr(gold, "source_agent", None) or "One").split()[0],
        "con": (getattr(gold, "conflicting_agent", None) or "another").split()[0],
    }
    if names["me"] == "you":
        template = (
            template.replace("{me}'s case", "your case").replace("{me}'s", "yours").replace("{me} has", "you have")
        )
    for name, person in names.items():
        template = template.replace("{" + name + "}", person)
    return template[0].upper() + template[1:] if template[0] != "{" else template


def write_words() -> int:
    """Write the list of known words and return its length."""
    known = word_list()
    head = "# Words that the model of commitment knows; `python -m judge_training.commitment` writes this file.\n"
    target = MODELS.parent / "tables" / WORDS
    target.write_text(head + "\n".join(known) + "\n", encoding="utf-8")
    commitment.known_words.cache_clear()
    return len(known)


def main() -> None:
    """Write the list of words and the model."""
    count = write_words()
    learned = train(examples(), SETTINGS)
    content = learned.to_bytes()
    (MODELS / f"{MODEL}.npz").write_bytes(content)
    sys.stdout.write(f"{count} words, {len(learned.weights)} features, {len(content):,} bytes, {learned.sha256[:12]}\n")


__all__ = ["MODEL", "SETTINGS", "examples", "whole_answers", "write_words"]

if __name__ == "__main__":
    main()

"""Reads files of labelled answers to questions with typed gold, and computes the judge's errors on them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from memarena.judging import Judgment, judge
from memarena.judging.typed_value.question import open_question
from memarena.log.records import EvidenceSession, EvidenceTurn, Question
from memarena_dataset.gold import Gold, OpenGold
from memarena_dataset.model import Family, Instance
from pydantic import TypeAdapter

from judge_training.rates import Rate
from judge_training.task import text_of

_GOLD: TypeAdapter[Gold] = TypeAdapter(Gold)


@dataclass(frozen=True)
class TypedAnswer:
    """A labelled answer. ``ordinary`` marks plain wordings, as opposed to the hard classes."""

    question: Question
    evidence: tuple[EvidenceSession, ...]
    answer: str
    right: bool
    kind: str = ""
    ordinary: bool = True

    @property
    def family(self) -> str:
        """The question's family; questions for a version of a value count as a separate family."""
        family = self.question.instance.family.value
        versions = is_open(self.question) and open_question(self.question, self.evidence).version is not None
        return f"{family}, versions" if versions else family

    def judged(self) -> Judgment:
        """Return the judge's judgment with its reason."""
        return judge(self.question, self.evidence, self.answer, self.answer)


def question_of(row: Mapping[str, Any]) -> tuple[Question, tuple[EvidenceSession, ...]]:
    """Return a row of ``questions.v1.jsonl.xz`` as records. Raises KeyError if the row lacks a field."""
    sessions = tuple(
        EvidenceSession(
            session_id=f"s{n}",
            started_at=session["started_at"],
            place=session["place"],
            turns=tuple(EvidenceTurn(turn_id=f"s{n}_t{m}", **_turn(t)) for m, t in enumerate(session["turns"])),
        )
        for n, session in enumerate(row["evidence"])
    )
    instance = Instance(
        instance_id=row.get("id", "q"),
        family=Family(row["family"]),
        query=row["question"],
        ego_agent_id="ego",
        gold=_GOLD.validate_python(row["gold"]),
        evidence_session_ids=tuple(s.session_id for s in sessions),
    )
    question = Question(
        instance=instance,
        question_text=row["question"],
        day=1,
        asked_at=row["asked_at"],
        requester_kind="owner",
        ego_name=row["ego_name"],
        asker_name=row.get("asker_name", row["ego_name"]),
    )
    return question, sessions


def _turn(turn: Mapping[str, str]) -> dict[str, str]:
    return {name: turn[name] for name in ("speaker", "said_at", "text")}


@cache
def questions(path: Path) -> Mapping[str, tuple[Question, tuple[EvidenceSession, ...]]]:
    """Return every question of a file with its evidence, by id."""
    rows = (json.loads(line) for line in text_of(path).splitlines())
    return {row["id"]: question_of(row) for row in rows}


def answers(path: Path, of: Mapping[str, tuple[Question, tuple[EvidenceSession, ...]]]) -> list[TypedAnswer]:
    """Return every answer of a file to one of the questions."""
    rows = (json.loads(line) for line in text_of(path).splitlines())
    return [
        TypedAnswer(*of[row["id"]], row["answer"], row["right"], row["kind"], row["ordinary"])
        for row in rows
        if row["id"] in of
    ]


@dataclass(frozen=True)
class Errors:
    """Errors on a set: right answers called wrong, wrong ones called right."""

    false_rejects: Rate
    false_accepts: Rate


def is_covered(question: Question) -> bool:
    """Whether these rates cover a question: options and open answers."""
    return question.instance.gold.kind == "cloze" or is_open(question)


def is_open(question: Question) -> bool:
    """Whether a question has an open answer."""
    return isinstance(question.instance.gold, OpenGold)


def errors(outcomes: Sequence[tuple[TypedAnswer, bool]]) -> Errors:
    """Compute the errors over answers, each with whether the judge called it right."""
    right = [called_right for answer, called_right in outcomes if answer.right]
    wrong = [called_right for answer, called_right in outcomes if not answer.right]
    return Errors(Rate(right.count(False), len(right)), Rate(wrong.count(True), len(wrong)))


def by_family(rows: Sequence[TypedAnswer]) -> Iterator[tuple[str, str, Errors]]:
    """Yield family, ``ordinary`` or ``all`` wordings, and errors; ``all`` families come last."""
    outcomes = [(answer, answer.judged().correct) for answer in rows]
    families = [*sorted({answer.family for answer in rows}), "all"]
    for family in families:
        for only in ("ordinary", "all"):
            chosen = [(o, w) for o, w in outcomes if family in (o.family, "all") and (only == "all" or o.ordinary)]
            if chosen:
                yield family, only, errors(chosen)


def print_rates(rows: Sequence[TypedAnswer]) -> None:
    """Print the errors as a Markdown table."""
    sys.stdout.write("| family | answers | false rejects | false accepts |\n| --- | --- | --- | --- |\n")
    for family, only, rates in by_family([answer for answer in rows if is_covered(answer.question)]):
        sys.stdout.write(f"| {family} | {only} | {rates.false_rejects} | {rates.false_accepts} |\n")


if __name__ == "__main__":
    print_rates(answers(Path(sys.argv[2]), questions(Path(sys.argv[1]))))

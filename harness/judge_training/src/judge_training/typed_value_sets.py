"""Measures the value judge on the independent sets of typed answers, and what each of its rules contributes.

``python -m judge_training.typed_value_sets rates`` prints the judge's errors, ``ablate`` those with one rule switched
off at a time: a rule stays if some set gets worse by more than 0.3 points without it. The model is not retrained.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from memarena.judging.kinds import open_answer
from memarena.judging.typed_value import claims, compare
from memarena.log.records import EvidenceSession, EvidenceTurn
from memarena_dataset.values import terms

from judge_training.blind_values import blind_values
from judge_training.task import INDEPENDENT, text_of
from judge_training.typed_answers import Errors, TypedAnswer, answers, errors, is_covered, question_of, questions

KEPT_FROM = 0.003
"""A rule stays if a set gets worse by more than this share without it."""
_DAY = "2025-01-09T09:00:00Z"

Patch = tuple[Any, str, Any]


@cache
def independent() -> Mapping[str, Sequence[TypedAnswer]]:
    """Return the sets from which nothing was learned, by name."""
    return {
        "assistant_answers": assistant_answers("v1"),
        "assistant_answers_second": assistant_answers("v2"),
        "assistant_answers_third": assistant_answers("v3"),
        "assistant_answers_fourth": assistant_answers("v4"),
        "values_blind": blind_answers(INDEPENDENT / "values_blind.v1.jsonl.xz"),
        "values_blind_extra": blind_answers(INDEPENDENT / "values_blind_extra.v1.jsonl.xz"),
        "labelled_llm_answers": labelled_answers(INDEPENDENT / "labelled_llm_answers.v1.jsonl.xz"),
    }


def assistant_answers(version: str) -> list[TypedAnswer]:
    """Return a set in the style of large and small assistants, written from questions, gold and evidence only."""
    by_id = questions(INDEPENDENT / f"assistant_questions.{version}.jsonl.xz")
    return [
        answer
        for answer in answers(INDEPENDENT / f"assistant_answers.{version}.jsonl.xz", by_id)
        if is_covered(answer.question)
    ]


def blind_answers(path: Path) -> list[TypedAnswer]:
    """Return a blind set. The texts of all right answers to a question serve as its evidence.

    Its conflicts are asked in time order, which no gold of ours has: wrong answers to them are left out.
    """
    result = []
    for blind in blind_values(path):
        if blind.sort == "conflict" and not blind.right:
            continue
        turns = tuple(
            EvidenceTurn(turn_id=f"t{n}", speaker="Maya Chen", text=text, said_at=_DAY)
            for n, text in enumerate(blind.said)
        )
        row: dict[str, Any] = {
            "family": blind.family.value,
            "question": blind.question,
            "asked_at": _DAY,
            "ego_name": "Ines Okafor",
            "gold": blind.gold.model_dump(mode="json"),
            "evidence": [],
        }
        session = EvidenceSession(session_id="s0", started_at=_DAY, turns=turns)
        result.append(TypedAnswer(question_of(row)[0], (session,), blind.answer, blind.right, blind.sort))
    return result


def labelled_answers(path: Path) -> list[TypedAnswer]:
    """Return real answers of a small model, labelled by hand."""
    rows = [json.loads(line) for line in text_of(path).splitlines()]
    return [TypedAnswer(*question_of(row), row["answer"], row["right"], "model") for row in rows]


# ------------------------------------------------------------------ rules, one at a time


def _nothing(*_: object) -> None:
    return None


def _never(*_: object) -> bool:
    return False


def _as_it_is(_: object, value: Any) -> Any:
    return value


RULES: Mapping[str, Patch] = {
    "the end of an answer counts": (claims, "_final", _as_it_is),
    "whose value it is": (claims, "_holder", _nothing),
    "which version it is": (claims, "version_of", _nothing),
    "which matter it is about": (claims, "_matter", _nothing),
    "what is said to be probable, or next to it": (claims, "_without_asides", list),
    "what is denied": (claims, "_denied", _never),
    "who said which version": (compare, "_swapped", _never),
    "other values that are explained": (compare, "_is_explained", _never),
    "a speaker's name before the answer": (open_answer, "without_speaker", lambda text, _: text),
    "slips of one letter": (terms, "_slip", _never),
    "the model of commitment": (compare, "commits", lambda _: True),
}
"""Each rule by the function that implements it and the function that replaces it."""


@contextmanager
def without(rule: Patch) -> Iterator[None]:
    """Judge without a rule inside the block."""
    module, name, replacement = rule
    original: Callable[..., Any] = getattr(module, name)
    setattr(module, name, replacement)
    try:
        yield
    finally:
        setattr(module, name, original)


def measured() -> Mapping[str, Errors]:
    """Return the errors on every independent set, with the judge as it is now."""
    return {
        name: errors([(answer, answer.judged().correct) for answer in rows]) for name, rows in independent().items()
    }


def _share(rates: Errors) -> float:
    both = (rates.false_rejects, rates.false_accepts)
    return sum(rate.errors for rate in both) / sum(rate.cases for rate in both)


def _print_rates() -> None:
    _say("| set | false rejects | false accepts |\n| --- | --- | --- |")
    for name, rates in measured().items():
        _say(f"| {name} | {rates.false_rejects} | {rates.false_accepts} |")


def _print_ablation() -> None:
    """Print the errors without each rule, and whether the rule stays."""
    all_rules = measured()
    _say("| left out | " + " | ".join(all_rules) + " | stays |\n| --- |" + " --- |" * (len(all_rules) + 1))
    _say("| nothing | " + " | ".join(f"{_share(without_rule):.1%}" for without_rule in all_rules.values()) + " | |")
    for name, rule in RULES.items():
        with without(rule):
            without_rule = measured()
        worse = max(_share(without_rule[set_name]) - _share(all_rules[set_name]) for set_name in all_rules)
        stays = "yes" if worse > KEPT_FROM else "no"
        _say(f"| {name} | " + " | ".join(f"{_share(rates):.1%}" for rates in without_rule.values()) + f" | {stays} |")


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m judge_training.typed_value_sets", description=__doc__)
    parser.add_argument("command", choices=("rates", "ablate"))
    if parser.parse_args().command == "rates":
        _print_rates()
    else:
        _print_ablation()

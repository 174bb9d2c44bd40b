"""What is seen in a clause is shared between questions: only what has no bearing on it is left out of a question."""

from __future__ import annotations

import itertools

import pytest
from memarena.text import stance_features
from memarena.text.stance_reading import beside, read_clauses, read_question

QUESTIONS = (
    "What breed is Ines's dog?",
    "Who told you about the kiln from Porto?",
    "Where does Maya keep her spare key?",
    "How much did Tomas pay for the dog?",
    "When does the kiln arrive?",
    "Bob wants to know: did she say why the kiln was sold?",
)
ANSWERS = (
    "I don't know what breed the dog is, but it was sold in March.",
    "It was Maya Chen: she paid 340 euros for the kiln.",
    "I can't share that with you, since the key is private.",
    "The notes do not mention the breed. See the context.",
)


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_clause_is_seen_as_beside_the_whole_question(question: str) -> None:
    asked = read_question(question)
    see_one = stance_features._see.__wrapped__
    for answer, first, last in itertools.product(ANSWERS, (True, False), (True, False)):
        for clause in read_clauses(answer, asked.words):
            whole = see_one(clause, asked, first=first, last=last)
            part = see_one(clause, beside(asked, clause), first=first, last=last)
            assert vars(part) == vars(whole)


def test_questions_that_share_words_with_a_clause_are_told_apart() -> None:
    clause = read_clauses("The dog is a beagle", False)[0]
    seen = {beside(read_question(question), clause) for question in QUESTIONS}
    assert len(seen) == len(QUESTIONS)
    same = {beside(read_question(f"Where is the {thing}?"), clause) for thing in ("kiln", "loom", "lathe")}
    assert len(same) == 1

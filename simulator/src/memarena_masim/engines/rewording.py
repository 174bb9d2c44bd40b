"""Has a model reword questions; accepts a rewording only if it keeps the names and subject and quotes no evidence."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

from memarena_dataset.checks.overlap import MAX_JACCARD, function_words, jaccard
from memarena_dataset.values.generous import numbers_in
from memarena_dataset.values.phrases import normal, phrase_occurs, tokens_of

from memarena_masim.engines.endpoint import Endpoint, NoReplyError
from memarena_masim.engines.model import Question, Rewordings
from memarena_masim.engines.prompting import QUESTION_SCHEMA, question_prompt
from memarena_masim.engines.replies import read_text
from memarena_masim.engines.tally import Tally

MAX_TOKENS = 160
_ID = re.compile(r"\b(?:[a-z]+_[a-z0-9_]+|[a-z]{2,}\d{3,})\b")
_QUOTE = re.compile(r"[\"“]([^\"”]+)[\"”]")
_LONGEST = 2.5
"""Maximum length of a rewording, as a multiple of the question's words; four more words are allowed."""


def fault_of(question: Question, text: str) -> str | None:
    """Return why a rewording is refused, as a key; None if it is accepted."""
    words = normal(text)
    faults = {
        "too_long": len(text.split()) > _LONGEST * len(question.text.split()) + 4,
        "loses_a_name": not all(phrase_occurs(name, words) for name in question.names),
        "loses_what_it_asks_for": not all(
            any(f" {token} " in words for token in _content(anchor)) for anchor in question.anchors
        ),
        "loses_a_quotation": any(normal(quoted) not in words for quoted in _QUOTE.findall(question.text)),
        "names_an_id": _ID.search(text) is not None,
        "states_the_gold": question.gives_away(text),
        "adds_a_number": bool(numbers_in(text) - numbers_in(question.text) - {1.0}),
    }
    return next((fault for fault, holds in faults.items() if holds), None) or _overlap(question, text)


def _overlap(question: Question, text: str) -> str | None:
    """Return the fault of a rewording that has no content, or repeats its evidence as no question may; else None."""
    if _name_words(question).issuperset(_content(text)):
        return "says_nothing"
    return "repeats_the_evidence" if jaccard(text, question.sources) >= MAX_JACCARD else None


def _name_words(question: Question) -> frozenset[str]:
    return frozenset(token for name in question.names for token in tokens_of(name))


async def reword_all(endpoint: Endpoint, questions: Sequence[Question]) -> Rewordings:
    """Return the model's wording of every question for which it is accepted, and counts of the others by reason."""
    tally, texts = Tally(), dict[str, str]()

    async def reword(question: Question) -> None:
        tally.add("questions", "asked")
        text = await _ask_model(endpoint, question)
        fault = "no_reply" if text is None else "unchanged" if text == question.text else fault_of(question, text)
        if text is None or fault is not None:
            tally.add("questions/kept_as_they_were", fault or "no_reply")
        else:
            tally.add("questions", "reworded")
            texts[question.question_id] = text

    async with asyncio.TaskGroup() as group:
        for question in questions:
            group.create_task(reword(question))
    return Rewordings(texts, {**tally.as_json(), **endpoint.take_counts()})


async def _ask_model(endpoint: Endpoint, question: Question) -> str | None:
    messages = question_prompt(question.text, question.names, question.anchors)
    try:
        reply = await endpoint.complete(messages, MAX_TOKENS, QUESTION_SCHEMA)
    except NoReplyError:
        return None
    return read_text(reply.text, "question")


def _content(text: str) -> list[str]:
    return [word for word in tokens_of(text) if word not in function_words()]

"""Reads a judge's reply strictly: typed fields, this call's check mark, a quote of words that the answer has.

A judge may copy text of the answer, which can hold a ready reply: only an object with the mark of this call counts. The
quote shows that the answer, and not the key or the conversations, has the words on which a favourable verdict rests.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Literal

from memarena_dataset.values.words import squad_tokens
from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool, StrictStr, ValidationError

from memarena.log.records import BehaviourLabel, Bucket, JudgeTask

_THOUGHT = re.compile(r"<think>.*?</think>", re.DOTALL)
"""Thinking in a judge's output, in which it may draft a reply."""
_REASON_CHARACTERS = 600
"""Characters of a reason that the log keeps."""


class ReplyError(Exception):
    """A reply that cannot be used; the message says what is wrong with it, for the judge and the log."""


class QuoteError(ReplyError):
    """A reply whose quote is not from the answer. Only some replies need a quote (:func:`needs_quote`)."""


def _refuse_repeated_fields(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return the object. Raises ReplyError if it has a field twice, since parsers differ in which of them counts."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ReplyError("an object names a field twice")
    return fields


_DECODER = json.JSONDecoder(object_pairs_hook=_refuse_repeated_fields)


class Reply(BaseModel):
    """The fields that all replies have. ``check`` repeats the mark of the call, which no answer can know."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    check: StrictStr
    quote: StrictStr
    reason: StrictStr

    @property
    def why(self) -> str:
        """The reason as one line of bounded length."""
        return " ".join(self.reason.split())[:_REASON_CHARACTERS]


class AnswerReply(Reply):
    """Whether an open answer is right."""

    correct: StrictBool
    score: Annotated[float, Field(ge=0, le=1)]


_POINTS = {"yes": 1.0, "partly": 0.5, "no": 0.0}


class RubricReply(Reply):
    """How far an answer fulfils the sentences of a rubric, by their numbers from 1. Some forbid words: no quotes."""

    quote: StrictStr = ""
    sentences: dict[str, Literal["yes", "partly", "no"]]

    @property
    def points(self) -> tuple[float, ...]:
        """1 (yes), 0.5 (partly) or 0 (no) in the order of the sentences, as BEAM gives them."""
        return tuple(_POINTS[self.sentences[str(number)]] for number in range(1, len(self.sentences) + 1))


class BehaviourReply(Reply):
    """How a D6 answer behaves."""

    label: BehaviourLabel


class BucketReply(Reply):
    """On what ground a fact was kept."""

    bucket: Bucket


_MODELS: dict[JudgeTask, type[Reply]] = {
    "answer": AnswerReply,
    "behaviour": BehaviourReply,
    "bucket": BucketReply,
    "rubric": RubricReply,
}


def reply_schema(task: JudgeTask, check: str, sentences: int = 0) -> dict[str, JsonValue]:
    """Return the JSON schema of a reply, for servers that constrain their output.

    All fields are required, and no others allowed. The reason comes first, so that it influences the decision.
    ``sentences`` is how many a rubric has.
    """
    if task == "rubric":
        words_by_number = {str(number): _enum("yes", "partly", "no") for number in range(1, sentences + 1)}
        return _object({"check": _enum(check), "reason": {"type": "string"}, "sentences": _object(words_by_number)})
    decides: dict[JudgeTask, dict[str, JsonValue]] = {
        "answer": {"correct": {"type": "boolean"}, "score": {"type": "number"}},
        "behaviour": {"label": _enum("disclose_correct", "disclose_wrong", "refuse", "dont_know", "other")},
        "bucket": {"bucket": _enum("no_access", "dont_know", "other")},
    }
    text: JsonValue = {"type": "string"}
    return _object({"check": _enum(check), "reason": text, **decides[task], "quote": text})


def _object(properties: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def _enum(*words: str) -> dict[str, JsonValue]:
    return {"type": "string", "enum": list(words)}


def read_reply(task: JudgeTask, text: str, check: str, answer: str, sentences: int = 0) -> Reply:
    """Return the parsed reply.

    Args:
        task: the task of the question.
        text: the judge's whole output. A JSON object may be anywhere in it; only objects with this call's mark count.
        check: this call's mark.
        answer: the answer as the judge saw it, from which ``quote`` has to come.
        sentences: how many a rubric has, each of which needs its yes, partly or no; 0 for a question without one.

    Raises:
        ReplyError: the reply is unusable: no object, wrong types, no mark, fields that occur twice or contradict.
        QuoteError: only the quote is wrong: the answer does not have its words.
    """
    objects = _objects(_THOUGHT.sub("", text))
    if not objects:
        raise ReplyError("it holds no JSON object")
    marked = [o for o in objects if o.get("check") == check]
    if not marked:
        raise ReplyError("its field check is not the text asked for")
    if any(o != marked[0] for o in marked):
        raise ReplyError("it holds several objects that differ")
    try:
        reply = _MODELS[task].model_validate(marked[0])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise ReplyError(f"field {'.'.join(map(str, first['loc']))}: {first['msg'].lower()}") from error
    _check_consistent(reply, sentences)
    if needs_quote(reply) and not _is_from(reply.quote, answer):
        raise QuoteError("field quote: expected words of what the assistant said")
    return reply


def _objects(text: str) -> list[dict[str, JsonValue]]:
    """Return every outermost JSON object in the text. Raises ReplyError if an object has a field twice."""
    objects: list[dict[str, JsonValue]] = []
    position = text.find("{")
    while position >= 0:
        try:
            value, end = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            objects.append(value)
        position = text.find("{", end)
    return objects


def _check_consistent(reply: Reply, sentences: int) -> None:
    if isinstance(reply, RubricReply) and set(reply.sentences) != {str(n) for n in range(1, sentences + 1)}:
        raise ReplyError(
            f"field sentences: expected yes, partly or no for each number from 1 to {sentences}, and no other"
        )
    if isinstance(reply, AnswerReply) and reply.score == (0.0 if reply.correct else 1.0):
        raise ReplyError("fields correct and score contradict each other")


def needs_quote(reply: Reply) -> bool:
    """Whether the reply has to quote the answer: a verdict in its favour, or a label other than ``other``."""
    if isinstance(reply, AnswerReply):
        return reply.correct
    return not (
        isinstance(reply, RubricReply)
        or (isinstance(reply, BehaviourReply) and reply.label == "other")
        or (isinstance(reply, BucketReply) and reply.bucket == "other")
    )


def _is_from(quote: str, answer: str) -> bool:
    """Whether all words of the quote are words of the answer, whatever their case and punctuation."""
    quoted = squad_tokens(quote)
    return bool(quoted) and set(quoted) <= set(squad_tokens(answer))

"""The extractive reader's whole wit: the sentence of the context that shares most with the question. No model.

Some questions are not after a sentence but after when, where or by whom it was said, or after several sentences held
together; extractive_kinds.py tells which, and what a prompt shows beside the words (times, settings, speakers) answers
them. The same prompt always gives the same answer.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files

from memarena_answering import ContextItem, Message, PromptParts, split_prompt

from memarena.readers.extractive_answers import composed
from memarena.readers.extractive_kinds import QUESTION_FILE, wanted
from memarena.readers.extractive_question import KIND_FILE, REQUEST_FILE
from memarena.readers.extractive_related import KINDRED_FILE, RELATED_FILE
from memarena.readers.extractive_scoring import Index, Sentence, index_of, sentences
from memarena.readers.extractive_sharing import SHARING_FILE, may_hear
from memarena.readers.extractive_stems import IRREGULAR_FILE, STOPWORD_FILE, WORD, content_words, stem

__all__ = ["DEFAULT_WINDOW_TOKENS", "MODEL", "UNKNOWN", "Found", "answer", "content_words", "data_files", "options",
           "read", "sentences", "stem"]  # fmt: skip

MODEL = "extractive"
DEFAULT_WINDOW_TOKENS = 16_384

UNKNOWN = "I do not know."
UNKNOWN_REASON = "Nothing in the context is about it."
WITHHELD = "I may not share that."
WITHHELD_REASON = "Who told it asked to keep it from others."

_REASON_CHARS = 160

_LETTER = r"[(\[]?[A-Z][)\].:]\s"
_OPTION = re.compile(
    rf"(?:(?<=\s)|\A)(?={_LETTER})[(\[]?(?P<letter>[A-Z])[)\].:]\s+(?P<text>.+?)\s*[;,]?(?=\s{_LETTER}|\n|\Z)"
)


def options(question: str) -> tuple[str, dict[str, str]]:
    """The question without its lettered options, and the options by letter; none unless they run A, B, …."""
    found = list(_OPTION.finditer(question))
    letters = [match["letter"] for match in found]
    start = next((i for i, letter in enumerate(letters) if letters[i : i + 2] == ["A", "B"]), None)
    if start is None:
        return question, {}
    run = [match for place, match in enumerate(found[start:]) if match["letter"] == chr(ord("A") + place)]
    return question[: run[0].start()], {match["letter"]: match["text"].strip() for match in run}


def data_files() -> dict[str, str]:
    """SHA-256 (hex) of every file that can decide an answer of the extractive reader."""
    names = (
        STOPWORD_FILE,
        IRREGULAR_FILE,
        QUESTION_FILE,
        KIND_FILE,
        REQUEST_FILE,
        RELATED_FILE,
        KINDRED_FILE,
        SHARING_FILE,
    )
    read_bytes = {name: files(__package__).joinpath(name).read_bytes() for name in names}
    return {f"memarena/readers/{name}": hashlib.sha256(data).hexdigest() for name, data in read_bytes.items()}


@dataclass(frozen=True, slots=True)
class Found:
    """An answer and what it rests on."""

    answer: str
    reason: str

    def as_json(self) -> str:
        """The reply as a reader gives it."""
        return json.dumps({"answer": self.answer, "reason": self.reason}, ensure_ascii=False)


def answer(parts: PromptParts) -> Found:
    """What the best sentence answers (of equals the shortest, then the first), or the option best supported."""
    index = index_of(parts.items)
    stem_text, shown = options(parts.question)
    if shown:
        return _option(index, index.scores(content_words(stem_text)), shown)
    found = composed(index, parts.items, parts.question, wanted(parts.question), parts.asked_by)
    if found is None:
        return Found(UNKNOWN, UNKNOWN_REASON)
    text, told = found
    if not all(may_hear(parts.asked_by, index.sentences, each) for each in told):
        return Found(WITHHELD, WITHHELD_REASON)
    return Found(text, _reason(told[0]))


def _reason(sentence: Sentence) -> str:
    return f"The context says: {sentence.text[:_REASON_CHARS]}"


def _option(index: Index, scores: Sequence[float], shown: dict[str, str]) -> Found:
    """The option whose words a sentence holds, weighed by what that sentence shares with the question."""
    best, letter, support = 0.0, "", 0
    for each, text in shown.items():
        words = content_words(text) or frozenset(word.lower() for word in WORD.findall(text))
        for place, sentence in enumerate(index.sentences):
            covered = len(words & sentence.words) / len(words) if words else 0.0
            if covered and (value := covered * (scores[place] + 0.01)) > best:
                best, letter, support = value, each, place
    if not letter:
        return Found(UNKNOWN, UNKNOWN_REASON)
    return Found(letter, _reason(index.sentences[support]))


def read(messages: Sequence[Message]) -> PromptParts:
    """Context and question of any chat: our own prompts exactly, others by their last question."""
    parts = split_prompt(messages)
    if parts is not None:
        return parts
    lines = [line for message in messages if message.role == "user" for line in message.content.splitlines()]
    asking = [place for place, line in enumerate(lines) if line.rstrip().endswith(("?", "？"))]
    at = asking[-1] if asking else max((place for place, line in enumerate(lines) if line.strip()), default=-1)
    question = lines[at] if lines else ""
    context = "\n".join(line for place, line in enumerate(lines) if place != at)
    return PromptParts((ContextItem(context),), question, "", "")

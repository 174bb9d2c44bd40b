"""Extracts context and question from prompts of any backend, for the extractive reader.

Prompts in the reference layout are parsed exactly. In others, the question is the text that a label, a tag or a JSON
key marks as such, else a paragraph of the last user message that ends with a question mark, wherever the context is.
The context is the text that is marked as such, in any message, else the rest of the user messages. A prompt without a
recognisable question or context is refused: with a guess, the result would measure the guess.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence

from memarena_answering import ContextItem, Message, PromptParts, split_prompt
from memarena_answering.assets import prompt_text
from pydantic import JsonValue

_REFUSAL = (
    "the extractive reader finds no {} in this prompt: another reader may, "
    "or --central-reading has it read over the items of Search"
)

_QUESTION_NAMES = r"(?:(?:the |current |final |user(?:'s)? |my )*(?:question|query)|user asks)"
_CONTEXT_NAMES = (
    r"(?:(?:the |retrieved |relevant |long-term |past |user |conversation |personal |known |here (?:are|is) )*"
    r"(?:context|memor(?:y|ies)|notes?|facts?|history|conversations?|passages?|documents?|excerpts?|knowledge|sessions?"
    r"|what (?:I|we|you) know)(?: about [^\n:]{1,40}| of [^\n:]{1,40}| so far| provided)?)"
)
_OTHER_NAMES = (
    r"(?:answer|(?:short |your |final )+answer|instructions?|rules?|task|output(?: format)?|response|reply|format"
    r"|(?:asked|current|today)[^\n:]{0,20}|date|now)"
)
_LABEL = (
    r"^[ \t]*(?:(?:#{{1,6}}|\*\*|__|=+|-{{3,}}|\[|<)[ \t]*)?(?P<label>{names})"
    r"(?:[ \t]*(?:\*\*|__|=+|-{{3,}}|\]|>))*[ \t]*(?P<colon>[:：]?)"
    r"[ \t]*(?:\*\*|__|=+|-{{3,}}|\]|>)*[ \t]*(?P<rest>.*)$"
)
"""A label of a part of a prompt in any usual form: ``## Question``, ``**Context:**``, ``[MEMORIES]``, ``Rules: …``."""


def _label(names: str) -> re.Pattern[str]:
    return re.compile(_LABEL.format(names=names), re.IGNORECASE)


_ANSWER_THIS = re.compile(
    r"^\s*(?:\w+ ){0,3}(?:answer|respond|reply)\b[^:?]{0,40}:\s*(?P<asked>.+\?)\s*$", re.IGNORECASE
)
"""A question after a request on one line: ``Please answer this: Where does she live?``."""
_TAG = re.compile(r"<(?P<slash>/?)(?P<name>[A-Za-z_]\w*)[^<>\n]*>")
_OPTION = re.compile(r"^\s*[(\[]?[A-Z][)\].:]\s")
_QUESTION, _CONTEXT, _OTHER = (_label(names) for names in (_QUESTION_NAMES, _CONTEXT_NAMES, _OTHER_NAMES))
_CLOSING = re.compile(r"^[ \t]*(?:</[^>]+>|[=\-#*]{3,}[ \t]*end\b.*)[ \t]*$", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]*(?:[-*•+]|\(?\d{1,3}[.)]|\[\d{1,3}\])[ \t]+")
_TIME = r"(?:[A-Z][a-z]+day,? )?\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}\S*)?"
_STAMP = re.compile(rf"^[ \t]*[\[(]?(?P<time>{_TIME})[\])]?[ \t]*[:|—–-]?[ \t]*(?P<rest>.*)$")
"""A line that begins with a date: ``[2025-01-04] She moved.``."""
_NOTHING = re.compile(
    r"^\W*(?:\(?no(?:ne|thing)?\b[^.:]{0,40}(?:found|retrieved|available|yet)?\W*|\(?empty\)?|n/a|\[\])$", re.IGNORECASE
)
"""A line that states that there is no context: ``No memories found.``, ``(none)``."""

_TEXT_KEYS = ("text", "memory", "content", "fact", "message", "value", "summary")
_TIME_KEYS = ("time", "date", "timestamp", "created_at", "datetime", "when")
_SPEAKER_KEYS = ("speaker", "author", "from", "name")
_QUESTION_KEYS = ("question", "query")
_CONTEXT_KEYS = ("context", "memories", "memory", "documents", "passages", "notes", "items", "history", "facts")


class PromptNotUnderstoodError(ValueError):
    """No question or no context is recognised in a prompt; the message says which, in one line."""


def read(messages: Sequence[Message]) -> PromptParts:
    """Return question and context of a chat. Raises PromptNotUnderstoodError if one of them is not recognised."""
    parts = split_prompt(messages)
    if parts is not None:
        return parts
    user = [_tags_apart(message.content) for message in messages if message.role == "user"]
    system = [_tags_apart(message.content) for message in messages if message.role == "system"]
    if user and (from_json := _of_json(user[-1], system)) is not None:
        return from_json
    question, remainder = _question("\n".join(user))
    if not question:
        raise PromptNotUnderstoodError(_REFUSAL.format("question"))
    named = [body for text in (*system, remainder) if (body := _named_context(text)) is not None]
    body = "\n".join(named) if named else "\n".join(line for line in remainder.splitlines() if not _OTHER.match(line))
    if not named and not body.strip():
        raise PromptNotUnderstoodError(_REFUSAL.format("context"))
    return PromptParts(tuple(_items(body)), question, "", _asker("\n".join((*system, remainder))))


def _tags_apart(text: str) -> str:
    """Return the text with each tag on a separate line, without its attributes."""
    return _TAG.sub(lambda tag: f"\n<{tag['slash']}{tag['name'].replace('_', ' ')}>\n", text)


def _of_json(text: str, system: Sequence[str]) -> PromptParts | None:
    """Parse a message that is one JSON object with a question; None if it is not."""
    try:
        content = json.loads(text)
    except ValueError:
        return None
    if not isinstance(content, dict):
        return None
    question = next((value for key in _QUESTION_KEYS if isinstance(value := content.get(key), str)), "")
    context = next((content[key] for key in _CONTEXT_KEYS if key in content), None)
    if context is None:
        context = next((body for text_part in system if (body := _named_context(text_part)) is not None), None)
    if not question or context is None:
        return None
    items = _items(context) if isinstance(context, str) else _json_items(context)
    return PromptParts(tuple(items), question, "", "")


def _question(text: str) -> tuple[str, str]:
    """Return the question and the text without it; an empty question if none is recognised.

    Marked questions come first, then requests such as "answer this: …", then any line with a question mark.
    """
    lines = text.splitlines()
    for at in range(len(lines) - 1, -1, -1):
        match = _QUESTION.match(lines[at])
        if match is None or not (match["colon"] or not match["rest"] or match["rest"].endswith("?")):
            continue
        end = at + 1
        question_lines = [match["rest"].strip()]
        # Options of a choice, or the text of a heading, follow on the next lines.
        while end < len(lines) and not any(p.match(lines[end]) for p in (_CONTEXT, _OTHER, _CLOSING)):
            answer_is_asked = any(question_lines) and (
                not lines[end].strip() or (question_lines[-1].endswith("?") and not _OPTION.match(lines[end]))
            )
            if answer_is_asked and not (end + 1 < len(lines) and _OPTION.match(lines[end + 1])):
                break
            question_lines.append(lines[end].strip())
            end += 1
        question = "\n".join(filter(None, question_lines))
        if question:
            return question, "\n".join((*lines[:at], *lines[end:]))
    for at in range(len(lines) - 1, -1, -1):
        if (direct := _ANSWER_THIS.match(lines[at])) is not None:
            return direct["asked"], "\n".join((*lines[:at], *lines[at + 1 :]))
    # The last such line if it is near the end, else the first: a prompt begins or ends with its question.
    asking = [at for at, line in enumerate(lines) if line.rstrip().endswith(("?", "？")) and not _spoken(line)]
    at = next((at for at in (asking[-1:] if asking and asking[-1] >= len(lines) - 4 else asking[:1])), -1)
    return (lines[at].strip(), "\n".join((*lines[:at], *lines[at + 1 :]))) if at >= 0 else ("", text)


def _spoken(line: str) -> bool:
    """Whether a line is part of a conversation or list, so that a question in it is not the prompt's own."""
    return bool(_BULLET.match(line) or _STAMP.match(line) or re.match(r"^\s*[^\s:][^:\n]{0,40}:\s+\S", line))


def _named_context(text: str) -> str | None:
    """Return the text under a label of context, up to the next label of another part; None without such a label."""
    body: list[str] | None = None
    inside = False
    for line in text.splitlines():
        match = _CONTEXT.match(line)
        if match and (match["colon"] or (not match["rest"] and line.strip()[0] in "#*_=-[<")):
            body, inside = [*(body or ()), match["rest"]], True
        elif inside and (_CLOSING.match(line) or _OTHER.match(line) or _QUESTION.match(line)):
            inside = False
        elif inside and body is not None:
            body.append(line)
    return None if body is None else "\n".join(body)


def _items(body: str) -> Iterator[ContextItem]:
    """Yield the items of a context: members of a JSON list, else lines; a line with only a date dates the next one."""
    start, end = body.find("["), body.rfind("]")
    if 0 <= start < end and body[start + 1 :].lstrip()[:1] in ('"', "{"):
        try:
            yield from _json_items(json.loads(body[start : end + 1]))
            return
        except ValueError:
            pass  # brackets in running text
    time = ""
    for line in body.splitlines():
        text = _BULLET.sub("", line).strip()
        stamp = _STAMP.match(text.lstrip("#=-* "))
        if stamp is not None:
            if not stamp["rest"].strip("=-*# "):
                time = stamp["time"]
                continue
            yield ContextItem(stamp["rest"], stamp["time"])
        elif text.strip("`=-*#<>") and not _NOTHING.match(text):
            yield ContextItem(text, time)


def _json_items(value: JsonValue) -> Iterator[ContextItem]:
    """Yield the strings, and the objects with a text, in any JSON value."""
    if isinstance(value, str):
        yield ContextItem(value)
    elif isinstance(value, list):
        for item in value:
            yield from _json_items(item)
    elif isinstance(value, dict):
        text = _first(value, _TEXT_KEYS)
        if text:
            speaker = _first(value, _SPEAKER_KEYS)
            yield ContextItem(f"{speaker}: {text}" if speaker else text, _first(value, _TIME_KEYS))
        else:
            for item in value.values():
                yield from _json_items(item) if isinstance(item, list | dict) else ()


def _first(value: Mapping[str, JsonValue], keys: Sequence[str]) -> str:
    return next((field for key in keys if isinstance(field := value.get(key), str) and field), "")


def _asker(text: str) -> str:
    """Return the asker as stated in the words of the reference layout; empty if not stated."""
    mark = re.escape(prompt_text().asked_by)
    match = re.search(rf"^{mark}(.+)$", text, re.MULTILINE)
    return match[1].strip() if match else ""

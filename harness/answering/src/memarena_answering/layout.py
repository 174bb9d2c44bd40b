"""Renders a prompt from context, question and asker, and parses such a prompt into its parts.

An item may hold any text, also lines that look like the marks of the prompt. Such lines are shifted by a space, so that
no item can end the context or pretend to be another item.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Literal

from memarena_answering.assets import control_text, inferred_system, prompt_text
from memarena_answering.model import Asker, ContextItem, Message, PromptStyle

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def single_line(text: str) -> str:
    """Return the text with every run of white space as one space."""
    return " ".join(text.split())


def readable_time(text: str) -> str:
    """Format an RFC 3339 moment or date as weekday, date and minute, in its own offset; other text as a single line."""
    text = single_line(text)
    try:
        if len(text) == len("2025-01-01"):
            day = date.fromisoformat(text)
            return f"{_WEEKDAYS[day.weekday()]} {day.isoformat()}"
        moment = datetime.fromisoformat(text)
    except ValueError:
        return text
    return f"{_WEEKDAYS[moment.weekday()]} {moment.date().isoformat()} {moment.hour:02}:{moment.minute:02}"


@cache
def _structure_line() -> re.Pattern[str]:
    """Return the pattern of the start of a line that could be read as a mark of the prompt, after any spaces."""
    words = prompt_text()
    marks = sorted({words.context_start[:3], words.context_end[:3], words.item_start})
    return re.compile(rf"^(?= *(?:{'|'.join(map(re.escape, marks))}))", re.MULTILINE)


@cache
def _shifted_line() -> re.Pattern[str]:
    """Return the pattern of the space that :func:`render_item` puts before such a line."""
    return re.compile(_structure_line().pattern.replace("^(?= *", "^ (?= *", 1), re.MULTILINE)


def render_item(item: ContextItem, style: PromptStyle) -> str:
    """Render an item for the context block; the result does not depend on other items."""
    time = readable_time(item.time)
    if style is PromptStyle.JSON_CONTEXT:
        fields = {"time": time, "text": item.text} if time else {"text": item.text}
        return json.dumps(fields, ensure_ascii=False)
    head = f"{prompt_text().item_start} {time}".rstrip()
    text = _structure_line().sub(" ", item.text.strip("\n"))
    return f"{head}\n{text}"


def join_items(rendered: Sequence[str], style: PromptStyle) -> str:
    """Return the body of the context block."""
    if style is PromptStyle.JSON_CONTEXT:
        return "[" + ",\n".join(rendered) + "]"
    return "\n".join(rendered) or prompt_text().nothing_found


def _asked_by(asker: Asker) -> str:
    words = prompt_text()
    name, relationship = single_line(asker.name), single_line(asker.relationship)
    if asker.kind == "owner":
        return words.asker_owner
    if asker.kind == "anonymous" or not name:
        return words.asker_anonymous
    if relationship:
        return words.asker_known_person_related.format(name=name, relationship=relationship)
    return words.asker_known_person.format(name=name)


def render_messages(
    body: str,
    question: str,
    asked_at: str,
    asker: Asker | None,
    *,
    no_system_role: bool,
    policy_header: bool = False,
    d6_rules: Literal["stated", "inferred"] = "stated",
) -> tuple[Message, ...]:
    """Return the messages around a context body; the system text is in the user turn if there is no system role.

    Without an asker there is no line on who asks.
    """
    words = prompt_text()
    system = words.system if d6_rules == "stated" else inferred_system()
    if policy_header:
        system = f"{control_text().policy_header}\n\n{system}"
    asked_by = f"{words.asked_by}{_asked_by(asker)}\n" if asker is not None else ""
    user = (
        f"{words.context_start}\n{body}\n{words.context_end}\n\n"
        f"{words.asked_at}{readable_time(asked_at)}\n{asked_by}{words.question}{question}"
    )
    if no_system_role:
        return (Message("user", f"{system}\n\n{user}"),)
    return (Message("system", system), Message("user", user))


@dataclass(frozen=True, slots=True)
class PromptParts:
    """The parts of a prompt. Times are as shown; ``asked_by`` is "" if the prompt does not say who asks."""

    items: tuple[ContextItem, ...]
    question: str
    asked_at: str
    asked_by: str


def _split_body(body: str) -> Iterable[ContextItem]:
    mark = prompt_text().item_start
    if body.startswith("["):
        for item in json.loads(body):
            yield ContextItem(item["text"], item.get("time", ""))
        return
    if body == prompt_text().nothing_found:
        return
    for block in re.split(rf"^{re.escape(mark)}", body, flags=re.MULTILINE)[1:]:
        time, _, text = block.partition("\n")
        yield ContextItem(_shifted_line().sub("", text.removesuffix("\n")), time.strip())


@cache
def _user_turn() -> re.Pattern[str]:
    w = prompt_text()
    return re.compile(
        rf"(?:\A|\n){re.escape(w.context_start)}\n(?P<body>.*?)\n{re.escape(w.context_end)}\n\n"
        rf"{re.escape(w.asked_at)}(?P<at>[^\n]*)\n(?:{re.escape(w.asked_by)}(?P<by>[^\n]*)\n)?"
        rf"{re.escape(w.question)}(?P<question>.*)\Z",
        re.DOTALL,
    )


def split_prompt(messages: Sequence[Message]) -> PromptParts | None:
    """Return the parts of :func:`render_messages`; None if the last message is not a prompt of this package."""
    match = _user_turn().search(messages[-1].content) if messages else None
    if match is None:
        return None
    try:
        items = tuple(_split_body(match["body"]))
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    return PromptParts(items, match["question"], match["at"], match["by"] or "")

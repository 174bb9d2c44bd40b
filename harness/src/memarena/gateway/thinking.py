"""Detects where thinking ends and the answer begins in text with marks for thinking: ``<think>…</think> answer``.

The time to the first word of an answer (TTFT) must not count thinking as the answer, and not every server returns
thinking in a separate field.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Literal

from memarena_answering.assets import parsing_table

_KEPT_CHARS = 32
"""More characters than any mark has, so that a mark that arrives in pieces is recognised."""


@cache
def _marks() -> Sequence[tuple[str, str]]:
    return [(opening.lower(), closing.lower()) for opening, closing in parsing_table().thinking]


class AnswerStart:
    """Takes the pieces of a reply's text with their times, and determines when thinking and the answer began.

    ``reasoning_ns`` and ``answer_ns`` are offsets as passed to :meth:`feed`; None: not (yet) begun. If the template has
    the opening mark in the prompt, thinking is recognised by the closing mark.
    """

    def __init__(self) -> None:
        self.reasoning_ns: int | None = None
        self.answer_ns: int | None = None
        self._marks = _marks()
        self._closings: Sequence[str] = [closing for _, closing in self._marks]
        self._tail = ""
        # start: the text may still begin with a mark; plain: it did not, but a closing mark may follow;
        # thinking: an opening mark was seen; answer: a closing mark was seen, and all is decided.
        self._state: Literal["start", "plain", "thinking", "answer"] = "start"

    def feed(self, text: str, at_ns: int | None) -> None:
        """Add a piece of text, which is not empty."""
        # Until a mark is seen, text counts as the answer. White space counts too, but not right after thinking.
        if self._state != "thinking" and self.answer_ns is None and (self.reasoning_ns is None or text.strip()):
            self.answer_ns = at_ns
        if self._state == "answer":
            return
        self._tail += text.lower()
        if self._state == "start":
            self._look_for_opening()
        if self._state in {"plain", "thinking"}:
            self._look_for_closing(at_ns)
            self._tail = self._tail[-_KEPT_CHARS:]

    def _look_for_opening(self) -> None:
        """Decide whether the text begins with a mark of thinking, once enough of it has arrived."""
        self._tail = self._tail.lstrip()
        for opening, closing in self._marks:
            if self._tail.startswith(opening):
                self._state, self._closings = "thinking", [closing]
                self.reasoning_ns, self.answer_ns = self.answer_ns, None
                self._tail = self._tail[len(opening) :]
                return
        if not any(opening.startswith(self._tail) for opening, _ in self._marks):
            self._state = "plain"

    def _look_for_closing(self, at_ns: int | None) -> None:
        """Decide whether thinking has ended; if it had no opening mark, it began with the text."""
        for closing in self._closings:
            _, mark, remainder = self._tail.partition(closing)
            if mark:
                if self.reasoning_ns is None:
                    self.reasoning_ns = self.answer_ns
                self.answer_ns = at_ns if remainder.strip() else None
                self._state = "answer"
                return

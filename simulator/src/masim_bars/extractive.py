"""The harness's extractive reader, asked over its own HTTP interface with the gold evidence in the prompt."""

from __future__ import annotations

import json
from collections.abc import Sequence

from masim_bars.child import Child, Json, content_of
from masim_bars.errors import BarsError

MODULE = "memarena.readers.extractive_server"


def ask(reader: Child, lines: Sequence[str], query: str) -> str:
    """What the reader answers. ``lines`` are turns as ``Name: words``; the question comes last, on one line."""
    question = " ".join(query.split())
    question = question if question.endswith("?") else f"{question} ?"
    body: dict[str, Json] = {
        "model": "extractive",
        "messages": [{"role": "user", "content": "\n".join([*(" ".join(line.split()) for line in lines), question])}],
    }
    content = content_of(reader.post("/v1/chat/completions", body), MODULE)
    try:
        return str(json.loads(content)["answer"])
    except (KeyError, TypeError, ValueError) as error:
        raise BarsError(f"{MODULE}: a reply without an answer: {error!r}") from error

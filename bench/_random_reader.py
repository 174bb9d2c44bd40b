"""Serves a randomly initialised model with an OpenAI-compatible API: the shape of a real one, and its cost in time.

``python bench/_random_reader.py --address-file F`` needs ``torch`` and ``transformers`` and no weights. Prefill and
decoding take what they take for this shape; what it says means nothing. A token of a prompt stands for four bytes, as
the harness counts where a server has no tokenizer. One request at a time, no prefix is ever reused.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import importlib
import json
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from aiohttp import web
from memarena.readers import wire
from memarena.readers.serving import serve_as_child
from pydantic import JsonValue

SHAPES: Mapping[str, Mapping[str, int]] = {
    # https://huggingface.co/Qwen/Qwen3-0.6B, config.json
    "qwen3-0.6b": {
        "vocab_size": 151_936,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "num_hidden_layers": 28,
        "num_attention_heads": 16,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40_960,
        "tie_word_embeddings": True,
    },
    # https://huggingface.co/Qwen/Qwen3-8B, config.json
    "qwen3-8b": {
        "vocab_size": 151_936,
        "hidden_size": 4096,
        "intermediate_size": 12_288,
        "num_hidden_layers": 36,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "head_dim": 128,
        "max_position_embeddings": 40_960,
        "tie_word_embeddings": False,
    },
    # To try the way on a CPU.
    "tiny": {
        "vocab_size": 1024,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "max_position_embeddings": 40_960,
        "tie_word_embeddings": True,
    },
}
SHORTEST_ANSWER = 8
"""Tokens. A random model never ends by itself: how long it goes on is drawn by the prompt."""


class Model:
    """The model, loaded on its device."""

    def __init__(self, shape: str, device: str, seed: int) -> None:
        # Neither is installed with this project.
        torch, transformers = (importlib.import_module(name) for name in ("torch", "transformers"))
        self._torch: Any = torch
        self._device = torch.device(device)
        torch.manual_seed(seed)
        config = transformers.Qwen3Config(**SHAPES[shape], attn_implementation="sdpa")
        dtype = torch.bfloat16 if device != "cpu" else torch.float32
        torch.set_default_dtype(dtype)  # made in it: a copy of larger floats would need three times the memory
        with self._device:
            self._model: Any = transformers.Qwen3ForCausalLM(config).eval()
        self.name = f"random-{shape}"
        self.vocabulary = config.vocab_size
        self.parameters = sum(each.numel() for each in self._model.parameters())

    def tokens(self, prompt: list[int], count: int) -> Iterator[int]:
        """Yield greedy tokens, each when it has left the device."""
        with self._torch.inference_mode():
            step = self._torch.tensor([prompt], device=self._device)
            past = None
            for _ in range(count):
                output = self._model(input_ids=step, past_key_values=past, use_cache=True, logits_to_keep=1)
                past = output.past_key_values
                step = output.logits[:, -1].argmax(-1, keepdim=True)
                yield int(step.item())


class Server:
    """Serves the model on the routes that a run uses."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._one_at_a_time = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request."""
        raw = await request.content.read()
        if request.path == "/v1/models":
            return web.json_response(wire.model_list(self._model.name))
        if request.path != "/v1/chat/completions":
            return web.json_response(wire.error("no such route", "not_found"), status=404)
        body: dict[str, JsonValue] = json.loads(raw)
        try:
            texts = [message.content for message in wire.chat_messages(body)]
        except ValueError as error:
            return web.json_response(wire.error(str(error), "invalid_request"), status=400)
        prompt = prompt_tokens(texts, self._model.vocabulary)
        count = answer_tokens(texts, body.get("max_tokens"))
        async with self._one_at_a_time:
            if body.get("stream") is True:
                return await self._stream(request, prompt, count)
            clock = _Clock()
            text = "".join([word(token) async for token in self._tokens(prompt, count, clock)])
        completion = wire.chat_completion(self._model.name, {"content": text}, "length", _usage(prompt, count))
        return web.json_response({**completion, "timings": clock.timings(count)})

    async def _stream(self, request: web.BaseRequest, prompt: list[int], count: int) -> web.StreamResponse:
        """Stream the tokens as events, then usage and timings."""
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        clock = _Clock()
        opening = wire.sse(wire.chat_chunk(self._model.name, {"role": "assistant", "content": ""}))
        async for token in self._tokens(prompt, count, clock):
            if not response.prepared:
                await response.prepare(request)
            await response.write(opening + wire.sse(wire.chat_chunk(self._model.name, {"content": word(token)})))
            opening = b""
        closing = wire.usage_chunk(self._model.name, _usage(prompt, count))
        closing["timings"] = clock.timings(count)
        end = wire.sse(wire.chat_chunk(self._model.name, {}, "length")) + wire.sse(closing) + wire.DONE
        await response.write(end)
        await response.write_eof()
        return response

    async def _tokens(self, prompt: list[int], count: int, clock: _Clock) -> AsyncIterator[int]:
        loop = asyncio.get_running_loop()
        clock.began()
        coming = self._model.tokens(prompt, count)
        while (token := await loop.run_in_executor(self._thread, next, coming, None)) is not None:
            clock.token()
            yield token
        clock.ended()


class _Clock:
    """Measures what llama.cpp reports: milliseconds for the prompt and for the answer."""

    def __init__(self) -> None:
        self._began = self._first = self._last = 0.0

    def began(self) -> None:
        self._began = time.monotonic()

    def token(self) -> None:
        self._last = time.monotonic()
        self._first = self._first or self._last

    def ended(self) -> None:
        self._last = time.monotonic()

    def timings(self, count: int) -> dict[str, JsonValue]:
        return {
            "prompt_ms": (self._first - self._began) * 1e3,
            "predicted_ms": (self._last - self._first) * 1e3,
            "predicted_n": count,
            "cache_n": 0,
        }


def prompt_tokens(texts: list[str], vocabulary: int) -> list[int]:
    """Return one token for every four bytes of each text, always the same for the same bytes."""
    tokens = []
    for text in texts:
        raw = text.encode()
        for index in range(wire.bytes_tokens([text])):
            piece = raw[4 * index : 4 * index + 4]
            tokens.append(int.from_bytes(hashlib.blake2s(piece, digest_size=4).digest()) % vocabulary)
    return tokens


def answer_tokens(texts: list[str], most: JsonValue) -> int:
    """Return the answer's number of tokens: from SHORTEST_ANSWER to ``max_tokens``, drawn by the prompt's bytes."""
    top = most if isinstance(most, int) else 64
    draw = int.from_bytes(hashlib.blake2s("\0".join(texts).encode(), digest_size=4).digest())
    return min(top, SHORTEST_ANSWER + draw % max(1, top - SHORTEST_ANSWER + 1))


def word(token: int) -> str:
    """Return a token as text."""
    return f" w{token}"


def _usage(prompt: list[int], count: int) -> dict[str, JsonValue]:
    return wire.token_usage(len(prompt), count, 0)


def main() -> None:
    """Entry of the child process."""
    parser = argparse.ArgumentParser(description="A randomly initialised model behind an OpenAI-compatible API.")
    parser.add_argument("--address-file", type=Path, required=True)
    parser.add_argument("--shape", choices=sorted(SHAPES), default="qwen3-0.6b")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    try:
        model = Model(options.shape, options.device, options.seed)
    except ModuleNotFoundError as error:
        sys.exit(f"{error.name} is not installed (pip install torch transformers)")
    except (AssertionError, RuntimeError) as error:
        sys.exit(f"--device {options.device}: {error}")
    sys.stderr.write(f"{model.name}: {model.parameters:,} parameters on {options.device}\n")
    list(model.tokens([1, 2, 3], 2))  # loads kernels before the first request
    asyncio.run(_serve(model, options.address_file))


async def _serve(model: Model, address_file: Path) -> None:
    await serve_as_child(Server(model).handle, address_file)


if __name__ == "__main__":
    main()

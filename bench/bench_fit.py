"""How well a fit of the embedded reader predicts, over prompts whose lengths are spread evenly.

The prompts of a study are as long as its backends make them, most of them at the budget. Here the same reader is asked
the example's questions over its turns, with context budgets in even steps and in a seeded order, so that no length
comes earlier than another while the machine changes its speed. Fits and held-out errors are those of
``memarena latency``.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

from _corpus import EXAMPLE
from memarena.gateway import CallContext, Gateway
from memarena.latency.fit import fit_reader
from memarena.latency.results import Fit, Model, Sample
from memarena.latency.stopwatch_check import server_check
from memarena.log.records import GatewayCall
from memarena.readers.starting import start_reader
from memarena.readers.types import RunningReader
from memarena.readers.warming import warm_up
from memarena_answering import Asker, ContextItem, ReaderClient, ReadingPlan, build_prompt
from memarena_dataset.io.reading import Dataset, open_dataset
from rich.table import Table

_PROMPTS = 90
_CONTEXT_TOKENS = (60, 1110)
"""Budgets of the shortest and the longest prompt, without the some 120 tokens of question and instructions."""
_ANSWER_TOKENS = 64
_SEED = 1
_TIMEOUT_S = 600.0
_NOW = "2025-01-01T00:00:00Z"


def tables() -> list[Table]:
    """Fits of the first token and of the whole call; held-out errors by length."""
    calls: list[GatewayCall] = []
    with open_dataset(EXAMPLE) as dataset, tempfile.TemporaryDirectory() as folder:
        questions = sorted((instance.instance_id, instance.query) for instance in dataset.instances)
        items = _items(dataset)
        reader = start_reader("embedded", work_dir=Path(folder))
        try:
            with Gateway([reader.upstream], calls.append) as gateway:
                warm_up(reader, gateway, 8, _CONTEXT_TOKENS[1] + 120)
                calls.clear()
                asked = _ask(reader, gateway, items, questions)
        finally:
            reader.stop()
    timed = [call for call in calls if call.route == "/v1/chat/completions"]
    samples = [_sample(instance_id, call) for instance_id, call in zip(asked, timed, strict=True)]
    fit = fit_reader("embedded", samples)
    if fit is None:
        raise RuntimeError(f"{len(samples)} prompts gave no fit")
    check = server_check("embedded", samples)
    found = _fits(fit)
    found.caption = (
        f"prompts of {fit.prompt_tokens[0]} to {fit.prompt_tokens[1]} tokens, answers of {fit.completion_tokens[0]} to "
        f"{fit.completion_tokens[1]}; first token within 5% + 3 ms of the server's own prompt time for {check.within} "
        f"of {check.told}"
    )
    return [found, _by_length(fit)]


def _items(dataset: Dataset) -> list[ContextItem]:
    sessions = [session for day in range(dataset.day_count) for session in dataset.day_sessions(None, day)]
    return [ContextItem(turn.text) for session in sessions for turn in session.turns]


def _ask(
    reader: RunningReader, gateway: Gateway, items: Sequence[ContextItem], questions: Sequence[tuple[str, str]]
) -> list[str]:
    """Ask one prompt per budget; which question each of them held."""
    client = ReaderClient(gateway.base_url)
    dice = random.Random(_SEED)
    shortest, longest = _CONTEXT_TOKENS
    budgets = [round(shortest + (longest - shortest) * step / (_PROMPTS - 1)) for step in range(_PROMPTS)]
    dice.shuffle(budgets)
    asked = []
    for number, budget in enumerate(budgets):
        instance_id, question = questions[number % len(questions)]
        begin = dice.randrange(len(items))
        plan = ReadingPlan(
            reader.upstream.model, _ANSWER_TOKENS, max_context_tokens=budget, counts_tokens=reader.ref.counts_tokens
        )
        token = gateway.grant(CallContext("answer"))
        count = client.counter(token, reader.upstream.model)
        prompt = build_prompt([*items[begin:], *items[:begin]], question, _NOW, Asker("owner"), plan, count)
        for _event in client.stream(prompt, plan, token, _TIMEOUT_S):
            pass
        gateway.revoke(token)
        asked.append(instance_id)
    client.close()
    return asked


def _sample(instance_id: str, call: GatewayCall) -> Sample:
    if (
        call.prompt_tokens is None
        or call.completion_tokens is None
        or call.done_ns is None
        or call.first_content_ns is None
    ):
        raise RuntimeError(f"{instance_id}: the reader told no tokens or said nothing: {call.error or call.status}")
    return Sample(
        run="fit",
        cell_id="fit",
        reader="embedded",
        backend="example",
        instance_id=instance_id,
        prompt_tokens=call.prompt_tokens,
        completion_tokens=call.completion_tokens,
        cached_tokens=call.cached_tokens,
        ttft_ms=call.first_content_ns / 1e6,
        llm_ms=call.done_ns / 1e6,
        search_ms=None,
        rest_ms=None,
        server_prompt_ms=call.server_prompt_ms,
    )


def _models(fit: Fit) -> list[tuple[str, str, Model]]:
    return [
        ("first token", "linear", fit.ttft),
        ("first token", "quadratic", fit.ttft_quadratic),
        ("whole call", "linear", fit.llm),
        ("whole call", "quadratic", fit.llm_quadratic),
    ]


def _fits(fit: Fit) -> Table:
    table = Table(title=f"Fits of the embedded reader over {fit.n} prompts of evenly spread lengths", padding=0)
    for column in ("of", "model", "α ms", "β ms/1k", "γ ms", "δ ms/M", "R²", "held out p50"):
        table.add_column(column, justify="left" if column in ("of", "model") else "right")
    for what, name, model in _models(fit):
        c = model.coefficients
        table.add_row(
            what, name, f"{c.alpha_ms:,.0f}", f"{c.beta_ms * 1e3:,.0f}", _told(c.gamma_ms, "{:.1f}"),
            _told(None if c.delta_ms is None else c.delta_ms * 1e6, "{:,.0f}"), _told(model.r_squared, "{:.3f}"),
            _told(model.held_out_error_p50, "{:.1%}"),
        )  # fmt: skip
    return table


def _by_length(fit: Fit) -> Table:
    table = Table(title="Held-out error by length of prompt, p50 (n)", padding=0)
    table.add_column("of")
    table.add_column("model")
    for part in fit.ttft.held_out_by_length:
        table.add_column(f"{part.low} to {part.high} tokens", justify="right")
    for what, name, model in _models(fit):
        parts = [f"{_told(part.error_p50, '{:.1%}')} ({part.n})" for part in model.held_out_by_length]
        table.add_row(what, name, *parts)
    return table


def _told(value: float | None, form: str) -> str:
    return "n/a" if value is None else form.format(value)

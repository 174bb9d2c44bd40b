"""TTFT at the gateway beside the embedded server's own prompt time, question by question, at the edge budget."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from _corpus import EXAMPLE
from memarena.log.records import GatewayCall, QuestionAsked
from memarena.log.store import read_records
from memarena.run.config import ReaderConfig, RunConfig
from memarena.run.engine import execute
from memarena.run.request import RunRequest
from rich.table import Table

_QUESTIONS = 10


def tables() -> list[Table]:
    """One run of bm25 with the embedded reader."""
    config = RunConfig(
        dataset=EXAMPLE,
        backends=("bm25",),
        readers=(ReaderConfig(spec="embedded"),),
        limit=_QUESTIONS,
        max_context_tokens=512,
        max_answer_tokens=64,
    )
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        execute(RunRequest(out=out, config=config))
        asked = [r for r in read_records(out, "asked") if isinstance(r, QuestionAsked)]
        calls = {r.call_id: r for r in read_records(out, "gateway_call") if isinstance(r, GatewayCall)}
    pairs = []
    for question in asked:
        for call in (calls[i] for i in question.gateway_call_ids):
            if call.server_prompt_ms is not None and call.first_content_ns is not None:
                pairs.append((call.first_content_ns / 1e6, call.server_prompt_ms, call.prompt_tokens or 0))
    table = Table(title=f"TTFT at the gateway and llama.cpp's own prompt time ({len(pairs)} questions, edge budget)")
    for column in ("", "TTFT ms", "prompt ms", "difference", "allowed (10% + 5 ms)", "prompt tokens"):
        table.add_column(column, justify="right")
    ttft, prompt, tokens = (statistics.median(column) for column in zip(*pairs, strict=True))
    difference = statistics.median(t - p for t, p, _ in pairs)
    table.add_row(
        "p50", f"{ttft:.1f}", f"{prompt:.1f}", f"{difference:+.1f}", f"±{0.1 * prompt + 5:.1f}", f"{tokens:.0f}"
    )
    return [table]

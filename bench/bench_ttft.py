"""TTFT at the gateway beside the embedded server's own prompt time, over prompts of many lengths."""

from __future__ import annotations

import tempfile
from pathlib import Path

from _corpus import EXAMPLE
from _measure import percentile
from memarena.execution.engine import execute
from memarena.execution.planning.config import ReaderConfig, RunConfig
from memarena.execution.planning.request import RunRequest
from memarena.latency.pipeline import read_samples_of
from rich.table import Table

_BUDGETS = (128, 512, 1500)
"""Context tokens of a run each, so that prompts differ in length."""
_QUESTIONS = 24


def tables() -> list[Table]:
    """Runs of bm25 with the embedded reader, 72 questions in all."""
    with tempfile.TemporaryDirectory() as folder:
        runs = [Path(folder) / f"run{budget}" for budget in _BUDGETS]
        for run, budget in zip(runs, _BUDGETS, strict=True):
            execute(RunRequest(out=run, config=_config(budget)))
        samples = read_samples_of(runs)
    pairs = [
        (s.ttft_ms, s.server_prompt_ms, s.prompt_tokens)
        for s in samples
        if s.ttft_ms is not None and s.server_prompt_ms is not None
    ]
    table = Table(title=f"TTFT at the gateway and llama.cpp's own prompt time ({len(pairs)} questions)")
    for column in ("", "TTFT ms", "prompt ms", "difference ms", "of the prompt time", "prompt tokens"):
        table.add_column(column, justify="right")
    for share in (0.5, 0.95):
        ttft, prompt, tokens = (
            percentile([round(x * 1e3) for x in column], share) / 1e3 for column in zip(*pairs, strict=True)
        )
        gaps = [t - p for t, p, _ in pairs]
        shares = [(t - p) / p for t, p, _ in pairs]
        gap = percentile([round(g * 1e3) for g in gaps], share) / 1e3
        relative = percentile([round(s * 1e6) for s in shares], share) / 1e6
        table.add_row(
            f"p{share * 100:.0f}", f"{ttft:.1f}", f"{prompt:.1f}", f"{gap:+.2f}", f"{relative:+.2%}", f"{tokens:.0f}"
        )
    within = sum(abs(t - p) <= 0.05 * p + 3 for t, p, _ in pairs)
    table.caption = f"within 5% + 3 ms: {within} of {len(pairs)} questions"
    return [table]


def _config(budget: int) -> RunConfig:
    return RunConfig(
        dataset=EXAMPLE,
        backends=("bm25",),
        readers=(ReaderConfig(spec="embedded"),),
        limit=_QUESTIONS,
        max_context_tokens=budget,
        max_answer_tokens=8,
        floor_samples=0,
        meters=("none",),
    )

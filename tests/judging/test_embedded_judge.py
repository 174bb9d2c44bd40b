"""Tests a real small model as the judge: a bad judge, but each reply ends as a verdict or a recorded failure."""

from __future__ import annotations

from pathlib import Path

import pytest
from memarena.cli.judge_progress import JudgeProgress
from memarena.judging.llm import Batch, ModelJudge, Patience, judge_with_model
from memarena.log.store import read_records
from memarena.readers.starting import start_reader
from memarena_dataset.model import Family

from ..support.logs import (
    make_asked,
    make_cell,
    make_evidence,
    make_question,
    make_run,
    permission,
    text_gold,
    write_log,
)

CELL = make_cell("bm25")


@pytest.mark.llm
def test_every_reply_of_the_embedded_model_is_recorded(tmp_path: Path) -> None:
    qa = make_question("qa", Family.QA, text_gold("50 euros"), "What did the coat cost?", evidence=["s1"])
    deny = make_question("deny", Family.PERMISSION, permission("4711", "withhold"), "What is the PIN?", asker="bob_ray")
    evidence = [make_evidence("s1", ("Maya", "I paid 50 euros for the coat."))]
    attempts = [make_asked(CELL, qa, "It was 50 euros."), make_asked(CELL, deny, "That is private.")]
    run = write_log(tmp_path / "run", make_run([CELL], [qa, deny], evidence, attempts))
    reader = start_reader("embedded", work_dir=tmp_path / "reader")
    try:
        batch = Batch(
            run_dir=run,
            judge=ModelJudge("embedded", reader.ref.model),
            url=reader.upstream.base_url,
            concurrency=1,
            patience=Patience(tries=1, timeout_s=120, first_wait_s=0.01, longest_wait_s=0.1),
        )
        judged = judge_with_model(batch, JudgeProgress())
    finally:
        if reader.process is not None:
            reader.process.stop()
    records = list(read_records(run, "verdict", "judging_failed"))
    assert {r.instance_id for r in records if r.kind in ("verdict", "judging_failed")} == {"qa", "deny"}
    assert judged.verdicts + judged.failed.total() >= 2
    assert judged.prompt_tokens > 500

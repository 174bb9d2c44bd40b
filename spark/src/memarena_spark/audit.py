"""Audits a bundle: asks a seeded share of its questions again on this machine and compares the answers.

A bundle proves that its figures follow from its log. That the log was not invented is shown only by asking again.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable
from pathlib import Path

from memarena import judging
from memarena.evaluation import evaluate, load_facts
from memarena.execution.engine import execute
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.request import RunRequest
from memarena.log.base import Record
from memarena.log.records import ReaderRef
from memarena.scoring.results import QuestionScore
from memarena.scoring.run_facts import RunFacts
from memarena_dataset.io.reading import open_dataset
from memarena_dataset.safe_files import sha256_of

from memarena_spark.bundle import layout
from memarena_spark.bundle.derived import Facts, read_facts
from memarena_spark.bundle.verify import Trust, verify
from memarena_spark.errors import SparkError
from memarena_spark.files import canonical_json, write_whole
from memarena_spark.locking import left_note, lock_path, node_lock
from memarena_spark.machine.host import identity

REPORT = "audit.json"
SHARE = 0.1


class CellAudit(Record):
    """The questions of a cell that were asked again: how many have the same answer, and the same outcome."""

    cell_id: str
    greedy: bool
    """Whether the same answer is to be expected: temperature 0."""
    asked: int  # words: a name of the file format
    same_answer: int
    same_outcome: int
    failed: int
    """Number of questions that failed when they were asked again."""


class AuditReport(Record):
    """An audit. Both shares are over greedy cells, None where there is none."""

    bundle_statement_sha256: str
    seed: int
    share: float
    drawn: tuple[str, ...]
    cells: tuple[CellAudit, ...]
    same_outcome: float | None
    same_outcome_at_least: float
    same_answer: float | None
    """Share of answers that are equal word for word. Other machines round otherwise, so that less is required of it
    than of the outcomes; invented answers are far below that."""
    same_answer_at_least: float
    readers_differ: tuple[str, ...]
    """Differences between the readers of the two runs, a line each."""
    passed: bool


def draw(instance_ids: Iterable[str], share: float, seed: int) -> tuple[str, ...]:
    """Return a share of the questions, at least one, drawn by a seeded hash: the same everywhere for a seed."""
    by_hash = sorted(instance_ids, key=lambda instance_id: hashlib.sha256(f"{seed}\0{instance_id}".encode()).digest())
    return tuple(sorted(by_hash[: max(1, math.ceil(share * len(by_hash)))]))


def audit(
    bundle: Path, dataset: Path, out: Path, trust: Trust, *, share: float, seed: int, say: Callable[[str], None]
) -> AuditReport:
    """Verify a bundle, ask a share of its questions again into the new folder ``out``, and compare.

    Raises SparkError if the bundle does not verify, the data set is not that of the bundle, or ``out`` is in use,
    :class:`~memarena_spark.errors.RefusedError` (``locked``) while another run or audit holds the node, and what
    :func:`memarena.execution.engine.execute` raises.
    """
    if not 0 < share <= 1:
        raise SparkError(f"--share {share}: expected more than 0 and at most 1")
    if out.exists():
        raise SparkError(f"--out {out}: expected a new folder")
    verification = verify(bundle, trust)
    if not verification.passed:
        first = verification.faults[0]
        raise SparkError(f"{bundle}: does not verify: {first.file}: {first.message}")
    facts = read_facts(bundle)
    with open_dataset(dataset) as data:
        if data.sha256 != facts.run.manifest.dataset.sha256:
            raise SparkError(f"--dataset {dataset}: is not the data set of the bundle (its SHA-256 differs)")
    instance_ids = draw(facts.run.questions, share, seed)
    say(f"{len(instance_ids)} of {len(facts.run.questions)} questions are asked again, drawn with seed {seed}")
    config = RunConfig.model_validate_json(facts.run.manifest.config_json)
    config = config.model_copy(update={"dataset": dataset, "question_ids": instance_ids, "limit": None, "egos": ()})
    files = (judging.data_files,)
    # Asking loads the node as a run does: only one of them may go on at a time.
    with node_lock(lock_path(), identity(Path("/")).boot_id, out) as left_by:
        if left_by is not None:
            say(left_note(left_by))
        outcome = execute(RunRequest(out=out / "run", config=config, scoring_files=files))
    if outcome.reason == "interrupted":
        raise KeyboardInterrupt
    report = compare(facts, load_facts(out / "run"), instance_ids, seed, share, sha256_of(bundle / layout.STATEMENT))
    write_whole(out / REPORT, canonical_json(report))
    return report


def compare(
    facts: Facts, again: RunFacts, instance_ids: tuple[str, ...], seed: int, share: float, statement_sha256: str
) -> AuditReport:
    """Compare the answers of two runs."""
    scores = evaluate(again, resamples=0)
    cells = tuple(
        _cell(cell.cell_id, cell.reading.temperature == 0, instance_ids, facts, again, scores.questions)
        for cell in facts.run.manifest.cells
    )
    greedy = [cell for cell in cells if cell.greedy]
    asked_count = sum(cell.asked for cell in greedy)
    outcomes = sum(cell.same_outcome for cell in greedy) / asked_count if asked_count else None
    answers = sum(cell.same_answer for cell in greedy) / asked_count if asked_count else None
    differ = tuple(_differences(facts.run.manifest.readers, again.manifest.readers))
    failed_count = sum(cell.failed for cell in cells)
    least = facts.profile.audit
    return AuditReport(
        bundle_statement_sha256=statement_sha256,
        seed=seed,
        share=share,
        drawn=instance_ids,
        cells=cells,
        same_outcome=outcomes,
        same_outcome_at_least=least.same_outcome,
        same_answer=answers,
        same_answer_at_least=least.same_answer,
        readers_differ=differ,
        passed=_at_least(outcomes, least.same_outcome)
        and _at_least(answers, least.same_answer)
        and not failed_count
        and not differ,
    )


def _at_least(share: float | None, least: float) -> bool:
    return share is not None and share >= least


def _cell(
    cell_id: str,
    greedy: bool,
    instance_ids: tuple[str, ...],
    facts: Facts,
    again: RunFacts,
    scores: Iterable[QuestionScore],
) -> CellAudit:
    """Compare the drawn questions of a cell: answers, and outcomes by ``scores`` of the run that repeated them."""
    before = {q.instance_id: q for q in facts.scored.questions if q.cell_id == cell_id}
    now = {q.instance_id: q for q in scores if q.cell_id == cell_id}
    pairs = [(before[i], now[i]) for i in instance_ids if i in now]
    return CellAudit(
        cell_id=cell_id,
        greedy=greedy,
        asked=len(instance_ids),
        same_answer=sum(_answer(facts.run, cell_id, i) == _answer(again, cell_id, i) for i in instance_ids),
        same_outcome=sum(was.outcome == is_now.outcome for was, is_now in pairs),
        failed=len(instance_ids) - sum(is_now.outcome in ("correct", "wrong") for _, is_now in pairs),
    )


def _answer(run: RunFacts, cell_id: str, instance_id: str) -> str:
    """Return the last answer; if there is none, a text that equals no answer of another run."""
    attempts = run.attempts.get((cell_id, instance_id))
    span = attempts[-1].record.answer if attempts else None
    return span.answer if span is not None else f"no answer of {run.started.run_id}"


def _differences(before: Iterable[ReaderRef], now: Iterable[ReaderRef]) -> Iterable[str]:
    """Yield a line for each reader that is missing now, or has another model or other weights."""
    reader_by_name = {reader.name: reader for reader in now}
    for was in before:
        reader_now = reader_by_name.get(was.name)
        if reader_now is None:
            yield f"reader {was.name} is not there"
            continue
        for property_name, old, new in (
            ("model", was.model, reader_now.model),
            ("weights", was.details.get("weights_sha256"), reader_now.details.get("weights_sha256")),
        ):
            if old != new:
                yield f"reader {was.name}: {property_name} was {old}, is {new}"

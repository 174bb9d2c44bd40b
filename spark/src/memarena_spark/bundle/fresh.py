"""Checks the fresh world of a bundle: what its commitment fixed, and that the commitment came before the beacon.

:mod:`memarena_spark.fresh.commitment` explains fresh world, commitment and beacon.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path

from memarena_spark.announcing import plan_sha256
from memarena_spark.bundle.derived import Facts
from memarena_spark.bundle.receipts import Receipt
from memarena_spark.fresh.commitment import FreshWorld, appears_at, beacon_faults


def fresh_faults(facts: Facts) -> Iterator[str]:
    """Yield how a run differs from its commitment, or its seed from the beacon's; nothing without a commitment."""
    fresh, record = facts.fresh, facts.record
    if fresh is None:
        return
    commitment = fresh.commitment
    if facts.announcements is None or commitment.sha256 not in facts.announcements.commitments:
        yield f"commitment {commitment.sha256[:12]} is not among the announcements of the node"
    reports = {report.backend: report.code.digest for report in record.conformance}
    fixed_and_run = {
        "plan and profile": (commitment.plan_sha256, plan_sha256(facts.plan_text, facts.profile_text)),
        "the node": (commitment.node, record.preflight.state.identity.name),
        "the backends' code": (dict(commitment.backends), reports),
    }
    yield from (
        f"{subject} of the commitment is not that of the run" for subject, (a, b) in fixed_and_run.items() if a != b
    )
    faults = list(beacon_faults(fresh))
    yield from faults
    if not faults and datetime.fromisoformat(record.started_at) < appears_at(commitment):
        yield f"the run began at {record.started_at}, before round {commitment.round} appeared"


def fresh_notes(
    facts: Facts, fresh: FreshWorld, receipts: Sequence[Receipt], dataset: Path | None
) -> Iterator[tuple[bool, str]]:
    """Yield lines on a fresh world without faults: what was verified (True), and what was not checked (False)."""
    commitment, announcements = fresh.commitment, facts.announcements
    if announcements is None:
        return
    appeared_at = appears_at(commitment)
    index = announcements.commitments[commitment.sha256]
    number = list(announcements.commitments).index(commitment.sha256) + 1
    commitment_text = f"commitment {number} of {len(announcements.commitments)} of this node, made at {commitment.at}"
    round_text = f"round {commitment.round} of {commitment.network}, which appeared at {appeared_at:%Y-%m-%dT%H:%M:%SZ}"
    yield True, f"world {commitment.preset} with the seed {fresh.seed}: from {commitment_text}, and {round_text}"
    if any(receipt.lines > index and datetime.fromisoformat(receipt.at) < appeared_at for receipt in receipts):
        yield True, "a trusted witness saw the commitment before the round appeared"
    else:
        yield False, "when the commitment was made: no receipt of a trusted witness from before the round (--witnesses)"
    made_again = "memarena-spark fresh-world BUNDLE/fresh --out DIR makes it again"
    if dataset is None:
        yield False, f"that the data set follows from the seed: {made_again} for --dataset"
    else:
        yield False, f"that the data set follows from the seed, unless {dataset} was made so: {made_again}"

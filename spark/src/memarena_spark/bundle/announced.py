"""Checks the announcements in a bundle: how many attempts there were, and who confirmed them before the run.

An announcement is a line that a node's operator writes before a run, a receipt the signature of a witness who has seen
it. Without both, a bundle does not show whether its run is the best of many.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from memarena_spark.announcing import Announcements, Attempt
from memarena_spark.bundle import layout
from memarena_spark.bundle.derived import Facts
from memarena_spark.bundle.receipts import Receipt, covers, read_receipt
from memarena_spark.bundle.rules import announced_as
from memarena_spark.bundle.signing import NAMESPACE_ANNOUNCE, allowed_signer, is_canonical, who_signed


@dataclass
class AnnouncementsChecked:
    """The result of the check. Faults are pairs of a file of the bundle and what is wrong with it."""

    held: list[str] = field(default_factory=list)
    """Checks that passed, a line each."""
    unchecked: list[str] = field(default_factory=list)
    """Checks that are impossible with this bundle, a line each."""
    faults: list[tuple[str, str]] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    """Receipts of trusted witnesses."""


def check_announcements(bundle: Path, facts: Facts, witnesses: Path | None) -> AnnouncementsChecked:
    """Count attempts at the plan, and look for a receipt of the time between announcement and run.

    That the run is the announced one is a rule of its own (:mod:`.rules`). ``witnesses`` lists whose receipts count, as
    ssh-keygen(1) has ALLOWED SIGNERS. Raises FileError for a receipt that cannot be read.
    """
    result = AnnouncementsChecked()
    announcements, attempt = facts.announcements, announced_as(facts)
    if announcements is None:
        result.unchecked.append("other attempts: the run was not announced, so the best of many may have been chosen")
        return result
    if attempt is None:
        return result
    result.held.append(_attempts(announcements, attempt))
    proofs = [_confirmed(path, announcements, attempt, facts, witnesses, result) for path in _receipts(bundle)]
    if not any(proofs):
        result.unchecked.append(
            "when the run was announced: no receipt of a trusted witness from before the run (--witnesses)"
        )
    return result


def _attempts(announcements: Announcements, attempt: Attempt) -> str:
    announcement = attempt.announced
    attempts = announcements.of(announcement.plan_sha256, announcement.dataset_sha256)
    other_attempts = ", ".join(f"{other.announced.number} {other.state}" for other in attempts if other is not attempt)
    nonce = f" with the value {announcement.nonce}" if announcement.nonce else ""
    return (
        f"announced as number {announcement.number} of {len(announcements.attempts)} of this node "
        f"at {announcement.at}{nonce}; "
        f"attempts at this plan: {len(attempts)}{f' (others: {other_attempts})' if other_attempts else ''}"
    )


def _receipts(bundle: Path) -> Iterator[Path]:
    paths = (bundle / layout.ANNOUNCEMENTS).glob("receipt-*.json")
    yield from sorted(paths)


def _confirmed(
    path: Path,
    announcements: Announcements,
    attempt: Attempt,
    facts: Facts,
    witnesses: Path | None,
    result: AnnouncementsChecked,
) -> bool:
    """Whether a receipt proves that the run was announced before it began; its faults are added to ``result``."""
    name = path.relative_to(path.parents[1]).as_posix()
    signature = path.with_name(f"{path.name}.sig")
    receipt = read_receipt(path)
    if not signature.is_file() or not is_canonical(signature.read_bytes()):
        result.faults.append((name, "has no signature in the form that ssh-keygen writes"))
        return False
    signer = who_signed(path, signature, NAMESPACE_ANNOUNCE)
    if signer is None:
        result.faults.append((f"{name}.sig", f"is not a valid signature of {name}"))
        return False
    if not covers(receipt, announcements):
        result.faults.append((name, "is not of these announcements"))
        return False
    if witnesses is None:
        return False
    principal = allowed_signer(path, signature, witnesses, NAMESPACE_ANNOUNCE)
    if principal is None:
        result.unchecked.append(f"{name}: signed by {signer}, who is not in {witnesses}")
        return False
    result.receipts.append(receipt)
    before = _holds(receipt, announcements, attempt) and receipt.at <= facts.record.started_at
    timing = "before the run began" if before else "which says nothing of the time before the run"
    result.held.append(f"{principal} saw {receipt.lines} lines of the announcements at {receipt.at}, {timing}")
    return before


def _holds(receipt: Receipt, announcements: Announcements, attempt: Attempt) -> bool:
    """Whether the announcement is among the lines that a receipt covers."""
    line = attempt.announced.model_dump_json().encode()
    return line in announcements.lines[: receipt.lines]

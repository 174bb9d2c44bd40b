"""The announcements in a bundle: how many attempts there were, and who saw them before the run began."""

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
    """What a bundle's announcements show. Faults are a file of the bundle and what is wrong with it."""

    held: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)
    """Those of trusted witnesses."""


def check_announcements(bundle: Path, facts: Facts, witnesses: Path | None) -> AnnouncementsChecked:
    """Count attempts at the plan, and look for a receipt of the time between announcement and run.

    That the run is the announced one is a rule of its own (:mod:`.rules`). ``witnesses`` lists whose receipts count, as
    ssh-keygen(1) has ALLOWED SIGNERS. Raises FileError for a receipt that cannot be read.
    """
    found = AnnouncementsChecked()
    known, attempt = facts.announcements, announced_as(facts)
    if known is None:
        found.unchecked.append("other attempts: the run was not announced, so the best of many may have been chosen")
        return found
    if attempt is None:
        return found
    found.held.append(_attempts(known, attempt))
    confirmed = [_confirmed(path, known, attempt, facts, witnesses, found) for path in _receipts(bundle)]
    if not any(confirmed):
        found.unchecked.append(
            "when the run was announced: no receipt of a trusted witness from before the run (--witnesses)"
        )
    return found


def _attempts(known: Announcements, attempt: Attempt) -> str:
    made = attempt.announced
    same = known.of(made.plan_sha256, made.dataset_sha256)
    others = ", ".join(f"{each.announced.number} {each.state}" for each in same if each is not attempt)
    nonce = f" with the value {made.nonce}" if made.nonce else ""
    return (
        f"announced as number {made.number} of {len(known.attempts)} of this node at {made.at}{nonce}; "
        f"attempts at this plan: {len(same)}{f' (others: {others})' if others else ''}"
    )


def _receipts(bundle: Path) -> Iterator[Path]:
    there = (bundle / layout.ANNOUNCEMENTS).glob("receipt-*.json")
    yield from sorted(there)


def _confirmed(
    path: Path,
    known: Announcements,
    attempt: Attempt,
    facts: Facts,
    witnesses: Path | None,
    found: AnnouncementsChecked,
) -> bool:
    """Whether a receipt proves that the run was announced before it began; what is wrong with it goes to the faults."""
    name = path.relative_to(path.parents[1]).as_posix()
    signature = path.with_name(f"{path.name}.sig")
    receipt = read_receipt(path)
    if not signature.is_file() or not is_canonical(signature.read_bytes()):
        found.faults.append((name, "has no signature in the form that ssh-keygen writes"))
        return False
    signer = who_signed(path, signature, NAMESPACE_ANNOUNCE)
    if signer is None:
        found.faults.append((f"{name}.sig", f"is not a valid signature of {name}"))
        return False
    if not covers(receipt, known):
        found.faults.append((name, "is not of these announcements"))
        return False
    if witnesses is None:
        return False
    principal = allowed_signer(path, signature, witnesses, NAMESPACE_ANNOUNCE)
    if principal is None:
        found.unchecked.append(f"{name}: signed by {signer}, who is not in {witnesses}")
        return False
    found.receipts.append(receipt)
    before = _holds(receipt, known, attempt) and receipt.at <= facts.record.started_at
    when = "before the run began" if before else "which says nothing of the time before the run"
    found.held.append(f"{principal} saw {receipt.lines} lines of the announcements at {receipt.at}, {when}")
    return before


def _holds(receipt: Receipt, known: Announcements, attempt: Attempt) -> bool:
    """Whether the announcement is among the lines that a receipt is of."""
    line = attempt.announced.model_dump_json().encode()
    return line in known.lines[: receipt.lines]

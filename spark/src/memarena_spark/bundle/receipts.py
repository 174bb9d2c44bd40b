"""Makes and reads receipts: a second party, the witness, signs which announcements of a node it has seen, and when.

A file that lacks or changes a line that was seen does not fit the receipt: the witness refuses it (:func:`confirm`),
and ``verify`` reports it for a bundle that has the receipt.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from memarena.log.base import Record
from pydantic import ValidationError

from memarena_spark.announcing import Announcements, parse
from memarena_spark.bundle.signing import NAMESPACE_ANNOUNCE, sign
from memarena_spark.errors import FileError, RefusedError, SparkError
from memarena_spark.files import canonical_json, sha256, write_whole
from memarena_spark.locking import now
from memarena_spark.refusal_codes import refusal


class Receipt(Record):
    """The announcements of a node that a second party has seen, and when."""

    receipt_version: Literal[1] = 1
    node: str
    first_sha256: str
    """SHA-256 of the first line, which identifies the file among those of a node."""
    head_sha256: str
    """SHA-256 of the last line that was seen. It covers all lines, since each holds the hash of the line before."""
    lines: int
    """Number of lines that were seen."""
    at: str
    """When they were seen, in UTC."""


def confirm(announcements: Path, key: Path, out: Path, seen: Path) -> Receipt:
    """Sign a receipt ``out`` and ``out``.sig for a node's announcements.

    ``seen`` is the second party's folder with the last receipt for each node: announcements that do not continue what
    it saw, or a second file of a node, are refused. Raises :class:`~memarena_spark.errors.RefusedError` and SparkError.
    """
    if out.exists():
        raise SparkError(f"--out {out}: is there already; a receipt is never overwritten")
    try:
        content = announcements.read_bytes()
    except OSError as error:
        raise SparkError(f"{announcements}: cannot be read: {error.strerror}") from error
    parsed_announcements = parse(content, str(announcements))
    if not parsed_announcements.lines:
        raise SparkError(f"{announcements}: has no announcement")
    node = parsed_announcements.node
    # Hashed, since the name of a node may not be a file name.
    last = seen / f"{sha256(node.encode())[:16]}.json"
    if last.exists() and (fault := _fault(read_receipt(last), parsed_announcements)):
        raise RefusedError("witness", [refusal("announcements-changed", f"{announcements}: {fault}")])
    count = len(parsed_announcements.lines)
    receipt = Receipt(
        node=node,
        first_sha256=parsed_announcements.head_after(1),
        head_sha256=parsed_announcements.head_sha256,
        lines=count,
        at=now(),
    )
    # In this order, so that the next receipt is never compared with a receipt that was not signed.
    write_whole(out, canonical_json(receipt))
    sign(out, key, NAMESPACE_ANNOUNCE)
    write_whole(last, canonical_json(receipt))
    return receipt


def _fault(before: Receipt, announcements: Announcements) -> str:
    """Return why announcements do not continue those of an earlier receipt; empty if they do."""
    if announcements.head_after(1) != before.first_sha256:
        return f"node {before.node} has another file, seen at {before.at}"
    return "" if covers(before, announcements) else f"line {before.lines} is not the one that was seen at {before.at}"


def covers(receipt: Receipt, announcements: Announcements) -> bool:
    """Whether a receipt covers these announcements or their first lines."""
    return (
        1 <= receipt.lines <= len(announcements.lines)
        and announcements.head_after(receipt.lines) == receipt.head_sha256
    )


def read_receipt(path: Path) -> Receipt:
    """Read a receipt. Raises :class:`~memarena_spark.errors.FileError`."""
    try:
        return Receipt.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise FileError(path.name, f"is not a receipt: {' '.join(str(error).split())[:200]}") from error

"""Checks bundles through the installed certification package, and holds the result.

The harness does not import that package, which imports the harness; the package names its function in the entry point
group :data:`GROUP`.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, cast

from memarena.log.base import Record
from memarena.scoring.run import ScoredRun
from memarena.scoring.run_facts import RunFacts
from memarena.site.errors import SiteError

GROUP = "memarena.certification"
STATEMENT, SUMS = "statement.json", "SHA256SUMS"
LOG_FOLDER = "log"


class Certificate(Record):
    """Statements of a bundle that verifies."""

    certifies: tuple[str, ...]
    """What the bundle certifies: a subset of scores, times and energy; empty if its profile is for tests."""
    profile: str
    result_class: str
    node: str
    gpu: str | None
    key: str
    """Type and fingerprint of the signing key; empty if unsigned."""
    vouched_by: str | None
    """Owner of the key by the file of allowed signers; None if no such file was used."""
    statement_sha256: str
    fresh_world: bool
    """Whether the seed of its world was derived from a commitment and a later value of a public beacon."""
    unchecked: tuple[str, ...]
    """A line for each statement that could not be checked from the bundle alone."""


@dataclass(frozen=True)
class CheckedBundle:
    """Result of checking a bundle, with its facts and scores."""

    faults: tuple[tuple[str, str], ...]
    """(file, fault); empty if the bundle verifies."""
    certificate: Certificate | None
    """None if there is a fault."""
    facts: RunFacts | None
    scored: ScoredRun | None


class BundleChecker(Protocol):
    """A function that verifies a bundle, with a file of allowed signers or None."""

    def __call__(self, bundle: Path, allowed: Path | None) -> CheckedBundle:
        """Check a bundle. Raises MemArenaError if it cannot be checked at all."""
        ...


def is_bundle(folder: Path) -> bool:
    """Whether a folder has a statement or a file of checksums, as bundles have."""
    return (folder / STATEMENT).is_file() or (folder / SUMS).is_file()


def check_bundle(bundle: Path, allowed: Path | None) -> CheckedBundle:
    """Check a bundle with the installed certification package. Raises SiteError if none is installed."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        return cast(BundleChecker, entry.load())(bundle, allowed)
    raise SiteError(
        f"{bundle}: cannot be checked: no installed package declares the entry point group {GROUP}; "
        "install memarena-spark"
    )

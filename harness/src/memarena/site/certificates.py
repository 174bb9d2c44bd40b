"""What a site knows of certification: bundles are checked by whatever package declares that it can.

The harness imports nothing of certification, which imports the harness. The package that checks bundles names its
function in the entry point group :data:`GROUP`.
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
    """What a bundle states that verifies."""

    certifies: tuple[str, ...]
    """Of scores, times and energy; empty where its profile is for tests."""
    profile: str
    result_class: str
    node: str
    gpu: str | None
    key: str
    """Type and fingerprint of the key behind the signature; empty: unsigned."""
    vouched_by: str | None
    """Whose key that is by the file of allowed signers; None: no such file was used."""
    statement_sha256: str
    fresh_world: bool
    """Whether the seed of its world follows from a commitment and a beacon's later value."""
    unchecked: tuple[str, ...]
    """What could not be checked from the bundle alone, a line each."""


@dataclass(frozen=True)
class CheckedBundle:
    """A bundle, read once."""

    faults: tuple[tuple[str, str], ...]
    """File and what is wrong with it; empty: it verifies."""
    certificate: Certificate | None
    """None with any fault."""
    facts: RunFacts | None
    scored: ScoredRun | None


class BundleChecker(Protocol):
    """Verifies a bundle, with the file of signers who may have signed it."""

    def __call__(self, bundle: Path, allowed: Path | None) -> CheckedBundle:
        """Check it. Raises MemArenaError where it cannot be checked at all."""
        ...


def is_bundle(folder: Path) -> bool:
    """Whether a folder has the form of a bundle."""
    return (folder / STATEMENT).is_file() or (folder / SUMS).is_file()


def check_bundle(bundle: Path, allowed: Path | None) -> CheckedBundle:
    """Check a bundle by the installed package that can. Raises SiteError where none can, naming the one to install."""
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        return cast(BundleChecker, entry.load())(bundle, allowed)
    raise SiteError(
        f"{bundle}: cannot be checked: no installed package declares the entry point group {GROUP}; "
        "install memarena-spark"
    )

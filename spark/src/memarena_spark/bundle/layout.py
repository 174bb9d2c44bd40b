"""Defines the files of a bundle, and which of them are derived from others."""

from __future__ import annotations

from pathlib import Path

from memarena.log.store import LOG_NAME

LOG_FOLDER = "log"
LOG = f"{LOG_FOLDER}/{LOG_NAME}"
RECORD = "record.json"
PLAN = "plan.yaml"
PROFILE = "profile.toml"
SAMPLES = f"{LOG_FOLDER}/meters/"
"""Folder of the samples; the log names its files."""
CONFORMANCE = "conformance/"
LATENCY = "latency/"
ANNOUNCEMENTS = "announcements/"
"""Folder of the node's announcements and of receipts for them, ``receipt-N.json`` with ``.sig``."""
ANNOUNCED = f"{ANNOUNCEMENTS}announcements.jsonl"
FRESH = "fresh/"
"""Folder of the commitment to a fresh world and of the beacon's value."""

MANIFEST = "manifest.json"
ENVIRONMENT = "environment.json"
ENERGY = "energy.json"
RESULTS = "results.json"
REPORT = "report.md"
PAGE = "report.html"

SUMS = "SHA256SUMS"
STATEMENT = "statement.json"
SIGNATURE = "statement.json.sig"

INPUTS = (LOG, RECORD, PLAN, PROFILE)
FOLDERS = (SAMPLES, CONFORMANCE, LATENCY, ANNOUNCEMENTS, FRESH)
"""Facts. In the folders: samples of the meters, conformance reports and, where there were any, latency study,
announcements, commitment and beacon."""
DERIVED = (MANIFEST, ENVIRONMENT, ENERGY, RESULTS, REPORT, PAGE)
"""Files derived from the facts: made when a bundle is certified, made again when it is verified."""
SEALS = (SUMS, STATEMENT, SIGNATURE)
UNFINISHED = "UNFINISHED"
"""File in a bundle that is being made. No bundle may have it, so an incomplete bundle does not verify."""


def files_of(folder: Path) -> list[str]:
    """Return the sorted names of all files below a folder, with slashes, including links and special files."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_symlink() or not p.is_dir())


def strange_folders(folder: Path) -> list[str]:
    """Return the folders below a bundle that the format does not have."""
    expected = {name.rstrip("/") for name in (LOG_FOLDER, *FOLDERS)}
    folders = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_dir() and not p.is_symlink())
    return sorted(set(folders) - expected)


def content_of(folder: Path) -> list[str]:
    """Return the files that are hashed: all but the seals."""
    return [name for name in files_of(folder) if name not in SEALS]

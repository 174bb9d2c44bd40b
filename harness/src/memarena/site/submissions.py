"""Reads and checks a folder of submissions: ``NAME/bundle/`` and ``NAME/submission.toml``.

A submission is the bundle of a vendor's own certification run, sent to be shown on the site.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from pydantic import Field, ValidationError

from memarena.log.base import Record
from memarena.site.certificates import BundleChecker
from memarena.site.errors import SiteError

SCHEMA = 1
FILE, BUNDLE = "submission.toml", "bundle"
_FOLDER = re.compile(r"[a-z0-9][a-z0-9-]{0,62}")
_Line = Annotated[str, Field(max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
_Url = Annotated[str, Field(max_length=500, pattern=r"^(https://[^\s<>\"'\x00-\x1f]+)?$")]


class Submission(Record):
    """``submission.toml``: statements of the submitter about a bundle; measurements are in the bundle."""

    name: Annotated[_Line, Field(min_length=1)]
    """Name on the site."""
    memory: Annotated[_Line, Field(min_length=1)]
    """Name of the submitted backend in the bundle."""
    contact: Annotated[_Line, Field(min_length=1)]
    """Contact of the submitter."""
    key: Annotated[str, Field(pattern=r"^[A-Z0-9@.-]+ SHA256:[A-Za-z0-9+/=]+$")]
    """Type and fingerprint of the signing key, as ``memarena-spark verify`` prints it."""
    public_dataset: bool = False
    """Whether questions and right answers of the data set, and so the bundle, may be published."""
    bundle_url: _Url = ""
    """URL of the bundle, if it is not in the site."""
    note: _Line = ""


def is_submissions(folder: Path) -> bool:
    """Whether a folder holds submissions."""
    return any(folder.glob(f"*/{FILE}"))


def submissions_of(folder: Path) -> Iterator[tuple[Path, Submission]]:
    """Yield bundle and ``submission.toml`` of each submission. Raises SiteError for the first that cannot be read."""
    for path in sorted(p for p in folder.iterdir() if not p.name.startswith(".")):
        if path.is_dir():
            yield path / BUNDLE, read_submission(path / FILE)


def read_submission(path: Path) -> Submission:
    """Read a ``submission.toml``. Raises SiteError naming file, field and what is expected."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        if content.pop("schema", None) != SCHEMA:
            raise SiteError(f"{path}: schema: expected {SCHEMA}")
        return Submission.model_validate(content)
    except OSError as error:
        raise SiteError(f"{path}: cannot be read: {error.strerror}") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SiteError(f"{path}: expected TOML: {error}") from error
    except ValidationError as error:
        first = error.errors()[0]
        raise SiteError(f"{path}: {'.'.join(map(str, first['loc']))}: {first['msg']}") from error


def submission_faults(folder: Path, check: BundleChecker, allowed: Path | None) -> Iterator[str]:
    """Yield a line for each fault in a folder of submissions: file, field, what is expected."""
    if not folder.is_dir():
        raise SiteError(f"{folder}: expected a folder of submissions")
    statements: dict[str, str] = {}
    for path in sorted(folder.iterdir()):
        name = path.name
        if not path.is_dir() or path.is_symlink():
            if not name.startswith(".") and name not in ("README.md", "allowed_signers"):
                yield f"{name}: expected a folder, README.md or allowed_signers"
            continue
        if name.startswith("."):
            continue
        if not _FOLDER.fullmatch(name):
            yield f"{name[:80]!r}: expected a folder's name of a-z, 0-9 and hyphens, 63 at most"
        for inside in sorted(p.name for p in path.iterdir()):
            if inside not in (FILE, BUNDLE):
                yield f"{name}/{inside[:80]}: is not of a submission; expected {FILE} and {BUNDLE}/"
        try:
            submission = read_submission(path / FILE)
        except SiteError as error:
            yield str(error)
            continue
        yield from _bundle_faults(name, path / BUNDLE, submission, check, allowed, statements)


def _bundle_faults(
    name: str,
    bundle: Path,
    submission: Submission,
    check: BundleChecker,
    allowed: Path | None,
    entries_by_statement: dict[str, str],
) -> Iterator[str]:
    """Yield a line for each fault of a submitted bundle, or of its ``submission.toml`` compared with it."""
    if not bundle.is_dir():
        yield f"{name}/{BUNDLE}: expected the folder of a bundle"
        return
    checked_bundle = check(bundle, allowed)
    yield from (f"{name}/{BUNDLE}/{file}: {message}" for file, message in checked_bundle.faults)
    if checked_bundle.certificate is None or checked_bundle.scored is None:
        return
    key = checked_bundle.certificate.key
    if key != submission.key:
        yield f"{name}/{FILE}: key: states {submission.key}; expected that of the signature, {key or 'unsigned'}"
    memories = sorted({row.backend for row in checked_bundle.scored.scores.rows})
    if submission.memory not in memories:
        yield f"{name}/{FILE}: memory: states {submission.memory!r}; expected one of the bundle: {', '.join(memories)}"
    first = entries_by_statement.setdefault(checked_bundle.certificate.statement_sha256, name)
    if first != name:
        yield f"{name}/{BUNDLE}: is the bundle of {first}; expected each bundle once"

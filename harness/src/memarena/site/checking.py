"""Checks a site: verifies each bundle, recomputes each summary from its bundle, and each page from the summaries.

For readers who do not trust the site's maker (``memarena site check``): a changed figure is reported as a fault.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memarena_dataset.safe_files import sha256_of
from pydantic import ValidationError

from memarena.site.archives import unpack
from memarena.site.building import Loaded, Views, traces_of
from memarena.site.certificates import LOG_FOLDER, STATEMENT, BundleChecker, CheckedBundle, is_bundle
from memarena.site.differences import difference
from memarena.site.entries import Entry, entry_of
from memarena.site.errors import SiteError
from memarena.site.rendering import INDEX, entry_differences, questions_file, read_index, site_files

_MOST_FIELDS = 5
"""Differing fields of a summary that are reported at most."""


@dataclass
class SiteCheck:
    """Result of a check; each line names an entry or a file."""

    confirmed: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)
    faults: list[tuple[str, str]] = field(default_factory=list)
    """(file, fault)."""


@dataclass(frozen=True)
class Trust:
    """Functions and files by which a site is checked."""

    check: BundleChecker
    views: Views
    allowed: Path | None = None
    """File of allowed signers; None accepts any key that equals the one in the summary."""
    bundles: tuple[Path, ...] = ()
    """Folders with bundles that are not in the site."""


def check_site(site: Path, trust: Trust) -> SiteCheck:
    """Check the site in a folder. Raises SiteError if the folder is not a site."""
    if not (site / INDEX).is_file():
        raise SiteError(f"{site}: expected the folder of a site, with {INDEX} in it")
    result = SiteCheck()
    bundles_by_statement = {sha256_of(folder / STATEMENT): folder for folder in _bundles(trust.bundles)}
    entries, pages = [], dict[str, str]()
    for name in read_index((site / INDEX).read_bytes(), INDEX).entries:
        stated_entry = _stated(site, name, result)
        if stated_entry is None:
            continue
        expected, page = _expected(site, stated_entry, trust, bundles_by_statement, result)
        entries.append(expected)
        pages.update(page)
    if not result.faults:
        pages.update(site_files(entries))
        _compare(site, pages, entries, result)
    return result


def _bundles(folders: Iterable[Path]) -> Iterator[Path]:
    for folder in folders:
        if is_bundle(folder):
            yield folder
        yield from (path.parent for path in sorted(folder.glob(f"**/{STATEMENT}")) if path.parent != folder)


def _stated(site: Path, name: str, result: SiteCheck) -> Entry | None:
    """Return the summary of an entry in the site; None, with a fault recorded, if it is missing or invalid."""
    path = site / "data" / f"{name}.json"
    file = f"data/{name}.json"
    if path.parent.resolve() != (site / "data").resolve() or not path.is_file() or path.is_symlink():
        result.faults.append((file, f"is missing, and {INDEX} names it"))
        return None
    try:
        entry = Entry.model_validate_json(path.read_bytes())
    except (ValidationError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else {"loc": (), "msg": str(error)}
        result.faults.append((file, f"{'.'.join(map(str, first['loc'])) or 'file'}: {first['msg']}"))
        return None
    if entry.entry_id != name:
        result.faults.append((file, f"entry_id: states {entry.entry_id[:80]!r}; expected {name!r}"))
        return None
    return entry


def _expected(
    site: Path, stated: Entry, trust: Trust, bundles_by_statement: dict[str, Path], result: SiteCheck
) -> tuple[Entry, dict[str, str]]:
    """Return the summary and the page of questions, recomputed from the entry's bundle.

    An entry without a certificate has no bundle: its summary is returned as stated, and reported as unchecked.
    """
    name = stated.entry_id
    if stated.certificate is None:
        if stated.archive_sha256 is not None:
            result.faults.append((f"data/{name}.json", "archive_sha256: is set; expected none without a certificate"))
        result.unchecked.append(f"{stated.name}: a run without a bundle, its figures are as the site states them")
        return stated, _unchecked_questions(site, stated)
    archive = site / "bundles" / f"{name}.tar.gz"
    with tempfile.TemporaryDirectory(prefix="memarena-site-") as folder:
        try:
            bundle = _bundle(archive, stated, bundles_by_statement, Path(folder))
        except SiteError as error:
            result.faults.append((f"bundles/{name}.tar.gz", str(error)))
            return stated, {}
        if bundle is None:
            reason = "certificate: its bundle is neither in the site nor in a folder of --bundles; expected one of them"
            result.faults.append((f"data/{name}.json", reason))
            return stated, {}
        location = f"bundles/{name}.tar.gz" if archive.is_file() else str(bundle)
        checked_bundle = trust.check(bundle, trust.allowed)
        result.faults += [(f"{location}/{file}", message) for file, message in checked_bundle.faults]
        if checked_bundle.certificate is None:
            return stated, {}
        return _against(stated, checked_bundle, bundle, trust, result)


def _bundle(archive: Path, stated: Entry, bundles_by_statement: dict[str, Path], folder: Path) -> Path | None:
    """Return the folder of an entry's bundle: unpacked from the site, or one of ``--bundles``; None if missing."""
    if stated.archive_sha256 is None:
        assert stated.certificate is not None
        return bundles_by_statement.get(stated.certificate.statement_sha256)
    if not archive.is_file() or archive.is_symlink():
        raise SiteError("is missing; the summary of its entry names it")
    digest = sha256_of(archive)
    if digest != stated.archive_sha256:
        raise SiteError(f"is another bundle: its SHA-256 is {digest}; expected {stated.archive_sha256}")
    return unpack(archive, stated.entry_id, folder)


def _against(
    stated: Entry, checked: CheckedBundle, bundle: Path, trust: Trust, result: SiteCheck
) -> tuple[Entry, dict[str, str]]:
    """Compare a summary with one recomputed from its bundle; return that, and the page of its questions."""
    assert checked.certificate is not None and checked.facts is not None and checked.scored is not None
    assert stated.certificate is not None
    file = f"data/{stated.entry_id}.json"
    vouched_by = stated.certificate.vouched_by if trust.allowed is None else checked.certificate.vouched_by
    if vouched_by is not None and trust.allowed is None:
        claim = f"that {vouched_by} vouches for its key, as the site states"
        result.unchecked.append(f"{stated.name}: {claim} (--allowed-signers)")
    certificate = checked.certificate.model_copy(update={"vouched_by": vouched_by})
    expected_entry = entry_of(
        stated.name, checked.facts, checked.scored, certificate=certificate, submission=stated.submission,
        public=stated.public,
    ).model_copy(
        update={
            "archive_sha256": stated.archive_sha256,
            "questions": stated.questions,
            "questions_per_row": stated.questions_per_row,
        }
    )  # fmt: skip
    differ = list(entry_differences(stated, expected_entry))
    for path, stated_value, expected_value in differ[:_MOST_FIELDS]:
        result.faults.append((file, f"{path}: states {stated_value[:120]}; expected {expected_value[:120]}"))
    if stated.submission is not None and stated.submission.key != certificate.key:
        states = f"states {stated.submission.key}; expected that of the signature, {certificate.key}"
        result.faults.append((file, f"submission.key: {states}"))
    if not differ:
        result.confirmed.append(
            f"{stated.name}: its bundle verifies and gives its figures; {certificate.key or 'unsigned'}"
        )
    logs = {cell.cell_id: bundle / LOG_FOLDER for cell in checked.facts.manifest.cells}
    if not stated.questions:
        return expected_entry, {}
    run = Loaded(bundle, stated.name, checked.facts, checked.scored, logs)
    return expected_entry, dict([questions_file(expected_entry, traces_of(run, trust.views, stated.questions_per_row))])


def _unchecked_questions(site: Path, stated: Entry) -> dict[str, str]:
    """Return the page of questions of an entry without a bundle, unchecked; empty if it has none."""
    path = f"questions/{stated.entry_id}.html"
    return {path: (site / path).read_text(encoding="utf-8")} if stated.questions and (site / path).is_file() else {}


def _compare(site: Path, pages: dict[str, str], entries: Sequence[Entry], result: SiteCheck) -> None:
    """Compare every file with its content computed from the summaries, and report files that do not belong."""
    archives = {f"bundles/{entry.entry_id}.tar.gz" for entry in entries if entry.archive_sha256 is not None}
    existing = {path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_symlink() or not path.is_dir()}
    result.faults += [(path, "is not of the site") for path in sorted(existing - set(pages) - archives)]
    for path, expected in pages.items():
        file = site / path
        if path not in existing or file.is_symlink():
            result.faults.append((path, "is missing, or is no plain file"))
            continue
        content = file.read_bytes()
        if content != expected.encode():
            result.faults.append((path, difference(content.decode(errors="replace"), expected)))
    if not result.faults:
        result.confirmed.append(f"{len(pages):,} files are what the summaries of {len(entries):,} entries give")

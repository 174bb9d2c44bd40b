"""Certifies a finished run: makes its bundle, or reports the reasons why it is refused."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from memarena.log.store import LOG_NAME, LogError, LogReader, log_path
from memarena_dataset.safe_files import sha256_of, sync_folder

from memarena_spark import announcing, running
from memarena_spark.bundle import layout
from memarena_spark.bundle.derived import derive, read_facts
from memarena_spark.bundle.latency import NAME, check_study
from memarena_spark.bundle.phases import samples_files
from memarena_spark.bundle.rules import distinct, refusals_of
from memarena_spark.bundle.signing import sign
from memarena_spark.bundle.statement import statement, sums
from memarena_spark.errors import RefusedError, SparkError
from memarena_spark.files import write_whole
from memarena_spark.refusal_codes import refusal


def certify(
    run: Path, bundle: Path, key: Path | None, latency: Path | None = None, receipts: Sequence[Path] = ()
) -> None:
    """Make the folder ``bundle`` of the finished run in ``run``, signed with ``key`` (None: unsigned).

    ``latency`` is the folder of a latency study that goes with it, ``receipts`` are those of an announced run. Raises
    :class:`~memarena_spark.errors.RefusedError` with every reason why the run is not certified, and SparkError for bad
    input. If it ends early for any reason, nothing is left that verifies.
    """
    if bundle.exists():
        raise SparkError(f"--out {bundle}: is there already; a bundle is never overwritten")
    if not run.is_dir():
        raise SparkError(f"{run}: no such folder; expected that of a memarena-spark run")
    if not (run / running.RECORD).is_file():
        _refuse_unrecorded(run)
    if latency is not None and not (latency / NAME).is_file():
        raise SparkError(f"--latency {latency}: expected the folder of a latency study (with {NAME} in it)")
    with _folder_in_the_making(bundle) as folder:
        _gather(run, folder, latency)
        _gather_announcements(run, folder, receipts)
        for name in layout.files_of(run / running.FRESH):
            _copy(run / running.FRESH / name, folder / layout.FRESH / name)
        facts = read_facts(folder)
        refusals = refusals_of(facts, folder / layout.LOG_FOLDER)
        if facts.profile.demands.signature and key is None:
            refusals.append(refusal("unsigned", f"the profile {facts.profile.name} demands a signature"))
        study = check_study(folder, facts.run.started.run_id)
        refusals += [refusal("latency-study", f"{name}: {fault}") for name, fault in study.faults]
        # All reasons are collected before refusing, so that an operator sees them at once.
        if refusals:
            raise RefusedError("certify", distinct(refusals))
        # In this order: the sums cover the derived files, the statement the same files, the signature the statement.
        for name, content in derive(facts).items():
            write_whole(folder / name, content)
        hashes = {n: sha256_of(folder / n) for n in layout.content_of(folder) if n != layout.UNFINISHED}
        write_whole(folder / layout.SUMS, sums(hashes))
        write_whole(folder / layout.STATEMENT, statement(facts, hashes))
        if key is not None:
            sign(folder / layout.STATEMENT, key)


def _refuse_unrecorded(run: Path) -> None:
    if not (run / running.PLAN).is_file():
        raise SparkError(f"{run}: not the folder of a memarena-spark run (no {running.RECORD})")
    reason = f"{run} holds no {running.RECORD}: the run did not end in order"
    raise RefusedError("certify", [refusal("not-complete", reason)])


@contextlib.contextmanager
def _folder_in_the_making(bundle: Path) -> Iterator[Path]:
    """Yield a folder next to the bundle, renamed at the end. Until then it has a file that no bundle may have."""
    folder = bundle.with_name(f".{bundle.name}.partial-{os.getpid()}")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise SparkError(f"--out {bundle}: cannot be made: {error.strerror}") from error
    try:
        write_whole(folder / layout.UNFINISHED, b"This bundle is being made, or its making was cut short.\n")
        yield folder
        sync_folder(folder)
        folder.rename(bundle)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    # After the renaming, so that a power cut between the two leaves a bundle that does not verify.
    (bundle / layout.UNFINISHED).unlink()
    sync_folder(bundle)
    sync_folder(bundle.absolute().parent)


def _gather(run: Path, folder: Path, latency: Path | None) -> None:
    """Copy the facts into the bundle's folder."""
    _copy_log(run / running.RUN, folder / layout.LOG_FOLDER)
    for source, name in (
        (running.RECORD, layout.RECORD),
        (running.PLAN, layout.PLAN),
        (running.PROFILE, layout.PROFILE),
    ):
        _copy(run / source, folder / name)
    for name in samples_files(folder / layout.LOG_FOLDER):
        _copy(run / running.RUN / name, folder / layout.LOG_FOLDER / name)
    for report in sorted((run / "conformance").glob("*.xml")):
        _copy(report, folder / layout.CONFORMANCE / report.name)
    for name in layout.files_of(latency) if latency is not None else ():
        if latency is not None:
            _copy(latency / name, folder / layout.LATENCY / name)


def _gather_announcements(run: Path, folder: Path, receipts: Sequence[Path]) -> None:
    """Copy the current announcements of the node, including later attempts, and the receipts."""
    own = run / announcing.NAME
    if not own.is_file():
        if receipts:
            raise SparkError(f"--receipt {receipts[0]}: the run was not announced (run --announced)")
        return
    content, node = own.read_bytes(), announcing.announcements_path()
    now = node.read_bytes() if node.is_file() else content
    if not now.startswith(content):
        raise SparkError(f"{node}: does not continue the announcements of the run ({own})")
    write_whole(folder / layout.ANNOUNCED, now)
    for number, receipt in enumerate(receipts, 1):
        for source, suffix in ((receipt, ""), (receipt.with_name(f"{receipt.name}.sig"), ".sig")):
            _copy(source, folder / layout.ANNOUNCEMENTS / f"receipt-{number}.json{suffix}")


def _copy(source: Path, target: Path) -> None:
    try:
        content = source.read_bytes()
    except OSError as error:
        raise SparkError(f"{source}: cannot be read: {error.strerror}") from error
    write_whole(target, content)


def _copy_log(run: Path, folder: Path) -> None:
    """Copy the log as a single file, with the content of its write-ahead log; reading it creates no other files."""
    source = log_path(run)
    if not source.is_file():
        raise SparkError(f"{run}: no run log ({LOG_NAME}) in this folder")
    try:
        with LogReader(run) as reader:
            reader.verify()
    except LogError as error:
        raise SparkError(str(error)) from error
    folder.mkdir(parents=True)
    target = folder / LOG_NAME
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as log,
            closing(sqlite3.connect(target)) as copy,
        ):
            log.backup(copy)
            copy.execute("PRAGMA journal_mode=DELETE")
    except sqlite3.Error as error:
        raise SparkError(f"{source}: cannot be copied: {error}") from error
    with target.open("rb") as file:
        os.fsync(file.fileno())

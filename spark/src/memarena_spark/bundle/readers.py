"""Checks the readers of a run: each must be a process of the node, observed throughout, connected to no other node."""

from __future__ import annotations

from collections.abc import Iterator

from memarena.log.manifest import ReaderRef

from memarena_spark.bundle.derived import Facts
from memarena_spark.errors import Refusal
from memarena_spark.facts import Unknown
from memarena_spark.refusal_codes import refusal
from memarena_spark.watching.records import ReaderWatch

MOST_UNSEEN_S = 30.0
"""Longest time without an observation of a reader while questions are asked: 15 periods, for a machine under load."""


def reader_refusals(facts: Facts) -> Iterator[Refusal]:
    """Yield why the readers of a run may not be used in a certified run."""
    if isinstance(facts.record.readers, Unknown):
        yield refusal("reader-unknown", facts.record.readers.unknown)
        return
    watches = {watch.name: watch for watch in facts.record.readers}
    for reader in facts.run.manifest.readers:
        watch = watches.get(reader.name)
        if watch is None or watch.base_url != str(reader.base_url):
            yield refusal("reader-unknown", f"reader {reader.name}: its process was not looked at")
        elif watch.reach == "elsewhere":
            yield refusal("reader-elsewhere", f"reader {reader.name}: {watch.base_url} is not on loopback")
        elif watch.reach == "loopback":
            yield from _processes(facts, reader, watch)


def _processes(facts: Facts, reader: ReaderRef, watch: ReaderWatch) -> Iterator[Refusal]:
    """Yield why a reader's processes are not known well enough: unreadable, unobserved, or other weights."""
    name = f"reader {reader.name}"
    for where in watch.elsewhere:
        yield refusal("reader-elsewhere", f"{name}: connected to {where}")
    for reason in watch.unknown:
        yield refusal("reader-unknown", f"{name}: {reason}")
    for process in watch.processes:
        if isinstance(process.executable_sha256, Unknown):
            yield refusal("reader-unknown", f"{name}: {process.executable_sha256.unknown}")
    if (unseen_s := _unseen_s(facts, watch)) > MOST_UNSEEN_S:
        yield refusal("reader-unknown", f"{name}: not looked at for {unseen_s:.0f} s while questions were asked")
    logged = reader.details.get("weights_sha256")
    if logged and not isinstance(watch.model, Unknown) and logged not in {file.sha256 for file in watch.model}:
        yield refusal("reader-unknown", f"{name}: the log names weights {logged[:12]}, which its process does not have")


def _unseen_s(facts: Facts, watch: ReaderWatch) -> float:
    """Return the longest time between two observations, from the first question to the last."""
    if not watch.looks:
        return float("inf")
    span = facts.record.span
    moments = (attempt.record.asked_mono_ns for attempts in facts.run.attempts.values() for attempt in attempts)
    asked_ns = [moment for moment in moments if span.start_ns <= moment <= span.end_ns]
    edges = (watch.first_ns - min(asked_ns), max(asked_ns) - watch.last_ns) if asked_ns else ()
    unseen_ns: int = max((watch.longest_gap_ns, *edges))
    return unseen_ns / 1e9


def reader_notes(facts: Facts) -> Iterator[tuple[bool, str]]:
    """Yield for each reader whether it was checked, and a line on what is known of it."""
    without_model = {reader.name for reader in facts.run.manifest.readers if not reader.is_real_reader}
    watches = () if isinstance(facts.record.readers, Unknown) else facts.record.readers
    for watch in watches:
        name = f"reader {watch.name}"
        if watch.reach == "container":
            yield False, f"{name}: {watch.base_url} was in another container, which was not looked into"
            continue
        programs = ", ".join(
            f"{entry.executable.rpartition('/')[2]} {str(entry.executable_sha256)[:12]}"
            for entry in watch.processes
            if entry.role == "listener"
        )
        yield True, f"{name}: {programs}, connected to loopback alone in {watch.looks} looks"
        if watch.name in without_model:
            continue
        if isinstance(watch.model, Unknown):
            yield False, f"{name}: the bytes of its model: {watch.model.unknown}"
        else:
            weights = ", ".join(f"{entry.name} {entry.sha256[:12]}" for entry in watch.model)
            yield True, f"{name}: weights {weights}"

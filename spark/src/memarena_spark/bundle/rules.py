"""What may be certified: rules over a run's facts alone, the same when a bundle is made and when it is verified."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from memarena.execution.planning.config import RunConfig
from memarena.log.records import OWN_MODEL, Outcome, ReaderRef
from memarena.log.store import LogReader
from memarena.scoring.timing import floor
from pydantic import JsonValue

from memarena_spark.announcing import Attempt, plan_sha256
from memarena_spark.bundle.coherence import contradictions
from memarena_spark.bundle.derived import Facts
from memarena_spark.bundle.fresh import fresh_faults
from memarena_spark.checks.canaries import check_canary, check_drift
from memarena_spark.errors import Refusal
from memarena_spark.plans import effective_run, plan_faults
from memarena_spark.profiles import is_ours
from memarena_spark.refusal_codes import refusal
from memarena_spark.thermal import check_thermal

_PREFILLING = ("search", "answer", "central")
"""Phases whose model calls are timed."""
_GENERATING = ("/v1/chat/completions", "/v1/completions")
_CONTAINED = ("container", "unknown")
"""An address is that of an image: another has no digest, and no report of the conformance suite."""
_FAILED = (Outcome.BACKEND_FAILED, Outcome.INFRA_FAILED, Outcome.READER_NOT_APPLICABLE)
_MAY_DIFFER = {"dataset", "id_key"}
"""Settings of a run that are not written to its log as the plan has them."""


def refusals_of(facts: Facts, log_folder: Path) -> list[Refusal]:
    """Every reason why a run is not certified; empty if it is."""
    return [
        *_completeness(facts),
        *(refusal("incoherent", each) for each in contradictions(facts.run, facts.record, log_folder)),
        *_plan(facts),
        *_cells(facts),
        *_asked_for(facts),
        *_questions(facts),
        *_cache(facts, log_folder),
        *_samples(facts),
        *_course(facts),
        *_contract(facts),
        *_energy(facts),
        *_profile(facts),
        *_announced(facts),
        *(refusal("fresh-world", each) for each in fresh_faults(facts)),
    ]


def _completeness(facts: Facts) -> Iterator[Refusal]:
    record, run = facts.record, facts.run
    if record.outcome != "completed" or run.ended is None or run.ended.reason != "completed":
        how = record.outcome if record.outcome != "completed" else run.ended.reason if run.ended else "never"
        yield refusal("not-complete", f"the run ended: {how} {record.message}".rstrip())
    if record.left:
        yield refusal("not-complete", f"{record.left} questions were not settled when the run was over")
    if run.segments != 1:
        yield refusal("resumed", f"the log holds {run.segments} processes' work, expected that of one")
    wanted = json.loads(effective_run(facts.plan, facts.profile).model_dump_json(exclude=_MAY_DIFFER))
    logged = json.loads(RunConfig.model_validate_json(run.manifest.config_json).model_dump_json(exclude=_MAY_DIFFER))
    for name in sorted(wanted):
        if wanted[name] != logged[name]:
            yield refusal("not-complete", f"the plan's run.{name} is not what was run")
    if not run.manifest.cells or not run.questions:
        yield refusal("missing-question", "the log holds no cell or no question")


def _asked_for(facts: Facts) -> Iterator[Refusal]:
    """The questions of the log are those that the plan asks, as far as that can be told without the data set."""
    wanted, found = facts.plan.run, facts.run.questions
    there = facts.run.manifest.dataset.instance_count
    most = min(len(set(wanted.question_ids)) or there, there if wanted.limit is None else wanted.limit)
    if len(found) > most or (len(found) < most and not wanted.egos and not wanted.families):
        yield refusal("missing-question", f"{len(found)} questions are in the log, the plan asks {most}")
    for name, question in found.items():
        asked = question.instance
        other_ego = wanted.egos and asked.ego_agent_id not in wanted.egos
        other_family = wanted.families and asked.family not in wanted.families
        if other_ego or other_family or (wanted.question_ids and name not in wanted.question_ids):
            yield refusal("missing-question", f"{name} is in the log and not among the questions of the plan")
            return


def _plan(facts: Facts) -> Iterator[Refusal]:
    """What the plan must be, and what it must have led to."""
    for fault in plan_faults(facts.plan, facts.profile):
        yield refusal("plan-lacks", fault)
    if floor(facts.run) is None:
        yield refusal("no-floor", "the log holds no round trips of the null backend and the null reader")
    if facts.profile.demands.golden_prompt_tokens:
        for reader in facts.run.manifest.readers:
            if reader.is_real_reader and reader.name not in facts.template_tokens:
                yield refusal("template-unchecked", f"reader {reader.name}: no fixed chat was counted")


def _cells(facts: Facts) -> Iterator[Refusal]:
    readers = {reader.name: reader for reader in facts.run.manifest.readers}
    for cell in facts.run.manifest.cells:
        described = facts.run.described.get(cell.cell_id)
        if cell.diagnostic or (described is not None and described.backend_kind == "diagnostic"):
            yield refusal("diagnostic", f"{cell.cell_id}: {cell.backend} is a diagnostic backend")
        if described is not None and OWN_MODEL in described.capabilities:
            yield refusal("own-model", f"{cell.cell_id}: {cell.backend} calls models of its own (SPEC.md MOD-9)")
        grade = described.isolation if described is not None else None
        if facts.profile.demands.containers and grade not in _CONTAINED:
            yield refusal("not-isolated", f"{cell.cell_id}: isolation {grade or 'not logged'}, expected container")
        if not cell.timing:
            yield refusal("not-timed", f"{cell.cell_id}: times of this cell mean nothing (concurrency or a cache)")
        if facts.profile.demands.real_reader and not readers[cell.reader].is_real_reader:
            yield refusal("no-real-reader", f"{cell.cell_id}: {cell.reader} is no reader")


def _questions(facts: Facts) -> Iterator[Refusal]:
    failed = [q for q in facts.scored.questions if q.outcome in _FAILED]
    for cell_id, count in sorted(Counter(q.cell_id for q in failed).items()):
        first = next(q for q in failed if q.cell_id == cell_id)
        yield refusal("failed-question", f"{cell_id}: {count} failed, the first {first.instance_id}: {first.why}")
    settled = {(q.cell_id, q.instance_id) for q in facts.scored.questions if q.outcome is not None}
    planned = {(c.cell_id, i) for c in facts.run.manifest.cells for i in facts.run.questions}
    if missing := sorted(planned - settled):
        cell_id, instance_id = missing[0]
        yield refusal("missing-question", f"{len(missing)} were never asked, the first {instance_id} of {cell_id}")


def _cache(facts: Facts, log_folder: Path) -> Iterator[Refusal]:
    """In the class cold no call may have found any part of its prompt in a cache, and each must say so."""
    if facts.plan.result_class != "cold":
        return
    cells = {cell.cell_id: cell.reader for cell in facts.run.manifest.cells}
    readers = {reader.name: reader for reader in facts.run.manifest.readers if reader.is_real_reader}
    for reader in readers.values():
        if _radix_cache(reader) == "on":
            yield refusal(
                "warm-cache", f"reader {reader.name}: its prefix cache is on (disable_radix_cache is not True)"
            )
    warm: list[str] = []
    untold: list[str] = []
    for call in _timed_calls(log_folder):
        used = readers.get(cells.get(str(call["cell_id"]), ""))
        if used is None:
            continue
        cached = call.get("cached_tokens")
        where = f"{call['cell_id']}: {call.get('instance_id')} had {cached} cached tokens"
        if isinstance(cached, int) and cached > 0:
            warm.append(where)
        elif cached is None and call["status"] == 200 and _radix_cache(used) != "off":
            untold.append(f"{call['cell_id']}: {call.get('instance_id')}: the server did not say how many were cached")
    if warm:
        yield refusal("warm-cache", f"{len(warm)} calls were warm in the class cold, the first {warm[0]}")
    if untold:
        yield refusal("cache-unknown", f"{len(untold)} calls, the first {untold[0]}")


def _radix_cache(reader: ReaderRef) -> str:
    """SGLang's prefix cache as read back: ``on``, ``off``, or empty where the server has no such flag.

    A server that the run started itself is known by its kind, one behind a URL by what it says of itself.
    """
    if reader.kind != "sglang" and reader.details.get("server") != "sglang":
        return ""
    return "off" if reader.details.get("disable_radix_cache") == "True" else "on"


def _timed_calls(log_folder: Path) -> Iterator[Mapping[str, JsonValue]]:
    with LogReader(log_folder) as log:
        for row in log.rows("gateway_call"):
            call = json.loads(row.body)
            if call["phase"] in _PREFILLING and call["route"] in _GENERATING and call["cell_id"] is not None:
                yield call


def _samples(facts: Facts) -> Iterator[Refusal]:
    least = facts.profile.least_samples
    for row in facts.scored.scores.rows:
        counts = (0, 0) if row.latency is None else (row.latency.search.n, row.latency.ttft.n)
        for what, n in zip(("Search", "TTFT"), counts, strict=True):
            if n < least:
                yield refusal("too-few-samples", f"{row.label}: {n} samples of {what}, expected at least {least}")


def _course(facts: Facts) -> Iterator[Refusal]:
    """What happened on the way."""
    record, run, profile = facts.record, facts.run, facts.profile
    for problem in run.problems:
        yield refusal("problem", problem)
    for row in facts.scored.scores.rows:
        if row.after_return_calls:
            yield refusal("late-calls", f"{row.label}: {row.after_return_calls} model calls after an RPC had returned")
    span = record.span
    outside = sum(
        not span.start_ns <= attempt.record.asked_mono_ns <= span.end_ns
        for made in run.attempts.values()
        for attempt in made
    )
    if outside:
        yield refusal("outside-phase", f"{outside} questions were not asked between the run's start and end")
    yield from record.preflight.refusals
    yield from check_canary(record.preflight.canary, profile.canary, facts.plan.golden)
    yield from check_drift(record.preflight.canary, record.canary_after, profile.canary)
    yield from check_thermal(record.thermal, profile.thermal)
    for change in record.changed:
        yield refusal("node-changed", f"after the run: {change.code}: {change.reason}")


def _contract(facts: Facts) -> Iterator[Refusal]:
    reports = {report.backend: report for report in facts.record.conformance}
    for name in dict.fromkeys(cell.backend for cell in facts.run.manifest.cells):
        report = reports.get(name)
        if report is None:
            yield refusal("conformance", f"{name}: no conformance report")
            continue
        if not report.passed:
            yield refusal("conformance", f"{name}: {report.counts.get('failed', 0)} checks failed, see {report.file}")
        after = facts.record.code_after.get(name)
        if after is None or after.digest != report.code.digest:
            now = after.digest if after else "unknown"
            yield refusal("code-changed", f"{name}: {report.code.digest} kept the contract, {now} was there at the end")


def _energy(facts: Facts) -> Iterator[Refusal]:
    """Every cell's gross energy on the rails that the profile requires."""
    if not facts.profile.required_energy:
        return
    cells = {phase.cell_id: phase for phase in facts.phases if phase.phase == "cell"}
    for cell in facts.run.manifest.cells:
        phase = cells.get(cell.cell_id)
        rails = {rail.name: rail.gross_j for rail in phase.rails} if phase is not None else {}
        for name in facts.profile.required_energy:
            gross = rails.get(name)
            if gross is None or gross.status != "value":
                yield refusal("energy", f"{cell.cell_id}: {name}: {gross.reason if gross else 'was not metered'}")


def _profile(facts: Facts) -> Iterator[Refusal]:
    if facts.profile.purpose != "test" and not is_ours(facts.profile_text):
        yield refusal("test-profile", f"{facts.profile.name} says {facts.profile.purpose}, but is none of ours")


def _announced(facts: Facts) -> Iterator[Refusal]:
    """An announced run is that of its announcement: plan, data set, node, and the order of times."""
    if facts.announcements is None:
        return
    record = facts.record
    attempt = announced_as(facts)
    if attempt is None or attempt.started is None or attempt.ended is None:
        yield refusal("announcement", f"no run that began at {record.started_at} has ended in the announcements")
        return
    made = attempt.announced
    wanted = {
        "plan and profile": (made.plan_sha256, plan_sha256(facts.plan_text, facts.profile_text)),
        "the data set": (made.dataset_sha256, facts.run.manifest.dataset.sha256),
        "the node": (made.node, record.preflight.state.identity.name),
        "the outcome": (attempt.ended.outcome, record.outcome),
    }
    for what, (announced, run) in wanted.items():
        if announced != run:
            yield refusal("announcement", f"{what} of announcement {made.number} is not that of the run")
    times = [made.at, record.started_at, attempt.started.at, record.ended_at, attempt.ended.at]
    if times != sorted(times):
        yield refusal("announcement", f"announcement {made.number}: {', '.join(times)} are not in order")


def announced_as(facts: Facts) -> Attempt | None:
    """The attempt of the announcements that the run was; None if it was none of them."""
    attempts = facts.announcements.attempts.values() if facts.announcements is not None else ()
    found = (a for a in attempts if a.ended is not None and a.ended.started_at == facts.record.started_at)
    return next(found, None)


def distinct(refusals: Iterable[Refusal]) -> list[Refusal]:
    """Each reason once, in order."""
    return list(dict.fromkeys(refusals))

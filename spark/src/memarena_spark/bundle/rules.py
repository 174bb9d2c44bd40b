"""Defines what may be certified: rules on a run's facts, the same for making and for verifying a bundle."""

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
from memarena_spark.bundle.readers import reader_refusals
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
"""Grades that are certified. ``unknown`` is an address, which must be that of an image with a digest and a report."""
_FAILED = (Outcome.BACKEND_FAILED, Outcome.INFRA_FAILED, Outcome.READER_NOT_APPLICABLE)
_MAY_DIFFER = {"dataset", "id_key"}
"""Settings of a run whose value in the log differs from that in the plan."""


def refusals_of(facts: Facts, log_folder: Path) -> list[Refusal]:
    """Return all reasons why a run is not certified; empty if it is."""
    return [
        *_completeness(facts),
        *(refusal("incoherent", line) for line in contradictions(facts.run, facts.record, log_folder)),
        *_plan(facts),
        *_cells(facts),
        *_asked_for(facts),
        *_questions(facts),
        *_cache(facts, log_folder),
        *_samples(facts),
        *_course(facts),
        *_contract(facts),
        *reader_refusals(facts),
        *_energy(facts),
        *_profile(facts),
        *_announced(facts),
        *(refusal("fresh-world", line) for line in fresh_faults(facts)),
    ]


def _completeness(facts: Facts) -> Iterator[Refusal]:
    """Yield why a run is not complete: its end, open questions, several processes, or other settings than planned."""
    record, run = facts.record, facts.run
    if record.outcome != "completed" or run.ended is None or run.ended.reason != "completed":
        ending = record.outcome if record.outcome != "completed" else run.ended.reason if run.ended else "never"
        yield refusal("not-complete", f"the run ended: {ending} {record.message}".rstrip())
    if record.left:
        yield refusal("not-complete", f"{record.left} questions had no outcome when the run was over")
    if run.segments != 1:
        yield refusal("resumed", f"the log holds {run.segments} processes' work, expected that of one")
    planned_run = json.loads(effective_run(facts.plan, facts.profile).model_dump_json(exclude=_MAY_DIFFER))
    logged_run = json.loads(
        RunConfig.model_validate_json(run.manifest.config_json).model_dump_json(exclude=_MAY_DIFFER)
    )
    for name in sorted(planned_run):
        if planned_run[name] != logged_run[name]:
            yield refusal("not-complete", f"the plan's run.{name} is not what was run")
    if not run.manifest.cells or not run.questions:
        yield refusal("missing-question", "the log holds no cell or no question")


def _asked_for(facts: Facts) -> Iterator[Refusal]:
    """Check that the log's questions are those of the plan, as far as possible without the data set."""
    run_plan, questions = facts.plan.run, facts.run.questions
    question_count = facts.run.manifest.dataset.instance_count
    expected_count = min(
        len(set(run_plan.question_ids)) or question_count, question_count if run_plan.limit is None else run_plan.limit
    )
    if len(questions) > expected_count or (
        len(questions) < expected_count and not run_plan.egos and not run_plan.families
    ):
        yield refusal("missing-question", f"{len(questions)} questions are in the log, the plan asks {expected_count}")
    for name, question in questions.items():
        instance = question.instance
        other_ego = run_plan.egos and instance.ego_agent_id not in run_plan.egos
        other_family = run_plan.families and instance.family not in run_plan.families
        if other_ego or other_family or (run_plan.question_ids and name not in run_plan.question_ids):
            yield refusal("missing-question", f"{name} is in the log and not among the questions of the plan")
            return


def _plan(facts: Facts) -> Iterator[Refusal]:
    """Check the plan, and that the run followed it."""
    for fault in plan_faults(facts.plan, facts.profile):
        yield refusal("plan-lacks", fault)
    if floor(facts.run) is None:
        yield refusal("no-floor", "the log holds no round trips of the null backend and the null reader")
    if facts.profile.demands.golden_prompt_tokens:
        for reader in facts.run.manifest.readers:
            if reader.is_real_reader and reader.name not in facts.template_tokens:
                yield refusal("template-unchecked", f"reader {reader.name}: no fixed chat was counted")


def _cells(facts: Facts) -> Iterator[Refusal]:
    """Yield the cells that may not be certified, by their backend, isolation, timing or reader."""
    readers = {reader.name: reader for reader in facts.run.manifest.readers}
    for cell in facts.run.manifest.cells:
        description = facts.run.described.get(cell.cell_id)
        if cell.diagnostic or (description is not None and description.backend_kind == "diagnostic"):
            yield refusal("diagnostic", f"{cell.cell_id}: {cell.backend} is a diagnostic backend")
        if description is not None and OWN_MODEL in description.capabilities:
            yield refusal("own-model", f"{cell.cell_id}: {cell.backend} calls models of its own (SPEC.md MOD-9)")
        grade = description.isolation if description is not None else None
        if facts.profile.demands.containers and grade not in _CONTAINED:
            yield refusal("not-isolated", f"{cell.cell_id}: isolation {grade or 'not logged'}, expected container")
        if not cell.timing:
            yield refusal("not-timed", f"{cell.cell_id}: times of this cell mean nothing (concurrency or a cache)")
        if facts.profile.demands.real_reader and not readers[cell.reader].is_real_reader:
            yield refusal("no-real-reader", f"{cell.cell_id}: {cell.reader} is no reader")


def _questions(facts: Facts) -> Iterator[Refusal]:
    failures = [q for q in facts.scored.questions if q.outcome in _FAILED]
    for cell_id, count in sorted(Counter(q.cell_id for q in failures).items()):
        first = next(q for q in failures if q.cell_id == cell_id)
        yield refusal("failed-question", f"{cell_id}: {count} failed, the first {first.instance_id}: {first.why}")
    with_outcome = {(q.cell_id, q.instance_id) for q in facts.scored.questions if q.outcome is not None}
    expected = {(c.cell_id, i) for c in facts.run.manifest.cells for i in facts.run.questions}
    if missing := sorted(expected - with_outcome):
        cell_id, instance_id = missing[0]
        yield refusal("missing-question", f"{len(missing)} were never asked, the first {instance_id} of {cell_id}")


def _cache(facts: Facts, log_folder: Path) -> Iterator[Refusal]:
    """Check for the class cold that no call had cached prompt tokens, and that each reports their number."""
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
        reader_used = readers.get(cells.get(str(call["cell_id"]), ""))
        if reader_used is None:
            continue
        cached_tokens = call.get("cached_tokens")
        call_text = f"{call['cell_id']}: {call.get('instance_id')} had {cached_tokens} cached tokens"
        if isinstance(cached_tokens, int) and cached_tokens > 0:
            warm.append(call_text)
        elif cached_tokens is None and call["status"] == 200 and _radix_cache(reader_used) != "off":
            untold.append(f"{call['cell_id']}: {call.get('instance_id')}: the server did not say how many were cached")
    if warm:
        yield refusal("warm-cache", f"{len(warm)} calls were warm in the class cold, the first {warm[0]}")
    if untold:
        yield refusal("cache-unknown", f"{len(untold)} calls, the first {untold[0]}")


def _radix_cache(reader: ReaderRef) -> str:
    """Return the state of SGLang's prefix cache as read back: ``on``, ``off``, or empty without such a flag.

    A server that the run started is recognized by its kind, a server with a URL by its own description.
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
        for metric, n in zip(("Search", "TTFT"), counts, strict=True):
            if n < least:
                yield refusal("too-few-samples", f"{row.label}: {n} samples of {metric}, expected at least {least}")


def _course(facts: Facts) -> Iterator[Refusal]:
    """Check the course of the run: problems, late calls, preflight, canaries, temperature, changes of the node."""
    record, run, profile = facts.record, facts.run, facts.profile
    for problem in run.problems:
        yield refusal("problem", problem)
    for row in facts.scored.scores.rows:
        if row.after_return_calls:
            yield refusal("late-calls", f"{row.label}: {row.after_return_calls} model calls after an RPC had returned")
    span = record.span
    outside = sum(
        not span.start_ns <= attempt.record.asked_mono_ns <= span.end_ns
        for tries in run.attempts.values()
        for attempt in tries
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
    """Check that each cell has gross energy on the rails that the profile requires."""
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
    """Check that an announced run matches its announcement: plan, data set, node, and the order of times."""
    if facts.announcements is None:
        return
    record = facts.record
    attempt = announced_as(facts)
    if attempt is None or attempt.started is None or attempt.ended is None:
        yield refusal("announcement", f"no run that began at {record.started_at} has ended in the announcements")
        return
    announcement = attempt.announced
    pairs = {
        "plan and profile": (announcement.plan_sha256, plan_sha256(facts.plan_text, facts.profile_text)),
        "the data set": (announcement.dataset_sha256, facts.run.manifest.dataset.sha256),
        "the node": (announcement.node, record.preflight.state.identity.name),
        "the outcome": (attempt.ended.outcome, record.outcome),
    }
    for subject, (announced_value, run) in pairs.items():
        if announced_value != run:
            yield refusal("announcement", f"{subject} of announcement {announcement.number} is not that of the run")
    times = [announcement.at, record.started_at, attempt.started.at, record.ended_at, attempt.ended.at]
    if times != sorted(times):
        yield refusal("announcement", f"announcement {announcement.number}: {', '.join(times)} are not in order")


def announced_as(facts: Facts) -> Attempt | None:
    """Return the announced attempt that this run was; None if it was none of them."""
    attempts = facts.announcements.attempts.values() if facts.announcements is not None else ()
    matches = (a for a in attempts if a.ended is not None and a.ended.started_at == facts.record.started_at)
    return next(matches, None)


def distinct(refusals: Iterable[Refusal]) -> list[Refusal]:
    """Return each reason once, in order."""
    return list(dict.fromkeys(refusals))

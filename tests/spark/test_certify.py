"""Tests that runs which must not be certified are refused with their reason and leave no file behind."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from memarena.log.records import (
    AnyRecord,
    Cell,
    GatewayCall,
    Problem,
    QuestionAsked,
    ReaderProbed,
    RunEnded,
    RunResumed,
    RunStarted,
)
from memarena.log.store import LogWriter, read_records
from memarena_spark import announcing, running
from memarena_spark.bundle import layout
from memarena_spark.bundle.certify import certify
from memarena_spark.bundle.derived import read_record
from memarena_spark.bundle.rules import refusals_of
from memarena_spark.bundle.verify import Trust, verify
from memarena_spark.errors import Refusal, RefusedError, SparkError
from memarena_spark.facts import Unknown
from memarena_spark.files import canonical_json
from memarena_spark.fresh.commitment import BEACON, COMMITMENT, Commitment
from memarena_spark.plans import load_plan
from memarena_spark.refusal_codes import RESULT
from memarena_spark.running import RunRecord

from .commands import Invoke
from .conftest import EXAMPLE, ROOT, Keys, Studied, rewrite_log
from .studies import write_study_of
from .test_fresh_worlds import QUICKNET

Copy = Callable[[Path], Path]
PROVOKED: set[str] = set()


def refused(run: Path, tmp_path: Path, key: Path | None = None, latency: Path | None = None) -> list[Refusal]:
    """Return the refusals of a run; check that the attempt left no file behind."""
    out = tmp_path / "bundles" / "bundle"
    with pytest.raises(RefusedError) as error:
        certify(run, out, key, latency)
    assert not list(out.parent.iterdir()) if out.parent.exists() else True
    PROVOKED.update(r.code for r in error.value.refusals)
    return list(error.value.refusals)


def codes(refusals: list[Refusal]) -> set[str]:
    return {r.code for r in refusals}


# ------------------------------------------------------------------ runs that were really done


def test_a_run_with_many_faults_is_refused_with_every_reason(uncertifiable: Path, tmp_path: Path) -> None:
    refusals = refused(uncertifiable, tmp_path)
    assert codes(refusals) == {
        *("diagnostic", "own-model", "failed-question", "warm-cache", "too-few-samples", "conformance")
    }, refusals
    reasons = {r.code: r.reason for r in refusals}
    assert "oracle is a diagnostic backend" in reasons["diagnostic"]
    assert "faulty calls models of its own" in reasons["own-model"]
    assert "1 failed, the first" in reasons["failed-question"]
    assert "Search: INTERNAL" in reasons["failed-question"]
    assert "calls were warm in the class cold" in reasons["warm-cache"]
    assert "had 7 cached tokens" in reasons["warm-cache"]
    assert any("oracle@" in r.reason and "4 samples of TTFT, expected at least 11" in r.reason for r in refusals)
    assert "faulty:" in reasons["conformance"]


def test_the_class_warm_allows_a_warm_cache(uncertifiable: Path, tmp_path: Path, copy_of: Copy) -> None:
    run = copy_of(uncertifiable)
    plan = run / running.PLAN
    plan.write_text(plan.read_text() + "result_class: warm\n")
    assert "warm-cache" not in codes(refused(run, tmp_path))


# ------------------------------------------------------------------ a good run, and one thing more in its log


def asked(run: Path) -> QuestionAsked:
    return next(r for r in read_records(run / "run", "asked") if r.kind == "asked")


def failed_by_backend(run: Path) -> list[AnyRecord]:
    again = asked(run)
    return [again.model_copy(update={"attempt": 1, "status": "backend_failed", "cause": "Search: INTERNAL"})]


def failed_by_us(run: Path) -> list[AnyRecord]:
    return [asked(run).model_copy(update={"attempt": 1, "status": "infra_failed", "cause": "reader: it broke"})]


def resumed(run: Path) -> list[AnyRecord]:
    (started,) = (r for r in read_records(run / "run", "run_started") if isinstance(r, RunStarted))
    end = RunEnded(ended_at="2026-01-01T00:00:00+00:00", reason="completed")
    return [RunResumed(resumed_at="2026-01-01T00:00:00+00:00", versions=started.manifest.versions), end]


def interrupted(_: Path) -> list[AnyRecord]:
    return [RunEnded(ended_at="2026-01-01T00:00:00+00:00", reason="interrupted")]


def problem(_: Path) -> list[AnyRecord]:
    at = "2026-01-01T00:00:00+00:00"
    return [Problem(at=at, where="meters", cause="infra", message="the sampler ended")]


def late_call(run: Path) -> list[AnyRecord]:
    call = next(r for r in read_records(run / "run", "gateway_call") if isinstance(r, GatewayCall) and r.cell_id)
    return [call.model_copy(update={"phase": "after_return", "status": 401, "call_id": "late"})]


def outside(run: Path) -> list[AnyRecord]:
    return [asked(run).model_copy(update={"attempt": 1, "asked_mono_ns": 1})]


@pytest.mark.parametrize(
    ("more", "code", "reason"),
    [
        (failed_by_backend, "failed-question", "1 failed, the first"),
        (failed_by_us, "failed-question", "reader: it broke"),
        (resumed, "resumed", "the log holds 2 processes' work"),
        (interrupted, "not-complete", "the run ended: interrupted"),
        (problem, "problem", "infra: meters: the sampler ended"),
        (late_call, "late-calls", "1 model calls after an RPC had returned"),
        (outside, "outside-phase", "1 questions were not asked between"),
    ],
)
def test_a_fault_in_the_log_is_refused_with_its_code(
    more: Callable[[Path], list[AnyRecord]], code: str, reason: str, finished: Path, tmp_path: Path, copy_of: Copy
) -> None:
    run = copy_of(finished)
    records = more(run)
    with LogWriter(run / "run") as log:
        log.append(*records)
    refusals = refused(run, tmp_path)
    # The changed question also lacks a time sample and contradicts the meters' count: these codes come with it.
    assert codes(refusals) - {"too-few-samples", "incoherent"} == {code}
    assert any(reason in r.reason for r in refusals), refusals


# ------------------------------------------------------------------ a log that contradicts itself


def without_calls(record: dict[str, Any]) -> None:
    record["gateway_call_ids"] = ["gone"]


def asked_later(record: dict[str, Any]) -> None:
    record["asked_mono_ns"] += 10**12


def never_searched(record: dict[str, Any]) -> None:
    record["search"]["t_search_ns"] = -1


def answered_backwards(record: dict[str, Any]) -> None:
    record["answer"]["completed_ns"] = 0


def faster(record: dict[str, Any]) -> None:
    record["answer"]["ttft_ns"] //= 2


def endless(record: dict[str, Any]) -> None:
    record["search"]["t_search_ns"] = 10**15


def of_a_probe(call: dict[str, Any]) -> None:
    call["phase"] = "probe"


def of_no_cell(call: dict[str, Any]) -> None:
    call["cell_id"] = None


def told_early(call: dict[str, Any]) -> None:
    if call["done_ns"] is not None:
        call["done_ns"] = -1


def counted_more(phase: dict[str, Any]) -> None:
    if phase["queries"] is not None:
        phase["queries"] += 1


def began_before_the_run(started: dict[str, Any]) -> None:
    started["started_at"] = "2001-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("kind", "change", "reason"),
    [
        ("asked", without_calls, "its model call gone is not in the log"),
        ("asked", asked_later, "began before it was asked"),
        ("asked", never_searched, "Search took -1 ns"),
        ("asked", answered_backwards, "the moments of Answer are out of order"),
        ("asked", faster, "no model call of it has its time to the first token"),
        ("asked", endless, "was over"),
        ("gateway_call", of_a_probe, "is one of probe"),
        ("gateway_call", of_no_cell, "is of another question"),
        ("gateway_call", told_early, "its moments are out of order"),
        ("phase", counted_more, "the meters tell of 13 questions"),
        ("run_started", began_before_the_run, "by the wall clock the log (2001-01-01T00:00:00+00:00) comes before"),
    ],
)
def test_a_log_that_contradicts_itself_is_refused(
    kind: str, change: Callable[[dict[str, Any]], None], reason: str, finished: Path, tmp_path: Path, copy_of: Copy
) -> None:
    run = copy_of(finished)
    rewrite_log(run / "run" / "run.sqlite", kind, change, first=False)
    reasons = [r.reason for r in refused(run, tmp_path) if r.code == "incoherent"]
    assert any(reason in each for each in reasons), reasons


@pytest.mark.parametrize(
    ("start_s", "end_s", "reason"),
    [(10, 5, "the run ended before it began by the monotonic clock"), (0, 10**9, "by the monotonic clock and")],
)
def test_contradictory_clocks_of_the_record_are_refused(
    start_s: int, end_s: int, reason: str, finished: Path, tmp_path: Path, copy_of: Copy
) -> None:
    run = copy_of(finished)
    span = running.Span(start_ns=start_s * 10**9, end_ns=end_s * 10**9)
    change_record(run, lambda r: r.model_copy(update={"span": span}))
    assert any(r.code == "incoherent" and reason in r.reason for r in refused(run, tmp_path))


def test_a_log_from_which_a_question_was_removed_is_refused(finished: Path, tmp_path: Path, copy_of: Copy) -> None:
    """Question, answer, calls and verdict are removed, so that the rest of the log is consistent."""
    run = copy_of(finished)
    name = asked(run).instance_id
    with closing(sqlite3.connect(run / "run" / "run.sqlite")) as log, log:
        log.execute("DROP TRIGGER records_no_delete")
        log.execute("DELETE FROM records WHERE instance_id = ?", (name,))
    with pytest.raises(SparkError, match=r"run\.sqlite: damaged: record \d+ comes after record \d+"):
        refused(run, tmp_path)


# ------------------------------------------------------------------ a good run, and another record of it


def change_record(run: Path, change: Callable[[RunRecord], RunRecord]) -> None:
    path = run / running.RECORD
    path.write_bytes(canonical_json(change(read_record(path))))


GONE = Unknown(unknown="it did not end")


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda r: r.model_copy(update={"outcome": "incomplete"}), "not-complete"),
        (lambda r: r.model_copy(update={"left": 3}), "not-complete"),
        (lambda r: r.model_copy(update={"conformance": ()}), "conformance"),
        (
            lambda r: r.model_copy(
                update={"conformance": tuple(c.model_copy(update={"passed": False}) for c in r.conformance)}
            ),
            "conformance",
        ),
        (lambda r: r.model_copy(update={"code_after": {}}), "code-changed"),
        (
            lambda r: r.model_copy(
                update={
                    "code_after": {
                        n: c.model_copy(update={"digest": "sha256:" + "0" * 64}) for n, c in r.code_after.items()
                    }
                }
            ),
            "code-changed",
        ),
        (lambda r: r.model_copy(update={"canary_after": GONE}), "canary-drift"),
        (
            lambda r: r.model_copy(update={"changed": (Refusal(code="swap", reason="3 MiB", remedy="free it"),)}),
            "node-changed",
        ),
    ],
)
def test_a_fault_in_the_record_is_refused_with_its_code(
    change: Callable[[RunRecord], RunRecord], code: str, finished: Path, tmp_path: Path, copy_of: Copy
) -> None:
    run = copy_of(finished)
    change_record(run, change)
    assert codes(refused(run, tmp_path)) == {code}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("least_samples = 11", "least_samples = 13", "too-few-samples"),
        ("real_reader = false", "real_reader = true", "no-real-reader"),
        ("real_reader = false", "real_reader = false\ncontainers = true", "not-isolated"),
        ("signature = false", "signature = true", "unsigned"),
        ('purpose = "test"', 'purpose = "certification"', "test-profile"),
        ("least_samples = 11", 'least_samples = 11\nrequired_energy = ["sys_j"]', "energy"),
        ("tflops_at_least = 0", "tflops_at_least = 1e9", "canary-slow"),
        ("pinned_versions = false", "pinned_versions = true", "plan-lacks"),
        ("warm_up = 0", "warm_up = 1", "plan-lacks"),
    ],
)
def test_a_stricter_profile_refuses_the_same_run(
    old: str, new: str, code: str, finished: Path, tmp_path: Path, copy_of: Copy
) -> None:
    run = copy_of(finished)
    edit(run / running.PROFILE, old, new)
    assert codes(refused(run, tmp_path)) == {code}


def test_measured_energy_satisfies_a_profile_that_requires_it(finished: Path, tmp_path: Path, copy_of: Copy) -> None:
    run = copy_of(finished)
    edit(run / running.PROFILE, "least_samples = 11", 'least_samples = 11\nrequired_energy = ["gpu_rail_j"]')
    certify(run, tmp_path / "bundle", None)
    assert verify(tmp_path / "bundle", Trust(unsigned=True)).passed


def test_a_plan_that_differs_from_the_run_is_refused(finished: Path, tmp_path: Path, copy_of: Copy) -> None:
    run = copy_of(finished)
    edit(run / running.PLAN, "limit: 12", "limit: 13")
    reasons = {r.code: r.reason for r in refused(run, tmp_path)}
    assert reasons == {
        "not-complete": "the plan's run.limit is not what was run",
        "missing-question": "12 questions are in the log, the plan asks 13",
    }


def with_facts(finished: Path, tmp_path: Path, **manifest: object) -> list[Refusal]:
    """Return the refusals of a run after changes of its manifest."""
    from memarena_spark.bundle.derived import read_facts

    certify(finished, tmp_path / "bundle", None)
    facts = read_facts(tmp_path / "bundle")
    started = facts.run.started
    facts.run.started = started.model_copy(update={"manifest": started.manifest.model_copy(update=manifest)})
    refusals = refusals_of(facts, tmp_path / "bundle" / layout.LOG_FOLDER)
    PROVOKED.update(r.code for r in refusals)
    return refusals


def cells_of(finished: Path) -> tuple[Cell, ...]:
    (started,) = (r for r in read_records(finished / "run", "run_started") if isinstance(r, RunStarted))
    return started.manifest.cells


def test_a_cell_with_meaningless_times_is_refused(finished: Path, tmp_path: Path) -> None:
    cells = tuple(cell.model_copy(update={"timing": False}) for cell in cells_of(finished))
    assert codes(with_facts(finished, tmp_path, cells=cells)) == {"not-timed"}


def test_a_cell_whose_questions_were_never_asked_is_refused(finished: Path, tmp_path: Path) -> None:
    cells = cells_of(finished)
    more = cells[0].model_copy(update={"cell_id": "bm25@extractive/s2"})
    refusals = with_facts(finished, tmp_path, cells=(*cells, more))
    assert codes(refusals) == {"missing-question"}
    assert "12 were never asked" in refusals[0].reason


@pytest.mark.parametrize(
    ("details", "code"),
    [
        ({"server": "other"}, "unknown"),
        ({"server": "llama.cpp"}, "unknown"),
        ({"server": "sglang", "disable_radix_cache": "False"}, "both"),
        ({"server": "sglang", "disable_radix_cache": "True"}, "none"),
        # Started by the run itself, so that its kind is known.
        ({"disable_radix_cache": "False"}, "both"),
        ({"disable_radix_cache": "True"}, "none"),
    ],
)
def test_a_server_that_reports_no_cached_tokens_passes_only_with_its_cache_off(
    details: dict[str, str], code: str, finished: Path, tmp_path: Path, copy_of: Copy
) -> None:
    """The calls are the same, by a reader that reports no cached tokens."""

    def forget(call: dict[str, object]) -> None:
        call["cached_tokens"] = None

    run = copy_of(finished)
    rewrite_log(run / "run" / "run.sqlite", "gateway_call", forget, first=False)
    (started,) = (r for r in read_records(run / "run", "run_started") if isinstance(r, RunStarted))
    (reader,) = started.manifest.readers
    reader = reader.model_copy(
        update={"is_real_reader": True, "kind": "url" if "server" in details else "sglang", "details": details}
    )
    expected = {"both": {"warm-cache", "cache-unknown"}, "unknown": {"cache-unknown"}, "none": set()}[code]
    assert codes(with_facts(run, tmp_path, readers=(reader,))) == expected


def test_a_run_without_a_floor_is_refused(finished: Path, tmp_path: Path, copy_of: Copy) -> None:
    run = copy_of(finished)

    def forget(floor: dict[str, object]) -> None:
        floor.update(search_ns=[], gateway_hop_ns=[])

    rewrite_log(run / "run" / "run.sqlite", "floor", forget)
    assert codes(refused(run, tmp_path)) == {"no-floor"}


def test_an_unchecked_chat_template_is_noted_and_refused_by_a_profile_that_requires_the_check(
    studied: Studied, tmp_path: Path, copy_of: Copy
) -> None:
    certify(studied.run, tmp_path / "bundle", None)
    manifest = json.loads((tmp_path / "bundle" / layout.MANIFEST).read_bytes())
    assert manifest["chat_templates"]["null-reader"]["status"] == "not checked"
    template, model, announced = verify(tmp_path / "bundle", Trust(unsigned=True), EXAMPLE).unchecked
    assert "chat template of reader null-reader" in template
    assert "reader null-reader: the bytes of its model" in model
    assert "the run was not announced" in announced
    run = copy_of(studied.run)
    edit(run / running.PROFILE, "golden_prompt_tokens = false", "golden_prompt_tokens = true")
    assert codes(refused(run, tmp_path / "again")) == {"plan-lacks", "template-unchecked"}


def test_a_chat_template_checked_against_golden_counts_is_noted(
    studied: Studied, tmp_path: Path, copy_of: Copy
) -> None:
    run = copy_of(studied.run)
    with LogWriter(run / "run") as log:
        log.append(ReaderProbed(reader="null-reader", ok=True, prompt_tokens={"plain": 20}))
    certify(run, tmp_path / "bundle", None)
    manifest = json.loads((tmp_path / "bundle" / layout.MANIFEST).read_bytes())
    assert manifest["chat_templates"] == {"null-reader": {"status": "as golden", "prompt_tokens": {"plain": 20}}}
    assert not [line for line in verify(tmp_path / "bundle", Trust(unsigned=True), EXAMPLE).unchecked if "chat" in line]


def test_a_run_without_its_announcement_is_refused(
    finished: Path, plan_path: Path, tmp_path: Path, copy_of: Copy, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copy_of(finished)
    monkeypatch.setenv(announcing.VARIABLE, str(run / announcing.NAME))
    announcing.announce(run / announcing.NAME, load_plan(plan_path), "node", "")
    assert codes(refused(run, tmp_path)) == {"announcement"}


def test_a_run_that_differs_from_its_commitment_is_refused(finished: Path, tmp_path: Path, copy_of: Copy) -> None:
    run = copy_of(finished)
    none = "0" * 64
    commitment = Commitment(
        at="2023-01-01T00:00:00+00:00",
        node="node",
        plan_sha256=none,
        backends={},
        network="quicknet",
        round=QUICKNET.round,
        preset="tiny",
    )
    (run / running.FRESH).mkdir()
    (run / running.FRESH / COMMITMENT).write_bytes(canonical_json(commitment))
    (run / running.FRESH / BEACON).write_bytes(canonical_json(QUICKNET))
    refusals = refused(run, tmp_path)
    assert codes(refusals) == {"fresh-world"}
    reasons = [refusal.reason for refusal in refusals]
    assert "is not among the announcements of the node" in reasons[0]
    assert [reason.partition(" of the commitment")[0] for reason in reasons[1:]] == [
        "plan and profile", "the node", "the backends' code",
    ]  # fmt: skip


def test_a_latency_study_of_another_run_is_refused(studied: Studied, tmp_path: Path) -> None:
    study = write_study_of(tmp_path / "study", studied.other)
    (refusals,) = refused(studied.run, tmp_path, latency=study)
    assert refusals.code == "latency-study"
    assert "latency/study.json: is of other runs (" in refusals.reason


def test_every_refusal_code_was_provoked_by_the_tests_above() -> None:
    """Needs the other tests of this file to run before it in the same process."""
    if not PROVOKED:
        pytest.skip("the tests before it were not run")
    by_the_tests_of_readers = {"reader-elsewhere", "reader-unknown"}
    assert set(RESULT) - PROVOKED == by_the_tests_of_readers


# ------------------------------------------------------------------ bad input


def test_a_bundle_is_never_overwritten(signed: Path, finished: Path) -> None:
    with pytest.raises(SparkError, match="is there already"):
        certify(finished, signed, None)


def test_a_folder_without_a_run_is_bad_input(tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="not the folder of a memarena-spark run"):
        certify(tmp_path, tmp_path / "bundle", None)
    with pytest.raises(SparkError, match="no such folder"):
        certify(tmp_path / "nothing", tmp_path / "bundle", None)


def test_a_run_that_was_killed_has_no_record_and_is_refused(finished: Path, tmp_path: Path, copy_of: Copy) -> None:
    run = copy_of(finished)
    (run / running.RECORD).unlink()
    assert codes(refused(run, tmp_path)) == {"not-complete"}


def test_a_key_that_cannot_sign_leaves_no_files(finished: Path, tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("no key at all")
    key.chmod(0o600)
    with pytest.raises(SparkError, match="cannot sign"):
        certify(finished, tmp_path / "bundle", key)
    assert list(tmp_path.iterdir()) == [key]


def test_a_key_that_cannot_sign_is_refused_before_the_run(
    tmp_path: Path, keys: Keys, invoke: Invoke, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user id without a name and a file without a key are refused with the remedy, before a run starts."""
    command = (
        "run",
        "--plan",
        ROOT / "spark" / "plans" / "cpu-dev.yaml",
        "--out",
        tmp_path / "run",
        "--certify",
        "--key",
    )
    no_key = tmp_path / "no-key"
    no_key.write_text("nothing to sign with")
    no_key.chmod(0o600)
    result = invoke(*command, no_key)
    assert (result.code, "cannot sign" in result.err) == (2, True), result.err
    monkeypatch.setattr("os.getuid", lambda: 54321)
    result = invoke(*command, keys.key)
    assert (result.code, "user id 54321 has no name here" in result.err) == (2, True), result.err
    assert "MEMARENA_USER" in result.err
    assert not (tmp_path / "run").exists()

"""Tests certification with a real LLM on this machine's CPU, profile cpu-dev: run, certify, verify, flips, audit."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from memarena_spark.audit import audit
from memarena_spark.bundle import layout
from memarena_spark.bundle.certify import certify
from memarena_spark.bundle.verify import Trust, verify
from memarena_spark.machine import ThisMachine
from memarena_spark.plans import load_plan
from memarena_spark.running import run_certification

from .conftest import EXAMPLE, ROOT, Keys, silent
from .studies import write_study_of
from .test_verify import files_at_fault, flip, seal_again

pytestmark = [pytest.mark.llm, pytest.mark.timeout(900)]


def short_plan(folder: Path) -> Path:
    """Write the plan cpu-dev with a quarter of the context and short answers, so that the model reads less."""
    plan = yaml.safe_load((ROOT / "spark" / "plans" / "cpu-dev.yaml").read_text(encoding="utf-8"))
    plan["run"] |= {"dataset": str(EXAMPLE), "max_context_tokens": 128, "max_answer_tokens": 16}
    path = folder / "plan.yaml"
    path.write_text(yaml.safe_dump(plan), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory, keys: Keys) -> Path:
    folder = tmp_path_factory.mktemp("embedded")
    record = run_certification(ThisMachine(), load_plan(short_plan(folder)), folder / "run", silent)
    assert (record.outcome, record.left, record.preflight.refusals) == ("completed", 0, ())
    write_study_of(folder / "study", folder / "run" / "run")
    certify(folder / "run", folder / "bundle", keys.key, folder / "study")
    return folder / "bundle"


def test_the_bundle_verifies_and_certifies_no_times(bundle: Path, keys: Keys) -> None:
    assert verify(bundle, Trust(allowed=keys.allowed)).faults == []
    statement = yaml.safe_load((bundle / layout.STATEMENT).read_text())["predicate"]
    assert statement["purpose"] == "development"
    assert statement["certifies"] == {"scores": True, "times": False, "energy": False}
    assert statement["rows"]["bm25@embedded"]["asked"] == 12


def test_every_prompt_was_prefilled_cold(bundle: Path) -> None:
    """llama.cpp reports no cached tokens for any timed call."""
    from memarena.log.store import read_records

    calls = [r for r in read_records(bundle / "log", "gateway_call") if r.kind == "gateway_call"]
    timed = [c for c in calls if c.phase == "answer" and c.route == "/v1/chat/completions"]
    assert len(timed) >= 12
    assert {c.cached_tokens for c in timed} == {0}


def test_flipped_bits_in_every_file_are_detected(bundle: Path, keys: Keys) -> None:
    draw = random.Random(7)
    names = layout.files_of(bundle)
    for name in [*names, *draw.choices(names, k=200)]:
        offset, bit = draw.randrange((bundle / name).stat().st_size), draw.randrange(8)
        flip(bundle / name, offset, bit)
        verification = verify(bundle, Trust(allowed=keys.allowed))
        flip(bundle / name, offset, bit)
        assert files_at_fault(verification) == {name}, (name, offset, bit)


def test_a_latency_study_that_does_not_follow_from_the_log_is_named(
    bundle: Path, keys: Keys, copy_of: Callable[[Path], Path]
) -> None:
    """Prefill twice as quick, everything sealed again by somebody with the key."""
    forged = copy_of(bundle)
    path = forged / "latency" / "study.json"
    content = json.loads(path.read_text())
    (row,) = content["efficiency"]
    row["ttft"]["p50"] = row["ttft"]["p50"] / 2
    path.write_text(json.dumps(content, indent=2) + "\n")
    seal_again(forged, keys.key)
    assert files_at_fault(verify(forged, Trust(allowed=keys.allowed))) == {"latency/study.json"}


def test_an_audit_reproduces_the_greedy_answers(bundle: Path, tmp_path: Path) -> None:
    report = audit(bundle, EXAMPLE, tmp_path / "audit", Trust(), share=0.25, seed=1, say=silent)
    (cell,) = report.cells
    assert (cell.asked, cell.failed, report.readers_differ) == (3, 0, ())
    assert report.passed, report

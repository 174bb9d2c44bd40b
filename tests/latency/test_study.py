"""Tests a complete latency study with a scripted reader of known speed: phases, fits, tables, files, refusals."""

from __future__ import annotations

import csv
import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from memarena.cli.main import app
from memarena.evaluation import load_facts
from memarena.execution.engine import execute
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.parsing import parse_config
from memarena.latency.errors import LatencyError
from memarena.latency.pipeline import read_samples_of, study_runs
from memarena.latency.report.tables import study_document
from memarena.latency.results import Study, TotalCell
from memarena.latency.samples import cell_samples
from memarena.latency.study import PHASE1, StudyPlan, run_dirs, run_study
from memarena.log.measuring import MeterFigure
from memarena.log.records import AnyRecord, GatewayCall, Question, QuestionAsked, RunStarted
from memarena.log.store import LogWriter, read_records
from memarena.readers import wire
from memarena.report.render.markdown import to_markdown
from pydantic import JsonValue
from typer.testing import CliRunner

from tests.support.model_script import Script
from tests.support.model_server import ModelServer

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
MS_PER_TOKEN = 0.02
START_MS = 4.0


def reader_of(body: Mapping[str, JsonValue]) -> Script:
    """Reply after 4 ms and 0.02 ms per prompt token (four bytes)."""
    tokens = wire.bytes_tokens([message.content for message in wire.chat_messages(body)]) if "messages" in body else 1
    delay_s = (START_MS + MS_PER_TOKEN * tokens) / 1e3
    words = ('{"answer": "', "x" * (1 + tokens % 5), '"}')
    return Script(tokens=words, delay_s=delay_s, timings={"prompt_ms": delay_s * 1e3})


def phase1_of(url: str, **more: object) -> RunConfig:
    """Return phase 1's configuration over the example with a scripted reader."""
    values = {"dataset": EXAMPLE, "backends": PHASE1, "readers": ({"spec": url},), "max_context_tokens": 2048}
    return parse_config({**values, "floor_samples": 15, **more}, "test")


@dataclass(frozen=True)
class Made:
    """A study that was run, and its results."""

    folder: Path
    results: Study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Made]:
    """A study with phase 1 only (vanilla, oracle and bm25), on a constant meter of 30 W."""
    folder = tmp_path_factory.mktemp("study") / "study"
    with ModelServer(reader_of, model="scripted") as reader:
        config = phase1_of(reader.base_url, meters=("constant:gpu_power=30 W", "procfs"), warm_up=3)
        plan = StudyPlan(config=config, out=folder, phase2=(), egos=3)
        (phase,) = run_study(plan, execute)
        assert phase.outcome.reason == "completed"
        yield Made(folder, study_runs(run_dirs(folder)))


def test_the_run_uses_the_queries_of_the_studys_file(study: Made) -> None:
    lines = (study.folder / "queries.txt").read_text().splitlines()
    ids = [line for line in lines if not line.startswith("#")]
    (started,) = [r for r in read_records(study.folder / "phase1", "run_started") if isinstance(r, RunStarted)]
    assert json.loads(started.manifest.config_json)["question_ids"] == ids
    assert started.manifest.protocol == "end_of_horizon"
    vanilla = next(cell for cell in started.manifest.cells if cell.backend == "vanilla")
    assert vanilla.backend_options == {"budget_tokens": "512"}


def test_warm_up_covers_the_lengths_and_is_never_measured(study: Made) -> None:
    records = list(read_records(study.folder / "phase1", "gateway_call"))
    probes = [r for r in records if isinstance(r, GatewayCall) and r.phase == "probe" and "Warm-up" in r.prompt]
    tokens = [probe.prompt_tokens or 0 for probe in probes]
    assert len(tokens) == 3
    assert tokens == sorted(tokens)
    assert tokens[0] < 100
    assert tokens[-1] > 1500
    measured = {sample.prompt_tokens for sample in read_samples_of([study.folder / "phase1"])}
    assert not measured & set(tokens)


def test_the_fit_recovers_the_scripted_reader(study: Made) -> None:
    """Delays are accurate to about a millisecond and only grow on a busy machine, so the slope is what is checked."""
    (fit,) = study.results.fits
    assert fit.reader == "scripted"
    assert fit.n == 3 * len([i for i in (study.folder / "queries.txt").read_text().splitlines() if i[0] != "#"])
    assert set(fit.cells) == {"vanilla@scripted/s1", "oracle@scripted/s1", "bm25@scripted/s1"}
    low, high = fit.prompt_tokens
    assert low < high
    assert fit.ttft.coefficients.beta_ms > 0
    assert fit.ttft.held_out_error_p50 is not None


def test_every_cell_has_its_medians_and_the_fit(study: Made) -> None:
    assert [(c.reader, c.backend, c.kind) for c in study.results.totals] == [
        ("scripted", "vanilla[budget_tokens=512]", "measured"),
        ("scripted", "oracle", "measured"),
        ("scripted", "bm25", "measured"),
    ]
    for cell in study.results.totals:
        assert cell.total_ms is not None
        assert cell.ttft_ms is not None
        assert cell.total_ms >= cell.ttft_ms > START_MS
        assert cell.predicted_total_ms is not None


def test_the_report_says_where_in_the_range_a_fit_holds_and_how_the_stopwatch_was_checked(study: Made) -> None:
    (check,) = study.results.server_checks
    samples = read_samples_of([study.folder / "phase1"])
    assert (check.reader, check.n, check.told) == ("scripted", len(samples), len(samples))
    pairs = [(s.ttft_ms or 0.0, s.server_prompt_ms or 0.0) for s in samples]
    assert check.within == sum(abs(ttft - server_ms) <= 0.05 * server_ms + 3 for ttft, server_ms in pairs)
    text = to_markdown(study_document(study.results))
    table = text.partition("## Held-out error by length of prompt")[2].partition("##")[0]
    parts = study.results.fits[0].best("ttft").held_out_by_length
    for part in parts:
        assert re.search(rf"\| scripted \| first token \| \w+ \| {part.low:,} to {part.high:,} \| {part.n} \|", table)
    assert "## First token and the server's own prompt time" in text
    silent = study.results.server_checks[0].model_copy(update={"told": 0, "within": 0})
    text = to_markdown(study_document(study.results.model_copy(update={"server_checks": (silent,)})))
    assert "scripted: its server reports no prompt time" in text


def test_tokens_of_ingest_are_in_its_table_and_bounds_are_marked(study: Made) -> None:
    row = study.results.ingest[0]
    cut = row.model_copy(
        update={
            "model_calls": 11, "prompt_tokens": 4200, "completion_tokens": 0, "unsized_calls": 3, "untimed_calls": 3,
            "model_seconds": 1.5, "system_j": MeterFigure(status="value", value=9000.0, unit="J"),
        }
    )  # fmt: skip
    text = to_markdown(study_document(study.results.model_copy(update={"ingest": (cut,)})))
    table = text.partition("## Cost of keeping the memory")[2]
    heads, cells = ([cell.strip() for cell in line.split("|")] for line in table.splitlines()[2:5:2])
    figures = dict(zip(heads, cells, strict=True))
    assert (figures["calls"], figures["tokens in"], figures["models s"]) == ("11", "≥ 4,200", "≥ 1.50")
    assert figures["system kJ"] == "9.00"
    assert figures["net J/day"] == "void", "without idle windows there is no net"
    assert "idle kJ, net kJ and net J/day" in table
    assert "tokens out" not in figures, "nothing was told of them: left out, never 0"
    assert "3 calls of unknown size" in table


def test_times_are_above_the_scripted_delays(study: Made) -> None:
    for sample in read_samples_of([study.folder / "phase1"]):
        assert sample.server_prompt_ms is not None
        assert sample.ttft_ms is not None
        assert sample.ttft_ms >= sample.server_prompt_ms - 0.1
        assert sample.llm_ms is not None
        assert sample.llm_ms >= sample.ttft_ms


def test_ingest_and_questions_have_joules_or_reasons(study: Made) -> None:
    for row in study.results.ingest:
        assert row.gpu_j.status in ("value", "void")
        assert row.model_calls == 0
        assert row.ego_days == 6
    for cost in study.results.efficiency:
        assert cost.system_j_per_query.status == "unavailable"
        assert cost.gpu_j_per_query.value != 0


def test_the_floor_of_the_machine_is_in_every_report(study: Made) -> None:
    text = to_markdown(study_document(study.results))
    assert re.search(r"floor\s+p50 with a null backend and a null reader: Search \d+\.\d\d ms", text)
    assert "gateway less direct" in text


def test_the_files_of_a_study_can_be_read_by_others(study: Made, tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["latency", "report", str(study.folder), "--out", str(tmp_path / "files"), "--format", "json"]
    )
    assert result.exit_code == 0, result.output
    study_copy = Study.model_validate_json((tmp_path / "files" / "study.json").read_text())
    assert study_copy == study.results
    with (tmp_path / "files" / "samples.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == study_copy.fits[0].n
    assert {float(row["ttft_ms"]) > 0 for row in rows} == {True}
    for name in ("fits", "totals", "efficiency", "ingest"):
        assert len((tmp_path / "files" / f"{name}.csv").read_text().splitlines()) > 1
    svg = (tmp_path / "files" / "ttft-split.svg").read_text()
    assert svg.startswith("<svg ")
    assert "bm25 · scripted" in svg


def test_a_reader_without_a_fit_and_its_prediction_are_reported(study: Made) -> None:
    """Without oracle and vanilla among the fit's backends bm25 alone gives the fit; without any there is none."""
    alone = study_runs([study.folder / "phase1"], fit_backends=("bm25",))
    assert alone.fits[0].cells == ("bm25@scripted/s1",)
    none = study_runs([study.folder / "phase1"], fit_backends=("other",))
    assert none.fits == ()
    assert "0 timed questions of other" in none.unfitted["scripted"]
    text = to_markdown(study_document(none))
    assert "no fit for scripted" in text


def test_predicted_cells_are_marked_with_the_source_of_their_prompts(study: Made) -> None:
    predicted = TotalCell(
        reader="big", backend="bm25", kind="predicted", n=20, total_ms=1234.0, ttft_ms=567.0, search_ms=2.0,
        prompts_from="scripted", outside_range=0.25,
    )  # fmt: skip
    none = TotalCell(reader="new", backend="bm25", kind="none", why="new has no fit")
    text = to_markdown(study_document(study.results.model_copy(update={"totals": (predicted, none)})))
    assert "*1,234 †*" in text
    assert "*567 †*" in text
    assert "prompt lengths measured with scripted" in text
    assert "25% of the prompts lie outside the range of the fit" in text
    assert "n/a, new · bm25: new has no fit" in text


def test_a_study_is_resumed_and_not_restarted(study: Made, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    shutil.copytree(study.folder, folder)
    attempts_before = len(list(read_records(folder / "phase1", "asked")))
    with ModelServer(reader_of, model="scripted") as reader:
        plan = StudyPlan(config=phase1_of(reader.base_url, meters=("none",)), out=folder, phase2=())
        with pytest.raises(Exception, match="readers"):
            # Another address is another reader's configuration: the run is refused and no question is asked.
            run_study(plan, execute)
    assert len(list(read_records(folder / "phase1", "asked"))) == attempts_before


# ------------------------------------------------------------------ what is refused


def test_runs_over_different_data_are_refused(study: Made, tmp_path: Path) -> None:
    other = copied(study, tmp_path, lambda m: m["dataset"].update(sha256="0" * 64))
    with pytest.raises(LatencyError, match="another data set"):
        study_runs([study.folder / "phase1", other])


def test_runs_over_different_questions_are_refused(study: Made, tmp_path: Path) -> None:
    copied(study, tmp_path, lambda m: None)
    folder = tmp_path / "fewer"
    lacking = next(r for r in read_records(tmp_path / "other", "question") if isinstance(r, Question))
    with LogWriter(folder) as log:
        log.append(*(r for r in read_records(tmp_path / "other") if not _is_about(r, lacking.instance.instance_id)))
    with pytest.raises(LatencyError, match="other questions than"):
        study_runs([study.folder / "phase1", folder])


def _is_about(record: AnyRecord, instance_id: str) -> bool:
    if isinstance(record, Question):
        return record.instance.instance_id == instance_id
    return isinstance(record, QuestionAsked) and record.instance_id == instance_id


def test_the_same_cell_in_two_runs_is_refused(study: Made, tmp_path: Path) -> None:
    other = copied(study, tmp_path, lambda m: None)
    with pytest.raises(LatencyError, match=r"cell vanilla@scripted/s1 is in .*, too"):
        study_runs([study.folder / "phase1", other])


def test_runs_of_both_result_classes_are_refused(study: Made, tmp_path: Path) -> None:
    other = copied(study, tmp_path, lambda m: m["readers"][0].update(result_class="warm_prefix"))
    with pytest.raises(LatencyError, match="warm_prefix"):
        study_runs([study.folder / "phase1", other])


def test_the_same_run_twice_is_refused(study: Made, tmp_path: Path) -> None:
    shutil.copytree(study.folder / "phase1", tmp_path / "moved")
    for again in (study.folder / "phase1", tmp_path / "moved"):
        with pytest.raises(LatencyError, match=r"run [0-9a-f]{16} is given twice, first as .*phase1"):
            study_runs([study.folder / "phase1", again])


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"cpu": "20 × another processor"}, "another processor"), ({"platform": "Linux 6.1 sparc64"}, "another machine")],
)
def test_runs_of_two_machines_are_refused(study: Made, tmp_path: Path, changed: dict[str, str], message: str) -> None:
    other = copied(study, tmp_path, lambda m: m["versions"].update(changed))
    with pytest.raises(LatencyError, match=message):
        study_runs([study.folder / "phase1", other])


def test_another_kernel_of_the_same_machine_is_noted(study: Made) -> None:
    (run,) = study.results.runs
    versions = run.versions.model_copy(update={"platform": run.versions.platform.replace("Linux", "Linux 9")})
    runs = (run, run.model_copy(update={"versions": versions}))
    assert "their times differ by that" in to_markdown(study_document(study.results.model_copy(update={"runs": runs})))
    assert "their times differ by that" not in to_markdown(study_document(study.results))


def copied(study: Made, tmp_path: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    """Copy the run with a changed manifest."""
    folder = tmp_path / "other"
    records: list[AnyRecord] = []
    for record in read_records(study.folder / "phase1"):
        if isinstance(record, RunStarted):
            manifest = json.loads(record.manifest.model_dump_json())
            change(manifest)
            changed = type(record.manifest).model_validate(manifest)
            records.append(record.model_copy(update={"manifest": changed, "run_id": "another"}))
        else:
            records.append(record)
    with LogWriter(folder) as log:
        log.append(*records)
    return folder


def test_a_folder_without_a_log_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LatencyError, match="neither a run nor a study"):
        run_dirs(tmp_path)


def test_times_of_two_processes_are_not_mixed(study: Made) -> None:
    """Half of the attempts are moved to a second segment: the larger one counts, the other is counted as excluded."""
    facts = load_facts(study.folder / "phase1")
    cell = "bm25@scripted/s1"
    keys = sorted(key for key in facts.attempts if key[0] == cell)
    for key in keys[: len(keys) // 3]:
        attempts = facts.attempts[key]
        facts.attempts[key] = [type(a)(a.record, 1, a.evidence) for a in attempts]
    (samples_of_cell,) = [c for c in cell_samples("run", facts) if c.cell.cell_id == cell]
    assert samples_of_cell.left_out == len(keys) // 3
    assert len(samples_of_cell.samples) == len(keys) - samples_of_cell.left_out


def test_no_thread_keeps_running() -> None:
    assert not [t for t in threading.enumerate() if t.name.startswith("memarena-gateway")]

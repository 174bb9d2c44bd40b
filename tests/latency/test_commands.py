"""Tests the commands ``latency study`` and ``latency growth``: bad input, a file of settings, phases, signals."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from memarena.cli.main import app
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.parsing import parse_config
from memarena.execution.planning.request import EndReason, RunOutcome, RunRequest
from memarena.latency import study as protocol
from memarena.latency.errors import LatencyError
from memarena.latency.study import PHASE1, SET_BY_THE_STUDY, StudyPlan, run_study
from memarena.log.records import RunEnded
from memarena.log.store import LogError, read_records
from memarena_dataset.programs import run_guarded

from tests.support.model_script import Script
from tests.support.model_server import ModelServer

from ..e2e.harnessing import EXAMPLE, overridden, start, survivors, wait_until

Refused = Callable[..., str]


@pytest.fixture
def refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Return a function that runs a command line, which must fail with one line and code 2, and returns the line."""

    def run(*arguments: str | Path) -> str:
        monkeypatch.setattr(sys, "argv", ["memarena", *map(str, arguments)])
        with pytest.raises(SystemExit) as exit_info:
            run_guarded(app)
        stderr = capsys.readouterr().err
        lines = [line for line in stderr.splitlines() if line.strip()]
        assert (exit_info.value.code, len(lines)) == (2, 1), stderr
        assert lines[0].startswith("error: ")
        return lines[0]

    return run


RUN = ("latency", "run", "--dataset", EXAMPLE, "--phase2", "none", "--egos", "3")
GROWTH = ("latency", "growth", "--dataset", EXAMPLE, "--days", "1", "--backend", "bm25")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--max-answer-tokens", "0"], "--max-answer-tokens: expected 1 or more"),
        (["--reader-window", "10"], "--reader-window: expected 256 or more"),
        (["--idle-s", "-1"], "--idle-s: expected 0 or more, got '-1.0'"),
        (["--warm-up", "101"], "--warm-up: expected at most 100, got '101'"),
        (["--backend", "bm25,bm25"], "--backend: a backend is named twice"),
        (["--backend", "bm26"], "--backend bm26: no backend of this name (known: "),
        (["--backend", ""], "--backend: missing"),
        (["--reader", ""], "--reader: missing"),
        (["--max-context-tokens", "1"], "--max-context-tokens: expected 16 or more"),
        (["--meter", ""], "--meter: expected at least one"),
        (["--vanilla-tokens", "0"], "--vanilla-tokens 0: expected at least 1"),
        (["--egos", "0"], "0 egos"),
        (["--per-family", "-1"], "-1 queries per family"),
        (["--option", "bm25"], "--option bm25: expected BACKEND.KEY=VALUE"),
        (["--option", "nobody.k=1"], "options: nobody: no backend of this name in the study (vanilla, oracle, bm25)"),
        (["--embedder-model", "e5"], "--embedder-model e5: names a model behind --embedder URL, which is missing"),
        (["--gateway-port", "70000"], "gateway"),
        (["--phase2", "memserch"], "--phase2 memserch: no backend of this name"),
        (["--phase2", "bm25"], "--phase2 bm25: phase 1 times it already"),
        (["--phase2", "memobase"], "--phase2 memobase: MEMOBASE_URL and MEMOBASE_TOKEN must be set"),
        (["--phase2", "memsearch,memobase"], "; without it: --phase2 memsearch"),
        (["--queries", "/nowhere"], "--queries /nowhere: cannot be read"),
        (["--config", "/nowhere.yaml"], "/nowhere.yaml: cannot be read"),
    ],
)
def test_bad_input_of_a_study_gives_one_line_before_any_run(
    flags: list[str], message: str, tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MEMOBASE_URL", raising=False)
    monkeypatch.delenv("MEMOBASE_TOKEN", raising=False)
    out = tmp_path / "study"
    assert message in refused(*overridden((*RUN, "--reader", "http://127.0.0.1:9", "--out", out), flags))
    assert not out.exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--searches", "0"], "memarena latency growth: searches: expected 1 or more, got '0'"),
        (["--days", "0"], "--days 0: expected numbers from 1 on"),
        (["--days", "-1,2"], "--days -1,2: expected numbers from 1 on"),
        (["--days", ""], "--days : expected numbers from 1 on"),
        (["--days", "one"], "--days one: expected numbers from 1 on"),
        (["--days", "1,15"], "--days 1,15: "),
        (["--egos", "2"], "No such option"),
        (["--reader", "extractive,embedded"], "--reader extractive,embedded: expected a single reader"),
        (["--ego", "nobody"], "--ego nobody: no questions of this ego"),
        (["--backend", "bm25,bm25"], "backends: a backend is named twice"),
        (["--backend", ""], "backends: "),
        (["--embedder-model", "e5"], "--embedder-model e5: names a model behind --embedder URL, which is missing"),
        (["--beside", "server"], "--beside server: expected NAME=PID"),
        (["--meter", ""], "meters: "),
    ],
)
def test_bad_input_of_growth_gives_one_line_before_any_run(
    flags: list[str], message: str, tmp_path: Path, refused: Refused
) -> None:
    out = tmp_path / "run"
    assert message in refused(*overridden((*GROWTH, "--out", out), flags))
    assert not out.exists()


# ------------------------------------------------------------------ what a study's runs are given


class Recorder:
    """Replaces ``execute``: records the configuration of each run and returns its outcome at once."""

    def __init__(self, reason: EndReason = "completed") -> None:
        self.configs: dict[str, RunConfig] = {}
        self.reason = reason

    def __call__(self, request: RunRequest) -> RunOutcome:
        assert request.config is not None
        self.configs[request.out.name] = request.config
        return RunOutcome(self.reason, 0)


def plan_with(out: Path, **more: Any) -> StudyPlan:
    values = {"dataset": EXAMPLE, "backends": PHASE1, "readers": ({"spec": "http://a"}, {"spec": "http://b"})}
    fields = {name: more.pop(name) for name in ("phase2", "queries") if name in more}
    return StudyPlan(config=parse_config({**values, **more}, "test"), out=out, egos=3, **fields)


def test_both_phases_get_the_settings_and_each_the_options_of_its_backends(tmp_path: Path) -> None:
    options = {"bm25": {"k1": "1.5"}, "mine": {"depth": "2"}}
    recorder = Recorder()
    settings = {"thinking": "off", "seeds": ("s1", "s2"), "gateway_host": "127.0.0.2", "options": options}
    run_study(plan_with(tmp_path / "study", phase2=("mine=memsearch",), **settings), recorder)
    first, second = recorder.configs["phase1"], recorder.configs["phase2"]
    for config in (first, second):
        assert (config.thinking, config.seeds, config.gateway_host) == ("off", ("s1", "s2"), "127.0.0.2")
        assert config.protocol == "end_of_horizon"
    assert first.options == {"bm25": {"k1": "1.5"}, "vanilla": {"budget_tokens": "512"}}
    assert second.options == {"mine": {"depth": "2"}}
    assert (first.backends, second.backends) == (PHASE1, ("mine=memsearch",))
    assert [reader.spec for reader in first.readers] == ["http://a", "http://b"]
    assert [reader.spec for reader in second.readers] == ["http://a"]
    assert first.question_ids == second.question_ids
    assert first.question_ids


def test_a_list_of_queries_that_differs_from_the_studys_is_refused(tmp_path: Path) -> None:
    out, same, different = tmp_path / "study", tmp_path / "same.txt", tmp_path / "other.txt"
    run_study(plan_with(out, phase2=()), Recorder())
    ids = protocol.read_queries(out / "queries.txt")
    same.write_text("\n".join(ids) + "\n")
    different.write_text("\n".join(ids[:-1]) + "\n")
    recorder = Recorder()
    run_study(plan_with(out, phase2=(), queries=same), recorder)
    assert recorder.configs["phase1"].question_ids == ids
    with pytest.raises(LatencyError, match=r"--queries .*other.txt: not the list that the study began with"):
        run_study(plan_with(out, phase2=(), queries=different), recorder)


def test_an_incomplete_phase_ends_the_study(tmp_path: Path) -> None:
    recorder = Recorder("incomplete")
    (phase,) = run_study(plan_with(tmp_path / "study", phase2=("memsearch",)), recorder)
    assert phase.outcome.reason == "incomplete"
    assert list(recorder.configs) == ["phase1"]


def test_settings_of_a_file_reach_the_runs_and_flags_override_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Settings of a reader without a flag: prefill, image, memory, server flags, golden counts."""
    reader = {
        "spec": "sglang:Qwen/Qwen3-8B", "prefill": "warm", "image": "lmsysorg/sglang@sha256:" + "0" * 64,
        "mem_fraction": 0.5, "server_flags": ["--dtype", "bfloat16"], "golden_prompt_tokens": {"plain": 12},
    }  # fmt: skip
    content = {
        "dataset": str(EXAMPLE), "readers": [reader], "thinking": "off", "seeds": ["s2"], "idle_s": 3, "warm_up": 2,
        "gateway_host": "0.0.0.0", "gateway_url": "http://harness:8100/v1", "max_answer_tokens": 32,
    }  # fmt: skip
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump(content))
    recorder = Recorder()
    monkeypatch.setattr("memarena.cli.latency.run_request", recorder)
    flags = ["--out", str(tmp_path / "study"), "--egos", "3", "--phase2", "none", "--warm-up", "5"]
    flags += ["--reader-param", "top_k=1", "--reader-drop", "seed", "--reader-requests-per-minute", "20"]
    flags += ["--reader-patience", "60", "--no-system-role", "--thinking", "256"]
    monkeypatch.setattr(sys, "argv", ["memarena", "latency", "run", "--config", str(file), *flags])
    with pytest.raises(SystemExit) as exit_info:
        run_guarded(app)
    assert exit_info.value.code == 0, capsys.readouterr().err
    assert "note: --egos" not in capsys.readouterr().err
    config = recorder.configs["phase1"]
    by_flag = {"params": {"top_k": 1}, "drop": ["seed"], "requests_per_minute": 20, "patience_s": 60}
    of_reader = {**reader, **by_flag, "no_system_role": True}
    assert config.readers[0].model_dump(mode="json", exclude_defaults=True) == of_reader
    assert (config.thinking, config.reasoning_tokens) == ("on", 256)
    assert (config.seeds, config.idle_s, config.warm_up) == (("s2",), 3.0, 5)
    assert (config.gateway_url, config.max_answer_tokens) == ("http://harness:8100/v1", 32)
    assert config.backends == PHASE1
    with pytest.raises(SystemExit):
        run_guarded(app)
    assert "note: --egos and --per-family choose a list; this study has one already" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(SET_BY_THE_STUDY))
def test_a_file_cannot_set_fields_that_the_study_sets(name: str, tmp_path: Path, refused: Refused) -> None:
    values = {
        "backends": ["bm25"], "protocol": "interleaved", "question_ids": ["q"], "egos": ["e"], "families": ["d1_cloze"],
        "limit": 3, "cache": "/tmp/c", "search_days": [1], "searches": 5,
    }  # fmt: skip
    if name == "families":
        values[name] = [next(iter(RunConfig.model_json_schema()["$defs"]["Family"]["enum"]))]
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump({name: values[name]}))
    line = refused(*RUN, "--reader", "http://a", "--config", file, "--out", tmp_path / "study")
    assert f"{name}: set by the study itself ({SET_BY_THE_STUDY[name]})" in line


def test_a_file_with_a_fault_is_named_with_its_field(tmp_path: Path, refused: Refused) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump({"readers": [{"spec": "http://a", "prefill": "lukewarm"}]}))
    line = refused(*RUN, "--config", file, "--out", tmp_path / "study")
    assert "settings.yaml: readers.0.prefill: " in line


# ------------------------------------------------------------------ signals


@pytest.mark.parametrize("command", ["run", "growth"])
def test_sigterm_ends_with_130_and_a_hint_to_resume(command: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with ModelServer(lambda _: Script(tokens=("x",), delay_s=0.2), model="slow") as reader:
        if command == "run":
            log, again = out / "phase1", f"memarena latency run … --out {out}"
            flags: list[str | Path] = [*RUN, "--reader", reader.base_url, "--idle-s", "0", "--floor-samples", "0"]
        else:
            log, again = out, f"memarena run --out {out} --resume"
            flags = [*GROWTH, "--searches", "10000"]
        process = start(*flags, "--meter", "none", "--out", out)
        wait_until(lambda: _took_in_a_day(log), process)
        family = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 130, output
    assert f"resume with: {again}" in output
    assert "Traceback" not in output
    assert [r.reason for r in read_records(log, "run_ended") if isinstance(r, RunEnded)] == ["interrupted"]
    assert survivors(family) == []


def _took_in_a_day(log: Path) -> bool:
    try:
        return any(True for _ in read_records(log, "ingest"))
    except LogError:
        return False

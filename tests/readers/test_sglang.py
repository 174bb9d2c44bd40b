"""Tests SGLang: flags for one stream, settings read back, cache flushes by status, result classes kept separate."""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from memarena.execution.engine import execute
from memarena.execution.errors import InfraError
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import ReaderConfig
from memarena.execution.planning.request import RunRequest
from memarena.gateway import Gateway
from memarena.log.records import GatewayCall, QuestionAsked, ReaderProbed, RunStarted
from memarena.log.store import read_records
from memarena.readers.errors import ReaderError
from memarena.readers.probing import probe
from memarena.readers.sglang import check_settings, server_command, start_sglang
from memarena.readers.sglang_settings import SglangSettings, launch_flags, wanted_settings
from memarena.readers.types import RunningReader, flush_cache
from memarena.scoring.run_facts import gather

from tests.support.gpu_servers import install
from tests.support.psutil_processes import command_lines_below, has_ended

EXAMPLE = Path(__file__).parents[1] / "data" / "example"
DIGEST = "sha256:" + "a" * 64

Start = Callable[..., RunningReader]


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[str, object]], None]:
    """Return a function that makes ``python -m sglang.launch_server`` run the scripted server with these settings."""
    monkeypatch.setenv("PYTHONPATH", install(tmp_path / "packages"))

    def configure(settings: dict[str, object]) -> None:
        monkeypatch.setenv("FAKE_SGLANG", json.dumps(settings))

    configure({})
    return configure


@pytest.fixture
def start(package: Callable[[dict[str, object]], None], tmp_path: Path) -> Iterator[Start]:
    running: list[RunningReader] = []

    def go(settings: SglangSettings | None = None, **server: object) -> RunningReader:
        package(server)
        running.append(start_sglang(settings or SglangSettings("qwen"), work_dir=tmp_path, timeout_s=30))
        return running[-1]

    yield go
    for reader in running:
        reader.stop()


@pytest.mark.parametrize("version", ["0.5.3.post3", "0.5.23"])
def test_a_server_is_started_for_one_stream_and_read_back(start: Start, version: str) -> None:
    """Version 0.5.3 reports its settings at /get_server_info, later versions at /server_info."""
    reader = start(version=version)
    ref = reader.ref
    assert (ref.kind, ref.name, ref.result_class) == ("sglang", "qwen", "cold_prefill")
    assert ref.details["version"] == version
    assert ref.details["disable_radix_cache"] == "True"
    assert "--max-running-requests 1" in ref.details["launch_flags"]
    assert "not_told" not in ref.details
    assert ref.counts_tokens
    assert reader.alive()


def test_the_probe_passes_and_tokens_are_counted(start: Start) -> None:
    reader = start()
    with Gateway([reader.upstream], lambda call: None) as gateway:
        assert probe(reader, gateway).ok


def test_the_two_result_classes_differ_only_in_the_cache() -> None:
    cold = launch_flags(SglangSettings("m"), port=1)
    warm = launch_flags(SglangSettings("m", result_class="warm_prefix"), port=1)
    assert [flag for flag in cold if flag not in warm] == ["--disable-radix-cache"]
    assert "--enable-cache-report" in warm
    assert not {"--enable-deterministic-inference"} & set(cold)


def _servers() -> list[psutil.Process]:
    return [each for each, words in command_lines_below(psutil.Process()) if "launch_server" in " ".join(words)]


def test_a_server_with_other_settings_is_refused_and_stopped(start: Start) -> None:
    with pytest.raises(ReaderError, match="runs with max_running_requests 8, asked for was 1"):
        start(told={"max_running_requests": 8})
    assert not _servers()


def test_settings_that_a_version_does_not_report_are_noted(start: Start) -> None:
    reader = start(untold=["stream_interval", "random_seed"])
    assert reader.ref.details["not_told"] == "stream_interval, random_seed"


def test_every_requested_setting_is_compared() -> None:
    settings = SglangSettings("m")
    requested = wanted_settings(settings)
    assert check_settings(settings, requested) == []
    assert check_settings(settings, {}) == list(requested)
    for name in requested:
        with pytest.raises(ReaderError, match=name):
            check_settings(settings, {**requested, name: "other"})


def test_a_server_that_ends_at_start_is_reported_with_its_reason(start: Start) -> None:
    with pytest.raises(ReaderError, match="no CUDA device"):
        start(dies="no CUDA device")


def test_the_status_decides_whether_a_cache_was_flushed(start: Start) -> None:
    """The text "Cache flushed." with status 400 means busy, and the flush is retried."""
    reader = start(SglangSettings("qwen", result_class="warm_prefix"), busy_flushes=2)
    reader.begin_cell()
    with urllib.request.urlopen(f"{reader.upstream.server_url}/flushes") as reply:
        assert json.load(reply) == {"count": 3}


def test_a_cold_reader_has_nothing_to_flush(start: Start) -> None:
    reader = start()
    reader.begin_cell()
    with urllib.request.urlopen(f"{reader.upstream.server_url}/flushes") as reply:
        assert json.load(reply) == {"count": 0}


@pytest.mark.parametrize("status", [400, 404])
def test_a_cache_that_cannot_be_flushed_is_an_error(start: Start, status: int) -> None:
    reader = start(flush_status=status)
    with pytest.raises(ReaderError, match=f"/flush_cache answered {status} 'Cache flushed"):
        flush_cache(reader.upstream.server_url, None, wait_s=0.3)


def test_a_flush_without_a_server_is_an_error() -> None:
    with pytest.raises(ReaderError, match="flush_cache: the server cannot be reached"):
        flush_cache("http://127.0.0.1:9", None, wait_s=0.1)


@pytest.mark.parametrize("reply", ["[/INST][/INST]", "!!!! ??"])
def test_a_reply_that_is_no_language_fails_the_probe(start: Start, reply: str) -> None:
    reader = start(reply=reply)
    with Gateway([reader.upstream], lambda call: None) as gateway:
        result = probe(reader, gateway)
    assert not result.ok
    assert "holds" in result.message


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"model_path": ""}, "sglang:MODEL"),
        ({"model_path": "m", "image": "lmsysorg/sglang:spark"}, "by digest"),
        ({"model_path": "m", "mem_fraction": 1.5}, "mem_fraction"),
        ({"model_path": "m", "result_class": "unknown"}, "cold_prefill or warm_prefix"),
    ],
)
def test_impossible_settings_are_refused(settings: dict[str, str], words: str) -> None:
    with pytest.raises(ReaderError, match=words):
        SglangSettings(**settings)  # type: ignore[arg-type]


def test_a_container_is_named_by_digest_shares_the_gpu_and_ends_with_its_standard_input(tmp_path: Path) -> None:
    command = server_command(SglangSettings(str(tmp_path), image=f"lmsysorg/sglang@{DIGEST}"), 31000)
    words = " ".join(command)
    assert f"lmsysorg/sglang@{DIGEST}" in command
    for part in ("--gpus all", "--interactive", "--rm", f"{tmp_path}:{tmp_path}:ro", "--port 31000"):
        assert part in words
    assert "cat <&3 >/dev/null; kill" in words


def test_a_container_ends_when_the_reader_is_stopped(
    package: Callable[[dict[str, object]], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``docker`` is a stand-in that runs the container's own entry point here, standard input included."""
    docker = tmp_path / "bin" / "docker"
    docker.parent.mkdir()
    docker.write_text(
        "#!/bin/sh\n"
        'while [ "$1" != "-c" ]; do shift; done; shift\n'
        f'PATH={tmp_path / "bin"}:$PATH exec /bin/sh -c "$@"\n'
    )
    (tmp_path / "bin" / "python3").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    for program in (docker, tmp_path / "bin" / "python3"):
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{docker.parent}{os.pathsep}{os.environ['PATH']}")
    reader = start_sglang(SglangSettings("qwen", image=f"x@{DIGEST}"), work_dir=tmp_path, timeout_s=30)
    servers = _servers()
    assert servers
    assert reader.ref.details["image"] == f"x@{DIGEST}"
    reader.stop()
    deadline = time.monotonic() + 60
    while not all(has_ended(server) for server in servers) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert all(has_ended(server) for server in servers)


# ------------------------------------------------------------------ in a run


def config(**reader: object) -> RunConfig:
    return RunConfig(
        dataset=EXAMPLE,
        backends=("bm25",),
        readers=(ReaderConfig.model_validate({"spec": "sglang:qwen", **reader}),),
        limit=2,
        floor_samples=0,
        meters=("none",),
        infra_retries=0,
    )


def test_a_run_starts_it_and_says_its_class(package: Callable[[dict[str, object]], None], tmp_path: Path) -> None:
    package({"version": "0.5.4"})
    out = tmp_path / "run"
    assert execute(RunRequest(out=out, config=config(prefill="warm"))).reason == "completed"
    (reader,) = started_of(out).manifest.readers
    assert (reader.kind, reader.result_class, reader.details["version"]) == ("sglang", "warm_prefix", "0.5.4")


def test_readers_of_one_gpu_run_one_after_another_and_each_starts_once(
    package: Callable[[dict[str, object]], None], tmp_path: Path
) -> None:
    """The scripted GPU holds one server: a second next to it would not start."""
    package({"gpu": str(tmp_path / "gpu"), "version": "0.5.4"})
    out = tmp_path / "run"
    readers = tuple(ReaderConfig(spec=f"sglang:{name}") for name in ("first", "second"))
    extractive = ReaderConfig(spec="extractive")
    run_config = config().model_copy(
        update={"readers": (readers[0], extractive, readers[1]), "backends": ("bm25", "vanilla")}
    )
    assert execute(RunRequest(out=out, config=run_config)).reason == "completed"
    assert (tmp_path / "gpu.loads").read_text().split() == ["first", "second"]
    records = list(read_records(out))
    order = [r.reader if r.kind == "reader_probed" else r.cell_id.split("@")[1].split("/")[0] for r in records
             if r.kind in ("reader_probed", "backend_described")]  # fmt: skip
    assert list(dict.fromkeys(order[1:])) == ["first", "extractive", "second"], "the extractive one is probed first"
    facts = gather(records)
    assert all("version" not in reader.details for reader in started_of(out).manifest.readers)
    reader_details = {
        reader.name: (reader.details.get("version"), bool(reader.base_url)) for reader in facts.manifest.readers
    }
    assert reader_details == {"first": ("0.5.4", True), "second": ("0.5.4", True), "extractive": (None, True)}


def test_a_reader_that_does_not_start_when_it_is_needed_ends_the_run_which_goes_on_from_there(
    package: Callable[[dict[str, object]], None], tmp_path: Path
) -> None:
    out = tmp_path / "run"
    run_config = config().model_copy(update={"readers": tuple(ReaderConfig(spec=f"sglang:{name}") for name in "ab")})
    package({"gpu": str(tmp_path / "gpu"), "refuses": "b"})
    with pytest.raises(InfraError, match=r"reader sglang: it ended while starting; its log says: .*no weights of b"):
        execute(RunRequest(out=out, config=run_config))
    package({"gpu": str(tmp_path / "gpu")})
    assert execute(RunRequest(out=out, resume=True)).reason == "completed"
    assert (tmp_path / "gpu.loads").read_text().split() == ["a", "b"], "what is done needs no reader"


def started_of(out: Path) -> RunStarted:
    (started,) = [r for r in read_records(out, "run_started") if isinstance(r, RunStarted)]
    return started


def test_a_cached_token_in_the_cold_class_is_no_answer_of_anybody(
    package: Callable[[dict[str, object]], None], tmp_path: Path
) -> None:
    package({"cached_tokens": 12})
    out = tmp_path / "run"
    assert execute(RunRequest(out=out, config=config())).reason == "incomplete"
    attempts = [r for r in read_records(out, "asked") if isinstance(r, QuestionAsked)]
    assert {(r.status, r.cause) for r in attempts} == {
        ("infra_failed", "reader qwen: 12 prompt tokens came from a cache, in a class that has none")
    }
    calls = [r for r in read_records(out, "gateway_call") if isinstance(r, GatewayCall)]
    calls = [call for call in calls if call.instance_id and call.route == "/v1/chat/completions"]
    assert {call.cached_tokens for call in calls} == {12}


def test_cached_tokens_are_what_the_warm_class_is_about(
    package: Callable[[dict[str, object]], None], tmp_path: Path
) -> None:
    package({"cached_tokens": 12})
    assert execute(RunRequest(out=tmp_path / "run", config=config(prefill="warm"))).reason == "completed"


def test_a_template_that_counts_otherwise_than_its_golden_counts_ends_the_run_before_it_is_timed(
    package: Callable[[dict[str, object]], None], tmp_path: Path
) -> None:
    """The server counts words: 11 in the plain chat, 16 with its system message, 14 of names."""
    out = tmp_path / "right"
    right = {"plain": 11, "system": 16}
    assert execute(RunRequest(out=out, config=config(golden_prompt_tokens=right))).reason == "completed"
    probes = [r for r in read_records(out, "reader_probed") if isinstance(r, ReaderProbed)]
    assert probes[-1].prompt_tokens["plain"] == 11
    out = tmp_path / "wrong"
    with pytest.raises(InfraError, match="chat system has 16 prompt tokens, golden is 42"):
        execute(RunRequest(out=out, config=config(golden_prompt_tokens={**right, "system": 42})))
    probes = [r for r in read_records(out, "reader_probed") if isinstance(r, ReaderProbed)]
    assert not probes[-1].ok

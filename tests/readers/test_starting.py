"""Tests starting and probing readers, and that none outlives its harness."""

from __future__ import annotations

import contextlib
import http.client
import importlib.util
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from memarena.gateway import CallContext, Gateway
from memarena.log.records import GatewayCall
from memarena.processes import GuardedProcess
from memarena.readers import embedded, remote
from memarena.readers.errors import ReaderError
from memarena.readers.probing import probe
from memarena.readers.starting import start_child, start_reader
from memarena.readers.types import RunningReader
from memarena_answering import (
    Asker,
    Completion,
    ContextItem,
    Message,
    Prompt,
    ReaderCallError,
    ReaderClient,
    ReadingPlan,
    build_prompt,
    count_by_bytes,
    parse_answer,
)

from tests.support.model_script import Fault, Script
from tests.support.model_server import ModelServer


def listens(base_url: str) -> bool:
    """Return whether a server accepts connections at the address."""
    connection = http.client.HTTPConnection(base_url.split("/")[2], timeout=2)
    try:
        connection.connect()
    except OSError:
        return False
    finally:
        connection.close()
    return True


def wait_until_silent(base_url: str) -> None:
    deadline = time.monotonic() + 60
    while listens(base_url):
        assert time.monotonic() < deadline, f"{base_url} still answers"
        time.sleep(0.05)


@contextlib.contextmanager
def gateway_before(reader: RunningReader) -> Iterator[tuple[Gateway, list[GatewayCall]]]:
    records: list[GatewayCall] = []
    with Gateway([reader.upstream], records.append) as gateway:
        yield gateway, records


def read_with(
    gateway: Gateway, reader: RunningReader, question: str, *, max_tokens: int = 48, window_tokens: int | None = None
) -> tuple[str, GatewayCall]:
    """Ask the reader about two sessions through the gateway; return the answer and the record of its call."""
    items = [
        ContextItem("Ana: The blue kayak is in Bo's garage.", "2025-01-06T09:00:00Z", 1.0),
        ContextItem("Bo: My train leaves at 14:20.", "2025-01-06T10:00:00Z", 0.5),
    ]
    up = reader.upstream
    window = up.context_window_tokens if window_tokens is None else window_tokens
    plan = ReadingPlan(up.model, max_tokens, context_window_tokens=window, counts_tokens=up.counts_tokens)
    token = gateway.grant(CallContext("central"))
    client = ReaderClient(gateway.base_url)
    try:
        count = client.counter(token, up.model) if up.counts_tokens else count_by_bytes
        prompt = build_prompt(items, question, "2025-01-07", Asker("owner"), plan, count)
        *_, last = client.stream(prompt, plan, token, 120)
    finally:
        client.close()
        calls = gateway.revoke(token)
    assert isinstance(last, Completion)
    return last.text, calls[-1]


# ------------------------------------------------------------------ extractive


@pytest.fixture
def extractive(tmp_path: Path) -> Iterator[RunningReader]:
    reader = start_reader("extractive", work_dir=tmp_path)
    yield reader
    reader.stop()


def test_the_extractive_reader_answers_through_the_gateway(extractive: RunningReader) -> None:
    assert not extractive.ref.is_real_reader
    assert extractive.ref.context_window_tokens == 16_384
    with gateway_before(extractive) as (gateway, _):
        assert probe(extractive, gateway).ok
        raw, call = read_with(gateway, extractive, "When does Bo's train leave?")
        assert parse_answer(raw).answer == "14:20"
        assert call.first_content_ns is not None
        assert call.completion_tokens == -(-len(raw) // 4)


def test_the_extractive_reader_refuses_a_prompt_without_question_and_context(extractive: RunningReader) -> None:
    """With a machine-readable code, and through the gateway with a message that names the remedy."""
    body = json.dumps({"model": "extractive", "messages": [{"role": "user", "content": "Say hello."}]}).encode()
    url = f"{extractive.upstream.base_url}/chat/completions"
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with pytest.raises(urllib.error.HTTPError) as direct:
        urllib.request.urlopen(request, timeout=30)
    with direct.value as refused:
        assert (refused.code, json.load(refused)["error"]["code"]) == (422, "prompt_not_understood")
    with gateway_before(extractive) as (gateway, calls), contextlib.closing(ReaderClient(gateway.base_url)) as client:
        prompt = Prompt((Message("user", "Say hello."),), 0, 0, 0, 0, 0)
        with pytest.raises(ReaderCallError, match=r"no question.*--central-reading") as caught:
            list(
                client.stream(
                    prompt, ReadingPlan(extractive.upstream.model, 8), gateway.grant(CallContext("probe")), 30
                )
            )
    assert caught.value.status == 422
    assert not calls[0].upstream_failed


def test_the_extractive_reader_keeps_to_max_tokens(extractive: RunningReader) -> None:
    with gateway_before(extractive) as (gateway, _):
        raw, call = read_with(gateway, extractive, "When does Bo's train leave?", max_tokens=8)
        assert call.completion_tokens == 8
        assert len(raw) == 32


def test_a_prompt_above_the_window_gets_a_400(tmp_path: Path) -> None:
    reader = start_reader("extractive", work_dir=tmp_path, window_tokens=100)
    try:
        with gateway_before(reader) as (gateway, records):
            with pytest.raises(ReaderCallError) as caught:
                read_with(gateway, reader, "word " * 200, window_tokens=0)
            assert caught.value.status == 400
            assert not records[-1].upstream_failed
    finally:
        reader.stop()


def test_a_template_that_is_known_cannot_be_said_to_lack_a_system_role(tmp_path: Path) -> None:
    with pytest.raises(ReaderError, match="no_system_role is for a URL"):
        start_reader("extractive", work_dir=tmp_path, no_system_role=True)


def test_a_stopped_reader_serves_no_more(tmp_path: Path) -> None:
    reader = start_reader("extractive", work_dir=tmp_path)
    try:
        assert reader.alive()
        assert reader.last_words() == "", "a reader that works has nothing to say"
        assert isinstance(reader.process, GuardedProcess)
        family = [psutil.Process(reader.process.pid), *psutil.Process(reader.process.pid).children(recursive=True)]
        assert len(family) == 2
    finally:
        reader.stop()
    reader.stop()
    assert not reader.alive()
    assert not any(process.is_running() for process in family)
    assert not listens(reader.upstream.base_url)


def harness_that_starts(spec: str, work_dir: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a process that starts a reader and then idles; return it and the reader's base URL."""
    code = (
        "import sys, time, pathlib; from memarena.readers.starting import start_reader\n"
        "reader = start_reader(sys.argv[1], work_dir=pathlib.Path(sys.argv[2]))\n"
        "print(reader.upstream.base_url, flush=True); time.sleep(600)"
    )
    process = subprocess.Popen([sys.executable, "-c", code, spec, str(work_dir)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


@pytest.mark.parametrize("spec", ["extractive", pytest.param("embedded", marks=pytest.mark.llm)])
def test_no_reader_outlives_its_harness_even_after_sigkill(spec: str, tmp_path: Path) -> None:
    process, base_url = harness_that_starts(spec, tmp_path)
    try:
        assert listens(base_url)
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
        wait_until_silent(base_url)
    finally:
        process.kill()
        process.wait(30)
        assert process.stdout is not None
        process.stdout.close()


# ------------------------------------------------------------------ what cannot be started


@pytest.mark.parametrize(
    ("spec", "options", "words"),
    [
        ("nonesuch", {}, "unknown reader 'nonesuch': expected embedded, extractive, sglang:MODEL, llamacpp:FILE.gguf"),
        ("llamacpp:none.gguf", {}, "reader llamacpp:none.gguf: expected the path of a .gguf file that is there"),
        ("extractive", {"model": "x"}, "a model can only be named for a URL"),
        ("extractive", {"window_tokens": 0}, "at least 1 token"),
        ("embedded", {"window_tokens": 9000}, "above 8192"),
        ("http://", {}, "expected a URL"),
        ("http://127.0.0.1:99999/v1", {}, "expected a URL"),
        ("http://127.0.0.1:9/v1", {}, "cannot be reached: "),
    ],
)
def test_an_unusable_reader_gives_a_one_line_error(
    spec: str, options: dict[str, object], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ReaderError) as caught:
        start_reader(spec, work_dir=tmp_path, **options)  # type: ignore[arg-type]
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_that_are_not_installed_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "WEIGHTS_DISTRIBUTION", "no-such-weights")
    with pytest.raises(ReaderError, match="the package no-such-weights, which carries the weights, is not installed"):
        start_reader("embedded", work_dir=tmp_path, threads=1)
    monkeypatch.setattr(embedded, "ENGINE_DISTRIBUTION", "no_such_engine")
    with pytest.raises(ReaderError, match="the package no_such_engine is not installed"):
        start_reader("embedded", work_dir=tmp_path, threads=1)


@pytest.mark.skipif(importlib.util.find_spec("xllamacpp") is None, reason="xllamacpp is not installed")
def test_a_reader_that_dies_at_start_is_reported_with_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no weights at all")
    weights = embedded.Weights(broken, "0", "0")
    monkeypatch.setattr(embedded, "find_weights", lambda: weights)
    with pytest.raises(
        ReaderError,
        match=r"^reader embedded: it ended while starting \(exit code \d+\); .*(cannot|failed to) load .*broken\.gguf",
    ):
        start_reader("embedded", work_dir=tmp_path, threads=1)


# ------------------------------------------------------------------ behind a URL


@pytest.mark.parametrize(
    ("dialect", "window", "tokenizer", "extra"),
    [
        ("plain", 16_384, "none", {}),
        ("llama.cpp", 4_096, "llama.cpp", {"cache_prompt": False}),
        ("sglang", 4_096, "sglang", {}),
    ],
)
def test_a_server_is_identified_by_its_additional_routes(
    dialect: str, window: int, tokenizer: str, extra: dict[str, object], tmp_path: Path
) -> None:
    with ModelServer(dialect=dialect, window_tokens=4_096, model="some/model") as server:  # type: ignore[arg-type]
        reader = start_reader(server.base_url.removesuffix("/v1"), work_dir=tmp_path)
        assert reader.ref.kind == "url"
        assert reader.ref.name == reader.ref.model == reader.upstream.upstream_model == "some/model"
        assert reader.ref.base_url == server.base_url
        assert reader.ref.context_window_tokens == reader.upstream.context_window_tokens == window
        assert reader.upstream.tokenizer == tokenizer
        assert reader.ref.counts_tokens == (tokenizer != "none")
        assert reader.upstream.extra_body == extra
        assert reader.alive()
        reader.stop()
        with gateway_before(reader) as (gateway, _):
            assert probe(reader, gateway).ok
            read_with(gateway, reader, "Where?")


def test_settings_of_the_user_override_those_of_the_server(tmp_path: Path) -> None:
    with ModelServer(dialect="llama.cpp", window_tokens=4_096) as server:
        reader = start_reader(server.base_url, work_dir=tmp_path, window_tokens=2_000, no_system_role=True)
        assert reader.ref.context_window_tokens == 2_000
        assert reader.ref.no_system_role
        assert reader.ref.details["window_from"] == "given"


def test_a_model_that_is_not_offered_gives_a_warning_with_the_offered_ones(tmp_path: Path) -> None:
    notes: list[str] = []
    with ModelServer(model="offered") as server:
        reader = start_reader(server.base_url, work_dir=tmp_path, model="other", note=notes.append)
    assert reader.upstream.upstream_model == "other"
    assert notes == [f"warning: reader {server.base_url}: the server's list does not name other; it names offered"]
    assert notes[0].endswith(reader.ref.details["warnings"])


def test_the_api_key_comes_from_the_argument_or_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ModelServer(api_key="k-1") as server:
        with pytest.raises(ReaderError, match="is the API key right"):
            start_reader(server.base_url, work_dir=tmp_path)
        monkeypatch.setenv("MEMARENA_READER_API_KEY", "k-1")
        assert start_reader(server.base_url, work_dir=tmp_path).upstream.api_key == "k-1"
        monkeypatch.setenv("MEMARENA_READER_API_KEY", "wrong")
        reader = start_reader(server.base_url, work_dir=tmp_path, api_key="k-1")
        assert "k-1" not in reader.ref.model_dump_json()
        with gateway_before(reader) as (gateway, _):
            assert probe(reader, gateway).ok


# ------------------------------------------------------------------ the probe


@pytest.mark.parametrize("fault", ["status", "disconnect", "cut", "malformed"])
def test_a_failed_probe_is_reported_with_its_reason(fault: Fault, tmp_path: Path) -> None:
    with ModelServer() as server:
        reader = start_reader(server.base_url, work_dir=tmp_path)
        server.script = Script(fault=fault)
        with gateway_before(reader) as (gateway, records):
            probed = probe(reader, gateway)
        assert not probed.ok
        assert probed.message
        assert records[-1].phase == "probe"


def test_an_empty_reply_fails_the_probe_but_reasoning_alone_does_not(tmp_path: Path) -> None:
    with ModelServer() as server:
        reader = start_reader(server.base_url, work_dir=tmp_path)
        with gateway_before(reader) as (gateway, _):
            server.script = Script(tokens=(" ", "\n"))
            assert probe(reader, gateway).message == "the probe's reply is empty"
            server.script = Script(tokens=("",), reasoning=("hm",))
            assert probe(reader, gateway).ok


# ------------------------------------------------------------------ embedded


@pytest.mark.llm
def test_the_embedded_readers_own_times_agree_with_the_harness(tmp_path: Path) -> None:
    reader = start_reader("embedded", work_dir=tmp_path, threads=1)
    try:
        assert reader.ref.is_real_reader
        assert len(reader.ref.details["weights_sha256"]) == 64
        with gateway_before(reader) as (gateway, records):
            assert probe(reader, gateway).ok
            for _ in range(2):
                raw, call = read_with(gateway, reader, "When does Bo's train leave?", max_tokens=8)
                assert raw
                assert call.cached_tokens == 0, "a cached prefix would make the second TTFT a warm one"
                assert call.first_content_ns is not None
                assert call.server_prompt_ms is not None
                # Loose on purpose: this checks the order of magnitude and is no measurement.
                assert 0.5 < call.first_content_ns / 1e6 / call.server_prompt_ms < 3
            tokenize = next(record for record in records if record.route == "/v1/tokenize")
            assert tokenize.status == 200
    finally:
        reader.stop()
    assert not listens(reader.upstream.base_url)


@pytest.mark.llm
def test_a_context_that_fills_the_window_fits_llama_cpp(tmp_path: Path) -> None:
    """The harness's token count and the server's agree closely enough that a full window is not exceeded."""
    reader = start_reader("embedded", work_dir=tmp_path, window_tokens=512, threads=1)
    try:
        with gateway_before(reader) as (gateway, _):
            up = reader.upstream
            plan = ReadingPlan(up.model, 16, context_window_tokens=512, counts_tokens=True)
            token = gateway.grant(CallContext("central"))
            client = ReaderClient(gateway.base_url)
            items = [ContextItem("Bo: 2026-01-06 14:20 <|im_end|> Ünïcödé " * 9, score=-i) for i in range(9)]
            prompt = build_prompt(items, "?", "", Asker("owner"), plan, client.counter(token, up.model))
            assert 0 < prompt.kept_items < 9
            *_, last = client.stream(prompt, plan, token, 120)
            client.close()
            gateway.revoke(token)
            assert isinstance(last, Completion)
            assert last.prompt_tokens is not None
            assert last.prompt_tokens + plan.max_tokens <= 512
    finally:
        reader.stop()


def test_a_child_writes_its_address_only_once_it_listens(extractive: RunningReader, tmp_path: Path) -> None:
    address = (tmp_path / "reader-extractive.address").read_text()
    assert address.endswith("\n")
    assert extractive.upstream.base_url == f"http://{address.strip()}/v1"
    connection = http.client.HTTPConnection(address.strip(), timeout=30)
    connection.request("GET", "/v1/models")
    assert json.loads(connection.getresponse().read())["data"][0]["id"] == "extractive"
    connection.close()


@pytest.mark.parametrize("kills", [2, 3])
def test_a_child_that_is_killed_while_it_starts_is_started_again(
    kills: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is started again at most twice, and only if it was killed."""
    (tmp_path / "struck_server.py").write_text(
        "import os, signal, sys, time\nfrom pathlib import Path\n"
        "struck = Path(__file__).with_name('struck')\n"
        "done = struck.read_text() if struck.exists() else ''\nstruck.write_text(done + 'x')\n"
        f"if len(done) < {kills}: os.kill(os.getpid(), signal.SIGKILL)\n"
        "Path(sys.argv[2]).write_text('127.0.0.1:9')\ntime.sleep(600)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    if kills == 2:
        process, url = start_child("struck", "struck_server", tmp_path, [])
        process.stop()
        assert url == "http://127.0.0.1:9/v1"
        assert process.log_path.read_text().count("killed while it started; started again") == 2
    else:
        with pytest.raises(ReaderError, match=r"it ended while starting \(exit code 137\)"):
            start_child("struck", "struck_server", tmp_path, [])
    assert (tmp_path / "struck").read_text() == "xxx"


def test_an_address_is_read_once_it_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is opened and not yet written is no address."""
    (tmp_path / "slow_server.py").write_text(
        "import sys, time\n"
        "with open(sys.argv[2], 'w') as file:\n"
        "    time.sleep(0.2)\n"
        "    file.write('127.0.0.1:9')\n"
        "time.sleep(600)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    process, url = start_child("slow", "slow_server", tmp_path, [])
    process.stop()
    assert url == "http://127.0.0.1:9/v1"


@pytest.mark.parametrize("words", ["Service Unavailable", "Loading model"])
def test_a_health_check_that_never_passes_ends_with_a_timeout(words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("LOADING_TIMEOUT_S", "UNSTATED_TIMEOUT_S", "_POLL_S"):
        monkeypatch.setattr(remote, bound, 0.0)
    notes: list[str] = []
    with ModelServer(routes={"/health": Script(status=503, message=words)}) as server:
        if words == "Loading model":
            with pytest.raises(ReaderError, match="still answers 503 after 0 s: Loading model"):
                remote.wait_until_loaded(server.base_url, None, notes.append)
        else:
            remote.wait_until_loaded(server.base_url, None, notes.append)
            assert "the reader is asked all the same" in notes[-1]

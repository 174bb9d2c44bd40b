"""Tests ``memarena conformance``: its list, its one-line errors, its JUnit report, and the suite's model endpoint."""

from __future__ import annotations

import json
import os
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

import grpc
import pytest
from memarena.cli.main import main
from memarena.client.backend import BackendClient, Deadlines
from memarena.client.backend import Security as ClientSecurity
from memarena.client.errors import BackendCallError
from memarena.conformance import Check, Settings, all_checks, run_suite, suite, write_junit
from memarena.conformance.backend_under_test import BackendUnderTest
from memarena.conformance.scripted_models import EMBEDDER, READER, ReaderScript, ScriptedModels, count_tokens, embed
from memarena.conformance.suite import NO_SECURITY
from memarena.conformance.wire import Connection, RefusedError
from memarena_backend import BackendServer, Security
from memarena_backend.servicer import Servicer
from memarena_proto import memory_backend_pb2 as pb

from tests.conformance.sound import Parts, Served, SoundMemory


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


def memarena(capsys: pytest.CaptureFixture[str], *arguments: str) -> Done:
    """Run the command in this process, since starting a program takes longer than the tests."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["memarena", "conformance", *arguments])
        main()
    captured = capsys.readouterr()
    assert isinstance(ended.value.code, int)
    return Done(ended.value.code, captured.out, captured.err)


def test_the_list_names_every_check_with_its_clauses(capsys: pytest.CaptureFixture[str]) -> None:
    result = memarena(capsys, "--list")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert [line.split()[0] for line in lines] == [check.check_id for check in all_checks()]
    assert all(check.clauses[0] in line for check, line in zip(all_checks(), lines, strict=True))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--target"),
        (["--target", "nowhere"], "expected HOST:PORT"),
        (["--target", "127.0.0.1:1", "--wait", "0"], "--target 127.0.0.1:1: no backend answers there"),
        (["--target", "127.0.0.1:1", "--only", "src.nothing"], "--only src.nothing: no such check"),
        (["--target", "127.0.0.1:1", "--junit", "/no/such/folder/x.xml"], "--junit"),
        (["--target", "127.0.0.1:1", "--log", "/no/such/file"], "--log"),
        (["--target", "127.0.0.1:1", "--tls-ca", "/no/such/file"], "--tls-ca"),
        (["--target", "127.0.0.1:1", "--token-env", "NO_SUCH_VARIABLE_HERE"], "--token-env"),
        (["--target", "127.0.0.1:1", "--restart-command", "no-such-program-here now"], "--restart-command"),
        (["--target", "127.0.0.1:1", "--model-endpoint", "ftp://x"], "--model-endpoint"),
        (["--target", "127.0.0.1:1", "--model-endpoint", "http://127.0.0.1:1/v1"], "--model-endpoint"),
        (["--target", "127.0.0.1:1", "--model", "m"], "--model"),
    ],
)
def test_bad_input_is_one_line_and_exit_2(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    result = memarena(capsys, *arguments)
    assert result.returncode == 2, result
    assert words in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert result.stdout == ""


def test_a_token_is_sent_and_its_absence_is_tested(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THE_TOKEN", "secret")
    server = BackendServer(lambda _: SoundMemory(), tmp_path, "127.0.0.1:0", Security(bearer_token="secret"))
    try:
        without = memarena(capsys, "--target", server.address, "--only", "sec")
        options = ("--target", server.address, "--token-env", "THE_TOKEN", "--only", "sec", "--only", "src.finds")
        result = memarena(capsys, *options)
    finally:
        server.stop()
    assert without.returncode == 2
    assert "--token-env" in without.stderr
    assert result.returncode == 0, result
    assert "ok   sec.token" in result.stdout
    assert "secret" not in result.stdout + result.stderr


def test_a_part_of_the_token_is_not_the_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "memarena_backend.server.hmac.compare_digest",
        lambda credential, token: len(credential) > 8 and token.startswith(credential),
    )
    server = BackendServer(lambda _: SoundMemory(), tmp_path, "127.0.0.1:0", Security(bearer_token="secret"))
    try:
        result = run_suite(server.address, only=("sec.token",), security=ClientSecurity(bearer_token="secret"))
    finally:
        server.stop()
    assert "with all but its last sign" in result.results[-1].message


def test_junit_of_a_failure_says_what_was_seen(tmp_path: Path) -> None:
    class Silent(SoundMemory):
        def matches(self, namespace: str, query: object) -> list[object]:  # type: ignore[override]
            return []

    served = Served(Parts(memory=Silent), tmp_path / "data")
    try:
        result = run_suite(served.address, only=("src.finds", "sec.token"), settings=Settings(timeout_s=10))
    finally:
        served.stop()
    write_junit(result, tmp_path / "report.xml")
    returned, skipped = ElementTree.parse(tmp_path / "report.xml").getroot().findall("testcase")
    failure = returned.find("failure")
    assert failure is not None
    assert "is not returned" in failure.attrib["message"]
    assert skipped.find("skipped") is not None


class OddlyNamed(Servicer):
    """Describes itself with a kind that the contract lacks, and a name of several lines."""

    def describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        described = pb.DescribeResponse()
        described.CopyFrom(super().describe(request, context))
        described.kind, described.name = 7, "two\nlines\x01"  # type: ignore[assignment]
        return described


def test_numbers_that_no_enum_has_are_failed_checks_and_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    served = Served(Parts(servicer=OddlyNamed, status=7), tmp_path / "data")
    report = tmp_path / "report.xml"
    options = ("--only", "dsc.complete", "--only", "hlt.serving", "--wait", "0", "--junit", str(report))
    try:
        result = memarena(capsys, "--target", served.address, *options)
    finally:
        served.stop()
    assert (result.returncode, result.stderr) == (1, "")
    dsc, hlt, summary = result.stdout.splitlines()
    assert dsc.endswith("kind is 7, expected COMPETITOR or DIAGNOSTIC")
    assert hlt.endswith("Health of '' is unknown_7")
    assert summary.startswith("two lines 1 (unknown_7, contract 1.2): 0 passed, 2 failed")
    assert ElementTree.parse(report).getroot().attrib["failures"] == "2"


def test_a_run_says_which_health_it_waited_with_in_vain(tmp_path: Path) -> None:
    """The harness's own client reads the same enum."""
    served = Served(Parts(status=7), tmp_path / "data")
    try:
        with (
            BackendClient(served.address, Deadlines(health_s=0.5)) as client,
            pytest.raises(BackendCallError, match="is not serving: unknown_7"),
        ):
            client.wait_until_serving()
    finally:
        served.stop()


def test_a_response_that_the_suite_cannot_read_is_a_failed_check_that_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(_: BackendUnderTest) -> None:
        raise ValueError("not foreseen")

    odd = Check("src.odd", ("SRC-1",), "odd", unread)
    unsure = Check("src.unsure", ("SRC-1",), "unsure", lambda _: None, applies=lambda _: os.environ["NO_SUCH_THING_1"])
    checks = (odd, unsure, *suite.select(["src.finds"]))
    monkeypatch.setattr(suite, "select", lambda _: checks)
    served = Served(Parts(), tmp_path / "data")
    try:
        result = run_suite(served.address)
    finally:
        served.stop()
    assert [each.status for each in result.results] == ["failed", "failed", "passed"]
    reported = result.results[0].message
    assert reported.startswith("the suite could not read the response: ValueError: not foreseen (test_command.")
    assert "KeyError: 'NO_SUCH_THING_1'" in result.results[1].message


@pytest.fixture
def models() -> Iterator[ScriptedModels]:
    endpoint = ScriptedModels(None)
    yield endpoint
    endpoint.close()


def post(access: pb.ModelAccess, path: str, body: object, token: str | None = None) -> tuple[int, str]:
    request = urllib.request.Request(
        f"{access.base_url}{path}",
        data=json.dumps(body).encode(),
        headers={"Authorization": f"Bearer {access.token if token is None else token}"},
    )
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=10) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_model_call_of_an_abandoned_call_is_refused_and_is_no_violation(models: ScriptedModels) -> None:
    backend = BackendUnderTest(Connection("127.0.0.1:1", NO_SECURITY, 1.0), models, pb.DescribeResponse())
    phases = []
    for code in ("DEADLINE_EXCEEDED", "INVALID_ARGUMENT"):
        with pytest.raises(RefusedError), backend.access("Answer") as access:
            raise RefusedError("Answer", code, "", ())
        phases.append(models.admit("/chat/completions", f"Bearer {access.token}", {"model": READER})[0])
    assert phases == ["abandoned", "after_return"]


def test_the_endpoint_serves_as_a_gateway_does(models: ScriptedModels) -> None:
    chat = {"model": READER, "messages": [{"role": "user", "content": "hm"}]}
    with models.grant("call", ReaderScript(pieces=("a", "b"))) as access:
        status, reply = post(access, "/chat/completions", chat)
        assert (status, json.loads(reply)["choices"][0]["message"]["content"]) == (200, "ab")
        status, reply = post(access, "/chat/completions", {**chat, "stream": True})
        chunks = [line.removeprefix("data: ") for line in reply.splitlines() if line]
        assert chunks[-1] == "[DONE]"
        deltas = [json.loads(chunk)["choices"][0]["delta"].get("content") for chunk in chunks[:-1]]
        assert [delta for delta in deltas if delta] == ["a", "b"]
        assert post(access, "/tokenize", {"model": READER, "texts": ["12345", ""]}) == (200, '{"counts": [2, 0]}')
        assert post(access, "/chat/completions", {**chat, "model": "another"})[0] == 404
        assert post(access, "/tokenize", {"model": EMBEDDER, "texts": []})[0] == 404
        assert post(access, "/chat/completions", chat, token="made-up")[0] == 401
    assert post(access, "/chat/completions", chat)[0] == 403
    assert [call.phase for call in models.calls[-2:]] == ["unknown_token", "after_return"]


def test_texts_that_share_words_are_near_each_other() -> None:
    def near(text: str, other: str) -> float:
        return sum(a * b for a, b in zip(embed(text), embed(other), strict=True))

    assert near("the canoe Zulobira", "Zulobira?") > 0.4 > near("the canoe Zulobira", "Pimisovi?")
    assert abs(near("a b c", "a b c") - 1) < 1e-4
    assert count_tokens("né") == 1

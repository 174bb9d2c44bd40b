"""Tests days over Memobase: committed completely or undone, after any failure or kill; replays change nothing.

The Memobase server has no transactions: the backend itself must put back what a failed day had changed. Otherwise a
memory would answer from half a day, or from one day twice.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from memarena_backend import ServeError
from memarena_backend_memobase import MemobaseMemory
from memarena_backend_memobase.settings import Settings, read_settings
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import Served, code_of, connect, launch, message_of, retry_delay_s, serve
from tests.memobase.conftest import Stack, day_of, question, texts_of, told
from tests.memobase.double import TOKEN

MODULE = "memarena_backend_memobase"
REX, LUNA = "life::dog: Rex", "life::dog: Luna"


def profile(served: Served, day: int) -> list[str]:
    return texts_of(served.search(question("dog", day, events="off")).items)


def everything(served: Served, day: int) -> str:
    return "\n".join(texts_of(served.search(question("dog", day, similarity="-1", k="1000")).items))


def refusal(served: Served, frames: list[pb.IngestRequest], timeout_s: float = 20.0) -> grpc.RpcError:
    with pytest.raises(grpc.RpcError) as refused:
        served.ingest(frames, timeout_s)
    return refused.value


@contextmanager
def flushes_held(stack: Stack) -> Iterator[threading.Event]:
    """Make flushes wait on the server until the block ends; the event is set as soon as one waits."""
    reached, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        reached.set()
        go_on.wait(20)

    stack.double.before_flush = hold
    try:
        yield reached
    finally:
        stack.double.before_flush = lambda: None
        go_on.set()


# ------------------------------------------------------------------ failures


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (500, grpc.StatusCode.UNAVAILABLE, "a model of the Memobase server failed"),
        (429, grpc.StatusCode.UNAVAILABLE, "a model of the Memobase server failed"),
        (401, grpc.StatusCode.FAILED_PRECONDITION, "the models refuse the Memobase server"),
        (404, grpc.StatusCode.FAILED_PRECONDITION, "the models refuse the Memobase server"),
    ],
)
def test_a_model_that_fails_ends_the_day_and_what_it_had_changed_is_put_back(
    stack: Stack, served: Served, status: int, code: grpc.StatusCode, reason: str
) -> None:
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    before = everything(served, 0)

    def fail_from_the_second_on() -> None:
        stack.models.chat_status = status if "My dog is called Luna." in "".join(stack.models.prompts) else 200

    stack.double.before_flush = fail_from_the_second_on
    day = day_of("n", 1, told("s2", "My dog is called Luna.", day=1), told("s3", "My boat is Aurora.", day=1))
    error = refusal(served, day)
    assert (code_of(error), reason in message_of(error)) == (code, True)
    # The server holds the first half of the day; nobody sees it.
    stack.double.before_flush, stack.models.chat_status = (lambda: None), 200
    assert everything(served, 0) == before
    assert profile(served, 0) == [REX]
    assert served.ingest(day).visible_through_day == 1
    assert set(profile(served, 1)) == {LUNA, "life::boat: Aurora"}


def test_an_unavailable_model_says_when_to_come_again(stack: Stack, served: Served) -> None:
    stack.models.chat_status = 503
    error = refusal(served, day_of("n", 0, told("s1", "My dog is called Rex.")))
    assert retry_delay_s(error) == 1.0


def test_an_event_that_could_not_be_embedded_ends_the_day_because_no_search_would_find_it(
    stack: Stack, served: Served
) -> None:
    stack.models.embedding_status = 500
    day = day_of("n", 0, told("s1", "My dog is called Rex."))
    assert "events cannot be searched" in message_of(refusal(served, day))

    def embed_only_the_search() -> None:
        stack.models.embedding_status = 200

    stack.double.after_event = embed_only_the_search
    stack.models.embedding_status = 500
    error = refusal(served, day)
    assert "1 of 1 new event lines were kept without an embedding" in message_of(error)
    assert code_of(error) is grpc.StatusCode.UNAVAILABLE
    assert served.ingest(day).visible_through_day == 0


def test_a_server_that_is_away_is_unavailable_and_nothing_else(stack: Stack, served: Served) -> None:
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    stack.double.close()
    with pytest.raises(grpc.RpcError) as unsearched:
        served.search(question("dog", 0))
    for error in (
        unsearched.value,
        refusal(served, day_of("n", 1, told("s2", "My dog is called Luna.", day=1))),
    ):
        assert code_of(error) is grpc.StatusCode.UNAVAILABLE
        assert "the Memobase server cannot be reached" in message_of(error)
    with pytest.raises(grpc.RpcError) as unforgotten:
        served.reset("n")
    assert code_of(unforgotten.value) is grpc.StatusCode.UNAVAILABLE


def test_replays_ask_no_model_and_change_nothing(stack: Stack, served: Served) -> None:
    day = day_of("n", 0, told("s1", "My dog is called Rex."))
    served.ingest(day)
    before, prompt_count = everything(served, 0), len(stack.models.prompts)
    for _ in range(10):
        assert served.ingest(day).replayed
    assert (everything(served, 0), len(stack.models.prompts)) == (before, prompt_count)


# ------------------------------------------------------------------ interruptions


def test_an_ingest_whose_deadline_passed_leaves_nothing_although_the_server_goes_on(
    stack: Stack, served: Served
) -> None:
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    before = everything(served, 0)
    day = day_of("n", 1, told("s2", "My dog is called Luna.", day=1))
    with flushes_held(stack) as reached:
        error = refusal(served, day, timeout_s=2.0)
        assert code_of(error) is grpc.StatusCode.DEADLINE_EXCEEDED
        assert reached.wait(30)
    assert everything(served, 0) == before
    served.ingest(day)
    assert profile(served, 1) == [LUNA]
    assert everything(served, 1).count("Luna") == 2  # the entry and one line: nothing came in twice


def test_while_an_interrupted_flush_goes_on_the_namespace_is_unavailable(
    stack: Stack, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memarena_backend_memobase.undoing._PATIENCE_S", 0.2)
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    with flushes_held(stack):
        refusal(served, day_of("n", 1, told("s2", "My dog is called Luna.", day=1)), timeout_s=2.0)
        with pytest.raises(grpc.RpcError) as waiting:
            served.search(question("dog", 0))
    assert code_of(waiting.value) is grpc.StatusCode.UNAVAILABLE
    assert "still under way" in message_of(waiting.value)
    assert profile(served, 0) == [REX]


@pytest.mark.parametrize("first_day", [True, False])
def test_a_backend_that_is_killed_in_an_ingest_shows_nothing_of_the_day(
    stack: Stack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, first_day: bool
) -> None:
    for name, value in stack.environment.items():
        monkeypatch.setenv(name, value)
    index = 0 if first_day else 1
    day = day_of("n", index, told("s2", "My boat is Aurora.", "My dog is called Luna.", day=index))
    with launch(MODULE, tmp_path, "--variant", "memobase") as first, connect(first.address) as served:
        if not first_day:
            served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
        with flushes_held(stack) as reached:
            pending = served.stub.Ingest.future(iter(day), timeout=60)
            assert reached.wait(30)
            first.kill()
            assert pending.code() is not grpc.StatusCode.OK
    give_up_at = time.monotonic() + 30
    while not any(user.events for user in stack.double.users.values()) or len(stack.models.prompts) % 3:
        assert time.monotonic() < give_up_at, "the server did not go on with what it had"
        time.sleep(0.01)
    with launch(MODULE, tmp_path, "--variant", "memobase") as second, connect(second.address) as served:
        if first_day:
            with pytest.raises(grpc.RpcError) as unknown:
                served.search(question("dog", 0))
            assert code_of(unknown.value) is grpc.StatusCode.NOT_FOUND
        else:
            assert profile(served, 0) == [REX]
            assert "Aurora" not in everything(served, 0)
        served.ingest(day)
        assert set(profile(served, index)) == {LUNA, "life::boat: Aurora"}
        assert everything(served, index).count("Aurora") == 2
    assert len(stack.double.users) == 1


def test_a_commit_that_was_not_carried_forward_counts_if_the_day_store_has_the_day(stack: Stack) -> None:
    """A process that ends right after the commit: the journal still says pending, the day store decides."""
    with serve(stack.memory(), stack.data_dir) as served:
        served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
        before = everything(served, 0)
    with serve(stack.memory(), stack.data_dir) as served:
        assert everything(served, 0) == before
        served.ingest(day_of("n", 1))
        assert everything(served, 1) == before


# ------------------------------------------------------------------ what others do to the server


def test_a_server_that_lost_what_was_committed_is_found_out_and_reset_mends_it(stack: Stack) -> None:
    with serve(stack.memory(), stack.data_dir) as served:
        served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    next(iter(stack.double.users.values())).events.clear()
    with serve(stack.memory(), stack.data_dir) as served:
        with pytest.raises(grpc.RpcError) as lost:
            served.search(question("dog", 0))
        assert code_of(lost.value) is grpc.StatusCode.FAILED_PRECONDITION
        assert "does not hold what was committed" in message_of(lost.value)
        served.reset("n")
        served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
        assert profile(served, 0) == [REX]


def test_a_journal_that_was_spoilt_is_named(stack: Stack) -> None:
    with serve(stack.memory(), stack.data_dir) as served:
        served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    (journal,) = (stack.data_dir / "memobase").glob("*.json")
    journal.write_text('{"user": 3')
    with serve(stack.memory(), stack.data_dir) as served, pytest.raises(grpc.RpcError) as spoilt:
        served.search(question("dog", 0))
    assert f"{journal.name}: is no journal" in message_of(spoilt.value)


def test_reset_removes_the_user_and_the_next_life_has_another(stack: Stack, served: Served) -> None:
    served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    (first,) = stack.double.users
    served.reset("n")
    assert stack.double.users == {}
    assert list((stack.data_dir / "memobase").glob("*.json")) == []
    served.ingest(day_of("n", 0, told("s1", "My boat is Aurora."), batch_id="other"))
    (second,) = stack.double.users
    assert first != second
    assert profile(served, 0) == ["life::boat: Aurora"]


def test_a_user_that_a_lost_data_folder_left_behind_is_removed_first(stack: Stack, tmp_path: Path) -> None:
    with serve(stack.memory(), stack.data_dir) as served:
        served.ingest(day_of("n", 0, told("s1", "My dog is called Rex.")))
    elsewhere = tmp_path / "elsewhere"
    with serve(MemobaseMemory(elsewhere, stack.settings), elsewhere) as served:
        served.ingest(day_of("n", 0, told("s1", "My boat is Aurora.")))
        assert profile(served, 0) == ["life::boat: Aurora"]


# ------------------------------------------------------------------ settings


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({}, "MEMOBASE_URL: is not set"),
        ({"URL": "http://m:1"}, "MEMOBASE_TOKEN: is not set"),
        ({"URL": "m:1", "TOKEN": "t"}, "MEMOBASE_URL: expected an http(s) URL, got 'm:1'"),
        ({"URL": "http://m", "TOKEN": "t", "FLUSH": "week"}, "MEMOBASE_FLUSH: expected session or day"),
        ({"URL": "http://m", "TOKEN": "t", "BLOB_BYTES": "9"}, "MEMOBASE_BLOB_BYTES: expected a whole number from"),
        ({"URL": "http://m", "TOKEN": "t", "FLUSH_TIMEOUT_S": "x"}, "MEMOBASE_FLUSH_TIMEOUT_S: expected a whole"),
    ],
)
def test_settings_that_make_no_sense_are_named(variables: dict[str, str], words: str) -> None:
    with pytest.raises(ServeError) as refused:
        read_settings({f"MEMOBASE_{name}": value for name, value in variables.items()})
    assert words in str(refused.value)


def test_settings_come_from_the_environment() -> None:
    environment = {
        "MEMOBASE_URL": "http://m:1",
        "MEMOBASE_TOKEN": "t",
        "MEMOBASE_FLUSH": "day",
        "MEMOBASE_BLOB_BYTES": "9000",
    }
    assert read_settings(environment) == Settings("http://m:1", "t", flush="day", blob_bytes=9_000)
    assert "t" not in repr(read_settings(environment)).replace("http", "").replace("token", "").split("'")


def test_without_its_server_the_backend_does_not_start_and_says_why(stack: Stack, tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="refuses MEMOBASE_TOKEN"):
        MemobaseMemory(tmp_path, replace(stack.settings, token=TOKEN + "x"))
    stack.double.close()
    with pytest.raises(ServeError, match="cannot be reached"):
        MemobaseMemory(tmp_path, replace(stack.settings, start_timeout_s=0.3))

"""Tests the diagnostic backend: Memobase with only the evidence of a question as input."""

from __future__ import annotations

from collections.abc import Iterator

import grpc
import pytest
from memarena_backend_memobase.oracle import MemobaseOracleMemory
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import Served, bad_fields, message_of, serve
from tests.memobase.conftest import Stack, day_of, question, texts_of, told


@pytest.fixture
def oracle(stack: Stack) -> Iterator[Served]:
    with serve(MemobaseOracleMemory(stack.settings), stack.data_dir) as running:
        running.ingest(day_of("n", 0, told("s1", "My dog is called Rex."), told("s2", "My boat is Aurora.")))
        running.ingest(day_of("n", 1, told("s3", "My dog is called Luna.", day=1)))
        yield running


def asked(*sessions: str) -> pb.SearchRequest:
    request = question("What is my dog called?", 1, similarity="-1")
    request.privileged_evidence.CopyFrom(pb.PrivilegedEvidence(session_ids=sessions))
    return request


def test_only_the_evidence_is_extracted_in_the_order_in_which_it_was_said(stack: Stack, oracle: Served) -> None:
    assert stack.models.prompts == []
    response = oracle.search(asked("s3", "s1", "s3"))
    items = {item.text: list(item.source_session_ids) for item in response.items}
    assert items["life::dog: Luna"] == ["s1", "s3"]
    assert not any("Aurora" in text for text in items)
    assert {notice.code: notice.count for notice in response.notices} == {"sessions_given": 2, "memories_stored": 3}
    assert texts_of(oracle.search(asked("s1")).items)[0] == "life::dog: Rex"


def test_nothing_of_a_question_stays_on_the_server(stack: Stack, oracle: Served) -> None:
    oracle.search(asked("s1"))
    assert stack.double.users == {}
    stack.models.chat_status = 500
    with pytest.raises(grpc.RpcError):
        oracle.search(asked("s1"))
    assert stack.double.users == {}


def test_evidence_must_be_there_and_may_be_empty(oracle: Served) -> None:
    assert list(oracle.search(asked()).items) == []
    with pytest.raises(grpc.RpcError) as missing:
        oracle.search(question("dog", 1))
    assert bad_fields(missing.value) == ["privileged_evidence"]
    with pytest.raises(grpc.RpcError) as unknown:
        oracle.search(asked("s1", "s9"))
    assert bad_fields(unknown.value) == ["privileged_evidence.session_ids[1]"]
    assert "'s9' was not ingested" in message_of(unknown.value)


def test_it_is_a_diagnostic_that_need_not_find_the_same_twice(oracle: Served) -> None:
    description = oracle.stub.Describe(pb.DescribeRequest())
    assert description.kind == pb.BACKEND_KIND_DIAGNOSTIC
    assert pb.CAPABILITY_STATEFUL_SEARCH in description.capabilities

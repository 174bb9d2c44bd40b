"""Tests that messages name the fault: the mistake in a digest, a missing RPC, a limit in any spelling."""

from __future__ import annotations

import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from memarena.conformance import Patience, Settings, SuiteResult, run_suite, shared_causes
from memarena.conformance.digest_faults import FAULTS, TABLE_1, Encoding
from memarena.conformance.scripted_models import EXTRACTOR
from memarena.conformance.spelled_limits import names_field, sizes_in
from memarena.conformance.suite import _last_words
from memarena_backend import Call, Item
from memarena_backend.engine import Engine, Ingested
from memarena_backend.errors import CallError
from memarena_backend.servicer import Servicer
from memarena_proto import memory_backend_pb2 as pb
from memarena_proto.digest import DIGEST_BYTES, DayDigest

from tests.conformance.broken_days import SortsSessions
from tests.conformance.sound import Parts, Served, SoundMemory

Frames = Iterator[pb.IngestRequest]


def held(parts: Parts, folder: Path, *only: str) -> SuiteResult:
    served = Served(parts, folder)
    try:
        return run_suite(served.address, only=only, settings=Settings(patience=Patience(retry_s=0.2)))
    finally:
        served.stop()


def failures(result: SuiteResult) -> dict[str, str]:
    return {each.check.check_id: each.message for each in result.results if each.status == "failed"}


def engine_that_hashes(encoding: Encoding) -> type[Engine]:
    """Return an engine that compares the trailer with the digest of another encoding."""

    class Hashes(Engine):
        def ingest(self, header: pb.DayHeader, rest: Frames, call: Call) -> Ingested:
            def edited() -> Frames:
                frames, as_sent = [pb.IngestRequest(header=header)], DayDigest()
                as_sent.add(frames[0])
                for frame in rest:
                    if frame.HasField("trailer"):
                        matches = frame.trailer.digest == encoding.digest(frames)
                        frame.trailer.digest = as_sent.digest() if matches else bytes(DIGEST_BYTES)
                    else:
                        frames.append(frame)
                        as_sent.add(frame)
                    yield frame

            return super().ingest(header, edited(), call)

    return Hashes


def test_table_1_encodes_as_the_contract() -> None:
    from memarena.conformance import fixtures

    session = fixtures.session("s", ["One.", ""])
    frames = fixtures.frames(fixtures.header("n", 3, "b"), [session], [fixtures.event("e", "It rained.")])
    digest = DayDigest()
    for frame in frames:
        digest.add(frame)
    assert TABLE_1.day(frames) == digest.encoded()
    assert len({encoding.day(frames) for encoding in FAULTS.values()}) > 5


@pytest.mark.parametrize("mistake", FAULTS)
def test_a_known_mistake_of_the_digest_is_named_once(mistake: str, tmp_path: Path) -> None:
    parts = Parts(engine=engine_that_hashes(FAULTS[mistake]))
    days = ("ing.replay", "ing.offsets", "src.finds", "txt.any-year", "mod.without-access")
    ingested = failures(held(parts, tmp_path, *days))
    assert set(ingested) == {"dig.gate"}
    # Some mistakes make the same bytes of the smallest day that shows them.
    assert mistake in ingested["dig.gate"] or "absent" in mistake or "sorted" in mistake or "normalised" in mistake
    assert "the first byte that differs is" in ingested["dig.gate"]
    assert "of digest.v1.json; expected encoding: 0000" in ingested["dig.gate"]


def test_digest_mistake_outside_of_the_encoding_is_named(tmp_path: Path) -> None:
    ingested = failures(held(Parts(engine=SortsSessions), tmp_path, "dig.gate"))
    assert "sorted by id, not in the order of the wire" in ingested["dig.gate"]
    assert "the vector order_of_the_wire" in ingested["dig.gate"]


class NothingButIngest(Servicer):
    def search(self, request: pb.SearchRequest, context: grpc.ServicerContext) -> pb.SearchResponse:
        raise CallError(grpc.StatusCode.UNIMPLEMENTED, "not yet")


def test_what_needs_an_rpc_that_is_not_there_yet_is_skipped_and_the_whole_suite_fails(tmp_path: Path) -> None:
    step = held(Parts(servicer=NothingButIngest), tmp_path / "step", "ing", "dig", "lim", "rst.required")
    assert failures(step) == {}
    assert step.passed
    assert {each.message for each in step.results if each.status == "skipped"} == {
        "Search is UNIMPLEMENTED so far",
        "no limit of a day's bytes is declared",
    }
    assert {"ing.required", "ing.bad-continuation", "dig.every-field"} <= set(step.ids("passed"))
    asking = ("src.finds", "src.required", "sec.base-url", "mod.without-access")
    whole = held(Parts(servicer=NothingButIngest), tmp_path / "whole", "gen.mandatory", *asking)
    assert set(whole.ids("skipped")) == set(asking)
    assert failures(whole) == {"gen.mandatory": "Search: UNIMPLEMENTED"}


def test_last_words_of_a_log_with_a_long_stack_contain_the_cause(tmp_path: Path) -> None:
    stack = [f"\t/src/server/handler_{number}.go:{number} +0x98" for number in range(40)]
    log = tmp_path / "log"
    log.write_text("\n".join(["listening", "panic: index out of range [3] with length 3", "", *stack]))
    ingested = _last_words(log)
    assert ingested == f"; last in its log: panic: index out of range [3] with length 3 | … | {stack[-1].strip()}"
    log.write_text("\n".join(["an error of yesterday", *["taking in a day"] * 400]))
    assert "yesterday" not in _last_words(log)


@pytest.mark.parametrize(
    "message",
    [
        "text: 262145 bytes are above the limit of 262144",
        "Turn text exceeds 262,144 bytes",
        "text larger than 256 KiB",
        "text is limited to 256kb",
        "text > 0.25 MiB",
        "text: at most 262 144 bytes",
        "session.turns[0].text: max 262_144",
    ],
)
def test_a_limit_may_be_spelled_in_any_way(message: str) -> None:
    assert 262144 in sizes_in(message)
    assert names_field(message, "text")


def test_sizes_and_fields_of_other_limits_do_not_match() -> None:
    assert 262144 not in sizes_in("text: 262145 bytes are above the limit of 262143, see section 256")
    assert 262144 not in sizes_in("too large")
    assert names_field("Turn ID too long", "turn_id")
    assert names_field("turnId: too long", "turn_id")
    assert not names_field("the id is too long", "turn_id")


class SpeaksOneZero(Servicer):
    """A backend of contract version 1.0."""

    def handlers(self) -> dict[str, grpc.RpcMethodHandler[Any, Any]]:
        return {name: handler for name, handler in super().handlers().items() if name != "Forget"}

    def describe(self, request: pb.DescribeRequest, context: grpc.ServicerContext) -> pb.DescribeResponse:
        described = pb.DescribeResponse()
        described.CopyFrom(super().describe(request, context))
        described.contract_version = "1.0"
        described.capabilities.remove(pb.CAPABILITY_FORGET)
        return described


def test_a_backend_of_one_zero_passes(tmp_path: Path) -> None:
    result = held(Parts(servicer=SpeaksOneZero), tmp_path, "dsc", "fgt", "src", "ver", "gen.mandatory")
    assert failures(result) == {}
    assert result.passed
    assert "fgt.undeclared" in result.ids("passed")


class AnyRole(Servicer):
    """Calls the named model whatever its role."""

    def answer(self, request: pb.AnswerRequest, context: grpc.ServicerContext) -> Iterator[pb.AnswerEvent]:
        for model in request.search.model_access.models:
            model.role = pb.MODEL_ROLE_READER
        return super().answer(request, context)


def test_a_token_that_the_suite_revoked_before_the_call_is_not_used_too_late(tmp_path: Path) -> None:
    failed = failures(held(Parts(servicer=AnyRole), tmp_path, "ans.required", "mod.after-return"))
    assert [*failed] == ["ans.required"]
    assert "a model that is no reader" in failed["ans.required"]


class CallsLater(Servicer):
    """Calls the extractor a moment after the day was confirmed."""

    def ingest(self, frames: Frames, context: grpc.ServicerContext) -> pb.IngestResponse:
        access: list[pb.ModelAccess] = []

        def noted() -> Frames:
            for frame in frames:
                access.extend([frame.header.model_access] if frame.HasField("header") else [])
                yield frame

        response = super().ingest(noted(), context)
        threading.Timer(0.1, self._call, access).start()
        return response

    def _call(self, access: pb.ModelAccess) -> None:
        request = urllib.request.Request(
            f"{access.base_url}/chat/completions",
            data=json.dumps({"model": EXTRACTOR, "messages": []}).encode(),
            headers={"Authorization": f"Bearer {access.token}"},
        )
        with suppress(OSError, ValueError):
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=5).close()


def test_late_calls_of_an_ingest_are_not_those_of_the_next_answer(tmp_path: Path) -> None:
    failed = failures(held(Parts(servicer=CallsLater), tmp_path, "ver.unknown-enums", "mod.after-return"))
    assert [*failed] == ["mod.after-return"]
    assert "first of Ingest to /chat/completions" in failed["mod.after-return"]


def test_failures_with_the_same_message_are_reported_together(tmp_path: Path) -> None:
    class Finds(SoundMemory):
        def matches(self, namespace: str, query: object) -> list[Item]:
            return []

    result = held(Parts(memory=Finds), tmp_path / "data", "ing.empty-day", "ing.replay", "ing.day-order", "ing.retry")
    assert len(failures(result)) == 4
    assert shared_causes(result) == [
        "4 failures say the same, the first ing.empty-day: … was committed, but is not returned (no items)"
    ]
    assert shared_causes(held(Parts(), tmp_path / "sound", "ing.empty-day")) == []

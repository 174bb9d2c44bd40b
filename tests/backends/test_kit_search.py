"""Tests Search over gRPC: refused requests, the meaning of a day, limits of a response, faults of a memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from memarena_backend import (
    Call,
    Capability,
    Description,
    Evidence,
    Item,
    Kind,
    Limits,
    Notice,
    OptionSpec,
    Query,
    SearchResult,
    cut_text,
    fit_ranked,
    tokens_by_bytes,
)
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import (
    Served,
    Verbatim,
    bad_fields,
    code_of,
    make_day,
    make_query,
    make_session,
    message_of,
    moment,
    retry_delay_s,
    serve,
)

INVALID = grpc.StatusCode.INVALID_ARGUMENT
KNOWN = pb.REQUESTER_KIND_KNOWN_PERSON


class Scripted(Verbatim):
    """Returns the items that a test sets, for every query, and records the queries."""

    def __init__(self, description: Description, items: Sequence[Item] = (), notices: Sequence[Notice] = ()) -> None:
        super().__init__()
        self._description = description
        self.result = SearchResult(items, notices)
        self.queries: list[Query] = []

    def describe(self) -> Description:
        return self._description

    def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
        self.queries.append(query)
        return self.result


@pytest.fixture
def filled(served: Served) -> Served:
    served.ingest(make_day("n1", 0, [make_session("s0", ["boat one"])]))
    served.ingest(make_day("n1", 3, [make_session("s3", ["boat two"], day=3)]))
    return served


def test_items_say_where_they_come_from(filled: Served) -> None:
    response = filled.search(make_query("n1", "boat", 3))
    assert response.visible_through_day == 3
    assert [(item.text, *item.source_session_ids, *item.source_turn_ids, item.time) for item in response.items] == [
        ("boat one", "s0", "s0.0", "2025-01-01T09:00:00+00:00"),
        ("boat two", "s3", "s3.0", "2025-01-04T09:00:00+00:00"),
    ]


BROKEN: list[tuple[str, dict[str, object]]] = [
    ("namespace", {"namespace": ""}),
    ("query_id", {"query_id": ""}),
    ("text", {"text": ""}),
    ("text", {"text": "a\0"}),
    ("asked_at", {"asked_at": ""}),
    ("asked_at", {"asked_at": "yesterday"}),
    ("requester", {"requester": None}),
    ("requester.kind", {"requester": pb.Requester()}),
    ("requester.kind", {"requester": pb.Requester(kind=9)}),  # type: ignore[arg-type]
    ("requester.participant_id", {"requester": pb.Requester(kind=KNOWN, display_name="Omar")}),
    ("requester.display_name", {"requester": pb.Requester(kind=KNOWN, participant_id="p")}),
    ("requester.display_name", {"requester": pb.Requester(kind=pb.REQUESTER_KIND_OWNER, display_name="Maya")}),
    ("requester.relationship", {"requester": pb.Requester(kind=pb.REQUESTER_KIND_ANONYMOUS, relationship="friend")}),
    ("options[0]", {"options": [pb.Option(key="k", value="3")]}),
    ("privileged_evidence", {"privileged_evidence": pb.PrivilegedEvidence(session_ids=["s0"])}),
    ("model_access.base_url", {"model_access": pb.ModelAccess(token="t")}),
    ("model_access.token", {"model_access": pb.ModelAccess(base_url="http://127.0.0.1:1/v1")}),
    (
        "model_access.models[0].role",
        {"model_access": pb.ModelAccess(base_url="u", token="t", models=[pb.Model(name="m")])},
    ),
]


@pytest.mark.parametrize(("field", "change"), BROKEN)
def test_a_missing_or_malformed_field_is_named(filled: Served, field: str, change: dict[str, object]) -> None:
    request = make_query("n1", "boat", 3)
    for name, value in change.items():
        request.ClearField(name)  # type: ignore[arg-type]
        request.MergeFrom(pb.SearchRequest(**{name: value}))  # type: ignore[arg-type]
    with pytest.raises(grpc.RpcError) as caught:
        filled.search(request)
    assert (code_of(caught.value), bad_fields(caught.value)) == (INVALID, [field])
    assert filled.find("n1", "boat", 3) == ["boat one", "boat two"]


def test_the_text_of_a_question_has_a_limit(filled: Served) -> None:
    assert filled.find("n1", "x" * 65536, 3) == []
    with pytest.raises(grpc.RpcError) as caught:
        filled.search(make_query("n1", "x" * 65537, 3))
    assert code_of(caught.value) is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert message_of(caught.value) == "text: 65537 bytes are above the limit of 65536"


def test_an_unknown_namespace_is_not_found_and_names_are_compared_exactly(filled: Served) -> None:
    for namespace in ("n", "n10", "N1", "n_", "n%", "n1 "):
        with pytest.raises(grpc.RpcError) as caught:
            filled.search(make_query(namespace, "boat", 3))
        assert code_of(caught.value) is grpc.StatusCode.NOT_FOUND


@pytest.mark.parametrize("as_of_day", [4, 400, 2, 1, 0])
def test_only_the_last_committed_day_can_be_asked_for(filled: Served, as_of_day: int) -> None:
    with pytest.raises(grpc.RpcError) as caught:
        filled.search(make_query("n1", "boat", as_of_day))
    assert code_of(caught.value) is grpc.StatusCode.FAILED_PRECONDITION


def test_with_time_travel_an_earlier_day_gives_its_own_content(tmp_path: Path) -> None:
    memory = Verbatim(frozenset({Capability.TIME_TRAVEL}))
    with serve(memory, tmp_path) as served:
        for day in (1, 3, 5):
            served.ingest(make_day("n1", day, [make_session(f"s{day}", [f"boat {day}"], day=day)]))
        for as_of_day, visible, texts in (
            (5, 5, ["boat 1", "boat 3", "boat 5"]),
            (4, 3, ["boat 1", "boat 3"]),
            (1, 1, ["boat 1"]),
        ):
            response = served.search(make_query("n1", "boat", as_of_day))
            assert (response.visible_through_day, [item.text for item in response.items]) == (visible, texts)
        for as_of_day in (0, 6):
            with pytest.raises(grpc.RpcError) as caught:
                served.search(make_query("n1", "boat", as_of_day))
            assert code_of(caught.value) is grpc.StatusCode.FAILED_PRECONDITION


def test_options_are_declared_unique_and_in_order(tmp_path: Path) -> None:
    specs = (OptionSpec("depth", "d", "2"), OptionSpec("mode", "m", "fast"))
    memory = Scripted(Description("options", "1", options=specs))

    def send(*options: tuple[str, str]) -> dict[str, str]:
        query_options = [pb.Option(key=key, value=value) for key, value in options]
        served.search(make_query("n1", "x", 0, options=query_options))
        return dict(memory.queries[-1].options)

    with serve(memory, tmp_path) as served:
        served.ingest(make_day("n1", 0))
        assert send() == {"depth": "2", "mode": "fast"}
        assert send(("mode", "slow")) == {"depth": "2", "mode": "slow"}
        assert send(("depth", "7"), ("mode", "slow")) == {"depth": "7", "mode": "slow"}
        refused: list[list[tuple[str, str]]] = [
            [("mode", "slow"), ("depth", "7")],
            [("mode", "slow"), ("mode", "slow")],
            [("other", "1")],
            [("", "1")],
            [("mode", "")],
        ]
        for options in refused:
            with pytest.raises(grpc.RpcError) as caught:
                send(*options)
            assert code_of(caught.value) is INVALID
            assert bad_fields(caught.value)[0].startswith("options[")


def test_options_of_a_query_are_parsed_by_type() -> None:
    from dataclasses import replace

    from memarena_backend import AskerKind, CallError, Requester
    from memarena_backend.checks import parse_moment

    query = Query("q", "x", parse_moment("at", moment(0)), 0, Requester(AskerKind.OWNER), None, None, {"k": "10"})
    assert query.int_option("k", minimum=10) == 10
    for value in ("0", "-1", "9", "ten", "1.5", "", " 10", "१०", "99999999999"):
        with pytest.raises(CallError, match=r"options: k: expected an integer of at least 10"):
            replace(query, options={"k": value}).int_option("k", minimum=10)
    assert replace(query, options={"m": "a"}).choice_option("m", ("a", "b")) == "a"
    with pytest.raises(CallError, match="options: m: expected one of a, b, got 'c'"):
        replace(query, options={"m": "c"}).choice_option("m", ("a", "b"))


def test_a_diagnostic_is_given_the_evidence(tmp_path: Path) -> None:
    memory = Scripted(Description("diagnostic", "1", kind=Kind.DIAGNOSTIC))
    full_evidence = pb.PrivilegedEvidence(session_ids=["s2", "s1"], access_marker="[access: DENY]")
    with serve(memory, tmp_path) as served:
        served.ingest(make_day("n1", 0))
        for evidence in (full_evidence, None):
            served.search(make_query("n1", "x", 0, privileged_evidence=evidence))
        assert [query.evidence for query in memory.queries] == [Evidence(("s2", "s1"), "[access: DENY]"), None]
        assert served.stub.Describe(pb.DescribeRequest(), timeout=30).kind == pb.BACKEND_KIND_DIAGNOSTIC


@pytest.mark.parametrize(
    ("items", "request_fields", "says"),
    [
        ([Item("", 1.0)], {}, "item 0 has no text"),
        ([Item("a", 1.0), Item("b", float("nan"))], {}, "item 1 has the score nan"),
        ([Item("a", float("inf"))], {}, "item 0 has the score inf"),
        ([Item("a", 1.0), Item("b", 1.0)], {"max_items": 1}, "2 items, max_items is 1"),
        ([Item("abcde", 1.0)], {"max_context_tokens": 1}, "2 tokens, max_context_tokens is 1"),
    ],
)
def test_items_that_the_contract_forbids_are_an_internal_error(
    tmp_path: Path, items: list[Item], request_fields: dict[str, object], says: str
) -> None:
    with serve(Scripted(Description("wrong", "1"), items), tmp_path) as served:
        served.ingest(make_day("n1", 0))
        with pytest.raises(grpc.RpcError) as caught:
            served.search(make_query("n1", "x", 0, **request_fields))
        assert code_of(caught.value) is grpc.StatusCode.INTERNAL
        assert says in message_of(caught.value)


def test_a_long_error_message_still_arrives(tmp_path: Path) -> None:
    class Talkative(Verbatim):
        def search(self, namespace: str, query: Query, call: Call) -> SearchResult:
            raise RuntimeError("why " * 100_000)

    with serve(Talkative(), tmp_path) as served:
        served.ingest(make_day("n1", 0))
        with pytest.raises(grpc.RpcError) as caught:
            served.search(make_query("n1", "x", 0))
        assert code_of(caught.value) is grpc.StatusCode.INTERNAL
        assert message_of(caught.value).startswith("RuntimeError: why why")


def test_a_response_above_its_limit_loses_its_last_items_with_a_notice(tmp_path: Path) -> None:
    items = [Item(f"{number}" + "x" * 1_000_000, float(-number)) for number in range(6)]
    memory = Scripted(Description("big", "1"), items, [Notice("memory_says", "hello", 2)])
    with serve(memory, tmp_path) as served:
        served.ingest(make_day("n1", 0))
        response = served.search(make_query("n1", "x", 0))
        assert [item.text[0] for item in response.items] == ["0", "1", "2", "3"]
        assert response.ByteSize() <= 4 * 1024 * 1024
        assert [(notice.code, notice.count) for notice in response.notices] == [
            ("memory_says", 2),
            ("items_left_out", 2),
        ]
        memory.result = SearchResult([Item("x" * 4_190_000, 1.0)])
        assert len(served.search(make_query("n1", "x", 0)).items) == 1


def test_more_namespaces_at_a_time_than_declared_are_told_to_wait(tmp_path: Path) -> None:
    class Narrow(Verbatim):
        def describe(self) -> Description:
            return Description("narrow", "1", limits=Limits(max_concurrent_namespaces=1))

    memory = Narrow()
    inside, leave = threading.Event(), threading.Event()

    def hold(*_: object) -> None:
        inside.set()
        assert leave.wait(10)

    with serve(memory, tmp_path) as served:
        memory.before_commit = hold
        first = served.stub.Ingest.future(iter(make_day("n1", 0)), timeout=20)
        assert inside.wait(10)
        with pytest.raises(grpc.RpcError) as caught:
            served.ingest(make_day("n2", 0))
        assert code_of(caught.value) is grpc.StatusCode.UNAVAILABLE
        assert retry_delay_s(caught.value) is not None
        leave.set()
        first.result()
        served.ingest(make_day("n2", 0))


def test_eight_namespaces_at_once_never_see_each_other(served: Served) -> None:
    def live(number: int) -> list[list[str]]:
        namespace = f"n{number}"
        texts_by_day = []
        for day in range(6):
            served.ingest(
                make_day(
                    namespace, day, [make_session(f"s{day}", [f"boat {number}.{day}"], day=day)], batch_id=f"b{day}"
                )
            )
            texts_by_day.append(served.find(namespace, "boat", day))
        return texts_by_day

    with ThreadPoolExecutor(8) as pool:
        lives = list(pool.map(live, range(8)))
    for number, life in enumerate(lives):
        assert life == [[f"boat {number}.{day}" for day in range(last + 1)] for last in range(6)]


def test_fitting_drops_from_the_low_end_and_never_goes_above_the_bound() -> None:
    items = [Item("abcd" * 2, 3.0), Item("abcde", 2.0), Item("ab", 1.0)]
    assert [tokens_by_bytes(item.text) for item in items] == [2, 2, 1]
    assert list(fit_ranked(items, None, None).items) == items
    assert list(fit_ranked(items, 2, None).items) == items[:2]
    assert list(fit_ranked(items, None, 5).items) == items
    assert list(fit_ranked(items, None, 4).items) == items[:2]
    assert list(fit_ranked(items, None, 3).items) == items[:1], "a later item is not taken in place of an earlier one"
    cut = fit_ranked(items, None, 1)
    assert ([item.text for item in cut.items], [notice.code for notice in cut.notices]) == (["abcd"], ["item_cut"])
    none = fit_ranked([Item("😀😀", 1.0)], None, 0)
    assert (list(none.items), [notice.code for notice in none.notices]) == ([], ["item_left_out"])


def test_a_text_is_truncated_at_a_word_and_never_inside_a_character() -> None:
    assert cut_text("one two three", 100) == "one two three"
    assert cut_text("one two three", 2) == "one two"
    assert cut_text("one two three", 1) == "one"
    assert cut_text("unbroken", 1) == "unbr"
    assert cut_text("€€€", 1) == "€"
    assert cut_text("😀😀", 1) == "😀"

"""Tests which answers count as empty and why, how long model calls waited, and how Retry-After is parsed."""

from __future__ import annotations

import time
from email.utils import formatdate
from typing import Any

import pytest
from memarena.execution.cells.context import waited_ns
from memarena.execution.cells.non_answers import non_answer
from memarena.log.records import GatewayCall
from memarena_answering import parse_answer
from memarena_answering.servers.retry_after import retry_after_s


def a_call(**more: Any) -> GatewayCall:
    usual = {"call_id": "c", "cell_id": None, "phase": "answer", "status": 200, "started_mono_ns": 0}
    return GatewayCall(**{**usual, "route": "/v1/chat/completions", **more})


@pytest.mark.parametrize(
    ("raw", "finish", "reasoned", "expected"),
    [
        ("Tuesday", "stop", False, ""),
        ("Tuesday, I th", "length", False, "cut"),
        ('{"answer": "Tues', "length", False, "cut"),
        ('{"answer": "Tuesday", "reas', "length", False, ""),
        ('{"answer": "Tuesday", "reason": "x"} and then', "length", False, ""),
        ("", "stop", False, "empty"),
        ("", "tool_calls", False, "empty"),
        ("", "length", False, "cut"),
        ("", "length", True, "reasoning"),
        ("", "stop", True, "reasoning"),
        ("<think>Let me see", "length", True, "reasoning"),
        ("", "refusal", False, "filtered"),
        ("Tues", "content_filter", False, "filtered"),
    ],
)
def test_the_reason_of_an_empty_answer(raw: str, finish: str, reasoned: bool, expected: str) -> None:
    call = a_call(finish_reason=finish, first_reasoning_ns=5 if reasoned else None)
    assert non_answer(parse_answer(raw), raw, [call], "unknown") == expected


def test_overlapping_waits_count_once_and_only_up_to_the_given_time() -> None:
    calls = [
        a_call(call_id=f"c{n}", started_mono_ns=began, received_to_forwarded_ns=0, waited_ns=waited)
        for n, (began, waited) in enumerate([(100, 50), (120, 100), (300, 10)])
    ]
    assert waited_ns(calls, 0) == 130
    assert waited_ns(calls, 0, 200) == 100
    assert waited_ns(calls, 0, 90) == 0


@pytest.mark.parametrize(("header", "wait_s"), [("7", 7), ("0.5", 0.5), ("-3", 0)])
def test_retry_after_in_seconds(header: str, wait_s: float) -> None:
    assert retry_after_s({"Retry-After": header}) == wait_s


def test_retry_after_as_a_date() -> None:
    wait_s = retry_after_s({"Retry-After": formatdate(time.time() + 3600, usegmt=True)})
    assert wait_s is not None
    assert 0 < wait_s <= 3601


@pytest.mark.parametrize("header", ["", "soon", "nan", "inf", "Mon, 01 Jan 99999999999 00:00:00 GMT"])
def test_an_unreadable_retry_after_is_ignored(header: str) -> None:
    assert retry_after_s({"Retry-After": header}) is None

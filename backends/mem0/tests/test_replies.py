"""Tests replies.py: whether Mem0 can use a reply of the extracting model, by the library's own rules of parsing."""

from __future__ import annotations

import json

import pytest
from memarena_backend_mem0.replies import MAX_REPLY_CHARS, Worth, worth_of

GOOD = '{"memory": [{"id": "0", "text": "User has a dog"}]}'

WORTH = {
    GOOD: Worth.MEMORIES,
    f"```json\n{GOOD}\n```": Worth.MEMORIES,
    f"<think>a dog?</think>{GOOD}": Worth.MEMORIES,
    f"Here it is: {GOOD} Anything else?": Worth.MEMORIES,
    f"Here it is:\n```json\n{GOOD}\n```\nAnything else?": Worth.MEMORIES,
    '{"memory": [{"text": "a\nline"}]}': Worth.MEMORIES,
    '{"memory": [{"text": 5}, {"text": "User has a dog"}]}': Worth.MEMORIES,
    '{"memory": []}': Worth.NOTHING,
    "": Worth.UNUSABLE,
    "I see no facts here.": Worth.UNUSABLE,
    "{": Worth.UNUSABLE,
    GOOD[:-2]: Worth.UNUSABLE,
    "[" * 50_000: Worth.UNUSABLE,
    '{"facts": ["User has a dog"]}': Worth.UNUSABLE,
    '[{"text": "User has a dog"}]': Worth.UNUSABLE,
    '{"memory": "User has a dog"}': Worth.UNUSABLE,
    '{"memory": {"text": "User has a dog"}}': Worth.UNUSABLE,
    '{"memory": ["User has a dog"]}': Worth.UNUSABLE,
    '{"memory": [{"text": "User has a dog"}, "User has a cat"]}': Worth.UNUSABLE,
    '{"memory": [{"fact": "User has a dog"}]}': Worth.UNUSABLE,
    '{"memory": [{"text": " "}]}': Worth.UNUSABLE,
    '{"memory": [{"text": "\\ud800"}]}': Worth.UNUSABLE,
    '{"memory": null}': Worth.UNUSABLE,
    "null": Worth.UNUSABLE,
    f"About {{dogs}}: {GOOD}": Worth.UNUSABLE,
}


@pytest.mark.parametrize("reply", list(WORTH))
def test_worth_of_a_reply_is_what_mem0_can_parse(reply: str) -> None:
    assert worth_of(reply) is WORTH[reply]


def test_a_reply_above_the_limit_is_unusable() -> None:
    long = json.dumps({"memory": [{"text": "User has a dog. " * MAX_REPLY_CHARS}]})
    assert worth_of(long) is Worth.UNUSABLE

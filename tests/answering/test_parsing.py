"""Tests parse_answer: the answer and reason in a reader's raw reply."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memarena_answering import ParsedAnswer, parse_answer, strip_thinking

CASES = [
    # plain JSON
    ('{"answer": "Tuesday", "reason": "She said so."}', "Tuesday", "She said so.", "json"),
    ('  {"answer": "Tuesday"}\n', "Tuesday", "", "json"),
    ('{"Answer": "x", "REASON": "y"}', "x", "y", "json"),
    ('{"final answer": "x", "explanation": "y"}', "x", "y", "json"),
    # other types than text
    ('{"answer": ["Ana", "Bo"], "reason": ""}', "Ana, Bo", "", "json"),
    ('{"answer": 3}', "3", "", "json"),
    ('{"answer": 2.50}', "2.50", "", "json"),
    ('{"answer": true}', "yes", "", "json"),
    ('{"answer": false}', "no", "", "json"),
    ('{"answer": null, "reason": "nothing there"}', "unknown", "nothing there", "json"),
    ('{"answer": {"day": "Monday", "hour": 9}}', "day: Monday; hour: 9", "", "json"),
    ('{"answer": {"answer": "Monday"}}', "Monday", "", "json"),
    ('{"response": {"answer": "x", "reason": "y"}}', "x", "y", "lenient_json"),
    # wrapped in something
    ('```json\n{"answer": "x"}\n```', "x", "", "lenient_json"),
    ('Sure, here it is: {"answer": "x", "reason": "y"} I hope this helps!', "x", "y", "lenient_json"),
    ('{"answer": "first"}\n{"answer": "second"}', "first", "", "lenient_json"),
    ('{"thoughts": "hm"} {"answer": "x"}', "x", "", "lenient_json"),
    # damaged
    ('{"answer": "Tues', "Tues", "", "lenient_json"),
    ('{"answer": "x", "reason": "because of', "x", "because of", "lenient_json"),
    ('{"answer": "x", "rea', "x", "", "lenient_json"),
    ('{"answer": "x",', "x", "", "lenient_json"),
    ('{"answer": ["Ana", "Bo', "Ana, Bo", "", "lenient_json"),
    ('{"answer": "x", "reason": "y",}', "x", "y", "lenient_json"),
    ("{'answer': 'It's fine', 'reason': 'y'}", "It's fine", "y", "lenient_json"),
    ('{"answer": "She said "no" to Bo", "reason": "y"}', 'She said "no" to Bo', "y", "lenient_json"),
    ('{"answer": "two\nlines"}', "two\nlines", "", "lenient_json"),
    ("{answer: Tuesday, reason: she said so}", "Tuesday", "she said so", "lenient_json"),
    ('{"answer": True}', "yes", "", "lenient_json"),
    ('{"answer": "caf\\u00e9 \\ud83d\\ude00"}', "café 😀", "", "json"),
    ('{"answer": "caf\\u00e9 \\ud83d\\ude00', "café 😀", "", "lenient_json"),
    ("{“answer”: “x”}", "x", "", "lenient_json"),
    # thinking
    ('<think>maybe {"answer": "no"}</think>{"answer": "yes"}', "yes", "", "json"),
    ('maybe {"answer": "no"}</think>\n{"answer": "x"}', "x", "", "json"),
    ('<think>maybe {"answer": "no"}', "", "", "empty"),
    ("<THINKING>a</THINKING>Tuesday", "Tuesday", "", "text"),
    ('[THINK]a[/THINK]{"answer": "x"}', "x", "", "json"),
    (
        '<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>{"answer": "x"}<|return|>',
        "x",
        "",
        "json",
    ),
    ("<|channel|>analysis<|message|>hm", "", "", "empty"),
    ('{"answer": "She wrote <think> on a wall"}', "She wrote <think> on a wall", "", "json"),
    ('{"answer": "x"}<|im_end|>', "x", "", "json"),
    # headings and plain text
    ("Answer: Tuesday\nReason: she said so", "Tuesday", "she said so", "text"),
    ("**Answer:** Tuesday", "Tuesday", "", "text"),
    ("Reasoning: it was a\nlong day.\n\nAnswer: Tuesday", "Tuesday", "", "text"),
    ('The answer to the question is: "Tuesday"', "Tuesday", "", "text"),
    ("I met Bo. The answer: none.", "I met Bo. The answer: none.", "", "text"),
    ("On Tuesday.", "On Tuesday.", "", "text"),
    ("```\nTuesday\n```", "Tuesday", "", "text"),
    ('"Tuesday"', "Tuesday", "", "text"),
    ("{not json at all", "{not json at all", "", "text"),
    ("", "", "", "empty"),
    (" \n<|im_end|>", "", "", "empty"),
]


@pytest.mark.parametrize(("raw", "answer", "reason", "parse"), CASES, ids=[case[0][:40] for case in CASES])
def test_the_answer_is_parsed_from_every_form(raw: str, answer: str, reason: str, parse: str) -> None:
    assert parse_answer(raw) == ParsedAnswer(answer, reason, parse)  # type: ignore[arg-type]


WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc"))).map(str.strip)


@given(answer=WORDS, reason=WORDS, ascii_only=st.booleans())
def test_json_is_read_back_exactly(answer: str, reason: str, ascii_only: bool) -> None:
    raw = json.dumps({"answer": answer, "reason": reason}, ensure_ascii=ascii_only)
    assert parse_answer(raw) == ParsedAnswer(answer, reason, "json")


PLAIN = st.text("abc d.e'f-ß東", min_size=1).map(str.strip).filter(bool)


@given(answer=PLAIN, reason=PLAIN, share=st.floats(0, 1))
def test_a_reply_truncated_at_max_tokens_gives_its_partial_answer(answer: str, reason: str, share: float) -> None:
    raw = json.dumps({"answer": answer, "reason": reason}, ensure_ascii=False)
    start = len('{"answer": "') + 1
    cut = raw[: start + int(share * (len(raw) - start))]
    assert answer.startswith(parse_answer(cut).answer)
    assert parse_answer(cut).answer != ""


@given(st.text(st.sampled_from("{}[]\"':,\\ua1 \n<think>/|`") | st.characters()))
def test_no_reply_breaks_the_parser(raw: str) -> None:
    parsed = parse_answer(raw)
    assert parsed.parse != "empty" or parsed.answer == ""


@pytest.mark.parametrize(
    "raw", ["{" * 20_000, '{"a":' * 5_000, "[" * 20_000, '{"a" ' * 5_000, " " * 20_000 + "x", '"' * 20_000]
)
def test_hostile_replies_are_parsed_quickly(raw: str) -> None:
    parse_answer(raw)


@given(st.text("ab <>/think{}"))
def test_stripping_reasoning_twice_equals_once(raw: str) -> None:
    once = strip_thinking(raw)
    assert strip_thinking(once) == once


@pytest.mark.parametrize("nested", ['{"a":' * 480 + "1" + "}" * 480, "[" * 900 + "]" * 900])
def test_an_answer_nested_too_deeply_is_read_as_text(nested: str) -> None:
    assert parse_answer('{"answer":' + nested + "}").parse in {"text", "lenient_json"}


@pytest.mark.timeout(20)
def test_repeated_opening_tags_do_not_take_quadratic_time() -> None:
    assert parse_answer("</think>yes" + "<think>" * 100_000).answer == "yes"


@pytest.mark.parametrize(
    "raw",
    [
        '{"answer": null}',
        '{"answer": None}',
        '```json\n{"answer": null, "reason": "never mentioned"}\n```',
        '{"status": "unknown"}',
        '{"status": "Not found", "answer": ""}',
        'Here you go: {"answer": null, "status": "unknown"}',
    ],
)
def test_an_object_that_states_no_answer_declines(raw: str) -> None:
    assert parse_answer(raw).answer == "unknown"


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ('{"answer": ""}', ""),
        ('{"status": "ok", "answer": "Bo"}', "Bo"),
        ('{"status": "unknown", "answer": "Bo"}', "Bo"),
        ('{"status": "moved", "place": "the shed"}', '{"status": "moved", "place": "the shed"}'),
    ],
)
def test_other_objects_keep_their_text(raw: str, answer: str) -> None:
    assert parse_answer(raw).answer == answer

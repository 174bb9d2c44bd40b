"""Tests the vectors of the reference prompt against SPEC.md, the library's prompts and the extractive reader."""

from __future__ import annotations

import json
import re
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
from memarena.readers.prompt_reading import read
from memarena_answering import Asker, ContextItem, Message, PromptStyle, ReadingPlan, build_prompt, count_by_bytes

ROOT = Path(__file__).parents[2]
SPEC = (ROOT / "proto" / "SPEC.md").read_text(encoding="utf-8")
DOCUMENT: dict[str, Any] = json.loads((ROOT / "proto" / "vectors" / "prompt.v1.json").read_text(encoding="utf-8"))
VECTORS: list[dict[str, Any]] = DOCUMENT["vectors"]
every_vector = pytest.mark.parametrize("vector", VECTORS, ids=[v["name"] for v in VECTORS])

APPENDIX = SPEC[SPEC.index("\n## Appendix D") :]
SYSTEM = APPENDIX.split("```text\n")[1].split("\n```")[0]


def shown_time(value: str) -> str:
    value = " ".join(value.split())
    if re.fullmatch(r"\d{4}-\d\d-\d\d", value):
        return f"{date.fromisoformat(value):%A} {value}"
    if re.match(r"\d{4}-\d\d-\d\dT", value):
        return f"{datetime.fromisoformat(value):%A %Y-%m-%d %H:%M}"
    return value


def by_the_appendix(vector: dict[str, Any]) -> list[dict[str, str]]:
    """The messages as a vendor would write them from the appendix alone."""
    blocks = []
    for item in vector["items"]:
        time = shown_time(item["time"])
        if vector["prompt_style"] == "json_context":
            members = {"time": time, "text": item["text"]} if time else {"text": item["text"]}
            blocks.append(json.dumps(members, ensure_ascii=False))
        else:
            lines = item["text"].strip("\n").split("\n")
            shifted = [f" {line}" if line.lstrip(" ")[:3] in ("---", "===") else line for line in lines]
            blocks.append("\n".join([f"--- {time}".rstrip(), *shifted]))
    if vector["prompt_style"] == "json_context":
        body = "[" + ",\n".join(blocks) + "]"
    else:
        body = "\n".join(blocks) or "(nothing was found)"
    asker = vector["requester"]
    name, relationship = (" ".join(asker[key].split()) for key in ("display_name", "relationship"))
    known = f"{name}, {relationship} of the owner" if relationship else name
    who = {"owner": "the owner of this device", "anonymous": "an unknown person"}.get(asker["kind"], known)
    user = (
        f"=== context\n{body}\n=== end of context\n\nAsked at: {shown_time(vector['asked_at'])}\n"
        f"Asked by: {who}\nQuestion: {vector['question']}"
    )
    if vector["no_system_role"]:
        return [{"role": "user", "content": f"{SYSTEM}\n\n{user}"}]
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": user}]


@every_vector
def test_a_vector_is_what_the_appendix_says(vector: dict[str, Any]) -> None:
    assert vector["messages"] == by_the_appendix(vector)


@every_vector
def test_our_own_prompt_is_the_vector_s(vector: dict[str, Any]) -> None:
    asker = vector["requester"]
    prompt = build_prompt(
        [ContextItem(item["text"], item["time"]) for item in vector["items"]],
        vector["question"],
        vector["asked_at"],
        Asker(asker["kind"], asker["display_name"], asker["relationship"]),
        ReadingPlan("reader", 64, style=PromptStyle(vector["prompt_style"]), no_system_role=vector["no_system_role"]),
        count_by_bytes,
    )
    assert [{"role": m.role, "content": m.content} for m in prompt.messages] == vector["messages"]


@every_vector
def test_the_extractive_reader_finds_question_items_and_asker(vector: dict[str, Any]) -> None:
    parts = read([Message(m["role"], m["content"]) for m in vector["messages"]])
    text_style = vector["prompt_style"] == "text_sessions"
    texts = [item["text"].strip("\n") if text_style else item["text"] for item in vector["items"]]
    assert parts.question == vector["question"]
    assert [(item.text, item.time) for item in parts.items] == [
        (text, shown_time(item["time"])) for text, item in zip(texts, vector["items"], strict=True)
    ]
    assert f"Asked by: {parts.asked_by}\n" in vector["messages"][-1]["content"]


def test_the_vectors_cover_styles_and_roles() -> None:
    assert {(v["prompt_style"], bool(v["items"])) for v in VECTORS} == {
        (style, some) for style in ("text_sessions", "json_context") for some in (True, False)
    }
    assert {v["requester"]["kind"] for v in VECTORS} == {"owner", "known_person", "anonymous"}
    assert {v["no_system_role"] for v in VECTORS} == {True, False}

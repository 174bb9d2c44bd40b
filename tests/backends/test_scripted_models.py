"""Tests the scripted model server, its extraction rules, and the extractor shared by four memories."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from backends.graphiti.tests import scripted_extractor as graphiti
from backends.langmem.tests import scripted_extractor as langmem
from backends.mem0.tests import scripted_extractor as mem0
from backends.memos.tests import scripted_extractor as memos
from tests.backends.extraction_rules import Keep, memories_of
from tests.backends.scripted_models import reply_of
from tests.support.model_script import Body, Message, Reply, UnknownPromptError, embed
from tests.support.model_server import ModelServer

ROOT = Path(__file__).parents[2]
HI = {"model": "m", "messages": [{"role": "system", "content": "Häh?"}, {"role": "user", "content": "Hi."}]}


@contextmanager
def serving(reply: Reply = lambda body: "Yes.") -> Iterator[ModelServer]:
    with ModelServer(reply) as server:
        yield server


def asked(url: str, body: Mapping[str, Any] | None = None) -> tuple[int, Any]:
    """Status and body of a request; without a body, of a GET."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Authorization": "Bearer token", "Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, json.loads(reply.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


# ------------------------------------------------------------------ the server


def test_a_text_is_the_reply_with_its_tokens_estimated_by_bytes() -> None:
    with serving(lambda body: "Ja, möglich.") as server:
        status, reply = asked(f"{server.base_url}/chat/completions", HI)
        assert (status, reply["model"], reply["choices"]) == (
            200,
            "m",
            [{"index": 0, "message": {"role": "assistant", "content": "Ja, möglich."}, "finish_reason": "stop"}],
        )
        # 5 and 3 bytes are 2 tokens and 1; 13 bytes are 4.
        assert {key: reply["usage"][key] for key in ("prompt_tokens", "completion_tokens")} == {
            "prompt_tokens": 3,
            "completion_tokens": 4,
        }
        assert (server.asked, server.prompts, server.authorizations) == ([HI], ["Hi."], ["Bearer token"])


def test_a_message_with_tool_calls_is_the_reply_and_tools_are_counted() -> None:
    call = langmem.tool_call("Memory", {"content": "Rex"})
    message: Message = {"role": "assistant", "content": None, "tool_calls": [call]}
    tools = [{"type": "function", "function": {"name": "Memory", "parameters": {}}}]
    with serving(lambda body: message) as server:
        plain = asked(f"{server.base_url}/chat/completions", HI)[1]
        (choice,) = plain["choices"]
        assert (choice["message"], choice["finish_reason"]) == (message, "tool_calls")
        assert plain["usage"]["completion_tokens"] == -(-len('Memory{"content": "Rex"}') // 4)
        more = asked(f"{server.base_url}/chat/completions", {**HI, "tools": tools})[1]
        assert more["usage"]["prompt_tokens"] - plain["usage"]["prompt_tokens"] == -(-len(json.dumps(tools[0])) // 4)


def test_texts_are_embedded_and_an_embedder_may_fail_between_two() -> None:
    with serving() as server:
        status, reply = asked(f"{server.base_url}/embeddings", {"model": "e", "input": ["Rex barks.", "Hi."]})
        assert (status, [row["index"] for row in reply["data"]]) == (200, [0, 1])
        assert reply["data"][0]["embedding"] == pytest.approx(embed("Rex barks."))
        assert reply["usage"] == {"prompt_tokens": 4, "total_tokens": 4}
        assert asked(f"{server.base_url}/embeddings", {"model": "e", "input": "Hi."})[1]["data"] == [
            {"object": "embedding", "index": 0, "embedding": reply["data"][1]["embedding"]}
        ]
        assert server.embedded == ["Rex barks.", "Hi.", "Hi."]

        def fail_for_rex(texts: list[str]) -> None:
            server.embedding_status = 502 if "Rex" in texts else 200

        server.before_embedding = fail_for_rex
        statuses = [asked(f"{server.base_url}/embeddings", {"input": [text]})[0] for text in ("Luna", "Rex", "Luna")]
        assert statuses == [200, 502, 200]
        assert server.embedded[3:] == ["Luna", "Luna"]


# ------------------------------------------------------------------ what is kept


def test_named_keeps_what_is_said_as_my_something_is_called() -> None:
    speech = "Hello. My old dog is called Rex, and my cat is named Luna. My name is Maya!"
    assert [(memory.name, memory.text) for memory in memories_of("Maya", speech)] == [
        ("Rex, and my cat is named Luna", "The old dog of Maya is called Rex, and my cat is named Luna"),
        ("Maya", "The name of Maya is called Maya"),
    ]


@pytest.mark.parametrize(
    ("speech", "names"),
    [
        ("The train left at 9:40. It was late.", ["9:40"]),
        ("I met Omar's aunt in Lisbon.", ["Omar"]),
        ("Lisbon is warm. There, I'm told, I’d like it.", []),
        ("“Hello!” said Omar. 6 boats came… Then Ada went\nShe has 2", ["Omar", "6", "Ada", "2"]),
        ("", []),
    ],
)
def test_sentences_with_a_number_or_a_name_inside_are_kept(speech: str, names: list[str]) -> None:
    assert [memory.name for memory in memories_of("Maya", speech, "sentences")] == names


def test_a_sentence_is_kept_whole_with_who_said_it() -> None:
    (memory,) = memories_of("Maya", "Hm. We left at 9. Yes.", "sentences")
    assert memory.text == "Maya said: We left at 9."


# ------------------------------------------------------------------ four prompts of one session

SAID = (("Maya Chen", "My dog is called Rex. Rain again."), ("Omar Haddad", "Well: we ate at 8 with Ada."))


def _chat(user: str, system: str = "", **more: object) -> Body:
    roles = [("system", system), ("user", user)] if system else [("user", user)]
    return Body({"messages": [{"role": role, "content": content} for role, content in roles], **more})


def _graphiti(form: str, prompt: str) -> Body:
    return _chat(prompt, "s", response_format={"type": "json_schema", "json_schema": {"name": form}})


_LINES = "\n".join(f"{name}: {text}" for name, text in SAID)
_TURNS = tuple(f"09:0{number} {name}: {text}" for number, (name, text) in enumerate(SAID))
PROMPTS: dict[str, Body] = {
    "mem0": _chat(
        f"## New Messages\nuser: [phone call, at Luna Café] {_LINES.replace('Omar', 'assistant: Omar')}\n\n\n"
        "## Observation Date\n2025-01-05\n",
        'Reply with {"memory": []}',
    ),
    "memos": _chat(
        '"memory list"\nConversation:\n'
        f"user: [Sunday 5 January 2025 09:00] {SAID[0][0]}: [phone call] {SAID[0][1]}\n"
        f"assistant: [Sunday 5 January 2025 09:01] {SAID[1][0]}: {SAID[1][1]}\n\nYour Output:"
    ),
    "graphiti": _graphiti(
        "ExtractedEdges",
        f"<CURRENT_MESSAGE>\n[phone call]\n{_LINES}\n</CURRENT_MESSAGE>\n"
        "<REFERENCE_TIME>\n2025-01-05 09:00:00+00:00 # when\n</REFERENCE_TIME>",
    ),
    "langmem": _chat(
        f"<session_0a>\n==== Human Message ====\n\nSunday 5 January 2025 [phone call]\n{_TURNS[0]}\n\n"
        f"==== Ai Message ====\n\n{_TURNS[1]}\n</session_0a>",
        "s",
        tools=[{"function": {"name": "Memory"}}],
    ),
}
RULES: dict[str, Reply] = {
    "mem0": mem0.reply_of,
    "memos": memos.reply_of,
    "graphiti": graphiti.reply_of,
    "langmem": langmem.reply_of,
}


def _kept(memory: str, keep: Keep) -> list[str]:
    """Texts of the memories in the reply to a memory's prompt."""
    reply = reply_of(PROMPTS[memory], keep)
    if not isinstance(reply, str):
        return [json.loads(call["function"]["arguments"])["content"] for call in reply["tool_calls"]]
    value = json.loads(reply.removeprefix("```json").removesuffix("```"))
    key, text = {"mem0": ("memory", "text"), "memos": ("memory list", "value"), "graphiti": ("edges", "fact")}[memory]
    return [each[text] for each in value[key]]


@pytest.mark.parametrize("memory", PROMPTS)
def test_of_one_session_every_memory_keeps_the_same(memory: str) -> None:
    assert _kept(memory, "named") == ["The dog of Maya Chen is called Rex"]
    assert _kept(memory, "sentences") == [
        "Maya Chen said: My dog is called Rex.",
        "Omar Haddad said: Well: we ate at 8 with Ada.",
    ]


@pytest.mark.parametrize("memory", PROMPTS)
def test_no_memory_takes_the_prompt_of_another(memory: str) -> None:
    for other, rule in RULES.items():
        if other != memory:
            with pytest.raises(UnknownPromptError, match=r"the prompt is not|the form of the reply is none"):
                rule(PROMPTS[memory])


def test_turns_that_langmem_joins_are_told_apart() -> None:
    joined = f"<session_0a>\n==== Ai Message ====\n\nSunday 5 January 2025\n{_TURNS[0]}\n{_TURNS[1]}\n</session_0a>"
    message = langmem.reply_of(Body({**PROMPTS["langmem"], **_chat(joined, "s")}), "sentences")
    contents = [json.loads(call["function"]["arguments"])["content"] for call in message["tool_calls"]]
    assert contents == _kept("langmem", "sentences")


def test_half_a_prompt_is_not_taken() -> None:
    user = PROMPTS["mem0"]["messages"][1]["content"]
    prompt = PROMPTS["memos"]["messages"][0]["content"]
    tools = PROMPTS["langmem"]["tools"]
    halves: dict[Reply, list[Body]] = {
        mem0.reply_of: [_chat(user, "no form"), _chat("no conversation", '{"memory": []}')],
        memos.reply_of: [_chat(prompt.replace("memory list", "list")), _chat('"memory list"'), _chat(prompt, "s")],
        langmem.reply_of: [_chat("no session", "s", tools=tools), Body({**PROMPTS["langmem"], "tools": []})],
        graphiti.reply_of: [_graphiti("Nothing", _LINES), _chat(_LINES, "s")],
    }
    for rule, bodies in halves.items():
        for body in bodies:
            with pytest.raises(UnknownPromptError):
                rule(body)


def test_entities_are_speakers_and_the_names_of_facts() -> None:
    prompt = _graphiti("ExtractedEntities", f"<CURRENT MESSAGE>\n{_LINES}\n</CURRENT MESSAGE>")
    names_by_keep: dict[Keep, list[str]] = {"named": ["Rex"], "sentences": ["Rex", "8"]}
    for keep, names in names_by_keep.items():
        value = json.loads(graphiti.reply_of(prompt, keep))
        assert [each["name"] for each in value["extracted_entities"]] == ["Maya Chen", "Omar Haddad", *names]


def test_a_prompt_of_none_of_them_is_told_in_one_line() -> None:
    with serving(partial(reply_of, keep="sentences")) as server:
        status, reply = asked(f"{server.base_url}/chat/completions", HI)
    assert (status, reply["error"]["message"]) == (422, "the prompt is none of Mem0, MemOS, Graphiti and LangMem")


# ------------------------------------------------------------------ the program

PROGRAM = (sys.executable, "-m", "tests.backends.scripted_models")


def test_the_program_says_where_it_listens_and_keeps_what_it_is_told_to() -> None:
    options = ("--keep", "sentences", "--host", "localhost")
    with subprocess.Popen([*PROGRAM, *options], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            assert url.startswith("http://localhost:")
            reply = asked(f"{url}/chat/completions", {"model": "m", **PROMPTS["mem0"]})[1]
        finally:
            process.kill()
    assert len(json.loads(reply["choices"][0]["message"]["content"])["memory"]) == 2


def test_what_cannot_be_kept_is_refused() -> None:
    result = subprocess.run([*PROGRAM, "--keep", "all"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert "--keep: invalid choice: 'all'" in result.stderr


def test_a_port_that_is_taken_is_refused() -> None:
    with serving() as server:
        port = server.base_url.rpartition(":")[2].removesuffix("/v1")
        result = subprocess.run([*PROGRAM, "--port", port], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.endswith(f"--port {port}: [Errno {errno.EADDRINUSE}] {os.strerror(errno.EADDRINUSE)}\n")

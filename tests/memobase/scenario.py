"""A fixed sequence of requests to a Memobase server, and the replies in a form that does not depend on ids and times.

Run as a program it records a server's replies (``recordings/README.md`` says how); ``test_double.py`` makes the same
requests of the double and compares.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from tests.memobase.scripted_models import by, reply_of, scripted_models
from tests.support.model_server import ModelServer

Json = Any
USER = "5f0c1c0e-5f0c-4c1e-8f0c-5f0c1c0e5f0c"
NOBODY = "00000000-0000-4000-8000-000000000000"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[.\d]*(?:Z|\+00:00)")


@dataclass
class Session:
    """Makes requests and records each with its reply."""

    http: httpx.Client
    models: ModelServer
    steps: list[dict[str, Json]] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)

    def ask(self, what: str, method: str, path: str, body: Json = None, token: bool = True, **params: Json) -> Json:
        """Make one request, record it as ``what``, and return the reply's data."""
        headers = {} if token else {"Authorization": "Bearer wrong"}
        reply = self.http.request(method, f"/api/v1{path}", json=body, params=params or None, headers=headers)
        value = reply.json()
        self.steps.append(
            {
                "what": what,
                "request": {"method": method, "path": self.plain(path), "params": params, "body": self.plain(body)},
                "reply": {"status": reply.status_code, "body": self.plain(value)},
            }
        )
        return value["data"]

    def plain(self, value: Json) -> Json:
        """Return a value with ids numbered by first appearance, times replaced and similarities rounded."""
        if isinstance(value, dict):
            return {key: self.plain(each) for key, each in value.items()}
        if isinstance(value, list):
            return [self.plain(each) for each in value]
        if isinstance(value, float):
            return round(value, 6)
        if isinstance(value, str):
            return _UUID.sub(self._name, _TIME.sub("<time>", value))
        return value

    def _name(self, match: re.Match[str]) -> str:
        return self.names.setdefault(match[0], f"<id {len(self.names) + 1}>")


def say(*turns: tuple[str, str]) -> Json:
    """A chat blob: (alias, text); Maya is the user."""
    messages = [
        {
            "role": "user" if alias == "Maya" else "assistant",
            "content": text,
            "alias": alias,
            "created_at": f"2025-01-0{number} 09:15+00:00",
        }
        for number, (alias, text) in enumerate(turns, start=1)
    ]
    return {"blob_type": "chat", "fields": None, "blob_data": {"messages": messages}}


def play(session: Session) -> None:
    """Make all requests, in an order that the recordings fix: a new one requires new recordings."""
    ask, models = session.ask, session.models
    wait: dict[str, Json] = {"wait_process": "true"}
    ask("health", "GET", "/healthcheck", token=False)
    ask("a wrong token", "GET", "/project/profile_config", token=False)
    ask("the project's settings", "GET", "/project/profile_config")
    ask("a user that is not there", "GET", f"/users/{USER}")
    ask("a new user", "POST", "/users", {"id": USER, "data": None})
    ask("the user", "GET", f"/users/{USER}")
    ask("an empty buffer", "POST", f"/users/buffer/{USER}/chat", **wait)

    blob = say(("Maya", "My dog is called Rex."), ("Omar", "My dog is called Bello."))
    ask("a conversation", "POST", f"/blobs/insert/{USER}", blob, **wait)
    _buffer(session)
    ask("its extraction", "POST", f"/users/buffer/{USER}/chat", **wait)
    _buffer(session)
    _memory(session)

    ask(
        "a second one",
        "POST",
        f"/blobs/insert/{USER}",
        say(("Maya", "My dog is called Luna. And hello & so on #1")),
        **wait,
    )
    ask(
        "a third one",
        "POST",
        f"/blobs/insert/{USER}",
        say(("Maya", "My boat is Aurora. My dog is called Rex.")),
        **wait,
    )
    ask("extracted together", "POST", f"/users/buffer/{USER}/chat", **wait)
    _memory(session)

    ask("without the user's words", "POST", f"/blobs/insert/{USER}", say(("Omar", "Nothing from Maya.")), **wait)
    ask("an empty extraction", "POST", f"/users/buffer/{USER}/chat", **wait)
    long = say(*(("Maya", f"My friend number {n} is called Friend{n}. " + "la " * 400) for n in range(1, 5)))
    ask("one that fills the buffer", "POST", f"/blobs/insert/{USER}", long, **wait)
    _buffer(session)

    models.script = by(
        lambda system, user: "I would rather not." if "### Input Chats" in user else reply_of(system, user)
    )
    ask("a log in prose", "POST", f"/blobs/insert/{USER}", say(("Maya", "My cat is called Tom.")), **wait)
    ask("its extraction", "POST", f"/users/buffer/{USER}/chat", **wait)
    models.script = by(
        lambda system, user: (
            reply_of(system, user)
            if "### Input Chats" in user or user.strip().startswith("[")
            else "Facts: none, really."
        )
    )
    ask("facts in prose", "POST", f"/blobs/insert/{USER}", say(("Maya", "My cat is called Tom.")), **wait)
    ask("its extraction", "POST", f"/users/buffer/{USER}/chat", **wait)
    models.script = by(reply_of)
    _memory(session)

    for status in (400, 401):
        models.chat_status = models.embedding_status = status
        ask(f"a model that answers {status}", "POST", f"/blobs/insert/{USER}", say(("Maya", "My cow is Elsa.")), **wait)
        ask("its extraction", "POST", f"/users/buffer/{USER}/chat", **wait)
        ask("a search meanwhile", "GET", f"/users/event_gist/search/{USER}", query="dog", topk=3)
    models.chat_status = models.embedding_status = 200
    _buffer(session)
    ask("what failed is not taken up again", "POST", f"/users/buffer/{USER}/chat", **wait)
    _taking_back(session)
    ask("the user goes", "DELETE", f"/users/{USER}")
    ask("the user is gone", "DELETE", f"/users/{USER}")
    ask("a profile of nobody", "GET", f"/users/profile/{NOBODY}")
    ask("a buffer of nobody", "POST", f"/users/buffer/{NOBODY}/chat", **wait)


def _buffer(session: Session) -> None:
    for status in ("idle", "processing", "failed"):
        session.ask(f"what is {status}", "GET", f"/users/buffer/capacity/{USER}/chat", status=status)


def _memory(session: Session) -> None:
    ask = session.ask
    ask("the profile", "GET", f"/users/profile/{USER}")
    ask("all events", "GET", f"/users/event_tags/search/{USER}", topk=1000)
    like: Mapping[str, Json] = {
        "query": "Luna & the boat #1?",
        "similarity_threshold": -2.0,
        "time_range_in_days": 36500,
    }
    ask("events like it", "GET", f"/users/event/search/{USER}", topk=2, **like)
    ask("lines like it", "GET", f"/users/event_gist/search/{USER}", topk=3, **like)


def _taking_back(session: Session) -> None:
    ask = session.ask
    for blob in ask("blobs that are left", "GET", f"/users/blobs/{USER}/chat", page=0, page_size=100)["ids"]:
        ask("one goes", "DELETE", f"/blobs/{USER}/{blob}")
    _buffer(session)
    slots = ask("the profile", "GET", f"/users/profile/{USER}")["profiles"]
    first, second = slots[0]["id"], slots[1]["id"]
    old = {"content": "as it was", "attributes": {"topic": "life", "sub_topic": "dog", "update_hits": 7}}
    ask("an entry gets old content", "PUT", f"/users/profile/{USER}/{first}", old)
    ask("another goes", "DELETE", f"/users/profile/{USER}/{second}")
    ask("it is gone", "DELETE", f"/users/profile/{USER}/{second}")
    ask("one is made", "POST", f"/users/profile/{USER}", old)
    events = ask("all events", "GET", f"/users/event_tags/search/{USER}", topk=1000)["events"]
    ask("an event goes", "DELETE", f"/users/event/{USER}/{events[0]['id']}")
    ask("it is gone", "DELETE", f"/users/event/{USER}/{events[0]['id']}")
    _memory(session)


def recorded(url: str, token: str, models: ModelServer) -> list[dict[str, Json]]:
    """Return the sequence with the replies of the server at ``url``, which calls ``models``."""
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=url, headers=headers, timeout=60, trust_env=False) as http:
        http.delete(f"/api/v1/users/{USER}")
        session = Session(http, models)
        play(session)
    return session.steps


def main(argv: Sequence[str] | None = None) -> None:
    """Record a server that was set up by hand and calls the models that are served here."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--token", required=True)
    parser.add_argument("--models-port", type=int, required=True, help="where the server was told its models are")
    parser.add_argument("--server", required=True, help="version and commit of the server")
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args(argv)
    with scripted_models(arguments.models_port) as models:
        steps = recorded(arguments.url, arguments.token, models)
    text = json.dumps({"server": arguments.server, "steps": steps}, indent=1, ensure_ascii=False)
    arguments.out.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(f"{len(steps)} exchanges\n")


if __name__ == "__main__":
    main()

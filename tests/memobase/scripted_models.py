"""Models for a Memobase server: a chat model that extracts by rule, and an embedder that counts words.

The chat model answers the three questions that a flush of Memobase asks, told apart
by their form: the log of a conversation, the facts in that log, what becomes of each fact. What the owner says as
``My … is (called) …`` becomes a fact; whatever else the owner says becomes a line of the log. A conversation in which
the owner says nothing, or only ``…``, yields an empty log.
"""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Callable, Sequence

from tests.support.model_script import Body, Reply, text_of
from tests.support.model_server import EMBEDDER, EXTRACTOR, ModelServer

_LINE = re.compile(r"^\[(?P<time>[^\]]*)\] (?P<name>.*?)\(user\): (?P<text>.*)$")
_FACT = re.compile(r"\bmy (?P<what>[\w' ]{1,40}?) is (?:called |named )?(?P<value>[^.!?;\[\]]+)", re.IGNORECASE)
_WORD = re.compile(r"\w+")

Rule = Callable[[str, str], str]
"""A function from the system's and the user's message to the model's reply."""


def log_of(conversation: str) -> str:
    """What the owner said, a line each, with the time at which it was said."""
    lines = []
    for line in conversation.splitlines():
        match = _LINE.match(line)
        if match and _WORD.search(match["text"]):
            lines.append(f"- {match['name']}: {match['text']} [mention {match['time']}] // info")
    return "\n".join(lines)


def facts_of(log: str) -> str:
    """Facts as ``- topic::sub_topic::memo``, a line each."""
    facts = [f"- life::{match['what'].strip().lower()}::{match['value'].strip()}" for match in _FACT.finditer(log)]
    return "\n".join(dict.fromkeys(facts))


def decisions_of(question: str) -> str:
    """For each fact: appended where nothing is known of it, ignored where it is known, else the new value."""
    decided = []
    for number, memo in enumerate(ast.literal_eval(question.strip()), start=1):
        new, current = str(memo["new_info"]), str(memo["current_memo"])
        if not current:
            decided.append(f"{number}. APPEND::APPEND")
        elif new in current:
            decided.append(f"{number}. ABORT::ABORT")
        else:
            decided.append(f"{number}. UPDATE::{new}")
    return "\n".join(decided)


def reply_of(system: str, user: str) -> str:
    """The reply to any of the three questions: which one it is shows by the form of the user's message."""
    if "memo_id" in user:
        return decisions_of(user)
    conversation = user.partition("### Input Chats")[2]
    return log_of(conversation) if conversation else facts_of(user)


def by(rule: Rule) -> Reply:
    """A rule as a script of the model server."""

    def reply(body: Body) -> str:
        return rule(text_of(body, "system"), text_of(body, "user"))

    return reply


def scripted_models(port: int = 0) -> ModelServer:
    """Serve both models until the server is closed."""
    return ModelServer(by(reply_of), port=port, models=(EXTRACTOR, EMBEDDER))


def main(argv: Sequence[str] | None = None) -> None:
    """Serve on the port of the flags, for a Memobase server that was set up by hand."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    scripted_models(parser.parse_args(argv).port).join()


if __name__ == "__main__":
    main()

"""A scripted judge: an OpenAI-compatible server whose replies a test writes.

A judge with a model gets an answer between two fences (lines of random digits) and must repeat a random check word, so
that no text in the answer can pass as its reply; this module reads both out of the prompt, as a real model would.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from memarena.judging.llm.prompts import decoy

from tests.support.model_script import Body, Script
from tests.support.model_server import ModelServer

_CHECK = re.compile(r'"check": the text ([0-9a-f]+)')
_FENCED = re.compile(r"(?m)^(-----[0-9a-f]{16}-----)\n(.*?)\n\1$", re.DOTALL)


@dataclass(frozen=True)
class Asked:
    """One call as the judge receives it."""

    system: str
    user: str
    answer: str
    """Text between the fences of the prompt: the answer to be judged."""
    check: str
    """Word that a valid reply must repeat."""
    response_format: str
    """``json_schema``, ``json_object`` or empty."""
    number: int
    """Number of the call, from 1."""
    roles: tuple[str, ...] = ()
    """Roles of the messages, in order."""
    limit: str = ""
    """Name of the request's field that limits the reply."""

    @property
    def sentences(self) -> dict[str, str]:
        """Return the sentences of a rubric by number; empty if the prompt has none."""
        section = self.user.partition("\nSentences:\n")[2].partition("\n\nWhat the assistant said:")[0]
        return dict(line.split(". ", 1) for line in section.splitlines())

    @property
    def task(self) -> str:
        if self.sentences:
            return "rubric"
        return "behaviour" if "disclose_wrong" in self.system else "bucket" if "no_access" in self.system else "answer"


JudgeScript = Callable[[Asked], Script]


def rules(request: Asked, *, correct: object = True, **fields: Any) -> Script:
    """Return a valid reply with ``correct`` and ``fields``.

    A judge is also called with a *decoy*, a question whose gold no answer to a real question can match. Against it an
    answer is never right, and the label (D6, permission questions) is whether the answer states the decoy.
    """
    if decoy().gold in request.user:
        label = "disclose_correct" if decoy().told in request.answer else "other"
        correct, fields = False, {**fields, "label": label, "score": 0.0}
    if request.task == "rubric":
        marks = {n: "no" if decoy().told in s or not correct else "yes" for n, s in request.sentences.items()}
        return Script(json.dumps({"check": request.check, "sentences": marks, "reason": "as scripted", **fields}))
    by_task: dict[str, dict[str, Any]] = {
        "answer": {"correct": correct, "score": float(correct is True)},
        "behaviour": {"label": "refuse"},
        "bucket": {"bucket": "no_access"},
    }
    decides = by_task[request.task]
    return Script(
        json.dumps({"check": request.check, **decides, "quote": request.answer, "reason": "as scripted", **fields})
    )


@dataclass
class ScriptedJudge:
    """A running server with the calls that it received."""

    server: ModelServer
    asked: list[Asked] = field(default_factory=list)

    @property
    def url(self) -> str:
        return self.server.base_url

    @property
    def most_at_once(self) -> int:
        return self.server.most_in_flight


@contextmanager
def scripted_judge(script: JudgeScript) -> Iterator[ScriptedJudge]:
    """Serve a script on loopback until the block ends. Every reply reports 100 prompt and 20 completion tokens."""

    def reply(body: Body) -> Script:
        system, user = (m["content"] for m in body["messages"][:2])
        check, fenced = _CHECK.search(system), _FENCED.search(user)
        request = Asked(
            system=system,
            user=user,
            answer=fenced.group(2) if fenced else "",
            check=check.group(1) if check else "",
            response_format=body.get("response_format", {}).get("type", ""),
            number=body.number + 1,
            roles=tuple(m["role"] for m in body["messages"]),
            limit=" ".join(sorted({"max_tokens", "max_completion_tokens"} & set(body))),
        )
        judge.asked.append(request)
        return replace(script(request), prompt_tokens=100, completion_tokens=20)

    with ModelServer(reply) as server:
        judge = ScriptedJudge(server)
        yield judge

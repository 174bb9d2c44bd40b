"""Fixtures: one server of the viewer over a folder of runs: complete, hostile, broken, and one being written."""

from __future__ import annotations

import asyncio
import http.client
import os
import re
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from aiohttp import web
from memarena.log.records import AnyRecord
from memarena.log.store import LogWriter, log_path
from memarena.viewer import building
from memarena.viewer.found_runs import find_runs
from memarena.viewer.security import Door
from memarena.viewer.server import make_app
from memarena.viewer.serving import listening_socket
from memarena_dataset.model import Family

from ..support import grid_run
from ..support.logs import (
    make_asked,
    make_call,
    make_cell,
    make_evidence,
    make_item,
    make_question,
    make_run,
    text_gold,
    write_log,
)

ANSI, RIGHT_TO_LEFT, SCRIPT = "\x1b[31mred\x1b[0m", "user\u202egnp.exe", "<script>window.ran = 1</script>"
LONG = "".join(f"word{n} " for n in range(140_000))
"""A text of more than 1 MB."""
SECRET_GOLD = "Valparaíso"
EVIDENCE_TURN = "The ferry leaves from the “old” harbour at nine.\nBring a coat."


@dataclass(frozen=True)
class Answer:
    """A response: status, text, headers."""

    status: int
    text: str
    headers: dict[str, str]

    @property
    def plain(self) -> str:
        """Return the page's text without tags, each run of white space as one blank."""
        return " ".join(re.sub(r"<[^>]+>", " ", self.text).split())


@dataclass
class Site:
    """The server, and requests to it as a browser would send them."""

    folder: Path
    caches: Path
    door: Door
    keys: dict[str, str] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return f"http://127.0.0.1:{self.door.port}"

    def run(self, name: str, rest: str = "") -> str:
        """Return the path of a page of a run."""
        return f"/run/{self.keys[name]}{rest}"

    def question(self, name: str, instance_id: str, query: str = "") -> str:
        return self.run(name, f"/question/{quote(instance_id, safe='')}{query}")

    def ask(
        self, path: str, headers: dict[str, str] | None = None, method: str = "GET", form: dict[str, str] | None = None
    ) -> Answer:
        """Send one request with the cookie; ``headers`` override. A form is sent as the viewer's pages do."""
        connection = http.client.HTTPConnection("127.0.0.1", self.door.port, timeout=20)
        try:
            request_headers = {"Cookie": f"{self.door.cookie}={self.door.token}", **(headers or {})}
            if form is not None:
                request_headers |= {"Origin": self.base, "Content-Type": "application/x-www-form-urlencoded"}
            connection.request(method, path, urlencode(form) if form else None, headers=request_headers)
            response = connection.getresponse()
            return Answer(response.status, response.read().decode(), dict(response.getheaders()))
        finally:
            connection.close()

    def page(self, path: str) -> Answer:
        """Return a page once the run's cache is built."""
        for _ in range(300):
            answer = self.ask(path)
            if "<h1>Reading the log</h1>" not in answer.text:
                return answer
            time.sleep(0.1)
        raise AssertionError(f"{path}: the log is still being read")


def hostile_records() -> list[AnyRecord]:
    """Return records whose names, items and answers hold scripts, control characters, or too much text."""
    cell = make_cell("bm25<b>", "small")
    evidence = make_evidence("sess_1", ("Maya <i>Chen", EVIDENCE_TURN), ("Bob", SCRIPT))
    answers = {"q/1?&#": SCRIPT, "q_ansi": ANSI, "q_rtl": RIGHT_TO_LEFT, "q_long": LONG, "q_50%": "50% of_it"}
    questions = [
        make_question(name, Family.QA, text_gold(SECRET_GOLD), f"Where to? {SCRIPT}", evidence=["sess_1"], lag_days=2)
        for name in answers
    ]
    body: list[AnyRecord] = []
    for n, (question, answer) in enumerate(zip(questions, answers.values(), strict=True)):
        prompt = '[{"role": "user", "content": "Context: ' + EVIDENCE_TURN.replace("\n", "\\n") + ' And more."}]'
        body.append(make_call(f"call_{n}", cell, question, ttft_ms=80, server_ms=70, prompt=prompt))
        item = make_item(f"{SCRIPT} {ANSI} {RIGHT_TO_LEFT}", "sess_1")
        body.append(make_asked(cell, question, answer, items=[item], call_ids=[f"call_{n}"], raw=f"{answer} raw"))
    return make_run([cell], questions, [evidence], body)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of ten cells and 144 questions."""
    return write_log(tmp_path_factory.mktemp("viewer") / "runs" / "lab", grid_run.records(12, prompt_words=100))


@pytest.fixture(scope="session")
def writing(lab: Path) -> Iterator[LogWriter]:
    """The log writer of a run that has just started."""
    log = LogWriter(lab.parent / "writing")
    records = [r for r in grid_run.records(1, prompt_words=20) if r.kind != "run_ended"]
    log.append(*records[: len(records) // 2])
    yield log
    log.close()


@pytest.fixture(scope="session")
def site(lab: Path, writing: LogWriter) -> Iterator[Site]:
    """The server over the folder of all runs, in a thread with its own event loop."""
    folder = lab.parent
    write_log(folder / "hostile", hostile_records())
    again = [r for r in grid_run.records(12, prompt_words=100) if r.kind != "asked" or not r.instance_id.endswith("7")]
    write_log(folder / "again", again)
    for name in ("damaged", "newer"):
        shutil.copytree(lab, folder / name)
    with log_path(folder / "damaged").open("r+b") as file:
        file.truncate(50_000)
    with sqlite3.connect(log_path(folder / "newer")) as db:
        db.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    db.close()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "LEAST_SECONDS_BETWEEN", 0.0)
        patch.setattr(building, "AGAIN_AFTER", 0.0)
        caches = folder.parent / "caches"
        caches.mkdir()
        with served(lambda door: make_app([folder], "value", door, caches)) as door:
            yield Site(folder, caches, door, {run.name: run.key for run in find_runs([folder])})


@contextmanager
def served(make: Callable[[Door], web.Application]) -> Iterator[Door]:
    """Run an application in a thread with its own event loop until the block ends."""
    listening = listening_socket("127.0.0.1", 0)
    door = Door.new("127.0.0.1", listening.getsockname()[1])
    loop, begun = asyncio.new_event_loop(), threading.Event()
    runner = web.AppRunner(make(door), shutdown_timeout=0.2)

    async def begin() -> None:
        await runner.setup()
        await web.SockSite(runner, listening).start()
        begun.set()

    def work() -> None:
        loop.run_until_complete(begin())
        loop.run_forever()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert begun.wait(20)
        yield door
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(20)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


CHROMIUM = os.environ.get("MEMARENA_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")

"""Tests reviews of answers: stored next to a log, shown, filtered, exported, counted, and never lost."""

from __future__ import annotations

import csv
import hashlib
import html
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from memarena.cli.scores import report_run
from memarena.log.line_file import utc_now
from memarena.log.reviews import REVIEWS_NAME, Review, Reviews, reviews_of
from memarena.log.store import LogError, log_path
from memarena.report.document import report_document
from memarena.report.render.json import to_json
from memarena.report.render.terminal import print_document
from memarena.scoring.results import QuestionScore
from memarena.tables.run import open_run
from memarena.viewer.found_runs import find_runs
from memarena.viewer.server import make_app

from ..support import grid_run
from ..support.logs import write_log
from .conftest import CHROMIUM, Site, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

CELL, OTHER = "bm25@small-0.6b/s1", "oracle@small-0.6b/s1"


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A server over a run that may be reviewed."""
    folder = tmp_path_factory.mktemp("reviewing")
    run = write_log(folder / "runs" / "lab", grid_run.records(12, prompt_words=20))
    with served(lambda door: make_app([run], "value", door, folder / "caches")) as door:
        (folder / "caches").mkdir(exist_ok=True)
        yield Site(run, folder / "caches", door, {each.name: each.key for each in find_runs([run])})


def answers(site: Site, outcome: str, dimension: str) -> list[str]:
    """Questions that ended so in the first cell."""
    return [
        score.instance_id
        for score in scored(site.folder)
        if score.cell_id == CELL and score.outcome == outcome and score.dimension == dimension
    ]


@cache
def scored(run: Path) -> tuple[QuestionScore, ...]:
    return report_run(run).questions


def send(site: Site, instance: str, **fields: str) -> tuple[int, str]:
    form = {"cell": CELL, "attempt": "0", "author": "Anna B.", "back": f"cell={quote(CELL)}&gold=1&x=//evil", **fields}
    answer = site.ask(site.question("lab", instance, "/review"), method="POST", form=form)
    return answer.status, answer.headers.get("Location", "") if answer.status == 303 else answer.plain


def content(run: Path) -> str:
    return hashlib.sha256(log_path(run).read_bytes()).hexdigest()


def test_a_review_is_stored_next_to_the_log_shown_filtered_exported_and_counted(own: Site) -> None:
    page = own.page(own.run("lab", "/questions"))
    assert "reviews.csv" not in page.text
    before = content(own.folder)
    right, wrong, behaviour = (
        answers(own, "correct", "D1")[0], answers(own, "wrong", "D1")[0], answers(own, "correct", "D6")[0],
    )  # fmt: skip
    note = '=1+1 <b>"both" sessions</b>\nsay it'
    assert send(own, right, label="wrong", note=note, starred="1")[0] == 303
    status, location = send(own, wrong, label="wrong", note="agreed")
    assert (status, location) == (303, own.question("lab", wrong, f"?cell={quote(CELL, safe='')}&gold=1"))
    assert send(own, behaviour, label="other")[0] == 303
    assert send(own, right, author="Ben", note="see the log")[0] == 303
    assert content(own.folder) == before

    question_page = own.page(own.question("lab", right, f"?cell={quote(CELL)}"))
    for text in ("Anna B.", "verdict wrong: wrong", "see the log", "&lt;b&gt;"):
        assert text in question_page.text
    assert "<b>&#34;both" not in question_page.text
    counts = {"any": 3, "starred": 1, "noted": 2, "labelled": 3, "disputed": 2}
    for value, count in counts.items():
        list_page = own.page(own.run("lab", f"/questions?review={value}"))
        assert list_page.text.count('<p class="ask">') == count, value
        assert f'value="{value}"' in list_page.text
    side = f"/questions?review=disputed&view=side&cell={quote(CELL)}&cell={quote(OTHER)}"
    assert own.page(own.run("lab", side)).text.count('<p class="ask">') == 2
    assert "review=foo: expected one of any, starred" in own.page(own.run("lab", "/questions?review=foo")).plain

    exported = json.loads(own.ask(own.run("lab", "/reviews.json")).text)
    assert [(each["author"], each["label"], each["verdict"]) for each in exported if each["instance_id"] == right] == [
        ("Anna B.", "wrong", "correct"), ("Ben", None, "correct"),
    ]  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(own.ask(own.run("lab", "/reviews.csv")).text)))
    assert len(rows) == len(exported) == 4
    assert next(row["note"] for row in rows if row["label"] == "wrong" and row["starred"] == "True").startswith("'=1+1")
    table = list(open_run(own.folder).rows("reviews", gold=True))
    assert "note" not in next(open_run(own.folder).rows("reviews")), "it may quote the right answer"
    assert {(row["author"], row["note"]) for row in table} == {(each["author"], each["note"]) for each in exported}

    report = report_run(own.folder)
    (row,) = json.loads(to_json([report]))["reviews"][0]
    assert row == {
        "label": "bm25@small-0.6b", "reviewers": 2, "reviewed": 3, "starred": 1, "labelled": 3, "disputed": 2,
        "right_called_wrong": 0, "wrong_called_right": 1, "other_behaviour": 1, "earlier_attempts": 0,
    }  # fmt: skip
    printed = io.StringIO()
    print_document(report_document([report]), printed)
    assert "Reviews of answers" in printed.getvalue()


def test_what_a_form_may_not_send_is_refused_by_name(own: Site) -> None:
    (instance, *_), lines = answers(own, "wrong", "D2"), (own.folder / REVIEWS_NAME).read_bytes()
    cases = [
        ({"label": "refuse"}, "label: 'refuse': expected one of correct, wrong"),
        ({"author": " "}, "expected 1 to 60 letters"),
        ({"author": "<script>"}, "expected 1 to 60 letters"),
        ({"attempt": "3", "note": "x"}, "a later attempt replaced this answer"),
        ({"cell": "none@none/s1"}, "expected a cell that asked this question"),
        ({"note": "n" * 4001}, "note: 4,001 characters; expected at most 4,000"),
    ]
    for fields, message in cases:
        status, text = send(own, instance, **fields)
        assert (status, message in html.unescape(text)) == (422, True), text
    headers = {"Origin": "http://elsewhere.example"}
    assert own.ask(own.question("lab", instance, "/review"), headers, "POST").status == 403
    assert (own.folder / REVIEWS_NAME).read_bytes() == lines


def test_a_review_is_changed_and_taken_back_and_its_history_stays(own: Site) -> None:
    instance = answers(own, "wrong", "D3")[0]
    for fields in ({"note": "first"}, {"note": "first"}, {"note": "second", "label": "correct"}, {}):
        assert send(own, instance, **fields)[0] == 303
    reviews = reviews_of(own.folder)
    assert reviews is not None
    assert reviews.of(CELL, instance) == ()
    assert [each.note for each in reviews.history(CELL, instance)] == ["first", "second", ""]
    page = own.page(own.question("lab", instance, f"?cell={quote(CELL)}")).plain
    assert "Earlier reviews: 3 in all" in page
    assert "taken back" in page


WRITER = """
import sys
from functools import cache
from pathlib import Path
from memarena.log.line_file import utc_now
from memarena.log.reviews import Review, Reviews
folder, author, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
reviews = Reviews(folder, "r")
print("ready", flush=True)
for n in range(count):
    reviews.write(Review(at=utc_now(), author=author, run_id="r", cell_id="c", instance_id=f"q{n}", attempt=0,
                         judge="value", verdict="wrong", note=f"{author} {n} " + "x" * 2000))
    print(n, flush=True)
"""


def test_concurrent_writers_lose_nothing_and_a_killed_one_only_what_it_had_not_reported(tmp_path: Path) -> None:
    def begin(author: str, count: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WRITER, str(tmp_path), author, str(count)]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    killed, others = begin("killed", 100_000), [begin("anna", 20), begin("ben", 20)]
    assert killed.stdout is not None
    reported = -1
    for line in killed.stdout:
        if line.strip().isdigit() and (reported := int(line)) >= 10:
            break
    killed.send_signal(signal.SIGKILL)
    rest = killed.communicate()[0]
    reported = max([reported, *(int(line) for line in rest.split() if line.isdigit())])
    assert [process.wait() for process in others] == [0, 0]
    for process in others:
        process.communicate()
    with (tmp_path / REVIEWS_NAME).open("ab") as file:
        file.write(b'{"at": "2026')
    reviews = Reviews(tmp_path, "r")
    standing = {(each.author, each.instance_id) for each in reviews.all()}
    assert {("anna", f"q{n}") for n in range(20)} | {("ben", f"q{n}") for n in range(20)} <= standing
    assert {("killed", f"q{n}") for n in range(reported + 1)} <= standing
    review = next(iter(reviews.all())).model_copy(update={"author": "eve", "at": utc_now()})
    assert reviews.write(review)
    again = Reviews(tmp_path, "r")
    assert review in again.all()
    assert len(again.faults) in (1, 2)
    assert "holds no review and is passed over" in again.faults[-1]


def test_reviews_of_another_run_or_where_nothing_can_be_written_are_refused(own: Site, tmp_path: Path) -> None:
    review = Review(
        at=utc_now(), author="anna", run_id="other", cell_id="c", instance_id="q", attempt=0, judge="value",
        verdict=None, note="n",
    )  # fmt: skip
    Reviews(tmp_path, "other").write(review)
    with pytest.raises(LogError, match="line 1: run_id: this review is of run other, the log of run mine"):
        Reviews(tmp_path, "mine")
    with pytest.raises(LogError, match=r"reviews\.jsonl: cannot be written"):
        Reviews(tmp_path / "none", "other").write(review)
    os.truncate(tmp_path / REVIEWS_NAME, 0)
    assert Reviews(tmp_path, "mine").all() == []


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: apt install chromium, or MEMARENA_CHROMIUM")
def test_what_is_typed_outlives_a_reload_and_a_server_that_is_gone(own: Site) -> None:
    from playwright.sync_api import expect, sync_playwright

    instance = answers(own, "wrong", "D4")[0]
    address = own.base + own.question("lab", instance, f"?cell={quote(CELL)}")
    with sync_playwright() as playwright:
        browser: Browser = playwright.chromium.launch(executable_path=CHROMIUM)
        context = browser.new_context()
        context.add_cookies([{"name": own.door.cookie, "value": own.door.token, "url": own.base}])
        page = context.new_page()
        page.goto(address)
        form, status = page.locator("form.review-form"), page.locator("form.review-form [role=status]")
        form.get_by_label("your name").fill("Eve")
        form.get_by_label("note").fill("half a thought")
        form.get_by_label("star").check()
        page.reload()
        expect(form.get_by_label("note")).to_have_value("half a thought")
        expect(form.get_by_label("star")).to_be_checked()
        expect(status).to_have_text("Not saved yet.")
        context.set_offline(True)
        form.get_by_role("button").click()
        expect(status).to_contain_text("the server does not answer")
        context.set_offline(False)
        page.reload()
        form.get_by_label("right verdict").select_option("correct")
        form.get_by_role("button").click()
        expect(page.locator(".review .note")).to_have_text("half a thought")
        assert page.evaluate("Object.keys(sessionStorage).filter((key) => key.startsWith('draft'))") == []
        form.get_by_label("note").fill("n" * 10)
        form.get_by_label("your name").fill("?")
        form.get_by_role("button").click()
        expect(status).to_contain_text("Not saved: reviewer '?': expected 1 to 60 letters")
        for width in (1400, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == width
        script_off = browser.new_context(java_script_enabled=False)
        script_off.add_cookies([{"name": own.door.cookie, "value": own.door.token, "url": own.base}])
        plain = script_off.new_page()
        plain.goto(address)
        plain.get_by_label("your name").fill("Kim")
        plain.get_by_label("note").fill("without script")
        plain.get_by_role("button", name="Save the review").click()
        expect(plain.locator(".review .note").last).to_have_text("without script")
        expect(plain.get_by_label("your name")).to_have_value("Kim")
        browser.close()

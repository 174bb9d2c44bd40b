"""Tests the HTML report: one file that makes no request, executes no script of a run, and shows every text verbatim."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from html import escape, unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from memarena.cli.scores import report_run
from memarena.report.render.html import to_html
from memarena.report.report_input import ReportInput

from ..support import grid_run
from ..support.logs import write_log

FIVE_MB = 5_000_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> ReportInput:
    """A run of ten cells with long prompts and hostile answers."""
    return report_run(write_log(tmp_path_factory.mktemp("grid"), grid_run.records(12)), traces=True)


@pytest.fixture(scope="module")
def page(run: ReportInput) -> str:
    return to_html([run])


class _Reading(HTMLParser):
    """Parses the page into tags, attributes and texts, as a browser would see them."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> out of order"

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.fixture(scope="module")
def reading(page: str) -> _Reading:
    return _Reading(page)


def test_every_element_is_closed_in_order(reading: _Reading) -> None:
    assert reading.open == []


def test_nothing_of_a_run_can_be_executed_and_nothing_fetched(reading: _Reading) -> None:
    """The page's own script is the only one."""
    tags = [tag for tag, _ in reading.tags]
    assert tags.count("script") == 1
    assert not set(tags) & {"img", "iframe", "object", "embed", "link", "form", "base", "video", "audio", "use"}
    for tag, attributes in reading.tags:
        for name, value in attributes.items():
            assert not name.startswith("on"), (tag, name)
            assert name not in ("src", "srcset", "action", "style", "background", "xlink:href"), (tag, name)
            if name == "href" or (value or "").startswith("url("):
                assert (value or "").startswith(("#", "url(#")), (tag, name, value)


def test_the_policy_allows_only_the_pages_own_style_and_script(page: str, reading: _Reading) -> None:
    """These fetch nothing."""
    script = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    assert len(script) == 1
    assert not re.search(r"fetch|XMLHttp|import|eval|Function|innerHTML|location|cookie|storage", script[0])
    style = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert len(style) == 1
    assert not re.search(r"url\(|@import|expression", style[0])
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (style[0], script[0])]
    allowed = f"style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'"
    policies = [a["content"] for _, a in reading.tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policies == [f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"]


def test_markup_in_an_answer_is_shown_as_text(page: str, reading: _Reading) -> None:
    assert "<img src=x" not in page
    assert page.count("<script") == 1
    assert any(grid_run.HOSTILE in text for text in reading.texts)
    assert any("<script>alert('profile')</script>" in text for text in reading.texts), "a cause of failure"
    assert any("<b>No tags.</b>" in text for text in reading.texts), "a prompt"


def test_ids_are_unique_and_every_reference_has_its_target(reading: _Reading) -> None:
    ids = [a["id"] for _, a in reading.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    referenced = {i for _, a in reading.tags for i in (a.get("aria-labelledby") or "").split()}
    referenced |= {(a["href"] or "").removeprefix("#") for t, a in reading.tags if t == "a"}
    referenced |= {(a["fill"] or "")[5:-1] for _, a in reading.tags if (a.get("fill") or "").startswith("url(")}
    assert referenced - set(ids) == set()


def test_every_figure_has_a_description(reading: _Reading) -> None:
    drawings = [a for tag, a in reading.tags if tag == "svg"]
    assert len(drawings) >= 6
    assert all(a["role"] == "img" for a in drawings)
    assert sum(tag == "desc" for tag, _ in reading.tags) == len(drawings)


def test_ten_cells_stay_below_five_megabytes(page: str) -> None:
    assert len(page.encode()) < FIVE_MB


def test_the_sample_is_bounded_and_holds_every_row(run: ReportInput, page: str) -> None:
    assert page.count('<details class="question-trace">') == len(run.traces) == 160
    sampled = {view.answers[0].cell_id.rpartition("/")[0] for view in run.traces}
    assert sampled == {row.label for row in run.scores.rows}


def test_a_long_text_keeps_its_start_and_its_end(run: ReportInput, page: str) -> None:
    [cut, *_] = re.findall(r'<p class="name">user</p>\n<pre>(.*?)</pre>', page, re.DOTALL)
    front, count, end = re.split(r'\n+<span class="gap">… ([\d,]+) characters left out …</span>\n', cut)
    view = next(v for v in run.traces if v.answers[0].attempts[0].calls)
    prompt = next(text for role, text in view.answers[0].attempts[0].calls[0].messages if role == "user")
    assert len(unescape(front)) + len(unescape(end)) == 2400
    assert len(prompt) - 2400 == int(count.replace(",", ""))
    assert unescape(front) + unescape(end) == prompt[:1600] + prompt[-800:]
    assert end.endswith(escape(view.text))


def test_the_same_run_gives_the_same_page(run: ReportInput, page: str) -> None:
    assert to_html([run]) == page


def test_a_page_names_no_folder_of_the_machine_that_wrote_it(page: str, tmp_path: Path) -> None:
    assert str(tmp_path.parent) not in page
    assert "worlds/harbour" not in page
    assert time.strftime("%Y-%m-%d") not in page, "a page does not say when it was written: it would differ each time"

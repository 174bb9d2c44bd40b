"""Tests the HTML report in headless Chromium: no requests, usable by keyboard, at any width, dark, light, printed."""

from __future__ import annotations

import base64
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from memarena.cli.scores import report_run
from memarena.report.render.html import to_html

from ..support import grid_run
from ..support.logs import write_log

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

CHROMIUM = os.environ.get("MEMARENA_CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium found: apt install chromium, or MEMARENA_CHROMIUM"
)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of ten cells whose answers contain markup and scripts."""
    folder = tmp_path_factory.mktemp("page")
    run = report_run(write_log(folder / "run", grid_run.records(12, prompt_words=400)), traces=True)
    path = folder / "report.html"
    path.write_text(to_html([run]), encoding="utf-8")
    return path


PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
"""An image of one pixel."""


class Watched:
    """A page that records its requests and its errors."""

    def __init__(self, page: Page, file: Path) -> None:
        self.page = page
        self.requests: list[str] = []
        self.answered: list[str] = []
        self.complaints: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("requestfinished", lambda request: self.answered.append(request.url))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", self._dismiss)
        page.goto(file.as_uri())

    def _dismiss(self, dialog: Dialog) -> None:
        self.complaints.append(dialog.message)
        dialog.dismiss()


def test_the_page_makes_no_request_and_has_no_errors(browser: Browser, file: Path) -> None:
    page = browser.new_page()
    watched = Watched(page, file)
    traces = page.query_selector_all("details.question-trace")
    assert traces
    for trace in traces:
        trace.evaluate("element => element.open = true")
    page.wait_for_timeout(200)
    assert watched.requests == [file.as_uri()]
    assert watched.complaints == []
    page.close()


def test_a_request_of_the_page_would_be_detected(browser: Browser, file: Path, tmp_path: Path) -> None:
    """The control of the test above: without the policy an injected image and script are detected."""
    broken = re.sub(r'<meta http-equiv="Content-Security-Policy".*?>', "", file.read_text(encoding="utf-8"))
    broken = broken.replace("</main>", '<img src="x.png"><script>console.log("ran")</script></main>')
    (tmp_path / "x.png").write_bytes(PIXEL)
    path = tmp_path / "broken.html"
    path.write_text(broken, encoding="utf-8")
    page = browser.new_page()
    watched = Watched(page, path)
    page.wait_for_timeout(200)
    assert any(url.endswith("x.png") for url in watched.answered)
    assert "ran" in watched.complaints
    page.close()


def test_the_policy_blocks_injected_elements(browser: Browser, file: Path, tmp_path: Path) -> None:
    text = file.read_text(encoding="utf-8")
    (tmp_path / "x.png").write_bytes(PIXEL)
    path = tmp_path / "injected.html"
    injected = '<img src="x.png"><script>window.ran = 1</script></main>'
    path.write_text(text.replace("</main>", injected), encoding="utf-8")
    page = browser.new_page()
    watched = Watched(page, path)
    page.wait_for_timeout(200)
    assert watched.answered == [path.as_uri()]
    assert page.evaluate("window.ran") is None
    assert any("Content Security Policy" in complaint for complaint in watched.complaints)
    page.close()


def test_every_trace_is_reached_by_tab_and_opened_by_enter(browser: Browser, file: Path) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    Watched(page, file)
    traces = page.locator("details.question-trace").count()
    assert traces > 100
    reached = set()
    for _ in range(1200):
        page.keyboard.press("Tab")
        position = page.evaluate(
            "[...document.querySelectorAll('details.question-trace > summary')].indexOf(document.activeElement)"
        )
        if position >= 0:
            reached.add(position)
        if position == traces - 1:
            break
    assert reached == set(range(traces))
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.parentElement.open") is True
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.close()


@pytest.mark.parametrize("width", [400, 800, 1400])
def test_nothing_overflows_sideways(browser: Browser, file: Path, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    Watched(page, file)
    page.evaluate("document.querySelectorAll('details').forEach(element => element.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_enough_contrast_in_light_and_dark(browser: Browser, file: Path, scheme: str) -> None:
    """WCAG AA: a contrast of 4.5 between every text and its background."""
    page = browser.new_page(color_scheme=scheme)  # type: ignore[arg-type]
    Watched(page, file)
    page.evaluate("document.querySelectorAll('details').forEach((element, i) => element.open = i < 40)")
    worst = page.evaluate(_CONTRAST)
    assert worst["ratio"] >= 4.5, worst
    assert worst["seen"] > 1000
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    page.close()


_CONTRAST = """() => {
  const parse = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const f = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b);
  };
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = parse(getComputedStyle(e).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
  };
  let worst = {ratio: 99}, seen = 0;
  for (const element of document.querySelectorAll('body *:not(style)')) {
    const own = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const ink = parse(element.namespaceURI.includes('svg') ? style.fill : style.color);
    const [a, b] = [light(ink), light(behind(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    seen += 1;
    if (ratio < worst.ratio) worst = {ratio, text: element.textContent.slice(0, 60), tag: element.tagName};
  }
  return {...worst, seen};
}"""


def test_a_click_on_a_title_sorts_a_table_by_its_figures(browser: Browser, file: Path) -> None:
    """Largest first, then smallest first; rows without a figure stay last; by keyboard as well."""
    page = browser.new_page()
    Watched(page, file)
    table = page.locator("section.summary table").first
    titles = table.locator("thead th").all_inner_texts()
    index = next(n for n, title in enumerate(titles) if title.startswith("right"))

    def figures() -> list[float]:
        cells = table.locator(f"tbody tr > :nth-child({index + 1})").all_inner_texts()
        matches = [re.search(r"[\d.]+", cell) for cell in cells]
        last = [n for n, match in enumerate(matches) if match is None]
        assert last == list(range(len(matches) - len(last), len(matches)))
        return [float(match[0]) for match in matches if match]

    button = table.locator("thead button").nth(index)
    button.click()
    assert figures() == sorted(figures(), reverse=True)
    assert len(set(figures())) > 1
    button.press("Enter")
    assert figures() == sorted(figures())
    assert table.locator("thead th").nth(index).get_attribute("aria-sort") == "ascending"
    page.close()


def test_find_keeps_rows_and_questions_that_contain_all_words(browser: Browser, file: Path) -> None:
    """Chapters with a match are opened; with an empty field the page is as before."""
    page = browser.new_page()
    Watched(page, file)
    traces = page.locator("details.question-trace")
    every = traces.count()
    shut = page.locator("details.chapter:not([open])").count()
    page.fill("#find", "wrong bm25")
    visible = [trace for trace in traces.all() if trace.is_visible()]
    assert 0 < len(visible) < every
    assert all("wrong" in (trace.text_content() or "").lower() for trace in visible)
    page.fill("#find", "bm25")
    assert page.locator("details.chapter:not([open])").count() < shut
    rows = [row for row in page.locator("main details.chapter tbody tr").all() if row.is_visible()]
    assert rows and all("bm25" in (row.text_content() or "") for row in rows)
    page.fill("#find", "no such word anywhere")
    assert not any(trace.is_visible() for trace in traces.all())
    page.fill("#find", "")
    assert all(trace.is_visible() for trace in traces.all())
    assert page.locator("details.chapter:not([open])").count() == shut
    page.close()


def test_print_has_every_table_complete_on_a_reasonable_number_of_pages(browser: Browser, file: Path) -> None:
    page = browser.new_page(viewport={"width": 688, "height": 1000})  # the width of A4 between its margins
    Watched(page, file)
    page.emulate_media(media="print")
    pages = len(re.findall(rb"/Type\s*/Page\b", page.pdf(prefer_css_page_size=True)))
    assert 8 <= pages <= 40
    cut = page.evaluate(
        "[...document.querySelectorAll('table, svg, pre')]"
        ".filter(e => e.getBoundingClientRect().right > innerWidth + 1)"
        ".map(e => e.textContent.slice(0, 40))"
    )
    assert cut == []
    hidden = page.evaluate("[...document.querySelectorAll('.legend dd')].filter(e => !e.checkVisibility()).length")
    assert hidden == 0, "legends are open on paper"
    assert page.evaluate("document.querySelector('nav').checkVisibility()") is False
    page.close()

"""Tests exported pages: complete, linked to each other, usable from a file system."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from memarena.cli.main import app
from memarena.viewer.errors import ViewerError
from memarena.viewer.export import export
from typer.testing import CliRunner

from .conftest import CHROMIUM, SCRIPT, SECRET_GOLD, Site

if TYPE_CHECKING:
    from playwright.sync_api import Page

LIMIT = 25


@pytest.fixture(scope="module")
def out(site: Site, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs as files."""
    folder = tmp_path_factory.mktemp("export") / "pages"
    site.page(site.run("lab"))
    export([site.folder / name for name in ("lab", "hostile", "damaged")], "value", folder, site.caches, limit=LIMIT)
    return folder


def test_every_link_leads_to_a_page_and_every_page_is_led_to(out: Path) -> None:
    pages = {path.resolve(): path.read_text(encoding="utf-8") for path in out.rglob("*.html")}
    reached, waiting = set(), [(out / "index.html").resolve()]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for href in re.findall(r'href="([^"#]+)"', pages[page]):
            target = (page.parent / unescape(href)).resolve()
            assert target.is_file(), (page, href)
            if target.suffix == ".html":
                waiting.append(target)
    assert reached == set(pages)


def test_as_many_questions_have_a_page_as_the_limit_says(out: Path, site: Site) -> None:
    assert len(list((out / site.keys["lab"] / "question").iterdir())) == LIMIT
    assert len(list((out / site.keys["hostile"] / "question").iterdir())) == 5


def test_files_hold_no_script_and_no_gold_and_ask_nobody(out: Path, site: Site) -> None:
    for path in out.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"<script|<form|hx-|<[a-z][^>]*\s(?:style|on\w+)=|(?:src|href)=\"(?:/|https?:)", text), (
            path
        )
        assert SECRET_GOLD not in text
        assert "script-src 'none'" in text
    page_text = "".join(unescape(p.read_text(encoding="utf-8")) for p in (out / site.keys["hostile"]).rglob("*.html"))
    assert SCRIPT in page_text


def test_gold_is_written_where_it_is_asked_for(site: Site, tmp_path: Path) -> None:
    export([site.folder / "hostile"], "value", tmp_path / "pages", site.caches, gold=True)
    assert any(SECRET_GOLD in path.read_text(encoding="utf-8") for path in (tmp_path / "pages").rglob("*.html"))


def test_a_log_that_cannot_be_read_has_its_page(out: Path, site: Site) -> None:
    text = (out / site.keys["damaged"] / "index.html").read_text(encoding="utf-8")
    assert "This run cannot be shown" in text


def test_where_no_run_can_be_shown_that_is_an_error(site: Site, tmp_path: Path) -> None:
    with pytest.raises(ViewerError, match="--judge nope: no verdict by this judge"):
        export([site.folder / "lab"], "nope", tmp_path / "pages", site.caches)
    with pytest.raises(ViewerError, match="damaged"):
        export([site.folder / "damaged"], "value", tmp_path / "pages", site.caches)


def test_nothing_that_is_there_is_overwritten(site: Site, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ViewerError, match="not empty"):
        export([site.folder / "lab"], "value", tmp_path, site.caches)
    result = CliRunner().invoke(app, ["view", str(site.folder / "lab"), "--export", str(tmp_path)])
    assert "not empty" in str(result.exception)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def no_sideways_scrolling(page: Page) -> None:
    for width in (1400, 800, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width, page.url


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: apt install chromium, or MEMARENA_CHROMIUM")
def test_files_open_from_a_file_system_with_their_style(out: Path, site: Site) -> None:
    from playwright.sync_api import expect, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        page = browser.new_page(viewport={"width": 390, "height": 900})
        complaints: list[str] = []
        page.on("console", lambda message: complaints.append(message.text))
        page.goto((out / "index.html").as_uri())
        page.get_by_role("link", name="lab", exact=True).click()
        expect(page.locator("main table.grid")).to_have_count(1)
        no_sideways_scrolling(page)
        assert page.evaluate("getComputedStyle(document.querySelector('main table')).borderCollapse") == "collapse"
        page.locator("a.figure").first.click()
        page.locator("ol.answers").wait_for()
        no_sideways_scrolling(page)
        page.locator("ol.answers a").first.click()
        expect(page.get_by_role("heading", name="The fact's way")).to_have_count(1)
        no_sideways_scrolling(page)
        assert complaints == []
        browser.close()

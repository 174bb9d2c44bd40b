"""Tests the viewer in headless Chromium: every width, keyboard only, without JavaScript, dark and light."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING, Literal

import pytest
from memarena.log.store import LogWriter
from memarena.viewer.found_runs import find_runs

from ..support import grid_run
from .conftest import CHROMIUM, Site

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no Chromium found: apt install chromium, or MEMARENA_CHROMIUM"
)
SIDE = "?cell=bm25%40large-8b/s1&cell=oracle%40large-8b/s1&view=side"
GRAVE = ("serious", "critical")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def paths(site: Site) -> list[str]:
    """Every kind of page, caches built."""
    page_paths = [
        "/",
        site.run("lab"),
        site.run("lab", "/questions"),
        site.run("lab", f"/questions{SIDE}&gold=1"),
        site.question("lab", "ego_00_q005", f"{SIDE}&gold=1"),
        site.question("hostile", "q_long", "?gold=1"),
        site.run("hostile", "/questions"),
        site.run("lab", "/charts"),
        site.run("lab", "/progress"),
        site.run("damaged"),
        "/nothing",
    ]
    for path in page_paths:
        site.page(path)
    return page_paths


def entered(browser: Browser, site: Site, scheme: Literal["light", "dark"] = "light", *, script: bool = True) -> Page:
    """A page of a new context that has been let in."""
    context = browser.new_context(color_scheme=scheme, java_script_enabled=script)
    context.add_cookies([{"name": site.door.cookie, "value": site.door.token, "url": site.base}])
    return context.new_page()


def test_no_page_scrolls_sideways_at_any_width(browser: Browser, site: Site, paths: list[str]) -> None:
    page = entered(browser, site)
    for path in paths:
        page.goto(site.base + path)
        page.evaluate("document.querySelectorAll('details').forEach(element => element.open = true)")
        for width in (1400, 800, 390):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == width, (path, width)
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_grave(
    browser: Browser, site: Site, paths: list[str], scheme: Literal["light", "dark"]
) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page = entered(browser, site, scheme)
    page.set_viewport_size({"width": 1400, "height": 900})
    for path in paths:
        page.goto(site.base + path)
        page.evaluate("document.querySelectorAll('details').forEach((element, i) => element.open = i < 3)")
        violations = Axe().run(page).response["violations"]
        grave = [(v["id"], v["nodes"][0]["html"][:200]) for v in violations if v["impact"] in GRAVE]
        assert grave == [], path
    page.context.close()


def test_axe_would_find_something_grave(browser: Browser, site: Site) -> None:
    """The check above, seen to fail."""
    from axe_playwright_python.sync_playwright import Axe

    page = entered(browser, site)
    page.goto(site.base)
    page.evaluate("document.querySelector('main').innerHTML += '<img src=x><button></button>'")
    violation_ids = {v["id"] for v in Axe().run(page).response["violations"] if v["impact"] in GRAVE}
    assert {"image-alt", "button-name"} <= violation_ids
    page.context.close()


def test_nothing_is_complained_of_and_nothing_else_is_asked(browser: Browser, site: Site, paths: list[str]) -> None:
    page = entered(browser, site)
    complaints: list[str] = []
    urls: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: urls.append(request.url))
    for path in paths[:-2]:
        page.goto(site.base + path)
        assert page.evaluate("window.ran") is None
    assert complaints == []
    assert {url.split("/")[2] for url in urls} == {site.base.removeprefix("http://")}
    page.context.close()


def test_filters_work_by_keyboard_alone_without_javascript(browser: Browser, site: Site, paths: list[str]) -> None:
    from playwright.sync_api import expect

    page = entered(browser, site, script=False)
    page.goto(site.base + paths[2])
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.locator("input[name=q]:focus").count():
            break
    page.keyboard.type("no idea")
    page.keyboard.press("Tab")
    assert page.locator("select[name=outcome]:focus").count() == 1
    page.keyboard.type("wrong")
    page.keyboard.press("Enter")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.locator("form button:focus").count():
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**q=no+idea**")
    assert "outcome=wrong" in page.url
    expect(page.locator("ol.answers > li")).to_have_count(50)
    assert set(page.locator("ol.answers .outcome").all_inner_texts()) == {"✗ wrong"}
    page.context.close()


def test_with_javascript_filters_act_as_they_are_chosen_and_the_address_keeps_them(
    browser: Browser, site: Site, paths: list[str]
) -> None:
    from playwright.sync_api import expect

    page = entered(browser, site)
    complaints: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.goto(site.base + paths[2])
    page.evaluate("window.same = true")
    page.select_option("select[name=outcome]", "wrong")
    page.wait_for_url("**/questions?outcome=wrong")
    page.focus("#text")
    page.keyboard.type("no idea")
    page.wait_for_url("**/questions?outcome=wrong&q=no+idea")
    assert page.evaluate("document.activeElement.id") == "text"
    expect(page.get_by_label("Filters that are set").get_by_role("link")).to_have_count(2)
    page.get_by_role("link", name="tokens", exact=True).click()
    page.wait_for_url("**&sort=tokens")
    expect(page.locator("#text")).to_have_value("no idea")
    page.get_by_role("link", name="text: no idea").click()
    page.wait_for_url("**/questions?outcome=wrong&sort=tokens")
    expect(page.locator("#text")).to_have_value("")
    assert page.evaluate("window.same") is True
    count_text = page.locator(".said").inner_text()
    page.reload()
    expect(page.locator(".said")).to_have_text(count_text)
    page.goto(site.base + paths[1])
    page.evaluate("window.same = true")
    page.get_by_text("Choose columns").click()
    page.check("#column-D1")
    page.wait_for_url("**column=D1**")
    expect(page.locator("thead th", has_text="D1")).to_have_count(1)
    assert page.evaluate("[window.same, document.activeElement.id]") == [True, "column-D1"]
    assert page.evaluate("localStorage.length") == 0
    assert page.evaluate("Object.keys(sessionStorage)") == ["htmx-current-path-for-history"], "an address, no text"
    assert complaints == []
    page.context.close()


def test_a_server_that_does_not_know_the_token_any_more_says_so_to_scripts_too(
    browser: Browser, site: Site, paths: list[str]
) -> None:
    page = entered(browser, site)
    page.goto(site.base + paths[2])
    page.context.clear_cookies()
    page.select_option("select[name=outcome]", "wrong")
    page.get_by_role("heading", name="Not open").wait_for()
    page.context.close()


def test_from_a_run_to_an_answer_in_three_links(browser: Browser, site: Site, paths: list[str]) -> None:
    from playwright.sync_api import expect

    page = entered(browser, site, script=False)
    page.goto(site.base)
    page.get_by_role("link", name="lab", exact=True).click()
    page.locator("tbody tr:has(th:text-is('bm25')) a.figure").first.click()
    page.locator("ol.answers a").first.click()
    expect(page.get_by_role("heading", name="The fact's way")).to_have_count(1)
    expect(page.locator("h2", has_text="bm25@small-0.6b/s1")).to_have_count(1)
    page.context.close()


def test_progress_moves_while_the_run_is_written_and_says_when_it_is_over(browser: Browser, site: Site) -> None:
    from playwright.sync_api import expect

    *records, end = grid_run.records(1, prompt_words=20)
    assert end.kind == "run_ended"
    half = len(records) // 2
    page = entered(browser, site)
    with LogWriter(site.folder / "live") as log:
        log.append(*records[:half])
        (run,) = find_runs([site.folder / "live"])
        page.goto(f"{site.base}/run/{run.key}/progress")
        asked_count = sum(record.kind == "asked" for record in records[:half])
        expect(page.locator("p [data-asked]")).to_have_text(str(asked_count))
        page.evaluate("window.same = true")
        log.append(*records[half:])
        expect(page.locator("p [data-asked]")).to_have_text("120")
        assert page.evaluate("window.same") is True
        assert page.evaluate("document.querySelector('[data-whole]').value") == 120
        log.append(end)
        page.get_by_text("The run is complete.").wait_for()
    page.context.close()
    shutil.rmtree(site.folder / "live")


def test_the_page_of_runs_follows_all_that_are_written_and_those_that_begin(browser: Browser, site: Site) -> None:
    from playwright.sync_api import expect

    *records, end = grid_run.records(1, prompt_words=20)
    half = len(records) // 2
    page = entered(browser, site)
    names = [f"live{n}" for n in range(5)]
    with ExitStack() as stack:
        logs = [stack.enter_context(LogWriter(site.folder / name)) for name in names[:4]]
        for log in logs:
            log.append(*records[:half])
        page.goto(site.base)
        page.evaluate("window.same = true")
        for log in logs:
            log.append(*records[half:])
        for name in names[:4]:
            expect(page.get_by_role("row", name=f"{name} being written 120")).to_have_count(1)
        assert page.evaluate("window.same") is True
        stack.enter_context(LogWriter(site.folder / names[4])).append(*records[:half])
        expect(page.get_by_role("row", name=f"{names[4]} being written")).to_have_count(1)
        logs[0].append(end)
        expect(page.get_by_role("row", name=f"{names[0]} completed")).to_have_count(1)
    page.context.close()
    for name in names:
        shutil.rmtree(site.folder / name)

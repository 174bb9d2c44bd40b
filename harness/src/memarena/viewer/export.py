"""The same pages as files: what links lead to is written too, as far as it is bounded, and other links become text."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from html import escape, unescape
from pathlib import Path, PurePosixPath
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

from memarena.log.store import LogError
from memarena.scoring.errors import ScoringError
from memarena.viewer.cache_build import build
from memarena.viewer.cache_file import best_row, cache_path, fit, key_of, opened
from memarena.viewer.errors import ViewerError
from memarena.viewer.found_runs import FoundRun, find_runs, read_head
from memarena.viewer.pages import Pages
from memarena.viewer.queries import Cache
from memarena.viewer.runs_page import runs_page
from memarena.viewer.selection import Selection
from memarena.viewer.static_files import STATIC
from memarena.viewer.templating import render

LIMIT = 200
"""Questions of a run that get a page."""
_LINK = re.compile(r'<a\b([^>]*?)\bhref="([^"]*)"([^>]*)>(.*?)</a>', re.DOTALL)
_FILE = re.compile(r'(<link\b[^>]*\bhref=")/static/([^"]+)"')
_STYLES = ("report.css", "viewer.css", "icon.svg")


def export(
    paths: Sequence[Path],
    judge: str,
    out: Path,
    caches: Path,
    *,
    limit: int = LIMIT,
    gold: bool = False,
    told: Callable[[str], None] = lambda _: None,
) -> int:
    """Write the pages of runs to a folder; returns how many.

    Args:
        paths: runs, or folders that hold some.
        judge: whose verdicts count.
        out: a folder that is not there yet, or empty.
        caches: folder of the caches.
        limit: questions of each run that get a page; lists hold their first page.
        gold: with right answers, and reasons that may tell them.
        told: gets a line for each run.

    Raises:
        ViewerError: there is no run, or none that can be shown, or the folder holds something or cannot be written.
    """
    runs = find_runs(paths)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            raise ViewerError(f"--export {out}: this folder is not empty; expected a new one")
        with ExitStack() as stack:
            site = _Site(out, gold)
            site.later("/", partial(_runs_page, runs, judge, caches))
            faults = []
            for run in runs:
                told(f"{run.folder}")
                if fault := _export_run(site, run, judge, caches, limit, stack):
                    faults.append(fault if fault.startswith(str(run.folder)) else f"{run.folder}: {fault}")
            if len(faults) == len(runs):
                raise ViewerError(faults[0])
            for fault in faults:
                told(f"warning: {fault}")
            for name in _STYLES:
                (out / "static").mkdir(exist_ok=True)
                (out / "static" / name).write_bytes(STATIC[name][1].read_bytes())
            site.link_all()
    except OSError as error:
        raise ViewerError(f"--export {out}: cannot be written: {error.strerror}") from error
    return len(site.pages)


def _runs_page(runs: Sequence[FoundRun], judge: str, caches: Path) -> str:
    best = {run.folder: best_row(cache_path(caches, run.folder, judge), key_of(run.folder, judge)) for run in runs}
    return runs_page([read_head(run) for run in runs], best=best, static=True)


class _Site:
    """Pages by their address on the server, written with their links turned to each other."""

    def __init__(self, out: Path, gold: bool) -> None:
        self.out = out
        self.gold = gold
        self.pages: dict[str, Callable[[], str]] = {}

    def later(self, address: str, make: Callable[[], str]) -> None:
        """Have a page made when it is written: it leads nowhere that is not there anyway."""
        self.pages[address] = make

    def write(self, address: str, page: str, *, limit: int) -> list[str]:
        """Keep a page; returns the addresses that it leads to, none twice, at most ``limit``."""
        self.pages[address] = lambda: page
        found = dict.fromkeys(_resolved(address, unescape(link[2])) for link in _LINK.finditer(page))
        return [each for each in found if each not in self.pages][:limit]

    def link_all(self) -> None:
        """Write every page, now that it is known which there are."""
        for address, make in self.pages.items():
            page, place = make(), _file(address)
            up = "../" * (len(PurePosixPath(place).parts) - 1)
            linked = _LINK.sub(lambda link: self._turned(link, address, up), page)  # noqa: B023 (used at once)
            linked = _FILE.sub(lambda found: f'{found[1]}{up}static/{found[2]}"', linked)  # noqa: B023 (used at once)
            path = self.out / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(linked, encoding="utf-8")

    def _turned(self, link: re.Match[str], address: str, up: str) -> str:
        before, href, after, inner = link.groups()
        if href.startswith("#"):
            return link[0]
        target = _resolved(address, unescape(href))
        if target not in self.pages:
            return f'<span class="unlinked">{inner}</span>'
        return f'<a{before}href="{escape(up + _file(target))}"{after}>{inner}</a>'


def _export_run(site: _Site, run: FoundRun, judge: str, caches: Path, limit: int, stack: ExitStack) -> str:
    """The pages of a run: its own, the lists that its grid leads to, and questions of these lists in turn.

    Returns why the run cannot be shown, which is then its only page; empty if it can.
    """
    head, base = read_head(run), f"/run/{run.key}"
    try:
        if head.state in ("unreadable", "empty"):
            raise LogError(head.fault)
        path = cache_path(caches, run.folder, judge)
        if fit(path, key_of(run.folder, judge)) != "current":
            build(run.folder, judge, path, told=lambda _: None)
        pages = Pages(head, Cache(stack.enter_context(opened(path))), older=False, static=True)
        grid = pages.grid([], "")
    except (LogError, ScoringError, sqlite3.Error) as error:
        told = render("message", static=True, title="This run cannot be shown", text=str(error), head=None)
        site.write(base, told, limit=0)
        return str(error)
    leads = site.write(base, grid, limit=10_000)
    site.write(f"{base}/charts", pages.charts(), limit=0)
    site.write(f"{base}/progress", render("progress", static=True, head=head), limit=0)
    lists = [f"{base}/questions", *(each for each in leads if each.startswith(f"{base}/questions?"))]
    waiting: list[deque[str]] = []
    for address in dict.fromkeys(lists):
        chosen = Selection.of([*parse_qsl(urlsplit(address).query), *([("gold", "1")] if site.gold else [])])
        found = site.write(address, pages.questions(chosen), limit=10_000)
        waiting.append(deque(each for each in found if each.startswith(f"{base}/question/")))
    for address in _in_turn(waiting, limit):
        parts = urlsplit(address)
        query = parse_qsl(parts.query)
        instance = unquote(parts.path.rpartition("/")[2])
        cells = [value for key, value in query if key == "cell"]
        site.later(address, partial(_question, pages, instance, cells, gold=site.gold))
    return ""


def _question(pages: Pages, instance: str, cells: Sequence[str], *, gold: bool) -> str:
    page = pages.question(instance, cells, gold=gold)
    assert page is not None, "lists name questions that the run has"
    return page


def _in_turn(waiting: Iterable[deque[str]], limit: int) -> list[str]:
    """The first of each, then the second of each, none twice, until there are enough."""
    left, found = [each for each in waiting if each], dict[str, None]()
    while left and len(found) < limit:
        for some in left:
            if len(found) < limit:
                found.setdefault(some.popleft())
        left = [each for each in left if each]
    return list(found)


def _resolved(address: str, href: str) -> str:
    """The address that a link of a page leads to, without an anchor."""
    target = href.partition("#")[0]
    path, _, query = (f"{address.partition('?')[0]}{target}" if target.startswith("?") else target).partition("?")
    pairs = parse_qsl(query)
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _file(address: str) -> str:
    """The file of an address; what a file system does not take in a name is hashed."""
    parts = urlsplit(address)
    _, run, *rest = parts.path.strip("/").split("/") if parts.path != "/" else ("", "", "")
    if not run:
        return "index.html"
    if not rest:
        return f"{run}/index.html"
    if rest[0] in ("charts", "progress") or (rest[0] == "questions" and not parts.query):
        return f"{run}/{rest[0]}.html"
    name = hashlib.sha256(address.encode()).hexdigest()[:16]
    return f"{run}/{rest[0]}/{name}.html"

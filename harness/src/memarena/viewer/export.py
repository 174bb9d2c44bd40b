"""Exports the viewer's pages as static files: the pages of runs and, up to a limit, of the questions that they link to.

A link to a page that is not exported becomes plain text.
"""

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
"""Default number of questions of a run that get a page."""
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
    report_progress: Callable[[str], None] = lambda _: None,
) -> int:
    """Write the pages of runs to a folder and return the number of pages.

    Args:
        paths: folders of runs, or folders that contain runs.
        judge: name of the judge whose verdicts count.
        out: a folder that does not exist yet, or is empty.
        caches: folder of the caches.
        limit: questions of each run that get a page; of a list only the first page is exported.
        gold: whether pages show right answers, and reasons that may contain them.
        report_progress: called with a line of progress for each run, and with warnings.

    Raises:
        ViewerError: no run exists or can be shown, or the folder is not empty or cannot be written.
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
                report_progress(f"{run.folder}")
                if fault := _export_run(site, run, judge, caches, limit, stack):
                    faults.append(fault if fault.startswith(str(run.folder)) else f"{run.folder}: {fault}")
            if len(faults) == len(runs):
                raise ViewerError(faults[0])
            for fault in faults:
                report_progress(f"warning: {fault}")
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
    """Pages by their address on the server; writes them with links that lead from file to file."""

    def __init__(self, out: Path, gold: bool) -> None:
        self.out = out
        self.gold = gold
        self.pages: dict[str, Callable[[], str]] = {}

    def later(self, address: str, make: Callable[[], str]) -> None:
        """Add a page that is rendered only when it is written; no page is added for its links."""
        self.pages[address] = make

    def write(self, address: str, page: str, *, limit: int) -> list[str]:
        """Add a page; return the addresses that it links to and that have no page yet, each once, at most ``limit``."""
        self.pages[address] = lambda: page
        links = dict.fromkeys(_resolved(address, unescape(link[2])) for link in _LINK.finditer(page))
        return [target for target in links if target not in self.pages][:limit]

    def link_all(self) -> None:
        """Write all pages to files; call it when every page has been added."""
        for address, make in self.pages.items():
            page, file = make(), _file(address)
            to_root = "../" * (len(PurePosixPath(file).parts) - 1)
            relinked = _LINK.sub(lambda link: self._turned(link, address, to_root), page)  # noqa: B023 (used at once)
            relinked = _FILE.sub(lambda match: f'{match[1]}{to_root}static/{match[2]}"', relinked)  # noqa: B023 (used at once)
            path = self.out / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(relinked, encoding="utf-8")

    def _turned(self, link: re.Match[str], address: str, up: str) -> str:
        before, href, after, inner = link.groups()
        if href.startswith("#"):
            return link[0]
        target = _resolved(address, unescape(href))
        if target not in self.pages:
            return f'<span class="unlinked">{inner}</span>'
        return f'<a{before}href="{escape(up + _file(target))}"{after}>{inner}</a>'


def _export_run(site: _Site, run: FoundRun, judge: str, caches: Path, limit: int, stack: ExitStack) -> str:
    """Add the pages of a run: grid, charts, progress, the lists that the grid links to, and questions of these lists.

    Returns an empty string, or the error of a run that cannot be shown, which is then its only page.
    """
    head, base = read_head(run), f"/run/{run.key}"
    try:
        if head.state in ("unreadable", "empty"):
            raise LogError(head.fault)
        path = cache_path(caches, run.folder, judge)
        if fit(path, key_of(run.folder, judge)) != "current":
            build(run.folder, judge, path, report_progress=lambda _: None)
        pages = Pages(head, Cache(stack.enter_context(opened(path))), older=False, static=True)
        grid = pages.grid([], "")
    except (LogError, ScoringError, sqlite3.Error) as error:
        page = render("message", static=True, title="This run cannot be shown", text=str(error), head=None)
        site.write(base, page, limit=0)
        return str(error)
    linked = site.write(base, grid, limit=10_000)
    site.write(f"{base}/charts", pages.charts(), limit=0)
    site.write(f"{base}/progress", render("progress", static=True, head=head), limit=0)
    lists = [f"{base}/questions", *(link for link in linked if link.startswith(f"{base}/questions?"))]
    queues: list[deque[str]] = []
    for address in dict.fromkeys(lists):
        selection = Selection.of([*parse_qsl(urlsplit(address).query), *([("gold", "1")] if site.gold else [])])
        questions = site.write(address, pages.questions(selection), limit=10_000)
        queues.append(deque(link for link in questions if link.startswith(f"{base}/question/")))
    for address in _in_turn(queues, limit):
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
    """Return up to ``limit`` addresses: the first of each queue, then the second of each, without duplicates."""
    queues, addresses = [nonempty for nonempty in waiting if nonempty], dict[str, None]()
    while queues and len(addresses) < limit:
        for queue in queues:
            if len(addresses) < limit:
                addresses.setdefault(queue.popleft())
        queues = [nonempty for nonempty in queues if nonempty]
    return list(addresses)


def _resolved(address: str, href: str) -> str:
    """Return the address on the server to which ``href`` on the page ``address`` leads, without its anchor."""
    target = href.partition("#")[0]
    path, _, query = (f"{address.partition('?')[0]}{target}" if target.startswith("?") else target).partition("?")
    pairs = parse_qsl(query)
    return f"{path}?{urlencode(pairs)}" if pairs else path


def _file(address: str) -> str:
    """Return the relative path of an address's file; addresses with a query or a question's id are hashed."""
    parts = urlsplit(address)
    _, run, *subpath = parts.path.strip("/").split("/") if parts.path != "/" else ("", "", "")
    if not run:
        return "index.html"
    if not subpath:
        return f"{run}/index.html"
    if subpath[0] in ("charts", "progress") or (subpath[0] == "questions" and not parts.query):
        return f"{run}/{subpath[0]}.html"
    name = hashlib.sha256(address.encode()).hexdigest()[:16]
    return f"{run}/{subpath[0]}/{name}.html"

"""Defines the viewer's web application: its routes and their handlers.

The log is only read; reviews are written to a separate file in the run's folder.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from aiohttp import web
from aiohttp.typedefs import Handler

from memarena.log.reviews import Review, Reviews
from memarena.log.store import LogError
from memarena.report.render.html.environment import visible
from memarena.viewer.building import CACHE_FAULTS, Build, Caches, Ready
from memarena.viewer.cache_file import opened, remove_old
from memarena.viewer.errors import ViewerError
from memarena.viewer.found_runs import FoundRun, Heads, RunHead, find_runs
from memarena.viewer.pages import Pages
from memarena.viewer.queries import Cache
from memarena.viewer.reviewing import REVIEWER_COOKIE, author_of, cookie_of, reviews_csv, reviews_json
from memarena.viewer.runs_page import runs_page
from memarena.viewer.security import Door, guard
from memarena.viewer.selection import Selection
from memarena.viewer.static_files import static_file
from memarena.viewer.templating import render

UPDATE_SECONDS = 1.0
"""Pause between two reads of a run that is being written."""
UNREADABLE = 422
REVIEWER_KEPT_S = 365 * 86_400
"""Seconds for which a browser keeps its reviewer's name."""


@dataclass
class Viewer:
    """State that the handlers share."""

    paths: Sequence[Path]
    caches: Caches
    heads: Heads
    ending: asyncio.Event
    """Set on shutdown, to end the streams of server-sent events."""

    def runs(self) -> list[FoundRun]:
        """Return the runs that exist now. Raises ViewerError if a path has none."""
        return find_runs(self.paths)


VIEWER = web.AppKey("viewer", Viewer)


def make_app(paths: Sequence[Path], judge: str, door: Door, caches: Path) -> web.Application:
    """Return the application that shows the runs at or below the paths.

    Args:
        paths: folders of runs, or folders that contain runs.
        judge: name of the judge whose verdicts count.
        door: the token and host that requests must have.
        caches: folder of the caches.
    """
    app = web.Application(middlewares=[guard(door), _faults])
    viewer = Viewer(paths, Caches(judge, caches), Heads(), asyncio.Event())
    app[VIEWER] = viewer
    app.add_routes(
        [
            web.get("/", _runs),
            web.get("/events", _events_of_all),
            web.get("/static/{name}", static_file),
            web.get("/run/{run}", _grid),
            web.get("/run/{run}/questions", _questions),
            web.get("/run/{run}/question/{instance}", _question),
            web.get("/run/{run}/question/{instance}/text", _text),
            web.post("/run/{run}/question/{instance}/review", _review),
            web.get("/run/{run}/reviews.{form:json|csv}", _reviews),
            web.get("/run/{run}/charts", _charts),
            web.get("/run/{run}/progress", _progress),
            web.get("/run/{run}/events", _events),
        ]
    )
    app.on_startup.append(_on_startup)
    app.on_shutdown.append(_on_shutdown)
    app.on_cleanup.append(_on_cleanup)
    return app


async def _on_startup(app: web.Application) -> None:
    viewer = app[VIEWER]
    await asyncio.to_thread(remove_old, viewer.caches.folder)
    runs = await asyncio.to_thread(viewer.runs)
    if len(runs) == 1:
        # A single run will be opened: build its cache before the first request.
        await viewer.caches.of(runs[0])


async def _on_shutdown(app: web.Application) -> None:
    app[VIEWER].ending.set()


async def _on_cleanup(app: web.Application) -> None:
    await app[VIEWER].caches.close()


@web.middleware
async def _faults(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer errors of handlers with a page: no such page, a log that cannot be read, a run that is gone."""
    try:
        return await handler(request)
    except web.HTTPNotFound as error:
        text = "No such page." if error.text in (None, "404: Not Found") else error.text
        return _html("message", status=404, title="Not here", text=text, head=None)
    except LogError as error:
        return _html("message", status=UNREADABLE, title="This run cannot be shown", text=str(error), head=None)
    except ViewerError as error:
        # The folder was there when the server began.
        return _html("message", status=404, title="Gone", text=str(error), head=None)


# ------------------------------------------------------------------ pages


async def _runs(request: web.Request) -> web.Response:
    viewer = request.app[VIEWER]
    runs = await asyncio.to_thread(viewer.runs)
    heads = [await asyncio.to_thread(viewer.heads.of, run) for run in runs]
    best = await asyncio.to_thread(lambda: {run.folder: viewer.caches.best(run) for run in runs})
    return web.Response(text=runs_page(heads, viewer.caches.faults(), best), content_type="text/html")


async def _grid(request: web.Request) -> web.Response:
    """Answer with the grid; comparable runs named by ``with`` in the address are in the same table."""
    viewer, requested = request.app[VIEWER], request.query.getall("with", [])
    columns, sort = request.query.getall("column", []), request.query.get("sort", "")
    own_head = await _head(request)
    heads = [await asyncio.to_thread(viewer.heads.of, run) for run in await asyncio.to_thread(viewer.runs)]
    others = [
        head for head in heads if head.comparable_with == own_head.comparable_with and head.run.key != own_head.run.key
    ]
    in_table = [head for head in others if head.run.key in requested]
    paths = []
    for head in in_table:
        ready = await viewer.caches.of(head.run)
        if not isinstance(ready, Ready):
            return _building(head, ready)
        paths.append(ready.path)

    def made(pages: Pages) -> str:
        with contextlib.ExitStack() as stack:
            caches = [Cache(stack.enter_context(opened(path))) for path in paths]
            return pages.grid(columns, sort, list(zip(in_table, caches, strict=True)), others)

    return await _page(request, made)


async def _questions(request: web.Request) -> web.Response:
    selection = Selection.of(request.query.items())
    response = await _page(request, lambda pages: pages.questions(selection))
    if "HX-Request" in request.headers:
        # The form also sends empty fields; the address in the browser is without them.
        query = selection.query()
        response.headers["HX-Push-Url"] = f"{request.path}?{query}" if query else request.path
    return response


async def _charts(request: web.Request) -> web.Response:
    return await _page(request, lambda pages: pages.charts())


async def _question(request: web.Request) -> web.Response:
    instance, cells = request.match_info["instance"], request.query.getall("cell", [])
    gold = request.query.get("gold") == "1"
    author = author_of(request.cookies.get(REVIEWER_COOKIE))
    return await _page(request, lambda pages: pages.question(instance, cells, gold=gold, author=author))


async def _review(request: web.Request) -> web.StreamResponse:
    """Write the review of an answer, then redirect to the question."""
    instance = request.match_info["instance"]
    form = {key: value for key, value in (await request.post()).items() if isinstance(value, str)}
    head, ready = await _ready(request)
    if not isinstance(ready, Ready):
        return _building(head, ready)

    def written() -> Review:
        with opened(ready.path) as db:
            return Pages(head, Cache(db), ready.older).review(instance, form)

    try:
        review = await asyncio.to_thread(written)
    except (ViewerError, LogError) as error:
        return _html("message", status=UNREADABLE, title="Not saved", text=str(error), head=head)
    query = urlencode([pair for pair in parse_qsl(form.get("back", "")) if pair[0] in ("cell", "gold")])
    location = f"{request.rel_url.raw_path.removesuffix('/review')}?{query}"
    response = web.Response(status=303, headers={"Location": location})
    name = cookie_of(review.author)
    response.set_cookie(REVIEWER_COOKIE, name, httponly=True, samesite="Lax", path="/", max_age=REVIEWER_KEPT_S)
    return response


async def _reviews(request: web.Request) -> web.StreamResponse:
    """Answer with all reviews of a run, as a JSON or CSV file to download."""
    head, form = await _head(request), request.match_info["form"]
    if head.state in ("unreadable", "empty"):
        raise LogError(head.fault)
    reviews = await asyncio.to_thread(lambda: Reviews(head.run.folder, head.run_id).all())
    text = reviews_json(reviews) if form == "json" else reviews_csv(reviews)
    kind = "application/json" if form == "json" else "text/csv"
    disposition = {"Content-Disposition": f'attachment; filename="reviews.{form}"'}
    return web.Response(text=text, content_type=kind, charset="utf-8", headers=disposition)


async def _text(request: web.Request) -> web.Response:
    """Answer with the full text of something that the page of a question truncates."""
    instance, cell, part = request.match_info["instance"], request.query.get("cell", ""), request.query.get("part", "")
    head, ready = await _ready(request)
    if not isinstance(ready, Ready):
        return _building(head, ready)
    text = await asyncio.to_thread(lambda: Pages(head, None, ready.older).text(instance, cell, part))
    if text is None:
        raise web.HTTPNotFound(text="No such text.")
    return web.Response(text=visible(text), content_type="text/plain", charset="utf-8")


async def _page(request: web.Request, make: Callable[[Pages], str | None]) -> web.Response:
    """Answer with a page made in a thread from the run's cache; with the build's progress if there is no cache yet."""
    head, ready = await _ready(request)
    if not isinstance(ready, Ready):
        return _building(head, ready)

    def render() -> str | None:
        with opened(ready.path) as db:
            return make(Pages(head, Cache(db), ready.older))

    try:
        page = await asyncio.to_thread(render)
    except CACHE_FAULTS as error:
        ready.path.unlink(missing_ok=True)
        text = f"The cache of this run is damaged ({error}); reload the page to rebuild it."
        return _html("message", status=500, title="Rebuilt", text=text, head=head)
    if page is None:
        raise web.HTTPNotFound(text="This run has no such question.")
    return web.Response(text=page, content_type="text/html")


async def _ready(request: web.Request) -> tuple[RunHead, Ready | Build]:
    head = await _head(request)
    if head.state in ("unreadable", "empty"):
        raise LogError(head.fault)
    return head, await request.app[VIEWER].caches.of(head.run)


async def _head(request: web.Request) -> RunHead:
    viewer, key = request.app[VIEWER], request.match_info["run"]
    runs = await asyncio.to_thread(viewer.runs)
    run = next((candidate for candidate in runs if candidate.key == key), None)
    if run is None:
        raise web.HTTPNotFound(text="No such run.")
    return await asyncio.to_thread(viewer.heads.of, run)


def _building(head: RunHead, build: Build) -> web.Response:
    if build.fault:
        return _html("message", status=UNREADABLE, title="This log gives no scores", text=build.fault, head=head)
    return _html("building", head=head, build=build)


async def _progress(request: web.Request) -> web.Response:
    head = await _head(request)
    if head.state == "unreadable":
        raise LogError(head.fault)
    return _html("progress", head=head)


async def _events(request: web.Request) -> web.StreamResponse:
    """Send the progress of a run as server-sent events until the run ends or the client disconnects."""

    async def progress() -> tuple[str, bool]:
        head = await _head(request)
        status = {"state": head.state, "asked": head.asked_in_all, "planned": head.planned, "cells": head.asked}
        return json.dumps(status), head.state == "being written"

    return await _stream(request, progress)


async def _events_of_all(request: web.Request) -> web.StreamResponse:
    """Send the progress of all runs in one stream, since browsers limit their connections to a server."""
    viewer = request.app[VIEWER]

    async def progress() -> tuple[str, bool]:
        runs = await asyncio.to_thread(viewer.runs)
        heads = [await asyncio.to_thread(viewer.heads.of, run) for run in runs]
        statuses = {head.run.key: {"state": head.state, "asked": head.asked_in_all} for head in heads}
        return json.dumps(statuses), any(head.state == "being written" for head in heads)

    return await _stream(request, progress)


async def _stream(request: web.Request, progress: Callable[[], Awaitable[tuple[str, bool]]]) -> web.StreamResponse:
    """Send the text of ``progress`` as an event whenever it has changed, else a comment.

    ``progress`` returns (text, whether another may follow).
    """
    text, may_change = await progress()
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
    await response.prepare(request)
    last_text, ending = "", request.app[VIEWER].ending
    while True:
        try:
            await response.write((f"data: {text}\n\n" if text != last_text else ": still here\n\n").encode())
        except ConnectionError:
            return response
        if not may_change:
            return response
        last_text = text
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(ending.wait(), UPDATE_SECONDS)
            return response
        try:
            text, may_change = await progress()
        except (web.HTTPNotFound, ViewerError):
            return response


def _html(name: str, *, status: int = 200, **context: Any) -> web.Response:
    response = web.Response(text=render(name, **context), content_type="text/html", status=status)
    if status != 200 or name == "building":
        # A script asked for a part of a page, and this is a different page: the script loads it whole.
        response.headers["HX-Refresh"] = "true"
    return response

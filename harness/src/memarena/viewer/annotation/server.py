"""Serves the pages on which annotators label answers blind: without backend, verdict, or the labels of others."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

from aiohttp import web
from aiohttp.typedefs import Handler

from memarena.judging.errors import JudgeError
from memarena.viewer.annotation.campaign import LONGEST_NOTE, Campaign
from memarena.viewer.annotation.label_log import CANNOT_SAY
from memarena.viewer.reviewing import LABEL_WORDS
from memarena.viewer.security import Door, guard
from memarena.viewer.static_files import static_file
from memarena.viewer.templating import render

CAMPAIGN = web.AppKey("campaign", Campaign)
ANNOTATORS = web.AppKey("annotators", tuple[str, ...])
LONGEST_SECONDS = 3600.0
"""Longest time from item to label that is recorded; a longer one is taken for a break."""
WORDS = {**LABEL_WORDS, CANNOT_SAY: "cannot say"}
"""Label: its text on pages."""


def make_annotation_app(campaign: Campaign, annotators: Sequence[str], door: Door) -> web.Application:
    """Return the application in which the named annotators label a sample."""
    app = web.Application(middlewares=[guard(door), _faults])
    app[CAMPAIGN] = campaign
    app[ANNOTATORS] = tuple(annotators)
    app.add_routes(
        [
            web.get("/", _start),
            web.get("/static/{name}", static_file),
            web.get("/by/{annotator}", _next),
            web.get("/by/{annotator}/{item}", _item),
            web.post("/by/{annotator}/{item}", _label),
            web.get("/agreement", _agreement),
            web.get("/labels.json", _labels),
        ]
    )
    return app


@web.middleware
async def _faults(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPNotFound as error:
        text = "No such page." if error.text in (None, "404: Not Found") else error.text
        return _html("message", status=404, title="Not here", text=text, head=None)
    except JudgeError as error:
        return _html("message", status=422, title="This does not work", text=str(error), head=None)


async def _start(request: web.Request) -> web.StreamResponse:
    campaign = await _refreshed(request)
    if _seen(request, campaign):
        return web.Response(status=204)
    names = list(dict.fromkeys((*request.app[ANNOTATORS], *campaign.log.annotators())))
    active = request.app[ANNOTATORS]
    people = [(name, len(campaign.log.current(name)), name in active) for name in names]
    return _html(
        "annotate_start",
        people=people,
        total=len(campaign.items),
        folder=str(campaign.folder),
        lines=campaign.log.lines,
        head=None,
        swaps=True,
    )


async def _next(request: web.Request) -> web.StreamResponse:
    """Redirect to the annotator's first item without a label."""
    campaign, annotator = await _refreshed(request), _annotator(request)
    item = campaign.next_open(annotator)
    if item is None:
        return _html(
            "annotate_done", annotator=annotator, total=len(campaign.items), first=campaign.items[0], head=None
        )
    raise web.HTTPSeeOther(_item_path(annotator, item.item))


async def _item(request: web.Request) -> web.StreamResponse:
    campaign, annotator = await _refreshed(request), _annotator(request)
    index = _item_index(request, campaign)
    item, labels = campaign.items[index], campaign.log.current(annotator)
    present = labels.get(item.item)
    return _html(
        "annotate_item",
        annotator=annotator,
        item=item,
        choices=[(str(n), label, WORDS.get(label, label)) for n, label in enumerate(campaign.choices(item), 1)],
        given=present,
        history=[
            (g.at[:16].replace("T", " "), "taken back" if g.label is None else WORDS.get(g.label, g.label), g.reason)
            for g in campaign.log.history(annotator, item.item)
        ],
        number=index + 1,
        total=len(campaign.items),
        done=len(labels),
        unsure=sum(label.label == CANNOT_SAY for label in labels.values()),
        before=campaign.items[index - 1].item if index else None,
        after=campaign.items[index + 1].item if index + 1 < len(campaign.items) else None,
        form=secrets.token_hex(16),
        undo_form=secrets.token_hex(16),
        shown_ms=int(time.time() * 1000),
        latest=campaign.log.latest(annotator),
        longest_note=LONGEST_NOTE,
        head=None,
    )


async def _label(request: web.Request) -> web.StreamResponse:
    campaign, annotator = await _refreshed(request), _annotator(request)
    index, form_fields = _item_index(request, campaign), await request.post()
    item, form = campaign.items[index].item, str(form_fields.get("form", ""))
    if not form:
        raise JudgeError("form: expected the id that came with the page")
    if "undo" in form_fields:
        await asyncio.to_thread(campaign.give, annotator, item, None, form, reason="taken back")
        raise web.HTTPSeeOther(_item_path(annotator, item))
    await asyncio.to_thread(
        campaign.give,
        annotator,
        item,
        str(form_fields.get("label", "")),
        form,
        note=str(form_fields.get("note", ""))[:LONGEST_NOTE].strip(),
        reason=str(form_fields.get("reason", ""))[:LONGEST_NOTE].strip(),
        seconds=_seconds(str(form_fields.get("shown_ms", ""))),
    )
    following = campaign.next_open(annotator, index)
    raise web.HTTPSeeOther(f"/by/{quote(annotator)}" if following is None else _item_path(annotator, following.item))


async def _agreement(request: web.Request) -> web.StreamResponse:
    campaign = await _refreshed(request)
    if _seen(request, campaign):
        return web.Response(status=204)
    lines = campaign.log.lines
    tracks = await asyncio.to_thread(campaign.agreement)
    differing = await asyncio.to_thread(campaign.disagreements)
    return _html(
        "annotate_agreement",
        tracks=tracks,
        differing=differing,
        words=WORDS,
        people=campaign.log.annotators(),
        here=request.app[ANNOTATORS],
        faults=campaign.log.faults,
        lines=lines,
        head=None,
        swaps=True,
    )


async def _labels(request: web.Request) -> web.StreamResponse:
    campaign = await _refreshed(request)
    text = campaign.as_labels().model_dump_json(indent=2) + "\n"
    disposition = {"Content-Disposition": 'attachment; filename="labels.json"'}
    return web.Response(text=text, content_type="application/json", headers=disposition)


async def _refreshed(request: web.Request) -> Campaign:
    campaign = request.app[CAMPAIGN]
    campaign.log.refresh()
    return campaign


def _seen(request: web.Request, campaign: Campaign) -> bool:
    """Whether a page that polls for updates already shows the present labels."""
    return request.query.get("seen") == str(campaign.log.lines) and "HX-Request" in request.headers


def _annotator(request: web.Request) -> str:
    name = request.match_info["annotator"]
    if name not in request.app[ANNOTATORS]:
        raise web.HTTPNotFound(text=f"{name} does not label here; --annotator {name} lets them.")
    return name


def _item_index(request: web.Request, campaign: Campaign) -> int:
    index = campaign.places.get(request.match_info["item"])
    if index is None:
        raise web.HTTPNotFound(text="The sample has no such item.")
    return index


def _seconds(shown_ms: str) -> float | None:
    if not shown_ms.isascii() or not shown_ms.isdigit() or len(shown_ms) > 15:
        return None
    seconds = time.time() - int(shown_ms) / 1000
    return round(seconds, 1) if 0 <= seconds <= LONGEST_SECONDS else None


def _item_path(annotator: str, item: str) -> str:
    return f"/by/{quote(annotator)}/{quote(item)}"


def _html(name: str, *, status: int = 200, **context: Any) -> web.Response:
    return web.Response(text=render(name, **context), content_type="text/html", status=status)

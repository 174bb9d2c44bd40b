"""Files that pages refer to: styles, the icon, and scripts without which everything works."""

from __future__ import annotations

from importlib.resources import files

from aiohttp import web

_OWN = files("memarena.viewer") / "static"
STATIC = {
    "report.css": ("text/css", files("memarena.report.render.html") / "style.css"),
    "viewer.css": ("text/css", _OWN / "viewer.css"),
    "icon.svg": ("image/svg+xml", _OWN / "icon.svg"),
    "live.js": ("text/javascript", _OWN / "live.js"),
    "drafts.js": ("text/javascript", _OWN / "drafts.js"),
    "keys.js": ("text/javascript", _OWN / "keys.js"),
    "htmx.min.js": ("text/javascript", _OWN / "htmx.min.js"),
}
"""Type and place of each. The first is the report's own; htmx 2.0.11 is whole as released, its licence beside it."""


async def static_file(request: web.Request) -> web.Response:
    """One of them. Raises HTTPNotFound for another name."""
    known = STATIC.get(request.match_info["name"])
    if known is None:
        raise web.HTTPNotFound(text="No such file.")
    kind, place = known
    return web.Response(text=place.read_text(encoding="utf-8"), content_type=kind, charset="utf-8")

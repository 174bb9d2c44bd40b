"""Serves the static files of pages: styles, the icon, and scripts. Pages work without scripts."""

from __future__ import annotations

from importlib.resources import files

from aiohttp import web

_FOLDER = files("memarena.viewer") / "static"
STATIC = {
    "report.css": ("text/css", files("memarena.report.render.html") / "style.css"),
    "viewer.css": ("text/css", _FOLDER / "viewer.css"),
    "icon.svg": ("image/svg+xml", _FOLDER / "icon.svg"),
    "live.js": ("text/javascript", _FOLDER / "live.js"),
    "drafts.js": ("text/javascript", _FOLDER / "drafts.js"),
    "keys.js": ("text/javascript", _FOLDER / "keys.js"),
    "htmx.min.js": ("text/javascript", _FOLDER / "htmx.min.js"),
}
"""(media type, path) by name. The HTML report uses ``report.css`` too; htmx 2.0.11 is unchanged, with its licence."""


async def static_file(request: web.Request) -> web.Response:
    """Return the file that a request names. Raises HTTPNotFound for a name that is not in :data:`STATIC`."""
    entry = STATIC.get(request.match_info["name"])
    if entry is None:
        raise web.HTTPNotFound(text="No such file.")
    kind, path = entry
    return web.Response(text=path.read_text(encoding="utf-8"), content_type=kind, charset="utf-8")

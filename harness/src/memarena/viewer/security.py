"""Who may read the pages: whoever holds the token, from a browser that asked this host, on pages that run no script
but ours.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import secrets
import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from memarena.viewer.errors import ViewerError

TOKEN_KEY = "token"  # noqa: S105 (the name of a parameter)
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    # With no-referrer a browser would send Origin: null with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TOKEN = re.compile(r"[A-Za-z0-9_-]{32,128}")
REFUSED = "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Not open</title><h1>Not open</h1><p>{}</p>"


@dataclass(frozen=True)
class Door:
    """What a request must bring along."""

    host: str
    port: int
    token: str

    @classmethod
    def new(cls, host: str, port: int, token: str | None = None) -> Door:
        """A door with this token, or with a new one."""
        return cls(host, port, token or secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """Name of the cookie; browsers share cookies between the ports of a host."""
        return f"memarena_{self.port}"

    @property
    def address(self) -> str:
        """Where a browser goes first."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        if _is_wildcard(self.host):
            shown = socket.gethostname()
        return f"http://{shown}:{self.port}/?{TOKEN_KEY}={self.token}"

    def knows(self, token: str | None) -> bool:
        """Whether this is the token."""
        return token is not None and hmac.compare_digest(token.encode(), self.token.encode())

    def takes_host(self, named: str) -> bool:
        """Whether a request names this server: a site whose name was pointed here names itself."""
        try:
            parts = urlsplit(f"//{named}")
            host, port = parts.hostname or "", parts.port
        except ValueError:
            return False
        if port != self.port and not (port is None and self.port == 80):
            return False
        if host in {self.host, "localhost"} or (_is_loopback(host) and _is_loopback(self.host)):
            return True
        return _is_wildcard(self.host) and (_is_address(host) or host == socket.gethostname().lower())

    def takes_origin(self, origin: str | None, named: str) -> bool:
        """Whether a request comes from our own pages; ``origin`` None: the browser sent none."""
        return origin is None or origin == f"http://{named}"


def kept_token(path: Path) -> str:
    """The token in a file, which is made with a new one where there is none yet, for its owner alone.

    Raises ViewerError for a file that cannot be used or that other users may read.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(24) + "\n")
    except FileExistsError:
        pass
    except OSError as error:
        raise ViewerError(f"--token-file {path}: cannot be made: {error.strerror}") from error
    try:
        open_to, text = path.stat().st_mode & 0o077, path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ViewerError(f"--token-file {path}: cannot be read: {error}") from error
    if open_to:
        raise ViewerError(f"--token-file {path}: other users may read it; expected mode 600 (chmod 600 {path})")
    if not TOKEN.fullmatch(text):
        raise ViewerError(f"--token-file {path}: expected one line of 32 to 128 letters, digits, - and _")
    return text


def guard(door: Door) -> Middleware:
    """The check before every page, and the headers behind it."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        named, origin = request.headers.get("Host", ""), request.headers.get("Origin")
        if not door.takes_host(named):
            return _refused("This address is not the one that the viewer serves.", 421)
        if not door.takes_origin(origin, named) or (request.method != "GET" and origin is None):
            return _refused("The request comes from another site.", 403)
        given = request.query.get(TOKEN_KEY)
        if given is not None and request.method == "GET":
            if not door.knows(given):
                return _refused("This token is not the viewer's: open the address that memarena printed last.", 403)
            kept = [(key, value) for key, value in request.query.items() if key != TOKEN_KEY]
            place = request.rel_url.with_query(kept)
            if place.raw_path.startswith(("//", "/\\")):
                return _refused("There is no such page.", 404)  # a browser takes //name for another host
            response: web.StreamResponse = web.Response(status=303, headers={"Location": str(place)})
            response.set_cookie(door.cookie, door.token, httponly=True, samesite="Lax", path="/")
        elif door.knows(request.cookies.get(door.cookie)):
            response = await handler(request)
        else:
            return _refused("Open the address that memarena printed: it holds a token that lets you in.", 403)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    return check


def _refused(why: str, status: int) -> web.Response:
    page = REFUSED.format(why)
    # A script that asks is told to load the page again, which then says why.
    return web.Response(text=page, content_type="text/html", status=status, headers={**HEADERS, "HX-Refresh": "true"})


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    return host == "localhost" or (_is_address(host) and ipaddress.ip_address(host).is_loopback)


def _is_wildcard(host: str) -> bool:
    return _is_address(host) and ipaddress.ip_address(host).is_unspecified

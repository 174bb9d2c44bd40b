"""Protects the viewer's server: checks the token, Host and Origin of each request, and sets security headers.

Answers of models and data sets are untrusted text, and other web pages and users of the machine can reach the port.
Pages run no scripts but the viewer's own files.
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
    # With no-referrer a browser would send "Origin: null" with the viewer's own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
TOKEN = re.compile(r"[A-Za-z0-9_-]{32,128}")
"""Form of a token in a file."""
REFUSED = "<!DOCTYPE html><html lang=en><meta charset=utf-8><title>Not open</title><h1>Not open</h1><p>{}</p>"


@dataclass(frozen=True)
class Door:
    """Host, port and token that a request must have; each server of pages has its own."""

    host: str
    port: int
    token: str

    @classmethod
    def new(cls, host: str, port: int, token: str | None = None) -> Door:
        """Create a door with this token, or with a new one if it is None or empty."""
        return cls(host, port, token or secrets.token_urlsafe(24))

    @property
    def cookie(self) -> str:
        """Name of the cookie; it contains the port, since browsers share cookies between the ports of a host."""
        return f"memarena_{self.port}"

    @property
    def address(self) -> str:
        """Address to open first in a browser, with the token."""
        shown = f"[{self.host}]" if ":" in self.host else self.host
        if _is_wildcard(self.host):
            shown = socket.gethostname()
        return f"http://{shown}:{self.port}/?{TOKEN_KEY}={self.token}"

    def knows(self, token: str | None) -> bool:
        """Whether ``token`` is the door's token, compared in constant time."""
        return token is not None and hmac.compare_digest(token.encode(), self.token.encode())

    def takes_host(self, named: str) -> bool:
        """Whether the Host header is this server's: after DNS rebinding a browser sends the other site's name."""
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
        """Whether the Origin header is that of the viewer's own pages, or None (the browser sent none).

        ``named`` is the Host header.
        """
        return origin is None or origin == f"http://{named}"


def kept_token(path: Path) -> str:
    """Read the token from a file; create the file with a new token if it does not exist, readable only for its owner.

    Raises ViewerError for a file that cannot be read or created, or that other users may read.
    """
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(24) + "\n")
    except FileExistsError:
        pass
    except OSError as error:
        raise ViewerError(f"--token-file {path}: cannot be made: {error.strerror}") from error
    try:
        others_mode, text = path.stat().st_mode & 0o077, path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ViewerError(f"--token-file {path}: cannot be read: {error}") from error
    if others_mode:
        raise ViewerError(f"--token-file {path}: other users may read it; expected mode 600 (chmod 600 {path})")
    if not TOKEN.fullmatch(text):
        raise ViewerError(f"--token-file {path}: expected one line of 32 to 128 letters, digits, - and _")
    return text


def guard(door: Door) -> Middleware:
    """Return a middleware that refuses requests without the right Host, Origin and token, and sets the headers."""

    @web.middleware
    async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
        host, origin = request.headers.get("Host", ""), request.headers.get("Origin")
        if not door.takes_host(host):
            return _refused("This address is not the one that the viewer serves.", 421)
        if not door.takes_origin(origin, host) or (request.method != "GET" and origin is None):
            return _refused("The request comes from another site.", 403)
        token = request.query.get(TOKEN_KEY)
        if token is not None and request.method == "GET":
            if not door.knows(token):
                return _refused("This token is not the viewer's: open the address that memarena printed last.", 403)
            other_params = [(key, value) for key, value in request.query.items() if key != TOKEN_KEY]
            target = request.rel_url.with_query(other_params)
            if target.raw_path.startswith(("//", "/\\")):
                return _refused("There is no such page.", 404)  # a browser would open the host NAME for //NAME
            response: web.StreamResponse = web.Response(status=303, headers={"Location": str(target)})
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
    # For a request by htmx: load the whole page again, which then shows the reason.
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

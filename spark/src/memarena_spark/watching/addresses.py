"""Locates an address: on this machine's loopback, in another container on a network of this one, or elsewhere."""

from __future__ import annotations

import ipaddress
import socket
import urllib.parse
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import psutil

Reach = Literal["loopback", "container", "elsewhere"]
_CONTAINER_MARK = Path("/.dockerenv")


def is_loopback(address: str) -> bool:
    """Whether an IP address is on the loopback network, also if it is mapped into IPv6."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


def port_of(url: str) -> int:
    """Return the port of a URL, by default that of its scheme."""
    parts = urllib.parse.urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def reach_of(url: str) -> Reach:
    """Return where a server is. A name is on loopback, or in a container, only if all its addresses are.

    A container's routes do not show whether a network reaches the outside: Docker 20.10 sets a default route on an
    internal network too.
    """
    try:
        answers = socket.getaddrinfo(urllib.parse.urlsplit(url).hostname, port_of(url), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return "elsewhere"
    addresses = {str(address[0]) for *_, address in answers}
    if all(map(is_loopback, addresses)):
        return "loopback"
    contained = _CONTAINER_MARK.exists() and all(map(_attached, addresses))
    return "container" if contained else "elsewhere"


def _attached(address: str) -> bool:
    """Whether an address is on a network that this process has an interface on."""
    return any(ipaddress.ip_address(address) in network for network in _networks())


def _networks() -> Iterable[ipaddress.IPv4Network]:
    for addresses in psutil.net_if_addrs().values():
        for address in addresses:
            if address.family == socket.AF_INET and address.netmask:
                yield ipaddress.IPv4Interface(f"{address.address}/{address.netmask}").network

"""Where an address is: on this machine's loopback, on a network without a route out, or elsewhere."""

from __future__ import annotations

import ipaddress
import socket
import urllib.parse
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

import psutil

Reach = Literal["loopback", "isolated", "elsewhere"]
_EVERYWHERE = {"00000000", "0" * 32}
_CONTAINER_MARK = Path("/.dockerenv")


def is_loopback(address: str) -> bool:
    """Whether an IP address is of the loopback net, one that is mapped into IPv6 too."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
    return (mapped or ip).is_loopback


def port_of(url: str) -> int:
    """The port of a URL, also where it does not name it."""
    parts = urllib.parse.urlsplit(url)
    return parts.port or (443 if parts.scheme == "https" else 80)


def reach_of(url: str, root: Path = Path("/")) -> Reach:
    """Where a server is: a name counts as what all its addresses are. ``root``: where /proc is."""
    try:
        answers = socket.getaddrinfo(urllib.parse.urlsplit(url).hostname, port_of(url), type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return "elsewhere"
    addresses = {str(address[0]) for *_, address in answers}
    if all(map(is_loopback, addresses)):
        return "loopback"
    contained = _CONTAINER_MARK.exists() and not has_way_out(root) and all(map(_attached, addresses))
    return "isolated" if contained else "elsewhere"


def has_way_out(root: Path = Path("/")) -> bool:
    """Whether this process has a default route, by IPv4 or IPv6; also where that cannot be read."""
    try:
        ipv4 = [line.split() for line in (root / "proc/net/route").read_text().splitlines()[1:]]
        ipv6_file = root / "proc/net/ipv6_route"
        ipv6 = [line.split() for line in ipv6_file.read_text().splitlines()] if ipv6_file.exists() else []
    except OSError:
        return True
    return any(words[1] in _EVERYWHERE and words[7] in _EVERYWHERE for words in ipv4) or any(
        words[0] in _EVERYWHERE and words[1] == "00" and words[-1] != "lo" for words in ipv6
    )


def _attached(address: str) -> bool:
    """Whether an address is on a network that this process has an interface on."""
    return any(ipaddress.ip_address(address) in network for network in _networks())


def _networks() -> Iterable[ipaddress.IPv4Network]:
    for addresses in psutil.net_if_addrs().values():
        for each in addresses:
            if each.family == socket.AF_INET and each.netmask:
                yield ipaddress.IPv4Interface(f"{each.address}/{each.netmask}").network

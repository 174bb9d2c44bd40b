"""Checks the gateway that a call names: it must be on the caller's own host, or on a configured host (SEC-6).

A backend that called any ``base_url`` could be made to fetch any URL by any client (server-side request forgery).
"""

from __future__ import annotations

import ipaddress
import os
import socket
from functools import lru_cache
from urllib.parse import unquote, urlsplit

from memarena_backend.errors import invalid_argument

HOSTS_VARIABLE = "MEMARENA_GATEWAY_HOSTS"
"""Environment variable: further hosts on which a gateway may run, separated by commas."""


def check_gateway_host(base_url: str, peer: str, field: str) -> None:
    """Raise CallError INVALID_ARGUMENT at ``field`` unless ``base_url`` is on the host of the gRPC ``peer``, or listed.

    A peer on this machine may name any address of this machine; a remote peer only its own address.
    """
    try:
        parts = urlsplit(base_url)
        host = parts.hostname or ""
    except ValueError:
        host, parts = "", urlsplit("")
    if parts.scheme not in ("http", "https") or not host:
        raise invalid_argument(field, "expected an http or https URL")
    if not _is_allowed(host, _address_of(peer), os.environ.get(HOSTS_VARIABLE, "")):
        raise invalid_argument(field, f"{host} is neither the caller's host nor among {HOSTS_VARIABLE}")


def _address_of(peer: str) -> str:
    """Return the IP address in gRPC's name of a peer (``ipv4:127.0.0.1:50051``); empty for a Unix socket."""
    kind, _, address = unquote(peer).partition(":")
    return address.rpartition(":")[0].strip("[]") if kind in ("ipv4", "ipv6") else ""


@lru_cache(maxsize=64)
def _is_allowed(host: str, peer: str, listed: str) -> bool:
    if host in {text.strip() for text in listed.split(",")}:
        return True
    try:
        resolved = {str(entry[4][0]) for entry in socket.getaddrinfo(host, None)}
    except OSError:
        return False
    addresses = {_plain(text) for text in resolved}
    caller = _plain(peer) if peer else None
    if caller is None or caller.is_loopback:
        return all(_is_local(address) for address in addresses)
    return addresses == {caller}


def _plain(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Return an address without its zone, and an IPv4-mapped IPv6 address as IPv4."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    return parsed.ipv4_mapped or parsed if isinstance(parsed, ipaddress.IPv6Address) else parsed


def _is_local(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether the address belongs to this machine, tested by binding a socket to it."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((str(address), 0))
    except OSError:
        return False
    return not address.is_unspecified and not address.is_multicast

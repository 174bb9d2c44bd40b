"""Lists servers that a cell uses and that may run on this machine without being processes of the run.

The load of other programs is what remains without the run's processes. With such a server it cannot be known.
"""

from __future__ import annotations

import ipaddress
import os
import socket
from collections.abc import Iterator
from urllib.parse import urlsplit

from memarena.execution.backends.manifests import AddressedBackend, BackendChoice, ContainerBackend
from memarena.execution.models.shared_readers import VARIABLE as SHARED_READERS
from memarena.execution.planning.config import RunConfig
from memarena.execution.planning.model_config import ReaderConfig
from memarena.readers.helpers import HELPER_ROLES


def outside_servers(backend: BackendChoice, reader: ReaderConfig, config: RunConfig) -> str:
    """Return the cell's servers whose CPU time cannot be distinguished from that of other programs; empty for none."""
    return ", ".join(dict.fromkeys(_outside(backend, reader, config)))


def _outside(backend: BackendChoice, reader: ReaderConfig, config: RunConfig) -> Iterator[str]:
    if isinstance(backend, ContainerBackend):
        yield "the memory runs in a container"
    if isinstance(backend, AddressedBackend) and _may_be_here(backend.address.rpartition(":")[0].strip("[]")):
        yield f"the memory runs at {backend.address}"
    if reader.image:
        yield "the reader runs in a container"
    if os.environ.get(SHARED_READERS):
        yield "runs share the reader"
    helpers = [getattr(config, role) for role in HELPER_ROLES]
    for spec in (reader.spec, *(helper.spec for helper in helpers if helper is not None)):
        if spec.startswith(("http://", "https://")) and _may_be_here(urlsplit(spec).hostname or ""):
            yield f"a model runs at {urlsplit(spec).netloc.rpartition('@')[2]}"


def _may_be_here(host: str) -> bool:
    """Whether a host may be this machine: True unless all its addresses are public; True if it cannot be resolved."""
    try:
        addresses = {str(info[4][0]).partition("%")[0] for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return True
    return not all(ipaddress.ip_address(address).is_global for address in addresses)

"""Defines the limits of the contract in bytes (SPEC.md, limits). A size at a limit is accepted, a larger is refused."""

from __future__ import annotations

FRAME_BYTES = 1024 * 1024
"""A serialised frame of Ingest."""

RESPONSE_BYTES = 4 * 1024 * 1024
"""A serialised response; every gRPC library accepts this much by default."""

RESPONSE_ITEMS = 65_536
"""Items of a response."""

TURN_TEXT_BYTES = 256 * 1024
"""UTF-8 of the text of a turn or an event."""

QUERY_TEXT_BYTES = 64 * 1024
"""UTF-8 of the text of a question."""

ID_BYTES = 128
"""UTF-8 of any id."""

REQUEST_RECEIVE_BYTES = 8 * 1024 * 1024
"""Limit of the transport, above those of the contract, so that a larger request gets our error, not the transport's."""

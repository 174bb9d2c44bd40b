"""Emptying the prefix cache of an SGLang server, and believing its status, not its words.

Some versions answer "Cache flushed." with status 400 while a request is under way; newer ones wait for ``timeout``
seconds, older ones do not know the parameter.
"""

from __future__ import annotations

import time
import urllib.error
import urllib.request

from memarena.readers.errors import ReaderError

WAIT_S = 30.0
_RETRY_S = 0.25
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def flush_cache(server_url: str, api_key: str | None, wait_s: float = WAIT_S) -> None:
    """Have the cache emptied, again while the server is busy. Raises :class:`ReaderError` unless it answers 200."""
    url = f"{server_url}/flush_cache?timeout={wait_s:g}"
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    deadline = time.monotonic() + wait_s
    while True:
        request = urllib.request.Request(url, data=b"", headers=headers, method="POST")  # noqa: S310 (scheme checked)
        try:
            with _OPENER.open(request, timeout=wait_s + 5) as reply:
                if reply.status == 200:
                    return
                said = f"{reply.status}"
        except urllib.error.HTTPError as error:
            with error:
                words = " ".join(error.read(200).decode("utf-8", "replace").split())
                said = f"{error.code} {words!r}"
            if error.code != 400 or time.monotonic() > deadline:
                raise ReaderError(f"reader {server_url}: POST /flush_cache answered {said}") from error
        except OSError as error:
            raise ReaderError(f"reader {server_url}: POST /flush_cache failed: {error}") from error
        else:
            raise ReaderError(f"reader {server_url}: POST /flush_cache answered {said}")
        time.sleep(_RETRY_S)

"""Runs a model server of the harness as a child process, with requests over loopback HTTP."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, TypeAlias

from memarena_dataset_quality.errors import QualityError

START_SECONDS = 120.0
CALL_SECONDS = 300.0
_RUN = "memarena_dataset_quality.while_held"
"""Module that runs the server and ends it when this process ends, even if it is killed."""
Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None


def content_of(reply: Json, module: str) -> str:
    """Return the content of a chat completion's first choice. Raises QualityError if there is none."""
    match reply:
        case {"choices": [{"message": {"content": str(content)}}, *_]}:
            return content
    raise QualityError(f"{module}: a reply without an answer: {str(reply)[:200]}")


class ServerProcess:
    """A server module of the harness, alive inside a ``with`` block and no longer than this process."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._module, self._arguments = module, arguments
        self._address = ""

    def __enter__(self) -> Self:
        with tempfile.TemporaryDirectory() as folder:
            address = Path(folder) / "address"
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", _RUN, self._module, "--address-file", str(address), *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                self._wait(address)
            except BaseException:
                self._stop()
                raise
        return self

    def _wait(self, address: Path) -> None:
        until = time.monotonic() + START_SECONDS
        while not address.exists():
            if self._process.poll() is not None:
                raise QualityError(f"{self._module}: ended with {self._process.returncode} before it listened")
            if time.monotonic() > until:
                raise QualityError(f"{self._module}: did not listen within {START_SECONDS:.0f} s")
            time.sleep(0.02)
        self._address = address.read_text(encoding="utf-8").strip()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def post(self, path: str, body: Mapping[str, Json]) -> dict[str, Json]:
        """Return the reply to a request.

        Raises:
            QualityError: the request fails, or the reply is not a JSON object.
        """
        connection = http.client.HTTPConnection(self._address, timeout=CALL_SECONDS)
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            reply = connection.getresponse()
            data = reply.read()
        except OSError as error:
            raise QualityError(f"{self._module}: {path}: {error}") from error
        finally:
            connection.close()
        if reply.status != http.HTTPStatus.OK:
            raise QualityError(f"{self._module}: {path}: status {reply.status}: {data[:200].decode(errors='replace')}")
        answer = json.loads(data)
        if not isinstance(answer, dict):
            raise QualityError(f"{self._module}: {path}: a JSON object is expected")
        return answer

"""Removes containers and networks of a run that was killed (``python -m memarena.execution.backends.reaper``).

Docker does not end containers with the process that started them, so that each run with containers starts a reaper.
Each line of standard input is ``+ KIND ID`` or ``- KIND ID`` (container, network). When the pipe closes, because the
run ended or was killed, all resources that were announced and not withdrawn are removed, by their ids.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterable


def remaining(lines: Iterable[str]) -> list[tuple[str, str]]:
    """Return kind and id of announced, not withdrawn resources, containers first: only an empty network can go."""
    resources: dict[tuple[str, str], None] = {}
    for line in lines:
        sign, kind, identity = line.split()
        if sign == "+":
            resources[kind, identity] = None
        else:
            resources.pop((kind, identity), None)
    return sorted(resources, key=lambda resource: resource[0] != "container")


def main() -> None:
    """Wait for the end of standard input, then remove what is still announced."""
    # The end of the run closes the pipe; the signals that end the run must not end this process first.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    resources = remaining(sys.stdin)
    if not resources:
        return
    import docker  # noqa: PLC0415  (most runs leave nothing behind)

    client = docker.from_env(timeout=60)
    for kind, identity in resources:
        with contextlib.suppress(docker.errors.NotFound):
            if kind == "container":
                client.containers.get(identity).remove(force=True, v=True)
            else:
                client.networks.get(identity).remove()


if __name__ == "__main__":
    main()

"""Determines the image of a container: from the daemon, or from the variable with which compose declares it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from datetime import datetime

from memarena_spark.facts import DeclaredOrder, Image, Unknown

DECLARED = "MEMARENA_SPARK_IMAGES"
"""Variable with the images that compose started: ``name=reference@sha256:…``, separated by blanks."""
ORDER = "MEMARENA_SPARK_ORDER"
"""Variable with the names of the services in the order in which compose started them, separated by blanks."""
_TIMEOUT_S = 10.0
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


IMAGE = "image:"
"""Prefix of a name that is not a running container, but an image that will be run."""


def image_of(name: str) -> Image | Unknown:
    """Return the digest of a running container's image or of ``image:REFERENCE``: the registry's, else the image id."""
    if name.startswith(IMAGE):
        image_id = _docker("image", "inspect", name.removeprefix(IMAGE), "--format", "{{.Id}}")
        return image_id if isinstance(image_id, Unknown) else _digest_of(image_id)
    for entry in os.environ.get(DECLARED, "").split():
        service, _, reference = entry.partition("=")
        if service == name and (digest := _DIGEST.search(reference)):
            return Image(digest=digest[0], source="declared")
    image_id = _docker("container", "inspect", name, "--format", "{{.Image}}")
    return image_id if isinstance(image_id, Unknown) else _digest_of(image_id)


def _digest_of(image_id: str) -> Image | Unknown:
    digests = _docker("image", "inspect", image_id, "--format", "{{json .RepoDigests}}")
    if isinstance(digests, Unknown):
        return digests
    try:
        references = json.loads(digests)
    except ValueError:
        references = None
    registry_digests = [d[0] for reference in references or () if (d := _DIGEST.search(str(reference)))]
    return Image(digest=registry_digests[0] if registry_digests else image_id, source="docker")


def container_started_at(container: str) -> float | DeclaredOrder | Unknown:
    """Return the start of a container in seconds since 1970, or its index in the declared order."""
    order = os.environ.get(ORDER, "").split()
    if container in order:
        return DeclaredOrder(place=order.index(container))
    started_at = _docker("container", "inspect", container, "--format", "{{.State.StartedAt}}")
    if isinstance(started_at, Unknown):
        return started_at
    try:
        # The daemon gives nanoseconds; Python parses at most six digits.
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", started_at).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return Unknown(unknown=f"docker: container {container}: no start time in {started_at[:60]!r}")


def _docker(*arguments: str) -> str | Unknown:
    if shutil.which("docker") is None:
        return Unknown(unknown=f"docker is not installed, and {DECLARED} does not name it")
    try:
        process = subprocess.run(
            ["docker", *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Unknown(unknown=f"docker: {error}")
    if process.returncode != 0:
        lines = process.stderr.strip().splitlines() or ["no reason given"]
        return Unknown(unknown=f"docker: {lines[-1][:200]}")
    return process.stdout.strip()

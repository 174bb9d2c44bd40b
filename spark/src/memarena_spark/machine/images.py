"""The image behind a container: from the daemon, or as the compose file's own variable declares it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from datetime import datetime

from memarena_spark.facts import Image, Place, Unknown

DECLARED = "MEMARENA_SPARK_IMAGES"
"""``name=reference@sha256:…`` separated by blanks: what compose started, told by the variable that it started it by."""
ORDER = "MEMARENA_SPARK_ORDER"
"""Names separated by blanks: what compose started, one after the other."""
_TIMEOUT_S = 10.0
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


IMAGE = "image:"
"""Before a name: not of a container that runs, but of an image that will be run."""


def image_of(name: str) -> Image | Unknown:
    """Digest of a running container's image, or of ``image:REFERENCE``: its registry's if it has one, else its id."""
    if name.startswith(IMAGE):
        told = _docker("image", "inspect", name.removeprefix(IMAGE), "--format", "{{.Id}}")
        return told if isinstance(told, Unknown) else _digest_of(told)
    for entry in os.environ.get(DECLARED, "").split():
        service, _, reference = entry.partition("=")
        if service == name and (digest := _DIGEST.search(reference)):
            return Image(digest=digest[0], source="declared")
    told = _docker("container", "inspect", name, "--format", "{{.Image}}")
    return told if isinstance(told, Unknown) else _digest_of(told)


def _digest_of(image_id: str) -> Image | Unknown:
    digests = _docker("image", "inspect", image_id, "--format", "{{json .RepoDigests}}")
    if isinstance(digests, Unknown):
        return digests
    try:
        listed = json.loads(digests)
    except ValueError:
        listed = None
    known = [d[0] for each in listed or () if (d := _DIGEST.search(str(each)))]
    return Image(digest=known[0] if known else image_id, source="docker")


def container_started_at(container: str) -> float | Place | Unknown:
    """When a container was started, in seconds since 1970, or where in the declared order it stands."""
    declared = os.environ.get(ORDER, "").split()
    if container in declared:
        return Place(place=declared.index(container))
    told = _docker("container", "inspect", container, "--format", "{{.State.StartedAt}}")
    if isinstance(told, Unknown):
        return told
    try:
        # The daemon gives nanoseconds, of which Python takes six digits.
        return datetime.fromisoformat(re.sub(r"(\.\d{6})\d*", r"\1", told).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return Unknown(unknown=f"docker: container {container}: no start time in {told[:60]!r}")


def _docker(*arguments: str) -> str | Unknown:
    if shutil.which("docker") is None:
        return Unknown(unknown=f"docker is not installed, and {DECLARED} does not name it")
    try:
        done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return Unknown(unknown=f"docker: {error}")
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or ["no reason given"]
        return Unknown(unknown=f"docker: {lines[-1][:200]}")
    return done.stdout.strip()

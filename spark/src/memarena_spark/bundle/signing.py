"""Signs and verifies with OpenSSH's ``ssh-keygen -Y``; bundles and announcements have separate namespaces."""

from __future__ import annotations

import base64
import binascii
import os
import pwd
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from memarena_spark.errors import SparkError

NAMESPACE = "memarena-cert"
NAMESPACE_ANNOUNCE = "memarena-announce"
"""A signature is valid in its namespace only, so that a witness's receipt cannot pass as the signature of a bundle."""
_BEGIN, _END = "-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"
_WIDTH = 70
"""Characters of a line of base64 in a signature file of ssh-keygen."""
_TIMEOUT_S = 60.0
_KEY = re.compile(r"with (\S+) key (SHA256:\S+)")
"""Type and fingerprint of the key in the output of ssh-keygen."""


def sign(path: Path, key: Path, namespace: str = NAMESPACE) -> Path:
    """Sign a file; the signature is written next to it. Raises SparkError if the key cannot be used."""
    if not key.is_file():
        raise SparkError(f"--key {key}: no such file")
    process = _ssh_keygen("-Y", "sign", "-f", str(key), "-n", namespace, str(path))
    signature = path.with_name(f"{path.name}.sig")
    if process.returncode != 0 or not signature.is_file():
        lines = process.stderr.strip().splitlines() or ["ssh-keygen gave no reason"]
        raise SparkError(f"--key {key}: cannot sign: {lines[-1]}")
    return signature


def check_key(key: Path) -> None:
    """Make a test signature before a run of hours. Raises SparkError with the remedy if that fails."""
    try:
        pwd.getpwuid(os.getuid())
    except KeyError:
        raise SparkError(
            f"--key {key}: user id {os.getuid()} has no name here, and ssh-keygen does not sign without one; "
            "run as a user of this machine or image (MEMARENA_USER), or mount an /etc/passwd that names the id"
        ) from None
    if not os.access(key, os.R_OK):
        raise SparkError(f"--key {key}: user {os.getuid()} may not read it; make that user its owner, mode 0600")
    with tempfile.TemporaryDirectory(prefix="memarena-") as folder:
        probe = Path(folder) / "probe"
        probe.write_bytes(b"probe")
        sign(probe, key)


def is_canonical(content: bytes) -> bool:
    """Whether a signature file is in the canonical form that ssh-keygen writes.

    Base64 leaves some bits of its last character unused and readers pass over white space, so that a changed file
    can still be a valid signature.
    """
    try:
        text = content.decode("ascii")
        begin, *lines, end, remainder = text.split("\n")
        blob = base64.b64decode("".join(lines), validate=True)
    except (UnicodeDecodeError, ValueError, binascii.Error):
        return False
    base64_text = base64.b64encode(blob).decode()
    text_lines = [base64_text[i : i + _WIDTH] for i in range(0, len(base64_text), _WIDTH)]
    return (begin, end, remainder) == (_BEGIN, _END, "") and lines == text_lines


def who_signed(path: Path, signature: Path, namespace: str = NAMESPACE) -> str | None:
    """Return type and fingerprint of the key of a valid signature; None if it is not valid."""
    process = _ssh_keygen("-Y", "check-novalidate", "-n", namespace, "-s", str(signature), content=path.read_bytes())
    match = _KEY.search(process.stdout)
    return f"{match[1]} {match[2]}" if process.returncode == 0 and match else None


def allowed_signer(path: Path, signature: Path, allowed: Path, namespace: str = NAMESPACE) -> str | None:
    """Return the principal of ``allowed`` (ssh-keygen(1), ALLOWED SIGNERS) who made a valid signature, or None."""
    if not allowed.is_file():
        raise SparkError(f"--allowed-signers {allowed}: no such file")
    search = _ssh_keygen("-Y", "find-principals", "-s", str(signature), "-f", str(allowed))
    for principal in search.stdout.split("\n"):
        if principal and search.returncode == 0:
            arguments = ("-Y", "verify", "-f", str(allowed), "-I", principal, "-n", namespace, "-s", str(signature))
            if _ssh_keygen(*arguments, content=path.read_bytes()).returncode == 0:
                return principal
    return None


def _ssh_keygen(*arguments: str, content: bytes = b"") -> subprocess.CompletedProcess[str]:
    """Run ssh-keygen with ``content`` as input, without prompts. Raises SparkError if it cannot run."""
    program = shutil.which("ssh-keygen")
    if program is None:
        raise SparkError("ssh-keygen is not installed (package openssh-client)")
    environment = {**os.environ, "SSH_ASKPASS_REQUIRE": "never", "LC_ALL": "C"}
    try:
        process = subprocess.run(
            [program, *arguments], input=content, capture_output=True, timeout=_TIMEOUT_S, check=False,
            env=environment, start_new_session=True,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SparkError(f"ssh-keygen: {error}") from error
    return subprocess.CompletedProcess(
        process.args,
        process.returncode,
        process.stdout.decode(errors="replace"),
        process.stderr.decode(errors="replace"),
    )

"""A build backend that gives MemoryOS as it was published, without its list of dependencies.

The list wants openai below 2 and some hundred packages; general-text memory imports few of them, and openai only for
classes that are not used here. pip has no way to leave out the dependencies of one requirement, so they are taken
out of the wheel: the published file is fetched by its hash, ``Requires-Dist`` goes from its metadata, all else stays.
The version gets a local part, by which the two can be told apart.
"""

from __future__ import annotations

import base64
import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

NAME, VERSION = "memoryos", "2.0.33"
SHA256 = "afba86729b86fca23010c6f1b467ed28c02948268d37373349baa514654a261a"
OURS = f"{VERSION}+without.dependencies"


def get_requires_for_build_wheel(config_settings: object = None) -> list[str]:
    """Nothing but what pyproject.toml names."""
    return []


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    """Write the wheel to a folder; its name."""
    built = f"{NAME}-{OURS}-py3-none-any.whl"
    with tempfile.TemporaryDirectory() as folder:
        published = _fetched(Path(folder))
        with zipfile.ZipFile(published) as source:
            files = {info.filename: source.read(info) for info in source.infolist() if not info.is_dir()}
    _write(Path(wheel_directory) / built, dict(_changed(name, content) for name, content in files.items()))
    return built


def _fetched(folder: Path) -> Path:
    """The published wheel, from wherever pip is set up to look. Raises CalledProcessError."""
    (folder / "wanted.txt").write_text(f"{NAME}=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--only-binary=:all:", "--no-deps"]
    subprocess.run([*pip, "-d", str(folder), "-r", str(folder / "wanted.txt")], check=True)
    return next(folder.glob("*.whl"))


def _changed(name: str, content: bytes) -> tuple[str, bytes]:
    before, after = f"{NAME}-{VERSION}.dist-info/", f"{NAME}-{OURS}.dist-info/"
    if name == f"{before}METADATA":
        head, gap, body = content.decode().partition("\n\n")
        kept = [line for line in head.splitlines() if not line.startswith(("Requires-Dist:", "Provides-Extra:"))]
        lines = [f"Version: {OURS}" if line.startswith("Version:") else line for line in kept]
        content = ("\n".join(lines) + gap + body).encode()
    return name.replace(before, after, 1), content


def _write(path: Path, files: dict[str, bytes]) -> None:
    record = f"{NAME}-{OURS}.dist-info/RECORD"
    lines = [f"{name},sha256={_digest(content)},{len(content)}" for name, content in files.items() if name != record]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, content in files.items():
            if name != record:
                wheel.writestr(name, content)
        wheel.writestr(record, "\n".join([*lines, f"{record},,", ""]))


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()

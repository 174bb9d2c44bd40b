"""Bundles as single files that any static host serves: the same bundle gives the same bytes."""

from __future__ import annotations

import gzip
import tarfile
from pathlib import Path

from memarena_dataset.safe_files import sha256_of

from memarena.site.errors import SiteError

_LEVEL = 1
"""A log shrinks to a fifth at the lowest level; higher ones take many times as long for little more."""


def pack(bundle: Path, name: str, archive: Path) -> str:
    """Write ``archive`` with the bundle's files below a folder ``name``; its SHA-256."""
    archive.parent.mkdir(parents=True, exist_ok=True)
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted(p for p in bundle.rglob("*") if p.is_file()):
            member = tarfile.TarInfo(f"{name}/{path.relative_to(bundle).as_posix()}")
            member.size, member.mode = path.stat().st_size, 0o644
            with path.open("rb") as content:
                tar.addfile(member, content)
    return sha256_of(archive)


def unpack(archive: Path, name: str, folder: Path) -> Path:
    """The bundle of an archive, below ``folder``. Raises SiteError for anything but plain files below ``name``."""
    try:
        with tarfile.open(archive, "r:gz") as tar:
            for member in tar:
                if not member.isreg() or not member.name.startswith(f"{name}/"):
                    raise SiteError(f"holds {member.name[:80]!r}; expected plain files below {name}/")
                tar.extract(member, folder, filter="data")
    except (tarfile.TarError, EOFError, OSError) as error:
        raise SiteError(f"is no archive of a bundle: {error}") from error
    return folder / name

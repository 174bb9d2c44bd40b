"""Bundles as single files that any static host serves: the same bundle gives the same bytes."""

from __future__ import annotations

import gzip
import tarfile
import zlib
from pathlib import Path

from memarena_dataset.safe_files import sha256_of

from memarena.site.errors import SiteError

_LEVEL = 1
"""A log shrinks to a fifth at the lowest level; higher ones take many times as long for little more."""


MOST_BYTES = 16 << 30
"""Of all files of a bundle; its log is nearly all of them."""
MOST_FILES = 10_000
_MOST_HEADER_BYTES = 64 << 10
"""Of one read: tarfile takes a header of any stated length into memory whole, and copies files by 16 KiB."""


def pack(bundle: Path, name: str, archive: Path) -> str:
    """Write ``archive`` with the bundle's files below a folder ``name``; its SHA-256.

    Raises SiteError for a bundle that :func:`unpack` would refuse for its size.
    """
    paths = sorted(p for p in bundle.rglob("*") if p.is_file())
    try:
        _check_size(len(paths), sum(path.stat().st_size for path in paths))
    except SiteError as error:
        raise SiteError(f"{bundle}: {error}") from error
    archive.parent.mkdir(parents=True, exist_ok=True)
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", _LEVEL, file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in paths:
            member = tarfile.TarInfo(f"{name}/{path.relative_to(bundle).as_posix()}")
            member.size, member.mode = path.stat().st_size, 0o644
            with path.open("rb") as content:
                tar.addfile(member, content)
    return sha256_of(archive)


def unpack(archive: Path, name: str, folder: Path) -> Path:
    """The bundle of an archive, below ``folder``.

    Raises SiteError for anything but plain files below ``name``, for more than MOST_BYTES or MOST_FILES of them (none
    of those that exceed them is written), and for what is no archive.
    """
    files = size_bytes = 0
    try:
        with _ShortReads(archive) as packed, tarfile.open(fileobj=packed, mode="r:") as tar:
            for member in tar:
                if not member.isreg() or not member.name.startswith(f"{name}/"):
                    raise SiteError(f"holds {member.name[:80]!r}; expected plain files below {name}/")
                files, size_bytes = files + 1, size_bytes + member.size
                _check_size(files, size_bytes)
                tar.extract(member, folder, filter="data")
    except (tarfile.TarError, EOFError, OSError, RecursionError, zlib.error) as error:
        raise SiteError(f"is no archive of a bundle: {error}") from error
    return folder / name


def _check_size(files: int, size_bytes: int) -> None:
    if files > MOST_FILES:
        raise SiteError(f"holds more than {MOST_FILES:,} files; expected at most that many")
    if size_bytes > MOST_BYTES:
        raise SiteError(f"holds {size_bytes:,} bytes or more; expected at most {MOST_BYTES:,} unpacked")


class _ShortReads(gzip.GzipFile):
    """A packed file that refuses to be read by more than a header's length at a time."""

    def read(self, size: int | None = -1) -> bytes:
        """So many bytes. Raises SiteError for more than a header has."""
        if size is None or not 0 <= size <= _MOST_HEADER_BYTES:
            raise SiteError(f"has a header of {size or 0:,} bytes; expected at most {_MOST_HEADER_BYTES:,}")
        return super().read(size)

"""Packs bundles into single files for static hosts, and unpacks them; the same bundle gives the same bytes.

A bundle is the signed folder of a certification run. The check of a site unpacks archives of people whom it need not
trust, so that number and size of files are limited.
"""

from __future__ import annotations

import gzip
import tarfile
import zlib
from pathlib import Path

from memarena_dataset.safe_files import sha256_of

from memarena.site.errors import SiteError

_LEVEL = 1
"""Compression level: the lowest shrinks a log to a fifth; higher ones take many times as long for little more."""


MOST_BYTES = 16 << 30
"""Limit of the total size of a bundle's files; its log makes up nearly all of it."""
MOST_FILES = 10_000
"""Limit of the number of a bundle's files."""
_MOST_HEADER_BYTES = 64 << 10
"""Limit of one read: tarfile reads a header of any stated length into memory, but copies files in 16 KiB pieces."""


def pack(bundle: Path, name: str, archive: Path) -> str:
    """Write ``archive`` with the bundle's files below a folder ``name``; return the archive's SHA-256.

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
            # Name, size and mode only: owner and time would differ between machines.
            member = tarfile.TarInfo(f"{name}/{path.relative_to(bundle).as_posix()}")
            member.size, member.mode = path.stat().st_size, 0o644
            with path.open("rb") as content:
                tar.addfile(member, content)
    return sha256_of(archive)


def unpack(archive: Path, name: str, folder: Path) -> Path:
    """Extract an archive below ``folder`` and return the folder of the bundle.

    Raises SiteError if the file is not an archive, has members other than plain files below ``name``, or exceeds
    MOST_BYTES or MOST_FILES; members beyond these limits are not written.
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
    """A gzip file that limits the size of a single read, against headers that claim to be large."""

    def read(self, size: int | None = -1) -> bytes:
        """Read ``size`` bytes. Raises SiteError for no size or more than :data:`_MOST_HEADER_BYTES`."""
        if size is None or not 0 <= size <= _MOST_HEADER_BYTES:
            raise SiteError(f"has a header of {size or 0:,} bytes; expected at most {_MOST_HEADER_BYTES:,}")
        return super().read(size)

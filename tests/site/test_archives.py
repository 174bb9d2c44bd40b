"""Tests archives of bundles: packing and unpacking are inverse, and hostile archives are refused early."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from memarena.site import archives
from memarena.site.archives import pack, unpack
from memarena.site.errors import SiteError


def a_file_of(size_bytes: int) -> bytes:
    """A header that states so many bytes, none of which follow."""
    member = tarfile.TarInfo("e/log")
    member.size = size_bytes
    return member.tobuf(tarfile.GNU_FORMAT)


def headers_in_a_row(kind: bytes, number: int, content: bytes) -> bytes:
    """Extended headers, one after another, of which tarfile reads each before the file that they describe."""
    member = tarfile.TarInfo("x")
    member.type, member.size = kind, len(content)
    padding = bytes(-len(content) % tarfile.BLOCKSIZE)
    return (member.tobuf(tarfile.USTAR_FORMAT) + content + padding) * number


HOSTILE: dict[str, tuple[Callable[[], bytes], str]] = {
    "a large file": (
        lambda: a_file_of(20 << 30),
        "holds 21,474,836,480 bytes or more; expected at most 17,179,869,184",
    ),
    "many files": (lambda: a_file_of(0) * 10_001, "holds more than 10,000 files"),
    "a large header": (lambda: headers_in_a_row(tarfile.XHDTYPE, 1, bytes(1 << 20)), "has a header of 1,048,576 bytes"),
    "a long name": (lambda: headers_in_a_row(tarfile.GNUTYPE_LONGNAME, 1, bytes(1 << 20)), "has a header of 1,048,"),
    "headers of headers": (
        lambda: headers_in_a_row(tarfile.XHDTYPE, 2_000, b"9 a=b=c\n\n"),
        "is no archive of a bundle",
    ),
    "a file cut short": (lambda: a_file_of(1 << 20), "is no archive of a bundle"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_archive_is_refused_with_one_line(case: str, tmp_path: Path) -> None:
    content, words = HOSTILE[case]
    (tmp_path / "a.tar.gz").write_bytes(gzip.compress(content(), 1))
    with pytest.raises(SiteError) as refused:
        unpack(tmp_path / "a.tar.gz", "e", tmp_path / "out")
    assert str(refused.value).startswith(words)
    assert "\n" not in str(refused.value)
    assert sum(path.stat().st_size for path in tmp_path.glob("out/**/*") if path.is_file()) == 0


def test_a_stream_that_breaks_is_no_archive(tmp_path: Path) -> None:
    whole = gzip.compress(a_file_of(0) + bytes(4096))
    for content in (whole[:-20], whole[:15] + b"\xff" * 8 + whole[23:], b""):
        (tmp_path / "a.tar.gz").write_bytes(content)
        with pytest.raises(SiteError, match=r"is no archive of a bundle"):
            unpack(tmp_path / "a.tar.gz", "e", tmp_path / "out")


def test_a_bundle_comes_back_and_one_that_is_too_large_is_not_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "b" / "log").mkdir(parents=True)
    (tmp_path / "b" / "log" / "run").write_bytes(bytes(300_000))
    (tmp_path / "b" / ("n" * 200)).write_bytes(b"long")
    pack(tmp_path / "b", "e", tmp_path / "a.tar.gz")
    back = unpack(tmp_path / "a.tar.gz", "e", tmp_path / "out")
    assert (back / "log" / "run").read_bytes() == bytes(300_000)
    assert (back / ("n" * 200)).read_bytes() == b"long"
    monkeypatch.setattr(archives, "MOST_BYTES", 300_003)
    with pytest.raises(SiteError, match=r"b: holds 300,004 bytes or more; expected at most 300,003"):
        pack(tmp_path / "b", "e", tmp_path / "b.tar.gz")
    with pytest.raises(SiteError, match="300,004 bytes"):
        unpack(tmp_path / "a.tar.gz", "e", tmp_path / "again")

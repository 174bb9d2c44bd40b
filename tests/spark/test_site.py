"""Tests a site with a signed bundle and a run without one: it passes its check, and each forgery is refused by name."""

from __future__ import annotations

import gzip
import io
import json
import re
import shutil
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from memarena.cli import main as harness
from memarena.cli.scores import views_of
from memarena.site.archives import pack
from memarena.site.certificates import CheckedBundle
from memarena.site.checking import Trust, check_site
from memarena.site.entries import Entry
from memarena.site.rendering import site_files
from memarena_dataset.safe_files import sha256_of
from memarena_spark.bundle.certify import certify
from memarena_spark.bundle.checked import check_bundle
from memarena_spark.bundle.signing import who_signed

from ..support.golden_run import GOLDEN
from .commands import Done
from .conftest import Keys

Memarena = Callable[..., Done]
SUBMISSION = 'schema = 1\nname = "Lab <b>one</b>"\nmemory = "bm25"\ncontact = "lab@example.org"\nkey = "{key}"\n'


@pytest.fixture
def memarena(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Memarena:
    """Return a function that runs a command line of the harness in this process."""

    def run(*arguments: str | Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["memarena", *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            harness.main()
        output = capsys.readouterr()
        return Done(int(str(ended.value.code or 0)), output.out, output.err)

    return run


@pytest.fixture(scope="module")
def submissions(signed: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of submissions that holds the signed bundle."""
    folder = tmp_path_factory.mktemp("submissions")
    shutil.copytree(signed, folder / "lab-one" / "bundle")
    key = who_signed(signed / "statement.json", signed / "statement.json.sig")
    (folder / "lab-one" / "submission.toml").write_text(
        SUBMISSION.format(key=key) + "public_dataset = true\n", encoding="utf-8"
    )
    return folder


@dataclass
class Made:
    """A site that was made from a bundle and a run."""

    folder: Path
    entry: str
    """The id of the entry with the bundle."""

    @property
    def data(self) -> Path:
        return self.folder / "data" / f"{self.entry}.json"

    @property
    def archive(self) -> Path:
        return self.folder / "bundles" / f"{self.entry}.tar.gz"

    def change(self, **fields: object) -> None:
        """Change fields of an entry (path with ``__`` between keys) and write every page again, as a forger would."""
        content = json.loads(self.data.read_bytes())
        for path, value in fields.items():
            *steps, last = path.split("__")
            node = content
            for step in steps:
                node = node[int(step) if step.isdigit() else step]
            node[last] = value
        self.data.write_text(json.dumps(content), encoding="utf-8")
        entries = [Entry.model_validate_json(p.read_bytes()) for p in sorted((self.folder / "data").iterdir())]
        for name, text in site_files(entries):
            (self.folder / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def uncertified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run without a bundle."""
    return Path(shutil.copytree(GOLDEN / "small_run", tmp_path_factory.mktemp("uncertified") / "small_run"))


@pytest.fixture(scope="module")
def whole(submissions: Path, uncertified: Path, keys: Keys, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as the command makes it; tests change only a copy."""
    out = tmp_path_factory.mktemp("site") / "site"
    arguments = ["site", str(submissions), str(uncertified), "--questions", "2", "--out", str(out)]
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["memarena", *arguments, "--allowed-signers", str(keys.allowed)])
        harness.main()
    assert not ended.value.code
    return out


@pytest.fixture
def site(whole: Path, tmp_path: Path) -> Made:
    """A copy of the site, to be forged."""
    folder = Path(shutil.copytree(whole, tmp_path / "site"))
    return Made(folder, next((folder / "bundles").iterdir()).name.removesuffix(".tar.gz"))


def check_once(bundle: Path, allowed: Path | None) -> CheckedBundle:
    """Run the real check of a bundle, once for each content."""
    key = ((bundle / "SHA256SUMS").read_bytes(), (bundle / "statement.json.sig").read_bytes())
    cache_key = (*key, sha256_of(bundle / "log" / "run.sqlite"), allowed)
    if cache_key not in _KNOWN:
        _KNOWN[cache_key] = check_bundle(bundle, allowed)
    return _KNOWN[cache_key]


_KNOWN: dict[tuple[bytes, bytes, str, Path | None], CheckedBundle] = {}


def test_a_site_shows_the_bundles_figures_and_passes_its_check(whole: Path, keys: Keys, memarena: Memarena) -> None:
    result = memarena("site", "check", whole, "--allowed-signers", keys.allowed)
    assert result.code == 0, result.out
    assert re.search(r"holds +Lab <b>one</b>: its bundle verifies and gives its figures; ED25519 SHA256:", result.out)
    assert "not checked  small_run: a run without a bundle" in result.out
    assert "vouches for its key, as the site states (--allowed-signers)" in memarena("site", "check", whole).out
    index = (whole / "index.html").read_text(encoding="utf-8")
    assert "Lab &lt;b&gt;one&lt;/b&gt; (verifies, for tests)" in index
    entry = next((whole / "bundles").iterdir()).name.removesuffix(".tar.gz")
    page = (whole / "entries" / f"{entry}.html").read_text(encoding="utf-8")
    for words in (
        "memarena-spark verify",
        "ED25519 SHA256:",
        f"../bundles/{entry}.tar.gz",
        "spark-1",
        "lab@example.org",
    ):
        assert words in page
    assert f"questions/{entry}.html#row-bm25" in index
    # The run's data set is not declared public, so the site shows no question and no gold of it.
    assert [p.stem for p in (whole / "questions").iterdir()] == [entry]
    assert not any("4821" in p.read_text(encoding="utf-8") for p in whole.rglob("*.html"))


def test_the_same_bundle_gives_the_same_site(
    whole: Path, uncertified: Path, submissions: Path, keys: Keys, tmp_path: Path, memarena: Memarena
) -> None:
    arguments = ("site", "build", uncertified, submissions, "--questions", "2", "--out", tmp_path / "again")
    assert memarena(*arguments, "--allowed-signers", keys.allowed).code == 0
    for path in (p.relative_to(whole) for p in whole.rglob("*") if p.is_file()):
        assert (tmp_path / "again" / path).read_bytes() == (whole / path).read_bytes(), path


def a_figure_on_the_first_page(site: Made) -> None:
    index = site.folder / "index.html"
    text = index.read_text(encoding="utf-8")
    index.write_text(re.sub(rf"({site.entry}\.html#row-[^>]*>)\d+\.\d", r"\g<1>99.9", text, count=1), encoding="utf-8")


def a_figure_everywhere(site: Made) -> None:
    site.change(scores__rows__0__metrics__all__value=0.987)


def a_badge(site: Made) -> None:
    site.change(certificate__certifies=["scores", "times"])


def a_badge_for_a_run_without_a_bundle(site: Made) -> None:
    certificate = json.loads(site.data.read_bytes())["certificate"]
    entry = next(p.stem for p in (site.folder / "data").iterdir() if p.stem != site.entry)
    Made(site.folder, entry).change(certificate=certificate)


def another_bundle(site: Made) -> None:
    shutil.copy(site.data, site.archive)


def another_name_for_the_row(site: Made) -> None:
    site.change(scores__rows__0__backend="acme")


def a_changed_log(site: Made) -> None:
    bundle = _unpacked(site)
    content = bytearray((bundle / "log" / "run.sqlite").read_bytes())
    content[-100] ^= 1
    (bundle / "log" / "run.sqlite").write_bytes(content)
    site.change(archive_sha256=pack(bundle, site.entry, site.archive))


def a_path_out_of_the_archive(site: Made) -> None:
    with gzip.open(site.archive, "wb") as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        member = tarfile.TarInfo(f"{site.entry}/../../gone")
        member.size = 4
        tar.addfile(member, io.BytesIO(b"evil"))
    site.change(archive_sha256=sha256_of(site.archive))


def an_archive_that_fills_the_disk(site: Made) -> None:
    member = tarfile.TarInfo(f"{site.entry}/log/run.sqlite")
    member.size = 1 << 40
    site.archive.write_bytes(gzip.compress(member.tobuf(tarfile.GNU_FORMAT)))
    site.change(archive_sha256=sha256_of(site.archive))


def an_entry_left_out(site: Made) -> None:
    index = json.loads((site.folder / "site.json").read_bytes())
    index["entries"].remove(site.entry)
    (site.folder / "site.json").write_text(json.dumps(index), encoding="utf-8")


def an_entry_elsewhere(site: Made) -> None:
    index = json.loads((site.folder / "site.json").read_bytes())
    index["entries"].append("../../etc/passwd")
    (site.folder / "site.json").write_text(json.dumps(index), encoding="utf-8")


def a_page_more(site: Made) -> None:
    (site.folder / "boards" / "best.html").write_text("<p>We are the best", encoding="utf-8")


def an_answer(site: Made) -> None:
    page = site.folder / "questions" / f"{site.entry}.html"
    page.write_text(page.read_text(encoding="utf-8").replace("wrong", "right"), encoding="utf-8")


def _unpacked(site: Made) -> Path:
    with tarfile.open(site.archive) as tar:
        tar.extractall(site.folder.parent / "unpacked", filter="data")
    return site.folder.parent / "unpacked" / site.entry


FORGED: tuple[tuple[Callable[[Made], None], str], ...] = (
    (a_figure_on_the_first_page, r"index\.html: .*bm25( ◷)?, answerable \[95%\]: states '99\.9 .*; expected '\d"),
    (a_figure_everywhere, r"data/ENTRY\.json: scores\.rows\.0\.metrics\.all\.value: states 0\.987; expected 0\."),
    (a_badge, r"data/ENTRY\.json: certificate\.certifies\.0: states \"scores\"; expected nothing"),
    (a_badge_for_a_run_without_a_bundle, r"data/small-run-\w+\.json: certificate: its bundle is neither in the site"),
    (another_bundle, r"bundles/ENTRY\.tar\.gz: is another bundle: its SHA-256 is \w+; expected \w+"),
    (another_name_for_the_row, r"data/ENTRY\.json: scores\.rows\.0\.backend: states \"acme\"; expected \"bm25\""),
    (a_changed_log, r"bundles/ENTRY\.tar\.gz/log/run\.sqlite: its SHA-256 is \w+, SHA256SUMS says"),
    (
        a_path_out_of_the_archive,
        r"bundles/ENTRY\.tar\.gz: is no archive of a bundle: .*outside the destination",
    ),
    (
        an_archive_that_fills_the_disk,
        r"bundles/ENTRY\.tar\.gz: holds 1,099,511,627,776 bytes or more; expected at most",
    ),
    (an_entry_left_out, r"data/ENTRY\.json: is not of the site"),
    (an_entry_elsewhere, r"data/\.\./\.\./etc/passwd\.json: is missing"),
    (a_page_more, r"boards/best\.html: is not of the site"),
    (an_answer, r"questions/ENTRY\.html: .*states .*right.*; expected .*wrong"),
)


@pytest.mark.parametrize(("forge", "words"), FORGED, ids=lambda value: getattr(value, "__name__", ""))
def test_a_forged_site_is_refused_by_name(site: Made, forge: Callable[[Made], None], words: str) -> None:
    forge(site)
    faults = [f"{file}: {message}" for file, message in check_site(site.folder, Trust(check_once, views_of)).faults]
    assert any(re.match(words.replace("ENTRY", re.escape(site.entry)), fault) for fault in faults), faults
    assert not (site.folder.parent / "gone").exists()


def test_another_key_is_refused_by_name(
    finished: Path, keys: Keys, site: Made, tmp_path: Path, memarena: Memarena
) -> None:
    """The same run signed by a stranger is refused: the site names another key, and the signer is not allowed."""
    certify(finished, tmp_path / site.entry, keys.stranger)
    site.change(archive_sha256=pack(tmp_path / site.entry, site.entry, site.archive))
    result = memarena("site", "check", site.folder)
    assert result.code == 2
    assert re.search(rf"data/{site.entry}\.json: certificate\.key: states .*; expected \"ED25519 SHA256:", result.out)
    stranger = who_signed(tmp_path / site.entry / "statement.json", tmp_path / site.entry / "statement.json.sig")
    site.change(certificate__key=stranger, submission__key=stranger)
    result = memarena("site", "check", site.folder, "--allowed-signers", keys.allowed)
    assert result.code == 2
    assert f"bundles/{site.entry}.tar.gz/statement.json.sig: signed by {stranger}, who is not in" in result.out


def test_submissions_are_checked_by_file_and_field(
    submissions: Path, keys: Keys, tmp_path: Path, memarena: Memarena
) -> None:
    result = memarena("site", "submit-check", submissions, "--allowed-signers", keys.allowed)
    assert (result.code, result.out.count("1 submissions can be accepted")) == (0, 1), result.out
    folder = Path(shutil.copytree(submissions, tmp_path / "bad"))
    shutil.copytree(folder / "lab-one", folder / "Über uns")
    shutil.copytree(folder / "lab-one", folder / "again")
    (folder / "again" / "notes.txt").touch()
    (folder / "nothing").mkdir()
    strange = SUBMISSION.format(key="ED25519 SHA256:abc").replace('"bm25"', '"acme"')
    (folder / "lab-one" / "submission.toml").write_text(strange + 'speed = "high"\n', encoding="utf-8")
    result = memarena("site", "submit-check", folder)
    assert result.code == 2
    for words in (
        "'Über uns': expected a folder's name",
        "again/notes.txt: is not of a submission",
        "nothing/submission.toml: cannot be read",
        "lab-one/submission.toml: speed: Extra inputs",
    ):
        assert words in result.out
    (folder / "lab-one" / "submission.toml").write_text(strange, encoding="utf-8")
    result = memarena("site", "submit-check", folder)
    for words in (
        "lab-one/submission.toml: key: states ED25519 SHA256:abc; expected that of the signature, ED25519 SHA256:",
        "lab-one/submission.toml: memory: states 'acme'; expected one of the bundle: bm25",
        "/bundle: is the bundle of ",
    ):
        assert words in result.out

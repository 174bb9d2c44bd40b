"""Tests blind annotation: each label is stored once, also after kills, and calibration reads the written files."""

from __future__ import annotations

import json
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from memarena.cli.main import app
from memarena.judging import JudgeError
from memarena.judging.human.labels import read_labels
from memarena.log.line_file import utc_now
from memarena.log.records import Verdict
from memarena.log.store import LogWriter
from memarena.viewer.annotation.campaign import Campaign, open_campaign
from memarena.viewer.annotation.label_log import LabelEntry, LabelLog
from memarena.viewer.annotation.server import make_annotation_app
from typer.testing import CliRunner

from ..support.grid_run import BACKENDS, HOSTILE
from .conftest import CHROMIUM, Site, served

if TYPE_CHECKING:
    from playwright.sync_api import Page

SIZE = 30
SHA = "ab" * 32


@pytest.fixture(scope="module")
def sample_folder(lab: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a sample, drawn once."""
    folder = tmp_path_factory.mktemp("drawn")
    open_campaign(lab, folder, "value", size=SIZE)
    return folder


@pytest.fixture
def campaign(lab: Path, sample_folder: Path, tmp_path: Path) -> Campaign:
    """The sample without any label."""
    shutil.copytree(sample_folder, tmp_path / "annotations")
    return open_campaign(lab, tmp_path / "annotations", "value")


@pytest.fixture
def desk(campaign: Campaign) -> Iterator[Site]:
    """Where Anna and Ben label."""
    with served(lambda door: make_annotation_app(campaign, ["Anna", "Ben"], door)) as door:
        yield Site(campaign.folder, campaign.folder, door)


def lines(folder: Path) -> list[dict[str, object]]:
    path = folder / "labels.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []


def give(desk: Site, annotator: str, item: str, label: str, form: str, **more: str) -> str:
    """Send a form as the page does; the address that follows."""
    answer = desk.ask(f"/by/{annotator}/{item}", method="POST", form={"form": form, "label": label, **more})
    assert answer.status == 303, answer.plain
    return answer.headers["Location"]


# ------------------------------------------------------------------ blind, in order, resumable


def test_an_item_shows_neither_memory_nor_verdict_nor_others(desk: Site, campaign: Campaign) -> None:
    give(desk, "Ben", "b001", "wrong", "f1", note="Ben was here")
    for item in campaign.items:
        text = desk.ask(f"/by/Anna/{item.item}").text
        assert item.cell_id not in text
        assert not re.search("|".join((*BACKENDS, "Ben", "small-0.6b", "large-8b")), text)
        assert HOSTILE not in text
        assert "<script>" not in text
    assert "aria-pressed" not in desk.ask("/by/Anna/b001").text


def test_whoever_comes_back_goes_on_where_they_left_off(desk: Site, campaign: Campaign) -> None:
    assert desk.ask("/by/Anna").headers["Location"] == "/by/Anna/b001"
    assert give(desk, "Anna", "b001", "correct", "f1") == "/by/Anna/b002"
    assert give(desk, "Anna", "b003", "cannot_say", "f2") == "/by/Anna/b004"
    assert desk.ask("/by/Anna").headers["Location"] == "/by/Anna/b002"
    assert "2 of 30 judged, 1 of them" in desk.ask("/by/Anna/b002").plain
    for n, item in enumerate(campaign.items):
        give(desk, "Anna", item.item, campaign.choices(item)[0], f"all{n}")
    assert "All judged" in desk.ask("/by/Anna").plain


def test_labels_are_never_overwritten_and_say_who_when_how_long_and_why(desk: Site, campaign: Campaign) -> None:
    shown_ms = str(int(time.time() * 1000) - 4000)
    give(desk, "Anna", "b001", "correct", "f1", shown_ms=shown_ms, note="sure")
    give(desk, "Anna", "b001", "wrong", "f2", reason="misread it")
    first, second = lines(campaign.folder)
    assert (first["annotator"], first["item"], first["label"], first["note"]) == ("Anna", "b001", "correct", "sure")
    assert isinstance(first["seconds"], float)
    assert 3.5 <= first["seconds"] < 30
    assert (second["label"], second["reason"]) == ("wrong", "misread it")
    text = desk.ask("/by/Anna/b001").plain
    assert "Labels of this item so far: 2" in text
    assert "misread it" in text


def test_the_last_label_can_be_taken_back(desk: Site, campaign: Campaign) -> None:
    give(desk, "Anna", "b001", "correct", "f1")
    assert "take back the label of b001" in desk.ask("/by/Anna/b002").plain
    back = desk.ask("/by/Anna/b001", method="POST", form={"form": "u1", "undo": "1"})
    assert back.headers["Location"] == "/by/Anna/b001"
    assert [line["label"] for line in lines(campaign.folder)] == ["correct", None]
    assert desk.ask("/by/Anna").headers["Location"] == "/by/Anna/b001"
    assert "take back" not in desk.ask("/by/Anna/b001").plain.partition("Keys:")[0].partition("Labels of")[0]


def test_a_form_that_is_sent_twice_gives_one_label(desk: Site, campaign: Campaign) -> None:
    for _ in range(2):
        give(desk, "Anna", "b001", "correct", "same")
    assert len(lines(campaign.folder)) == 1


@pytest.mark.parametrize(
    ("path", "form", "words"),
    [
        ("/by/Anna/b001", {"form": "f", "label": "perhaps"}, "expected one of correct, wrong, cannot_say"),
        ("/by/Anna/b001", {"label": "correct"}, "form: expected the id"),
        ("/by/Anna/zzz", {"form": "f", "label": "correct"}, "no such item"),
        ("/by/Eve/b001", {"form": "f", "label": "correct"}, "Eve does not label here"),
    ],
)
def test_what_cannot_be_a_label_is_refused(
    desk: Site, campaign: Campaign, path: str, form: dict[str, str], words: str
) -> None:
    answer = desk.ask(path, method="POST", form=form)
    assert answer.status in (404, 422)
    assert words in answer.plain
    assert lines(campaign.folder) == []


def test_no_other_site_can_send_a_label(desk: Site, campaign: Campaign) -> None:
    headers = {"Origin": "http://evil.example", "Content-Type": "application/x-www-form-urlencoded"}
    assert desk.ask("/by/Anna/b001", headers, method="POST").status == 403
    assert lines(campaign.folder) == []


# ------------------------------------------------------------------ agreement, import, export


def test_agreement_and_what_is_to_settle_are_live(desk: Site, campaign: Campaign) -> None:
    """κ of a table worked by hand: 2 both right, 1 only the first, 1 both wrong: observed 0.75, expected 0.5, κ 0.5."""
    for n, (anna, ben) in enumerate([("correct", "correct")] * 2 + [("correct", "wrong"), ("wrong", "wrong")], 1):
        give(desk, "Anna", f"b{n:03d}", anna, f"a{n}")
        give(desk, "Ben", f"b{n:03d}", ben, f"b{n}")
    give(desk, "Ben", "b005", "cannot_say", "b5")
    give(desk, "Anna", "b005", "wrong", "a5")
    text = desk.ask("/agreement").plain
    assert "Anna with Ben 4 75.0% 0.500" in text
    assert "1 item on which people differ" in text
    assert "b003" in text
    verdict = {"correct": "right", "wrong": "wrong"}[campaign.labels_by_judge["value"]["b003"]]
    assert f"Anna : right; Ben : wrong. Majority: none; value: {verdict}" in text
    poll_match = re.search(r'hx-get="(/agreement\?seen=\d+)"', desk.ask("/agreement").text)
    assert poll_match is not None
    asks = {"HX-Request": "true"}
    assert desk.ask(poll_match[1], asks).status == 204, "nothing new"
    give(desk, "Ben", "b003", "correct", "b3 again", reason="talked it over")
    assert desk.ask(poll_match[1], asks).status == 200
    assert "No two people gave different labels." in desk.ask("/agreement").plain


def test_the_majority_is_compared_with_each_judge_of_the_run(lab: Path, sample_folder: Path, tmp_path: Path) -> None:
    """A second judge that says the contrary of the first everywhere."""
    run = shutil.copytree(lab, tmp_path / "run")
    shutil.copytree(sample_folder, tmp_path / "annotations")
    own = open_campaign(run, tmp_path / "annotations", "value")
    binary = [item for item in own.items if item.track == "binary"]
    with LogWriter(run) as log:
        for item in binary:
            log.append(
                Verdict(
                    cell_id=item.cell_id, instance_id=item.instance_id, attempt=item.attempt, judge="contrary",
                    judge_version="1", route="llm", score=1.0,
                    correct=own.labels_by_judge["value"][item.item] == "wrong",
                )
            )  # fmt: skip
    own = open_campaign(run, tmp_path / "annotations", "value")
    for item in binary:
        for name in ("Anna", "Ben", "Eve"):
            own.give(name, item.item, own.labels_by_judge["value"][item.item], f"{name} {item.item}")
    with served(lambda door: make_annotation_app(own, ["Anna"], door)) as door:
        text = Site(tmp_path, tmp_path, door).ask("/agreement").plain
    for name in ("Anna", "Ben", "Eve", "majority"):
        assert f"{name} with value {len(binary)} 100.0% 1.000" in text
        assert re.search(rf"{name} with contrary {len(binary)} 0\.0% -", text)
    assert text.count("Anna with Ben") == 2, "once a track"


def test_labels_go_to_the_file_of_calibration_and_come_back(lab: Path, campaign: Campaign, tmp_path: Path) -> None:
    for n, item in enumerate(campaign.items):
        for name in ("Anna", "Ben", "Eve"):
            campaign.give(name, item.item, campaign.choices(item)[n % 2], f"{name}{n}")
    campaign.give("Anna", "b001", "cannot_say", "unsure")
    out = tmp_path / "labels.json"
    command = ["annotate", str(lab), "--in", str(campaign.folder)]
    result = CliRunner().invoke(app, [*command, "--export", str(out)], catch_exceptions=False)
    assert "89 labels" in result.output
    arguments = result.output.split("memarena ")[-1].split()
    calibration_result = CliRunner().invoke(app, arguments, catch_exceptions=False)
    assert calibration_result.exit_code == 0
    assert "Anna with Ben" in calibration_result.output
    assert read_labels([out], campaign.sample) == campaign.log.people()
    with pytest.raises(JudgeError, match="exists already"):
        campaign.write_labels(out)
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    shutil.copy(campaign.folder / "sample.json", fresh)
    for expected in ("89 labels added", "0 labels added"):
        again = CliRunner().invoke(app, ["annotate", str(lab), "--in", str(fresh), "--import", str(out)])
        assert expected in again.output
    assert Campaign(lab, fresh, "value").log.people() == campaign.log.people()


def test_a_sample_is_drawn_once_and_belongs_to_its_run(
    lab: Path, sample_folder: Path, campaign: Campaign, tmp_path: Path
) -> None:
    assert open_campaign(lab, sample_folder, "value", size=SIZE).sample == campaign.sample
    assert len(campaign.items) == SIZE
    with pytest.raises(JudgeError, match="holds 30 items already"):
        open_campaign(lab, sample_folder, "value", size=10)
    with pytest.raises(JudgeError, match="drawn with seed 0"):
        open_campaign(lab, sample_folder, "value", seed=1)
    other = campaign.sample.model_copy(update={"run_id": "another"})
    (tmp_path / "sample.json").write_text(other.model_dump_json(), encoding="utf-8")
    with pytest.raises(JudgeError, match="run_id: this sample is of run another"):
        open_campaign(lab, tmp_path, "value")
    result = CliRunner().invoke(app, ["annotate", str(lab)])
    assert "expected --annotator NAME" in str(result.exception)
    result = CliRunner().invoke(app, ["annotate", str(lab), "--annotator", "../x"])
    assert "expected 1 to 60 letters" in str(result.exception)


def test_only_those_who_label_have_a_sample_drawn_and_a_judge_is_one_of_the_run(lab: Path, tmp_path: Path) -> None:
    """Else a mistyped export would settle how large the sample is."""
    (tmp_path / "labels.json").write_text("{}", encoding="utf-8")
    for option in (["--export", str(tmp_path / "out.json")], ["--import", str(tmp_path / "labels.json")]):
        result = CliRunner().invoke(app, ["annotate", str(lab), "--in", str(tmp_path / "none"), *option])
        assert "there is no sample yet" in str(result.exception)
    assert not (tmp_path / "none").exists()
    result = CliRunner().invoke(
        app, ["annotate", str(lab), "--annotator", "Anna", "--judge", "nobody", "--in", str(tmp_path / "none")]
    )
    assert "no verdict by this judge" in str(result.exception)
    assert "there are: value" in str(result.exception)


# ------------------------------------------------------------------ nothing lost, nothing doubled


def label(n: int, annotator: str = "Anna") -> LabelEntry:
    return LabelEntry(
        id=f"{annotator}-{n}", at=utc_now(), annotator=annotator, item=f"b{n:05d}", label="wrong", sample_sha256=SHA
    )


_WRITER = """
import sys
import threading
from pathlib import Path
from memarena.log.line_file import utc_now
from memarena.viewer.annotation.label_log import LabelEntry, LabelLog
folder, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
log = LabelLog(folder, "ab" * 32)
print("ready", flush=True)
for n in range(count):
    log.append([LabelEntry(id=f"{name}-{n}", at=utc_now(), annotator=name, item=f"b{n:05d}", label="wrong",
                           note="x" * 300, sample_sha256="ab" * 32)])
    print(n, flush=True)
"""


def begun(folder: Path, name: str, count: int) -> subprocess.Popen[str]:
    """A process that gives so many labels, one by one, and says when each is kept."""
    command = [sys.executable, "-c", _WRITER, str(folder), name, str(count)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_two_write_at_once_and_one_is_killed(tmp_path: Path) -> None:
    """Every acknowledged label is stored once; a torn line loses no label of another annotator."""
    with begun(tmp_path, "Anna", 300) as anna, begun(tmp_path, "Ben", 300) as ben:
        assert anna.stdout is not None
        assert ben.stdout is not None
        acknowledged = []
        for line in anna.stdout:
            acknowledged.append(line.strip())
            if line.strip() == "60":
                anna.send_signal(signal.SIGKILL)
                break
        acknowledged += [line.strip() for line in anna.stdout]
        ben_lines = [line.strip() for line in ben.stdout]
    log = LabelLog(tmp_path, SHA)
    assert len(log.current("Ben")) == len(ben_lines) - 1 == 300
    count = len([a for a in acknowledged if a.isdigit()])
    assert count <= len(log.current("Anna")) <= count + 1
    assert {f"b{n:05d}" for n in range(count)} <= set(log.current("Anna"))
    ids = [
        json.loads(line)["id"] for line in (tmp_path / "labels.jsonl").read_bytes().splitlines() if line.endswith(b"}")
    ]
    assert len(ids) == len(set(ids))


def test_threads_of_one_server_read_and_write_at_once(tmp_path: Path) -> None:
    """What one of them wrote is in what the others read, and stays there."""
    log = LabelLog(tmp_path, SHA)
    names = ["Anna", "Ben"]
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            log.refresh()
            for name in log.annotators():
                log.current(name)

    def write(name: str) -> None:
        for n in range(200):
            log.append([label(n, name)])
            assert len(log.current(name)) == n + 1

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(read) for _ in range(2)]
        writers = [pool.submit(write, name) for name in names]
        wait(writers)
        ended.set()
        for future in (*writers, *readers):
            future.result()
    assert [len(log.current(name)) for name in names] == [200, 200]
    assert (log.faults, log.lines) == ([], 400)


def test_two_processes_that_keep_the_same_forms_keep_each_once(tmp_path: Path) -> None:
    """This happens if a form is sent to two servers at the same moment."""
    processes = [begun(tmp_path, "Anna", 400) for _ in range(3)]
    for process in processes:
        with process:
            process.communicate(timeout=60)
    ids = [line["id"] for line in lines(tmp_path)]
    assert len(ids) == len(set(ids)) == 400


def test_a_torn_line_is_told_and_the_next_label_is_whole(tmp_path: Path) -> None:
    log = LabelLog(tmp_path, SHA)
    log.append([label(1)])
    with (tmp_path / "labels.jsonl").open("ab") as file:
        file.write(b'{"id": "torn", "at": "20')
    again = LabelLog(tmp_path, SHA)
    assert again.faults == []
    again.append([label(2)])
    assert set(again.current("Anna")) == {"b00001", "b00002"}
    assert again.faults == ["line 2 of labels.jsonl is no label and is passed over"]
    log.refresh()
    assert log.current("Anna") == again.current("Anna")


def test_labels_of_another_sample_are_refused(tmp_path: Path) -> None:
    LabelLog(tmp_path, SHA).append([label(1)])
    with pytest.raises(JudgeError, match="belongs to another sample"):
        LabelLog(tmp_path, "cd" * 32)


def test_ten_thousand_labels(tmp_path: Path) -> None:
    names = [f"person {n}" for n in range(20)]
    log = LabelLog(tmp_path, SHA)
    assert log.append([label(n, name) for name in names for n in range(500)]) == 10_000
    assert log.append([label(n, names[0]) for n in range(500)]) == 0
    again = LabelLog(tmp_path, SHA)
    assert sum(len(own) for own in again.people().values()) == 10_000
    assert len((tmp_path / "labels.jsonl").read_bytes().splitlines()) == 10_000


# ------------------------------------------------------------------ in a browser


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium found: apt install chromium, or MEMARENA_CHROMIUM")
def test_two_people_label_by_keyboard_at_once_and_one_browser_is_killed(desk: Site, campaign: Campaign) -> None:
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import expect, sync_playwright

    def entered(context_of: object, script: bool = True) -> Page:
        context = context_of.new_context(java_script_enabled=script)  # type: ignore[attr-defined]
        context.add_cookies([{"name": desk.door.cookie, "value": desk.door.token, "url": desk.base}])
        page: Page = context.new_page()
        return page

    def at(page: Page, item: str) -> None:
        """The page of an item is there, and its script listens."""
        expect(page.locator("p.brand").last).to_contain_text(item)
        page.wait_for_load_state("load")

    with sync_playwright() as playwright:
        first_browser, second_browser = (playwright.chromium.launch(executable_path=CHROMIUM) for _ in range(2))
        anna, ben = entered(first_browser), entered(second_browser)
        for page, name in ((anna, "Anna"), (ben, "Ben")):
            page.goto(f"{desk.base}/by/{name}")
        for n in range(1, 7):
            for page in (anna, ben):
                at(page, f"b{n:03d} ")
                page.keyboard.press(str(1 + n % 2))
        second_browser.close()
        at(anna, "b007 ")
        for path in ("/", "/agreement", "/by/Anna/b007"):
            anna.goto(desk.base + path)
            for scheme in ("dark", "light"):
                anna.emulate_media(color_scheme=scheme)
                violations = Axe().run(anna).response["violations"]
                assert [v["id"] for v in violations if v["impact"] in ("serious", "critical")] == [], (path, scheme)
            for width in (1400, 800, 390):
                anna.set_viewport_size({"width": width, "height": 900})
                assert anna.evaluate("document.documentElement.scrollWidth") == width
        anna.keyboard.press("u")
        at(anna, "b006 ")
        anna.keyboard.press("n")
        anna.keyboard.type("note 1 u")
        anna.keyboard.press("Escape")
        anna.keyboard.press("3")
        at(anna, "b007 ")
        anna.keyboard.press("ArrowLeft")
        expect(anna.locator("input[name=note]")).to_have_value("note 1 u")
        plain = entered(first_browser, script=False)
        plain.goto(f"{desk.base}/by/Ben")
        left_off = plain.url.rpartition("/")[2]
        assert left_off in ("b006", "b007")
        plain.get_by_role("button", name="wrong").focus()
        plain.keyboard.press("Enter")
        plain.wait_for_url(f"**/b{int(left_off[1:]) + 1:03d}")
        first_browser.close()
    campaign.log.refresh()
    assert len(campaign.log.current("Anna")) == 6
    assert campaign.log.current("Anna")["b006"].label == "cannot_say"
    assert set(campaign.log.current("Ben")) == {f"b{n:03d}" for n in range(1, int(left_off[1:]) + 1)}
    entries = lines(campaign.folder)
    assert len({line["id"] for line in entries}) == len(entries)
    for name in ("Anna", "Ben"):
        standing = [line["item"] for line in entries if line["annotator"] == name and line["label"]]
        assert len(standing) - len(set(standing)) == (1 if name == "Anna" else 0)

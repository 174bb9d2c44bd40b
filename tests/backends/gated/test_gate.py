"""Tests the gate over bm25: who is shown what, that nothing withheld reaches a prompt, and what people can read.

The gate withholds from an asker what the wishes of the speakers forbid, before a reader sees it. An item that slips
through is a leak that no prompt can undo.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from memarena.gateway import CallContext, Gateway
from memarena_backend import ServeError
from memarena_backend_bm25 import Bm25Memory
from memarena_backend_gated import GatedMemory, explain
from memarena_backend_gated.__main__ import make_memory
from memarena_backend_gated.settings import Settings, read_settings
from memarena_backend_gated.store import STORE_NAME, RecordStore
from memarena_proto import memory_backend_pb2 as pb

from tests.backends.support import FRIEND, OWNER, Served, make_day, make_query, make_session, serve
from tests.support.model_server import ModelServer

# The friend of make_session is Omar Haddad (p-fri); he speaks every second turn, the owner Maya Chen the others.
STRANGER = pb.Requester(kind=pb.REQUESTER_KIND_ANONYMOUS)


def person(name: str, relationship: str, participant_id: str = "p-other") -> pb.Requester:
    return pb.Requester(
        kind=pb.REQUESTER_KIND_KNOWN_PERSON,
        participant_id=participant_id,
        display_name=name,
        relationship=relationship,
    )


OWN = pb.Requester(kind=pb.REQUESTER_KIND_OWNER)
GRETA, PAULO = person("Greta Lind", "friend"), person("Paulo Reis", "colleague")
SISTER = person("Ines Chen", "family")
OMAR = person("Omar Haddad", "friend", FRIEND.participant_id)

FACT = "I sold my sailboat for 9400 euros."
CASES = {
    # what Omar says after the fact: who is shown it, who is not
    "Keep that between us.": ([OWN, OMAR], [GRETA, PAULO, SISTER, STRANGER]),
    "You can tell Greta, but nobody else.": ([OWN, OMAR, GRETA], [PAULO, SISTER, STRANGER]),
    "Your colleagues shouldn't hear about it, though.": ([OWN, GRETA, SISTER], [PAULO, STRANGER]),
    "Anyone may know, just not Paulo.": ([OWN, GRETA, SISTER, STRANGER], [PAULO]),
    "Don't tell anyone until January 20.": ([OWN, OMAR], [GRETA, PAULO, SISTER, STRANGER]),
    "Don't tell anyone until January 2.": ([OWN, GRETA, PAULO, SISTER], [STRANGER]),
    "The weather was splendid.": ([OWN, OMAR, GRETA, PAULO, SISTER], [STRANGER]),
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(GatedMemory(Bm25Memory(), RecordStore(tmp_path / STORE_NAME), Settings()), tmp_path) as running:
        yield running


def shown(served: Served, asker: pb.Requester, day: int = 0, **fields: object) -> str:
    response = served.search(make_query("n1", "sailboat euros", day, requester=asker, **fields))
    return "\n".join(item.text for item in response.items)


@pytest.mark.parametrize("wish", CASES)
def test_a_wish_decides_who_is_shown_a_fact(served: Served, wish: str) -> None:
    served.ingest(make_day("n1", 0, [make_session("s1", ["Hi!", f"{FACT} {wish}"])]))
    may, may_not = CASES[wish]
    assert ["9400" in shown(served, asker) for asker in may] == [True] * len(may)
    assert ["9400" in shown(served, asker) for asker in may_not] == [False] * len(may_not)


def test_the_latest_wish_of_the_person_counts_and_covers_what_was_said_before_and_after(served: Served) -> None:
    first = make_session("s1", ["Hi!", FACT, "Oh?", "Please keep it to yourself."])
    served.ingest(make_day("n1", 0, [first]))
    assert "9400" not in shown(served, GRETA)
    again = make_session("s2", ["So?", "The 9400 euros of the sailboat are on my account."], day=1)
    served.ingest(make_day("n1", 1, [again]))
    assert "9400" not in shown(served, GRETA, 1)
    now = make_session("s3", ["So?", "You can tell everyone that I sold the sailboat now."], day=2)
    served.ingest(make_day("n1", 2, [now]))
    assert FACT in shown(served, GRETA, 2)


def test_without_a_wish_codes_and_health_are_for_those_who_heard_them(served: Served) -> None:
    served.ingest(make_day("n1", 0, [make_session("s1", ["My sailboat locker code is 3371.", "Thanks, Maya."])]))
    assert ["3371" in shown(served, asker) for asker in (OWN, OMAR, GRETA, STRANGER)] == [True, True, False, False]


def test_what_is_unclear_follows_the_option(served: Served) -> None:
    served.ingest(make_day("n1", 0, [make_session("s1", ["Hi!", f"{FACT} You can tell people once it is official."])]))
    unclear = [pb.Option(key="unclear", value="open")]
    assert "9400" not in shown(served, GRETA)
    assert "9400" in shown(served, GRETA, options=unclear)
    response = served.search(make_query("n1", "sailboat euros", 0, requester=GRETA))
    assert [(notice.code, notice.message) for notice in response.notices if notice.code != "gate_us"] == [
        ("gate_shown_default", ""),
        ("gate_withheld_unclear", "records w1"),
    ]


def test_a_deletion_is_shown_to_no_other_asker(served: Served) -> None:
    talk = ["Hi!", "The old sailboat code is 3371.", "Sure.", "Delete the old sailboat code 3371 from memory."]
    served.ingest(make_day("n1", 0, [make_session("s1", talk)]))
    assert ["3371" in shown(served, asker) for asker in (OWN, OMAR, GRETA)] == [True, False, False]


def test_no_text_of_a_withheld_item_reaches_the_prompt(tmp_path: Path) -> None:
    secret = f"{FACT} Keep that between us."
    with (
        ModelServer() as reader,
        Gateway([reader.upstream(name="tiny")], lambda _: None) as gateway,
        serve(GatedMemory(Bm25Memory(), RecordStore(tmp_path / STORE_NAME), Settings()), tmp_path) as served,
    ):
        served.ingest(make_day("n1", 0, [make_session("s1", ["The lake was calm.", secret])]))

        def prompt_of(asker: pb.Requester) -> str:
            models = [pb.Model(name="tiny", role=pb.MODEL_ROLE_READER, context_window_tokens=2048)]
            token = gateway.grant(CallContext("answer"))
            access = pb.ModelAccess(base_url=gateway.base_url, token=token, models=models)
            query = make_query("n1", "What of the boat?", 0, requester=asker, model_access=access)
            request = pb.AnswerRequest(search=query, reading=pb.Reading(model="tiny", max_tokens=64))
            list(served.stub.Answer(request, timeout=20.0))
            return str(reader.received[-1].body["messages"])

        assert "9400" in prompt_of(OWN)
        for asker in (GRETA, STRANGER):
            prompt = prompt_of(asker)
            assert not [word for word in ("sailboat", "9400", "euros", "between us") if word in prompt]
        assert "The lake was calm." in prompt_of(GRETA)
        # Where nothing is left, the reader is asked as of an empty memory.
        assert "(nothing was found)" in prompt_of(STRANGER)


def test_records_outlive_a_restart_and_end_with_their_namespace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def printed(*arguments: str) -> tuple[str, int | str | None]:
        with pytest.raises(SystemExit) as ended:
            explain.main(["explain", str(tmp_path), *arguments])
        output = capsys.readouterr()
        return output.out + output.err, ended.value.code

    def start() -> GatedMemory:
        return GatedMemory(Bm25Memory(), RecordStore(tmp_path / STORE_NAME), Settings())

    with serve(start(), tmp_path) as served:
        served.ingest(make_day("n1", 0, [make_session("s1", ["Hi!", f"{FACT} Keep that from Paulo until Friday."])]))
    with serve(start(), tmp_path) as served:
        assert ["9400" in shown(served, asker) for asker in (GRETA, PAULO)] == [True, False]
        text, code = printed("--namespace", "n1")
        assert code == 0
        assert (
            "w1 Omar Haddad (sold, sailboat, 9400, euro) is to be withheld from Paulo, until Friday 3 January" in text
        )
        served.stub.Forget(pb.ForgetRequest(namespace="n1", fact_text="sailboat"), timeout=20.0)
        assert shown(served, OWN) == f"{OWNER.display_name}: Hi!"
        served.reset("n1")
        assert printed("--namespace", "n1") == ("error: --namespace n1: expected one of none\n", 2)
    assert "sailboat" not in (tmp_path / STORE_NAME).read_bytes().decode("latin-1")
    assert printed()[1] == 0
    program = [str(Path(sys.executable).with_name("memarena")), "gated", "explain", str(tmp_path / "none")]
    result = subprocess.run(program, capture_output=True, text=True, timeout=60, check=False)
    assert (result.returncode, result.stderr) == (
        2,
        f"error: {tmp_path}/none/{STORE_NAME}: cannot be read: unable to open database file\n",
    )


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"GATED_UNCLEAR": "maybe"}, "GATED_UNCLEAR: expected careful or open, got 'maybe'"),
        ({"GATED_MEMORY": "nothing"}, "GATED_MEMORY: expected one of bm25, memsearch, got 'nothing'"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(
    environment: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ServeError, match=message.split(":", maxsplit=1)[0]) as refused:
        make_memory(tmp_path)
    assert str(refused.value) == message


def test_settings_have_defaults() -> None:
    assert read_settings({}) == Settings("bm25", "careful")

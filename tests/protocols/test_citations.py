"""Citations and sources on the wire: taken from the client, shown before their text, in history, from a lost run."""

from dataclasses import replace

import orjson
import pytest

from agents.protocols.agui import decode, history, runinput, salvage
from agents.protocols.agui.encode import RunEncoder
from agents.runtime.errors import Rejected
from agents.runtime.events import AssistantMessage, TextDelta, UserMessage
from agents.runtime.knowledge import Cited
from tests.protocols import scenarios
from tests.protocols.checker import check, ours
from tests.protocols.conversation import CANCELLED, STARTED, answered, asked, encode, stored
from tests.protocols.scenarios import CITED, CITED_MESSAGE, NOT_IN_DOCUMENTS, REPORT, SAID, TABLE

ONE, TWO = Cited(number=1, citation=REPORT), Cited(number=2, citation=TABLE)
UNDATED = Cited(number=1, citation=replace(SAID, at=None))
ON_THE_WIRE = {
    "number": 1,
    "id": "k3f9ab",
    "documentId": scenarios.DOCUMENT,
    "version": 2,
    "name": "报告.pdf",
    "start": 120,
    "end": 180,
    "place": {"page": 3, "heading": ["Results", "Costs"]},
    "quote": "Costs fell by 5 %.",
}
MESSAGE_ON_THE_WIRE = {
    "number": 1,
    "id": "p4q2rt",
    "message": {"threadId": "th/前", "id": "u7", "at": "2026-05-03T14:02:03.450000+00:00"},
    "name": "Costs of the 冷库",
    "start": 0,
    "end": 21,
    "quote": "We agreed on 450,000.",
}


def test_each_message_gets_its_citations_once_and_before_the_text_with_their_links() -> None:
    events = check(encode(*CITED))
    seen: list[tuple[str, str]] = []
    for event in events:
        if event["type"] == "CUSTOM":
            assert event["name"] == "workbench.citation"
            seen.append((event["value"]["messageId"], event["value"]["id"]))
        elif event["type"] == "TEXT_MESSAGE_CONTENT":
            for citation_id in ("k3f9ab", "m2x7qp"):
                assert f"#c-{citation_id}" not in event["delta"] or (event["messageId"], citation_id) in seen
    assert seen == [("m1", "k3f9ab"), ("m1", "m2x7qp"), ("m2", "k3f9ab")]
    (first, *_) = (event["value"] for event in events if event["type"] == "CUSTOM")
    assert first == {"messageId": "m1", **ON_THE_WIRE}


def test_a_cited_message_names_its_thread_and_never_covers_the_message_that_cites_it() -> None:
    events = check(encode(*CITED_MESSAGE))
    first, second = (event["value"] for event in events if event["type"] == "CUSTOM")
    assert first == {"messageId": "m1", **MESSAGE_ON_THE_WIRE}
    assert second == {"messageId": "m1", **ON_THE_WIRE, "number": 2}
    (answer,) = (event for event in CITED_MESSAGE if isinstance(event, AssistantMessage))
    (kept,) = history.messages(stored(answer))
    assert kept["metadata"]["workbench"]["citations"] == [MESSAGE_ON_THE_WIRE, {**ON_THE_WIRE, "number": 2}]
    check(history.snapshot_run("th", "r9", stored(answer), False, {}), first_seq=None)
    (saved,) = salvage.unstored(encode(*CITED_MESSAGE[:6]), ())
    assert (saved.text, saved.citations) == (answer.text, answer.citations)


def test_history_carries_what_the_stream_showed() -> None:
    records = [event for event in CITED if isinstance(event, AssistantMessage)]
    one, two = (message["metadata"]["workbench"] for message in history.messages(stored(*records)))
    assert one["citations"] == [ON_THE_WIRE, history.citation(TWO)]
    assert two["citations"] == [ON_THE_WIRE]
    assert history.citation(TWO)["place"] == {"sheet": "Costs", "rows": [4, 9]}


def test_a_snapshot_with_citations_is_a_valid_stream() -> None:
    records = [event for event in (*CITED, *NOT_IN_DOCUMENTS) if isinstance(event, AssistantMessage | UserMessage)]
    check(history.snapshot_run("th", "r9", stored(*records), False, {}), first_seq=None)


@pytest.mark.parametrize("cited", [ONE, TWO, Cited(number=3, citation=SAID), UNDATED])
def test_a_citation_is_read_back_as_it_was_written(cited: Cited) -> None:
    assert history.cited(orjson.loads(orjson.dumps(history.citation(cited)))) == cited


def test_the_sources_are_told_with_the_run_and_with_the_message_they_were_chosen_for() -> None:
    started = check(encode(*CITED))[0]
    assert ours(started)["sources"] == [scenarios.DOCUMENT, "t1"]
    assert started["input"]["messages"][0]["metadata"]["workbench"]["sources"] == [scenarios.DOCUMENT, "t1"]
    everything = check(encode(STARTED, asked("Hi"), CANCELLED))[0]
    assert "sources" not in ours(everything) and "metadata" not in everything["input"]["messages"][0]


def test_not_in_the_documents_is_told_at_the_end_of_the_message_and_in_history() -> None:
    events = check(encode(*NOT_IN_DOCUMENTS))
    ends = [event for event in events if event["type"] == "TEXT_MESSAGE_END"]
    assert [(end["messageId"], ours(end)["notInDocuments"]) for end in ends] == [("m1", True), ("m2", True)]
    records = [event for event in NOT_IN_DOCUMENTS if isinstance(event, AssistantMessage)]
    kept = history.messages(stored(*records))
    assert [message["metadata"]["workbench"]["notInDocuments"] for message in kept] == [True, True]


def test_a_lost_answer_keeps_the_citations_that_its_text_links_to() -> None:
    encoder = RunEncoder(thread_id="th", run_id="r1")
    frames = encode(*CITED[:5], encoder=encoder)
    shown_only = encode(CITED[5], encoder=encoder)  # the process died before the text that uses it
    (saved,) = salvage.unstored([*frames, *shown_only], ())
    assert (saved.text, saved.citations) == ("It fell [1](#c-k3f9ab), see ", (ONE,))
    (saved,) = salvage.unstored([*frames, *shown_only, *encode(CITED[6], encoder=encoder)], ())
    assert (saved.text, saved.citations) == (scenarios.CITED_TEXT, (ONE, TWO))


def test_of_a_message_that_streamed_half_the_rest_of_its_citations_is_shown() -> None:
    whole = answered("m1", scenarios.CITED_TEXT, citations=(ONE, TWO))
    events = check(encode(STARTED, asked("Go"), *CITED[2:4], whole, CANCELLED))
    customs = [event["value"]["id"] for event in events if event["type"] == "CUSTOM"]
    assert customs == ["k3f9ab", "m2x7qp"]
    deltas = [event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"]
    assert "".join(deltas) == scenarios.CITED_TEXT and isinstance(CITED[3], TextDelta)


# What a client asks to answer from


def asking(**ours: object) -> bytes:
    message = {"id": "u1", "role": "user", "content": "Hi"}
    return orjson.dumps({"threadId": "th", "runId": "r1", "messages": [message], "forwardedProps": {"workbench": ours}})


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        (None, None),
        ([], ()),
        ([scenarios.DOCUMENT, scenarios.DOCUMENT.upper()], (scenarios.DOCUMENT,)),
    ],
)
def test_sources_are_all_documents_none_or_the_named_ones(given: object, sources: object) -> None:
    request = runinput.run_input(asking(sources=given), owner_id=1)
    assert (request.sources, request.sources_given) == (sources, True)
    request = runinput.run_input(asking(), owner_id=1)
    assert (request.sources, request.sources_given) == (None, False)


@pytest.mark.parametrize(
    "given", ["all", ["report.pdf"], [1], [scenarios.DOCUMENT[:-1] + str(n) for n in range(3)] * 67]
)
def test_sources_that_are_no_ids_or_too_many_are_refused(given: object) -> None:
    with pytest.raises(Rejected) as refused:
        runinput.run_input(asking(sources=given), owner_id=1)
    assert refused.value.code == "invalid_input"


def test_a_queued_message_brings_its_own_sources_and_a_steered_one_has_its_runs() -> None:
    def message(mode: str, **more: object) -> UserMessage:
        said = {"id": "u1", "role": "user", "content": "Hi"}
        frame = {"type": "steer", "threadId": "th", "runId": "r1", "message": said, "mode": mode, **more}
        found = decode.frame(orjson.dumps(frame))
        assert isinstance(found, decode.SteerFrame)
        return found.message

    assert message("queue", sources=[scenarios.DOCUMENT]).sources == (scenarios.DOCUMENT,)
    assert message("queue").sources is None
    assert message("steer", sources=[scenarios.DOCUMENT]).sources is None

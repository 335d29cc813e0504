"""Control frames: lower case, no nulls but the one that is meant, nothing invented."""

import orjson
import pytest
from ag_ui.core.capabilities import AgentCapabilities

from agents.protocols.agui import control
from agents.protocols.agui.capabilities import capabilities
from agents.protocols.agui.control import CLOSE_CODES, Closing

FRAMES = [
    control.hello(version="1", limits={"frameBytes": 1}),
    control.accepted(what="run", thread_id="th", run_id="r1", request_id="q", duplicate=True),
    control.rejected(code="run_conflict", message="Busy.", what="run", thread_id="th"),
    control.attached(thread_id="th", run_id="r1", mode="replay"),
    control.resync(thread_id="th", run_id="r1"),
    control.thread(thread_id="th", changed="title"),
    control.documents(ids=["a1", "a2"]),
    control.pong(),
    control.closing(Closing.SHUTDOWN, retry_after_ms=1000),
]


@pytest.mark.parametrize("data", FRAMES)
def test_a_control_frame_is_told_apart_by_its_lower_case_type(data: bytes) -> None:
    frame = orjson.loads(data)
    assert frame["type"].islower()
    assert None not in frame.values()
    assert "" not in frame.values()


def test_attached_says_null_when_nothing_runs() -> None:
    assert orjson.loads(control.attached(thread_id="th", run_id=None, mode="idle"))["runId"] is None


def test_closing_says_whether_coming_back_is_worth_while() -> None:
    assert {reason: orjson.loads(control.closing(reason))["retry"] for reason in Closing} == {
        Closing.AUTH: False,
        Closing.PROTOCOL: False,
        Closing.OVERLOAD: True,
        Closing.SHUTDOWN: True,
    }
    assert len(set(CLOSE_CODES.values())) == len(Closing)


def test_capabilities_have_the_shape_of_the_protocol() -> None:
    found = capabilities(version="1", agents=["assistant"], models=["offline"], images=False)
    parsed = AgentCapabilities.model_validate(found)
    assert parsed.transport is not None
    assert parsed.transport.websocket
    for name, section in parsed:
        assert name in AgentCapabilities.model_fields
        assert not getattr(section, "model_extra", None), (name, section)

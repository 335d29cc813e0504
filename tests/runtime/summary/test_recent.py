"""What stays raw, and where a summary may end (sections 2.9 and 2.11)."""

from agents.runtime.events import Stored, UserMessageKind
from agents.runtime.summary.recent import Keep, cut, open_runs, rounds, safe_cuts, snapped
from tests.runtime.summary.talks import Talk, call, long_talk


def ten(stored: Stored) -> int:
    return 10


def test_rounds_begin_with_the_run_of_a_persons_message() -> None:
    talk = long_talk(2)
    talk.begin("Now")
    assert [(r.start, r.end, r.complete) for r in rounds(talk.history, open_runs(talk.history))] == [
        (0, 4, True),
        (4, 8, True),
        (8, 10, False),
    ]
    steered = Talk()
    steered.begin("Go")
    steered.say("Faster", kind=UserMessageKind.STEER)
    steered.end()
    assert len(rounds(steered.history)) == 1
    assert rounds([]) == []


def test_only_whole_rounds_are_kept_as_far_as_they_fit() -> None:
    talk = long_talk(4)
    events = talk.history

    def kept(count: int, tokens: int) -> int:
        return cut(events, Keep(rounds=count, tokens=tokens), ten)

    assert [kept(n, 10_000) for n in (0, 1, 2, 4, 9)] == [16, 12, 8, 0, 0]
    assert [kept(3, tokens) for tokens in (39, 40, 79, 80)] == [16, 12, 12, 8]


def test_a_round_that_goes_on_stays_and_does_not_count() -> None:
    talk = long_talk(3)
    talk.begin("Now")
    talk.answer("I look.", call("c1"))
    now = open_runs(talk.history)
    assert now == {talk.run_id}
    assert cut(talk.history, Keep(rounds=1, tokens=10_000, open_runs=now), ten) == 8
    assert cut(talk.history, Keep(rounds=0, tokens=0, open_runs=now), ten) == 12


def test_a_running_run_is_only_cut_where_it_is_too_large_and_behind_whole_tool_rounds() -> None:
    talk = long_talk(1)
    talk.begin("Now")  # 5, 6
    for i in range(3):
        talk.answer("", call(f"c{i}"), call(f"d{i}"))
        talk.result(f"d{i}", "x")
        talk.result(f"c{i}", "x")
    running = talk.run_id
    assert cut(talk.history, Keep(rounds=0, tokens=1_000, running_run=running), ten) == 4
    assert cut(talk.history, Keep(rounds=0, tokens=60, running_run=running), ten) == 9
    assert cut(talk.history, Keep(rounds=0, tokens=1, running_run=running), ten) == 12
    later = talk.history[9:]  # what is new behind a boundary inside the run
    assert cut(later, Keep(rounds=0, tokens=1, running_run=running), ten) == 3
    assert cut(later, Keep(rounds=0, tokens=1, open_runs=open_runs(talk.history)), ten) == 0
    talk.answer("", call("c9"))  # its result has not come yet
    assert cut(talk.history, Keep(rounds=0, tokens=1, running_run=running), ten) == 12
    another = Keep(rounds=0, tokens=1, running_run="another", open_runs=open_runs(talk.history))
    assert cut(talk.history, another, ten) == 4


def test_nothing_is_torn_apart() -> None:
    talk = Talk()
    talk.begin("Go")  # 1, 2
    talk.answer("", call("c1"))  # 3
    talk.result("c1", "x")  # 4
    talk.answer("Half", call("c1"))  # 5: an id used again
    talk.result("c1", "y")  # 6
    talk.answer("Done")  # 7
    talk.end()  # 8
    assert safe_cuts(talk.history) == [4, 6, 7, 8]
    assert [snapped(talk.history, n) for n in (3, 4, 5, 99)] == [0, 4, 4, 8]


def test_an_open_call_is_closed_by_the_end_of_its_run_unless_a_client_answers_it() -> None:
    dead = Talk()
    dead.begin("Go")
    dead.answer("", call("c1"))
    dead.fail()
    dead.answer("Later")
    assert safe_cuts(dead.history) == [4, 5]
    waiting = Talk()
    waiting.begin("Go")
    waiting.answer("", call("c1"))
    waiting.end(pending_call_ids=("c1",))
    assert safe_cuts(waiting.history) == []
    waiting.begin("Never mind")
    waiting.answer("Fine")
    assert safe_cuts(waiting.history) == [7]


def test_one_response_in_two_segments_is_not_parted() -> None:
    talk = Talk()
    talk.begin("Go")
    talk.answer("First half")
    record = talk.history[-1].record
    talk.add(record)
    assert safe_cuts(talk.history) == [4]

import pytest

from agents.runtime.events import ToolReturned
from agents.runtime.evolution.evidence import ENOUGH, Sign, Weighing, correction, failed, weigh
from tests.runtime.evolution.doing import CANCELLED, FAILED, broke, chain, done, run

WEIGHING = Weighing()
SEARCH, SAVE = done("search_knowledge", query="x"), done("save_artifact", name="x.md", content="y")


def signs(events, weighing: Weighing = WEIGHING) -> list[Sign]:
    return [found.sign for found in weigh(events, weighing).found]


def test_four_calls_of_tools_are_an_effort_and_three_are_not() -> None:
    assert signs(run("Look for pumps.", *[SEARCH] * 4)) == [Sign.EFFORT]
    assert signs(run("Look for pumps.", *[SEARCH] * 3)) == []
    assert signs(run("Look for pumps.", *[SEARCH] * 9), Weighing(calls=-1)) == []
    assert signs(run("Hello."), Weighing(calls=0)) == []


def test_calls_add_up_over_runs() -> None:
    two = chain(run("Pumps?", SEARCH, SAVE), run("Fans?", SEARCH, SAVE))
    evidence = weigh(two, WEIGHING)
    assert (signs(two), evidence.calls, evidence.runs) == ([Sign.EFFORT], 4, ("r1", "r2"))


@pytest.mark.parametrize("end", [FAILED, CANCELLED])
def test_a_run_that_did_not_end_normally_counts_for_nothing(end) -> None:
    evidence = weigh(run("Look.", *[SEARCH] * 6, end=end), WEIGHING)
    assert (evidence.enough, evidence.runs, evidence.passed_over) == (False, (), (("r1", "not ended normally"),))


@pytest.mark.parametrize(
    "text",
    [
        "No, that is wrong: the decision comes first.",
        "That's incorrect, please fix it.",
        "This is not what I asked for.",
        "I meant the other plant, try again.",
        "From now on put the table first, in this order.",
        "Use euros instead, I said euros.",
        "不对，结论要放在最前面。",
        "你弄错了，请修正。",
        "以后都按这个格式写。",
        "重新来，先列表格。",
        "不是比较价格，而是比较条款。",
    ],
)
def test_a_person_who_sets_an_answer_right_is_told_by_scored_marks(text: str) -> None:
    score, words = correction(text)
    assert score >= ENOUGH and words
    events = chain(run("Write the memo."), run(text))
    (found,) = [one for one in weigh(events, WEIGHING).found if one.sign is Sign.CORRECTION]
    assert (found.run_id, found.score, found.words) == ("r2", score, words)
    assert signs(events, Weighing(corrections=False)) == []


@pytest.mark.parametrize(
    "text",
    [
        "Actually, thanks, that is perfect.",
        "No problem, thank you.",
        "What is wrong with the pump?",
        "And instead of Rome?",
        "Always interesting!",
        "谢谢，很好。",
        "不错，再给我看看价格。",
        "他写道：“这个答案错了，不对。”",
        'She said "that is wrong, try again".',
    ],
)
def test_what_only_sounds_like_it_is_no_correction(text: str) -> None:
    score, _ = correction(text)
    assert score < ENOUGH
    assert signs(chain(run("Write the memo."), run(text))) == []


def test_words_that_follow_no_answer_correct_nothing() -> None:
    assert signs(run("No, that is wrong, try again.")) == []


def test_what_a_mark_is_told_by_is_kept_and_nothing_else_of_what_was_said() -> None:
    events = chain(run("Write."), run("No, that is wrong: my number is 12345."))
    assert "12345" not in str(weigh(events, WEIGHING).as_json())
    assert "that is wrong (+1.0)" in str(weigh(events, WEIGHING).as_json())
    assert correction("It is not 12345 but more, so try again.") == (1.0, "try again (+0.7); not … but (+0.4)")
    assert correction("不是张三，而是李四。") == (0.7, "不是 … 而是 (+0.7)")


def test_a_tool_that_worked_after_it_failed_is_told_by_its_status_not_by_words() -> None:
    tried = run("Read it.", broke("read_document", document="a"), done("read_document", document="b"))
    assert signs(tried) == [Sign.RECOVERED]
    assert signs(tried, Weighing(recovered=False)) == []
    assert signs(run("Read it.", done("search_knowledge", query="error: failed: traceback"))) == []
    assert signs(run("Read it.", broke("read_document", document="a"))) == []
    assert signs(run("Read it.", broke("read_document", document="a"), SEARCH)) == []


def test_an_exit_code_is_a_failure_too() -> None:
    def result(**data: object) -> ToolReturned:
        return ToolReturned(id="t", call_id="c", name="workspace_exec", content="", data=data)

    assert failed(result(exit_code=3)) and failed(result(timed_out=True)) and not failed(result(exit_code=0))


def test_runs_in_which_somebody_works_on_skills_are_passed_over() -> None:
    writes = run("Save this.", *[SEARCH] * 4, done("save_artifact", name="x/SKILL.md", content="# x"))
    speaks = run("Change the steps in skill.md please.", *[SEARCH] * 4)
    reads = run("Follow it.", done("skill_load", skill="trip-planner"), *[SEARCH] * 3)
    for events in (writes, speaks):
        evidence = weigh(events, WEIGHING)
        assert (evidence.enough, evidence.passed_over) == (False, (("r1", "maintenance"),))
    assert signs(reads) == [Sign.EFFORT]

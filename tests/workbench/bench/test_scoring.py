"""Scores, savings and readers of the bench, on texts of our own."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from workbench.bench import readers, results
from workbench.bench.figures import Figure, ratios, saved
from workbench.bench.scoring import bleu, contained, exact, f1, rouge_l, score, tokens

ENGLISH, CHINESE = "the pump was moved to the second hall in May", "水泵在五月搬到了第二车间"


@pytest.mark.parametrize("text", [ENGLISH, CHINESE, "Only 3"])
def test_context_9_1_the_same_text_scores_one_everywhere_and_another_nothing(text: str) -> None:
    same, other = score(text, text), score("x y z", text)
    assert (same.exact, same.contained, same.f1, same.rouge_l) == (1, 1, 1, 1)
    assert same.bleu == pytest.approx(1)
    assert (other.exact, other.contained, other.f1, other.rouge_l, other.bleu) == (0, 0, 0, 0, 0)


def test_context_9_1_what_is_contained_counts_whatever_its_case() -> None:
    assert contained("It was moved to the SECOND  hall.", "second hall") == 1
    assert contained("答案是第二车间。", "第二车间") == 1
    assert contained("It was moved.", "second hall") == 0
    assert contained("anything", "") == 0
    assert exact("Second hall!", "second hall") == 1
    assert exact("The second hall", "second hall") == 0


def test_context_9_1_chinese_is_compared_character_by_character() -> None:
    assert tokens("第二 Hall, 五月") == ["第", "二", "hall", "五", "月"]
    assert f1("第二车间", "第三车间") == pytest.approx(0.75)
    assert rouge_l("车间第二", "第二车间") == pytest.approx(0.5)  # the order counts


def test_f1_counts_a_word_as_often_as_both_have_it() -> None:
    assert f1("a a b", "a b b") == pytest.approx(2 / 3)


def test_bleu_punishes_an_answer_that_is_too_short() -> None:
    assert bleu("the pump", ENGLISH) < bleu("the pump was moved to the second hall", ENGLISH) < 1
    assert bleu("", ENGLISH) == bleu(ENGLISH, "") == 0


@given(st.text(max_size=40), st.text(max_size=40))
def test_scores_stay_between_nothing_and_one(answer: str, expected: str) -> None:
    for value in (f(answer, expected) for f in (exact, contained, f1, rouge_l, bleu)):
        assert 0 <= value <= 1 + 1e-9


def test_context_9_2_published_savings_follow_from_their_raw_numbers() -> None:
    def percent(ours: float, theirs: float) -> float:
        return round(saved([ours], [theirs]).of_means * 100, 2)

    assert percent(445, 103_565) == 99.57
    # published as 94.04, 12.89, 24.47 and 94.78: the means of the parts say the same, but for the last
    assert percent(6_182, 103_565) == 94.03
    assert percent(3_062_518, 3_515_728) == 12.89
    assert percent(1_428_606, 1_891_399) == 24.47
    assert percent(888, 18_986) == 95.32


def test_context_9_2_a_ratio_of_means_and_a_mean_of_ratios_are_told_apart(tmp_path: Path) -> None:
    share = saved([10, 900], [100, 1_000])
    assert share.of_means == pytest.approx(1 - 910 / 1_100)
    assert share.mean_of == pytest.approx((0.9 + 0.1) / 2)
    assert share.low <= share.of_means <= share.high
    setup = results.Setup(model="m", summariser="s", version="1", at=datetime(2026, 1, 1, tzinfo=UTC), seed=0)
    results.write(tmp_path / "r.json", setup, [Figure(name="Saved", value=share.of_means, ratios=share)])
    figure = json.loads((tmp_path / "r.json").read_text())["figures"][0]
    assert figure["ratio_of_means"] != figure["mean_of_ratios"]
    assert figure["n"] == 2


def test_a_share_of_nothing_is_no_case() -> None:
    assert ratios([1, 2], [0, 4]).n == 1
    assert ratios([1], [0]).of_means == 0


def test_a_figure_says_whether_its_bar_is_met() -> None:
    assert Figure(name="a", value=0.95, bar=0.95).met is True
    assert Figure(name="a", value=0.9499, bar=0.95).met is False
    assert Figure(name="a", value=1, bar=0, lower=True).met is False
    assert Figure(name="a", value=1).met is None
    assert Figure(name="a", value=0.5, bar=0.25).shown() == ("50.00 %", ">= 25 %")
    assert Figure(name="a", value=1.25, bar=1.3, lower=True, percent=False).shown() == ("1.25", "<= 1.3")


def write(folder: Path, name: str, value: object) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(value, ensure_ascii=False), encoding="utf-8")


def test_locomo_is_read_in_both_of_its_forms(tmp_path: Path) -> None:
    said = [
        {"dia_id": "D1:1", "speaker": "Ann", "text": "Hi", "session": 1, "date": "1 May"},
        {"dia_id": "D1:2", "speaker": "Ben", "text": "你好", "session": 1, "date": "1 May", "caption": "a cat"},
    ]
    asked = [{"question": "Who?", "answer": 3, "evidence": ["D1:1; D1:2"], "category": 4}]
    write(tmp_path / "ours", "1.json", {"turns": said, "qa": asked})
    conversation = {
        "speaker_a": "Ann",
        "session_1_date_time": "1 May",
        "session_1": [
            {"dia_id": "D1:1", "speaker": "Ann", "text": "Hi"},
            {"dia_id": "D1:2", "speaker": "Ben", "text": "你好", "blip_caption": "a cat"},
        ],
    }
    write(tmp_path / "theirs", "1.json", [{"sample_id": "1", "conversation": conversation, "qa": asked}])
    ours, theirs = readers.locomo(tmp_path / "ours"), readers.locomo(tmp_path / "theirs")
    assert ours == theirs
    assert [(t.text, t.user) for t in ours[0].turns] == [("[1 May] Ann: Hi", True), ("Ben: 你好 [shares a cat]", False)]
    assert ours[0].questions[0] == readers.Question(text="Who?", answer="3", evidence=("D1:1", "D1:2"), kind="4")


def test_mtbench_and_longmemeval_are_read(tmp_path: Path) -> None:
    row = {"task": "CM", "id": 7, "history": [{"user": "Hello", "bot": "您好"}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n\n", encoding="utf-8")
    (case,) = readers.mtbench(tmp_path)
    assert (case.id, [(t.text, t.user) for t in case.turns]) == ("CM 7", [("Hello", True), ("您好", False)])
    session = [{"role": "user", "content": "I moved.", "has_answer": True}, {"role": "assistant", "content": "Ah."}]
    long = {
        "question_id": "q1",
        "question_type": "single-session-user",
        "question": "What?",
        "answer": "moved",
        "question_date": "2 May",
        "haystack_session_ids": ["s1"],
        "haystack_dates": ["1 May"],
        "haystack_sessions": [session],
    }
    write(tmp_path / "long", "s.json", [long])
    (history,) = readers.longmemeval(tmp_path / "long")
    assert [t.text for t in history.turns] == ["[1 May] I moved.", "Ah."]
    assert history.questions[0].evidence == ("s1:0",)
    assert history.questions[0].at == "2 May"


def meeting(turns: int, spans: list[list[list[str]]]) -> dict[str, object]:
    said = [{"speaker": "AB"[n % 2], "content": f"line {n}"} for n in range(turns)]
    asked = [{"query": f"q{n}", "answer": "a", "relevant_text_span": span} for n, span in enumerate(spans)]
    return {"meeting_transcripts": said, "specific_query_list": asked}


def test_context_9_5_only_questions_whose_evidence_is_far_from_the_end_are_kept(tmp_path: Path) -> None:
    spans = [[["0", "20"]], [["20", "21"]], [["0", "1"], ["90", "91"]], [["99", "99"]], []]
    write(tmp_path, "m.json", meeting(100, spans))
    (history,) = readers.qmsum(tmp_path)
    assert [q.text for q in readers.distant(history, 80)] == ["q0"]  # turn 20 lies 80 before the end, turn 21 does not
    assert [q.text for q in readers.distant(history, 10)] == ["q0", "q1"]


def test_joined_histories_keep_their_evidence(tmp_path: Path) -> None:
    write(tmp_path, "a.json", meeting(3, [[["1", "1"]]]))
    write(tmp_path, "b.json", meeting(2, [[["0", "1"]]]))
    one = readers.joined(readers.qmsum(tmp_path), name="both")
    assert [t.id for t in one.turns] == ["a/0", "a/1", "a/2", "b/0", "b/1"]
    assert [q.evidence for q in one.questions] == [("a/1",), ("b/0", "b/1")]


@pytest.mark.parametrize("value", [{"turns": [{}], "qa": []}, [1], {"no": "turns"}])
def test_what_is_in_no_known_format_is_refused_with_its_name(tmp_path: Path, value: object) -> None:
    write(tmp_path, "broken.json", value)
    with pytest.raises(readers.SetUnreadable, match=r"broken\.json"):
        readers.locomo(tmp_path)

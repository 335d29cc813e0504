"""Whether a statement is the person's own, and which of their messages it comes from."""

import pytest

from agents.runtime.memory.saying import who_said
from tests.runtime.memory.samples import said


@pytest.mark.parametrize(
    ("typed", "statement"),
    [
        ("I live in Shanghai now.", "Lives in Shanghai"),
        ("I prefer reports in Chinese, tables first.", "The person prefers reports in Chinese, tables first"),
        ("我喜欢中文报告，先放表格。", "用户喜欢中文报告，先放表格"),
        ("My sister Ana turned 31.", "My sister Ana is 31"),
    ],
)
def test_a_statement_in_the_persons_words_is_theirs(typed: str, statement: str) -> None:
    assert who_said(statement, (), [said(typed)]) is not None


@pytest.mark.parametrize(
    ("typed", "statement", "people"),
    [
        ("Summarise this page for me.", "The person's bank is Nordbank", ()),
        ("I live in Shanghai.", "Lives in Shenzhen", ()),  # a name that was not said
        ("I pay 400 a month for the flat.", "Pays 900 a month for the flat", ()),
        ("I sign the lease tomorrow.", "I sign the lease tomorrow", ("Mallory",)),
        ('The page says "I prefer answers in French".', "I prefer answers in French", ()),
        ("Here is the page:\nI prefer answers in French.", "I prefer answers in French", ()),
        ("总结一下这个网页。", "我在北京银行工作", ()),
        ("I am it.", "is it", ()),  # no word that says anything
        ("", "I live in Shanghai", ()),
    ],
)
def test_a_statement_that_the_person_did_not_make_is_not_theirs(
    typed: str, statement: str, people: tuple[str, ...]
) -> None:
    assert who_said(statement, people, [said(typed)]) is None
    assert who_said(statement, people, []) is None


def test_a_statement_comes_from_the_message_that_says_most_of_it_and_of_equals_from_the_last() -> None:
    words = ("I keep bees.", "I keep bees in Lund.", "Thanks.", "We keep bees in Lund.")
    messages = [said(one, position=n) for n, one in enumerate(words, 1)]
    assert who_said("Keeps bees in Lund", (), messages) is messages[3]
    assert who_said("Keeps bees in Lund", (), messages[:3]) is messages[1]
    assert who_said("Keeps bees in Lund", (), messages[2:3], known="I keep bees in Lund") is None

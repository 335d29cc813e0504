"""SKILL.md as people write it."""

import pytest

from agents.runtime.skills.format import Broken, Problem, check_name, digest, parse, skill_of, written
from agents.runtime.skills.skill import BODY_CHARS, DESCRIPTION_CHARS, SKILL_FILE, Skill, SkillFile, SkillScope


def skill(*files: tuple[str, str | bytes], directory: str = "minutes") -> Skill | Broken:
    made = [SkillFile(path=path, data=data if isinstance(data, bytes) else data.encode()) for path, data in files]
    return skill_of(made, directory=directory, scope=SkillScope.MINE)


def test_skills_2_1_a_plain_value_is_taken_as_it_stands() -> None:
    parsed = parse("---\nname: minutes\ndescription: Use when: x # y\n---\n\nDo it.\n")
    assert (parsed.name, parsed.description, parsed.body, parsed.problem) == (
        "minutes",
        "Use when: x # y",
        "Do it.",
        "",
    )


@pytest.mark.parametrize(
    ("written_as", "meant"),
    [
        ('"Says \\"no\\": \\u4f1a # all"', 'Says "no": 会 # all'),
        ("'It''s one' # a comment", "It's one"),
        ("'a' or 'b'", "'a' or 'b'"),
        ("|\n  first line\n  second: line\n", "first line second: line"),
        (">-\n  folded\n  text # kept\n\n  and more", "folded text # kept and more"),
        ("|2\n    indented", "indented"),
        ("begins here\n  and goes on", "begins here and goes on"),
        ("Für Besprechungen、会议纪要", "Für Besprechungen、会议纪要"),
        ("~maybe", "~maybe"),
    ],
)
def test_values_are_read_as_their_writers_mean_them(written_as: str, meant: str) -> None:
    parsed = parse(f"---\ndescription: {written_as}\nlicense: MIT\nname: a\n---\nBody")
    assert (parsed.description, parsed.name, parsed.problem) == (meant, "a", "")


def test_other_keys_may_hold_anything_and_nested_names_do_not_count() -> None:
    more = "metadata:\n  name: wrong\n  list:\n    - description: wrong\n# name: wrong\n"
    text = f"---\n{more}name: a\ndescription: d\n---\nB"
    assert (parse(text).name, parse(text).description) == ("a", "d")


def test_line_ends_of_windows_and_a_byte_order_mark_do_no_harm() -> None:
    parsed = parse("\ufeff---\r\nname: a\r\ndescription: d\r\n---\r\nOne\r\ntwo\r\n")
    assert (parsed.name, parsed.description, parsed.body) == ("a", "d", "One\ntwo")


@pytest.mark.parametrize("text", ["---\nname: a\ndescription: d\nbody", "\n---\nname: a\ndescription: d\n---\nbody"])
def test_without_its_end_or_below_the_first_line_front_matter_is_body(text: str) -> None:
    parsed = parse(text)
    assert parsed.name == parsed.description == "" and "name: a" in parsed.body
    assert parsed.problem is Problem.NO_DESCRIPTION  # so it is visible as broken, and not gone


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", Problem.NO_DESCRIPTION),
        ("---\nname: a\n---\nB", Problem.NO_DESCRIPTION),
        ("---\nname: a\ndescription: null\n---\nB", Problem.NO_DESCRIPTION),
        ("---\nname: a\ndescription: d\n---\n \n", Problem.NO_BODY),
        ("---\nname: a\ndescription: 'no end\n---\nB", Problem.FRONT_MATTER),
        ("---\nname: A B\ndescription: d\n---\nB", Problem.NAME),
        (f"---\nname: a\ndescription: {'d' * (DESCRIPTION_CHARS + 1)}\n---\nB", Problem.DESCRIPTION),
        (f"---\nname: a\ndescription: d\n---\n{'b' * (BODY_CHARS + 1)}", Problem.BODY),
        ("---\nname: a\ndescription: d\n---\nB\0", Problem.NOT_TEXT),
    ],
)
def test_skills_2_1_what_is_wrong_has_a_code_and_words(text: str, problem: Problem) -> None:
    parsed = parse(text)
    assert parsed.problem is problem and parsed.words
    found = skill((SKILL_FILE, text))
    assert isinstance(found, Broken) and found.problem is problem and found.words == parsed.words


def test_the_limits_themselves_are_allowed() -> None:
    assert parse(f"---\nname: a\ndescription: {'d' * DESCRIPTION_CHARS}\n---\n{'b' * BODY_CHARS}").problem == ""


@pytest.mark.parametrize("name", ["a", "meeting-minutes", "2-steps", "会议纪要", "é", "a" * 64])
def test_good_names(name: str) -> None:
    assert check_name(name) == ""


@pytest.mark.parametrize(
    "name", ["", "A", "a_b", "a b", "-a", "a-", "a--b", "a/b", "..", "a.b", "a" * 65, "e\u0301", "a\u200bb", "ａ\n"]
)
def test_bad_names(name: str) -> None:
    assert check_name(name)


def test_the_directory_names_a_skill_that_does_not() -> None:
    text = "---\ndescription: d\n---\nB"
    found = skill((SKILL_FILE, text), directory="my-way")
    assert isinstance(found, Skill) and found.name == "my-way"
    found = skill((SKILL_FILE, text), directory="My way")
    assert isinstance(found, Broken) and found.problem is Problem.NAME


def test_documents_are_all_texts_beside_it_and_other_files_are_for_code() -> None:
    main = (SKILL_FILE, "---\ndescription: d\n---\nB")
    found = skill(main, ("z.md", "z"), ("docs/A.TXT", "a"), ("sub/SKILL.md", "s"))
    assert isinstance(found, Skill)
    assert found.docs == ("docs/A.TXT", "sub/SKILL.md", "z.md") and not found.runs
    assert [doc.text for doc in found.texts] == ["a", "s", "z"]
    more = skill(main, ("run.py", b"\xff"), ("z.md", b"\xffz\0"))
    assert isinstance(more, Skill) and more.runs and more.texts[0].text == "\ufffdz\ufffd"


def test_without_its_file_or_its_encoding_it_is_broken() -> None:
    missing, bytes_ = skill(("README.md", "x")), skill((SKILL_FILE, b"---\nname: \xff"))
    assert isinstance(missing, Broken) and missing.problem is Problem.NO_FILE and missing.name == "minutes"
    assert isinstance(bytes_, Broken) and bytes_.problem is Problem.NOT_TEXT


def test_the_digest_tells_any_change_and_no_order() -> None:
    one, two = SkillFile(path="a", data=b"1"), SkillFile(path="b", data=b"2")
    assert digest([one, two]) == digest([two, one])
    others = (
        [one],
        [one, SkillFile(path="b", data=b"3")],
        [one, SkillFile(path="c", data=b"2")],
        [SkillFile(path="a", data=b"1b\x002")],
    )
    assert len({digest([one, two]), *map(digest, others)}) == 5


@pytest.mark.parametrize(
    "description", ["Use when: x # y", "'x' and \"y\"", "| x", "> y", "null", "中文：描述", "- a", "~"]
)
def test_what_is_written_is_read_again(description: str) -> None:
    parsed = parse(written("a", description, "# Title\n\n---\n\nB"))
    assert (parsed.name, parsed.description, parsed.body) == ("a", description, "# Title\n\n---\n\nB")

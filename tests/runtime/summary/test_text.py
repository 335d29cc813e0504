"""Events as lines (section 2.7)."""

from agents.runtime.events import UserMessage
from agents.runtime.knowledge import Cited
from agents.runtime.model import FilePart, TextPart
from agents.runtime.summary.text import Formatters, count_words, family_of, language, lines
from tests.runtime.summary.cited import citation
from tests.runtime.summary.talks import LONG, Talk, call


def told(talk: Talk, formatters: Formatters | None = None) -> list[str]:
    return [line.text for line in lines(talk.history, formatters)]


def test_what_is_said_called_and_returned_is_told_in_order() -> None:
    talk = Talk()
    talk.begin("  What grows there? ")
    talk.answer("I look.", call("c1", "search", '{"q": "wheat"}'), call("c2", "now", "{}"), call("c3", ""))
    talk.result("c1", "wheat and oats", "search")
    talk.result("c2", " ", "now")
    talk.answer("Wheat.", reasoning="I think so.")
    talk.end()
    assert told(talk) == [
        "user: What grows there?",
        "assistant: I look.",
        'assistant: [Called tool: search with args: {"q": "wheat"}]',
        "assistant: [Called tool: now]",
        "assistant: [search returned: wheat and oats]",
        "assistant: Wheat.",
    ]
    assert [line.person for line in lines(talk.history)][:2] == [True, False]


def test_nobody_is_unknown_and_a_tool_without_a_name_is_a_tool() -> None:
    talk = Talk()
    talk.add(UserMessage(id="u", parts=(TextPart(text="Hi"),)), author=" ".strip() or "x")
    talk.result("c1", "42", "")
    assert told(talk) == ["x: Hi", "assistant: [tool returned: 42]"]


def test_citations_are_told_as_markers_and_files_by_name() -> None:
    talk = Talk()
    file = FilePart(artifact_id="a", version=2, name="收成.pdf", mime="application/pdf", size_bytes=10)
    talk.add(UserMessage(id="u", parts=(TextPart(text="Read this."), file)))
    talk.answer("It rose [1](#c-aaaaaa).", citations=(Cited(number=1, citation=citation("aaaaaa")),))
    said, answered = told(talk)
    assert "收成.pdf" in said and answered == "assistant: It rose [[c:aaaaaa]]."


def test_formatters_replace_lines_or_leave_them_out() -> None:
    talk = Talk()
    talk.answer("", call("c1", "search"))
    talk.result("c1", "found", "search")
    how = Formatters(call=lambda author, call: f"<{call.name}>", result=lambda author, returned: "")
    assert told(talk, how) == ["<search>"]
    family = Formatters(results={"search": lambda content: content.upper()})
    assert told(talk, family)[-1] == "assistant: [search returned: FOUND]"


def test_results_are_shortened_by_the_family_of_their_tool_and_words_never() -> None:
    middle = "x " * 4_000

    def result(name: str, content: str) -> str:
        talk = Talk()
        talk.result("c1", content, name)
        return told(talk)[0]

    shell = result("run_shell", f"$ make\n{middle}\nexit status 2\n{middle}\nend of output")
    assert "$ make" in shell and "exit status 2" in shell and "end of output" in shell and len(shell) < 2_500
    code = result("run_python", f"start\n{middle}\nValueError: no wheat\n{middle}\nend")
    assert "ValueError: no wheat" in code and "characters left out" in code
    hits = "\n\n".join(f"Title {i}\n{LONG * 5}" for i in range(6))
    search = result("search_knowledge", hits)
    assert all(f"Title {i}" in search for i in range(6)) and len(search) < len(hits) / 1.5
    files = result("read_artifact", "first line\n" + middle)
    assert "first line" in files and len(files) < 2_000
    talk = Talk()
    talk.say(middle)
    talk.answer(middle)
    assert all(len(line) > 7_900 for line in told(talk))


def test_families_are_known_by_words_in_the_name() -> None:
    names = ["search_knowledge", "web_fetch", "run_shell", "run_python", "read_artifact", "list_documents", "weather"]
    assert [family_of(n) for n in names] == ["search", "web", "shell", "code", "files", "files", "general"]


def test_words_and_language() -> None:
    assert count_words("It's 3.5 per cent, isn't it?") == 6
    assert count_words("收成增长了18%。") == 6
    talk = Talk()
    talk.begin("请写一份报告")
    talk.answer("A report in English, as the documents are. " + LONG)
    assert language(lines(talk.history)) == "zh"
    talk = Talk()
    talk.begin("Translate 收成 please, it stands in the report")
    assert language(lines(talk.history)) == "en"
    assert language([], "先前的摘要") == "zh"

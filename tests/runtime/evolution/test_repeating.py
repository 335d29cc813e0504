from agents.runtime.evolution.gates import Candidate, Gates, Verdict
from agents.runtime.evolution.proposals import Action, Known, rendered
from agents.runtime.evolution.redacting import Redactor
from agents.runtime.evolution.repeating import review, works
from agents.runtime.skills.format import parse
from tests.runtime.evolution.doing import CANCELLED, broke, chain, done, run

PLAIN = Redactor()


def report(topic: str) -> list:
    return run(
        f"Write a supplier report about {topic}.",
        done("search_knowledge", query=f"{topic}", limit=20),
        done("save_artifact", name=f"{topic}.md", content=f"# {topic}\nThey cost 12 euros."),
    )


def test_two_runs_that_went_the_same_way_give_a_skill_with_parameters_for_what_differs() -> None:
    (proposal,) = review(works(chain(report("pumps"), report("fans"))), (), PLAIN).proposals
    spec = proposal.spec
    assert proposal.action is Action.CREATE and spec is not None
    assert proposal.name == "supplier-report"
    assert spec.steps == (
        "Search the documents (search_knowledge): query: {topic}, limit: 20.",
        "Save a file (save_artifact): name: {topic}, content: {content}.",
    )
    assert spec.rules == ("search: {topic}", "section: Overview", "report: Supplier report: {topic}")
    assert "pumps" not in rendered(spec, proposal.name) and "fans" not in rendered(spec, proposal.name)
    assert parse(rendered(spec, proposal.name)).problem == ""
    assert Gates().judge(Candidate(proposal=proposal)).verdict is Verdict.PENDING_APPROVAL


def test_in_chinese_it_is_named_by_what_the_questions_have_in_common() -> None:
    def ask(topic: str) -> list:
        return run(
            f"请写一份{topic}的供应商报告", done("search_knowledge", query=topic), done("save_artifact", name=topic)
        )

    (proposal,) = review(works(chain(ask("水泵"), ask("风机"))), (), PLAIN).proposals
    assert proposal.name == "供应商报告" and proposal.spec is not None
    assert proposal.spec.steps[0] == "搜索文档（search_knowledge）：query: {topic}。"
    assert Gates().judge(Candidate(proposal=proposal)).verdict is Verdict.PENDING_APPROVAL


def test_one_run_with_failed_tries_gives_the_way_that_worked_and_says_what_failed() -> None:
    events = run(
        "Summarise the meter export for the board.",
        broke("read_document", document="a"),
        done("read_document", document="b"),
        done("read_document", document="b", at="page:2"),
        done("save_artifact", name="x.md"),
    )
    (proposal,) = review(works(events), (), PLAIN).proposals
    assert proposal.spec is not None
    assert [step.split("(")[1].split(")")[0] for step in proposal.spec.steps] == ["read_document", "save_artifact"]
    assert "read_document failed" in proposal.spec.pitfalls[0]


def test_what_was_done_once_or_in_one_step_or_was_stopped_is_nothing_to_learn() -> None:
    assert review(works(report("pumps")), (), PLAIN).proposals == ()
    one = [run("Find pumps.", done("search_knowledge", query="pumps"))] * 2
    assert review(works(chain(*one)), (), PLAIN).proposals == ()
    stopped = [run("Report on x.", done("a"), done("b"), end=CANCELLED)] * 2
    assert review(works(chain(*stopped)), (), PLAIN).proposals == ()


def test_questions_with_nothing_in_common_are_no_kind_of_task() -> None:
    other = run("Where is Rome?", done("search_knowledge", query="rome"), done("save_artifact", name="r"))
    assert review(works(chain(report("pumps"), other)), (), PLAIN).proposals == ()


def test_what_is_there_already_is_changed() -> None:
    known = (Known(name="supplier-report", description="x", changeable=True),)
    (proposal,) = review(works(chain(report("pumps"), report("fans"))), known, PLAIN).proposals
    assert (proposal.action, proposal.target) == (Action.UPDATE, "supplier-report")


def test_a_value_that_must_not_be_kept_becomes_a_parameter() -> None:
    def ask(topic: str) -> list:
        return run(
            f"Send the supplier letter about {topic}.",
            done("search_knowledge", query=topic, key="sk-abcdefgh12345678"),
            done("save_artifact", name=topic),
        )

    (proposal,) = review(works(chain(ask("pumps"), ask("fans"))), (), PLAIN).proposals
    assert proposal.spec is not None and "sk-" not in str(proposal.spec) and "key: {key}" in proposal.spec.steps[0]


def test_it_is_named_by_the_words_that_stand_side_by_side_in_all_questions() -> None:
    def ask(words: str) -> list:
        return run(words, done("search_knowledge", query="x"), done("save_artifact", name="y"))

    apart = chain(ask("Write a tariff report about Nordwind pumps."), ask("Write tariff reports on Nordwind fans."))
    (proposal,) = review(works(apart), (), PLAIN).proposals
    assert proposal.name == "tariff-report"

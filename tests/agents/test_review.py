"""The job that looks for what is to be learned: what is enough, what a reviewer is asked, and what comes of it."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio
from channels.layers import get_channel_layer
from django.contrib.auth import get_user_model
from django.utils import timezone

from agents import hints, jobs
from agents.background import review as job
from agents.models.job import Job
from agents.models.memory import Memory
from agents.models.model_call import ModelCall
from agents.models.review import Review, ReviewCursor
from agents.models.skill import Skill, SkillAudit, SkillRevision
from agents.runtime.evolution.gates import Candidate, Gates, Report
from agents.runtime.evolution.outcomes import Thumb, Why
from agents.runtime.skills.skill import SkillMissing, SkillScope
from agents.stores import db, reviews, skilljudging
from agents.stores.sessions import PgSessionStore
from agents.stores.skilllibrary import NoArchivedRevision, SkillDecided, SkillLibraryRows, SkillStale
from agents.stores.skills import PgSkills
from tests.agents.counting import counted
from tests.agents.records import FINISHED, finished, planner, request, stamp
from tests.agents.rememberings import due_again, policy, sent, work
from tests.agents.reviewings import (
    SPEC,
    brought,
    came,
    cursor,
    decides,
    jobs_stand,
    managed,
    only,
    play,
    played,
    results,
    review,
    revisions,
    says,
    verbs,
)
from tests.modelserver import WAIT_S, ModelServer
from tests.runtime.evolution.doing import Step, broke, done

pytestmark = pytest.mark.usefixtures("hot_stores")

Status = SkillRevision.Status
SEARCH: Step = done("search_knowledge", query="offers", limit=8)
SAVE: Step = done("save_artifact", name="letter.md", content="Dear all")
FOUR = (SEARCH, SEARCH, SEARCH, SAVE)


@pytest_asyncio.fixture
async def alice(hot_stores: None) -> int:
    return await person("alice.ferreira", first_name="Alice", last_name="Ferreira")


async def person(name: str, **more: Any) -> int:
    return int((await db.in_thread(get_user_model().objects.create_user)(name, **more)).pk)


async def seen(owner_id: int) -> dict[str, str]:
    """Return what a run that begins now is told of skills that do not come with the program."""
    found = await PgSkills(owner_id).summaries()
    return {one.name: one.description for one in found if one.scope is not SkillScope.BUNDLED}


def decide(owner_id: int, pk: int) -> Any:
    return db.in_thread(SkillLibraryRows(owner_id, actor_id=owner_id).approve)(pk)


# When it is owed, and what is enough


async def test_a_runs_end_owes_the_review_in_the_same_statement(alice: int) -> None:
    opened = await PgSessionStore().open_run(request(alice), planner())
    with counted() as statements:
        await opened.ledger.append([stamp(finished())], end=FINISHED)
    assert statements.total == 1
    (owed,) = await db.in_thread(lambda: list(Job.objects.filter(kind=jobs.REVIEW)))()
    assert (owed.owner_id, owed.session_id, owed.scope) == (alice, int(opened.session.id), "")
    assert jobs.REVIEW not in jobs.HEAVY


async def test_evolution_5_1_one_call_asks_nobody_and_four_ask_once_with_only_what_is_new(
    alice: int, server: ModelServer
) -> None:
    server.script(decides(skip_reason="a single question"), decides(skip_reason="again"))
    await played(alice, "First one, with plum jam.", *FOUR, model="test")
    read_up_to = (await cursor(alice)).position  # type: ignore[union-attr]  # it was reviewed
    assert len(server.chats) == 1 and read_up_to > 0
    await played(alice, "Who sells apples?", SEARCH, model="test")
    assert len(server.chats) == 1
    await played(alice, "Write a letter to the seller.", *FOUR, model="test")
    _, chat = server.chats
    asked = sent(chat.body)
    assert "plum jam" not in asked and "Who sells apples?" in asked and "Write a letter" in asked
    row = await cursor(alice)
    assert row is not None and (row.declined_until, row.tries) == (0, 0) and row.position > read_up_to
    _, booked = await db.in_thread(lambda: list(ModelCall.objects.of(alice).order_by("pk")))()
    assert booked.purpose == "review" and "apples" not in str(booked.parts)


async def test_evolution_5_2_two_turns_with_two_calls_each_are_reviewed_after_the_second(alice: int) -> None:
    await played(alice, "Write a supplier letter about pumps.", SEARCH, SAVE)
    row = await cursor(alice)
    assert row is not None and row.position == 0 and row.declined_until > 0 and row.declined_at is not None
    assert await results(alice) == [] and await jobs_stand() == ["done"]
    await played(alice, "Write a supplier letter about fans.", SEARCH, SAVE)
    assert await results(alice) == ["proposed"]
    revision = await only(alice)
    assert (revision.skill.slug, revision.status) == ("supplier-letter", Status.PENDING_APPROVAL)


async def test_what_stays_too_little_is_let_go_after_a_time_or_so_many_events(
    alice: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    await played(alice, "Find pumps.", SEARCH)
    long_ago = timezone.now() - timedelta(days=15)
    await db.in_thread(ReviewCursor.objects.of(alice).update)(declined_at=long_ago)
    await played(alice, "And fans?", SEARCH)
    assert await results(alice) == ["too_little"]
    row = await cursor(alice)
    assert row is not None and row.position > 0 and row.declined_at is None
    await played(alice, "And taps?", SEARCH)  # counted anew
    assert await results(alice) == ["too_little"]


async def test_a_run_that_goes_on_is_looked_at_when_it_is_over(alice: int) -> None:
    await play(alice, "Write a supplier letter about pumps.", SEARCH, SAVE)
    opened = await PgSessionStore().open_run(request(alice, run_id="long"), planner(run_id="long"))
    await review()
    row = await cursor(alice)
    assert row is not None and row.declined_until == 6 + 2  # up to the end of the first
    await opened.ledger.append([stamp(finished(), run_id="long")], end=FINISHED)
    await review()
    assert (await cursor(alice)).declined_until == 10  # type: ignore[union-attr]  # it was looked at


async def test_what_the_line_shows_no_more_is_not_looked_at(alice: int, server: ModelServer) -> None:
    await play(alice, "Hello.", model="test")
    await play(alice, "Write about plum jam.", *FOUR, model="test")
    await play(alice, "Write about apples.", *FOUR, model="test", fork_after=5)
    server.script(decides(skip_reason="nothing"))
    await review()
    assert "apples" in sent(server.chats[0].body) and "plum" not in sent(server.chats[0].body)


async def test_skill_maintenance_by_hand_is_passed_over(alice: int) -> None:
    await played(alice, "Save it.", *FOUR, done("save_artifact", name="x/SKILL.md", content="# x"))
    row = await cursor(alice)
    assert row is not None and row.position > 0 and await results(alice) == []


async def test_a_policy_that_wants_no_reviews_has_none(alice: int) -> None:
    await policy(review=False)
    await played(alice, "Write a supplier letter about pumps.", SEARCH, SAVE)
    await played(alice, "Write a supplier letter about fans.", SEARCH, SAVE)
    assert await results(alice) == [] and await revisions(alice) == []


# The reviewer


async def test_evolution_5_3_a_reviewer_that_fails_moves_nothing_and_both_deltas_are_reviewed_until_it_is_given_up(
    alice: int, server: ModelServer
) -> None:
    server.script(says("I think that went well."))
    await played(alice, "Write about plum jam.", *FOUR, model="test")
    row = await cursor(alice)
    assert row is not None and (row.position, row.tries) == (0, 1)
    assert await revisions(alice) == [] and await jobs_stand() == ["queued"]
    server.script(says("Still prose."), says("And again."))
    await play(alice, "Write about apples.", *FOUR, model="test")
    await review()
    assert all(word in sent(server.chats[1].body) for word in ("plum jam", "apples"))
    assert (await cursor(alice)).tries == 2  # type: ignore[union-attr]  # it failed twice
    await due_again(jobs.REVIEW)
    await review()
    row = await cursor(alice)
    assert row is not None and row.position > 0 and row.tries == 0
    assert await results(alice) == ["dead"] and set(await jobs_stand()) == {"done"}
    await play(alice, "Hello.", model="test")
    await review()
    assert len(server.chats) == 3  # what was given up is not read again


async def test_evolution_5_4_no_secret_reaches_the_reviewer_or_the_stored_revision(
    alice: int, server: ModelServer
) -> None:
    leaking = {**SPEC, "steps": ["Read the offer.", "Write to ana@harbour.example for Alice Ferreira."]}
    secret = {**SPEC, "name": "Key letter", "steps": ["Log in with PASSWORD=hunter2hunter2.", "Write."]}
    server.script(decides(skills=[leaking, secret]))
    await played(
        alice, "Use bearer abcdefghijklmnop99 and PASSWORD=hunter2hunter2 for me, Alice Ferreira.", *FOUR, model="test"
    )
    asked = sent(server.chats[0].body)
    for hidden in ("abcdefghijklmnop99", "hunter2", "Ferreira"):
        assert hidden not in asked
    stored = await db.in_thread(
        lambda: str([*SkillRevision.objects.in_scope(alice).values(), *Review.objects.of(alice).values()])
    )()
    for hidden in ("ana@harbour", "hunter2", "Ferreira"):
        assert hidden not in stored
    assert [revision.status for revision in await revisions(alice)] == [Status.REJECTED, Status.REJECTED]


async def test_evolution_5_5_a_user_fact_is_no_skill_and_neither_writes_what_is_the_others(
    alice: int, server: ModelServer
) -> None:
    fact = {**SPEC, "name": "Name of the person", "steps": ["Remember that my name is Ana.", "Use it."]}
    server.script(decides(skills=[fact]))
    await played(alice, "My name is Ana. Write.", *FOUR, model="test")
    revision = await only(alice)
    assert revision.status == Status.REJECTED
    assert [code for code, _ in revision.reports["safety"]["findings"]] == ["user_fact"]
    assert not await db.in_thread(Memory.objects.of(alice).exists)()
    await due_again()  # the memory job of the same run writes no skill
    before = await db.in_thread(Skill.objects.in_scope(alice).count)()
    await work()
    assert await db.in_thread(Skill.objects.in_scope(alice).count)() == before


async def test_the_model_of_the_policy_reviews_and_is_told_how_it_turned_out(
    alice: int, server: ModelServer, settings: Any
) -> None:
    settings.MODELS = [{"name": "judge"}]
    await policy(review_model="judge")
    opened = await play(alice, "Write.", *FOUR, model="test")
    said = reviews.say
    await db.in_thread(said)(alice, "t", opened.request.run_id, Thumb.DOWN, [Why.WRONG], "my PASSWORD=zz99 is there")
    server.script(decides(skip_reason="nothing"))
    await review()
    (chat,) = server.chats
    assert chat.body["model"] == "judge"
    assert "fail, score 0" in sent(chat.body) and "wrong" in sent(chat.body) and "zz99" not in sent(chat.body)


# What comes of it


async def test_evolution_5_6_a_name_with_something_behind_it_changes_the_skill_that_is_there(
    alice: int, server: ModelServer
) -> None:
    number = await managed(alice, "supplier-letter", "Writes to suppliers")
    server.script(decides(skills=[{**SPEC, "name": "supplier-letter-v2"}]))
    await played(alice, "Write.", *FOUR, model="test")
    revision = (await revisions(alice))[-1]
    assert (revision.action, revision.skill.slug) == ("update", "supplier-letter")
    assert revision.parent is not None and (revision.parent.number, revision.parent.status) == (number, "active")
    assert revision.evidence["note"].startswith("merged into supplier-letter because")


async def test_vectors_find_the_same_task_in_other_words(alice: int, server: ModelServer, settings: Any) -> None:
    settings.EMBEDDER = "minilm"
    await managed(alice, "trip-planner", "Plans a trip from dates and wishes. Use it when somebody travels")
    other = {
        **SPEC,
        "name": "journey organiser",
        "description": "Organises a journey by dates and preferences",
        "when_to_use": "When a person goes travelling",
    }
    server.script(decides(skills=[other]))
    await played(alice, "Write.", *FOUR, model="test")
    revision = (await revisions(alice))[-1]
    assert (revision.action, revision.skill.slug) == ("update", "trip-planner")
    assert "mean nearly the same" in revision.evidence["note"]


async def test_evolution_5_9_what_a_person_accepts_is_in_the_next_run_with_no_other_event(
    alice: int, server: ModelServer
) -> None:
    server.script(decides(skills=[SPEC]))
    await played(alice, "Write.", *FOUR, model="test")
    revision = await only(alice)
    assert (revision.status, await seen(alice)) == (Status.PENDING_APPROVAL, {})
    assert revision.evidence["thread_id"] == "t" and revision.source == "reviewer"
    await decide(alice, revision.pk)
    assert list(await seen(alice)) == ["supplier-letter"]
    with pytest.raises(SkillDecided):
        await decide(alice, revision.pk)
    assert await verbs(alice) == ["submit", "hold", "approve", "promote"]


async def test_evolution_5_10_of_two_changes_of_one_skill_the_second_is_stale_once_the_first_holds(
    alice: int, server: ModelServer
) -> None:
    await managed(alice, "supplier-letter")
    for words in ("Put the price first.", "Put the date first."):
        change = {"name": "supplier-letter", "new_spec": {**SPEC, "steps": [words, "Write."]}, "reason": "asked"}
        server.script(decides(updates=[change]))
        await played(alice, words, *FOUR, model="test")
    first, second = (await revisions(alice))[1:]
    await decide(alice, first.pk)
    with pytest.raises(SkillStale):
        await decide(alice, second.pk)
    assert (await revisions(alice))[-1].status == Status.REJECTED


async def test_evolution_5_11_going_back_serves_the_body_before_and_the_audit_says_who(
    alice: int, server: ModelServer
) -> None:
    await managed(alice, "supplier-letter", body="1. The old way.\n2. Go on.")
    server.script(decides(updates=[{"name": "supplier-letter", "new_spec": SPEC, "reason": "asked"}]))
    await played(alice, "Write.", *FOUR, model="test")
    await decide(alice, (await revisions(alice))[-1].pk)
    assert "Name price" in (await PgSkills(alice).skill("supplier-letter")).body
    await db.in_thread(SkillLibraryRows(alice, actor_id=alice).rollback)("supplier-letter")
    assert "The old way" in (await PgSkills(alice).skill("supplier-letter")).body
    assert [revision.status for revision in await revisions(alice)] == [Status.ACTIVE, Status.ARCHIVED]
    back = await db.in_thread(lambda: SkillAudit.objects.in_scope(alice).get(verb="rollback"))()
    assert back.actor_id == alice
    await managed(alice, "fresh")
    with pytest.raises(NoArchivedRevision):
        await db.in_thread(SkillLibraryRows(alice, actor_id=alice).rollback)("fresh")


async def test_evolution_5_11_going_back_to_a_revision_that_deletes_takes_the_skill_away(
    alice: int, server: ModelServer
) -> None:
    number = await managed(alice, "supplier-letter")
    server.script(decides(deletions=["supplier-letter"]))
    await played(alice, "Write.", *FOUR, model="test")
    deleting = (await revisions(alice))[-1]
    await decide(alice, deleting.pk)
    rows = SkillLibraryRows(alice, actor_id=alice)
    await db.in_thread(rows.rollback)("supplier-letter", number)
    assert list(await seen(alice)) == ["supplier-letter"]
    await db.in_thread(rows.rollback)("supplier-letter", deleting.number)
    assert await seen(alice) == {}


async def test_evolution_5_13_a_change_of_a_skill_that_is_not_managed_here_is_refused_and_kept_as_refused(
    alice: int, server: ModelServer
) -> None:
    await brought(alice, "supplier-letter")
    before = [revision.pk for revision in await revisions(alice)]
    change = {"name": "supplier-letter", "new_spec": SPEC, "reason": "better"}
    server.script(decides(updates=[change], deletions=["weekly-report"]))
    await played(alice, "Write.", *FOUR, model="test")
    assert [revision.pk for revision in await revisions(alice)] == before
    assert {(one["action"], one["name"], one["code"]) for one in await came(alice)} == {
        ("update", "supplier-letter", "not_managed"),
        ("delete", "weekly-report", "not_managed"),
    }


async def test_a_deletion_always_waits_for_a_person(alice: int, server: ModelServer) -> None:
    await managed(alice, "supplier-letter")
    server.script(decides(deletions=[{"name": "supplier-letter", "reason": "it is wrong"}]))
    await played(alice, "Write.", *FOUR, model="test")
    revision = (await revisions(alice))[-1]
    assert (revision.action, revision.status) == ("delete", Status.PENDING_APPROVAL)
    assert list(await seen(alice)) == ["supplier-letter"]
    await decide(alice, revision.pk)
    assert await seen(alice) == {}


async def test_evolution_5_14_without_any_gate_it_holds_at_once_and_nothing_says_that_somebody_approved(
    alice: int, server: ModelServer
) -> None:
    server.script(decides(skills=[SPEC]))
    opened = await play(alice, "Write.", *FOUR, model="test")
    claim = await taken_review(alice, int(opened.session.id))
    none = Gates(spec=None, safety=None, effectiveness=None, human=None)
    await asyncio.to_thread(lambda: asyncio.run(job.run(claim, none)))
    revision = await only(alice)
    assert (revision.status, list(await seen(alice))) == (Status.ACTIVE, ["supplier-letter"])
    assert "approve" not in await verbs(alice) and revision.decided_by_id is None and revision.reports == {}


async def taken_review(owner_id: int, session_id: int) -> jobs.Claim:
    rows = Job.objects.filter(kind=jobs.REVIEW, owner_id=owner_id, session_id=session_id)
    claim = await db.in_thread(lambda: jobs.claim(rows.get().pk))()
    assert claim is not None
    return claim


async def test_evolution_5_15_what_was_learned_of_one_person_is_seen_and_decided_by_nobody_else(
    alice: int, server: ModelServer
) -> None:
    bob = await person("bob")
    server.script(decides(skills=[SPEC]))
    opened = await played(alice, "Write.", *FOUR, model="test")
    revision = await only(alice)
    for act in ("approve", "reject"):
        with pytest.raises(SkillMissing):
            await db.in_thread(getattr(SkillLibraryRows(bob, actor_id=bob), act))(revision.pk)
    session = int(opened.session.id)
    assert await db.in_thread(reviews.feet)(bob, session, [opened.request.run_id]) == {}
    foot = reviews.Foot(thumb="", suggested=1)
    assert await db.in_thread(reviews.feet)(alice, session, [opened.request.run_id]) == {opened.request.run_id: foot}
    assert not await db.in_thread(SkillRevision.objects.of(bob).exists)()
    await decide(alice, revision.pk)
    assert await seen(bob) == {} and list(await seen(alice)) == ["supplier-letter"]
    assert await db.in_thread(reviews.say)(bob, "t", opened.request.run_id, Thumb.DOWN) is False


# Outcomes and time


async def test_evolution_5_8_what_turned_out_badly_waits_for_a_better_outcome_and_expires_without_one(
    alice: int, server: ModelServer
) -> None:
    opened = await play(alice, "Write.", *FOUR, model="test")
    run = opened.request.run_id
    await db.in_thread(reviews.say)(alice, "t", run, Thumb.DOWN, [Why.INCOMPLETE])
    server.script(decides(skills=[SPEC]))
    await review()
    assert ((await only(alice)).status, await verbs(alice)) == (Status.PENDING_EVAL, ["submit", "hold"])
    await db.in_thread(reviews.say)(alice, "t", run, Thumb.UP)
    await review()
    assert ((await only(alice)).status, await verbs(alice)) == (Status.PENDING_APPROVAL, ["submit", "hold", "hold"])
    assert (await only(alice)).reports["effectiveness"]["passed"] is True
    late = timezone.now() + timedelta(days=31)
    assert await db.in_thread(skilljudging.expire)(late) == 1
    assert ((await only(alice)).status, await seen(alice)) == (Status.EXPIRED, {})
    assert (await verbs(alice))[-1] == "expire"
    with pytest.raises(SkillDecided):
        await decide(alice, (await only(alice)).pk)


@pytest.mark.parametrize(("status", "days"), [("pending", 1), ("pending_eval", 14), ("pending_approval", 30)])
async def test_every_state_that_waits_ends_by_itself_and_publishes_nothing(alice: int, status: str, days: int) -> None:
    await played(alice, "Write a supplier letter about pumps.", SEARCH, SAVE)
    await played(alice, "Write a supplier letter about fans.", SEARCH, SAVE)
    await db.in_thread(SkillRevision.objects.in_scope(alice).update)(status=status)
    made = (await only(alice)).created_at
    assert await db.in_thread(skilljudging.expire)(made + timedelta(days=days) - timedelta(minutes=1)) == 0
    assert await db.in_thread(skilljudging.expire)(made + timedelta(days=days, minutes=1)) == 1
    assert ((await only(alice)).status, await seen(alice)) == (Status.EXPIRED, {})


async def test_evolution_5_12_a_gate_that_raises_rejects_and_the_human_one_holds_and_both_are_stored(
    alice: int, server: ModelServer
) -> None:
    def broken(candidate: Candidate) -> Report:
        raise LookupError("detail")

    for number, (gates, status) in enumerate(
        ((Gates(safety=broken), Status.REJECTED), (Gates(human=broken), Status.PENDING_APPROVAL))
    ):
        server.script(decides(skills=[{**SPEC, "name": f"letter {'ab'[number]}", "steps": [f"{number}", "Write."]}]))
        thread = f"t{number}"
        opened = await play(alice, "Write.", *FOUR, model="test", thread=thread)
        claim = await taken_review(alice, int(opened.session.id))
        await asyncio.to_thread(lambda c=claim, g=gates: asyncio.run(job.run(c, g)))
        revision = (await revisions(alice))[-1]
        assert revision.status == status
        assert [one["error"] for one in revision.reports.values() if one["error"]] == ["LookupError"]


# The whole way without a key


async def test_a_repeated_way_is_suggested_without_a_model_and_open_pages_hear_of_it(alice: int) -> None:
    layer = get_channel_layer()
    channel = await layer.new_channel()
    await layer.group_add(hints.group(alice), channel)
    await played(alice, "Write a supplier letter about pumps.", broke("search_knowledge", query="x"), SEARCH, SAVE)
    revision = await only(alice)
    async with asyncio.timeout(WAIT_S):
        (heard,) = (await layer.receive(channel))["hints"]
    await layer.flush()
    assert heard == {"thread_id": "t", "changed": "skill"}
    assert revision.status == Status.PENDING_APPROVAL and "search_knowledge failed" in revision.body
    assert "```offline" in revision.body


async def test_doing_the_job_twice_or_at_once_reviews_once(alice: int) -> None:
    await play(alice, "Write a supplier letter about pumps.", SEARCH, SAVE)
    opened = await play(alice, "Write a supplier letter about fans.", SEARCH, SAVE)
    claim = await taken_review(alice, int(opened.session.id))
    await db.in_thread(reviews.claim)(alice, int(opened.session.id), "999:1")
    with pytest.raises(jobs.NotYet):
        await asyncio.to_thread(lambda: asyncio.run(job.run(claim)))
    await db.in_thread(reviews.release)(alice, int(opened.session.id), "999:1")
    for expected in ("proposed", "nothing"):
        assert await asyncio.to_thread(lambda: asyncio.run(job.run(claim))) == expected
    assert len(await revisions(alice)) == 1 and await results(alice) == ["proposed"]

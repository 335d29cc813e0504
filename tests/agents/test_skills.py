"""Skills over tables: what a run sees, publishing and going back, what waits, deleting, and whose they are."""

import asyncio
import os
import tempfile
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from agents.background import sweep
from agents.models.owned import OwnerRequired
from agents.models.skill import Skill, SkillAudit, SkillRevision, SkillSwitch, SkillUse
from agents.runtime.skills.skill import SkillMissing, SkillScope, SkillUnavailable
from agents.stores import bundledskills, skillcontent, skillfiles, skillimport, skilllibrary
from agents.stores.skillcontent import slug_of
from agents.stores.skillfiles import desk
from agents.stores.skilllibrary import (
    NoArchivedRevision,
    Proposal,
    SkillBroken,
    SkillDecided,
    SkillLibraryRows,
    SkillNameTaken,
    SkillStale,
)
from agents.stores.skills import PgSkills, Run, library_versions
from artifacts import blobs
from tests.agents.counting import counted
from tests.agents.skillpacking import brought, skill, zip_of
from tests.workbench.conversations import conversation

Status = SkillRevision.Status


def rows(owner: Any) -> SkillLibraryRows:
    return SkillLibraryRows(owner.pk, actor_id=owner.pk)


def shared(staff: Any) -> SkillLibraryRows:
    return SkillLibraryRows(None, actor_id=staff.pk)


def bring(owner: Any, *files: tuple[str, bytes | str], everyone: bool = False) -> skillimport.Import:
    files = files or (("SKILL.md", skill()),)
    owner_id = None if everyone else owner.pk
    return skillimport.bring([brought("memo.zip", zip_of(*files))], owner_id=owner_id, actor_id=owner.pk)


def proposed(owner: Any, body: str, name: str = "board-memo", **more: Any) -> SkillRevision:
    """Put a proposal before a person, as a review of their runs does."""
    with desk() as on:
        content = skillcontent.of_text(name, "Write a memo.", body, on, None)
        return SkillLibraryRows(owner.pk).submit(content.slug, content, Proposal(**more))


def seen(owner: Any, **more: Any) -> dict[str, str]:
    """Return what a run that begins now sees of a person's and everyone's skills: name to description."""

    async def look() -> dict[str, str]:
        found = await PgSkills(owner.pk, **more).summaries()
        return {s.name: s.description for s in found if s.scope is not SkillScope.BUNDLED}

    return asyncio.run(look())


def read(owner: Any, name: str) -> Any:
    return asyncio.run(PgSkills(owner.pk).skill(name))


def verbs(slug: str = "board-memo") -> list[str]:
    found = SkillAudit.objects.of_everyone().filter(slug=slug).order_by("pk")
    return list(found.values_list("verb", flat=True))


committed = pytest.mark.django_db(transaction=True)
pytestmark = committed


# What a run sees


def test_a_skill_that_is_brought_is_seen_whole_with_documents_and_files(alice: Any) -> None:
    bring(
        alice,
        ("SKILL.md", skill(body="Do it.")),
        ("docs/样式.md", "短"),
        ("notes.txt", "n"),
        ("run.py", "print(1)"),
    )
    found = read(alice, "board-memo")
    assert (found.body, found.scope, found.runs) == ("Do it.", SkillScope.MINE, True)
    assert found.docs == ("docs/样式.md", "notes.txt")
    assert [(doc.path, doc.text) for doc in found.texts] == [("docs/样式.md", "短"), ("notes.txt", "n")]
    files = asyncio.run(PgSkills(alice.pk).files("board-memo"))
    assert {file.path: file.data for file in files} == {
        "SKILL.md": skill(body="Do it.").encode(),
        "docs/样式.md": "短".encode(),
        "notes.txt": b"n",
        "run.py": b"print(1)",
    }


async def test_skills_2_2_a_run_keeps_its_snapshot_and_the_next_sees_what_changed(alice: Any) -> None:
    change = sync_to_async(rows(alice).make)
    running = PgSkills(alice.pk)
    before = {s.name for s in await running.summaries()}
    await change("New one", "It is new.", "Do it.")
    assert {s.name for s in await running.summaries()} == before
    with pytest.raises(SkillMissing):
        await running.skill("new-one")
    following = PgSkills(alice.pk)
    assert {s.name for s in await following.summaries()} == before | {"new-one"}
    await sync_to_async(rows(alice).edit)("new-one", "New one", "It is new.", "Do it otherwise.", parent=1)
    assert (await following.skill("new-one")).body == "Do it."
    assert (await PgSkills(alice.pk).skill("new-one")).body == "Do it otherwise."
    await sync_to_async(rows(alice).delete)("new-one")
    assert (await following.skill("new-one")).body == "Do it."
    with pytest.raises(SkillMissing):
        await PgSkills(alice.pk).skill("new-one")


def test_skills_2_13_a_persons_own_skill_is_not_listed_loaded_or_run_for_another(alice: Any, bob: Any) -> None:
    bring(alice, ("SKILL.md", skill()), ("run.py", "x"))
    assert seen(alice) == {"board-memo": "Write a memo for the board."}
    assert seen(bob) == {}
    for ask in (PgSkills(bob.pk).skill, PgSkills(bob.pk).files):
        with pytest.raises(SkillMissing):
            asyncio.run(ask("board-memo"))
    assert not Skill.objects.of(bob.pk).exists()
    assert not SkillRevision.objects.of(bob.pk).exists()
    for change in (
        lambda: rows(bob).turn("board-memo", on=False),
        lambda: rows(bob).edit("board-memo", "x", "x", "x", parent=1),
        lambda: rows(bob).rollback("board-memo"),
        lambda: rows(bob).delete("board-memo"),
        lambda: rows(bob).restore(Skill.objects.of(alice.pk).get().key),
        lambda: rows(bob).revision("board-memo", 1),
    ):
        with pytest.raises(SkillMissing):
            change()
    assert seen(alice) == {"board-memo": "Write a memo for the board."}


def test_evolution_5_15_nobody_decides_about_what_is_proposed_to_another(alice: Any, bob: Any) -> None:
    waiting = proposed(alice, "Ask first.")
    for decide in (rows(bob).approve, rows(bob).reject, SkillLibraryRows(None, actor_id=bob.pk).approve):
        with pytest.raises(SkillMissing):
            decide(waiting.pk)
    assert not SkillRevision.objects.of(bob.pk).exists()
    waiting.refresh_from_db()
    assert waiting.status == Status.PENDING_APPROVAL
    rows(alice).approve(waiting.pk)
    assert (seen(bob), list(seen(alice))) == ({}, ["board-memo"])


def test_a_query_that_does_not_say_whose_skills_it_is_about_is_refused(alice: Any) -> None:
    for table in (Skill, SkillRevision, SkillAudit, SkillSwitch, SkillUse):
        with pytest.raises(OwnerRequired):
            table.objects.all()


def test_a_proposal_to_everyone_shows_to_staff_and_to_whoever_made_it_alone(alice: Any, bob: Any, charlie: Any) -> None:
    bring(alice)
    waiting = skilllibrary.share(Skill.objects.of(alice.pk).get(), by=alice.pk, staff=False)
    assert waiting.owner_id is None
    assert SkillRevision.objects.of(alice.pk).filter(pk=waiting.pk).exists()
    assert not SkillRevision.objects.of(bob.pk).exists()
    assert not Skill.objects.of(bob.pk).exists()
    assert seen(bob) == {}
    shared(charlie).approve(waiting.pk)
    assert seen(bob) == {"board-memo": "Write a memo for the board."}
    assert SkillRevision.objects.of(bob.pk).get().pk == waiting.pk


def test_what_is_proposed_to_everyone_once_more_is_the_one_proposal(alice: Any) -> None:
    bring(alice)
    mine = Skill.objects.of(alice.pk).get()
    first, again = (skilllibrary.share(mine, by=alice.pk, staff=False) for _ in range(2))
    assert first == again
    assert SkillRevision.objects.in_scope(None).count() == 1


def test_of_two_with_one_name_a_person_sees_their_own_and_then_everyones(alice: Any, charlie: Any) -> None:
    bring(charlie, ("SKILL.md", skill(description="Everyone's.")), everyone=True)
    bring(alice, ("SKILL.md", skill(description="Alice's.")))
    assert seen(alice) == {"board-memo": "Alice's."}
    rows(alice).turn("board-memo", on=False)
    assert seen(alice) == {"board-memo": "Everyone's."}
    skilllibrary.switch(alice.pk, SkillScope.EVERYONE, "board-memo", on=False)
    assert seen(alice) == {}
    assert seen(charlie) == {"board-memo": "Everyone's."}
    skilllibrary.switch(alice.pk, SkillScope.EVERYONE, "board-memo", on=True)
    shared(charlie).turn("board-memo", on=False)
    assert (seen(alice), seen(charlie)) == ({}, {})


def test_bundled_skills_are_seen_by_all_and_one_person_may_switch_them_off(
    alice: Any, bob: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, text in (("memo", skill("memo")), ("broken", "no front matter"), ("named", skill("otherwise"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(text)
    (tmp_path / "memo" / "style.md").write_text("short")
    found = bundledskills.bundled(tmp_path)
    assert [(s.name, getattr(s, "problem", "")) for s in found] == [
        ("broken", "no_description"),
        ("memo", ""),
        ("named", "name"),
    ]
    monkeypatch.setattr(bundledskills, "bundled", lambda: found)
    monkeypatch.setattr(bundledskills.files, "__defaults__", (tmp_path,))
    skilllibrary.switch(bob.pk, SkillScope.BUNDLED, "memo", on=False)

    async def look(owner: Any) -> list[str]:
        return [s.name for s in await PgSkills(owner.pk).summaries()]

    assert asyncio.run(look(alice)) == ["memo"]
    assert asyncio.run(look(bob)) == []
    assert read(alice, "memo").texts[0].text == "short"
    assert [f.path for f in asyncio.run(PgSkills(alice.pk).files("memo"))] == ["SKILL.md", "style.md"]


def test_300_skills_are_all_there_and_cost_one_statement_once_they_are_known(alice: Any) -> None:
    bring(alice, *((f"s{n}/SKILL.md", skill(f"skill-{n}")) for n in range(300)))
    assert len(seen(alice)) == 300
    with counted() as statements:
        assert len(seen(alice)) == 300
    assert len([text for text in statements.texts if text]) == 1  # the pool looks at its connection
    rows(alice).turn("skill-7", on=False)
    with counted() as statements:
        assert "skill-7" not in seen(alice)
    assert len([text for text in statements.texts if text]) == 3


def test_a_broken_skill_is_kept_with_its_reason_and_a_run_does_not_see_it(alice: Any) -> None:
    found = bring(alice, ("one/SKILL.md", "---\nname: one\n---\nbody"), ("two/SKILL.md", skill("two")))
    assert [(one.revision.problem, one.fresh) for one in found.skills] == [("no_description", True), ("", True)]
    assert list(seen(alice)) == ["two"]
    broken = rows(alice).revision("one", 1)
    assert (broken.status, broken.body) == (Status.REJECTED, "---\nname: one\n---\nbody")
    rows(alice).edit("one", "One", "Now it says when.", "Do.", parent=1)
    assert seen(alice)["one"] == "Now it says when."


def test_skills_2_1_a_description_with_colon_and_hash_is_listed_with_its_full_text(alice: Any) -> None:
    bring(alice, ("SKILL.md", "---\nname: raw\ndescription: Use when: x # y\n---\nDo."))
    assert seen(alice) == {"raw": "Use when: x # y"}


def test_what_cannot_be_read_does_not_replace_what_holds(alice: Any) -> None:
    bring(alice)
    bring(alice, ("SKILL.md", b"\xff\xfe\x00"))
    assert seen(alice) == {} | {"board-memo": "Write a memo for the board."}
    bring(alice, ("board-memo/SKILL.md", "---\nname: board-memo\n---\nx"))
    assert read(alice, "board-memo").body == "1. Ask."
    assert rows(alice).revision("board-memo", 2).problem == "no_description"


def test_an_outage_is_said_to_be_one(transactional_db: None, alice: Any) -> None:
    bring(alice)
    session = conversation(alice, "t-1")

    def dies() -> Any:
        with connection.cursor() as cursor:
            cursor.execute("select pg_terminate_backend(pg_backend_pid())")

    with pytest.raises(SkillUnavailable):
        asyncio.run(PgSkills(alice.pk, run=Run(session_id=session.pk, run_id="r"), now=dies).skill("board-memo"))
    assert asyncio.run(PgSkills(alice.pk).skill("board-memo")).name == "board-memo"


def test_a_run_that_knows_the_numbers_asks_nothing(alice: Any) -> None:
    bring(alice)
    assert "board-memo" in seen(alice)

    def names(versions: tuple[int, int]) -> list[str]:
        return [one.name for one in asyncio.run(PgSkills(alice.pk, versions=versions).summaries())]

    versions = library_versions(alice.pk)
    with counted() as statements:
        assert "board-memo" in names(versions)
    assert [text for text in statements.texts if text] == []
    rows(alice).turn("board-memo", on=False)
    assert "board-memo" not in names(library_versions(alice.pk))


def test_a_run_that_reads_a_skill_is_noted_once(alice: Any) -> None:
    bring(alice)
    session = conversation(alice, "t-1")

    async def work() -> None:
        skills = PgSkills(alice.pk, run=Run(session_id=session.pk, run_id="r-1"))
        await skills.summaries()
        assert not await SkillUse.objects.of(alice.pk).aexists()
        await skills.skill("board-memo")
        await skills.skill("board-memo")
        await PgSkills(alice.pk, run=Run(session_id=session.pk, run_id="r-1")).skill("board-memo")

    asyncio.run(work())
    use = SkillUse.objects.of(alice.pk).get()
    assert (use.run_id, use.scope, use.slug, use.revision.number) == ("r-1", "mine", "board-memo", 1)


# Publishing and going back


def test_every_save_is_a_revision_and_one_from_an_older_one_is_refused(alice: Any) -> None:
    rows(alice).make("Board memo", "When a board has to decide.", "1. Ask.")
    rows(alice).edit("board-memo", "Board memo", "When a board has to decide.", "1. Decide.", parent=1)
    with pytest.raises(SkillStale):
        rows(alice).edit("board-memo", "Board memo", "Other.", "Other.", parent=1)
    assert read(alice, "board-memo").body == "1. Decide."
    same = rows(alice).edit("board-memo", "Board memo", "When a board has to decide.", "1. Decide.", parent=2)
    assert same.number == 2
    statuses = SkillRevision.objects.of(alice.pk).order_by("number").values_list("number", "status")
    assert list(statuses) == [(1, "archived"), (2, "active")]
    assert verbs() == ["promote", "archive", "promote"]


def test_an_edit_keeps_other_files_and_other_keys_of_the_front_matter(alice: Any) -> None:
    main = "---\nname: board-memo\nlicense: MIT\ndescription: >\n  Old\n  words\nmetadata:\n  a: 1\n---\nOld.\n"
    bring(alice, ("SKILL.md", main), ("style.md", "short"), ("run.py", "x"))
    rows(alice).edit("board-memo", "Board memo", "New words", "New.", parent=1)
    found = read(alice, "board-memo")
    assert (found.description, found.body, found.docs, found.runs) == ("New words", "New.", ("style.md",), True)
    files = {f.path: f.data.decode() for f in asyncio.run(PgSkills(alice.pk).files("board-memo"))}
    assert files["SKILL.md"] == (
        "---\nname: board-memo\ndescription: New words\nlicense: MIT\nmetadata:\n  a: 1\n---\n\nNew.\n"
    )
    assert files["run.py"] == "x"


def test_what_cannot_be_used_is_not_published(alice: Any) -> None:
    for description, body, problem in (
        ("", "x", "no_description"),
        ("x", "", "no_body"),
        ("x" * 1025, "x", "description"),
    ):
        with pytest.raises(SkillBroken, match=problem):
            rows(alice).make("Board memo", description, body)
    assert not Skill.objects.of(alice.pk).exists()


def test_two_new_skills_of_one_name_are_one_too_many(alice: Any) -> None:
    rows(alice).make("Board memo", "x", "x")
    with pytest.raises(SkillNameTaken):
        rows(alice).make("BOARD  memo!", "y", "y")
    assert rows(alice).make("董事会 备忘录", "y", "y").skill.slug == "董事会-备忘录"
    assert rows(alice).make("董事会 纪要", "y", "y").skill.slug == "董事会-纪要"


def test_names_are_made_fit_without_becoming_one() -> None:
    assert slug_of("Board memo: v2") == "board-memo-v2"
    assert slug_of("ＡＢＣ　会议纪要") == "abc-会议纪要"
    assert slug_of("!!!") != slug_of("???")
    long = slug_of("x" * 100)
    assert len(long) <= 64
    assert long != slug_of("x" * 101)


def test_evolution_5_11_a_rollback_serves_the_former_body_in_the_next_run_and_back_again(alice: Any) -> None:
    rows(alice).make("Board memo", "x", "First.")
    with pytest.raises(NoArchivedRevision):
        rows(alice).rollback("board-memo")
    rows(alice).edit("board-memo", "Board memo", "x", "Second.", parent=1)
    rows(alice).rollback("board-memo")
    assert read(alice, "board-memo").body == "First."
    assert rows(alice).revision("board-memo", 2).status == Status.ARCHIVED
    last = SkillAudit.objects.of_everyone().filter(verb="rollback").get()
    assert (last.actor_id, last.number) == (alice.pk, 1)
    rows(alice).rollback("board-memo")
    assert read(alice, "board-memo").body == "Second."
    rows(alice).rollback("board-memo", to=1)
    assert read(alice, "board-memo").body == "First."


def test_evolution_5_11_a_rollback_to_a_revision_that_deletes_removes_the_skill(charlie: Any) -> None:
    bring(charlie, everyone=True)
    shared(charlie).delete("board-memo")
    assert seen(charlie) == {}
    shared(charlie).rollback("board-memo")
    assert list(seen(charlie)) == ["board-memo"]
    shared(charlie).rollback("board-memo", to=2)
    assert seen(charlie) == {}
    assert Skill.objects.in_scope(None).get().active is None
    assert verbs()[-3:] == ["rollback", "archive", "promote"]


def test_one_active_revision_is_a_rule_of_the_database(alice: Any) -> None:
    bring(alice)
    one = rows(alice).revision("board-memo", 1)
    with pytest.raises(IntegrityError), transaction.atomic():
        SkillRevision.objects.of(alice.pk).bulk_create(
            [SkillRevision(**{**fields(one), "number": 2, "status": Status.ACTIVE.value})]
        )


def fields(row: SkillRevision) -> dict[str, Any]:
    return {f.attname: getattr(row, f.attname) for f in row._meta.concrete_fields if f.attname != "id"}


async def test_of_two_edits_at_once_one_wins_and_the_other_hears_of_it(alice: Any) -> None:
    await sync_to_async(rows(alice).make)("Board memo", "x", "First.")
    edit = sync_to_async(rows(alice).edit, thread_sensitive=False)
    both = (edit("board-memo", "Board memo", "x", f"{n}.", parent=1) for n in range(2))
    found = await asyncio.gather(*both, return_exceptions=True)
    assert sorted(type(one).__name__ for one in found) == ["SkillRevision", "SkillStale"]
    assert await SkillRevision.objects.of(alice.pk).acount() == 2


# What waits


def test_evolution_5_9_an_approved_skill_is_in_the_next_runs_overview_with_no_other_event(alice: Any) -> None:
    waiting = proposed(alice, "Ask first.")
    assert seen(alice) == {}
    rows(alice).approve(waiting.pk, "fine")
    assert seen(alice) == {"board-memo": "Write a memo."}
    with pytest.raises(SkillDecided):
        rows(alice).approve(waiting.pk)
    with pytest.raises(SkillDecided):
        rows(alice).reject(waiting.pk)
    assert verbs() == ["submit", "hold", "approve", "promote"]


def test_evolution_5_10_of_two_updates_of_one_parent_the_second_is_rejected_as_stale(alice: Any) -> None:
    bring(alice)
    first, second = proposed(alice, "First."), proposed(alice, "Second.")
    assert (first.action, first.parent.number, second.parent.number) == ("update", 1, 1)
    rows(alice).approve(first.pk)
    with pytest.raises(SkillStale):
        rows(alice).approve(second.pk)
    second.refresh_from_db()
    assert (second.status, second.comment) == (Status.REJECTED, "it was made from an older revision")
    assert read(alice, "board-memo").body == "First."
    assert verbs()[-1] == "reject"


def test_a_rejected_proposal_changes_nothing(alice: Any) -> None:
    bring(alice)
    waiting = proposed(alice, "Other.")
    rows(alice).reject(waiting.pk, "no")
    waiting.refresh_from_db()
    assert (waiting.status, waiting.decided_by_id, waiting.comment) == (Status.REJECTED, alice.pk, "no")
    assert read(alice, "board-memo").body == "1. Ask."


def test_a_proposal_to_delete_hides_the_skill_once_it_is_approved(alice: Any) -> None:
    bring(alice)
    waiting = SkillLibraryRows(alice.pk).submit("board-memo", None, Proposal())
    assert waiting.action == "delete"
    assert list(seen(alice)) == ["board-memo"]
    rows(alice).approve(waiting.pk)
    assert seen(alice) == {}
    rows(alice).rollback("board-memo")
    assert list(seen(alice)) == ["board-memo"]


# Deleting


def stored(key: Any) -> list[str]:
    try:
        return blobs.storage().listdir(f"{skillfiles.FOLDER}/{key.hex}")[1]
    except FileNotFoundError:
        return []


def holding(words: str) -> list[str]:
    """Return the tables that hold these words anywhere."""
    with connection.cursor() as cursor:
        cursor.execute("select table_name from information_schema.tables where table_name like 'agents_skill%%'")
        tables = [name for (name,) in cursor.fetchall()]
        found = []
        for table in tables:
            cursor.execute(f'select count(*) from "{table}" t where t::text ilike %s', [f"%{words}%"])
            found += [table] if cursor.fetchone()[0] else []
        return found


def test_a_deleted_skill_can_be_brought_back_and_is_gone_for_good_after_that(alice: Any) -> None:
    bring(alice, ("SKILL.md", skill("qwxzkva", body="qwxzkva")), ("a.py", "x"))
    key = rows(alice).delete("qwxzkva").key
    assert seen(alice) == {}
    rows(alice).restore(key)
    assert list(seen(alice)) == ["qwxzkva"]
    rows(alice).delete("qwxzkva")
    assert skilllibrary.purge(now=timezone.now()) == 0
    assert len(stored(key)) == 2
    assert skilllibrary.purge(now=timezone.now() + timedelta(minutes=11)) == 1
    assert (stored(key), holding("qwxzkva")) == ([], [])
    assert SkillAudit.objects.of_everyone().filter(key=key, verb="delete").count() == 2
    with pytest.raises(SkillMissing):
        rows(alice).restore(key)


def test_a_deleted_skills_name_is_free_at_once_and_then_it_cannot_come_back(alice: Any) -> None:
    bring(alice)
    key = rows(alice).delete("board-memo").key
    rows(alice).make("Board memo", "x", "Other.")
    with pytest.raises(SkillNameTaken):
        rows(alice).restore(key)
    assert read(alice, "board-memo").body == "Other."


def test_the_sweep_deletes_bytes_that_no_skill_owns_and_no_others(alice: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    bring(alice)
    bring(alice, ("SKILL.md", skill("other")))
    kept = Skill.objects.of(alice.pk).get(slug="board-memo")
    lost = Skill.objects.of(alice.pk).get(slug="other")
    Skill.objects.of(alice.pk).filter(pk=lost.pk).delete()
    skillfiles.sweep()
    assert stored(lost.key)  # it is young: its row may be on its way
    monkeypatch.setattr(skillfiles, "ORPHAN_AGE", timedelta(seconds=-60))
    monkeypatch.setattr(skillfiles, "LOOKED_AT", 10_000)
    sweep._trim()
    assert (stored(lost.key), len(stored(kept.key))) == ([], 1)


def test_the_sweep_clears_desks_that_a_crash_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, others = tmp_path / f"{skillfiles.DESK}left", tmp_path / "skill-of-somebody"
    for old in (left, others):
        old.mkdir()
        (old / "1").write_text("x")
        os.utime(old, (0, 0))
    with desk() as on:
        fresh = on.lay("a", [b"x"]).at
        skillfiles.sweep()
        assert (left.exists(), others.exists(), fresh.exists()) == (False, True, True)


def test_revisions_of_a_skill_share_the_bytes_that_did_not_change(alice: Any) -> None:
    bring(alice, ("SKILL.md", skill()), ("big.bin", bytes(1000)))
    rows(alice).edit("board-memo", "Board memo", "x", "y", parent=1)
    key = Skill.objects.of(alice.pk).get().key
    assert len(stored(key)) == 3


def test_bringing_the_same_once_more_makes_no_revision_and_other_text_makes_the_next(alice: Any) -> None:
    bring(alice)
    again = bring(alice)
    assert [one.fresh for one in again.skills] == [False]
    changed = bring(alice, ("SKILL.md", skill(body="2. Go.")))
    assert [(one.fresh, one.revision.number) for one in changed.skills] == [(True, 2)]


def test_a_name_that_people_gave_outlives_an_import_of_the_same_skill(alice: Any) -> None:
    rows(alice).make("Board memo", "x", "x")
    bring(alice)
    assert rows(alice).find("board-memo").active.name == "Board memo"


def test_a_document_that_is_too_long_to_be_read_is_still_a_file(alice: Any) -> None:
    bring(alice, ("SKILL.md", skill()), ("long.md", b"x" * (skillcontent.DOC_BYTES + 1)), ("nul.md", b"a\0b"))
    found = read(alice, "board-memo")
    assert (found.docs, found.texts[0].text) == (("nul.md",), "a\ufffdb")
    assert len(asyncio.run(PgSkills(alice.pk).files("board-memo"))) == 3

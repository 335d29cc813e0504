"""The skills pages without a browser: the list, one skill, edits, imports, suggestions, everyone's, and strangers."""

import io
import re
import zipfile
from typing import Any
from urllib.parse import urlencode

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from agents.models.skill import Skill, SkillAudit, SkillRevision, SkillUse
from agents.runtime.skills.skill import BODY_CHARS, SkillScope
from agents.runtime.skills.skill import Skill as Usable
from agents.stores import bundledskills, skillcontent, skillimport, skilllibrary
from agents.stores.skillfiles import desk
from agents.stores.skilllibrary import Proposal, SkillLibraryRows
from agents.stores.skills import visible
from tests.agents.skillpacking import brought, skill, tar_of, zip_of
from tests.workbench.conversations import conversation, run
from tests.workbench.lockedtable import locked_out
from workbench import skillupload

Status = SkillRevision.Status
MIB = 1024 * 1024


@pytest.fixture
def client(alice: Any) -> Client:
    return signed_in(alice)


@pytest.fixture
def staff(charlie: Any) -> Client:
    return signed_in(charlie)


def signed_in(owner: Any, **more: Any) -> Client:
    client = Client(**more)
    client.force_login(owner)
    return client


def rows(owner: Any) -> SkillLibraryRows:
    return SkillLibraryRows(owner.pk, actor_id=owner.pk)


def made(owner: Any, name: str = "Board memo", body: str = "1. Ask.", **more: Any) -> SkillRevision:
    return rows(owner).make(name, more.get("description", "When a board decides."), body)


def bring(owner: Any, *files: tuple[str, bytes | str], everyone: bool = False) -> None:
    pack = brought("memo.zip", zip_of(*(files or (("SKILL.md", skill()),))))
    skillimport.bring([pack], owner_id=None if everyone else owner.pk, actor_id=owner.pk)


def proposed(owner: Any, body: str = "2. Decide.", name: str = "Board memo", **evidence: Any) -> SkillRevision:
    with desk() as on:
        content = skillcontent.of_text(name, "When a board decides.", body, on, None)
        return SkillLibraryRows(owner.pk).submit(content.slug, content, Proposal(evidence=evidence))


def page(client: Client, address: str = "/skills/", *, status: int = 200, **query: Any) -> str:
    response = client.get(address + (f"?{urlencode(query)}" if query else ""))
    assert response.status_code == status
    return response.content.decode()


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]+>", " ", html).split())


def listed(html: str) -> dict[str, str]:
    """Return the skills of a list that have rows in tables, with their state."""
    found = re.findall(r'data-skill="(?:mine|everyone)/([^"]+)" data-state="(\w+)"', html)
    return dict(found)


def upload(client: Client, *files: tuple[str, bytes | str], paths: bool = False, **more: Any) -> Any:
    sent = [SimpleUploadedFile(path.rsplit("/", 1)[-1], d if isinstance(d, bytes) else d.encode()) for path, d in files]
    named = {"path": [path for path, _ in files]} if paths else {}
    return client.post("/skills/import/", {"file": sent, **named, **more})


# The list


def test_bundled_skills_are_listed_beside_ones_own_with_scope_version_and_use(client: Client, alice: Any) -> None:
    made(alice, "董事会备忘录")
    session = conversation(alice, "t-1", title="Cold store")
    run(session, "r-1")
    use = {"owner_id": alice.pk, "session": session, "scope": "mine", "slug": "董事会备忘录", "at": timezone.now()}
    SkillUse.objects.of(alice.pk).create(run_id="r-1", **use)
    SkillUse.objects.of(alice.pk).create(run_id="r-2", **use)
    html = page(client)
    assert listed(html) == {"董事会备忘录": "on"}
    assert "Version 1 used in 2 runs" in words(html)
    assert html.count('data-skill="bundled/') == len(bundledskills.bundled())
    shown = page(client, "/skills/mine/董事会备忘录/")
    assert 'href="/c/t-1/" dir="auto">Cold store</a>' in shown


@pytest.mark.parametrize(
    ("choice", "words"),
    [("none", "No code is run here"), ("monty", "restricted Python interpreter (monty)")],
)
def test_the_page_says_what_runs_code(client: Client, settings: Any, choice: str, words: str) -> None:
    settings.CODE_EXECUTOR = choice
    assert words in page(client)


def test_300_skills_are_all_listed_a_broken_one_with_its_reason(
    client: Client, alice: Any, django_assert_max_num_queries: Any
) -> None:
    bring(alice, *((f"s{n}/SKILL.md", skill(f"skill-{n}")) for n in range(299)), ("b/SKILL.md", "---\nname: b\n---\nx"))
    with django_assert_max_num_queries(14):
        html = page(client)
    found = listed(html)
    assert len(found) == 300
    assert [name for name, state in found.items() if state != "on"] == ["b"]
    assert "It has no description, so nobody can tell when to use it." in html
    assert "300" in words(html)


def test_skills_2_1_a_broken_skill_is_visible_as_invalid_and_can_be_repaired(client: Client, alice: Any) -> None:
    bring(alice, ("b/SKILL.md", '---\nname: b\ndescription: "no end\n---\nDo it.'))
    html = page(client)
    assert listed(html) == {"b": "broken"}
    assert "cannot be read" in html
    shown = page(client, "/skills/mine/b/")
    assert "no end" in shown
    form = page(client, "/skills/mine/b/edit/")
    assert ">\nDo it.</textarea>" in form
    response = client.post("/skills/mine/b/edit/", {"name": "B", "description": "Now.", "body": "Do it.", "version": 1})
    assert response.status_code == 302
    assert listed(page(client)) == {"b": "on"}


def test_a_search_and_a_scope_narrow_the_list_and_say_of_how_many(client: Client, alice: Any, charlie: Any) -> None:
    made(alice)
    made(alice, "Cold store", description="冷库巡检")
    bring(charlie, ("SKILL.md", skill("shared-one")), everyone=True)
    assert set(listed(page(client))) == {"board-memo", "cold-store", "shared-one"}
    assert set(listed(page(client, q="冷库"))) == {"cold-store"}
    assert set(listed(page(client, scope="everyone"))) == {"shared-one"}
    html = page(client, q="nothing at all")
    assert "No skill matches this search" in html
    assert f"0 of {3 + len(bundledskills.bundled())} skills" in html


def test_a_skill_hidden_by_another_of_the_same_name_says_so(client: Client, alice: Any, charlie: Any) -> None:
    bring(charlie, everyone=True)
    assert "is used instead" not in page(client)
    made(alice)
    html = page(client)
    assert html.count("Yours of the same name is used instead.") == 1


@pytest.mark.django_db(transaction=True)
def test_a_page_says_when_skills_cannot_be_read(client: Client) -> None:
    with locked_out("agents_skillrevision"):
        assert "Skills cannot be read right now" in page(client, status=503)
    assert "Skills cannot be read right now" not in page(client)


def test_switches_hold_for_one_person_and_for_their_next_run(
    client: Client, alice: Any, bob: Any, charlie: Any
) -> None:
    bring(charlie, everyone=True)
    name = next(one.name for one in bundledskills.bundled() if isinstance(one, Usable))
    made(alice, "Own")
    for address, slug in (("mine/own", "own"), ("everyone/board-memo", "board-memo"), (f"bundled/{name}", name)):
        assert slug in visible(alice.pk)
        assert client.post(f"/skills/{address}/switch/", HTTP_HX_REQUEST="true").status_code == 204
        assert slug not in visible(alice.pk)
        assert (slug in visible(bob.pk)) == (slug != "own")
    html = page(client)
    assert listed(html) == {"own": "off", "board-memo": "off"}
    assert client.post("/skills/mine/own/switch/", {"on": "1"}).status_code == 302
    assert "own" in visible(alice.pk)


# One skill


def test_a_skill_is_shown_drawn_with_its_documents_and_files(client: Client, alice: Any) -> None:
    body = "# Steps\n\n1. Ask <script>alert(1)</script>\n"
    bring(alice, ("SKILL.md", skill(body=body)), ("docs/样式.md", "## Short"), ("n.txt", "<b>"), ("run.py", "print(1)"))
    html = page(client, "/skills/mine/board-memo/")
    assert "<script>alert" not in html
    assert "Steps</h" in html
    assert html.count("download>") >= 4
    assert "Short</h" in page(client, "/skills/mine/board-memo/", doc="docs/样式.md")
    assert "&lt;b&gt;</pre>" in page(client, "/skills/mine/board-memo/", doc="n.txt")
    response = client.get("/skills/mine/board-memo/file/", {"path": "run.py"})
    assert (response.content, response["Content-Disposition"]) == (b"print(1)", 'attachment; filename="run.py"')
    assert client.get("/skills/mine/board-memo/file/", {"path": "../x"}).status_code == 404


def test_any_two_versions_are_compared_and_an_old_one_is_used_again(client: Client, alice: Any) -> None:
    made(alice)
    for n, body in enumerate(("1. Ask.\n2. Decide.", "1. Decide."), 1):
        form = {"name": "Board memo", "description": "When a board decides.", "body": body, "version": n}
        assert client.post("/skills/mine/board-memo/edit/", form).status_code == 302
    html = page(client, "/skills/mine/board-memo/", v=3, view="diff", base=1)
    assert re.search(r"<del>Ask</del><ins>Decide</ins>", html)
    assert "<ins>2. Decide" in page(client, "/skills/mine/board-memo/", v=2, view="diff", base=1)
    versions = page(client, "/skills/mine/board-memo/", view="versions")
    assert versions.count('class="version"') == 3
    assert "You are looking at version 1; version 3 is used." in page(client, "/skills/mine/board-memo/", v=1)
    assert client.post("/skills/mine/board-memo/restore/1/").status_code == 302
    assert visible(alice.pk)["board-memo"].revision == rows(alice).revision("board-memo", 1).pk
    assert client.post("/skills/mine/board-memo/restore/7/").status_code == 404


def test_files_that_changed_between_versions_are_named(client: Client, alice: Any) -> None:
    bring(alice, ("SKILL.md", skill()), ("a.py", "1"), ("b.py", "1"))
    bring(alice, ("SKILL.md", skill()), ("a.py", "2"), ("c.py", "1"))
    said = words(page(client, "/skills/mine/board-memo/", view="diff"))
    assert "The text of both versions is the same." in said
    for change in ("added c.py", "changed a.py", "removed b.py"):
        assert change in said


def test_an_exported_skill_comes_back_the_same(client: Client, alice: Any, bob: Any) -> None:
    files = (("SKILL.md", skill()), ("docs/样式.md", "短"), ("run.py", "x"))
    bring(alice, *files)
    response = client.get("/skills/mine/board-memo/export/")
    with zipfile.ZipFile(io.BytesIO(response.content)) as archive:
        assert archive.namelist() == ["board-memo/SKILL.md", "board-memo/docs/样式.md", "board-memo/run.py"]
    upload(signed_in(bob), ("board-memo.zip", response.content))
    digests = SkillRevision.objects.of_everyone().values_list("digest", flat=True)
    assert len(digests) == 2
    assert len(set(digests)) == 1


# Writing


def test_a_new_skill_is_written_in_the_page_and_is_in_the_next_run(client: Client, alice: Any) -> None:
    form = {"name": "董事会 备忘录", "description": "When a board decides.", "body": "1. Ask."}
    response = client.post("/skills/new/", form)
    assert response.status_code == 302
    assert "董事会-备忘录" in visible(alice.pk)
    assert "董事会 备忘录" in page(client, response["Location"])


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({"name": ""}, "A skill needs a name."),
        ({"name": "Board MEMO"}, "There is a skill with this name already."),
        ({"description": " "}, "It has no description"),
        ({"description": "x" * 1025}, "Its description has more than 1,024 characters."),
        ({"body": ""}, "It does not say what to do."),
        ({"body": "x" * (BODY_CHARS + 1)}, "Its text has more than 64,000 characters."),
    ],
)
def test_what_cannot_be_a_skill_comes_back_with_its_reason(
    client: Client, alice: Any, typed: dict[str, str], said: str
) -> None:
    made(alice)
    form = {"name": "Other", "description": "<b>When</b>", "body": "Typed text", **typed}
    response = client.post("/skills/new/", form)
    assert response.status_code == 422
    html = response.content.decode()
    assert said in html
    assert 'aria-invalid="true"' in html
    assert "<b>When" not in html
    assert Skill.objects.of(alice.pk).count() == 1


def test_an_edit_of_what_somebody_changed_meanwhile_loses_nothing(client: Client, alice: Any) -> None:
    made(alice)
    rows(alice).edit("board-memo", "Board memo", "When a board decides.", "Theirs.", parent=1)
    form = {"name": "Board memo", "description": "When a board decides.", "body": "Mine.", "version": 1}
    response = client.post("/skills/mine/board-memo/edit/", form)
    assert response.status_code == 409
    html = response.content.decode()
    assert "Version 2 was saved while you were writing." in html
    assert "<del>Theirs</del><ins>Mine</ins>" in html
    assert 'name="version" value="2"' in html
    assert client.post("/skills/mine/board-memo/edit/", {**form, "version": 2}).status_code == 302
    assert rows(alice).find("board-memo").active.body == "Mine."


def test_a_deleted_skill_comes_back_with_undo(client: Client, alice: Any) -> None:
    made(alice)
    response = client.post("/skills/mine/board-memo/delete/")
    html = response.content.decode()
    assert "Deleted: “Board memo”" in html
    assert listed(html) == {}
    key = re.search(r'name="key" value="([^"]+)"', html)[1]  # type: ignore[index]
    made(alice)
    assert client.post("/skills/restore/", {"key": key, "scope": "mine"}).status_code == 409
    client.post("/skills/mine/board-memo/delete/")
    assert client.post("/skills/restore/", {"key": key, "scope": "mine"}).status_code == 302
    assert listed(page(client)) == {"board-memo": "on"}
    assert client.post("/skills/restore/", {"key": "x", "scope": "mine"}).status_code == 404


def test_an_edit_of_what_was_deleted_meanwhile_keeps_what_was_typed(client: Client, alice: Any, bob: Any) -> None:
    made(alice)
    typed = {"name": "Board memo", "description": "x", "body": "A long text.", "version": 1}
    client.post("/skills/mine/board-memo/delete/")
    answer = client.post("/skills/mine/board-memo/edit/", typed)
    assert answer.status_code == 410
    html = answer.content.decode()
    assert "A long text." in html
    address = re.search(r'class="skill-edit" method="post" action="([^"]+)"', html)[1]  # type: ignore[index]
    assert client.post(address, typed)["Location"] == "/skills/mine/board-memo/"
    assert signed_in(bob).post("/skills/mine/board-memo/edit/", typed).status_code == 404


def test_a_name_keeps_no_characters_that_hide_or_turn_it(client: Client, alice: Any) -> None:
    form = {"name": "Memo \u202etxt\x00", "description": "x", "body": "y"}
    assert client.post("/skills/new/", form)["Location"] == "/skills/mine/memo-txt/"
    assert rows(alice).find("memo-txt").active.name == "Memo txt"
    assert client.post("/skills/new/", {**form, "name": "\u200b\u202e"}).status_code == 422


@pytest.mark.parametrize("act", ["edit", "switch", "delete", "share", "copy", "restore/1"])
def test_a_name_that_no_skill_can_have_is_not_there(staff: Client, act: str) -> None:
    form = {"name": "x", "description": "x", "body": "y", "version": 1}
    for scope in SkillScope:
        assert staff.post(f"/skills/{scope}/%00/{act}/", form).status_code == 404


def test_a_bundled_skill_becomes_ones_own_to_be_changed(client: Client, alice: Any) -> None:
    name = next(one.name for one in bundledskills.bundled() if isinstance(one, Usable))
    response = client.post(f"/skills/bundled/{name}/copy/")
    assert response["Location"] == f"/skills/mine/{name}/edit/"
    assert visible(alice.pk)[name].summary.scope is SkillScope.MINE
    assert len(rows(alice).find(name).active.files) == len(bundledskills.files(name))
    for act in ("edit", "delete", "share"):
        assert client.post(f"/skills/bundled/{name}/{act}/").status_code == 404


# Import


def test_a_skill_for_everyone_becomes_ones_own_with_its_name_and_the_deepest_file(
    client: Client, staff: Client, alice: Any, charlie: Any
) -> None:
    deepest = "d/" * 15 + "x.md"
    upload(staff, ("a.zip", zip_of(("SKILL.md", skill("house-style")), (deepest, "x"))), everyone="1")
    SkillLibraryRows(None).edit("house-style", "House style 标题", "What it is for.", "1. Ask.", parent=1)
    assert client.post("/skills/everyone/house-style/copy/").status_code == 302
    mine = rows(alice).find("house-style").active
    assert (mine.name, [file["path"] for file in mine.files]) == ("House style 标题", ["SKILL.md", deepest])
    exported = client.get("/skills/mine/house-style/export/").content
    assert upload(signed_in(charlie), ("house-style.zip", exported)).status_code == 200
    assert rows(charlie).find("house-style").active.digest == mine.digest


def test_an_archive_a_file_and_a_folder_are_imported(client: Client, alice: Any) -> None:
    assert "board-memo" in upload(client, ("m.tar.gz", tar_of(("SKILL.md", skill()), packed=True))).content.decode()
    upload(client, ("SKILL.md", skill("single")))
    upload(client, ("f/SKILL.md", skill("folder")), ("f/docs/a.md", "x"), paths=True)
    assert set(listed(page(client))) == {"board-memo", "single", "folder"}
    assert "docs/a.md" in page(client, "/skills/mine/folder/")
    again = words(upload(client, ("SKILL.md", skill("single"))).content.decode())
    assert "This was here already." in again
    several = zip_of(("a/SKILL.md", skill("a")), ("b/SKILL.md", "broken"), ("README.md", "x"))
    said = words(upload(client, ("all.zip", several)).content.decode())
    assert "2 skills found" in said
    assert "Cannot be used" in said
    assert "1 file belongs to no skill and was left out README.md" in said


def test_a_refused_import_says_why_and_that_nothing_was_taken(client: Client, alice: Any) -> None:
    response = upload(client, ("m.zip", zip_of(("SKILL.md", skill()), ("../x", "x"))))
    assert response.status_code == 422
    assert "It holds a path that is not allowed: “../x”. Nothing was imported." in words(response.content.decode())
    assert not Skill.objects.of(alice.pk).exists()
    assert "There is nothing in it." in client.post("/skills/import/").content.decode()


def test_an_upload_is_stopped_where_it_grows_too_large(
    client: Client, alice: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skillupload, "FILE_BYTES", MIB)
    response = upload(client, ("m.zip", bytes(2 * MIB)))
    assert response.status_code == 413
    monkeypatch.setattr(skillupload, "FILE_BYTES", 64 * MIB)
    monkeypatch.setattr(skillupload, "UNPACKED_BYTES", MIB)
    response = upload(client, *((f"f/{n}", bytes(MIB // 2)) for n in range(3)), paths=True)
    assert response.status_code == 413
    assert "It is too large" in response.content.decode()
    many = upload(client, *((f"f/{n}", b"x") for n in range(1_001)), paths=True)
    assert (many.status_code, "at most 1,000 files and 300 skills" in many.content.decode()) == (413, True)
    assert not Skill.objects.of(alice.pk).exists()


def test_an_import_without_the_forms_secret_is_refused(alice: Any) -> None:
    client = signed_in(alice, enforce_csrf_checks=True)
    assert upload(client, ("SKILL.md", skill())).status_code == 403
    assert not Skill.objects.of(alice.pk).exists()


# Suggestions


def test_a_suggestion_shows_what_changes_and_where_it_was_learned(client: Client, alice: Any) -> None:
    made(alice)
    run(conversation(alice, "t-1", title="Memo"), "r-1")
    proposed(alice, reason="You moved the decision <up>.", thread_id="t-1")
    html = page(client)
    assert "1 skill suggested" in html
    assert "You moved the decision &lt;up&gt;." in html
    assert '<a class="link" href="/c/t-1/">learned from a run</a>' in html
    assert "Version 1 → 2" in html
    assert re.search(r"<del>1. Ask</del><ins>2. Decide</ins>|<del>1</del><ins>2</ins>", html)
    assert "Accept as version 2" in html
    elsewhere = client.get("/memories/").content.decode()
    assert '<span class="badge" data-state="accent">1<span class="sr-only"> suggested</span></span>' in elsewhere


def test_an_accepted_suggestion_is_in_the_next_run_and_a_second_decision_is_refused(client: Client, alice: Any) -> None:
    one = proposed(alice)
    assert listed(page(client)) == {}
    assert client.post(f"/skills/suggested/{one.pk}/accept/").status_code == 302
    assert "board-memo" in visible(alice.pk)
    assert client.post(f"/skills/suggested/{one.pk}/reject/").status_code == 409
    assert "suggested</h2>" not in page(client)


def test_a_rejected_and_a_stale_suggestion_change_nothing(client: Client, alice: Any) -> None:
    made(alice)
    one, two, three = proposed(alice, "A."), proposed(alice, "B."), proposed(alice, "C.")
    assert client.post(f"/skills/suggested/{one.pk}/reject/").status_code == 200
    assert client.post(f"/skills/suggested/{two.pk}/accept/").status_code == 302
    html = page(client)
    assert "The skill was changed since this was suggested." in html
    assert "Accept as version" not in html
    assert 'name="version" value="3"' in page(client, "/skills/mine/board-memo/edit/", proposal=three.pk)
    response = client.post(f"/skills/suggested/{three.pk}/accept/")
    assert response.status_code == 409
    assert "was changed since this was suggested" in response.content.decode()
    assert rows(alice).find("board-memo").active.body == "B."


def test_a_suggestion_is_edited_before_it_is_accepted(client: Client, alice: Any) -> None:
    new = proposed(alice)
    form = page(client, "/skills/mine/board-memo/edit/", proposal=new.pk)
    assert ">\n2. Decide.</textarea>" in form
    typed = {"name": "Board memo", "description": "Better.", "body": "3. Mine.", "proposal": new.pk}
    assert client.post("/skills/mine/board-memo/edit/", typed).status_code == 302
    active = rows(alice).find("board-memo").active
    assert (active.body, active.source) == ("3. Mine.", "person")
    new.refresh_from_db()
    assert (new.status, new.comment) == (Status.REJECTED, "version 2 was made of it")
    update = proposed(alice, "4. Next.")
    typed = {**typed, "body": "4. Next, mine.", "proposal": update.pk}
    assert client.post("/skills/mine/board-memo/edit/", typed).status_code == 302
    assert rows(alice).find("board-memo").active.body == "4. Next, mine."


def test_a_suggestion_to_delete_is_said_to_be_one(client: Client, alice: Any) -> None:
    made(alice)
    one = SkillLibraryRows(alice.pk).submit("board-memo", None, Proposal())
    html = page(client)
    assert "Delete a skill" in html
    assert "Delete it" in html
    assert client.post(f"/skills/suggested/{one.pk}/accept/").status_code == 200
    assert "board-memo" not in visible(alice.pk)
    assert listed(page(client)) == {"board-memo": "gone"}
    client.post("/skills/mine/board-memo/restore/1/")
    assert listed(page(client)) == {"board-memo": "on"}


# Everyone's


def test_a_persons_proposal_to_everyone_goes_to_staff(client: Client, staff: Client, alice: Any, bob: Any) -> None:
    made(alice)
    assert client.post("/skills/mine/board-memo/share/").status_code == 302
    assert "Proposed for everyone" in page(client, "/skills/mine/board-memo/")
    other = signed_in(bob)
    assert listed(page(other)) == {}
    assert other.get("/skills/everyone/board-memo/").status_code == 404
    assert "1 skill is proposed for everyone and waits for staff." in page(staff)
    assert "proposed for everyone and" not in page(client)


def test_staff_publish_for_everyone_and_others_may_not(client: Client, staff: Client, alice: Any, bob: Any) -> None:
    form = {"name": "House style", "description": "x", "body": "y", "everyone": "1"}
    assert client.post("/skills/new/", form)["Location"] == "/skills/mine/house-style/"
    assert staff.post("/skills/new/", form)["Location"] == "/skills/everyone/house-style/"
    assert visible(bob.pk)["house-style"].summary.scope is SkillScope.EVERYONE
    upload(client, ("SKILL.md", skill("one")), everyone="1")
    upload(staff, ("SKILL.md", skill("two")), everyone="1")
    upload(staff, ("SKILL.md", "---\nname: broken\n---\nx"), everyone="1")
    assert set(Skill.objects.in_scope(None).values_list("slug", flat=True)) == {"house-style", "two", "broken"}
    assert listed(page(staff, scope="everyone")) == {"broken": "broken", "house-style": "on", "two": "on"}
    assert listed(page(client, scope="everyone")) == {"house-style": "on", "two": "on"}
    for act in ("edit", "delete", "bar", "restore/1"):
        assert client.post(f"/skills/everyone/two/{act}/", {"version": 1, **form}).status_code == 404
    assert staff.post("/skills/everyone/two/bar/").status_code == 302
    assert listed(page(client, scope="everyone")) == {"house-style": "on", "two": "barred"}
    html = staff.post("/skills/everyone/house-style/delete/").content.decode()
    assert "house-style" not in visible(bob.pk)
    key = re.search(r'name="key" value="([^"]+)"', html)[1]  # type: ignore[index]
    assert staff.post("/skills/restore/", {"key": key, "scope": "everyone"}).status_code == 302
    assert "house-style" in visible(bob.pk)


def test_delete_and_undo_for_everyone_done_twice_are_done_once(staff: Client, bob: Any) -> None:
    staff.post("/skills/new/", {"name": "House style", "description": "x", "body": "y", "everyone": "1"})
    html = staff.post("/skills/everyone/house-style/delete/").content.decode()
    undo = {"key": re.search(r'name="key" value="([^"]+)"', html)[1], "scope": "everyone"}  # type: ignore[index]
    assert staff.post("/skills/everyone/house-style/delete/").status_code == 404
    for _ in range(2):
        assert staff.post("/skills/restore/", undo).status_code == 302
        assert "house-style" in visible(bob.pk)


def test_the_way_to_what_waits_for_staff_is_shown_to_those_who_may_go_it(client: Client, charlie: Any) -> None:
    skilllibrary.share(made(charlie).skill, by=charlie.pk, staff=False)
    address = "/admin/agents/skillrevision/?status__exact=pending_approval"
    charlie.is_staff = True
    for charlie.is_superuser in (False, True):
        charlie.save()
        html = page(signed_in(charlie))
        assert "waits for staff" in html
        assert (address in html) is charlie.is_superuser


def test_nobody_reaches_anothers_skill_or_suggestion(alice: Any, bob: Any) -> None:
    made(alice, "Secret plan", body="canary-text")
    one = proposed(alice, "canary-text", "Other secret")
    stranger = signed_in(bob)
    form = {"name": "x", "description": "x", "body": "x", "version": 1, "proposal": one.pk}
    for act in ("", "edit/", "export/", "file/?path=SKILL.md"):
        assert stranger.get(f"/skills/mine/secret-plan/{act}").status_code == 404, act
    for act in ("edit", "switch", "delete", "share", "restore/1"):
        assert stranger.post(f"/skills/mine/secret-plan/{act}/", form).status_code == 404, act
    for verdict in ("accept", "reject"):
        assert stranger.post(f"/skills/suggested/{one.pk}/{verdict}/").status_code == 404
    assert stranger.get(f"/skills/mine/other-secret/edit/?proposal={one.pk}").status_code == 404
    html = page(stranger)
    assert "ecret" not in html
    assert rows(alice).find("secret-plan").active.body == "canary-text"


def test_everything_asks_for_a_sign_in(alice: Any) -> None:
    made(alice)
    for address in ("/skills/", "/skills/new/", "/skills/import/", "/skills/mine/board-memo/"):
        assert Client().get(address).status_code == 302
    for address in ("/skills/import/", "/skills/mine/board-memo/delete/", "/skills/suggested/1/accept/"):
        assert Client().post(address).status_code == 302
    assert rows(alice).find("board-memo")


# The admin


def test_staff_who_may_decide_see_the_change_approve_and_go_back(alice: Any) -> None:
    from tests.conftest import make_user

    root = make_user("root", is_staff=True, is_superuser=True)
    admin = signed_in(root)
    bring(root, everyone=True)
    bring(alice, ("SKILL.md", skill(body="2. Decide.")))
    waiting = skilllibrary.share(Skill.objects.of(alice.pk).get(owner=alice), by=alice.pk, staff=False)
    assert "board-memo" in page(admin, "/admin/agents/skillrevision/", status__exact="pending_approval")
    address = f"/admin/agents/skillrevision/{waiting.pk}/"
    html = page(admin, f"{address}change/")
    assert "<del>1. Ask</del><ins>2. Decide</ins>" in html or "<ins>2</ins>" in html
    admin.post(f"{address}approve/", {"comment": "good"})
    waiting.refresh_from_db()
    assert (waiting.status, waiting.decided_by_id, waiting.comment) == (Status.ACTIVE, root.pk, "good")
    assert "skill_decided" in words(admin.post(f"{address}reject/", follow=True).content.decode())
    first = SkillRevision.objects.in_scope(None).get(number=1)
    admin.post(f"/admin/agents/skillrevision/{first.pk}/rollback/")
    assert Skill.objects.in_scope(None).get().active_id == first.pk
    deeds = re.findall(r'class="field-verb">(\w+)<', page(admin, "/admin/agents/skillaudit/"))
    assert {"Submit", "Hold", "Approve", "Promote", "Archive", "Rollback"} <= set(deeds)


def test_staff_without_the_permission_decide_nothing_and_see_no_persons_own(
    alice: Any, charlie: Any, staff: Client
) -> None:
    from django.contrib.auth.models import Permission

    made(alice, "Secret plan")
    own = proposed(alice)
    made_public = skilllibrary.share(Skill.objects.of(alice.pk).get(slug="secret-plan"), by=alice.pk, staff=False)
    assert staff.get("/admin/agents/skillrevision/").status_code == 403
    charlie.user_permissions.add(*Permission.objects.filter(codename__startswith="view_skill"))
    html = page(staff, "/admin/agents/skillrevision/")
    assert html.count("/change/") == 1
    staff.post(f"/admin/agents/skillrevision/{made_public.pk}/approve/")
    staff.post(f"/admin/agents/skillrevision/{own.pk}/approve/")
    assert staff.get(f"/admin/agents/skillrevision/{own.pk}/change/").status_code == 302  # unknown to the admin
    for row in (own, made_public):
        row.refresh_from_db()
        assert row.status == Status.PENDING_APPROVAL
    assert not SkillAudit.objects.of_everyone().filter(verb="approve").exists()


def test_the_pages_speak_chinese(client: Client, alice: Any) -> None:
    made(alice, "董事会")
    proposed(alice, name="董事会")
    client.cookies["django_language"] = "zh-hans"
    said = words(page(client).split('id="scroller"')[1])
    for chinese in ("1 个技能建议", "修改技能", "接受为版本 2", "全部技能", "版本 1", "尚未使用"):
        assert chinese in said
    for english in ("Skill", "suggest", "Version", "Accept", "Reject", "Search", "All", "used"):
        assert english not in said.split("自带")[0], english

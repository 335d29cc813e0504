"""The admin: every table is there, nobody edits what the stores wrote, and bodies need their own permission."""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.utils import label_for_field
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.translation import override

from agents.models.agent_policy import AgentPolicy
from agents.models.event import Event
from agents.models.job import Job
from agents.models.memory import Memory, MemoryChange, MemoryCursor, MemorySetting, MemoryTombstone
from agents.models.model_call import ModelCall
from agents.models.review import Experiment, Feedback, Review, ReviewCursor, Suggestion
from agents.models.run import Inbox, Run
from agents.models.search_entry import Embedding, Kind, SearchEntry, Text, add
from agents.models.session import Fork, Session, State
from agents.models.skill import Skill, SkillAudit, SkillLibrary, SkillRevision, SkillSwitch, SkillUse
from agents.models.summary import Summary
from agents.models.summary_draft import SummaryDraft
from agents.models.token_rate import TokenRate
from agents.policyform import NAMES, WORDS, PolicyForm
from agents.runtime.policy import ANALYST, ASSISTANT, ContextPolicy
from agents.stores import policies
from artifacts.models import Artifact, Collection, Passage, Version
from workbench.models import ApiToken, SignInLink

AT = datetime(2026, 3, 1, tzinfo=UTC)
OURS = [m for app in ("agents", "artifacts", "workbench") for m in apps.get_app_config(app).get_models()]
WRITTEN_BY_STORES = [m for m in OURS if m not in (ApiToken, SignInLink, Job, AgentPolicy)]
SECRET = "what alice wrote"


@pytest.fixture(autouse=True)
def static_root(settings: Any, tmp_path: Path) -> None:
    """WhiteNoise warns when its directory is missing, and warnings are errors."""
    settings.STATIC_ROOT = tmp_path


def person(name: str, **more: Any) -> Any:
    return get_user_model().objects.create_user(name, **more)


@pytest.fixture
def root(db: None) -> Client:
    return signed_in(person("root", is_staff=True, is_superuser=True))


def signed_in(user: Any) -> Client:
    client = Client()
    client.force_login(user)
    return client


def rows(owner: Any, n: int) -> None:
    """Make one row in every table."""
    session = Session.all_owners.create(owner=owner, thread_id=f"t{n}", agent="a", title=SECRET, state={"k": SECRET})
    Fork.objects.create(session=session, number=0)
    State.objects.create(scope="user", owner=owner, key=f"k{n}", value=SECRET)
    run = Run.all_owners.create(
        owner=owner, session=session, client_id="r", agent="a", lease_expires_at=AT, started_at=AT
    )
    Inbox.all_owners.create(owner=owner, session=session, client_id="c", kind="queue", payload={"text": SECRET})
    Event.all_owners.create(
        owner=owner, session=session, position=1, run=run, event_id="e", type="user_message", invocation_id="i",
        author="user", payload={"text": SECRET}, at=AT,
    )  # fmt: skip
    ModelCall.all_owners.create(
        owner=owner, session=session, run=run, call_id=f"c{n}", provider="p", model="m", started_at=AT
    )
    first = Summary.all_owners.create(
        owner=owner, session=session, summary_id=f"s{n}", fork=0, position=1, event_id="e", at=AT, read_from=1,
        text=SECRET, source="background", created_at=AT,
    )  # fmt: skip
    Summary.all_owners.filter(pk=first.pk).update(base=first)
    SummaryDraft.all_owners.create(
        owner=owner, session=session, read_chars=1, read_sha256="0", text=SECRET, updated_at=AT
    )
    TokenRate.objects.create(provider="p", model=f"m{n}", values={}, updated_at=AT)
    AgentPolicy.objects.create(agent=f"agent{n}", values={"summary_words": 100})
    Job.objects.create(kind="title", owner=owner, session=session, next_at=AT, created_at=AT, error_message=SECRET)
    artifact = Artifact.all_owners.create(owner=owner, session=session, public_id=uuid4(), name=f"{n}.txt")
    version = Version.all_owners.create(
        owner=owner, artifact=artifact, number=1, blob="b", mime="text/plain", size_bytes=1, sha256="0", origin="upload"
    )
    Collection.all_owners.create(owner=owner, public_id=uuid4(), name="c")
    passage = Passage.all_owners.create(owner=owner, version=version, number=0, start=0, end=9, text=SECRET)
    add(owner.pk, Kind.PASSAGE, artifact.pk, [Text(ref=passage.pk, position=0, text=SECRET, created=AT)])
    entry = SearchEntry.all_owners.get(owner=owner, ref=passage.pk)
    Embedding.all_owners.create(
        owner=owner, entry=entry, kind=Kind.PASSAGE, group_id=artifact.pk, model=1, vector=[1.0]
    )
    memory_rows(owner, session, n)
    skill_rows(owner, session, n)
    review_rows(owner, session)
    ApiToken.all_owners.create(owner=owner, name="n", digest=f"digest{n}", prefix="wb_1")
    SignInLink.all_owners.create(owner=owner, digest=f"link{n}", expires_at=AT + timedelta(minutes=15))


def memory_rows(owner: Any, session: Session, n: int) -> None:
    older = Memory.all_owners.create(
        owner=owner, memory_id=f"m{n}", text=SECRET, kind="fact", source="person", content_hash="0",
        created_at=AT, updated_at=AT,
    )  # fmt: skip
    Memory.all_owners.filter(pk=older.pk).update(superseded_by=older)
    MemoryTombstone.all_owners.create(owner=owner, memory_id="x", hash="0", at=AT, by="person")
    MemoryChange.all_owners.create(
        owner=owner, session=session, run="r", proposed="add", verb="add", reason="new", memory_id=f"m{n}",
        before={"text": SECRET}, source="extractor", at=AT,
    )  # fmt: skip
    MemoryCursor.all_owners.create(owner=owner, session=session)
    MemorySetting.all_owners.create(owner=owner)


def skill_rows(owner: Any, session: Session, n: int) -> None:
    SkillLibrary.all_owners.create(owner=owner)
    skill = Skill.all_owners.create(key=uuid4(), slug=f"s{n}", created_at=AT)
    revision = SkillRevision.all_owners.create(
        skill=skill, number=1, name="s", digest="0", status="active", action="create", source="import",
        proposed_by=owner, created_at=AT,
    )  # fmt: skip
    Skill.all_owners.filter(pk=skill.pk).update(active=revision)
    SkillAudit.all_owners.create(key=skill.key, slug=skill.slug, verb="promote", actor=owner, at=AT)
    SkillSwitch.all_owners.create(owner=owner, scope="everyone", slug=skill.slug)
    SkillUse.all_owners.create(
        owner=owner, session=session, run_id="r", scope="everyone", slug=skill.slug, revision=revision, at=AT
    )


def review_rows(owner: Any, session: Session) -> None:
    ReviewCursor.all_owners.create(owner=owner, session=session)
    review = Review.all_owners.create(
        owner=owner, session=session, run="r", since=0, up_to=1, result="proposed", came=[SECRET], words=SECRET, at=AT
    )
    revision = SkillRevision.all_owners.filter(proposed_by=owner).get()
    Suggestion.all_owners.create(owner=owner, review=review, revision=revision)
    Feedback.all_owners.create(owner=owner, session=session, run="r", thumb="down", note=SECRET, at=AT)
    Experiment.all_owners.create(owner=owner, slug="s", record={"k": SECRET}, started_at=AT, ended_at=AT)


def url(model: Any, page: str, *args: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


def test_every_table_is_in_the_admin() -> None:
    assert [m.__name__ for m in OURS if m not in admin.site._registry] == []


@pytest.mark.parametrize("model", OURS, ids=lambda m: m.__name__)
def test_tables_and_fields_have_names_in_chinese(model: Any) -> None:
    """A new table or field gets its name in workbench/adminnames.py."""
    with override("zh-hans"):
        names = {f.name: str(f.verbose_name) for f in model._meta.fields}
        names |= {"": str(model._meta.verbose_name), "plural": str(model._meta.verbose_name_plural)}
        if (shown := admin.site._registry.get(model)) is not None:
            names |= {str(c): str(label_for_field(c, model, shown)) for c in shown.list_display}
    foreign = [key for key, name in names.items() if not re.search("[\u4e00-\u9fff]", name) and name != "ID"]
    assert foreign == []


def test_staff_reads_the_admin_in_chinese(root: Client) -> None:
    page = root.get(url(Run, "changelist"), headers={"accept-language": "zh-hans"}).content.decode()
    assert "运行" in page and "对话与运行" in page
    assert "Lease" not in page and "lease_expires_at" not in page


@pytest.mark.parametrize("model", OURS, ids=lambda m: m.__name__)
def test_lists_take_as_many_queries_for_ten_rows_as_for_two(root: Client, model: Any) -> None:
    counts = []
    for numbers in (range(2), range(2, 10)):
        for n in numbers:
            rows(person(f"person{n}"), n)
        with CaptureQueriesContext(connection) as queries:
            assert root.get(url(model, "changelist")).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]


@pytest.mark.parametrize("model", OURS, ids=lambda m: m.__name__)
def test_a_row_can_be_looked_at(root: Client, model: Any) -> None:
    rows(person("alice"), 1)
    assert root.get(url(model, "change", model._default_manager.get().pk)).status_code == 200


@pytest.mark.parametrize("model", WRITTEN_BY_STORES, ids=lambda m: m.__name__)
def test_what_the_stores_wrote_is_not_added_changed_or_deleted_here(root: Client, model: Any) -> None:
    rows(person("alice"), 1)
    pk = model._default_manager.get().pk
    assert root.get(url(model, "add")).status_code == 403
    assert root.post(url(model, "change", pk), {}).status_code == 403
    assert root.post(url(model, "delete", pk), {"post": "yes"}).status_code == 403
    assert model._default_manager.filter(pk=pk).exists()


@pytest.mark.parametrize("may_read", [False, True])
@pytest.mark.parametrize(
    "model", [Session, State, Inbox, Event, Job, Summary, Memory, MemoryChange], ids=lambda m: m.__name__
)
def test_bodies_need_the_permission_to_read_them(db: None, model: Any, may_read: bool) -> None:
    rows(person("alice"), 1)
    staff = person("staff", is_staff=True)
    names = [f"view_{model._meta.model_name}", *(["read_event_bodies"] if may_read else [])]
    staff.user_permissions.add(*Permission.objects.filter(content_type__app_label="agents", codename__in=names))
    client = signed_in(staff)
    page = client.get(url(model, "change", model._default_manager.get().pk))
    assert page.status_code == 200
    assert (SECRET in page.content.decode()) is may_read
    assert SECRET not in client.get(url(model, "changelist")).content.decode()


def test_no_digest_is_shown_and_a_key_can_be_revoked(root: Client) -> None:
    rows(person("alice"), 1)
    token = ApiToken.all_owners.get()
    assert "digest1" not in root.get(url(ApiToken, "change", token.pk)).content.decode()
    root.post(url(ApiToken, "changelist"), {"action": "revoke", "_selected_action": [token.pk]})
    token.refresh_from_db()
    assert token.revoked_at is not None


def test_who_is_not_staff_sees_no_admin(db: None) -> None:
    assert signed_in(person("alice")).get(reverse("admin:index")).status_code == 302


# Context policies


@pytest.fixture(autouse=True)
def nothing_learnt() -> Iterator[None]:
    yield
    policies.learn({})


def typed(**values: str) -> dict[str, str]:
    return {"agent": "assistant", **values}


def test_staff_change_a_policy_value_by_value_and_what_is_empty_stays_the_agents_own(root: Client) -> None:
    page = root.get(url(AgentPolicy, "add")).content.decode()
    assert "Share of the window" in page
    given = typed(
        summary_words="120", summary_ratio="off", compact_keep="a, b", allow="-", cascade="true", margin="0.2"
    )
    assert root.post(url(AgentPolicy, "add"), given).status_code == 302
    row = AgentPolicy.objects.get()
    assert row.values == {
        "summary_words": 120, "summary_ratio": None, "compact_keep": ["a", "b"], "allow": [], "cascade": True,
        "margin": 0.2,
    }  # fmt: skip
    policies.read()
    made = policies.of("assistant")
    assert made == replace(
        ASSISTANT, summary_words=120, summary_ratio=None, compact_keep=("a", "b"), allow=(), cascade=True, margin=0.2
    )
    # what is shown can be sent as it is, and a value that is taken out is the agent's own again
    form = PolicyForm(instance=row)
    back = {name: form.initial[name] for name in row.values}
    assert root.post(url(AgentPolicy, "change", row.pk), typed(**back)).status_code == 302
    row.refresh_from_db()
    assert ContextPolicy.of(row.values, ASSISTANT) == made
    del back["summary_words"]
    root.post(url(AgentPolicy, "change", row.pk), typed(**back))
    row.refresh_from_db()
    assert "summary_words" not in row.values


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("summary_ratio", "1.5", "A number from 0.01 to 1, please."),
        ("summary_words", "-1", "A whole number from 0 to 20000, please."),
        ("summary_words", "2.5", "A whole number from 0 to 20000, please."),
        ("keep_rounds", "two", "A whole number from 0 to 1000, please."),
        ("margin", "nan", "A number from 0 to 0.9, please."),
        ("margin", "off", "A number from 0 to 0.9, please."),
        ("template", "poem", "poem"),
    ],
)
def test_what_a_policy_refuses_is_not_saved_and_said_at_its_field(
    root: Client, field: str, text: str, words: str
) -> None:
    answer = root.post(url(AgentPolicy, "add"), typed(**{field: text}))
    assert answer.status_code == 200
    errors = answer.context["adminform"].form.errors
    assert list(errors) == [field]
    assert words in str(errors[field])
    assert not AgentPolicy.objects.exists()


def test_a_policy_of_an_agent_that_is_not_there_is_kept_and_said_to_wait(root: Client) -> None:
    add_url = reverse("admin:agents_agentpolicy_add")
    assert "Name of the agent: assistant." in root.get(add_url).content.decode()
    told = "No agent here has the name asistant"
    assert told in root.post(add_url, {"agent": "asistant", "summary_words": "9"}, follow=True).content.decode()
    assert told not in root.post(add_url, {"agent": "assistant", "summary_words": "9"}, follow=True).content.decode()
    assert AgentPolicy.objects.count() == 2


def test_every_value_of_a_policy_has_its_words_and_in_chinese(root: Client) -> None:
    assert set(WORDS) == set(NAMES)
    AgentPolicy.objects.create(agent="assistant")
    page = root.get(url(AgentPolicy, "add"), headers={"accept-language": "zh-hans"}).content.decode()
    assert "窗口占比" in page and "自带值" in page and "Summarise" not in page


def test_a_policy_that_cannot_be_does_not_break_a_run(caplog: pytest.LogCaptureFixture) -> None:
    policies.learn({"assistant": {"summary_words": "many"}, "analyst": {"no such value": 1}, "other": [1]})  # type: ignore[dict-item]  # as a row may hold
    try:
        assert [policies.of(name) for name in ("assistant", "assistant", "analyst", "other")] == [
            ASSISTANT, ASSISTANT, ANALYST, ContextPolicy(),
        ]  # fmt: skip
        assert len(caplog.records) == 3
    finally:
        policies.learn({})

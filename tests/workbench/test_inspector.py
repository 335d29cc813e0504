"""The inspector: requests made again from what is stored, and who may see them. Real runs, a real model server."""

import asyncio
import base64
import html as escapes
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone

from agents import jobs, wiring
from agents.background import work
from agents.live import registry
from agents.live.registry import Live
from agents.models.agent_policy import AgentPolicy
from agents.models.event import Event
from agents.models.job import Job
from agents.models.model_call import ModelCall
from agents.models.run import Run
from agents.models.session import Session
from agents.models.summary import Summary
from agents.runtime.context.assemble import Assembled, Frame, View, assemble
from agents.runtime.context.digests import request_sha256
from agents.runtime.context.injection import Block
from agents.runtime.context.words import FINISH
from agents.runtime.events import Preloaded, ToolReturned
from agents.runtime.model import ToolCall
from agents.runtime.session import RunStatus
from agents.stores import modelcalls, policies, sessions
from artifacts import library
from artifacts.models import Artifact
from tests.agents.counting import counted
from tests.modelserver import ModelServer, Reply, Steady, call, error, finish, text, usage
from tests.workbench.conversations import answered, asked, conversation, ended, failed
from tests.workbench.conversations import run as stored_run
from tests.workbench.door import Door, door, question, token_of
from tests.workbench.test_views_context import summarised as summary_row
from workbench.inspector import rows as inspectedrows

pytestmark = pytest.mark.django_db(transaction=True)

CHINESE = {"HTTP_ACCEPT_LANGUAGE": "zh-hans"}
LONG = "We decided to keep the second chamber at four degrees. The survey counts 120 crates and 9 % loss a year. "
LONG_ZH = "我们决定把第二冷库保持在四度。调查显示共有120箱，每年损失百分之九，预算为三万元，期限到六月底。"
PAGE = "/sessions/t/inspector/"


@pytest.fixture
def server(settings: Any, tmp_path: Path) -> Iterator[ModelServer]:
    backend = "django.core.files.storage.FileSystemStorage"
    options = {"location": str(tmp_path / "files")}
    settings.STORAGES = {**settings.STORAGES, "artifacts": {"BACKEND": backend, "OPTIONS": options}}
    with ModelServer(steady=Steady(tokens=4)) as server:
        settings.OPENAI_BASE_URL = server.base_url
        settings.OPENAI_MODEL = "test"
        yield server
    policies.learn({})


def said(words: str, **counts: int) -> Reply:
    return Reply(steps=(*text(words), *finish(counts=usage(**{"prompt": 900, "completion": 20, **counts}))))


def calling(*names: str) -> Reply:
    calls = [call("{}", index=n, id=f"c-{n}-{name}", name=name) for n, name in enumerate(names)]
    return Reply(steps=(*calls, *finish("tool_calls")))


@asynccontextmanager
async def talk(owner: Any) -> AsyncIterator[Door]:
    """An installation as it is wired, and a socket of the owner."""
    token = await token_of(owner)
    live = registry.install(Live(wiring.build()))
    try:
        async with door(token=token) as socket:
            yield socket
    finally:
        await live.close()
        await wiring.close_clients()


def fetch(owner: Any, address: str = PAGE, **how: Any) -> Any:
    client = Client()
    client.force_login(owner)
    return client.get(address, **how)


async def page(owner: Any, address: str = PAGE, **how: Any) -> str:
    response = await sync_to_async(fetch)(owner, address, **how)
    assert response.status_code == 200
    return str(response.content.decode())


def checked(html: str) -> str:
    (found,) = re.findall(r'data-check="(\w+)"', html)
    return str(found)


def tags(html: str) -> list[str]:
    """The tags of the parts, in the order in which they stand."""
    return re.findall(r'<details class="part" data-part="(\w+)"', html)


def texts(html: str) -> list[str]:
    return [escapes.unescape(found) for found in re.findall(r'<div class="part-text"[^>]*>(.*?)</div>', html, re.S)]


async def rows(model: Any, owner: Any, **wanted: Any) -> list[Any]:
    return await sync_to_async(lambda: list(model.objects.of(owner.pk).filter(**wanted).order_by("id")))()


async def every_call_agrees(owner: Any) -> list[str]:
    """Look at each call for an answer; return the tags of its parts."""
    calls = await rows(ModelCall, owner, purpose="chat")
    found = []
    for one in calls:
        html = await page(owner, f"{PAGE}?call={one.call_id}")
        assert checked(html) == "same", html[html.index("data-check") :][:600]
        found.append(" ".join(tags(html)))
    return found


async def test_plain_question_is_made_again_byte_for_byte(alice: Any, server: ModelServer) -> None:
    server.script(said("Four degrees.", cached=600))
    async with talk(alice) as socket:
        await socket.run(question("How cold is it?"))
    assert await every_call_agrees(alice) == ["system tools skills history"]
    html = await page(alice)
    sent = server.chats[0].body["messages"]
    assert texts(html)[-1] == sent[-1]["content"] == "How cold is it?"
    assert sent[0]["content"].startswith(texts(html)[0].removesuffix("…"))
    instruction, _, skills, *_ = [texts(await page(alice, f"{PAGE}?part={n + 1}"))[n] for n in range(3)]
    assert f"{instruction}\n\n{skills}" == sent[0]["content"]
    assert "900 in, 20 out, 67\u00a0% cached" in html
    (message,) = await rows(Event, alice, type="user_message")
    assert f'href="/c/t/#h{message.position}"' in html


async def test_chinese_question_is_made_again_and_the_page_speaks_chinese(alice: Any, server: ModelServer) -> None:
    server.script(said("四度。"))
    async with talk(alice) as socket:
        await socket.run(question("冷库现在多少度？"))
    html = await page(alice, **CHINESE)
    assert checked(html) == "same"
    assert "冷库现在多少度？" in texts(html)
    texts_and_hash = r'<div class="part-text".*?</div>|<small dir="auto">.*?</small>|<span class="notice-ref".*?</span>'
    shown = re.sub(texts_and_hash, "", html, flags=re.S)
    words = re.sub(r"<[^>]+>|&[^;]+;", " ", shown[shown.index("<main") :])
    assert "模型看到的内容" in words and "时间线" in words
    assert set(re.findall(r"[A-Za-z]{4,}", words)) <= {"JSON", "test", "openai", "stop", "token", "Workbench"}


async def test_tools_alone_and_side_by_side_are_made_again_and_drawn(alice: Any, server: ModelServer) -> None:
    server.script(calling("list_documents"), calling("list_documents", "search_knowledge"), said("Nothing is there."))
    async with talk(alice) as socket:
        await socket.run(question("What do my documents say?"))
    found = await every_call_agrees(alice)
    assert found == [
        "system tools skills history",
        "system tools skills history history results",
        "system tools skills history history results history results results",
    ]
    html = await page(alice)
    assert html.count('class="wf-label"') >= 7  # the run, three calls, three tools
    assert html.count('class="wf-tool"') + html.count('class="wf-fail"') == 3
    changes = html[html.index('class="changes"') :]
    assert len(re.findall(r'data-op="add"', changes)) == 3
    assert "6 parts are the same" in changes
    last = server.chats[2].body["messages"]
    assert [m["role"] for m in last] == ["system", "user", "assistant", "tool", "assistant", "tool", "tool"]
    for message in last:
        if message["role"] == "tool":
            assert any(message["content"].startswith(part.rstrip("…")[:1_000]) for part in texts(html))


async def test_answer_that_is_gone_on_with_is_made_again(alice: Any, server: ModelServer) -> None:
    server.script(Reply(steps=(*text("It is"), *finish("length"))), said(" four degrees."))
    async with talk(alice) as socket:
        await socket.run(question("How cold?"))
        more = question("", run="r2")
        await socket.run({**more, "messages": [], "forwardedProps": {"workbench": {"action": "continue"}}})
    assert (await every_call_agrees(alice))[-1] == "system tools skills history history system"


async def policy(**values: Any) -> None:
    await sync_to_async(AgentPolicy.objects.create)(agent="assistant", values=values)


@pytest.mark.parametrize("words", [LONG, LONG_ZH])
async def test_shortened_results_are_placeholders_that_are_made_again(
    alice: Any, server: ModelServer, words: str
) -> None:
    await policy(compact_over=50, compact_step=0.0, compact_keep_requests=0, keep_rounds=0)
    kept = call(json.dumps({"name": "notes.md", "content": words * 20}), id="c1", name="save_artifact")
    read = call('{"name": "notes.md"}', id="c2", name="read_artifact")
    server.script(*(Reply(steps=(one, *finish("tool_calls"))) for one in (kept, read)), said("Read."), said("Again."))
    async with talk(alice) as socket:
        await socket.run(question("Keep this."))
        await socket.run(question("再说一次？"))
    found = await every_call_agrees(alice)
    assert "placeholder" not in " ".join(found[:3])
    assert "placeholder" in found[3].split()
    html = await page(alice)
    assert "A large result of an earlier request." in html
    assert re.search(r"\d tokens became \d", html)
    changes = html[html.index('class="changes"') :]
    assert "(before: results)" in changes
    assert "more removed lines" in changes or "<del>" in changes
    assert words.strip()[:40] in changes  # the text it had in the call before


async def test_rounds_that_are_left_out_are_shown_as_dropped(alice: Any, server: ModelServer) -> None:
    async with talk(alice) as socket:
        for n in range(4):
            server.script(said(LONG * 30))
            await socket.run(question(f"{n}: {LONG}"))
        sent = (await rows(ModelCall, alice))[-1]
        room = sum(part["tokens"] for part in sent.parts) // 2
        await policy(summarise=False, max_input_tokens=room)
        server.script(said("Four."))
        await socket.run(question("And now?"))
    assert "dropped" in (await every_call_agrees(alice))[-1]
    html = await page(alice)
    assert "Left out, so that the rest fits the model&#x27;s window." in html
    assert html.index('class="parts-sum"') < html.index('data-part="dropped" id="part-')


async def test_file_that_is_deleted_since_is_told_and_changes_nothing(alice: Any, server: ModelServer) -> None:
    data = base64.b64encode("库存 120 箱。Stock.".encode()).decode()
    message = question()
    message["messages"][0]["content"] = [
        {"type": "text", "text": "What does it say?"},
        {"type": "document", "source": {"type": "data", "value": data, "mimeType": "text/plain"},
         "metadata": {"filename": "stock.txt"}},
    ]  # fmt: skip
    server.script(said("120."))
    async with talk(alice) as socket:
        await socket.run(message)
    assert await every_call_agrees(alice) == ["system tools skills history"]
    html = await page(alice)
    assert "stock.txt" in html and "was deleted since" not in html
    (artifact,) = await sync_to_async(lambda: list(Artifact.objects.of(alice.pk)))()
    await sync_to_async(library.delete)(alice.pk, [str(artifact.public_id)])
    html = await page(alice)
    assert "“stock.txt” was deleted since." in html
    assert checked(html) == "same"


async def test_what_the_person_had_open_is_a_part(alice: Any, server: ModelServer) -> None:
    server.script(said("It is a price list."))
    async with talk(alice) as socket:
        await socket.run(question("What is this?", context=[{"description": "价目表", "value": "Ammonia: 43 euros"}]))
    assert await every_call_agrees(alice) == ["system tools skills open history"]
    assert any("价目表" in part and "Ammonia: 43 euros" in part for part in texts(await page(alice)))


async def summarised(alice: Any) -> None:
    def make() -> str:
        session = Session.objects.of(alice.pk).get()
        jobs.plant(jobs.SUMMARY, owner_id=alice.pk, scope="manual", session_id=session.pk)
        claim = jobs.claim(Job.objects.get(kind=jobs.SUMMARY, status="queued", scope="manual").pk)
        assert claim is not None
        return str(work.do(claim))

    await asyncio.to_thread(make)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_summary_is_a_part_that_is_made_again_and_its_own_call_stands_with_it(
    alice: Any, server: ModelServer, language: str
) -> None:
    words = LONG if language == "en" else LONG_ZH
    await policy(keep_rounds=1)
    async with talk(alice) as socket:
        for n in range(4):
            server.script(said(words * 12))
            await socket.run(question(f"{n}: {words}"))
        server.script(said("They keep chamber two at four degrees. 第二冷库四度。"))
        await summarised(alice)
        server.script(said("Four."))
        await socket.run(question("And now?"))
    assert len(await rows(Summary, alice)) == 1
    assert "summary" in (await every_call_agrees(alice))[-1].split()
    html = await page(alice)
    assert any("They keep chamber two at four degrees." in part for part in texts(html))
    (made,) = await rows(ModelCall, alice, purpose="summary")
    own = await page(alice, f"{PAGE}?call={made.call_id}")
    forked = any(part["tag"] == "fork" for part in made.parts)
    assert checked(own) == ("same" if forked else "unknown")
    assert "Summary, model call" in own and "Job: look whether to summarise" in own


def call_of(session: Session, made: Assembled, run: Run) -> ModelCall:
    row: ModelCall = ModelCall.objects.of(session.owner_id).create(
        owner_id=session.owner_id,
        call_id="call",
        session=session,
        run=run,
        model="test",
        parts=[modelcalls.dump_part(part) for part in made.parts],
        request_sha256=request_sha256(made.request),
        started_at=timezone.now(),
    )
    return row


async def test_memory_recall_and_what_a_summary_gives_back_are_told_apart(alice: Any, settings: Any) -> None:
    """No agent here has memories yet; the records are what one would leave."""
    settings.OPENAI_MODEL = "test"

    def made() -> str:
        session = conversation(alice, "t")
        stored_run(session, "r1", asked(f"First. {LONG}"), answered(LONG * 3), ended())
        calls = replace(answered("", "asks"), tool_calls=(ToolCall(id="c1", name="list_documents", arguments="{}"),))
        result = ToolReturned(id="t2", call_id="c1", name="list_documents", content="无文档。")
        blocks = (("memory", "Prefers short answers. 喜欢简短。"), ("recall", "They spoke of 43 kg of gas."))
        run = stored_run(session, "r2", Preloaded(blocks=blocks), asked("Second?"), calls, result)
        boundary = Event.objects.of(alice.pk).get(type="assistant_message", payload__id="asks")
        summary_row(session, boundary.position)
        summary = inspectedrows.summary_of(Summary.objects.of(alice.pk).get())
        history = sessions.read_history(alice.pk, "t").stored
        agent = wiring.agents()[0]
        view = View(
            agent="assistant",
            run_id="other",
            invocation_id="j",
            filter_key="",
            summaries={"": summary},
            blocks=tuple(Block(kind=kind, text=text) for kind, text in blocks),
        )
        frame = Frame(instruction=agent.instruction, max_tokens=500, tail=FINISH)
        call_of(session, assemble(history, frame, view), run)
        return fetch(alice).content.decode()

    html = await sync_to_async(made)()
    assert checked(html) == "same"
    assert tags(html) == ["system", "summary", "memory", "recall", "restored", "restored", "results", "system"]
    assert "a result behind it needs its call." in html
    assert "kept for the answer" in html
    assert 'href="/c/t/#summary"' in html


async def test_edit_makes_a_line_of_its_own_and_both_are_made_again(alice: Any, server: ModelServer) -> None:
    server.script(said("Four."), said("Six."), said("Eight."))
    async with talk(alice) as socket:
        first = question("How cold is one?")
        await socket.run(first)
        await socket.run(question("And two?"))
        edited = question("How cold is three?", run="r3")
        edit = {"action": "edit", "messageId": first["messages"][0]["id"]}
        await socket.run({**edited, "forwardedProps": {"workbench": edit}})
    assert await every_call_agrees(alice) == [
        "system tools skills history",
        "system tools skills history history history",
        "system tools skills history",
    ]
    calls = await rows(ModelCall, alice, purpose="chat")
    hidden = await page(alice, f"{PAGE}?call={calls[1].call_id}")
    assert "#h" not in hidden  # what another line says is not in the conversation that is shown
    assert "#h" in await page(alice, f"{PAGE}?call={calls[2].call_id}")


async def test_deleted_event_and_changed_instruction_are_told_and_break_nothing(
    alice: Any, server: ModelServer
) -> None:
    server.script(said("Four."), said("Six."))
    async with talk(alice) as socket:
        await socket.run(question("How cold?"))
        await socket.run(question("And two?"))

    def spoil(changed: Any) -> None:
        row = ModelCall.objects.of(alice.pk).filter(purpose="chat").last()
        assert row is not None
        changed(row)

    def older(row: Any) -> None:
        row.parts[0]["ref"] = "0" * 64
        row.save()

    def newer(row: Any) -> None:
        row.parts[1] = {"kind": "event", "ref": "x", "tokens": 1, "hue": "blue"}
        row.save()

    def other(row: Any) -> None:
        row.request_sha256 = "1" * 64
        row.save()

    await sync_to_async(spoil)(other)
    assert checked(await page(alice)) == "differs"
    await sync_to_async(spoil)(older)
    html = await page(alice)
    assert checked(html) == "unknown"
    assert "The instruction was that of another version; its text is not kept." in html
    await sync_to_async(spoil)(newer)
    assert "It was written by another version and cannot be read." in await page(alice)
    await sync_to_async(lambda: Event.objects.of(alice.pk).filter(type="user_message").delete())()
    html = await page(alice)
    assert "The message is not stored any more." in html
    assert checked(html) == "unknown"
    assert (await sync_to_async(fetch)(alice, f"{PAGE}?format=json")).status_code == 404


async def test_title_is_a_job_of_its_run_and_its_request_is_made_again(alice: Any, server: ModelServer) -> None:
    server.script(said("Four degrees. 四度。"))
    async with talk(alice) as socket:
        await socket.run(question(f"How cold is it? {LONG_ZH * 60}"))

    def make() -> None:
        claim = jobs.claim(Job.objects.get(kind=jobs.TITLE).pk)
        assert claim is not None
        work.do(claim)

    server.script(said("Cold store"))
    await asyncio.to_thread(make)
    (made,) = await rows(ModelCall, alice, purpose="title")
    html = await page(alice, f"{PAGE}?call={made.call_id}")
    assert checked(html) == "same"
    assert "Job: find a title" in html and "Title, model call" in html
    assert "Cold store" in html  # by now it has one
    assert "Model call 1: what was sent" in await page(alice)  # what is opened first is a call for an answer


async def test_failed_call_shows_its_error_and_what_it_was_sent(alice: Any, server: ModelServer) -> None:
    server.script(error(400, "bad request"))
    async with talk(alice) as socket:
        await socket.run(question("How cold?"))
    html = await page(alice)
    assert 'class="wf-fail"' in html
    (made,) = await rows(ModelCall, alice, purpose="chat")
    assert made.error_code and made.error_code in html
    assert checked(html) == "same"


async def test_request_as_json_is_what_was_sent(alice: Any, server: ModelServer) -> None:
    server.script(said("Four."))
    async with talk(alice) as socket:
        await socket.run(question("How cold?"))
    response = await sync_to_async(fetch)(alice, f"{PAGE}?format=json")
    told = json.loads(response.content)
    assert told["state"] == "same"
    assert [m["role"] for m in told["request"]["messages"]] == ["system", "user"]
    assert told["request"]["messages"][1]["parts"][0]["text"] == server.chats[0].body["messages"][1]["content"]


def statuses(who: Any, *addresses: str) -> set[int]:
    return {fetch(who, address).status_code for address in addresses}


async def test_conversation_of_somebody_else_is_not_found_whatever_names_are_known(
    alice: Any, bob: Any, server: ModelServer
) -> None:
    server.script(said("Four."))
    async with talk(alice) as socket:
        secret = question("A secret?")
        await socket.run(secret)
    (made,) = await rows(ModelCall, alice)
    names = [
        PAGE,
        f"{PAGE}?owner={alice.pk}",
        f"{PAGE}?run={secret['runId']}&owner={alice.pk}",
        f"{PAGE}?call={made.call_id}",
        f"{PAGE}?call={made.call_id}&owner={alice.pk}&format=json",
    ]
    assert await sync_to_async(statuses)(bob, *names) == {404}
    assert await sync_to_async(statuses)(alice, *names[:-1]) == {200}
    assert await sync_to_async(statuses)(alice, f"{PAGE}?run=none", f"{PAGE}?call=none", "/sessions/no/inspector/") == {
        404
    }
    assert (await sync_to_async(Client().get)(PAGE)).status_code == 302

    def staff(permission: bool, is_staff: bool) -> set[int]:
        bob.is_staff = is_staff
        bob.save()
        found = Permission.objects.get(codename="read_event_bodies")
        (bob.user_permissions.add if permission else bob.user_permissions.remove)(found)
        return statuses(bob, *names)

    assert await sync_to_async(staff)(permission=False, is_staff=True) == {404}
    assert await sync_to_async(staff)(permission=True, is_staff=False) == {404}
    assert await sync_to_async(staff)(permission=True, is_staff=True) == {200}
    html = await page(bob, f"{PAGE}?owner={alice.pk}")
    assert "The conversation of somebody else" in html and "/c/t/" not in html
    await sync_to_async(lambda: Session.objects.of(alice.pk).update(deleted_at=timezone.now()))()
    assert await sync_to_async(statuses)(bob, *names) == {404}
    assert await sync_to_async(statuses)(alice, *names) == {404}


async def test_own_conversation_of_the_same_name_comes_before_that_of_somebody_else(
    alice: Any, bob: Any, server: ModelServer
) -> None:
    for owner, words in ((alice, "Alice asks."), (bob, "Bob asks.")):
        server.script(said("Yes."))
        async with talk(owner) as socket:
            await socket.run(question(words))
    bob.is_staff = bob.is_superuser = True
    await sync_to_async(bob.save)()
    assert "Bob asks." in await page(bob) and "Alice asks." in await page(bob, f"{PAGE}?owner={alice.pk}")
    eve = await sync_to_async(type(bob).objects.create_superuser)("eve")
    assert (await sync_to_async(fetch)(eve, PAGE)).status_code == 404  # which of the two is meant?


async def test_run_of_sixty_model_calls_costs_at_most_ten_statements(alice: Any, server: ModelServer) -> None:
    server.script(calling("list_documents"), said("Nothing."))
    async with talk(alice) as socket:
        await socket.run(question("List them."))

    def grow() -> tuple[int, str]:
        (run,) = Run.objects.of(alice.pk)
        last = ModelCall.objects.of(alice.pk).filter(purpose="chat").last()
        assert last is not None
        for n in range(58):
            last.pk, last.call_id = None, f"more-{n}"
            last.save(force_insert=True)
        client = Client()
        client.force_login(alice)
        client.get(PAGE)
        with counted() as statements:
            response = client.get(f"{PAGE}?run={run.client_id}")
        with counted() as linked:
            client.get(f"{PAGE}?call=more-50")
        return max(statements.total, linked.total), response.content.decode()

    total, html = await sync_to_async(grow)()
    assert total <= 10
    assert checked(html) == "same"
    assert html.count('class="wf-label"') >= 61


async def test_conversation_without_a_run_says_so(alice: Any) -> None:
    await sync_to_async(conversation)(alice, "t")
    assert "Nothing was answered here yet." in await page(alice)


async def test_run_that_goes_on_and_one_that_failed_are_shown_as_what_they_are(alice: Any) -> None:
    def stored() -> None:
        session = conversation(alice, "t")
        row = stored_run(session, "r1", asked("冷吗？"), failed("model_unavailable"), status=RunStatus.FAILED)
        Run.objects.of(alice.pk).filter(pk=row.pk).update(error_code="model_unavailable", ended_at=timezone.now())
        stored_run(session, "r2", asked("Cold?"), status=RunStatus.RUNNING)

    await sync_to_async(stored)()
    going, over = await page(alice), await page(alice, f"{PAGE}?run=r1")
    assert "<dd>Working</dd>" in going and "data-check" not in going
    assert "<dd>Failed</dd>" in over and "model_unavailable" in over
    assert going.count('class="wf-run"') == over.count('class="wf-run"') == 1
    assert "2 runs in this conversation" in going


async def test_message_far_up_is_shown_on_a_page_of_older_ones(alice: Any) -> None:
    def stored() -> tuple[str, str, str]:
        session = conversation(alice, "t")
        first = stored_run(session, "r0", asked("The very first. 第一条。"), answered("Yes."), ended())
        for n in range(1, 60):
            stored_run(session, f"r{n}", asked(f"Question {n}."), answered("Yes."), ended())
        history = sessions.read_history(alice.pk, "t").stored
        frame = Frame(instruction=wiring.agents()[0].instruction)
        view = View(agent="assistant", run_id="other", invocation_id="j", filter_key="")
        call_of(session, assemble(history, frame, view), first)
        html = fetch(alice, f"{PAGE}?call=call").content.decode()
        links = re.findall(r'href="(/c/t/[^"]*#h\d+)"', html)
        return links[0], links[-1], fetch(alice, links[0].partition("#")[0]).content.decode()

    old, new, shown = await sync_to_async(stored)()
    assert old == "/c/t/messages/?before=6#h2"
    assert new.startswith("/c/t/#h")
    assert 'id="h2"' in shown and "The very first. 第一条。" in shown

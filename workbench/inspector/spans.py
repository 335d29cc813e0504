"""What took time in a run, from its stored rows and records. Pure."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from agents.models.job import Job
from agents.models.model_call import ModelCall
from agents.models.run import Run
from agents.runtime.events import AssistantMessage, Stored, ToolReturned, ToolStatus
from agents.runtime.model import ToolCall
from workbench import failurewords, wording
from workbench.contextwords import number
from workbench.inspector import words as inspectorwords
from workbench.inspector.waterfall import Span

ICONS: Final = {"search_knowledge": "search", "list_documents": "library", "read_document": "file",
                "read_artifact": "file", "save_artifact": "edit", "edit_artifact": "edit",
                "session_search": "search", "session_load": "file",
                "memory_search": "search", "memory_load": "search", "memory_add": "edit", "memory_update": "edit",
                "memory_delete": "edit", "memory_clear": "edit",
                "skill_load": "file", "skill_list_docs": "library", "skill_select_docs": "file"}  # fmt: skip


def facts(run: Run, calls: Sequence[ModelCall], own: Sequence[Stored]) -> tuple[tuple[str, str, str], ...]:
    """Return the figures of a run as (name, value, what stands small beside it). own: the run's records."""
    words = inspectorwords.run_facts()
    results = [one.record for one in own if isinstance(one.record, ToolReturned)]
    failed = sum(result.status is not ToolStatus.OK for result in results)
    chats = sum(call.purpose == ModelCall.Purpose.CHAT and call.run_id == run.pk for call in calls)
    found = [
        (words["state"], inspectorwords.states().get(run.status, ("", run.status))[1], ""),
        (
            words["time"],
            inspectorwords.duration(_seconds(run.started_at, run.ended_at) * 1000) if run.ended_at else "",
            "",
        ),
        (words["calls"], number(chats), ""),
        (words["steps"], number(len(results)), inspectorwords.failed(failed) if failed else ""),
        (
            words["prompt"],
            number(run.prompt_tokens),
            inspectorwords.cached(run.cached_tokens, run.prompt_tokens) if run.cached_tokens else "",
        ),
        (words["completion"], number(run.completion_tokens), ""),
    ]
    if run.error_code:
        found.append((words["error"], run.error_code, ""))
    return tuple(one for one in found if one[1])


def spans(run: Run, calls: Sequence[ModelCall], own: Sequence[Stored], jobs: Sequence[Job], shown: str) -> list[Span]:
    """Return everything that took time, the run first, the rest in the order in which it began.

    shown: id of the model call that is open below. A tool's result is stored when those of the calls before it are, so
    of tools that ran side by side the later may have begun earlier than it says.
    """
    kinds = inspectorwords.kinds()
    over = None if run.ended_at is None else _seconds(run.started_at, run.ended_at)
    whole = Span(kind="run", name=kinds["run"], words=kinds["run"], start_s=0.0, seconds=over, depth=0, icon="clock")
    steps = [*_calls(run, calls, shown), *_tools(run, own), *(_job(run, job) for job in jobs)]
    return [whole, *sorted(steps, key=lambda span: span.start_s)]


def _calls(run: Run, calls: Sequence[ModelCall], shown: str) -> list[Span]:
    out: list[Span] = []
    chats = 0
    for call in calls:
        chat = call.purpose == ModelCall.Purpose.CHAT
        chats += chat
        usage = inspectorwords.usage(call.prompt_tokens, call.cached_tokens, call.completion_tokens)
        out.append(
            Span(
                kind="model",
                name=inspectorwords.call_name(call.purpose, chats),
                words=inspectorwords.kinds()["model"],
                start_s=_seconds(run.started_at, call.started_at),
                seconds=call.latency_ms / 1000,
                first_s=None if call.ttft_ms is None else call.ttft_ms / 1000,
                note=failurewords.failure(call.error_code)[0] if call.error_code else usage,
                call=call.call_id,
                depth=1 if chat else 2,
                icon="thought" if chat else "fold" if call.purpose == ModelCall.Purpose.SUMMARY else "edit",
                failed=bool(call.error_code),
                current=call.call_id == shown,
            )
        )
    return out


def _tools(run: Run, own: Sequence[Stored]) -> list[Span]:
    asked: dict[str, ToolCall] = {}
    out: list[Span] = []
    for one in own:
        record = one.record
        if isinstance(record, AssistantMessage):
            asked |= {call.id: call for call in record.tool_calls}
        elif isinstance(record, ToolReturned):
            ended = _seconds(run.started_at, one.at)
            out.append(_tool(record, asked.get(record.call_id), ended))
    return out


def _tool(record: ToolReturned, call: ToolCall | None, ended_s: float) -> Span:
    ok, cancelled = record.status is ToolStatus.OK, record.status is ToolStatus.CANCELLED
    state = "done" if ok else "cancelled" if cancelled else "failed"
    seconds = record.elapsed_ms / 1000
    if ok:
        note = wording.tool_note(record.name, record.summary, record.data)
    else:
        note = failurewords.tool_failure(record.failure, record.summary or record.content)
    return Span(
        kind="tool",
        name="".join(wording.tool_sentence(record.name, call.arguments if call else "", state)),
        words=inspectorwords.kinds()["tool"],
        start_s=max(0.0, ended_s - seconds),
        seconds=seconds,
        note=note,
        icon=ICONS.get(record.name, "code"),
        failed=not ok,
    )


def _job(run: Run, job: Job) -> Span:
    failed = job.status == Job.Status.DEAD
    return Span(
        kind="job",
        name=inspectorwords.job_name(job.kind),
        words=inspectorwords.kinds()["job"],
        start_s=_seconds(run.started_at, job.created_at),
        seconds=None if job.ended_at is None else _seconds(job.created_at, job.ended_at),
        note=inspectorwords.job_state(job.status, job.error_code),
        icon="layers",
        failed=failed,
    )


def _seconds(begun: datetime, ended: datetime | None) -> float:
    return 0.0 if ended is None else (ended - begun).total_seconds()

"""What a request does to a conversation, decided from its history: pure, inside the transaction that opens the run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from agents.runtime.errors import Rejected
from agents.runtime.events import (
    AssistantMessage,
    Origin,
    Outcome,
    Preloaded,
    Record,
    RunFailed,
    RunFinished,
    RunStarted,
    Stamped,
    StateChanged,
    Stored,
    ToolReturned,
    ToolStatus,
    UserMessage,
    UserMessageKind,
)
from agents.runtime.model import FilePart, FinishReason, TextPart, ToolCall
from agents.runtime.session import Action, Opening, Plan, RunRequest
from agents.runtime.state import APP, TEMP
from agents.runtime.surrogates import mended
from agents.runtime.tokens import estimate_record

CONTEXT_BYTES = 16 * 1024
EXTERNAL_RESULT_BYTES = 256 * 1024
NOT_EXECUTED = "not executed: the user continued"
PERSON = "user"  # the author of everything that came with a request
STOPPED_EARLY = frozenset({FinishReason.CANCELLED, FinishReason.ERROR, FinishReason.LENGTH})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stamp:
    """Makes records of one origin. now and new_id as in Services."""

    origin: Origin
    now: Callable[[], datetime]
    new_id: Callable[[], str]

    def __call__(self, record: Record) -> Stamped:
        return Stamped(
            id=self.new_id(), at=self.now(), origin=self.origin, record=record, tokens=estimate_record(record)
        )


def open_calls(history: Sequence[Stored]) -> dict[str, ToolCall]:
    """Return the calls that were announced and have no result, by id, oldest first. Seeds do not count."""
    calls: dict[str, ToolCall] = {}
    for stored in history:
        record = stored.record
        if isinstance(record, AssistantMessage) and not record.seeded:
            calls.update({call.id: call for call in record.tool_calls})
        elif isinstance(record, ToolReturned):
            calls.pop(record.call_id, None)
    return calls


def check(request: RunRequest) -> None:
    """Raise Rejected for what is wrong whatever the history is."""
    if not request.thread_id or not request.run_id:
        raise Rejected("invalid_input", "The thread id and the run id must not be empty.")
    if request.action in (Action.RETRY, Action.CONTINUE) and (request.message or request.tool_results):
        raise Rejected("invalid_input", f"{request.action.capitalize()} takes no new message.")
    if request.action is Action.EDIT and (request.message is None or not request.message_id or request.tool_results):
        raise Rejected("invalid_input", "An edit needs the new message and the id of the old one.")
    if request.action is Action.SEND and request.message is None and not request.tool_results:
        raise Rejected("invalid_input", "There is no message.")
    if request.message is not None and not _says_something(request):
        raise Rejected("invalid_input", "The message is empty.")
    if any(key.startswith(APP) for key in request.state):
        raise Rejected("invalid_input", "State that all people share cannot be set by a request.")
    for result in request.tool_results:
        if len(mended(result.content).encode()) > EXTERNAL_RESULT_BYTES:
            raise Rejected("payload_too_large", f"A tool result may have {EXTERNAL_RESULT_BYTES} bytes.")


def enough(opening: Opening, request: RunRequest) -> bool:
    """Return whether a history that begins later than the conversation holds all that planning this request looks at.

    What a request goes back to must lie in a run behind the first of them: of that one only the end may be there.
    """
    history = opening.history
    message_id = request.message.id if request.message else ""
    if opening.message_known and message_id != request.message_id and _find(history, message_id) is None:
        return False
    named = _find(history, request.message_id) if request.message_id else None
    if request.message_id and named is None:
        return False
    match request.action:
        case Action.SEND:
            waiting = open_calls(history)
            return all(result.call_id in waiting for result in request.tool_results)
        case Action.CONTINUE:
            return any(isinstance(stored.record, AssistantMessage) for stored in history)
        case Action.EDIT:
            return named is not None and named.origin.run_id != history[0].origin.run_id
        case Action.RETRY:
            until = len(history) if named is None else history.index(named) + 1
            asked = _last_from_person(history[:until])
            return asked is not None and asked.origin.run_id != history[0].origin.run_id


def plan(opening: Opening, request: RunRequest, *, started: RunStarted, stamp: Stamp) -> Plan:
    """Return the records that open the run and the fork they go on. Raises Rejected.

    Order: RunStarted, results of external calls (the person's, then synthetic ones), seeds, state, the user message.
    """
    history = opening.history
    request, fork_after = _where(request, history)
    sources = _sources(request, history)
    if fork_after is not None:
        history = tuple(s for s in history if s.position <= fork_after)
    action = "" if request.action is Action.SEND else request.action.value
    started = replace(started, action=action, sources=sources, zone=started.zone or _zone(history))
    records: list[Record] = [started, *_answers(request, history, stamp)]
    if not opening.history:
        records += _seeds(request)
    if changed := _state_change(request, opening.session.state):
        records.append(StateChanged(delta=changed))
    if request.action in (Action.RETRY, Action.CONTINUE) and (asked := _last_from_person(history)) is not None:
        records += _preloaded(opening.history, asked.position, again=request.action is Action.RETRY)
    if request.message is not None:
        records.append(_message(replace(request.message, sources=sources), history, stamp))
    return Plan(records=tuple(stamp(record) for record in records), fork_after=fork_after)


def _where(request: RunRequest, history: Sequence[Stored]) -> tuple[RunRequest, int | None]:
    """Return the request as it is meant and the position after which it forks."""
    match request.action:
        case Action.SEND:
            message_id = request.message.id if request.message else ""
            if message_id and (old := _find(history, message_id)):
                # A client that lost the answer sends its last message again: that is a retry, not a second message.
                if isinstance(old.record, UserMessage) and old is _last_from_person(history):
                    again = replace(request, action=Action.RETRY, message=None, message_id=message_id)
                    return again, old.position
                raise Rejected("invalid_input", "A message with this id is already in the conversation.")
            return request, None
        case Action.EDIT:
            return request, _before_turn(_user_message(history, request.message_id), history)
        case Action.RETRY:
            return request, _asked(history, request.message_id).position
        case Action.CONTINUE:
            _check_stopped_early(history, request.message_id)
            return request, None


def _sources(request: RunRequest, history: Sequence[Stored]) -> tuple[str, ...] | None:
    """Return what the run may answer from: what the request says, else what the run it goes back to or on with had."""
    if request.sources_given:
        return request.sources
    if request.action is Action.SEND and request.message is not None:
        return request.message.sources
    until = None
    if request.action in (Action.EDIT, Action.RETRY) and request.message_id:
        until = _find(history, request.message_id)
    for stored in reversed(history):
        if isinstance(stored.record, RunStarted) and (until is None or stored.position < until.position):
            return stored.record.sources
    return None


def _zone(history: Sequence[Stored]) -> str:
    """Return where the person was when the last run began: who sends from a queue does not say."""
    return next((s.record.zone for s in reversed(history) if isinstance(s.record, RunStarted)), "")


def _find(history: Sequence[Stored], message_id: str) -> Stored | None:
    for stored in reversed(history):
        record = stored.record
        if isinstance(record, UserMessage | AssistantMessage) and record.id == message_id:
            return stored
        if isinstance(record, AssistantMessage) and record.response_id == message_id:
            return stored
    return None


def _user_message(history: Sequence[Stored], message_id: str) -> Stored:
    found = _find(history, message_id)
    if found is None:
        raise Rejected("message_not_found")
    if not isinstance(found.record, UserMessage):
        raise Rejected("invalid_input", "Only a message of the person can be edited.")
    return found


def _last_from_person(history: Sequence[Stored]) -> Stored | None:
    return next((s for s in reversed(history) if _from_person(s)), None)


def _from_person(stored: Stored) -> bool:
    return isinstance(stored.record, UserMessage) or (
        isinstance(stored.record, ToolReturned) and stored.origin.author == PERSON
    )


def _before_turn(message: Stored, history: Sequence[Stored]) -> int:
    """Return the position before the run that the message opened, or before the message if it came later."""
    before = [s for s in history if s.position < message.position]
    while before and before[-1].origin.author == PERSON and before[-1].origin.run_id == message.origin.run_id:
        last = before.pop()
        if isinstance(last.record, RunStarted):
            return before[-1].position if before else 0
        if isinstance(last.record, UserMessage):
            break
    return message.position - 1


def _asked(history: Sequence[Stored], message_id: str) -> Stored:
    """Return what a retry answers again: the last thing a person said before the answer."""
    until = len(history)
    if message_id:
        found = _find(history, message_id)
        if found is None:
            raise Rejected("message_not_found")
        until = history.index(found) + 1
    asked = _last_from_person(history[:until])
    if asked is None:
        raise Rejected("invalid_input", "There is no question to answer again.")
    return asked


def _check_stopped_early(history: Sequence[Stored], message_id: str) -> None:
    last = next((s.record for s in reversed(history) if isinstance(s.record, AssistantMessage)), None)
    if message_id:
        found = _find(history, message_id)
        if found is None:
            raise Rejected("message_not_found")
        if found.record is not last:
            raise Rejected("invalid_input", "Only the last answer can be continued.")
    end = next((s.record for s in reversed(history) if isinstance(s.record, RunFinished | RunFailed)), None)
    stopped = isinstance(end, RunFailed) or (isinstance(end, RunFinished) and end.outcome is Outcome.CANCELLED)
    cut = isinstance(last, AssistantMessage) and last.finish_reason in STOPPED_EARLY
    if not stopped and not cut:
        raise Rejected("invalid_input", "The last answer is complete; there is nothing to continue.")


def _answers(request: RunRequest, history: Sequence[Stored], stamp: Stamp) -> list[Record]:
    """Return one result for each open call: the person's answers in their order, then synthetic ones."""
    waiting = open_calls(history)
    answered = {s.record.call_id for s in history if isinstance(s.record, ToolReturned)}
    out: list[Record] = []
    for result in request.tool_results:
        call = waiting.pop(result.call_id, None)
        if call is None:
            seen = result.call_id in answered or any(
                isinstance(r, ToolReturned) and r.call_id == result.call_id for r in out
            )
            raise Rejected("tool_result_duplicate" if seen else "unknown_tool_call")
        out.append(replace(result, id=result.id or stamp.new_id(), name=call.name, external=True))
    if waiting and request.tool_results and request.message is None:
        raise Rejected("tool_results_incomplete", f"{len(waiting)} of the open tool calls have no result.")
    for call in waiting.values():
        out.append(
            ToolReturned(
                id=stamp.new_id(),
                call_id=call.id,
                name=call.name,
                content=NOT_EXECUTED,
                status=ToolStatus.CANCELLED,
                external=True,
            )
        )
    return out


def _preloaded(history: Sequence[Stored], asked: int, *, again: bool) -> list[Preloaded]:
    """Return what the turn that is answered again, or gone on with, had before it, so that the model sees the same.

    What was recalled of conversations is looked for anew when it is answered again: they may be deleted by now. What
    is remembered is always loaded anew.
    """
    found: list[Preloaded] = []
    for stored in history:
        record = stored.record
        if stored.position > asked and isinstance(record, UserMessage) and record.kind is UserMessageKind.TURN:
            break
        if stored.position > asked and isinstance(record, Preloaded) and not stored.origin.parent_invocation_id:
            kept = record.blocks and not (again and record.citations)
            found = [replace(record, memories=())] if kept else []
    return found


def _seeds(request: RunRequest) -> list[Record]:
    seeds = list(request.seed)
    current = request.message
    if current is not None and seeds and isinstance(last := seeds[-1], UserMessage):
        same = last.id == current.id if last.id and current.id else last.parts == current.parts
        if same:
            seeds.pop()
    return [
        replace(seed, kind=UserMessageKind.SEED)
        if isinstance(seed, UserMessage)
        else replace(seed, seeded=True, tool_calls=(), response_id=seed.response_id or seed.id)
        for seed in seeds
    ]


def _state_change(request: RunRequest, state: Mapping[str, object]) -> dict[str, object]:
    missing = object()
    return {k: v for k, v in request.state.items() if not k.startswith(TEMP) and state.get(k, missing) != v}


def _message(message: UserMessage, history: Sequence[Stored], stamp: Stamp) -> UserMessage:
    if message.id and _find(history, message.id):
        raise Rejected("invalid_input", "A message with this id is already in the conversation.")
    return replace(
        message,
        id=message.id or stamp.new_id(),
        kind=UserMessageKind.TURN,
        context=cap_context(message.context),
    )


def cap_context(context: Sequence[tuple[str, str]], limit_bytes: int = CONTEXT_BYTES) -> tuple[tuple[str, str], ...]:
    """Return the pairs that fit into limit_bytes of UTF-8; the first that does not is cut, and the last."""
    out: list[tuple[str, str]] = []
    room = limit_bytes
    for name, value in ((mended(name), mended(value)) for name, value in context):
        size = len(name.encode()) + len(value.encode())
        if size > room:
            rest = value.encode()[: max(0, room - len(name.encode()))].decode(errors="ignore")
            if rest:
                out.append((name, rest))
            break
        room -= size
        out.append((name, value))
    return tuple(out)


def _says_something(request: RunRequest) -> bool:
    assert request.message is not None
    return bool(request.uploads) or any(
        isinstance(part, FilePart) or (isinstance(part, TextPart) and part.text.strip())
        for part in request.message.parts
    )

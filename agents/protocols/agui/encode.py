"""One run's events as AG-UI 1.0 events, one per frame.

The encoder is a guard: whatever order the events come in, the frames form a valid stream. It opens a message before
its content, closes reasoning, text and calls before what must follow them, sends END before a RESULT, gives nothing
after the terminal event, and sends of a complete message only what was not streamed.

RUN_STARTED waits for the records that open a run, because its `input` echoes what the server took over from the
client: seeded history, answers to external calls and the user's turn, so that every other viewer has them too. It
goes out with the user's turn, with `begin()`, or with the first event that is none of these.
"""

import logging
from collections.abc import Mapping, Sequence
from typing import Any, assert_never

from agents.protocols.agui import contexts, history
from agents.protocols.agui.blocks import BlockSplitter, render_block
from agents.protocols.agui.frames import JSON, Frames, FrameWriter, patch, string
from agents.runtime.events import (
    AssistantMessage,
    CitationShown,
    ContextCompacted,
    Emitted,
    Event,
    Outcome,
    Preloaded,
    ReasoningDelta,
    Record,
    RunFailed,
    RunFinished,
    RunStarted,
    StateChanged,
    Stored,
    Summarising,
    TextDelta,
    ToolCallDelta,
    ToolProgress,
    ToolReturned,
    ToolStarted,
    UserMessage,
    UserMessageKind,
    Waiting,
    WindowUsed,
)
from agents.runtime.knowledge import Cited
from agents.runtime.model import NO_USAGE, FilePart, TextPart, ToolCall, Usage

logger = logging.getLogger(__name__)

PROTOCOL_VERSION = "1.0"
TOOL_ACTIVITY = "workbench.tool"
WAITING_ACTIVITY = "workbench.waiting"

_TERMINAL = (b'{"type":"RUN_FINISHED"', b'{"type":"RUN_ERROR"')


def is_terminal(frame: bytes) -> bool:
    """Return whether a frame made here is the last of its run."""
    return frame.startswith(_TERMINAL)


class _Text:
    """A text or reasoning message that was started. `sent`: the pieces so far. prefix: the frame up to the delta."""

    __slots__ = ("id", "index", "invocation", "open", "prefix", "sent", "splitter")

    def __init__(self, message_id: str, invocation: str, kind: bytes, splitter: BlockSplitter | None = None) -> None:
        self.id = message_id
        self.invocation = invocation
        self.open = True
        self.prefix = b'{"type":"%b_CONTENT","messageId":%b,"delta":' % (kind, string(message_id))
        self.sent: list[str] = []
        self.splitter = splitter
        self.index = 0  # of the next block


class _Call:
    """A tool call that was announced. `sent`: the pieces of its arguments so far."""

    __slots__ = ("invocation", "name", "open", "returned", "sent")

    def __init__(self, name: str, invocation: str) -> None:
        self.name = name
        self.invocation = invocation
        self.open = True
        self.returned = False
        self.sent: list[str] = []


class RunEncoder:
    """Encodes one run. Belongs to one task; nothing here waits.

    seq: the last frame number given; a new run starts at 0. render_html: also send finished Markdown blocks as HTML;
    a property of the run, decided by who started it. baseline: for a run that made a fork (edit, retry), the visible
    chain it goes on from, without its own records; sent as MESSAGES_SNAPSHOT, so that every viewer drops what was
    replaced. state: the session's, sent as STATE_SNAPSHOT.
    """

    def __init__(  # noqa: PLR0913 - keyword-only, each one a fact of the run
        self,
        *,
        thread_id: str,
        run_id: str,
        render_html: bool = False,
        seq: int = 0,
        parent_run_id: str = "",
        baseline: Sequence[Stored] | None = None,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self._thread_id = thread_id
        self._run_id = run_id
        self._parent_run_id = parent_run_id
        self._render_html = render_html
        self._baseline = baseline
        self._state = state
        self._frames = FrameWriter(thread_id, run_id, seq)
        self._put = self._frames.put
        self._started: RunStarted | None = None
        self._accepted: list[JSON] = []  # messages RUN_STARTED will echo
        self._begun = False
        self._over = False
        self._hot: _Text | None = None  # the text whose next delta needs nothing closed or opened
        self._texts: dict[str, _Text] = {}  # by the runtime's message id
        self._reasonings: dict[str, _Text] = {}
        self._calls: dict[str, _Call] = {}
        self._ids: set[str] = set()  # every message id given; none is given twice
        self._cited: set[tuple[str, str]] = set()  # (message, citation) that were shown, by the runtime's ids
        self._activities: set[str] = set()  # ids that had their snapshot
        self._waiting = False

    @property
    def seq(self) -> int:
        """The last frame number given."""
        return self._frames.seq

    # --- doors

    def encode(self, emitted: Emitted) -> Frames:
        """Return the frames of one event, in order, each with its number; [] if there is nothing to show.

        Never raises for a strange order of events: what cannot be shown is logged and left out.
        """
        event = emitted.event
        hot = self._hot
        if hot is not None and type(event) is TextDelta and event.message_id == hot.id and event.text:
            self._piece(hot, event.text)
            return self._frames.take()
        self._hot = None
        if self._over:
            logger.warning("event after the end of run %s was not sent: %s", self._run_id, type(event).__name__)
            return []
        self._frames.timestamp_ms = int(emitted.at.timestamp() * 1000)
        self._event(event, emitted.origin.invocation_id)
        return self._frames.take()

    def begin(self) -> Frames:
        """Return RUN_STARTED now, if it still waits. For runs that open without a user's turn (retry, continue,
        answers to external calls): call it once the opening records were encoded."""
        if self._started and not self._begun:
            self._begin()
        return self._frames.take()

    def custom(self, name: str, value: Any) -> Frames:
        """Return a CUSTOM event `workbench.<name>`, for what happens beside the run; [] after its end."""
        if not self._over:
            self._custom(name, value)
        return self._frames.take()

    def close_lost(self, snapshot_messages: Sequence[Mapping[str, Any]], failed: RunFailed) -> Frames:
        """Return the frames that close a run whose process died: MESSAGES_SNAPSHOT and RUN_ERROR.

        For an encoder made with the last seq found in the run's log. snapshot_messages: the whole visible chain, the
        saved part of this run included, as history.messages gives it.
        """
        self._frames.timestamp_ms = None
        if not self.seq:
            self._begin()
        self._begun = True
        self._put({"type": "MESSAGES_SNAPSHOT", "messages": list(snapshot_messages)})
        self._failed(failed)
        return self._frames.take()

    # --- events

    def _event(self, event: Event, invocation: str) -> None:
        if isinstance(event, RunStarted):
            self._started = event
            return
        if not self._begun:
            if self._opens(event):
                return
            self._begin()
        if self._waiting and not isinstance(event, Waiting | ToolProgress):
            self._waiting_over()
        match event:
            case TextDelta():
                self._text(event.message_id, event.text, invocation)
            case ReasoningDelta():
                self._reasoning(event.message_id, event.text, invocation)
            case ToolCallDelta():
                self._arguments(event, invocation)
            case ToolStarted():
                self._tool_started(event)
            case ToolProgress():
                self._tool_progress(event)
            case CitationShown():
                self._citation(event.message_id, event.cited, invocation)
            case Waiting():
                self._wait(event)
            case Summarising() | WindowUsed():
                self._custom(contexts.NAME, contexts.value(event))
            case _:
                self._record(event, invocation)

    def _record(self, event: Record, invocation: str) -> None:
        match event:
            case UserMessage():
                self._user_message(event)
            case AssistantMessage():
                self._assistant_message(event, invocation)
            case ToolReturned():
                self._tool_returned(event)
            case StateChanged():
                self._state_changed(event)
            case RunFinished():
                self._finished(event)
            case RunFailed():
                self._close_everything()
                self._failed(event)
            case ContextCompacted():
                self._custom(contexts.NAME, contexts.value(event))
            case Preloaded():
                if event.memories:
                    self._custom("memory", {"kind": "used", "memories": [id for id, _version in event.memories]})
            case RunStarted():
                pass  # it comes once, first
            case _:
                assert_never(event)

    def _opens(self, event: Event) -> bool:
        """Keep a record that opens the run for RUN_STARTED, and return whether it was one."""
        match event:
            case UserMessage(kind=UserMessageKind.SEED):
                self._accepted.append(history.user_message(event))
            case UserMessage(kind=UserMessageKind.TURN):
                self._accepted.append(history.user_message(event))
                self._begin()
            case AssistantMessage(seeded=True):
                self._accepted.append(history.assistant_message(event))
            case ToolReturned() if event.call_id not in self._calls:
                # An echo as TOOL_CALL_RESULT would double the message in the client that sent it.
                self._accepted.append(history.tool_message(event))
            case _:
                return False
        return True

    def _begin(self) -> None:
        self._begun = True
        started: JSON = {"type": "RUN_STARTED", "threadId": self._thread_id, "runId": self._run_id}
        started["protocolVersion"] = PROTOCOL_VERSION
        extra: JSON = {}
        parent = self._parent_run_id
        if self._started:
            parent = parent or self._started.parent_run_id
            extra = {"agent": self._started.agent, "model": self._started.model}
            if self._started.sources is not None:
                extra["sources"] = list(self._started.sources)
        if parent:
            started["parentRunId"] = parent
        if self._accepted:
            started["input"] = {"threadId": self._thread_id, "runId": self._run_id, "messages": self._accepted}
            started["input"] |= {"state": {}, "tools": [], "context": [], "forwardedProps": {}}
            self._ids.update(message["id"] for message in self._accepted)
        self._put(started, {name: value for name, value in extra.items() if value != ""})
        if self._baseline is not None:
            self._put({"type": "MESSAGES_SNAPSHOT", "messages": history.messages(self._baseline) + self._accepted})
        if self._state is not None:
            self._put({"type": "STATE_SNAPSHOT", "snapshot": history.visible_state(self._state)})
        self._accepted, self._baseline, self._state = [], None, None

    # --- messages

    def _text(self, message_id: str, text: str, invocation: str) -> None:
        if not text:
            return
        message = self._opened_text(message_id, invocation)
        self._piece(message, text)
        if message.id == message_id:
            self._hot = message

    def _citation(self, message_id: str, cited: Cited, invocation: str) -> None:
        """Show a citation before the text that uses it, once per message."""
        if (message_id, cited.citation.id) not in self._cited:
            self._cited.add((message_id, cited.citation.id))
            message = self._opened_text(message_id, invocation)
            self._custom("citation", {"messageId": message.id, **history.citation(cited)})

    def _opened_text(self, message_id: str, invocation: str) -> _Text:
        self._close_reasoning(message_id)
        message = self._texts.get(message_id)
        return message if message and message.open else self._open_text(message_id, invocation)

    def _open_text(self, message_id: str, invocation: str) -> _Text:
        # A client would glue a reopened message together in the wrong place, so a second part gets its own id.
        given = self._fresh_id(message_id)
        splitter = BlockSplitter() if self._render_html else None
        before = self._texts.get(message_id)
        message = self._texts[message_id] = _Text(given, invocation, b"TEXT_MESSAGE", splitter)
        message.sent = before.sent if before else message.sent
        self._put({"type": "TEXT_MESSAGE_START", "messageId": given, "role": "assistant"})
        return message

    def _reasoning(self, message_id: str, text: str, invocation: str) -> None:
        if not text:
            return
        message = self._reasonings.get(message_id)
        if message is None:
            given = history.reasoning_id(message_id)
            message = self._reasonings[message_id] = _Text(given, invocation, b"REASONING_MESSAGE")
            self._open_reasoning(given)
        elif not message.open:
            # More of the same thought: history holds one message, and reopening one is valid for reasoning.
            message.open = True
            self._open_reasoning(message.id)
        self._piece(message, text)

    def _open_reasoning(self, given: str) -> None:
        self._put({"type": "REASONING_START", "messageId": given})
        self._put({"type": "REASONING_MESSAGE_START", "messageId": given, "role": "reasoning"})

    def _piece(self, message: _Text, text: str) -> None:
        self._frames.raw(message.prefix + string(text))
        message.sent.append(text)
        if message.splitter:
            self._blocks(message, message.splitter.feed(text))

    def _blocks(self, message: _Text, sources: Sequence[str]) -> None:
        for source in sources:
            assert message.splitter
            value = {"messageId": message.id, "index": message.index, "html": render_block(source)}
            message.index += 1
            # `end` is where the text goes on that is in no block yet; only the last of several blocks can say it.
            if source is sources[-1]:
                value["end"] = message.splitter.end
            self._custom("block", value)

    def _close_text(self, message: _Text, extra: JSON | None = None) -> None:
        if not message.open:
            return
        message.open = False
        if message.splitter:
            self._blocks(message, message.splitter.finish())
        self._put({"type": "TEXT_MESSAGE_END", "messageId": message.id}, extra)

    def _close_reasoning(self, message_id: str, extra: JSON | None = None) -> None:
        message = self._reasonings.get(message_id)
        if message is None or not message.open:
            return
        message.open = False
        self._put({"type": "REASONING_MESSAGE_END", "messageId": message.id}, extra)
        self._put({"type": "REASONING_END", "messageId": message.id}, extra)

    def _close_messages(self, invocation: str | None) -> None:
        """Close reasoning, then text: of one agent's execution, or of all (None)."""
        for message_id, reasoning in self._reasonings.items():
            if invocation in (None, reasoning.invocation):
                self._close_reasoning(message_id)
        for text in self._texts.values():
            if invocation in (None, text.invocation):
                self._close_text(text)

    def _user_message(self, event: UserMessage) -> None:
        given = self._fresh_id(event.id)
        extra: JSON = {"kind": event.kind.value}
        files = [part for part in event.parts if isinstance(part, FilePart)]
        if files:
            extra["content"] = history.content(event.parts)
        text = "".join(part.text for part in event.parts if isinstance(part, TextPart))
        self._put({"type": "TEXT_MESSAGE_START", "messageId": given, "role": "user"}, extra)
        if text:
            self._put({"type": "TEXT_MESSAGE_CONTENT", "messageId": given, "delta": text})
        self._put({"type": "TEXT_MESSAGE_END", "messageId": given})

    def _assistant_message(self, event: AssistantMessage, invocation: str) -> None:
        """Send what was not streamed of a complete message, and close it."""
        timing: JSON = {"reasoningMs": event.reasoning_ms} if event.reasoning_ms else {}
        reasoning = self._reasonings.get(event.id)
        self._reasoning(event.id, self._missing(reasoning, event.reasoning, event.id), invocation)
        self._close_reasoning(event.id, timing)
        missing = self._missing(self._texts.get(event.id), event.text, event.id)
        if missing:
            for cited in event.citations:
                self._citation(event.id, cited, invocation)
        self._text(event.id, missing, invocation)
        self._hot = None
        if event.not_in_documents and event.id not in self._texts:
            self._open_text(event.id, invocation)  # it says nothing else
        if text := self._texts.get(event.id):
            self._close_text(text, history.answer_details(event))
        for call in event.tool_calls:
            self._whole_call(event.id, call, invocation)

    def _missing(self, message: _Text | None, whole: str, message_id: str) -> str:
        """Return what of a complete text was not streamed. What was streamed stands, even if it differs."""
        if message is None or not whole:
            return whole
        sent = "".join(message.sent)
        if whole.startswith(sent):
            return whole[len(sent) :]
        logger.warning("streamed text of message %s of run %s differs from the stored one", message_id, self._run_id)
        return ""

    # --- tools

    def _arguments(self, event: ToolCallDelta, invocation: str) -> None:
        call = self._calls.get(event.call_id)
        if call is None:
            call = self._announce(event.message_id, event.call_id, event.name, invocation)
        if event.arguments and call.open:
            self._more_arguments(event.call_id, call, event.arguments)

    def _announce(self, message_id: str, call_id: str, name: str, invocation: str) -> _Call:
        self._close_messages(invocation)
        call = self._calls[call_id] = _Call(name, invocation)
        text = self._texts.get(message_id)
        start = {"type": "TOOL_CALL_START", "toolCallId": call_id, "toolCallName": name}
        start["parentMessageId"] = text.id if text else message_id
        self._put(start)
        return call

    def _more_arguments(self, call_id: str, call: _Call, arguments: str) -> None:
        call.sent.append(arguments)
        self._frames.raw(b'{"type":"TOOL_CALL_ARGS","toolCallId":%b,"delta":%b' % (string(call_id), string(arguments)))

    def _whole_call(self, message_id: str, stored: ToolCall, invocation: str) -> None:
        call = self._calls.get(stored.id)
        if call is None:
            call = self._announce(message_id, stored.id, stored.name, invocation)
        if not call.open:
            return
        sent = "".join(call.sent)
        if stored.arguments.startswith(sent):
            if missing := stored.arguments[len(sent) :]:
                self._more_arguments(stored.id, call, missing)
        else:  # repaired after it was streamed
            logger.info("streamed arguments of call %s of run %s differ from the stored ones", stored.id, self._run_id)
        self._end_call(stored.id, call)

    def _end_call(self, call_id: str, call: _Call) -> None:
        if call.open:
            call.open = False
            self._put({"type": "TOOL_CALL_END", "toolCallId": call_id})

    def _tool_started(self, event: ToolStarted) -> None:
        call = self._calls.get(event.call_id)
        if call is None or call.returned:
            return
        self._end_call(event.call_id, call)
        content = {"toolCallId": event.call_id, "name": event.name, "status": "running"}
        self._activity(_activity_id(event.call_id), TOOL_ACTIVITY, content)

    def _tool_progress(self, event: ToolProgress) -> None:
        call = self._calls.get(event.call_id)
        if call is None or call.returned:
            return
        content: JSON = {"toolCallId": event.call_id, "name": call.name, "status": "running", "text": event.text}
        if event.done is not None:
            content["done"] = event.done
        if event.total is not None:
            content["total"] = event.total
        self._activity(_activity_id(event.call_id), TOOL_ACTIVITY, content)

    def _tool_returned(self, event: ToolReturned) -> None:
        call = self._calls.get(event.call_id)
        if call is None or call.returned:
            logger.warning("result %s of run %s has no open call; not sent", event.id, self._run_id)
            return
        self._end_call(event.call_id, call)
        call.returned = True
        activity = _activity_id(event.call_id)
        if activity in self._activities:
            self._activity(activity, TOOL_ACTIVITY, {"status": event.status.value})
        result = {"type": "TOOL_CALL_RESULT", "messageId": self._fresh_id(event.id), "toolCallId": event.call_id}
        self._put({**result, "content": event.content, "role": "tool"}, history.result_details(event))
        for ref in event.artifacts:
            self._custom("artifact", {**history.artifact(ref), "toolCallId": event.call_id})

    # --- activities and state

    def _activity(self, activity_id: str, kind: str, content: JSON) -> None:
        """Show content: as a snapshot the first time, as a patch of its keys after that."""
        event: JSON = {"type": "ACTIVITY_SNAPSHOT", "messageId": activity_id, "activityType": kind}
        if activity_id in self._activities:
            event["type"] = "ACTIVITY_DELTA"
            event["patch"] = patch(content)
        else:
            self._activities.add(activity_id)
            event["content"] = content
        self._put(event)

    def _wait(self, event: Waiting) -> None:
        self._waiting = True
        content = {"status": "waiting", "reason": event.reason, "delayMs": round(event.delay_s * 1000)}
        self._activity(f"waiting-{self._run_id}", WAITING_ACTIVITY, content)

    def _waiting_over(self) -> None:
        self._waiting = False
        self._activity(f"waiting-{self._run_id}", WAITING_ACTIVITY, {"status": "over"})

    def _state_changed(self, event: StateChanged) -> None:
        # Keys are top-level, so their parent is the state itself and `add` also replaces.
        if changes := patch(history.visible_state(event.delta)):
            self._put({"type": "STATE_DELTA", "delta": changes})

    # --- the end

    def _close_everything(self) -> None:
        self._close_messages(None)
        for call_id, call in self._calls.items():
            self._end_call(call_id, call)

    def _finished(self, event: RunFinished) -> None:
        self._close_everything()
        outcome: JSON = {"type": "cancelled" if event.outcome is Outcome.CANCELLED else "success"}
        if event.pending_call_ids and event.outcome is Outcome.SUCCESS:
            outcome["pendingToolCallIds"] = list(event.pending_call_ids)
        finished = {"type": "RUN_FINISHED", "threadId": self._thread_id, "runId": self._run_id, "outcome": outcome}
        self._put({**finished, **self._usage(event.usage)})
        self._over = True

    def _failed(self, event: RunFailed) -> None:
        extra: JSON = {"retryable": event.retryable}
        if event.reference:
            extra["reference"] = event.reference
        failed = {"type": "RUN_ERROR", "message": event.message, "code": event.code}
        self._put({**failed, **self._usage(event.usage)}, extra)
        self._over = True

    def _usage(self, usage: Usage) -> JSON:
        if usage == NO_USAGE:
            return {}
        tokens: JSON = {"inputTokens": usage.prompt, "outputTokens": usage.completion}
        tokens["totalTokens"] = usage.prompt + usage.completion
        if usage.reasoning:
            tokens["reasoningTokens"] = usage.reasoning
        if usage.cached:
            tokens["cachedInputTokens"] = usage.cached
        if self._started and self._started.model:
            tokens["model"] = self._started.model
        return {"usage": [tokens]}

    # --- ids and customs

    def _custom(self, name: str, value: Any) -> None:
        if not self._begun:
            self._begin()
        self._put({"type": "CUSTOM", "name": f"workbench.{name}", "value": value})

    def _fresh_id(self, wanted: str) -> str:
        given, n = wanted, 2
        while given in self._ids:
            given, n = f"{wanted}~{n}", n + 1
        self._ids.add(given)
        return given


def _activity_id(call_id: str) -> str:
    return f"activity-{call_id}"

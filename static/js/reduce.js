// State of one thread's live run + one AG-UI event -> new state. No DOM, no socket, no clock.
//
// phase: idle, sending, running, stopping, done, stopped, failed, lost. seq: the last frame seen of runId.
// gap: a frame is missing; the follower must attach again after `seq`. forked: it replaced what stood there before.
// window: what the newest request takes of the model's window; summary: id of the newest summary the run made.
// remembers: the model was shown memories.
import * as items from "items";

const OVER = new Set(["idle", "done", "stopped", "failed", "lost"]);

export const isOver = (state) => OVER.has(state.phase);

export function idle(threadId) {
  return {
    threadId, runId: null, seq: 0, phase: "idle", items: [], startedAt: null, endedAt: null, error: null,
    waiting: null, activities: {}, gap: false, early: false, forked: false, model: "", sources: null,
    window: null, summarising: false, summary: "", remembers: false,
  };
}

// A run this page asked for, before the server has said a word. message: null for retry and continue.
export function begun(state, { runId, message, at }) {
  const shown = message ? [items.said(message, at)] : [];
  return { ...idle(state.threadId), runId, phase: "sending", items: shown, startedAt: at };
}

// A run the page learned of and will follow from its first frame.
export function following(state, runId) {
  return state.runId === runId ? state : { ...idle(state.threadId), runId, phase: "running" };
}

export function stopping(state) {
  return isOver(state) ? state : { ...state, phase: "stopping" };
}

// The request did not become a run, or nobody knows it any more.
export function dropped(state) {
  return { ...idle(state.threadId) };
}

export function reduce(state, event) {
  const ours = event.metadata?.workbench ?? {};
  if (ours.history) return state;
  if (event.type === "RUN_STARTED") return started(state, event, ours);
  if (ours.runId !== state.runId || ours.seq <= state.seq) return state;
  if (ours.seq > state.seq + 1) return { ...state, gap: true };
  return { ...apply(state, event, ours), seq: ours.seq, gap: false };
}

function started(state, event, ours) {
  if (state.runId === event.runId && state.seq >= ours.seq) return state;
  const base = state.runId === event.runId ? state : idle(state.threadId);
  let shown = base.items;
  for (const message of event.input?.messages ?? []) {
    if (message.role !== "user") continue;
    const item = items.said(message, event.timestamp);
    shown = items.put(shown, "said", item.id, (old) => ({ ...item, at: old.at }), () => item);
  }
  const phase = base.phase === "stopping" ? "stopping" : "running";
  const at = event.timestamp ?? base.startedAt;
  return { ...base, runId: event.runId, seq: ours.seq ?? 0, phase, items: shown, startedAt: at, gap: false, model: ours.model ?? "", sources: ours.sources ?? null };
}

function apply(state, event, ours) {
  switch (event.type) {
    case "TEXT_MESSAGE_START":
    case "TEXT_MESSAGE_CONTENT":
    case "TEXT_MESSAGE_END":
      return { ...state, items: text(state.items, event, ours), early: state.early || Boolean(ours.finishReason) };
    case "REASONING_MESSAGE_START":
    case "REASONING_MESSAGE_CONTENT":
    case "REASONING_MESSAGE_END":
      return { ...state, items: thought(state.items, event, ours) };
    case "TOOL_CALL_START":
    case "TOOL_CALL_ARGS":
    case "TOOL_CALL_END":
    case "TOOL_CALL_RESULT":
      return { ...state, items: tool(state.items, event, ours) };
    case "ACTIVITY_SNAPSHOT":
    case "ACTIVITY_DELTA":
      return activity(state, event);
    case "CUSTOM":
      return custom(state, event.name, event.value, ours);
    case "MESSAGES_SNAPSHOT":
      return { ...state, forked: true };
    case "RUN_FINISHED":
      return over(state, event, event.outcome?.type === "cancelled" ? "stopped" : "done", null);
    case "RUN_ERROR":
      return over(state, event, event.code === "lost" ? "lost" : "failed", {
        code: event.code ?? "", message: event.message ?? "", reference: ours.reference ?? "", retryable: ours.retryable ?? false,
      });
    default:
      return state; // unknown events are ignored, never fatal
  }
}

function custom(state, name, value, ours) {
  if (name === "workbench.context") return context(state, value, ours);
  if (name === "workbench.memory") return { ...state, remembers: true };
  const change = { "workbench.citation": items.cited, "workbench.block": items.block }[name];
  return change ? { ...state, items: items.put(state.items, "text", value.messageId, (i) => change(i, value)) } : state;
}

function context(state, value, ours) {
  switch (value.kind) {
    case "window":
      return { ...state, window: value };
    case "summarising":
      return { ...state, summarising: value.state === "started", summary: value.summaryId ?? state.summary };
    case "compacted":
      return { ...state, items: [...state.items, { kind: "note", id: `context-${ours.seq}`, results: value.results }] };
    default:
      return state;
  }
}

function text(shown, event, ours) {
  const id = event.messageId;
  const isUser = event.role === "user" || shown.some((i) => i.kind === "said" && i.id === id);
  if (isUser) {
    const make = () => items.said({ id, content: ours.content ?? "", metadata: { workbench: { kind: ours.kind } } }, event.timestamp);
    if (event.type === "TEXT_MESSAGE_START") return items.put(shown, "said", id, () => ({}), make);
    if (event.type !== "TEXT_MESSAGE_CONTENT") return shown;
    return items.put(shown, "said", id, (i) => ({ text: i.files.length ? i.text || event.delta : i.text + event.delta }));
  }
  if (event.type === "TEXT_MESSAGE_START") return items.put(shown, "text", id, () => ({}), () => items.text(id));
  if (event.type === "TEXT_MESSAGE_END") return items.put(shown, "text", id, () => ({ open: false, none: Boolean(ours.notInDocuments) }));
  return items.put(shown, "text", id, (i) => ({ text: i.text + event.delta }), () => items.text(id));
}

function thought(shown, event, ours) {
  const id = event.messageId;
  if (event.type === "REASONING_MESSAGE_START") {
    return items.put(shown, "thought", id, () => ({ open: true }), () => items.thought(id, event.timestamp));
  }
  if (event.type === "REASONING_MESSAGE_END") {
    return items.put(shown, "thought", id, (i) => ({
      open: false,
      ms: ours.reasoningMs ?? (event.timestamp && i.startedAt ? event.timestamp - i.startedAt : null),
    }));
  }
  return items.put(shown, "thought", id, (i) => ({ text: i.text + event.delta }));
}

function tool(shown, event, ours) {
  const id = event.toolCallId;
  switch (event.type) {
    case "TOOL_CALL_START":
      return items.put(shown, "tool", id, () => ({}), () => items.tool(event, event.timestamp));
    case "TOOL_CALL_ARGS":
      return items.put(shown, "tool", id, (i) => ({ args: i.args + event.delta }));
    case "TOOL_CALL_END":
      return items.put(shown, "tool", id, (i) => (i.state === "preparing" ? { state: "running" } : {}));
    default:
      return items.put(shown, "tool", id, (i) => items.returned(i, event, ours));
  }
}

function activity(state, event) {
  const before = state.activities[event.messageId];
  const content = event.type === "ACTIVITY_SNAPSHOT" ? event.content : items.patched(before ?? {}, event.patch ?? []);
  const next = { ...state, activities: { ...state.activities, [event.messageId]: content } };
  if (content.status === "over") return { ...next, waiting: null };
  if (content.status === "waiting") return { ...next, waiting: { delayMs: content.delayMs ?? 0, at: event.timestamp ?? 0 } };
  if (!content.toolCallId || content.status !== "running") return next;
  const { text: line = "", done = null, total = null } = content;
  return {
    ...next,
    items: items.put(state.items, "tool", content.toolCallId, (i) =>
      i.state === "running" || i.state === "preparing" ? { state: "running", progress: { text: line, done, total } } : {}),
  };
}

function over(state, event, phase, error) {
  const endedAt = event.timestamp ?? null;
  return { ...state, phase, error, endedAt, waiting: null, summarising: false, items: items.settle(state.items, endedAt) };
}

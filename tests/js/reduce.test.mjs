// node --test tests/js/
import "./resolve.mjs";

import assert from "node:assert/strict";
import { test } from "node:test";

const { begun, following, idle, isOver, reduce, stopping } = await import("reduce");
const { patched } = await import("items");

let seq = 0;
const frame = (type, more = {}, extra = {}) => ({
  type, timestamp: 1000 + seq * 10, ...more, metadata: { workbench: { threadId: "t", runId: "r", seq: ++seq, ...extra } },
});
const start = (messages = [{ id: "u", role: "user", content: "Hello" }]) => {
  seq = 0;
  return frame("RUN_STARTED", { threadId: "t", runId: "r", input: { messages } });
};
const play = (events, state = idle("t")) => events.reduce(reduce, state);

test("text grows, finished blocks come as HTML, the rest stays text", () => {
  const state = play([
    start(),
    frame("TEXT_MESSAGE_START", { messageId: "m", role: "assistant" }),
    frame("TEXT_MESSAGE_CONTENT", { messageId: "m", delta: "One.\n\nTw" }),
    frame("CUSTOM", { name: "workbench.block", value: { messageId: "m", index: 0, html: "<p>One.</p>", end: 6 } }),
    frame("TEXT_MESSAGE_CONTENT", { messageId: "m", delta: "o" }),
  ]);
  const item = state.items.at(-1);
  assert.deepEqual(item.blocks, ["<p>One.</p>"]);
  assert.equal(item.text.slice(item.from), "Two");
  assert.equal(state.phase, "running");
});

test("the optimistic message is the same item as the server's echo", () => {
  const message = { id: "u", role: "user", content: "Hello" };
  const sent = begun(idle("t"), { runId: "r", message, at: 5 });
  assert.equal(sent.phase, "sending");
  const state = reduce(sent, start());
  assert.equal(state.items.length, 1);
  assert.equal(state.items[0].at, 5);
  assert.equal(state.phase, "running");
});

test("a frame seen before changes nothing", () => {
  const opening = [start(), frame("TEXT_MESSAGE_START", { messageId: "m", role: "assistant" })];
  const delta = frame("TEXT_MESSAGE_CONTENT", { messageId: "m", delta: "x" });
  const state = play([...opening, delta]);
  assert.equal(reduce(state, delta), state);
  assert.equal(play(opening, state), state);
});

test("a missing frame is noticed and not passed over", () => {
  const state = play([start(), frame("TEXT_MESSAGE_START", { messageId: "m", role: "assistant" })]);
  seq += 1;
  const after = reduce(state, frame("TEXT_MESSAGE_CONTENT", { messageId: "m", delta: "lost" }));
  assert.equal(after.gap, true);
  assert.equal(after.seq, state.seq);
  assert.equal(after.items, state.items);
});

test("a tool row lives from its announcement to its result", () => {
  const opening = play([start(), frame("TOOL_CALL_START", { toolCallId: "c", toolCallName: "read_artifact" })]);
  assert.equal(opening.items.at(-1).state, "preparing");
  const running = play([
    frame("TOOL_CALL_ARGS", { toolCallId: "c", delta: '{"name":' }),
    frame("TOOL_CALL_ARGS", { toolCallId: "c", delta: '"a.txt"}' }),
    frame("TOOL_CALL_END", { toolCallId: "c" }),
    frame("ACTIVITY_SNAPSHOT", { messageId: "activity-c", activityType: "workbench.tool", content: { toolCallId: "c", status: "running" } }),
    frame("ACTIVITY_DELTA", { messageId: "activity-c", patch: [
      { op: "add", path: "/text", value: "page 2" }, { op: "add", path: "/done", value: 2 }, { op: "add", path: "/total", value: 9 },
    ] }),
  ], opening);
  assert.deepEqual(running.items.at(-1).progress, { text: "page 2", done: 2, total: 9 });
  const artifacts = [{ artifactId: "x", version: 1, name: "a" }];
  const done = reduce(running, frame("TOOL_CALL_RESULT", { messageId: "tr", toolCallId: "c", content: "text" },
    { status: "ok", summary: "12 lines", elapsedMs: 40, artifacts }));
  const { state, summary, ms } = done.items.at(-1);
  assert.deepEqual([state, summary, ms], ["done", "12 lines", 40]);
});

for (const [status, shown] of [["error", "failed"], ["timeout", "failed"], ["lost", "failed"], ["denied", "failed"], ["cancelled", "cancelled"]]) {
  test(`a result with status ${status} shows as ${shown}`, () => {
    const state = play([
      start(), frame("TOOL_CALL_START", { toolCallId: "c", toolCallName: "x" }),
      frame("TOOL_CALL_RESULT", { messageId: "tr", toolCallId: "c", content: "" }, { status }),
    ]);
    assert.equal(state.items.at(-1).state, shown);
  });
}

test("stop shows at once and outlives the frames that were on their way", () => {
  let state = play([start(), frame("TEXT_MESSAGE_START", { messageId: "m", role: "assistant" })]);
  state = stopping(state);
  assert.equal(state.phase, "stopping");
  state = reduce(state, frame("TEXT_MESSAGE_CONTENT", { messageId: "m", delta: "late" }));
  assert.equal(state.phase, "stopping");
  state = reduce(state, frame("RUN_FINISHED", { outcome: { type: "cancelled" } }));
  assert.equal(state.phase, "stopped");
  assert.equal(stopping(state), state);
});

test("nothing of a run that is over goes on working", () => {
  const state = play([
    start(),
    frame("REASONING_MESSAGE_START", { messageId: "rm", role: "reasoning" }),
    frame("TOOL_CALL_START", { toolCallId: "c", toolCallName: "x" }),
    frame("TEXT_MESSAGE_START", { messageId: "m", role: "assistant" }),
    frame("RUN_ERROR", { code: "lost", message: "gone" }, { reference: "abc", retryable: true }),
  ]);
  assert.equal(state.phase, "lost");
  assert.ok(isOver(state));
  assert.deepEqual(state.error, { code: "lost", message: "gone", reference: "abc", retryable: true });
  assert.ok(state.items.every((i) => !i.open && i.state !== "running" && i.state !== "preparing"));
});

test("a steered message is a message of the person in the middle of the run", () => {
  const state = play([
    start(),
    frame("TEXT_MESSAGE_START", { messageId: "s", role: "user" }, { kind: "steer" }),
    frame("TEXT_MESSAGE_CONTENT", { messageId: "s", delta: "In green" }),
    frame("TEXT_MESSAGE_END", { messageId: "s" }),
  ]);
  assert.deepEqual(state.items.map((i) => [i.kind, i.text]), [["said", "Hello"], ["said", "In green"]]);
  assert.equal(state.items[1].steer, true);
});

test("files of a message are found in its parts", () => {
  const content = [
    { type: "text", text: "Read" },
    { type: "document", source: { type: "file", value: "artifact://0a-b@3", mimeType: "text/plain" }, metadata: { name: "n.txt", sizeBytes: 7 } },
  ];
  const [item] = play([start([{ id: "u", role: "user", content }])]).items;
  assert.equal(item.text, "Read");
  assert.deepEqual(item.files, [{ artifactId: "0a-b", version: 3, name: "n.txt", mime: "text/plain", sizeBytes: 7 }]);
});

test("waiting for a busy model is shown until it is over", () => {
  const content = { status: "waiting", delayMs: 8000, reason: "429" };
  let state = play([start(), frame("ACTIVITY_SNAPSHOT", { messageId: "waiting-r", activityType: "workbench.waiting", content })]);
  assert.equal(state.waiting.delayMs, 8000);
  state = reduce(state, frame("ACTIVITY_DELTA", { messageId: "waiting-r", patch: [{ op: "add", path: "/status", value: "over" }] }));
  assert.equal(state.waiting, null);
});

test("the history run of a snapshot, other runs and unknown events are passed over", () => {
  const state = play([start()]);
  const history = { type: "RUN_STARTED", threadId: "t", runId: "h", metadata: { workbench: { threadId: "t", runId: "h", history: true } } };
  assert.equal(reduce(state, history), state);
  const other = { type: "RUN_FINISHED", metadata: { workbench: { threadId: "t", runId: "old", seq: 9 } } };
  assert.equal(reduce(state, other), state);
  assert.equal(reduce(state, frame("SOMETHING_NEW")).seq, state.seq + 1);
});

test("a run found on the page is followed from its first frame", () => {
  const state = following(idle("t"), "r");
  assert.equal(reduce(state, start()).items.length, 1);
  assert.equal(following(state, "r"), state);
});

test("2,000 events are replayed in less than 300 ms", () => {
  const events = [start(), frame("TEXT_MESSAGE_START", { messageId: "m", role: "assistant" })];
  for (let i = 0; i < 2000; i++) events.push(frame("TEXT_MESSAGE_CONTENT", { messageId: "m", delta: "合同 and words " }));
  const began = performance.now();
  const state = play(events);
  assert.equal(state.items.at(-1).text.length, 2000 * "合同 and words ".length);
  assert.ok(performance.now() - began < 300);
});

test("patches set, replace and remove along a path", () => {
  assert.deepEqual(patched({ a: { b: 1 } }, [{ op: "replace", path: "/a/b", value: 2 }, { op: "add", path: "/c~1d", value: 3 }]), { a: { b: 2 }, "c/d": 3 });
  assert.deepEqual(patched({ a: 1, l: [1, 2] }, [{ op: "remove", path: "/a" }, { op: "add", path: "/l/-", value: 3 }]), { l: [1, 2, 3] });
});

test("a run that replaces what stood there says so, and which model it asks", () => {
  const begin = start();
  begin.metadata.workbench.model = "small";
  const state = play([begin, frame("MESSAGES_SNAPSHOT", { messages: [] }), frame("RUN_FINISHED", {})]);
  assert.equal(state.forked, true);
  assert.equal(state.model, "small");
  assert.equal(play([start()]).forked, false);
});

test("citations come before the text that uses them, once each; that documents do not answer is kept", () => {
  const value = { messageId: "m", number: 1, id: "k3f2ab", documentId: "d", version: 1, name: "a.md", start: 0, end: 9, place: {}, quote: "q" };
  const state = play([
    start(),
    frame("TEXT_MESSAGE_START", { messageId: "m", role: "assistant" }),
    frame("CUSTOM", { name: "workbench.citation", value }),
    frame("CUSTOM", { name: "workbench.citation", value }),
    frame("TEXT_MESSAGE_CONTENT", { messageId: "m", delta: "So. [1](#c-k3f2ab)" }),
    frame("TEXT_MESSAGE_END", { messageId: "m" }, { notInDocuments: true }),
  ]);
  const item = state.items.at(-1);
  assert.deepEqual(item.citations, [value]);
  assert.equal(item.none, true);
});

const context = (value) => frame("CUSTOM", { name: "workbench.context", value });

test("what the run says of its context: the newest window, a summary being made, results in short form", () => {
  const opening = play([start(), context({ kind: "window", tokens: 5, window: 10, source: "guess" })]);
  assert.equal(opening.window.tokens, 5);
  const making = play([context({ kind: "summarising", state: "started", tokensBefore: 9 })], opening);
  assert.deepEqual([making.summarising, making.summary], [true, ""]);
  const made = play([
    context({ kind: "summarising", state: "done", tokensBefore: 9, tokensAfter: 4, summaryId: "s1", position: 7 }),
    context({ kind: "compacted", upTo: 4, results: 2, tokens: 90 }),
    context({ kind: "window", tokens: 4, window: 10, source: "guess" }),
  ], making);
  assert.deepEqual([made.summarising, made.summary, made.window.tokens], [false, "s1", 4]);
  assert.deepEqual(made.items.at(-1), { kind: "note", id: "context-5", results: 2 });
  const again = play([context({ kind: "summarising", state: "started", tokensBefore: 9 }), context({ kind: "of tomorrow" })], made);
  assert.equal(again.summary, "s1");
  const over = play([frame("RUN_FINISHED", { outcome: { type: "cancelled" } })], again);
  assert.deepEqual([over.summarising, over.phase], [false, "stopped"]);
});

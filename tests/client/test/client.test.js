import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { randomUUID } from "node:crypto";
import { setTimeout } from "node:timers/promises";
import { HttpAgent } from "@ag-ui/client";
import { SocketAgent } from "../agent.js";
import { startServer } from "../server.js";

let server;
before(async () => {
  server = await startServer();
});
after(async () => {
  assert.equal(await server.stop(), 0, server.log());
});

const PICK = { name: "pick_colour", description: "Let the person pick", parameters: { type: "object", properties: {} } };
const message = (content) => ({ id: randomUUID(), role: "user", content });
const texts = (agent) => agent.messages.filter((m) => m.role === "assistant" && m.content).map((m) => m.content);
const shape = (agent) => agent.messages.filter((m) => m.role !== "activity").map(({ id, role, content }) => ({ id, role, content: content ?? "" }));

function overSocket(threadId = randomUUID(), token = server.tokens.alice) {
  return new SocketAgent({ url: `${server.ws}/ws/agui/`, token, threadId });
}

function overHttp(threadId = randomUUID(), token = server.tokens.alice) {
  return new HttpAgent({ url: `${server.http}/agui/`, headers: { Authorization: `Bearer ${token}` }, threadId });
}

// Asks and returns what the client saw, with its verifier and applier in between.
async function ask(agent, content, parameters = {}) {
  const seen = { events: [], failed: null };
  if (content) agent.addMessage(message(content));
  await agent
    .runAgent({ runId: randomUUID(), ...parameters }, { onEvent: ({ event }) => void seen.events.push(event), onRunErrorEvent: ({ event }) => void (seen.failed = event) })
    .catch((error) => (seen.thrown = error));
  seen.types = seen.events.map((event) => event.type);
  seen.end = seen.events.at(-1);
  return seen;
}

// Resolves once the agent holds this text. Subscribers that come after the start of a run hear nothing, so it looks.
async function holds(agent, wanted) {
  const until = Date.now() + 15_000;
  while (!texts(agent).some((text) => text.includes(wanted))) {
    assert.ok(Date.now() < until, `"${wanted}" never came`);
    await setTimeout(5);
  }
}

for (const [name, make] of [["WebSocket", overSocket], ["SSE", overHttp]]) {
  describe(`over ${name}`, () => {
    test("plain: reasoning and text arrive, and the run succeeds", async () => {
      const agent = make();
      const seen = await ask(agent, "plain");
      assert.deepEqual(texts(agent), ["Good day."]);
      assert.equal(agent.messages.find((m) => m.role === "reasoning").content, "Let me see.");
      assert.equal(seen.end.outcome.type, "success");
      assert.equal(agent.messages.filter((m) => m.role === "user").length, 1, "the echo of the turn doubles nothing");
    });

    test("several turns on one thread", async () => {
      const agent = make();
      await ask(agent, "one");
      await ask(agent, "two");
      assert.deepEqual(texts(agent), ["You said: one", "You said: two"]);
    });

    test("tools: call, arguments, result, answer", async () => {
      const agent = make();
      await ask(agent, "tools");
      const call = agent.messages.find((m) => m.toolCalls)?.toolCalls[0];
      assert.deepEqual(JSON.parse(call.function.arguments), { q: "a" });
      assert.equal(agent.messages.find((m) => m.role === "tool").content, "found a");
      assert.deepEqual(texts(agent), ["I look.", "Results: found a."]);
    });

    test("parallel tools: each call its own result", async () => {
      const agent = make();
      await ask(agent, "parallel");
      const results = agent.messages.filter((m) => m.role === "tool").map((m) => [m.toolCallId, m.content]);
      assert.equal(results.length, 2);
      const calls = agent.messages.flatMap((m) => m.toolCalls ?? []);
      for (const call of calls) {
        const [, content] = results.find(([id]) => id === call.id);
        assert.equal(content, `found ${JSON.parse(call.function.arguments).q}`);
      }
    });

    test("citations: the passage comes before the link to it, and again with the history", async () => {
      const agent = make();
      const seen = await ask(agent, "cited");
      assert.deepEqual(texts(agent), ["Costs fell [1](#c-k3f9ab)."]);
      const shown = seen.events.findIndex(({ type, name }) => type === "CUSTOM" && name === "workbench.citation");
      const linked = seen.events.findIndex(({ type, delta }) => type === "TEXT_MESSAGE_CONTENT" && delta.includes("#c-k3f9ab"));
      assert.ok(shown >= 0 && shown < linked);
      const { messageId, ...citation } = seen.events[shown].value;
      assert.equal(messageId, agent.messages.at(-1).id);
      assert.equal(citation.quote, "Costs fell by 5 %.");
      const later = overSocket(agent.threadId);
      await later.connectAgent();
      assert.deepEqual(later.messages.at(-1).metadata.workbench.citations, [citation]);
    });

    test("external tools: the run waits for the client's answer and goes on with it", async () => {
      const agent = make();
      const seen = await ask(agent, "external", { tools: [PICK] });
      const [pending] = seen.end.outcome.pendingToolCallIds;
      agent.addMessage({ id: randomUUID(), role: "tool", toolCallId: pending, content: "red" });
      await ask(agent, null, { tools: [PICK] });
      assert.deepEqual(texts(agent), ["Results: red."]);
      assert.equal(agent.messages.filter((m) => m.role === "tool").length, 1);
    });

    test("error: one RUN_ERROR, the partial text stays, the next question works", async () => {
      const agent = make();
      const seen = await ask(agent, "error");
      assert.equal(seen.failed.code, "stream_cut");
      assert.equal(seen.failed.metadata.workbench.retryable, true);
      assert.deepEqual(texts(agent), ["I try"]);
      await ask(agent, "again");
      assert.deepEqual(texts(agent).at(-1), "You said: again");
    });

    test("a request that cannot become a run makes no events", async () => {
      const agent = make();
      const seen = await ask(agent, null);
      assert.ok(seen.thrown);
      assert.deepEqual(seen.events, []);
    });
  });
}

test("cancel over WebSocket: the partial text is kept and the outcome says so", async () => {
  const agent = overSocket();
  const running = ask(agent, "slow");
  await holds(agent, "a ti");
  agent.abortRun();
  const seen = await running;
  assert.equal(seen.end.outcome.type, "cancelled");
  assert.deepEqual(texts(agent), ["Once upon a ti"]);
});

test("cancel over HTTP: another request stops the stream", async () => {
  const agent = overHttp();
  const runId = randomUUID();
  const running = ask(agent, "slow", { runId });
  await holds(agent, "a ti");
  const answer = await fetch(`${server.http}/agui/cancel/`, {
    method: "POST",
    headers: { Authorization: `Bearer ${server.tokens.alice}`, "Content-Type": "application/json" },
    body: JSON.stringify({ threadId: agent.threadId, runId }),
  });
  assert.equal(answer.status, 200);
  assert.equal((await running).end.outcome.type, "cancelled");
});

test("5.13 reconnect mid-word: an error first, then the same message goes on to its end", async () => {
  const agent = overSocket();
  const running = ask(agent, "slow");
  await holds(agent, "a ti");
  agent.drop();
  const seen = await running;
  assert.match(seen.thrown.message, /connection lost/);
  assert.ok(!seen.types.includes("RUN_FINISHED"), "no end is made up");
  const rest = agent.connectAgent({ runId: randomUUID() });
  server.go();
  await rest;
  assert.deepEqual(texts(agent), ["Once upon a time, the end."]);
});

test("join from a second client: history, then the run that goes on, every text once", async () => {
  const first = overSocket();
  await ask(first, "plain");
  const running = ask(first, "slow");
  await holds(first, "a ti");
  const second = overSocket(first.threadId);
  const joined = second.connectAgent({ runId: randomUUID() });
  await holds(second, "a ti");
  server.go();
  await Promise.all([running, joined]);
  assert.deepEqual(texts(second), ["Good day.", "Once upon a time, the end."]);
  assert.deepEqual(shape(second), shape(first));
});

test("a second client of somebody else sees nothing", async () => {
  const hers = overSocket();
  await ask(hers, "plain");
  const his = overSocket(hers.threadId, server.tokens.bob);
  await assert.rejects(his.connectAgent({ runId: randomUUID() }), { code: "thread_not_found" });
  assert.deepEqual(his.messages, []);
});

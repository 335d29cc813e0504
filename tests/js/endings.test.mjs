// node --test tests/js/
import "./resolve.mjs";

import assert from "node:assert/strict";
import { test } from "node:test";

const words = { summarising: "Summarising earlier messages…", writing: "Writing the answer", starting: "Starting", working: "Working" };
globalThis.document = {
  getElementById: (id) => (id === "words" ? { textContent: JSON.stringify(words) } : null),
  documentElement: { lang: "en" },
};
const { doing } = await import("endings");
const run = (more) => doing({ phase: "running", waiting: null, summarising: false, items: [], ...more }, 0);

test("a summary that is being made is what a run does; results in short form are nothing it does", () => {
  const note = { kind: "note", id: "context-4", results: 2 };
  assert.equal(run({ summarising: true, items: [{ kind: "text", open: true }] }), words.summarising);
  assert.equal(run({ items: [{ kind: "said" }, note] }), words.starting);
  assert.equal(run({ items: [{ kind: "text", open: true }, note] }), words.writing);
});

// node --test tests/js/
import "./resolve.mjs";

import assert from "node:assert/strict";
import { test } from "node:test";

process.env.TZ = "UTC";
globalThis.document = { getElementById: () => null, documentElement: { lang: "en" }, addEventListener: () => {} };
const { address, where } = await import("cite");
const { unused } = await import("items");

test("a message stands at its place in its conversation, a passage in its document", () => {
  const said = (threadId, id = "u1") => address({ message: { threadId, id } });
  assert.equal(said("3b1f-2a"), "/c/3b1f-2a/?at=u1");
  assert.equal(said("冷 库", "u&1"), "/c/%E5%86%B7%20%E5%BA%93/?at=u%261");
  assert.equal(said("a/b"), "/c/~YS9i/?at=u1"); // as workbench/addresses.py writes it
  assert.equal(said("~x"), "/c/~fng/?at=u1");
  assert.equal(said(".."), "/c/~Li4/?at=u1");
  assert.equal(said("?/前"), "/c/~Py_liY0/?at=u1");
  assert.equal(address({ documentId: "d", version: 2, start: 1, end: 9 }), "/library/d/?v=2&view=text&at=1-9");
});

test("a message is placed by when it was written, the year only if it is another one", () => {
  const year = new Date().getFullYear();
  const on = (at) => where({ message: { threadId: "t", id: "u", at } });
  assert.equal(on(`${year}-05-03T14:02:59+00:00`), "3 May, 14:02");
  assert.equal(on("2019-05-03T00:02:03.450000+00:00"), "3 May 2019, 00:02");
  assert.equal(on(undefined), "");
});

test("a document without a passage is led to as a whole", () => {
  assert.equal(address({ documentId: "d", version: 2 }), "/library/d/?v=2");
});

const tool = (name, data) => ({ kind: "tool", name, data });
const text = (...citations) => ({ kind: "text", citations });
const hit = (documentId, version = 1) => ({ id: "k3f2ab", documentId, version, name: `${documentId}.md`, place: "" });

test("what was found and is not cited is left, once each, in the order it was found", () => {
  const items = [
    tool("search_knowledge", { hits: [hit("a"), hit("b"), hit("a"), hit("c", 1)] }),
    tool("read_document", { documentId: "c", name: "c.md", version: 2, anchor: "line 1" }),
    text({ documentId: "b" }),
  ];
  assert.deepEqual(unused(items), [
    { documentId: "a", version: 1, name: "a.md" },
    { documentId: "c", version: 2, name: "c.md" },
  ]);
});

test("other tools, and calls that failed, find nothing", () => {
  assert.deepEqual(unused([tool("list_documents", { documents: 3 }), tool("session_search", { hits: [{ session_id: "t", message_id: "u1" }] }), tool("search_knowledge", {}), tool("read_document", {}), text()]), []);
});

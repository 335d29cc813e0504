// node --test tests/js/
import "./resolve.mjs";

import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.document = { getElementById: () => null, documentElement: { lang: "en" }, addEventListener: () => {} };
const { percent, sent } = await import("gauge");

test("the share is in whole percent, never 0 of something and never of nothing", () => {
  assert.equal(percent({ tokens: 20_970, window: 32_768 }), 64);
  assert.equal(percent({ tokens: 10, window: 1_000_000 }), 1);
  assert.equal(percent({ tokens: 0, window: 32_768 }), 0);
  assert.equal(percent({ tokens: 40_000, window: 32_768 }), 122);
  assert.equal(percent({ tokens: 5, window: 0 }), 0);
});

test("what is left out is no part of what is sent", () => {
  const parts = [{ tag: "system", tokens: 9 }, { tag: "dropped", tokens: 90 }, { tag: "recall", tokens: 0 }];
  assert.deepEqual(sent({ tokens: 9, parts }), [{ tag: "system", tokens: 9 }]);
  assert.deepEqual(sent({ tokens: 9 }), [{ tag: "history", tokens: 9 }]);
});

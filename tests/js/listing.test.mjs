// node --test tests/js/
import "./resolve.mjs";

import assert from "node:assert/strict";
import { mock, test } from "node:test";

globalThis.document = { getElementById: () => null, querySelector: () => null, querySelectorAll: () => [], documentElement: { lang: "en" } };
globalThis.location = { href: "http://desk/library/" };
globalThis.addEventListener = () => {};
const { Listing } = await import("listing");

// A list whose page comes when the test lets it.
function listing() {
  mock.timers.reset();
  mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"] });
  const made = new Listing({ rows: "", on: { changed() {}, said() {} } });
  const shown = [];
  made.show = () => new Promise((come) => { shown.push(come); });
  return { made, shown };
}
const settled = () => new Promise((done) => { setImmediate(done); });

test("changes after each other do not put off the counts", () => {
  const { made, shown } = listing();
  for (let second = 0; second < 3; second += 1) {
    made.refresh(1500);
    mock.timers.tick(1000);
  }
  assert.equal(shown.length, 1);
});

test("what is due sooner comes sooner, once", () => {
  const { made, shown } = listing();
  made.refresh(1500);
  made.refresh(0);
  mock.timers.tick(1);
  assert.equal(shown.length, 1);
  mock.timers.tick(2000);
  assert.equal(shown.length, 1);
});

test("a change while the page is on its way asks once more after it", async () => {
  const { made, shown } = listing();
  made.refresh(0);
  mock.timers.tick(1);
  made.refresh();
  made.refresh();
  mock.timers.tick(1000);
  assert.equal(shown.length, 1);
  shown[0]();
  await settled();
  mock.timers.tick(1000);
  assert.equal(shown.length, 2);
});

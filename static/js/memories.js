// The memories page: the search, what is done to one memory or to those that are ticked, forms that lose nothing.
import { counts, watchForms } from "memoryforms";
import { boxes, MemoryList, row, ticked, watchRows } from "memorylist";
import { Socket } from "socket";
import { tell } from "toast";
import { say, slot } from "words";

const byId = (id) => document.getElementById(id);
const main = byId("main");
const q = byId("filters").elements.q;
const going = new Set(); // what the server is asked to delete
const deleted = new Set(); // what it said it deleted, until it is seen that it did

// A form that an address opened is the page's from now on: a fresh list must not open it again.
const address = byId("filters").getAttribute("action");
if (location.pathname !== address || /[?&](edit|add)\b/.test(location.search)) history.replaceState(null, "", address);
const list = new MemoryList({ shown, failed: () => { if (deleted.size) fail(); } });
const socket = new Socket(`${location.origin.replace(/^http/, "ws")}/ws/agui/`, {
  open: () => { if (socket.reopened) list.refresh(); socket.reopened = true; }, // what changed in between was not heard
  frame: (frame) => { if (frame.type === "thread" && /^(memory|deleted|restored)$/.test(frame.changed)) list.refresh(); },
  lost: () => {},
  signedOut: () => location.reload(),
});

document.addEventListener("click", pressed);
document.addEventListener("change", chosen);
document.addEventListener("input", typed);
document.addEventListener("submit", submitted);
watchRows({ remove });
document.body.addEventListener("memories-changed", (e) => changed(e.detail)); // HX-Trigger of every change
document.body.addEventListener("htmx:afterSwap", ticks);
watchForms(Number(main.dataset.most));
for (const kind of ["htmx:responseError", "htmx:sendError"]) document.body.addEventListener(kind, failed);
shown();
main.dataset.ready = "";

function pressed(e) {
  const act = e.target.closest("[data-act]")?.dataset.act;
  if (act === "add-memory") { e.preventDefault(); openNew(true); }
  else if (act === "close-new") { e.preventDefault(); openNew(false); }
  else if (act === "drop-row") { e.target.closest("tr").remove(); list.refresh(0); }
  else if (act === "delete-memory") remove([e.target.closest("tr").dataset.memory]);
  else if (act === "untick") tick(false);
  const link = e.target.closest("a[data-show]");
  if (!link || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  clearTimeout(timer);
  if (!link.closest(".empty")) return void list.show(withTyped(link.href));
  q.value = "";
  list.show(link.href);
  q.focus();
}

// What was typed a moment ago is not in the addresses of the list yet.
function withTyped(href) {
  const address = new URL(href);
  if (q.value.trim()) address.searchParams.set("q", q.value.trim());
  else address.searchParams.delete("q");
  return address.href;
}

function openNew(open) {
  const form = byId("new-memory");
  form.hidden = !open;
  (open ? form.querySelector("textarea") : document.querySelector("[data-act=add-memory]")).focus();
  counts();
}

function chosen(e) {
  if (e.target.id === "tick-all") tick(e.target.checked);
  else if (e.target.matches("#memories [type=checkbox]")) ticks();
  if (e.target.matches("#filters [data-submit]")) filter(0);
}

let timer = 0;
function typed(e) {
  if (e.target.matches("#filters [type=search]") && !e.isComposing) filter(200);
}

function filter(ms) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const query = new URLSearchParams([...new FormData(byId("filters"))].filter(([, value]) => value.trim()));
    list.show(`${address}${query.size ? `?${query}` : ""}`, { replace: true });
  }, ms);
}

async function submitted(e) {
  if (e.target.matches("#filters")) {
    e.preventDefault();
    filter(0);
  } else if ("delete" in e.target.dataset) {
    e.preventDefault();
    remove(e.target.matches("#bulk") ? ticked() : [new FormData(e.target).get("id")]);
  } else if ("forget" in e.target.dataset) {
    e.preventDefault();
    const response = await post(e.target.action, new FormData(e.target));
    const error = byId("forget-error");
    error.hidden = response?.status !== 422;
    error.textContent = error.hidden ? "" : await response.text();
    if (!error.hidden) return byId("forget-word").focus();
    if (!response?.ok) return fail();
    e.target.reset();
    e.target.parentElement.open = false;
    changed(JSON.parse(response.headers.get("HX-Trigger"))["memories-changed"]);
    main.focus();
  }
  return undefined;
}

// Takes rows away at once; they come back if the server did not delete them.
async function remove(ids) {
  const rows = ids.map(row).filter(Boolean);
  const next = rows.at(-1)?.nextElementSibling ?? rows[0]?.previousElementSibling;
  for (const id of ids) going.add(id);
  hide();
  (next?.querySelector("[data-key=delete]") ?? main).focus();
  const response = await post(byId("bulk").action, new URLSearchParams(ids.map((id) => ["id", id])));
  for (const id of ids) going.delete(id);
  if (response?.ok && !response.redirected) {
    byId("toasts").innerHTML = await response.text(); // our own template, escaped by the server
    window.htmx.process(byId("toasts"));
    for (const id of ids) deleted.add(id);
  } else if (response?.status !== 404) { // 404: somebody deleted them before
    for (const id of ids) still(id, response?.status === 413 ? await response.text() : say("memoryNotDeleted"));
    return;
  }
  list.refresh(0);
}

function still(id, words) {
  const tr = row(id);
  if (!tr) return;
  tr.hidden = false;
  slot(tr, "error").hidden = false;
  slot(tr, "error-text").textContent = words;
}

// A new list is here: what was deleted must not be in it.
function shown() {
  for (const id of deleted) if (row(id)) still(id, say("memoryStill"));
  deleted.clear();
  hide();
  counts();
}

function hide() {
  for (const tr of [...going].map(row).filter(Boolean)) {
    tr.hidden = true;
    tr.querySelector("[type=checkbox]").checked = false;
  }
  ticks();
}

function tick(all) {
  for (const box of boxes()) box.checked = all;
  ticks();
}

function ticks() {
  const all = boxes().filter((box) => !box.closest("tr").hidden);
  const n = all.filter((box) => box.checked).length;
  for (const box of all) box.closest("tr").setAttribute("aria-selected", String(box.checked));
  byId("bulk").hidden = !n;
  slot(byId("bulk"), "ticked").textContent = say("ticked", { n });
  const every = byId("tick-all");
  if (!every) return;
  every.checked = n > 0 && n === all.length;
  every.indeterminate = n > 0 && n < all.length;
}

function changed({ said, undone }) {
  if (undone) deleted.clear();
  if (said) tell("told", said);
  list.refresh(0);
}

const fail = () => tell("told", say("memoryFailed"));

function failed(e) {
  if (e.target.closest?.("#memory-switch")) byId("use-memories").checked = !byId("use-memories").checked;
  if (e.target.closest?.("#memories, #new-memory, #memory-switch, #toasts")) fail();
}

function post(address, body) {
  return fetch(address, { method: "POST", body, keepalive: true, headers: { "X-CSRFToken": document.body.dataset.csrf, "HX-Request": "true" } }).catch(() => null);
}

// The library page: uploads, the list and its filters, what is done to one document or to those that are ticked.
import { askName } from "namedialog";
import { Listing, row } from "listing";
import { Socket } from "socket";
import { dropped, Uploading } from "uploading";
import { say } from "words";

const byId = (id) => document.getElementById(id);
const main = byId("main");
const csrf = document.body.dataset.csrf;
const { upload, rows, maxBytes, atOnce } = main.dataset;

const said = (words) => { byId("say").textContent = words; };
const listing = new Listing({ rows, on: { changed: ticks, said } });
const uploading = new Uploading(byId("uploads"), {
  url: upload, csrf, maxBytes: Number(maxBytes), atOnce: Number(atOnce), collection: () => main.dataset.collection,
  on: { stored: () => listing.refresh(), said },
});
const socket = new Socket(`${location.origin.replace(/^http/, "ws")}/ws/agui/`, {
  open: () => { if (socket.reopened) listing.refresh(); socket.reopened = true; }, // what changed in between was not heard
  frame: (frame) => { if (frame.type === "documents") listing.changed(frame.ids); },
  lost: () => {},
  signedOut: () => location.reload(),
});

for (const id of ["upload", "upload-folder"]) {
  byId(id).addEventListener("change", (e) => {
    uploading.add([...e.target.files].map((file) => ({ file, path: file.webkitRelativePath })));
    e.target.value = "";
  });
}
drops();
document.addEventListener("click", pressed);
document.addEventListener("change", chosen);
document.addEventListener("input", typed);
document.addEventListener("submit", submitted);
byId("documents").addEventListener("keydown", keys);
document.body.addEventListener("documents-changed", () => listing.refresh(0)); // HX-Trigger of Undo
ticks();
main.dataset.ready = "";

function drops() {
  let depth = 0;
  const hasFiles = (e) => [...(e.dataTransfer?.types ?? [])].includes("Files");
  const over = (on) => { document.body.toggleAttribute("data-drop", on); byId("drop").dataset.state = on ? "over" : ""; };
  addEventListener("dragenter", (e) => { if (hasFiles(e)) { e.preventDefault(); depth += 1; over(true); } });
  addEventListener("dragover", (e) => { if (hasFiles(e)) e.preventDefault(); });
  addEventListener("dragleave", (e) => { if (hasFiles(e) && --depth <= 0) { depth = 0; over(false); } });
  addEventListener("drop", async (e) => {
    depth = 0;
    over(false);
    if (!hasFiles(e)) return;
    e.preventDefault();
    uploading.add(await dropped(e.dataTransfer));
  });
}

function ticks() {
  const all = [...document.querySelectorAll("#documents input[name=id]")];
  const ticked = all.filter((i) => i.checked);
  const [bulk, every] = [byId("bulk"), byId("tick-all")];
  if (!bulk) return;
  for (const input of all) input.closest("tr").setAttribute("aria-selected", String(input.checked));
  bulk.hidden = !ticked.length;
  bulk.querySelector("[data-slot=ticked]").textContent = say("ticked", { n: ticked.length });
  if (!every) return;
  every.checked = ticked.length === all.length;
  every.indeterminate = ticked.length > 0 && ticked.length < all.length;
}

const tickedIds = () => [...document.querySelectorAll("#documents input[name=id]:checked")].map((i) => i.value);

function pressed(e) {
  const button = e.target.closest("[data-act]");
  const act = button?.dataset.act;
  if (act === "delete-document") remove([button.closest("tr").dataset.document]);
  else if (act === "delete-ticked") remove(tickedIds());
  else if (act === "rename-document") rename(button);
  else if (act === "read-again") post(button.dataset.address, []);
  else if (act === "untick") { for (const i of document.querySelectorAll("#documents input[name=id]:checked")) i.checked = false; ticks(); }
  else if (act === "new-collection") askName("new", main.dataset.collections, "", done);
  else if (act === "rename-collection") askName("rename", button.dataset.address, button.dataset.name, done);
  const link = e.target.closest("#documents a.chip, #documents a.btn, #documents a.sort, #collections a.row");
  if (!link || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  clearTimeout(timer);
  listing.show(link.matches(".chip, .sort") ? withTyped(link.href) : link.href);
}

// What was typed a moment ago is not in the addresses of the list yet.
function withTyped(href) {
  const address = new URL(href);
  const typed = document.querySelector("#filters input[type=search]").value.trim();
  if (typed) address.searchParams.set("q", typed);
  else address.searchParams.delete("q");
  return address.href;
}

function rename(button) {
  askName("document", button.dataset.address, button.dataset.name, done);
}

function done() {
  listing.refresh(0);
}

function chosen(e) {
  if (e.target.id === "tick-all") for (const i of document.querySelectorAll("#documents input[name=id]")) i.checked = e.target.checked;
  if (e.target.closest("#documents") && e.target.type === "checkbox") ticks();
  if (e.target.matches("#filters [data-submit]")) filter(0);
  if (e.target.id === "move-to") post(e.target.dataset.move, tickedIds(), { collection: e.target.value });
}

let timer = 0;
function typed(e) {
  if (e.target.matches("#filters input[type=search]") && !e.isComposing) filter(300);
}

function filter(ms) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const form = byId("filters");
    const query = new URLSearchParams([...new FormData(form)].filter(([, value]) => value));
    listing.show(`${form.getAttribute("action")}?${query}`, { replace: true });
  }, ms);
}

async function submitted(e) {
  if (e.target.id === "filters") {
    e.preventDefault();
    filter(0);
  } else if (e.target.closest("#collections")) { // a collection goes, its documents stay
    e.preventDefault();
    const gone = e.target.closest("[data-collection]").dataset.collection;
    await fetch(e.target.action, { method: "POST", body: new FormData(e.target), headers: { "HX-Request": "true" } }).catch(() => null);
    listing.show(gone === main.dataset.collection ? location.pathname : location.href);
  }
}

function keys(e) {
  const here = e.target.closest("tr[data-document]");
  if (!here || e.target.closest(".menu") || e.ctrlKey || e.metaKey || e.altKey) return;
  if (e.key === "F2") {
    e.preventDefault();
    rename(here.querySelector("[data-act=rename-document]"));
  } else if (e.key === "Delete") {
    e.preventDefault();
    remove([here.dataset.document]);
  } else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
    const next = here[e.key === "ArrowDown" ? "nextElementSibling" : "previousElementSibling"];
    if (!next) return;
    e.preventDefault();
    next.querySelector(e.target.matches("input") ? "input" : "a.doc-name").focus();
  }
}

async function remove(ids) {
  const next = row(ids.at(-1))?.nextElementSibling ?? row(ids[0])?.previousElementSibling;
  const html = await post(byId("bulk").querySelector("[data-act=delete-ticked]").dataset.address, ids, {}, "deleteFailed");
  if (html === null) return;
  byId("toasts").innerHTML = html; // our own template, escaped by the server
  window.htmx.process(byId("toasts"));
  for (const id of ids) row(id)?.remove();
  ticks();
  (next?.isConnected ? next.querySelector("a.doc-name") : main).focus();
  listing.refresh(0);
}

// Returns what the server answered, null if it did not do it; failed: the words for that.
async function post(address, ids, more = {}, failed = "nameFailed") {
  const body = new URLSearchParams([...ids.map((id) => ["id", id]), ...Object.entries(more)]);
  const response = await fetch(address, { method: "POST", body, headers: { "X-CSRFToken": csrf, "HX-Request": "true" } }).catch(() => null);
  if (!response?.ok || response.redirected) {
    byId("shout").textContent = say(failed);
    return null;
  }
  listing.refresh(0);
  return response.text();
}

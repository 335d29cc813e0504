// The pages of skills: the list that is searched while one types, switches, forms that count, a folder's paths.
import { Socket } from "socket";
import { tell } from "toast";
import { say, slot } from "words";

const byId = (id) => document.getElementById(id);
const main = byId("main");
const list = byId("skills");

const socket = new Socket(`${location.origin.replace(/^http/, "ws")}/ws/agui/`, {
  open: () => { if (socket.reopened) refresh(); socket.reopened = true; }, // what changed in between was not heard
  frame: (frame) => { if (frame.type === "thread" && frame.changed === "skill") refresh(); },
  lost: () => {},
  signedOut: () => location.reload(),
});

document.addEventListener("click", pressed);
document.addEventListener("input", typed);
document.addEventListener("change", chosen);
document.addEventListener("submit", submitted);
addEventListener("popstate", () => show(location.href, { keep: true }));
addEventListener("beforeunload", (e) => { if (written) e.preventDefault(); });
for (const kind of ["htmx:responseError", "htmx:sendError"]) document.body.addEventListener(kind, failed);
for (const field of document.querySelectorAll("[data-scripted]")) field.hidden = false;
for (const field of document.querySelectorAll("[data-count]")) count(field);
document.querySelector("[aria-invalid=true]")?.focus();
if (location.pathname.match(/\/(delete|restore|accept|reject)\/$/)) history.replaceState(null, "", byId("filters").action); // what is shown is the list
main.dataset.ready = "";

let asked = 0;
let soon = 0;
let written = false;

function refresh() {
  clearTimeout(soon);
  if (list) soon = setTimeout(() => show(location.href, { keep: true }), 300);
}

// Shows the list under another address without leaving; suggestions come along.
async function show(address, { keep = false } = {}) {
  if (!list) return;
  const mine = ++asked;
  const response = await fetch(address).catch(() => null);
  const fresh = response?.ok && new DOMParser().parseFromString(await response.text(), "text/html");
  if (mine !== asked) return;
  if (!fresh?.getElementById("skills")) return void told(say("skillFailed"));
  if (!keep) history.replaceState(null, "", address);
  const place = placeOf(document.activeElement);
  for (const id of ["skills", "skills-words", "scopes", "suggested"]) {
    byId(id).replaceChildren(...document.adoptNode(fresh.getElementById(id)).childNodes);
    window.htmx.process(byId(id));
  }
  if (place) document.querySelector(place)?.focus({ preventScroll: true });
}

// A selector for the same thing in a new list.
function placeOf(element) {
  const id = element?.closest("[data-skill]")?.dataset.skill;
  if (id) return `[data-skill="${CSS.escape(id)}"] ${element.matches("a") ? "a" : "input[role=switch]"}`;
  return element?.dataset.key ? `[data-key="${CSS.escape(element.dataset.key)}"]` : "";
}

function pressed(e) {
  const link = e.target.closest("a[data-show]");
  if (!link || e.ctrlKey || e.metaKey || e.shiftKey) return;
  e.preventDefault();
  const address = new URL(link.href);
  const q = byId("filters").elements.q;
  if (link.closest(".empty")) q.value = "";
  if (q.value.trim()) address.searchParams.set("q", q.value.trim());
  show(address.href);
}

let timer = 0;
function typed(e) {
  if (e.target.dataset.count) count(e.target);
  if (e.target.closest("[data-draft]")) written = true;
  if (e.target.matches("#filters [type=search]") && !e.isComposing) filter(200);
}

function filter(ms) {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const query = new URLSearchParams([...new FormData(byId("filters"))].filter(([, value]) => value.trim()));
    show(`${byId("filters").getAttribute("action")}${query.size ? `?${query}` : ""}`);
  }, ms);
}

function chosen(e) {
  if (e.target.matches("select[data-submit]")) e.target.form.requestSubmit();
}

function submitted(e) {
  if (e.target.id === "filters") {
    e.preventDefault();
    filter(0);
  }
  if (e.target.id === "import") paths(e.target);
  written = false;
}

// A browser sends the names of a folder's files without their folders, so they go along, in the same order.
function paths(form) {
  for (const old of form.querySelectorAll("input[name=path]")) old.remove();
  for (const file of [...form.querySelectorAll("[type=file]")].flatMap((input) => [...input.files])) {
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name: "path", value: file.webkitRelativePath || file.name });
    form.append(field);
  }
  slot(form, "state").textContent = say("skillReading");
}

function count(field) {
  const [n, most] = [[...field.value].length, Number(field.dataset.most)]; // characters as the server counts them
  const shows = byId(field.dataset.count);
  shows.textContent = say("characters", { n: n.toLocaleString(), most: most.toLocaleString() });
  shows.toggleAttribute("data-over", n > most);
}

function failed(e) {
  const box = e.target.closest?.("[data-switch]")?.querySelector("[role=switch]");
  if (box) box.checked = !box.checked;
  told(say("skillFailed"));
}

function told(words) {
  if (byId("t-told")) tell("told", words); // not every page that this script is on shows toasts
}

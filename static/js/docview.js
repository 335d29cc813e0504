// What a document does in the page and in the panel: the cited passage comes into sight, n and p walk through changes,
// an edit is kept in this browser until it is saved.
import { say, slot } from "words";

const KEEP_MS = 7 * 24 * 3600 * 1000;

// To be called for every document that was just put into root.
export function showDocument(root) {
  const hit = root.querySelector(".hit");
  if (hit) {
    const box = hit.closest(".views");
    const lead = Math.max(48, (box.clientHeight - hit.offsetHeight) / 3);
    box.scrollTop += hit.getBoundingClientRect().top - box.getBoundingClientRect().top - lead;
  }
  const form = root.querySelector("form[data-draft]");
  if (form) draft(form, root.querySelector("[data-document]").dataset);
}

// Once per page. go(address): show a document another way than by leaving; null = the browser follows the link.
export function watchDocument(root, go = null) {
  root.addEventListener("click", (e) => {
    const act = e.target.closest("[data-act]")?.dataset.act;
    if (act === "change-before") walk(root, -1);
    else if (act === "change-after") walk(root, 1);
    if (e.target.closest("[data-discard]")) forgetDraft(root.querySelector("[data-document]").dataset);
    const link = e.target.closest("a[href]");
    if (link?.matches(".note-mark")) return void footnote(e, link);
    if (!go || !link || e.defaultPrevented || e.ctrlKey || e.metaKey || e.shiftKey || e.button || !inside(link)) return;
    e.preventDefault();
    go(link.href);
  });
  root.addEventListener("change", (e) => { if (e.target.matches("[data-submit]")) e.target.form.requestSubmit(); });
  root.addEventListener("submit", (e) => {
    const form = e.target;
    if (!go || !form.matches("[data-panel]")) return;
    e.preventDefault();
    const data = new FormData(form);
    if (form.method === "get") go(`${form.action}?${new URLSearchParams(data)}`);
    else go(form.action, data);
  });
  document.addEventListener("keydown", (e) => {
    if (e.key !== "n" && e.key !== "p") return;
    if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest?.("input, textarea, select, [contenteditable]")) return;
    if (!root.querySelector(".diff-row[data-change]") || !root.getClientRects().length) return;
    e.preventDefault();
    walk(root, e.key === "n" ? 1 : -1);
  });
}

// From a mark to its footnote and back, without an entry in the history: going back leaves the document.
function footnote(e, link) {
  const end = document.getElementById(link.hash.slice(1));
  e.preventDefault();
  end?.scrollIntoView({ block: "center" });
  end?.focus({ preventScroll: true });
}

// A text that was saved or given up needs no draft any more. dataset: of the [data-document] that is shown.
export function forgetDraft(dataset) {
  localStorage.removeItem(draftKey(dataset));
}

function inside(link) {
  return !link.hasAttribute("download") && !("whole" in link.dataset) && !link.target && !link.hasAttribute("hx-get")
    && /^\/library\/[0-9a-f-]{36}\/$/.test(link.pathname) && link.origin === location.origin;
}

function walk(root, step) {
  const all = [...root.querySelectorAll(".diff-row[data-change]")];
  if (!all.length) return;
  const at = all.findIndex((row) => row.hasAttribute("aria-current"));
  const next = all[(at < 0 ? (step > 0 ? 0 : all.length - 1) : at + step + all.length) % all.length];
  for (const row of all) row.removeAttribute("aria-current");
  next.setAttribute("aria-current", "true");
  next.scrollIntoView({ block: "center" });
  next.focus({ preventScroll: true });
  const now = slot(root, "change");
  if (now) now.textContent = say("change", { n: next.dataset.change, total: all.length });
}

const draftKey = ({ document: id }) => `edit:${id}`;

function draft(form, dataset) {
  const key = draftKey(dataset);
  const field = form.elements.text;
  const note = slot(form, "kept");
  const first = field.value;
  const kept = JSON.parse(localStorage.getItem(key) ?? "null");
  const fresh = kept && Date.now() - kept.at < KEEP_MS && kept.text !== first;
  if (fresh && !form.parentElement.querySelector("[role=alert]")) {
    field.value = kept.text;
    form.elements.base.value = kept.base; // so that what was saved since is not overwritten
    note.textContent = say("draftBack");
  }
  field.addEventListener("input", () => {
    try {
      localStorage.setItem(key, JSON.stringify({ text: field.value, base: form.elements.base.value, at: Date.now() }));
      note.textContent = say("draftKept");
    } catch {
      note.textContent = ""; // the store is full or off: the text still stands in the field
    }
  });
}

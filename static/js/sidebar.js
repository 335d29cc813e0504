// The conversation list: refreshed on hints, rename with F2, delete with Del, titles that arrive live.

let timer = 0;

export function watchSidebar() {
  const list = document.getElementById("side-list");
  if (!list) return;
  list.addEventListener("keydown", (e) => keys(e));
  document.body.addEventListener("sessions-changed", refreshSidebar); // HX-Trigger of a delete or an undo
  document.body.addEventListener("htmx:afterSwap", (e) => swapped(e));
  document.addEventListener("keydown", (e) => {
    const form = e.target.closest?.(".side-rename");
    if (form && e.key === "Escape") {
      e.stopPropagation();
      cancel(form);
    }
  });
  document.addEventListener("submit", (e) => { if (e.target.matches(".side-rename")) e.target.dataset.over = ""; }, true);
  document.addEventListener("focusout", (e) => {
    const form = e.target.closest?.(".side-rename"); // also comes when the form is replaced, or the window is left
    if (form && !("over" in form.dataset) && !form.contains(e.relatedTarget) && document.hasFocus()) cancel(form);
  });
}

// Soon, and once for several reasons; never under the hands of somebody who renames or has a menu open.
export function refreshSidebar() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    const list = document.getElementById("side-list");
    if (!list) return;
    if (inUse(list)) refreshSidebar();
    else reload(list);
  }, 250);
}

function currentTitle() {
  return document.querySelector("#side-list .row[aria-current] .row-title")?.textContent ?? "";
}

// The row's address and marks, once a new conversation has one.
export function adoptThread(threadId) {
  document.getElementById("side-list").dataset.current = threadId;
}

export function toggleSidebar() {
  const wide = matchMedia("(min-width: 1100px)").matches;
  const body = document.body;
  const open = body.dataset.side ? body.dataset.side === "open" : wide;
  body.dataset.side = open ? "closed" : "open";
  if (wide) localStorage.setItem("side", body.dataset.side);
}

export function restoreSidebar() {
  const kept = localStorage.getItem("side");
  if (kept && matchMedia("(min-width: 1100px)").matches) document.body.dataset.side = kept;
}

const inUse = (list) => Boolean(list.querySelector(".side-rename, .side-more[open], .htmx-request"));

async function reload(list) {
  const address = `${list.dataset.address}?current=${encodeURIComponent(list.dataset.current)}`;
  const response = await fetch(address, { headers: { "HX-Request": "true" } }).catch(() => null);
  if (!response?.ok || response.redirected) return;
  const html = await response.text();
  if (inUse(list)) return refreshSidebar(); // somebody began while it was on its way
  const focused = document.activeElement.closest?.("#side-list .side-item")?.dataset.thread;
  const top = list.scrollTop;
  list.innerHTML = html; // our own template, escaped by the server
  window.htmx.process(list);
  list.scrollTop = top;
  if (focused) list.querySelector(`[data-thread="${CSS.escape(focused)}"] > .row`)?.focus({ preventScroll: true });
  tellTitle();
}

function tellTitle() {
  const title = currentTitle();
  if (title) document.dispatchEvent(new CustomEvent("workbench:title", { detail: title }));
}

function keys(e) {
  const item = e.target.closest?.(".side-item");
  if (!item || e.target.matches("input")) return;
  if (e.key === "F2" || e.key === "Delete") {
    e.preventDefault();
    e.stopPropagation();
    if (e.key === "Delete") focusNext(item);
    item.querySelector(`[data-act=${e.key === "F2" ? "rename" : "delete"}]`).click();
  }
}

function focusNext(item) {
  const rows = [...document.querySelectorAll("#side-list .side-item > .row")];
  const at = rows.indexOf(item.querySelector(".row"));
  (rows[at + 1] ?? rows[at - 1] ?? document.querySelector(".row-new")).focus();
}

function cancel(form) {
  if ("over" in form.dataset) return;
  form.dataset.over = "";
  const item = form.closest(".side-item");
  window.htmx.ajax("GET", form.dataset.cancel, { target: item, swap: "outerHTML" });
}

function swapped(e) {
  const root = e.detail.elt ?? e.target;
  const field = root.querySelector?.(".side-rename .input") ?? document.querySelector("#side-list .side-rename .input");
  if (field && document.activeElement !== field) {
    field.focus();
    field.select();
  }
  if (root.matches?.(".side-item") && !root.querySelector(".side-rename") && document.activeElement === document.body) {
    root.querySelector(".row")?.focus();
  }
  tellTitle();
}

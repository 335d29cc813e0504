// The list of memories: other filters without leaving, and a fresh list that leaves alone what is being written.
export class MemoryList {
  #on;
  #asked = 0;
  #timer = 0;
  #wanted = location.href; // may still be on its way

  // on: { shown(), failed() }
  constructor(on) {
    this.#on = on;
    addEventListener("popstate", () => this.show(location.href, { keep: true }));
  }

  // Shows the list under another address: a search, a kind, an order, more.
  async show(address, { keep = false, replace = false } = {}) {
    const asked = ++this.#asked;
    this.#wanted = new URL(address, location.href).href;
    const response = await fetch(address).catch(() => null);
    if (asked !== this.#asked) return;
    if (response?.redirected && new URL(response.url).pathname !== location.pathname) return void location.reload();
    const fresh = response?.ok && new DOMParser().parseFromString(await response.text(), "text/html");
    if (asked !== this.#asked) return;
    if (!fresh || !fresh.getElementById("memories")) {
      this.#wanted = location.href;
      this.#on.failed();
      return;
    }
    if (!keep) history[replace ? "replaceState" : "pushState"](null, "", address);
    put(fresh);
    this.#on.shown();
  }

  // Soon, and once for several reasons.
  refresh(ms = 300) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.show(this.#wanted, { keep: this.#wanted === location.href }), ms);
  }
}

export const row = (id) => document.querySelector(`#memories tr[data-memory="${CSS.escape(id)}"]`);

export const boxes = () => [...document.querySelectorAll("#memories [type=checkbox][name=id]")];

export const ticked = () => boxes().filter((box) => box.checked).map((box) => box.value);

// F2 edits a row, Del deletes it, arrows go to the next one. remove(ids)
export function watchRows({ remove }) {
  document.getElementById("memories").addEventListener("keydown", (e) => {
    const here = e.target.closest("#memories tr[data-memory]:not([data-editing])");
    if (!here || e.ctrlKey || e.metaKey || e.altKey) return;
    if (e.key === "F2") {
      e.preventDefault();
      here.querySelector("[data-key=edit]").click();
    } else if (e.key === "Delete") {
      e.preventDefault();
      remove([here.dataset.memory]);
    } else if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      const next = here[e.key === "ArrowDown" ? "nextElementSibling" : "previousElementSibling"];
      const same = e.target.matches("[type=checkbox]") ? "[type=checkbox]" : `[data-key=${e.target.dataset.key ?? "edit"}]`;
      if (!next) return;
      e.preventDefault();
      (next.querySelector(same) ?? next.querySelector("textarea"))?.focus();
    }
  });
}

function put(fresh) {
  const kept = keep();
  for (const id of ["kinds", "memory-switch", "forget-note"]) replace(document.getElementById(id), fresh.getElementById(id));
  document.getElementById("forget").hidden = fresh.getElementById("forget").hidden;
  document.querySelector("#filters select[name=sort]").value = fresh.querySelector("#filters select[name=sort]").value;
  const [list, newer] = [document.getElementById("memories"), fresh.getElementById("memories")];
  const body = list.querySelector("tbody");
  if (body?.querySelector("tr[data-editing]")) around(list, body, newer);
  else replace(list, newer);
  kept();
}

function replace(node, fresh) {
  node.replaceChildren(...document.adoptNode(fresh).childNodes);
  window.htmx.process(node);
}

// Rows that are being edited stay where they are in the page, so that neither focus nor a half-written word is lost.
function around(list, body, newer) {
  for (const tr of [...body.children]) if (!("editing" in tr.dataset)) tr.remove();
  let next = body.firstElementChild;
  for (const fresh of [...newer.querySelectorAll("tbody > tr")]) {
    const own = row(fresh.dataset.memory);
    if (own) {
      next = own.nextElementSibling;
      continue;
    }
    body.insertBefore(document.adoptNode(fresh), next);
    window.htmx.process(fresh);
  }
  for (const part of ["thead", "#memories-foot"]) {
    const [old, now] = [list.querySelector(part), newer.querySelector(part)];
    if (old && now) replace(old, now);
  }
}

// Remembers ticks, opened histories and the focus of the list, and brings them back into a new one.
function keep() {
  const ticks = new Set(ticked());
  const open = [...document.querySelectorAll("#memories details[open][data-history]")].map((node) => node.dataset.history);
  const active = document.activeElement;
  const place = active?.closest("#memories, #kinds, #memory-switch") && !active.closest("[data-editing]") ? placeOf(active) : null;
  return () => {
    for (const box of boxes()) box.checked = ticks.has(box.value);
    for (const id of open) document.querySelector(`#memories details[data-history="${CSS.escape(id)}"]`)?.setAttribute("open", "");
    if (place && !active.isConnected) document.querySelector(place)?.focus({ preventScroll: true });
  };
}

// A selector for the same thing in a new list.
function placeOf(element) {
  const id = element.closest("tr[data-memory]")?.dataset.memory;
  const inside = id ? `tr[data-memory="${CSS.escape(id)}"] ` : "";
  if (element.dataset.key) return `${inside}[data-key="${CSS.escape(element.dataset.key)}"]`;
  if (element.id) return `#${CSS.escape(element.id)}`;
  return id ? `${inside}${element.matches("input") ? "[type=checkbox]" : element.matches("summary") ? "summary" : "[data-key=edit]"}` : null;
}

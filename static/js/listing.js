// The library's list: other filters and pages without leaving (uploads go on), rows that change while one looks.
import { say } from "words";

const LOOK_MS = 20_000; // between two looks at documents that are being read: what the server says may get lost
const PARTS = ["documents", "collections", "library-lead"];

export class Listing {
  #rows;
  #timer = 0;
  #at = 0; // when the timer is due, ms
  #refreshing = false;
  #again = false; // something changed meanwhile
  #due = new Set();
  #asked = 0;
  #wanted = location.href; // may still be on its way
  #on;

  // rows: address of single rows. on: { changed(), said(words) }
  constructor({ rows, on }) {
    this.#rows = rows;
    this.#on = on;
    addEventListener("popstate", () => this.show(location.href, { keep: true }));
    setInterval(() => this.changed(unread()), LOOK_MS);
  }

  // Shows the library under another address: filters, a collection, a page.
  async show(address, { keep = false, replace = false } = {}) {
    const asked = ++this.#asked;
    this.#wanted = new URL(address, location.href).href;
    const response = await fetch(address).catch(() => null);
    if (asked !== this.#asked) return;
    if (!response?.ok) {
      this.#wanted = location.href;
      return;
    }
    if (response.redirected && new URL(response.url).pathname !== location.pathname) return void location.reload();
    const fresh = new DOMParser().parseFromString(await response.text(), "text/html");
    if (asked !== this.#asked || !fresh.getElementById(PARTS[0])) return;
    if (!keep) history[replace ? "replaceState" : "pushState"](null, "", address);
    const held = hold();
    document.getElementById("main").dataset.collection = fresh.getElementById("main").dataset.collection;
    for (const id of PARTS) {
      const part = document.getElementById(id);
      part.replaceChildren(...document.adoptNode(fresh.getElementById(id)).childNodes);
      window.htmx.process(part);
    }
    held();
    this.#on.changed();
  }

  // At most ms from now. What is due sooner is not put off, or many changes after each other would hold it up for ever.
  refresh(ms = 300) {
    if (this.#refreshing) this.#again = true;
    if (this.#refreshing || (this.#timer && this.#at <= Date.now() + ms)) return;
    clearTimeout(this.#timer);
    this.#at = Date.now() + ms;
    this.#timer = setTimeout(() => this.#refresh(), ms);
  }

  async #refresh() {
    this.#timer = 0;
    if (inUse()) return this.refresh(1000);
    this.#refreshing = true;
    await this.show(this.#wanted, { keep: this.#wanted === location.href }); // what was clicked meanwhile stays clicked
    this.#refreshing = false;
    if (this.#again) this.refresh();
    this.#again = false;
  }

  // Documents the server says have changed: rows that are here are fetched again, for others the list is.
  changed(ids) {
    const here = ids.filter((id) => row(id));
    if (here.length < ids.length) this.refresh();
    const idle = !this.#due.size;
    for (const id of here) this.#due.add(id);
    if (idle && here.length) setTimeout(() => this.#fetch(), 150);
  }

  async #fetch() {
    const ids = [...this.#due];
    this.#due.clear();
    const response = await fetch(`${this.#rows}?${ids.map((id) => `id=${id}`).join("&")}`, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!response?.ok || response.redirected) return;
    const box = document.createElement("template");
    box.innerHTML = `<table><tbody>${await response.text()}</tbody></table>`; // our own template, escaped by the server
    const found = [...box.content.querySelectorAll("tr[data-document]")];
    for (const fresh of found) this.#replace(fresh);
    if (found.length < ids.length) this.refresh();
  }

  #replace(fresh) {
    const old = row(fresh.dataset.document);
    if (!old) return;
    this.#tell(old, fresh);
    if (old.querySelector("details[open]")) return; // somebody has its menu open: the state alone
    const ticked = old.querySelector("input[name=id]").checked;
    const focused = old.contains(document.activeElement) ? [...old.querySelectorAll("a, summary, input")].indexOf(document.activeElement) : -1;
    if (old.querySelector("time").dateTime !== fresh.querySelector("time").dateTime) this.refresh(1500); // it belongs elsewhere in the order
    old.replaceWith(fresh);
    window.htmx.process(fresh);
    fresh.querySelector("input[name=id]").checked = ticked;
    if (focused >= 0) fresh.querySelectorAll("a, summary, input")[focused]?.focus();
  }

  // What a person who does not see the row should hear: that it is read, or cannot be.
  #tell(old, fresh) {
    const { state } = fresh.dataset;
    if (state === old.dataset.state) return;
    const name = fresh.querySelector(".doc-name").textContent;
    const words = { reading: "sayReading", ready: "sayReady", failed: "sayNotRead" }[state];
    if (words) this.#on.said(say(words, { name }));
    if (state === "ready" || state === "failed") this.refresh(1500); // the counts
  }
}

export const row = (id) => document.querySelector(`#documents tr[data-document="${CSS.escape(id)}"]`);

const unread = () => [...document.querySelectorAll("#documents tr:is([data-state=waiting], [data-state=reading])")].map((tr) => tr.dataset.document);

const inUse = () => Boolean(document.querySelector("#documents details[open], #collections details[open], dialog[open]"));

// Keeps ticks, the focus and what is being typed through a new list.
function hold() {
  const ticked = new Set([...document.querySelectorAll("#documents input[name=id]:checked")].map((i) => i.value));
  const active = document.activeElement;
  const field = active?.matches?.("#filters input[type=search]") ? { value: active.value, at: active.selectionStart } : null;
  const place = active?.closest?.("#documents, #collections") ? placeOf(active) : null;
  return () => {
    for (const input of document.querySelectorAll("#documents input[name=id]")) input.checked = ticked.has(input.value);
    const search = document.querySelector("#filters input[type=search]");
    if (field && search) {
      search.value = field.value;
      search.focus({ preventScroll: true });
      search.setSelectionRange(field.at, field.at);
    } else if (place) {
      document.querySelector(`#documents ${place}, #collections ${place}`)?.focus({ preventScroll: true });
    }
  };
}

// A selector for the same thing in a new list; the address of a header changes with every sort.
function placeOf(element) {
  if (element.dataset.sort) return `[data-sort="${element.dataset.sort}"]`;
  if (element.matches("select[name]")) return `select[name="${element.name}"]`;
  const href = element.getAttribute("href");
  return href === null ? null : `a[href="${CSS.escape(href)}"]`;
}

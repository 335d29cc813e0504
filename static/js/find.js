// The search over everything: a dialog on every page. Where there is no script, its link leads to a page that does it.
import { imeOf } from "ime";

const WAIT_MS = 150;

class Find {
  #dialog;
  #form;
  #field;
  #found;
  #timer = 0;
  #slow = 0;
  #running = null; // of the newest question; an older one is broken off
  #enter = null; // pressed before the answer was there

  constructor(dialog) {
    this.#dialog = dialog;
    this.#form = dialog.querySelector("form");
    this.#field = this.#form.elements.q;
    this.#found = this.#slot("found");
    this.#field.addEventListener("input", () => { if (!imeOf(this.#field).composing) this.#soon(); });
    this.#field.addEventListener("compositionend", () => this.#soon());
    this.#form.addEventListener("change", (e) => { if (e.target !== this.#field) this.#load(); });
    dialog.addEventListener("keydown", (e) => this.#key(e));
    dialog.addEventListener("click", (e) => this.#pressed(e));
    dialog.addEventListener("close", () => { this.#stop(); this.#enter = null; });
  }

  // Lifecycle

  get isOpen() {
    return this.#dialog.open;
  }

  // query: what was asked for when a result was opened, to come back to; "" = nothing yet.
  open(query = "") {
    const asked = new URLSearchParams(query);
    this.#field.value = asked.get("q") ?? "";
    this.#form.elements.here.value = document.getElementById("side-list").dataset.current;
    this.#found.replaceChildren();
    this.#slot("failed").hidden = true;
    this.#dialog.showModal();
    this.#field.select();
    this.#load(query);
  }

  close() {
    this.#dialog.close();
  }

  // Actions

  #key(e) {
    if (e.target.closest("select, [type=radio], [type=checkbox], button")) return;
    if (e.key === "ArrowDown" || e.key === "ArrowUp") {
      e.preventDefault();
      this.#step(e.key === "ArrowDown" ? 1 : -1);
    } else if (e.key === "Enter") {
      e.preventDefault();
      const apart = e.ctrlKey || e.metaKey;
      if (this.#timer || this.#running) this.#enter = { apart };
      else this.#go(apart);
    }
  }

  #pressed(e) {
    const act = e.target.closest("[data-act]")?.dataset.act;
    if (e.target === this.#dialog || act === "close-find") return this.close();
    if (act === "find-again") return this.#load();
    const link = e.target.closest("a[href]");
    if (!link || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return undefined;
    if ("kind" in link.dataset || "everywhere" in link.dataset) {
      e.preventDefault();
      this.#field.focus();
      return this.#load(new URL(link.href).search);
    }
    history.replaceState({ ...history.state, find: this.#query() }, ""); // Back brings the results again
    return this.close();
  }

  #go(apart) {
    const option = this.#dialog.querySelector("[role=option][aria-selected=true]");
    if (option && apart && !("kind" in option.dataset)) open(option.href, "_blank", "noopener");
    else option?.click();
  }

  #step(by) {
    const all = this.#options();
    if (!all.length) return;
    const at = all.findIndex((option) => option.getAttribute("aria-selected") === "true");
    this.#choose(all[(at + by + all.length) % all.length]);
  }

  // Private

  #soon() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#load(), WAIT_MS);
  }

  async #load(query = this.#query()) {
    this.#stop();
    const running = new AbortController();
    this.#running = running;
    this.#slow = setTimeout(() => { this.#dialog.dataset.busy = ""; }, WAIT_MS);
    const address = `${this.#dialog.dataset.address}?${query.replace(/^\?/, "")}`;
    const response = await fetch(address, { headers: { "HX-Request": "true" }, signal: running.signal }).catch(() => null);
    const html = response?.ok && !response.redirected ? await response.text().catch(() => null) : null;
    if (running !== this.#running) return; // something newer was asked meanwhile
    this.#settle();
    if (response?.redirected) location.reload(); // signed out
    else this.#show(html);
    if (this.#timer) return; // more was typed meanwhile: an Enter is for what answers that
    const enter = this.#enter;
    this.#enter = null;
    if (enter && html !== null) this.#go(enter.apart);
  }

  #stop() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#running?.abort();
    this.#settle();
  }

  #settle() {
    clearTimeout(this.#slow);
    this.#running = null;
    delete this.#dialog.dataset.busy;
  }

  #show(html) {
    this.#slot("failed").hidden = html !== null;
    if (html === null) return;
    const { name, value } = this.#found.contains(document.activeElement) ? document.activeElement : {};
    this.#found.innerHTML = html; // our own template, escaped by the server
    if (name) this.#focus(name, value);
    this.#slot("count").textContent = this.#found.querySelector("[data-count]").dataset.count;
    const all = this.#options();
    all.forEach((option, n) => { option.id = `find-option-${n}`; });
    this.#field.setAttribute("aria-expanded", String(all.length > 0));
    if (all.length) this.#field.setAttribute("aria-controls", "find-list");
    else this.#field.removeAttribute("aria-controls");
    this.#choose(all[0]);
  }

  // A filter that was pressed keeps the focus although it was fetched anew.
  #focus(name, value) {
    const all = [...this.#found.querySelectorAll(`[name="${name}"]`)];
    (all.find((one) => one.value === value) ?? all[0] ?? this.#field).focus();
  }

  #choose(option) {
    for (const other of this.#options()) other.setAttribute("aria-selected", String(other === option));
    if (!option) return this.#field.removeAttribute("aria-activedescendant");
    this.#field.setAttribute("aria-activedescendant", option.id);
    return option.scrollIntoView({ block: "nearest" });
  }

  #query() {
    const asked = [...new FormData(this.#form)].filter(([, value]) => value);
    return new URLSearchParams(asked).toString();
  }

  #options() {
    return [...this.#found.querySelectorAll("[role=option]")];
  }

  #slot(name) {
    return this.#dialog.querySelector(`[data-slot=${name}]`);
  }
}

let find = null;

// Once per page.
export function watchFind() {
  const dialog = document.getElementById("find");
  if (!dialog) return;
  find = new Find(dialog);
  document.addEventListener("change", (e) => { if (e.target.form?.matches("[data-find]") && e.target.name !== "q") e.target.form.requestSubmit(); });
  const back = performance.getEntriesByType("navigation")[0]?.type === "back_forward";
  if (back && history.state?.find) find.open(history.state.find);
}

// Opens the search, or closes it; false where there is none.
export function toggleFind() {
  if (find?.isOpen) find.close();
  else find?.open();
  return Boolean(find);
}

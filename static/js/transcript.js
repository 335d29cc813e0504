// The stored part of the conversation, as the server renders it: fetched again when the page may have missed something.
import { copyButtons } from "parts";

export class Transcript {
  #main;
  #scroll;
  #csrf;
  #on;
  #busy = false;
  #again = false;
  #exists;
  #id;

  // on: { replaced({ runId, lastRun, lastState }) }
  constructor({ main, id, exists, scroll, csrf, on }) {
    this.#main = main;
    this.#id = id;
    this.#exists = exists;
    this.#scroll = scroll;
    this.#csrf = csrf;
    this.#on = on;
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.seen(); });
    document.body.addEventListener("htmx:beforeSwap", (e) => {
      if (!e.detail.target?.matches(".older") || !e.detail.shouldSwap) return;
      e.detail.shouldSwap = false; // so that what is read stays where it is
      this.#scroll.hold(() => e.detail.target.replaceWith(...this.#entries(e.detail.xhr.responseText)));
    });
  }

  get address() {
    return this.#main.dataset.address.replace(this.#main.dataset.thread, this.#id); // a new one may have kept its old id
  }

  get known() {
    const { run = "", lastRun = "", lastState = "" } = document.getElementById("transcript").dataset;
    return { runId: run, lastRun, lastState, exists: this.#exists };
  }

  exists() {
    this.#exists = true;
  }

  // Fetches only if the newest run is another one than the page shows, or stands otherwise.
  catchUp(run, state) {
    return this.#fetch(`?run=${encodeURIComponent(run)}&state=${encodeURIComponent(state)}`);
  }

  fetchAll() {
    return this.#fetch("");
  }

  // The person has looked at everything: the list's dot goes.
  seen() {
    if (!this.#exists || document.hidden) return;
    fetch(`${this.address}seen/`, { method: "POST", headers: { "X-CSRFToken": this.#csrf } }).catch(() => {});
  }

  async #fetch(query) {
    if (!this.#exists) return;
    if (this.#busy) {
      this.#again = true;
      return;
    }
    this.#busy = true;
    const response = await fetch(`${this.address}messages/${query}`, { headers: { "HX-Request": "true" } }).catch(() => null);
    this.#busy = false;
    if (response?.redirected) location.reload();
    else if (response?.status === 200) this.#replace(await response.text());
    if (this.#again) {
      this.#again = false;
      await this.#fetch("");
    }
  }

  #replace(html) {
    const box = document.createElement("template");
    box.innerHTML = html; // our own template: escaped, blocks sanitised
    const fresh = box.content.querySelector("#transcript");
    if (!fresh) return;
    copyButtons(fresh);
    this.#scroll.hold(() => {
      document.getElementById("transcript").replaceWith(fresh);
      window.htmx.process(fresh);
      this.#on.replaced(this.known);
    });
  }

  #entries(html) {
    const box = document.createElement("template");
    box.innerHTML = html; // our own template: escaped, blocks sanitised
    copyButtons(box.content);
    const nodes = [...box.content.children];
    queueMicrotask(() => { for (const node of nodes) window.htmx.process(node); });
    return nodes;
  }
}

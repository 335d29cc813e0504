// The stored part of the conversation, as the server renders it: fetched again when the page may have missed something.
import { sources } from "cite";
import { graft as graftDivider, readable } from "divider";
import { filesOf } from "edit";
import { graft as graftSaid } from "feedback";
import { graft as graftMemory } from "memoryfoot";
import { copyButtons } from "parts";
import { graft, keepFocus } from "versions";
import { slot } from "words";

export class Transcript {
  #main;
  #scroll;
  #csrf;
  #on;
  #busy = false;
  #again = false;
  #exists;
  #id;

  // on: { run() -> the newest run that the server has, replaced({ runId, lastRun, lastState }), gone(),
  //   unfinished({ text, files }) }
  constructor({ main, id, exists, scroll, csrf, on }) {
    this.#main = main;
    this.#id = id;
    this.#exists = exists;
    this.#scroll = scroll;
    this.#csrf = csrf;
    this.#on = on;
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.seen(); });
    document.body.addEventListener("htmx:beforeSwap", (e) => {
      if (!e.detail.target?.matches(".older, .gap") || !e.detail.shouldSwap) return;
      e.detail.shouldSwap = false; // so that what is read stays where it is
      this.#scroll.hold(() => e.detail.target.replaceWith(...this.#entries(e.detail.xhr.responseText)));
    });
  }

  // A new conversation may have kept the id it had before a reload.
  get address() {
    return this.#main.dataset.address.replace(this.#main.dataset.thread, this.#id);
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

  // What has been replaced has versions now, earlier messages may be summarised, and answers may have used memories, left
  // some, or led to skills: all that comes to what stands here already, which stays.
  async marks() {
    if (!this.#exists) return;
    const response = await this.#ask("");
    if (response?.status !== 200 || response.redirected) return;
    const fresh = parsed(await response.text());
    graft(fresh);
    graftMemory(fresh);
    graftSaid(fresh);
    this.#scroll.hold(() => graftDivider(fresh));
  }

  async #fetch(query) {
    if (!this.#exists) return;
    if (this.#busy) {
      this.#again = true;
      return;
    }
    this.#busy = true;
    const run = this.#on.run();
    const { at } = this.#main.dataset; // the message the page was opened at stays on it
    const response = await this.#ask(at ? `${query || "?"}&at=${encodeURIComponent(at)}` : query);
    // whole before it is judged: a run can begin while it comes
    const html = response?.status === 200 && !response.redirected ? await response.text().catch(() => null) : null;
    this.#busy = false;
    if (run !== this.#on.run()) this.#again = true; // one began meanwhile, and the answer may not know it
    else if (response?.redirected) location.reload();
    else if (response?.status === 404) this.#on.gone();
    else if (html !== null) this.#replace(html);
    if (this.#again) {
      this.#again = false;
      await this.#fetch("");
    }
  }

  #ask(query) {
    return fetch(`${this.address}messages/${query}`, { headers: { "HX-Request": "true" } }).catch(() => null);
  }

  #replace(html) {
    const fresh = parsed(html).querySelector("#transcript");
    if (!fresh) return;
    const unfinished = edited();
    this.#scroll.hold(() => keepFocus(() => {
      document.getElementById("transcript").replaceWith(fresh);
      window.htmx.process(fresh);
      this.#on.replaced(this.known);
    }));
    if (unfinished) this.#on.unfinished(unfinished);
  }

  #entries(html) {
    const nodes = [...parsed(html).children];
    queueMicrotask(() => { for (const node of nodes) window.htmx.process(node); });
    return nodes;
  }
}

function parsed(html) {
  const box = document.createElement("template");
  box.innerHTML = html; // our own template: escaped, blocks sanitised
  copyButtons(box.content);
  readable(box.content);
  for (const article of box.content.querySelectorAll(".msg-assistant")) sources(article);
  return box.content;
}

// A message that is being changed in its place while its place goes away: { text, files }, null if there is none.
function edited() {
  const field = document.querySelector("#thread .msg-edit textarea");
  const article = field?.closest("article");
  if (!article || field.value === slot(article, "text").textContent) return null;
  return { text: field.value, files: filesOf(article) };
}

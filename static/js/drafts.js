// What was not sent yet survives a reload: text and attached files per thread, and messages that wait for the network.
import { uuid } from "words";

const KEEP_MS = 30 * 24 * 3600 * 1000;

export class Drafts {
  #key;
  #outKey;
  #modelKey;
  #sourcesKey;

  constructor(threadId) {
    this.#key = `draft:${threadId}`;
    this.#outKey = `outbox:${threadId}`;
    this.#modelKey = `model:${threadId}`;
    this.#sourcesKey = `sources:${threadId}`;
    prune();
  }

  // Returns { text, files }.
  load() {
    return { text: "", files: [], ...read(localStorage, this.#key) };
  }

  save(text, files) {
    if (!text && !files.length) localStorage.removeItem(this.#key);
    else write(localStorage, this.#key, { text, files, at: Date.now() });
  }

  // The model chosen for this conversation, "" for the default.
  get model() {
    return read(localStorage, this.#modelKey)?.name ?? "";
  }

  set model(name) {
    if (name) write(localStorage, this.#modelKey, { name, at: Date.now() });
    else localStorage.removeItem(this.#modelKey);
  }

  // The documents chosen for this conversation: null for all, [] for none, else [{ id, name }].
  get sources() {
    return read(localStorage, this.#sourcesKey)?.chosen ?? null;
  }

  set sources(chosen) {
    if (chosen) write(localStorage, this.#sourcesKey, { chosen, at: Date.now() });
    else localStorage.removeItem(this.#sourcesKey);
  }

  // Messages sent from this tab that the server has not taken yet.
  loadOutbox() {
    return read(sessionStorage, this.#outKey)?.entries ?? [];
  }

  saveOutbox(entries) {
    if (entries.length) write(sessionStorage, this.#outKey, { entries });
    else sessionStorage.removeItem(this.#outKey);
  }
}

// A new conversation keeps its thread id through reloads of its tab, so that its draft and uploads are found again.
export function newThreadId(offered) {
  const kept = sessionStorage.getItem("new-thread");
  if (kept) return kept;
  sessionStorage.setItem("new-thread", offered);
  return offered;
}

// Leaves a text for the new conversation of this tab, in front of what may wait there already.
export function leaveForNew(text) {
  const drafts = new Drafts(newThreadId(uuid()));
  const { text: there, files } = drafts.load();
  drafts.save([text, there].filter(Boolean).join("\n\n"), files);
}

export function newThreadUsed() {
  sessionStorage.removeItem("new-thread");
}

function read(store, key) {
  try {
    return JSON.parse(store.getItem(key) ?? "null");
  } catch {
    return null;
  }
}

function write(store, key, value) {
  try {
    store.setItem(key, JSON.stringify(value));
  } catch {
    // The store is full or switched off: the text still stands in the field.
  }
}

function prune() {
  for (const key of Object.keys(localStorage)) {
    if (!/^(draft|model|sources):/.test(key)) continue;
    if (Date.now() - (read(localStorage, key)?.at ?? 0) > KEEP_MS) localStorage.removeItem(key);
  }
}

// What was not sent yet survives a reload: text and attached files per thread, and messages that wait for the network.

const KEEP_MS = 30 * 24 * 3600 * 1000;

export class Drafts {
  #key;
  #outKey;

  constructor(threadId) {
    this.#key = `draft:${threadId}`;
    this.#outKey = `outbox:${threadId}`;
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
    if (key.startsWith("draft:") && Date.now() - (read(localStorage, key)?.at ?? 0) > KEEP_MS) localStorage.removeItem(key);
  }
}

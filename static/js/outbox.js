// Messages on their way to the server, in order. An entry stays until the server has answered it, through reloads and
// lost connections; sending one twice is harmless, because run id and message id are the page's own.
//
// Entry: { requestId, kind: run | queue | steer, runId, message, text, files, action, messageId, model, sources, error? }

export class Outbox {
  #entries;
  #drafts;
  #sent = new Set(); // request ids sent over this connection
  #send;

  // send(entry): gives the frame to the socket and returns whether it went out.
  constructor(drafts, send) {
    this.#drafts = drafts;
    this.#send = send;
    this.#entries = drafts.loadOutbox();
  }

  get entries() {
    return this.#entries;
  }

  get isEmpty() {
    return this.#entries.length === 0;
  }

  add(entry) {
    this.#entries.push(entry);
    this.#changed();
    this.flush();
  }

  // The connection is new: what was sent before may not have arrived.
  reconnected() {
    this.#sent.clear();
    this.flush();
  }

  // Sends what may go. A queued message needs the run before it to exist, so nothing passes an unanswered run.
  flush() {
    for (const entry of this.#entries) {
      if (!entry.error && !this.#sent.has(entry.requestId) && this.#send(entry)) this.#sent.add(entry.requestId);
      if (entry.kind === "run") return;
    }
  }

  // Takes an entry out (answered, edited or discarded) and returns it.
  take(test) {
    const entry = this.#entries.find(test);
    if (!entry) return null;
    this.#entries = this.#entries.filter((e) => e !== entry);
    this.#sent.delete(entry.requestId);
    this.#changed();
    return entry;
  }

  // Notes why an entry was refused; it stays until the person decides.
  refuse(entry, why) {
    entry.error = why;
    this.#sent.delete(entry.requestId);
    this.#changed();
  }

  again(entry) {
    delete entry.error;
    this.#sent.delete(entry.requestId);
    this.#changed();
    this.flush();
  }

  #changed() {
    this.#drafts.saveOutbox(this.#entries);
  }
}

// The frame for an entry. lastRunId: the run before it.
export function frameOf(entry, threadId, lastRunId) {
  const { requestId, runId, message } = entry;
  if (entry.kind !== "run") {
    const frame = { type: "steer", threadId, runId: lastRunId, message, mode: entry.kind, requestId };
    return entry.kind === "queue" ? { ...frame, sources: entry.sources ?? null } : frame;
  }
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  const ours = { render: "html", sources: entry.sources ?? null, timeZone };
  if (entry.model) ours.model = entry.model;
  if (entry.action) Object.assign(ours, { action: entry.action, messageId: entry.messageId });
  const input = {
    threadId, runId, messages: message ? [message] : [], tools: [], context: [], state: {},
    forwardedProps: { workbench: ours },
  };
  if (entry.action && lastRunId) input.parentRunId = lastRunId;
  return { type: "run", requestId, input };
}

// AG-UI content of a message: a string, or parts if there are files.
export function content(text, files) {
  if (!files.length) return text;
  const parts = files.map(({ artifactId, version, name, mime, sizeBytes }) => ({
    type: mime?.startsWith("image/") ? "image" : "document",
    source: { type: "file", value: `artifact://${artifactId}@${version}`, provider: "workbench", mimeType: mime || "application/octet-stream" },
    metadata: { name, sizeBytes },
  }));
  return text ? [{ type: "text", text }, ...parts] : parts;
}

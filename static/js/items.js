// The things a run shows, in order: said, text, thought, tool. Pure helpers of reduce.js; no DOM.

const STATES = { ok: "done", cancelled: "cancelled" };

export function said(message, at) {
  const parts = typeof message.content === "string" ? [{ type: "text", text: message.content }] : message.content ?? [];
  return {
    kind: "said",
    id: message.id,
    text: parts.filter((p) => p.type === "text").map((p) => p.text).join(""),
    files: parts.filter((p) => p.type !== "text").map(file),
    steer: message.metadata?.workbench?.kind === "steer",
    at,
  };
}

export function text(id) {
  return { kind: "text", id, text: "", from: 0, blocks: [], citations: [], none: false, open: true };
}

export function thought(id, at) {
  return { kind: "thought", id, text: "", open: true, startedAt: at, ms: null };
}

export function tool(event, at) {
  return {
    kind: "tool", id: event.toolCallId, name: event.toolCallName, args: "", state: "preparing", code: "",
    result: "", summary: "", data: {}, ms: null, artifacts: [], progress: null, startedAt: at,
  };
}

// Returns items with the one of this kind and id replaced by change(item); made by make() if it is not there.
export function put(items, kind, id, change, make = null) {
  for (let i = items.length - 1; i >= 0; i--) {
    if (items[i].id === id && items[i].kind === kind) {
      const next = items.slice();
      next[i] = { ...items[i], ...change(items[i]) };
      return next;
    }
  }
  if (!make) return items;
  const made = make();
  return [...items, { ...made, ...change(made) }];
}

// A finished block: its HTML, and where the text goes on that is in no block yet.
export function block(item, value) {
  const blocks = item.blocks.slice();
  blocks[value.index] = value.html;
  return { blocks, from: value.end ?? item.from };
}

// What the text is about to link to; a citation comes once per message, or again when frames are replayed.
export function cited(item, value) {
  return item.citations.some((one) => one.id === value.id) ? {} : { citations: [...item.citations, value] };
}

export function returned(item, event, extra) {
  const status = extra.status ?? "ok";
  return {
    state: STATES[status] ?? "failed",
    code: extra.code ?? status,
    result: event.content ?? "",
    summary: extra.summary ?? "",
    data: extra.data ?? {},
    ms: extra.elapsedMs ?? (event.timestamp && item.startedAt ? event.timestamp - item.startedAt : null),
    artifacts: extra.artifacts ?? [],
    progress: null,
  };
}

// Nothing of a run that is over goes on working.
export function settle(items, at) {
  return items.map((item) => {
    if (item.kind === "tool" && (item.state === "running" || item.state === "preparing")) {
      return { ...item, state: "cancelled", ms: at && item.startedAt ? at - item.startedAt : null, progress: null };
    }
    if (item.open) return { ...item, open: false };
    return item;
  });
}

// The documents that a run's searches and readings found and its answer does not cite, in the order they were found,
// each like a citation without a passage. workbench/citations.py does it the same way.
export function unused(items) {
  const left = new Map(items.filter((i) => i.kind === "tool").flatMap(found).map((one) => [source(one), one]));
  for (const { citations = [] } of items) for (const one of citations) left.delete(source(one));
  return [...left.values()];
}

function found({ name: tool, data }) {
  const document = ({ documentId, version, name }) => ({ documentId, version, name });
  if (tool === "search_knowledge") return (data.hits ?? []).map(document);
  return tool === "read_document" && data.documentId ? [document(data)] : [];
}

// What one number stands for: the document, or the message.
export function source({ documentId, message }) {
  return documentId ?? JSON.stringify([message.threadId, message.id]);
}

// The parts of RFC 6902 that activities need: add, replace and remove along a path.
export function patched(value, patch) {
  return patch.reduce((whole, { op, path, value: next }) => {
    const keys = path.split("/").slice(1).map((k) => k.replaceAll("~1", "/").replaceAll("~0", "~"));
    return at(whole, keys, op, next);
  }, value);
}

function at(whole, [key, ...rest], op, next) {
  if (key === undefined) return op === "remove" ? undefined : next;
  const copy = Array.isArray(whole) ? whole.slice() : { ...whole };
  if (rest.length) copy[key] = at(copy[key] ?? {}, rest, op, next);
  else if (op === "remove") Array.isArray(copy) ? copy.splice(Number(key), 1) : delete copy[key];
  else if (Array.isArray(copy) && op === "add") copy.splice(key === "-" ? copy.length : Number(key), 0, next);
  else copy[key] = next;
  return copy;
}

function file(part) {
  const found = /^artifact:\/\/([0-9a-f-]+)@(\d+)$/i.exec(part.source?.value ?? part.source?.file ?? "") ?? [];
  return {
    artifactId: found[1] ?? "",
    version: Number(found[2] ?? 0),
    name: part.metadata?.name ?? part.filename ?? "",
    mime: part.source?.mimeType ?? "",
    sizeBytes: part.metadata?.sizeBytes ?? 0,
  };
}

// Files on their way into the library: a few at once, each with progress, cancel and retry; a row while it is on its way.
import { clone, say, size, slot, uuid } from "words";

const ROWS = 40; // more files wait without a row

export class Uploading {
  #section;
  #how;
  #entries = []; // { key, file, name, state, percent, reason, request, node }
  #stored = 0;

  // how: { url, csrf, collection(), maxBytes, atOnce, on: { stored(), said(words) } }
  constructor(section, how) {
    this.#section = section;
    this.#how = how;
    section.addEventListener("click", (e) => {
      const act = e.target.closest("[data-act]")?.dataset.act;
      const entry = this.#entries.find((one) => one.node?.contains(e.target));
      if (entry && act === "upload-cancel") this.#remove(entry, true);
      if (entry && act === "upload-retry") this.#again(entry);
    });
    addEventListener("beforeunload", (e) => { if (this.busy) e.preventDefault(); });
  }

  get busy() {
    return this.#entries.some((e) => e.state === "waiting" || e.state === "uploading");
  }

  // files: of File; a File from a folder carries its path.
  add(files) {
    for (const { file, path } of files) {
      const entry = { key: uuid(), file, name: path || file.name, state: "waiting", percent: 0, reason: "" };
      if (!file.size) this.#fail(entry, say("uploadEmpty"));
      else if (file.size > this.#how.maxBytes) this.#fail(entry, say("uploadTooLarge", { size: size(this.#how.maxBytes) }));
      this.#entries.push(entry);
    }
    this.#next();
  }

  #next() {
    const going = this.#entries.filter((e) => e.state === "uploading").length;
    const free = Math.max(0, this.#how.atOnce - going);
    for (const entry of this.#entries.filter((e) => e.state === "waiting").slice(0, free)) this.#send(entry);
    this.#draw();
    if (!this.busy && this.#stored) {
      this.#how.on.said(say("uploadDone", { n: this.#stored }));
      this.#stored = 0;
    }
  }

  #send(entry) {
    const request = new XMLHttpRequest(); // fetch tells no progress
    entry.request = request;
    entry.state = "uploading";
    request.open("POST", this.#how.url);
    request.setRequestHeader("X-CSRFToken", this.#how.csrf);
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    request.upload.addEventListener("progress", (e) => {
      entry.percent = e.lengthComputable ? Math.floor((e.loaded / e.total) * 100) : 0;
      this.#row(entry);
    });
    request.addEventListener("loadend", () => {
      if (entry.request !== request) return; // cancelled
      entry.request = null;
      if (request.status >= 200 && request.status < 300) this.#arrived(entry, request.response);
      else if (request.status === 429) setTimeout(() => this.#again(entry), 1000 + Math.random() * 1000);
      else this.#fail(entry, request.response?.error?.message ?? say("uploadLost"));
      this.#next();
    });
    const form = new FormData();
    form.append("name", entry.name);
    form.append("collection", this.#how.collection());
    form.append("file", entry.file, entry.file.name);
    request.send(form);
  }

  #arrived(entry, reply) {
    if (reply?.already) {
      entry.state = "same";
    } else {
      this.#stored += 1;
      this.#remove(entry);
    }
    this.#how.on.stored();
  }

  #fail(entry, reason) {
    entry.state = "failed";
    entry.reason = reason;
  }

  #again(entry) {
    Object.assign(entry, { state: "waiting", percent: 0, reason: "" });
    this.#next();
  }

  #remove(entry, byHand = false) {
    const request = entry.request;
    entry.request = null;
    request?.abort();
    this.#entries = this.#entries.filter((e) => e !== entry);
    const next = entry.node?.nextElementSibling ?? entry.node?.previousElementSibling;
    entry.node?.remove();
    if (!byHand) return;
    this.#next();
    (next?.querySelector("button:not([hidden])") ?? document.getElementById("upload")).focus();
  }

  #draw() {
    const body = this.#section.querySelector("tbody");
    const order = { uploading: 0, failed: 1, same: 2, waiting: 3 };
    const shown = [...this.#entries].sort((a, b) => order[a.state] - order[b.state]).slice(0, ROWS);
    for (const entry of this.#entries) if (entry.node && !shown.includes(entry)) { entry.node.remove(); entry.node = null; }
    for (const entry of this.#entries.filter((e) => shown.includes(e))) {
      if (!entry.node) body.append((entry.node = clone("t-upload")));
      this.#row(entry);
    }
    this.#section.hidden = !this.#entries.length;
    const more = this.#section.querySelector("[data-slot=more]");
    more.textContent = this.#entries.length > ROWS ? say("uploadMore", { n: this.#entries.length - ROWS }) : "";
  }

  #row(entry) {
    const node = entry.node;
    if (!node) return;
    const { state, percent, name, reason, file } = entry;
    const failed = state === "failed";
    const word = { failed: "uploadFailed", same: "uploadSame", waiting: "uploadWaiting" }[state] ?? (percent >= 100 ? "storing" : "uploading");
    slot(node, "name").textContent = name;
    slot(node, "size").textContent = size(file.size);
    slot(node, "state").dataset.state = { failed: "err", same: "ok", waiting: "idle" }[state] ?? "live";
    node.querySelector(".state use").setAttribute("href", `#i-${{ failed: "alert", same: "check" }[state] ?? "upload"}`);
    slot(node, "word").textContent = say(word);
    slot(node, "bar").hidden = state !== "uploading";
    const bar = node.querySelector("progress");
    bar.value = percent;
    bar.setAttribute("aria-label", `${say("uploading")} ${name}`);
    slot(node, "percent").textContent = `${percent}\u00a0%`;
    slot(node, "reason").textContent = reason;
    slot(node, "reason").hidden = !failed;
    node.querySelector("[data-act=upload-retry]").hidden = !failed;
    node.querySelector("[data-act=upload-cancel]").setAttribute("aria-label", say(failed || state === "same" ? "remove" : "uploadCancel", { name }));
  }
}

// What was dropped, folders walked through: [{ file, path }]. To be called while the drop event lasts.
export async function dropped(transfer) {
  const entries = [...transfer.items].filter((i) => i.kind === "file").map((i) => i.webkitGetAsEntry?.() ?? i.getAsFile());
  const found = [];
  for (const entry of entries) if (entry) found.push(...(await walked(entry)));
  return found;
}

async function walked(entry) {
  if (entry instanceof File) return [{ file: entry, path: "" }];
  if (entry.isFile) {
    const file = await new Promise((done, fail) => { entry.file(done, fail); }).catch(() => null);
    return file && !file.name.startsWith(".") ? [{ file, path: entry.fullPath.replace(/^\//, "") }] : [];
  }
  const reader = entry.createReader();
  const found = [];
  for (;;) { // a reader gives at most a hundred at a time
    const some = await new Promise((done, fail) => { reader.readEntries(done, fail); }).catch(() => []);
    if (!some.length) return found;
    for (const one of some) found.push(...(await walked(one)));
  }
}

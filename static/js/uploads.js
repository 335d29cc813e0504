// Files of the next message: chosen, dropped or pasted; each uploads at once, with progress and cancel.
import { clone, say, slot, uuid } from "words";

const PASTE_CHARS = 20_000; // a longer paste becomes a file

export class Uploads {
  #list;
  #changed;
  #threadId;
  #url;
  #max;
  #csrf;
  #entries = []; // { key, name, ref?, error?, percent, request?, node }

  constructor({ list, threadId, url, max, csrf, changed }) {
    this.#list = list;
    this.#threadId = threadId;
    this.#url = url;
    this.#max = max;
    this.#csrf = csrf;
    this.#changed = changed;
  }

  get ready() {
    return this.#entries.filter((e) => e.ref).map((e) => e.ref);
  }

  get busy() {
    return this.#entries.some((e) => e.request);
  }

  add(files) {
    for (const file of files) {
      if (this.#entries.filter((e) => !e.error).length >= this.#max) {
        this.#show({ key: uuid(), name: file.name, error: say("tooManyFiles", { n: this.#max }), whole: true });
        break;
      }
      const entry = { key: uuid(), name: file.name, percent: 0 };
      this.#show(entry);
      this.#upload(entry, file);
    }
    this.#changed();
  }

  // A paste with files, or with more text than belongs into a message. Returns whether it was taken.
  paste(data) {
    if (data.files.length) {
      this.add(data.files);
      return true;
    }
    const text = data.getData("text/plain");
    if (text.length < PASTE_CHARS) return false;
    this.add([new File([text], say("pasted"), { type: "text/plain" })]);
    return true;
  }

  // Files that are on the server already: a draft, or a message taken back.
  restore(refs) {
    for (const ref of refs) this.#show({ key: uuid(), name: ref.name, ref });
    this.#changed();
  }

  // Hands the ready files over to a message. Failed ones go, too.
  take() {
    const refs = this.ready;
    this.#entries = [];
    this.#list.replaceChildren();
    this.#list.hidden = true;
    return refs;
  }

  #upload(entry, file) {
    const request = new XMLHttpRequest(); // fetch tells no progress
    entry.request = request;
    request.open("POST", this.#url);
    request.setRequestHeader("X-CSRFToken", this.#csrf);
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    request.upload.addEventListener("progress", (e) => {
      entry.percent = e.lengthComputable ? Math.floor((e.loaded / e.total) * 100) : 0;
      this.#draw(entry);
    });
    request.addEventListener("loadend", () => {
      if (!entry.request) return; // cancelled
      entry.request = null;
      if (request.status >= 200 && request.status < 300) entry.ref = request.response;
      else entry.error = request.response?.error?.message ?? say("attachLost");
      this.#draw(entry);
      this.#changed();
    });
    const form = new FormData();
    form.append("thread_id", this.#threadId);
    form.append("file", file, file.name);
    request.send(form);
  }

  #show(entry) {
    this.#entries.push(entry);
    entry.node = clone("t-upload");
    entry.node.querySelector(".chip-x").addEventListener("click", () => this.#remove(entry));
    this.#list.append(entry.node);
    this.#list.hidden = false;
    this.#draw(entry);
  }

  #draw(entry) {
    const chip = entry.node.querySelector(".chip");
    const { name, percent, error, ref } = entry;
    const [ring, svg] = [chip.querySelector(".ring"), chip.querySelector(".icon")];
    if (error) chip.dataset.state = "err";
    ring.hidden = Boolean(ref || error);
    svg.toggleAttribute("hidden", !ref && !error);
    svg.querySelector("use").setAttribute("href", error ? "#i-alert" : "#i-file");
    const words = entry.whole || error?.startsWith(name) ? error : error ? say("attachFailed", { name, reason: error }) : ref ? name : say("attachBusy", { name, n: percent });
    slot(chip, "text").textContent = words;
    chip.title = words;
    entry.node.querySelector(".chip-x").setAttribute("aria-label", say(entry.request ? "cancelUpload" : "remove", { name }));
  }

  #remove(entry) {
    const request = entry.request;
    entry.request = null;
    request?.abort();
    this.#entries = this.#entries.filter((e) => e !== entry);
    const next = entry.node.nextElementSibling ?? entry.node.previousElementSibling;
    entry.node.remove();
    this.#list.hidden = !this.#entries.length;
    (next?.querySelector(".chip-x") ?? document.getElementById("composer-text")).focus();
    this.#changed();
  }
}

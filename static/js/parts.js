// Parts of an answer: prose (finished blocks and the open one) and phases (steps with no text between them).
// Used by view.js alone. Only HTML the server rendered and sanitised goes in as HTML; model text as textContent.
import { chips } from "cite";
import { append, BRIEF_MS, isLive, put, row, tick, unfold, update } from "steps";
import { clone, icon, number, phaseName, say, seconds, size, slot, speak, steps, thought, ticking } from "words";

export class Prose {
  #shown = 0;
  #open = null;
  #caret = null;
  #item = null;

  constructor(item) {
    this.node = document.createElement("div");
    this.node.className = "prose";
    this.node.dir = "auto";
    this.node.dataset.message = item.id;
    this.update(item);
  }

  get blocks() {
    return this.#shown;
  }

  update(item) {
    if (item === this.#item) return;
    this.#item = item;
    speak(this.node, item.text);
    if (item.citations.length) this.node.dataset.citations = JSON.stringify(item.citations);
    while (this.#shown < item.blocks.length && item.blocks[this.#shown] !== undefined) {
      const html = document.createElement("template");
      html.innerHTML = item.blocks[this.#shown]; // rendered and sanitised by our server
      copyButtons(html.content);
      this.node.insertBefore(html.content, this.#open);
      this.#shown += 1;
    }
    chips(this.node);
    this.#tail(item.text.slice(item.from), item.open);
  }

  #tail(source, live) {
    if (!source.trim()) {
      this.#open?.remove();
      this.#open = null;
      return;
    }
    const { tag, text } = readable(source);
    if (this.#open?.dataset.tag !== tag) {
      this.#open?.remove();
      this.#open = document.createElement(tag);
      this.#open.dataset.tag = tag;
      this.#open.className = "open-block";
      this.#caret = document.createElement("span");
      this.#caret.className = "caret";
      this.#caret.setAttribute("aria-hidden", "true");
      this.#open.append(document.createElement("span"), this.#caret);
      this.node.append(this.#open);
    }
    append(this.#open.firstChild, text);
    this.#caret.hidden = !live;
  }
}

// The open block as plain text, without the marks that would flash: fences, pipes, hashes, stars.
export function readable(source) {
  const fence = /^\s{0,3}(`{3,}|~{3,})[^\n]*(\n|$)/.exec(source);
  if (fence) return { tag: "pre", text: source.slice(fence[0].length) };
  const lines = source.split("\n").filter((line) => !/^\s*\|?[\s:|-]*-[\s:|-]*$/.test(line) || /^\s*-\s*\S/.test(line));
  const text = lines
    .map((line) => line.replace(/^\s{0,3}#{1,6}\s+/, "").replace(/^(\s*)[-*+]\s+/, "$1• ").replace(/^\s*>\s?/, ""))
    .map((line) => (/^\s*\|/.test(line) ? line.trim().replace(/^\||\|$/g, "").replaceAll("|", "   ") : line))
    .join("\n")
    .replace(/\*\*|__|`/g, "")
    .replace(/\[(\d+)\]\(#c-[a-z2-7]*\)?/g, "[$1]")
    .replace(/\[([^\]]*)\]\([^)]*\)?/g, "$1");
  return { tag: "p", text: text.replace(/^\s+/, "") };
}

// A line about what the model is shown from here on.
export class Note {
  constructor({ results }) {
    this.node = clone("t-note");
    put(slot(this.node, "text"), say(results === 1 ? "compactedOne" : "compacted", { n: number(results) }));
  }

  update() {}
}

export class Phase {
  #rows = new Map();
  #cards = new Set();
  #items = [];
  closed = false;

  constructor() {
    this.node = clone("t-phase");
    this.last = this.node; // the last element of this part: its cards stand behind it
    this.node.addEventListener("toggle", () => {
      if (this.node.dataset.byApp !== String(this.node.open)) this.node.dataset.touched = "";
    });
    unfold(this.node, true);
  }

  update(item, now) {
    const known = this.#rows.get(item.id);
    if (known?.item === item) return;
    const node = known?.node ?? row(item);
    if (!known) slot(this.node, "steps").append(node);
    this.#rows.set(item.id, { node, item });
    update(node, item, now);
    for (const ref of item.artifacts ?? []) this.#card(ref);
    this.#items = [...this.#rows.values()].map((r) => r.item);
    this.#head(now);
  }

  // Nothing more will come: fold it, unless the person opened it or something failed in it.
  close(now) {
    if (this.closed) return;
    this.closed = true;
    this.#head(now);
    unfold(this.node, false);
  }

  tick(now) {
    for (const { node, item } of this.#rows.values()) tick(node, item, now);
    this.#head(now);
  }

  #head(now) {
    const tools = this.#items.filter((i) => i.kind === "tool");
    const running = this.#items.filter((i) => i.open || isLive(i)).length;
    const failed = tools.filter((i) => i.state === "failed").length;
    const spent = this.#items.reduce((sum, i) => sum + (i.ms ?? (i.startedAt && (i.open || isLive(i)) ? now - i.startedAt : 0)), 0);
    const name = tools.length ? phaseName(tools) : thought(spent);
    put(slot(this.node, "name"), running ? say(tools.length ? "working" : "thinking") : name);
    put(slot(this.node, "count"), tools.length ? steps(this.#items.length) : "");
    slot(this.node, "count-sep").hidden = !tools.length;
    put(slot(this.node, "fail"), failed ? say("failedCount", { n: failed }) : "");
    slot(this.node, "fail").hidden = slot(this.node, "fail-sep").hidden = !failed;
    put(slot(this.node, "time"), running ? ticking(spent) : spent >= BRIEF_MS ? seconds(spent) : "");
  }

  #card(ref) {
    const key = `${ref.artifactId}@${ref.version}`;
    if (this.#cards.has(key)) return;
    this.#cards.add(key);
    const card = clone("t-card");
    card.href = download(ref);
    put(slot(card, "name"), ref.name);
    document.dispatchEvent(new CustomEvent("workbench:artifact", { detail: { ref, runId: this.node.closest("[data-run]")?.dataset.run ?? "" } }));
    put(slot(card, "version"), say("version", { n: ref.version }));
    put(slot(card, "size"), size(ref.sizeBytes ?? 0));
    this.last.after(card);
    this.last = card;
  }
}

export function download(ref) {
  const pattern = document.getElementById("main").dataset.download;
  return pattern.replace("00000000-0000-0000-0000-000000000000", ref.artifactId).replace(/\/0\/$/, `/${ref.version}/`);
}

// Code blocks get a copy button; the server's HTML has none, because it carries no behaviour.
export function copyButtons(root) {
  for (const head of root.querySelectorAll(".code-head")) {
    if (head.querySelector("button")) continue;
    const button = document.createElement("button");
    button.className = "btn btn-quiet btn-icon";
    button.type = "button";
    button.dataset.act = "copy-code";
    button.setAttribute("aria-label", say("copyCode"));
    button.append(document.querySelector("#t-answer").content.querySelector("[data-act=copy-answer] svg").cloneNode(true));
    icon(button.firstElementChild, "copy");
    head.append(button);
  }
}

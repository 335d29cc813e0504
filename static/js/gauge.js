// What the model's window holds: a ring with the share beside Send, and a card with what it is made of.
import { put } from "steps";
import { number, say, slot, word } from "words";

const SVG = "http://www.w3.org/2000/svg";
const NEAR = 80; // percent from which the ring warns
const FULL = 95;

export class Gauge {
  #node;
  #shown = null;

  // used: the value of CUSTOM workbench.context of kind window; null = nothing is known yet.
  constructor(node, used) {
    this.#node = node;
    this.show(used);
  }

  show(used) {
    if (!used || used === this.#shown) return;
    this.#shown = used;
    const share = percent(used);
    const words = say("percent", { n: share });
    this.#node.hidden = false;
    this.#node.dataset.state = share >= FULL ? "err" : share >= NEAR ? "warn" : "";
    const summary = this.#node.querySelector("summary");
    summary.dataset.state = this.#node.dataset.state;
    summary.setAttribute("aria-label", say("windowUsed", { percent: words }));
    slot(summary, "ring").setAttribute("stroke-dasharray", `${Math.min(100, share)} 100`);
    put(slot(summary, "percent"), words);
    put(slot(this.#node, "of"), say("windowOf", { used: number(used.tokens), window: number(used.window) }));
    put(slot(this.#node, "source"), word("windowSources", used.source));
    this.#bar(used, share);
    slot(this.#node, "parts").replaceChildren(...(used.parts ?? []).flatMap(row));
  }

  #bar(used, share) {
    const bar = slot(this.#node, "bar");
    bar.setAttribute("aria-valuenow", String(Math.min(100, share)));
    bar.setAttribute("aria-valuetext", slot(this.#node, "of").textContent);
    let at = 0;
    bar.replaceChildren(...sent(used).map(({ tag, tokens }) => {
      const piece = document.createElementNS(SVG, "rect");
      const width = (100 * tokens) / Math.max(used.window, used.tokens, 1);
      piece.setAttribute("class", "window-seg");
      piece.dataset.part = tag;
      piece.setAttribute("x", `${at}%`);
      piece.setAttribute("width", `${width}%`);
      piece.setAttribute("height", "100%");
      at += width;
      return piece;
    }));
  }
}

// The share of the window that is used, in whole percent; what is there at all is never 0.
export function percent({ tokens, window }) {
  if (!tokens || !window) return 0;
  return Math.max(1, Math.round((100 * tokens) / window));
}

// The parts that are sent, in order. Without any, the whole is one.
export function sent({ tokens, parts = [] }) {
  const found = parts.filter((part) => part.tag !== "dropped" && part.tokens > 0);
  return found.length ? found : [{ tag: "history", tokens }];
}

function row({ tag, tokens }) {
  const [name, sum, swatch] = ["dt", "dd", "span"].map((kind) => document.createElement(kind));
  swatch.className = "swatch";
  swatch.dataset.part = tag;
  swatch.setAttribute("aria-hidden", "true");
  name.append(swatch, word("windowParts", tag) || tag);
  sum.textContent = number(tokens);
  return [name, sum];
}

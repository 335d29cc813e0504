// One run in the transcript: its articles, their parts, its head and its end. Used by view.js.
import { sources } from "cite";
import { doing, ending, overWords } from "endings";
import { unused } from "items";
import { Note, Phase, Prose } from "parts";
import { isOver } from "reduce";
import { fillSaid, headed, saidNode } from "said";
import { scope } from "sources";
import { put } from "steps";
import { clock, clone, icon, say, slot, ticking } from "words";

export class RunView {
  #live;
  #parts = new Map(); // item id -> Prose | Phase
  #answer = null;
  #first = null;
  #last = null; // the part written last
  #saids = new Map();
  #count = 0;

  constructor(id, live) {
    this.id = id;
    this.#live = live;
  }

  get blocks() {
    let sum = 0;
    for (const part of new Set(this.#parts.values())) sum += part instanceof Prose ? part.blocks : 0;
    return sum;
  }

  render(state, now) {
    this.#count = state.items.filter((i) => i.kind === "tool" || i.kind === "thought").length;
    for (const item of state.items) {
      if (item.kind === "said") this.#said(item, state);
      else this.#item(item, state, now);
    }
    if (!this.#answer && state.phase !== "idle") this.#begin(state);
    if (isOver(state)) this.#end(state, now);
    this.tick(state, now);
  }

  tick(state, now) {
    for (const part of new Set(this.#parts.values())) if (part instanceof Phase && !part.closed) part.tick(now);
    this.#head(state, now);
  }

  #said(item, state) {
    const known = this.#saids.get(item.id) ?? this.#live.querySelector(`.msg-user[data-message="${CSS.escape(item.id)}"]`);
    if (known) {
      this.#saids.set(item.id, known);
      known.dataset.run = state.runId;
      if (state.phase !== "sending") delete known.dataset.state;
      fillSaid(known, item);
      return;
    }
    const node = saidNode({ ...item, runId: state.runId });
    if (state.phase === "sending") node.dataset.state = "sending";
    this.#saids.set(item.id, node);
    if (this.#answer && !this.#last) { // a run that was followed before it said what was asked: its head stands below it
      this.#answer.dataset.asked = item.id;
      this.#answer.before(node);
      return;
    }
    this.#live.append(node);
    this.#answer = null; // a steered message: what follows is a new article
  }

  #item(item, state, now) {
    const known = this.#parts.get(item.id);
    if (known) {
      known.update(item, now);
      return;
    }
    if (item.kind === "text" && !item.text.trim()) return;
    if (!this.#answer) this.#begin(state);
    let part = this.#last;
    if (item.kind === "text") {
      if (part instanceof Phase) part.close(now);
      part = new Prose(item);
    } else if (item.kind === "note") {
      if (part instanceof Phase) part.close(now);
      part = new Note(item);
    } else if (!(part instanceof Phase) || part.closed) {
      part = new Phase();
    }
    if (part !== this.#last) slot(this.#answer, "parts").append(part.node);
    this.#last = part;
    this.#parts.set(item.id, part);
    part.update(item, now);
  }

  #begin(state) {
    const node = clone("t-answer");
    headed(node, "assistant", state.startedAt);
    node.dataset.run = state.runId;
    node.dataset.asked = state.items.findLast((i) => i.kind === "said")?.id ?? state.askedId ?? "";
    node.setAttribute("aria-busy", "true");
    slot(node, "head").hidden = Boolean(this.#first);
    this.#first ??= node;
    this.#answer = node;
    this.#last = null;
    this.#live.append(node);
  }

  #head(state, now) {
    if (!this.#first) return;
    const head = slot(this.#first, "head");
    const over = isOver(state);
    head.dataset.state = over ? state.phase : "working";
    head.querySelector(".ring").hidden = over;
    const svg = head.querySelector(".run-state .icon");
    svg.toggleAttribute("hidden", !over);
    icon(svg, state.phase === "done" ? "check" : state.phase === "stopped" ? "stop" : "x");
    const spent = state.startedAt ? (state.endedAt ?? now) - state.startedAt : 0;
    put(slot(head, "state"), over ? overWords(state, spent, this.#count) : doing(state, now));
    slot(head, "state").classList.toggle("working", !over);
    put(slot(head, "scope"), state.sources ? say("scopeSaid", { scope: scope(state.sources) }) : "");
    put(slot(head, "seconds"), over || !state.startedAt ? "" : ticking(spent));
  }

  #end(state, now) {
    for (const part of new Set(this.#parts.values())) if (part instanceof Phase) part.close(now);
    const node = this.#answer;
    if (!node || node.dataset.state === state.phase) return;
    node.dataset.state = state.phase;
    node.removeAttribute("aria-busy");
    this.#first.removeAttribute("aria-busy");
    node.dataset.message = state.items.findLast((i) => i.kind === "text")?.id ?? "";
    slot(node, "foot").hidden = false;
    slot(node, "inspect").href = `${document.getElementById("inspect-here").href}?run=${encodeURIComponent(node.dataset.run)}`;
    const at = slot(node, "at");
    at.dateTime = new Date(state.startedAt ?? Date.now()).toISOString();
    put(at, clock(state.startedAt ?? Date.now()));
    const usual = document.getElementById("model")?.options[0].value; // the default; where there is no choice, nothing is said
    put(slot(node, "model"), usual && state.model && state.model !== usual ? `${state.model} · ` : "");
    slot(node, "end").replaceChildren(...ending(state));
    slot(node, "none").hidden = !state.items.some((i) => i.none);
    put(slot(node, "none-text"), say(state.sources?.length ? "notInChosen" : "notInDocuments"));
    node.dataset.unused = JSON.stringify(unused(state.items));
    sources(node);
  }
}

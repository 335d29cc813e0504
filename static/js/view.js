// The transcript's DOM: only this module touches it, with what it is made of (runview, parts, steps, said).
// render(state) may be called as often as there is news; a node, once made, stays the same node.
import { sources } from "cite";
import { cutAfter, readable } from "divider";
import { copyButtons } from "parts";
import { RunView } from "runview";
import { saidNode } from "said";
import { put } from "steps";
import { slot } from "words";

export class View {
  #live;
  #run = null;

  constructor(live) {
    this.#live = live;
    copyButtons(document.getElementById("transcript"));
    readable(document.getElementById("transcript"));
    for (const article of document.querySelectorAll("#transcript .msg-assistant")) sources(article);
  }

  // now: the server's clock in ms, as far as the page knows it.
  render(state, now) {
    if (!state.runId) return;
    if (this.#run?.id !== state.runId) this.#run = new RunView(state.runId, this.#live);
    this.#run.render(state, now);
  }

  tick(state, now) {
    if (this.#run?.id === state.runId) this.#run.tick(state, now);
  }

  get blocks() {
    return this.#run?.blocks ?? 0;
  }

  said(id) {
    return this.#live.parentElement.querySelector(`.msg-user[data-message="${CSS.escape(id)}"]`);
  }

  // A message that did not get through, in its place.
  notSent(id, why) {
    const node = this.said(id);
    if (!node) return;
    node.dataset.state = why ? "failed" : "sending";
    slot(node, "failed").hidden = !why;
    put(slot(node, "why"), why);
  }

  // A message of the person that waits in this page for the connection.
  waiting(message) {
    const node = saidNode({ ...message, runId: "" });
    node.dataset.state = "sending";
    this.#live.append(node);
    return node;
  }

  forget(runId) {
    for (const node of this.#live.querySelectorAll(`[data-run="${CSS.escape(runId)}"]`)) node.remove();
    if (this.#run?.id === runId) this.#run = null;
  }

  // The message stands, no answer will come to it.
  unanswered(runId) {
    for (const node of this.#live.querySelectorAll(`.msg-assistant[data-run="${CSS.escape(runId)}"]`)) node.remove();
    if (this.#run?.id === runId) this.#run = null;
  }

  // Everything that is over stands in the fetched transcript now.
  keepOnly(runId) {
    for (const node of [...this.#live.children]) if (!runId || node.dataset.run !== runId) node.remove();
    if (this.#run?.id !== runId) this.#run = null;
  }

  // Edit or retry: what stands after this node makes room for the new answer.
  cutFrom(node, { itself }) {
    const all = [...document.querySelectorAll("#transcript > article, #live > article")];
    const from = all.indexOf(node);
    if (from < 0) return;
    cutAfter(node);
    for (const gone of all.slice(itself ? from : from + 1)) gone.remove();
    this.#run = null;
  }
}

// AG-UI events on their way into the state: at most 20 times a second, all that came at once in one step.
import { reduce } from "reduce";

const FLUSH_MS = 50;
const FROZEN_MS = 5_000;

const isHistory = (event) => Boolean(event.metadata?.workbench?.history);
const isEnd = (event) => event.type === "RUN_FINISHED" || event.type === "RUN_ERROR";

export class Inbound {
  #on;
  #pending = [];
  #timer = 0;
  #flushedAt = 0;
  #skew = Infinity;
  #frozenAt = 0;

  // on: { state(), show(state), gap(state), fetch(), read(messageId), isMine(runId) }
  constructor(on) {
    this.#on = on;
  }

  // The server's clock, as far as the page can know it: the quickest frame tells the difference best.
  now() {
    return Date.now() - (Number.isFinite(this.#skew) ? this.#skew : 0);
  }

  push(event) {
    if (event.timestamp) this.#skew = Math.min(this.#skew, Date.now() - event.timestamp);
    this.#pending.push(event);
    if (!this.#timer) this.#timer = setTimeout(() => this.#flush(), Math.max(0, FLUSH_MS - (Date.now() - this.#flushedAt)));
  }

  // Everything that came so far, now: before a control frame that came after it is looked at.
  catchUp() {
    clearTimeout(this.#timer);
    if (this.#pending.length) this.#flush(true);
    this.#timer = 0;
  }

  clear() {
    this.#pending = [];
  }

  // After Stop the text stands still until the server's last frame is here.
  freeze() {
    this.#frozenAt = Date.now();
  }

  #flush(all = false) {
    this.#timer = 0;
    this.#flushedAt = Date.now();
    const frozen = this.#on.state().phase === "stopping" && Date.now() - this.#frozenAt < FROZEN_MS;
    if (frozen && !all && !this.#pending.some(isEnd)) {
      this.#timer = setTimeout(() => this.#flush(), 4 * FLUSH_MS);
      return;
    }
    const events = this.#pending;
    this.#pending = [];
    let state = this.#on.state();
    let fetch = false;
    for (const event of events) {
      // The run before is shown as it ended, however quickly the next one came.
      if (event.type === "RUN_STARTED" && !isHistory(event) && state.runId && event.runId !== state.runId) this.#on.show(state);
      state = reduce(state, event);
      fetch ||= this.#outdates(event, state);
      if (event.type === "RUN_STARTED") for (const message of event.input?.messages ?? []) this.#on.read(message.id);
      if (event.type === "TEXT_MESSAGE_START" && event.role === "user") this.#on.read(event.messageId);
    }
    if (state.gap) this.#on.gap(state);
    this.#on.show(state);
    if (fetch) this.#on.fetch();
  }

  // Whether the stored part of the page is no longer true: another page edited or asked again, or a run was lost.
  #outdates(event, state) {
    if (isHistory(event) || event.metadata?.workbench?.runId !== state.runId) return false;
    if (event.type === "MESSAGES_SNAPSHOT") return !this.#on.isMine(state.runId);
    return event.type === "RUN_ERROR" && event.code === "lost";
  }
}

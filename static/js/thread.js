// One conversation: frames in, state, view out; what the person asks, frames out. The thread id never changes here.
import { Delivery } from "delivery";
import { Follow } from "follow";
import { Inbound } from "inbound";
import { content } from "outbox";
import { begun, dropped, following, idle, isOver, stopping } from "reduce";
import { refreshSidebar } from "sidebar";
import { uuid } from "words";

export class Thread {
  #id;
  #parts; // { view, scroll, composer, queue, announcer, drafts, transcript, hint, send, isOpen, wake, started }
  #state;
  #delivery;
  #inbound;
  #mine = new Set(); // runs this page asked for
  #wantCancel = "";
  #askedId = "";
  #follow;

  // known: what the stored transcript shows: { exists, runId, lastRun, lastState }.
  constructor(id, known, parts) {
    this.#id = id;
    this.#parts = parts;
    this.#state = idle(id);
    this.lastRun = known.lastRun;
    this.lastState = known.lastState;
    this.#inbound = new Inbound({
      state: () => this.#state,
      show: (state) => this.#set(state),
      gap: (state) => this.#follow.attach(state.runId),
      fetch: () => parts.transcript.fetchAll(),
      read: (messageId) => parts.queue.forget(messageId),
      isMine: (runId) => this.#mine.has(runId),
    });
    this.#follow = new Follow(id, known.exists, {
      state: () => this.#state,
      show: (state) => this.#set(state),
      send: parts.send,
      fetch: () => parts.transcript.fetchAll(),
      clear: () => { this.#inbound.clear(); parts.view.keepOnly(""); },
    });
    this.#delivery = new Delivery(id, parts, {
      state: () => this.#state,
      lastRun: () => this.lastRun,
      show: (entry) => this.#show(entry),
      lose: (runId) => this.#drop(runId, "unanswered"),
      drop: (runId) => this.#drop(runId),
      known: () => { this.#follow.known = true; },
      follow: (runId) => this.#follow.attach(runId),
      resend: (entry) => this.send(entry),
    });
    if (known.runId) this.#set(following(this.#state, known.runId));
    for (const entry of this.#delivery.runs) {
      this.#mine.add(entry.runId);
      if (isOver(this.#state)) this.#show(entry);
    }
    setInterval(() => this.#tick(), 1000);
  }

  // Lifecycle

  get state() { return this.#state; }

  // Messages that are on their way; what the person does to one of them goes there.
  get delivery() { return this.#delivery; }

  opened() {
    this.#follow.attach(this.#state.phase === "sending" ? null : this.#state.runId);
    this.#delivery.reconnected();
    if (this.#wantCancel) this.#sendCancel();
    if (this.#follow.known && isOver(this.#state)) this.#parts.transcript.catchUp(this.lastRun, this.lastState);
  }

  frame(frame) {
    if (frame.type === frame.type.toUpperCase()) return this.#event(frame);
    this.#inbound.catchUp();
    if (frame.type === "thread") return this.#parts.hint(frame);
    if ((frame.threadId ?? this.#id) !== this.#id) return undefined;
    if (frame.type === "accepted") this.#delivery.accepted(frame);
    else if (frame.type === "rejected") this.#delivery.rejected(frame);
    else if (frame.type === "attached") this.#follow.attached(frame);
    else if (frame.type === "resync") this.#follow.resync();
    return undefined;
  }

  // Actions

  send({ text, files, steer = false }) {
    const message = { id: uuid(), role: "user", content: content(text, files) };
    if (!isOver(this.#state)) {
      this.#delivery.add({ kind: steer ? "steer" : "queue", message, text, files, ...this.#parts.composer.choices });
      return;
    }
    this.#start({ message, text, files });
    this.#parts.scroll.place(this.#parts.view.said(message.id));
  }

  // action: retry (messageId: what was asked), continue, edit (messageId: what is replaced; with text and files).
  again(action, messageId, { text = "", files = [] } = {}) {
    if (!isOver(this.#state)) return;
    const message = action === "edit" ? { id: uuid(), role: "user", content: content(text, files) } : null;
    this.#askedId = message?.id ?? messageId;
    this.#start({ action, messageId, message, text, files });
    if (message) this.#parts.scroll.place(this.#parts.view.said(message.id));
  }

  // Returns whether there was something to stop.
  stop() {
    if (isOver(this.#state) || this.#state.phase === "stopping") return false;
    const unsent = !this.#parts.isOpen() && this.#delivery.take((e) => e.kind === "run" && e.runId === this.#state.runId);
    if (unsent) {
      this.#drop(unsent.runId);
      if (unsent.message) this.#parts.composer.restore(unsent);
      return true;
    }
    this.#inbound.freeze();
    this.#wantCancel = this.#state.runId;
    this.#set(stopping(this.#state));
    this.#sendCancel();
    return true;
  }

  // One tool call is stopped; its result says so, and the run goes on.
  stopStep(toolCallId) {
    this.#parts.send({ type: "cancel", threadId: this.#id, runId: this.#state.runId, toolCallId });
  }

  // The transcript was fetched anew. runId: the run that goes on, whose frames come over the socket.
  replaced({ runId, lastRun, lastState }) {
    this.lastRun = lastRun;
    this.lastState = lastState;
    const sending = this.#state.phase === "sending" ? this.#state.runId : "";
    const keep = runId && runId === this.#state.runId ? runId : sending;
    this.#parts.view.keepOnly(keep);
    if (!keep) this.#follow.restart(runId);
  }

  // Private

  #start({ action = "", messageId = "", message, text, files }) {
    const entry = { kind: "run", runId: uuid(), message, text, files, action, messageId, ...this.#parts.composer.choices };
    this.#mine.add(entry.runId);
    this.#show(entry);
    this.#parts.started(text || files[0]?.name || "");
    this.#delivery.add(entry);
  }

  #show({ runId, message }) {
    this.#set({ ...begun(this.#state, { runId, message, at: this.#inbound.now() }), askedId: this.#askedId });
  }

  // how: "forget" (the message is taken back) or "unanswered" (it stays, and its failure is told).
  #drop(runId, how = "forget") {
    this.#parts.view[how](runId);
    if (runId === this.#state.runId) this.#set(dropped(this.#state));
  }

  #sendCancel() {
    const frame = { type: "cancel", threadId: this.#id, runId: this.#wantCancel, requestId: uuid() };
    if (this.#parts.send(frame)) this.#wantCancel = "";
  }

  #event(event) {
    const ours = event.metadata?.workbench ?? {};
    if (ours.threadId && ours.threadId !== this.#id) return;
    this.#follow.heard();
    this.#inbound.push(event);
  }

  #set(state) {
    const before = this.#state;
    this.#state = state;
    const { view, scroll, composer, announcer } = this.#parts;
    view.render(state, this.#inbound.now());
    scroll.settle(view.blocks);
    composer.show(state);
    if (state.summary && state.summary !== before.summary && !isOver(state)) this.#parts.transcript.marks();
    announcer.run(state);
    if (!isOver(before) && isOver(state) && state.runId && state.runId === before.runId) this.#ended(state);
  }

  #ended(state) {
    this.lastRun = state.runId;
    this.lastState = state.phase;
    this.#askedId = "";
    this.#wantCancel = "";
    this.#parts.transcript.seen();
    if (state.forked || state.remembers) this.#parts.transcript.marks();
    refreshSidebar();
    this.#delivery.flush();
  }

  #tick() {
    if (isOver(this.#state)) return;
    this.#follow.tick();
    this.#parts.view.tick(this.#state, this.#inbound.now());
    this.#parts.announcer.run(this.#state);
  }
}

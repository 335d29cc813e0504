// What the server answers to a message of ours, and what becomes of it then.
import { frameOf, Outbox } from "outbox";
import { isOver } from "reduce";
import { rejection, say, uuid } from "words";

const OFFLINE_MS = 2_000;

export class Delivery {
  #parts;
  #on;
  #outbox;

  // parts: as of thread.js. on: { state(), lastRun(), show(entry), lose(runId), drop(runId), known(), follow(runId), resend(entry) }
  constructor(threadId, parts, on) {
    this.#parts = parts;
    this.#on = on;
    this.#outbox = new Outbox(parts.drafts, (entry) => {
      const lastRun = entry.kind === "run" ? on.lastRun() : on.state().runId ?? on.lastRun();
      return parts.send(frameOf(entry, threadId, lastRun));
    });
  }

  get runs() {
    return this.#outbox.entries.filter((e) => e.kind === "run");
  }

  add(entry) {
    this.#outbox.add({ requestId: uuid(), ...entry });
    setTimeout(() => this.explain(), OFFLINE_MS);
  }

  reconnected() {
    this.#outbox.reconnected();
  }

  flush() {
    this.#outbox.flush();
  }

  take(test) {
    return this.#outbox.take(test);
  }

  lost() {
    setTimeout(() => this.explain(), OFFLINE_MS);
  }

  // Takes a message that was not sent out of the conversation and returns it.
  unsend(messageId) {
    const entry = this.#outbox.take((e) => e.message?.id === messageId);
    this.#parts.view.said(messageId)?.remove();
    if (entry?.runId) this.#on.drop(entry.runId);
    return entry;
  }

  again(messageId) {
    const entry = this.#outbox.entries.find((e) => e.message?.id === messageId);
    if (!entry) return;
    if (entry.kind === "run" && isOver(this.#on.state())) this.#on.show(entry);
    this.#parts.view.notSent(messageId, "");
    this.#outbox.again(entry);
    this.#parts.wake();
  }

  // A message that waits for the network says so in its place.
  explain() {
    if (this.#parts.isOpen()) return;
    for (const entry of this.#outbox.entries) if (entry.message) this.#parts.view.notSent(entry.message.id, say("notYetSent"));
  }

  accepted(frame) {
    const entry = this.#outbox.take((e) => e.requestId === frame.requestId);
    if (!entry) return;
    if (entry.kind === "run") this.#on.known();
    if (entry.kind === "run") this.#parts.view.notSent(entry.message?.id ?? "", "");
    else this.#parts.queue.refresh();
    // After a lost connection the run is known already: what was said since is in its log.
    if (frame.duplicate && this.#on.state().runId === entry.runId) this.#on.follow(entry.runId);
    this.#outbox.flush();
  }

  rejected(frame) {
    const entry = this.#outbox.entries.find((e) => e.requestId === frame.requestId);
    if (!entry) return;
    if (entry.kind === "run" && frame.code === "run_conflict" && entry.message && !entry.action) this.#behind(entry);
    else if (entry.kind === "steer" && isOver(this.#on.state())) this.#tooLate(entry);
    else this.#refused(entry, say("notSent", { reason: rejection(frame.code) }));
  }

  // Somebody else's run was first: this message waits for its end.
  #behind(entry) {
    this.#outbox.take((e) => e === entry);
    this.#on.drop(entry.runId);
    this.#outbox.add({ ...entry, requestId: uuid(), kind: "queue", runId: "" });
    this.#on.follow("");
  }

  // The run ended before the message reached it: then it is an ordinary one.
  #tooLate(entry) {
    this.#outbox.take((e) => e === entry);
    this.#on.resend(entry);
  }

  #refused(entry, why) {
    this.#parts.announcer.shout(say("sayNotSent"));
    if (entry.kind === "run" && entry.message && !entry.action) {
      this.#outbox.refuse(entry, why);
      this.#on.lose(entry.runId);
      this.#parts.view.notSent(entry.message.id, why);
      return;
    }
    this.#outbox.take((e) => e === entry);
    if (entry.message) this.#parts.composer.restore(entry);
    if (entry.runId) this.#on.drop(entry.runId);
    this.#parts.announcer.shout(why);
    if (entry.action) this.#parts.transcript.fetchAll(); // what was cut away for the new answer comes back
  }
}

// Which run of the thread this page follows, and from which frame on: attach and what the server answers to it.
import { following, idle } from "reduce";

const SILENT_MS = 15_000;

export class Follow {
  #id;
  #on;
  #heardAt = Date.now();
  known; // whether the server knows the thread: before its first message there is nothing to follow

  // on: { state(), show(state), send(frame), fetch(), clear() }
  constructor(threadId, known, on) {
    this.#id = threadId;
    this.known = known;
    this.#on = on;
  }

  heard() {
    this.#heardAt = Date.now();
  }

  // A run that says nothing for long may have ended unheard, or the attach may have been refused: ask once more.
  // Asking twice does no harm: frames seen before are passed over.
  tick() {
    const { phase, runId } = this.#on.state();
    if (phase === "sending" || Date.now() - this.#heardAt < SILENT_MS) return;
    this.heard();
    this.attach(runId);
  }

  // From what this page has of a run; without one, from the beginning of whatever goes on.
  attach(runId) {
    this.heard();
    if (!this.known) return;
    const frame = { type: "attach", threadId: this.#id, after: runId ? this.#on.state().seq : 0 };
    this.#on.send(runId ? { ...frame, runId } : frame);
  }

  attached(frame) {
    const state = this.#on.state();
    if (frame.runId && frame.runId !== state.runId && state.phase !== "sending") {
      this.#on.show(following(state, frame.runId));
    } else if (frame.mode === "idle" && (state.phase === "running" || state.phase === "stopping")) {
      this.#on.fetch(); // it ended while nobody here looked
    }
  }

  // Frames are missing that cannot be had any more: what is stored is fetched, and what goes on comes from its start.
  resync() {
    this.#on.clear();
    this.#on.show(idle(this.#id));
    this.#on.fetch();
  }

  // The transcript was fetched anew and names the run that goes on, whose frames come over the socket.
  restart(runId) {
    this.#on.show(runId ? following(idle(this.#id), runId) : idle(this.#id));
    if (runId) this.attach(runId);
  }
}

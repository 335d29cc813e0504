// Our WebSocket for @ag-ui/client, as a third party would write it from docs/protocol.md.
import { AbstractAgent, enforceOutgoingInput } from "@ag-ui/client";
import { Observable } from "rxjs";
import WebSocket from "ws";

export class RejectedError extends Error {
  constructor({ code, message }) {
    super(message);
    this.code = code;
  }
}

export class SocketAgent extends AbstractAgent {
  #url;
  #token;
  #socket = null;
  // What a client needs to come back to a run: its id, and the last frame it has.
  lastRunId = "";
  lastSeq = 0;
  // The frames that opened what is still open: a new stream must open it again, for the client checks each stream alone.
  #opened = [];

  constructor({ url, token, ...config }) {
    super(config);
    this.#url = url;
    this.#token = token;
  }

  run(input) {
    return this.#open(() => ({ type: "run", input: enforceOutgoingInput(input) }), input.runId);
  }

  // Goes on with the run that was cut off; without one, shows the thread and joins what goes on there.
  connect() {
    const attach = { type: "attach", threadId: this.threadId };
    if (!this.#opened.length) return this.#open(() => attach, null);
    return this.#open(() => ({ ...attach, runId: this.lastRunId, after: this.lastSeq }), this.lastRunId, [...this.#opened]);
  }

  abortRun() {
    this.#say({ type: "cancel", threadId: this.threadId, runId: this.lastRunId });
  }

  // Cuts the connection without a word, as a train tunnel does.
  drop() {
    this.#socket?.terminate();
  }

  #say(frame) {
    this.#socket?.send(JSON.stringify(frame));
  }

  #note(event) {
    const { type, messageId, toolCallId } = event;
    if (type === "RUN_STARTED") this.#opened = [event];
    else if (type === "RUN_FINISHED" || type === "RUN_ERROR") this.#opened = [];
    else if (type.endsWith("_START")) this.#opened.push(event);
    else if (type.endsWith("_END")) {
      const opener = type.replace(/_END$/, "_START");
      this.#opened = this.#opened.filter((e) => e.type !== opener || e.messageId !== messageId || e.toolCallId !== toolCallId);
    }
  }

  #open(first, runId, reopened = []) {
    return new Observable((subscriber) => {
      for (const event of reopened) subscriber.next(event);
      const socket = new WebSocket(this.#url, ["agui.v1", `bearer.${this.#token}`]);
      this.#socket = socket;
      let wanted = runId; // null: whatever run is going on, once the history was shown
      let following = true;
      socket.on("open", () => this.#say(first()));
      socket.on("error", (error) => subscriber.error(error));
      socket.on("close", () => subscriber.error(new Error("connection lost"))); // never a quiet end: that would look finished
      socket.on("message", (data) => {
        const frame = JSON.parse(data);
        if (frame.type === "rejected") return subscriber.error(new RejectedError(frame));
        if (frame.type === "attached" && wanted === null) {
          wanted = frame.runId;
          following = frame.runId !== null;
        }
        if (frame.type !== frame.type.toUpperCase()) return; // other control frames
        const { runId: of, seq } = frame.metadata.workbench;
        if (seq) [this.lastRunId, this.lastSeq] = [of, seq];
        this.#note(frame);
        subscriber.next(frame);
        const over = frame.type === "RUN_FINISHED" || frame.type === "RUN_ERROR";
        if (over && (of === wanted || !following)) {
          subscriber.complete();
          socket.close();
        }
      });
      return () => socket.close();
    });
  }
}

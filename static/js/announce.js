// What a screen reader is told of a run: that it began, every few seconds that it goes on, how it ended. Never tokens.
import { isOver } from "reduce";
import { say, steps } from "words";

const EVERY_MS = 8_000;

export class Announcer {
  #status = document.getElementById("say");
  #alert = document.getElementById("shout");
  #runId = null;
  #over = true;
  #at = 0;

  say(words) {
    this.#status.textContent = words;
  }

  shout(words) {
    this.#alert.textContent = "";
    requestAnimationFrame(() => { this.#alert.textContent = words; });
  }

  run(state) {
    const over = isOver(state);
    if (!over && (state.runId !== this.#runId || this.#over)) {
      this.say(say("sayStarted"));
      this.#at = Date.now();
    } else if (!over && Date.now() - this.#at > EVERY_MS) {
      const done = state.items.filter((i) => i.kind === "tool" && i.state !== "running" && i.state !== "preparing").length;
      this.say(say("sayWorking", { steps: steps(done) }));
      this.#at = Date.now();
    } else if (over && !this.#over && state.runId === this.#runId) {
      this.say(state.phase === "done" ? say("sayDone", { n: words(state) }) : say("sayStopped"));
    }
    this.#runId = state.runId;
    this.#over = over;
  }
}

// Words of the answer; a Chinese or Japanese character counts as one.
function words(state) {
  const text = state.items.filter((i) => i.kind === "text").map((i) => i.text).join(" ");
  return (text.match(/[\u2e80-\u9fff\uac00-\ud7af]|[\p{L}\p{N}]+(?:['’-][\p{L}\p{N}]+)*/gu) ?? []).length;
}

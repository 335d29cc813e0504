// The state of the connection, above the composer: nothing for 2 s, then one quiet line; never a toast.
import { say, ticking } from "words";

const QUIET_MS = 2_000;
const LONG_MS = 60_000;
const SHOUT_MS = 10_000;
const BACK_MS = 2_500;

export class Pill {
  #node;
  #shout;
  #timer = 0;
  #shown = false;
  #final = false;

  // shout(words): tells a screen reader at once.
  constructor(node, shout) {
    this.#node = node;
    this.#shout = shout;
  }

  lost(since) {
    if (this.#final) return;
    clearInterval(this.#timer);
    this.#timer = setInterval(() => this.#draw(since), 250);
    this.#draw(since);
  }

  back() {
    clearInterval(this.#timer);
    if (this.#shown) {
      this.#put(say("connected"), "ok", "check");
      this.#timer = setTimeout(() => { this.#node.hidden = true; }, BACK_MS);
    }
    this.#shown = false;
  }

  signedOut() {
    clearInterval(this.#timer);
    this.#final = true;
    this.#put(say("signedOut"), "warn", "alert");
    this.#shout(say("signedOut"));
  }

  #draw(since) {
    const gone = Date.now() - since;
    if (gone < QUIET_MS) return;
    if (gone >= LONG_MS) this.#put(say("offline", { time: ticking(Math.floor(gone / 60_000) * 60_000) }), "warn", "alert");
    else this.#put(say("reconnecting"), "", "web");
    if (gone >= SHOUT_MS && !this.#node.dataset.shouted) {
      this.#node.dataset.shouted = "1";
      this.#shout(say("sayLost"));
    }
  }

  #put(words, state, icon) {
    this.#shown = true;
    this.#node.hidden = false;
    this.#node.dataset.state = state;
    if (state === "ok") delete this.#node.dataset.shouted;
    this.#node.querySelector("use").setAttribute("href", `#i-${icon}`);
    const text = this.#node.querySelector("[data-slot=text]");
    if (text.textContent !== words) text.textContent = words;
  }
}

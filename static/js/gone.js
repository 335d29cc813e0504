// A conversation that was deleted elsewhere: says so, offers Undo and a new one, and takes along what was typed.
import { leaveForNew } from "drafts";

const OWN_MS = 1_000; // a tab that deleted it itself has left by then

export class Gone {
  #node;
  #composer;
  #shout;
  #timer = 0;

  constructor({ node, composer, shout }) {
    this.#node = node;
    this.#composer = composer;
    this.#shout = shout;
  }

  show() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      if (!this.#node.hidden) return;
      this.#node.hidden = false;
      this.#shout(this.#node.querySelector("[data-slot=text]").textContent);
    }, OWN_MS);
  }

  hide() {
    clearTimeout(this.#timer);
    this.#node.hidden = true;
  }

  async undo(address, csrf) {
    const headers = { "X-CSRFToken": csrf, "HX-Request": "true" };
    const response = await fetch(`${address}restore/`, { method: "POST", headers }).catch(() => null);
    if (!response?.ok) return;
    this.hide();
    this.#composer.focus();
  }

  // Before the link to a new conversation is followed.
  takeAlong() {
    if (this.#composer.text) leaveForNew(this.#composer.text);
  }
}

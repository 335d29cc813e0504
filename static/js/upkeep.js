// What a person does with the whole conversation: "Summarise now", archive and back.
import { tell } from "toast";
import { say } from "words";

const ASK_MS = 1_200;
const SLOW_MS = 15_000;
const LONGEST_MS = 180_000;

export class Upkeep {
  #csrf;
  #on;
  #busy = false;

  // on: { address() -> of the conversation, told(): a summary may be there }
  constructor({ csrf, on }) {
    this.#csrf = csrf;
    this.#on = on;
    document.getElementById("summarise-here").addEventListener("submit", (e) => {
      e.preventDefault();
      this.#summarise();
    });
    for (const form of document.querySelectorAll("form[data-archive], form[data-unarchive]")) {
      form.addEventListener("submit", (e) => {
        e.preventDefault();
        this.#archive("archive" in form.dataset);
      });
    }
  }

  // Whether the conversation is archived, here or in another window.
  archived(is) {
    document.getElementById("archived").hidden = !is;
    document.getElementById("archive-here").hidden = is;
    document.getElementById("unarchive-here").hidden = !is;
  }

  async #archive(is) {
    const response = await this.#post(is ? "archive/" : "unarchive/");
    if (!response?.ok) return tell("told", say("summaryNotAsked"));
    this.archived(is);
    document.body.dispatchEvent(new CustomEvent("sessions-changed"));
    if (!is) return tell("told", say("unarchivedNow"));
    document.getElementById("say").textContent = say("archivedNow"); // who sees reads it above the composer
    return undefined;
  }

  async #summarise() {
    if (this.#busy) return;
    this.#busy = true;
    tell("progress", say("summarising"));
    const asked = await this.#post("summarise/");
    const already = asked?.ok && !asked.redirected ? (await asked.json()).words : "";
    if (already) tell("progress", already);
    tell("told", asked?.ok ? await this.#outcome() : say("summaryNotAsked"));
    this.#busy = false;
    this.#on.told();
  }

  // Asks until it is over; the job is the server's, so going away stops nothing.
  async #outcome() {
    const began = Date.now();
    let slow = false;
    while (Date.now() - began < LONGEST_MS) {
      await new Promise((done) => { setTimeout(done, ASK_MS); });
      const response = await fetch(`${this.#on.address()}summarise/`).catch(() => null);
      const found = response?.ok && !response.redirected ? await response.json() : null;
      if (found?.state === "done" || found?.state === "none") return found.words || say("summaryUnknown");
      if (!slow && found?.state === "queued" && Date.now() - began > SLOW_MS) {
        slow = true;
        tell("progress", say("summaryWaits"));
      }
    }
    return say("summaryUnknown");
  }

  #post(where) {
    const headers = { "X-CSRFToken": this.#csrf, "HX-Request": "true" };
    return fetch(`${this.#on.address()}${where}`, { method: "POST", headers }).catch(() => null);
  }
}

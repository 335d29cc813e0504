// Which documents the next message is answered from: all, none, or those that were ticked. Kept per conversation.
import { say, slot } from "words";

const MOST = 200; // the server takes no more

export class Sources {
  #chip;
  #dialog;
  #drafts;
  #names = new Map(); // id -> name, of what is ticked
  #timer = 0;

  constructor(chip, dialog, drafts) {
    this.#chip = chip;
    this.#dialog = dialog;
    this.#drafts = drafts;
    chip.addEventListener("click", () => this.#open());
    dialog.addEventListener("change", (e) => this.#changed(e.target));
    dialog.addEventListener("input", (e) => { if (e.target.type === "search" && !e.isComposing) this.#search(250); });
    dialog.addEventListener("submit", (e) => { if (e.submitter?.type !== "submit") e.preventDefault(); });
    this.#draw();
  }

  // null: all; []: none; else document ids.
  get chosen() {
    const kept = this.#drafts.sources;
    return kept ? kept.map(({ id }) => id) : null;
  }

  #open() {
    const kept = this.#drafts.sources;
    this.#names = new Map((kept ?? []).map(({ id, name }) => [id, name]));
    this.#mode(kept === null ? "all" : kept.length ? "some" : "none");
    this.#dialog.querySelector("[type=search]").value = "";
    this.#dialog.showModal();
    this.#search(0);
  }

  #mode(mode) {
    this.#dialog.querySelector(`[name=scope][value=${mode}]`).checked = true;
    this.#keep();
  }

  #changed(field) {
    if (field.name === "source") {
      if (field.checked && this.#names.size >= MOST) {
        field.checked = false;
        slot(this.#dialog, "note").textContent = say("scopeTooMany", { n: MOST });
        return;
      }
      if (field.checked) this.#names.set(field.value, field.dataset.name);
      else this.#names.delete(field.value);
      this.#dialog.querySelector("[name=scope][value=some]").checked = true;
    }
    if (field.type !== "search") this.#keep();
  }

  #keep() {
    const mode = this.#dialog.querySelector("[name=scope]:checked").value;
    const some = [...this.#names].map(([id, name]) => ({ id, name }));
    this.#drafts.sources = mode === "all" || (mode === "some" && !some.length) ? null : mode === "none" ? [] : some;
    slot(this.#dialog, "note").textContent = mode === "some" ? say("ticked", { n: some.length }) : "";
    this.#draw();
  }

  #search(ms) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(async () => {
      const query = new URLSearchParams([["q", this.#dialog.querySelector("[type=search]").value], ...[...this.#names.keys()].map((id) => ["id", id])]);
      const response = await fetch(`${this.#dialog.dataset.address}?${query}`, { headers: { "HX-Request": "true" } }).catch(() => null);
      if (response?.ok && !response.redirected) slot(this.#dialog, "list").innerHTML = await response.text(); // our own template
    }, ms);
  }

  #draw() {
    const chosen = this.chosen;
    const words = scope(chosen) || say("scopeAll");
    slot(this.#chip, "text").textContent = words;
    this.#chip.setAttribute("aria-label", say("scopeSaid", { scope: words }));
    this.#chip.toggleAttribute("data-narrow", chosen !== null);
    this.#chip.title = (this.#drafts.sources ?? []).map(({ name }) => name).join("\n");
  }
}

// What an answer could use, in words; "" for everything. ids: as Sources.chosen.
export function scope(ids) {
  if (!ids) return "";
  if (!ids.length) return say("scopeNone");
  return ids.length === 1 ? say("scopeOne") : say("scopeSome", { n: ids.length });
}

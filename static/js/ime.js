// Is this key press part of typing Chinese, Japanese or Korean? Keys that choose a candidate are not commands.
//
// Safari fires compositionend before the Enter that ended it, so keyCode 229 and a short tail count too. The tail is
// used up by one Enter. A flag that stuck (compositionend dropped) is cleared by the next plain input, and by blur.

const TAIL_MS = 60;

export class Ime {
  #composing = false;
  #endedAt = -Infinity;
  #now;

  constructor(element, now = () => performance.now()) {
    this.#now = now;
    element.addEventListener("compositionstart", () => { this.#composing = true; });
    element.addEventListener("compositionend", () => { this.#composing = false; this.#endedAt = this.#now(); });
    element.addEventListener("input", (e) => { if (!e.isComposing) this.#composing = false; });
    element.addEventListener("blur", () => { this.#composing = false; });
  }

  get composing() {
    return this.#composing;
  }

  owns(event) {
    const typing = event.isComposing || event.keyCode === 229 || event.key === "Process" || this.#composing;
    const tail = event.key === "Enter" && this.#now() - this.#endedAt < TAIL_MS;
    if (event.key === "Enter") this.#endedAt = -Infinity;
    return typing || tail;
  }
}

const known = new WeakMap();

// One Ime per element, made on first use; fields that appear later get theirs on focus (see guard).
export function imeOf(element) {
  if (!known.has(element)) known.set(element, new Ime(element));
  return known.get(element);
}

// Every field marked data-ime: an Enter that chooses a candidate must not send its form, an Esc must not cancel it.
export function guard(root = document) {
  root.addEventListener("focusin", (e) => { if (e.target.matches?.("[data-ime]")) imeOf(e.target); });
  root.addEventListener("keydown", (e) => {
    if (!e.target.matches?.("[data-ime]") || !imeOf(e.target).owns(e)) return;
    if (e.key === "Enter" && !e.isComposing) e.preventDefault();
    e.stopImmediatePropagation();
  }, true);
}

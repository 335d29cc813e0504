// Versions of a message or an answer: the stepper beside it. The server keeps which one is shown, for all tabs.

export class Versions {
  #transcript;
  #csrf;
  #busy = false;

  constructor({ transcript, csrf }) {
    this.#transcript = transcript;
    this.#csrf = csrf;
  }

  // Shows the version that a stepper's button leads to; a refusal (an answer is being written) changes nothing.
  async go(button) {
    if (this.#busy || button.getAttribute("aria-disabled") === "true") return;
    this.#busy = true;
    const body = new URLSearchParams({ fork: button.dataset.fork });
    const headers = { "X-CSRFToken": this.#csrf };
    const address = `${this.#transcript.address}line/`;
    const response = await fetch(address, { method: "POST", body, headers }).catch(() => null);
    this.#busy = false; // what is pressed while the transcript comes counts: pressed twice, it names the same line
    if (response?.ok) await this.#transcript.fetchAll();
  }
}

// Puts the steppers of a freshly fetched transcript beside what is on the page already.
export function graft(fresh) {
  for (const stepper of fresh.querySelectorAll(".stepper")) {
    const { message, run } = stepper.closest("article").dataset;
    const place = stepper.closest(".msg-user")
      ? `.msg-user[data-message="${CSS.escape(message)}"]`
      : `.msg-assistant[data-run="${CSS.escape(run)}"]`;
    const article = [...document.querySelectorAll(`#thread ${place}`)].at(-1);
    const old = article?.querySelector("[data-slot=versions]");
    if (old && !old.firstElementChild?.isEqualNode(stepper)) old.replaceChildren(stepper);
  }
}

// Runs a change of the transcript and gives the focus back to the stepper that had it.
export function keepFocus(change) {
  const button = document.activeElement?.closest(".stepper-step");
  const { step } = button?.dataset ?? {};
  const place = button?.parentElement.dataset.place;
  change();
  if (!button) return;
  document.querySelector(`.stepper[data-place="${place}"] [data-step="${step}"]`)?.focus({ preventScroll: true });
}

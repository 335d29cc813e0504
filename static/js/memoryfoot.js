// What an answer says of memory, and what a person does about it there. The server renders it.
import { tell } from "toast";
import { say } from "words";

export class MemoryFoot {
  #on;
  #csrf;

  // on: { address() -> of the conversation, told(): something changed }
  constructor({ csrf, on }) {
    this.#csrf = csrf;
    this.#on = on;
  }

  // data-do: undo (a change), mute or use (a memory). Only the server's answer counts.
  async act(button) {
    if (button.getAttribute("aria-disabled") === "true") return;
    button.setAttribute("aria-disabled", "true");
    const body = new URLSearchParams({ do: button.dataset.do, id: button.dataset.id });
    const headers = { "X-CSRFToken": this.#csrf };
    const response = await fetch(`${this.#on.address()}memory/`, { method: "POST", body, headers }).catch(() => null);
    button.removeAttribute("aria-disabled");
    const words = response?.ok && !response.redirected ? (await response.json()).words : say("memoryFailed");
    tell("told", words);
    if (response?.ok) this.#on.told();
  }
}

// Puts what a freshly fetched transcript says of memory under the answers that stand on the page already.
export function graft(fresh) {
  for (const foot of fresh.querySelectorAll(".msg-assistant [data-slot=memory]")) {
    const { run } = foot.closest("article").dataset;
    const article = [...document.querySelectorAll(`#thread .msg-assistant[data-run="${CSS.escape(run)}"]`)].at(-1);
    const old = article?.querySelector("[data-slot=memory]");
    if (!old || old.innerHTML === foot.innerHTML) continue;
    const open = Boolean(old.querySelector("details")?.open);
    const focused = old.contains(document.activeElement) ? document.activeElement.closest("[data-act=memory]")?.dataset.id : "";
    old.replaceChildren(...foot.cloneNode(true).childNodes);
    const fold = old.querySelector("details");
    if (fold) fold.open = open;
    if (focused) (old.querySelector(`[data-id="${CSS.escape(focused)}"]`) ?? fold?.querySelector("summary"))?.focus({ preventScroll: true });
  }
}

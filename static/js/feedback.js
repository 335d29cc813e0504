// What a person thinks of an answer: a thumb under it, and why it is down. And the skills that its run led to.
import { tell } from "toast";
import { say } from "words";

export class Feedback {
  #csrf;
  #address;

  // address() -> of the conversation
  constructor({ csrf, address }) {
    this.#csrf = csrf;
    this.#address = address;
    document.addEventListener("submit", (e) => {
      if (!e.target.matches(".thumb-why")) return;
      e.preventDefault();
      this.#explain(e.target);
    });
    document.addEventListener("keydown", (e) => {
      const form = e.key === "Escape" && e.target.closest?.(".thumb-why");
      if (form) this.close(form);
    });
  }

  // Pressed again, it is taken back. It shows at once, and goes back if the server does not keep it.
  async act(button) {
    const { run } = button.closest("article").dataset;
    const before = pressed(run);
    const thumb = button.dataset.thumb === before ? "" : button.dataset.thumb;
    press(run, thumb);
    button.closest(".msg-foot").querySelector(".thumb-why")?.remove();
    if (!(await this.#send({ run, thumb }))) press(run, before);
    else if (thumb === "down") ask(button);
  }

  close(form) {
    const down = form.closest(".msg-foot").querySelector('[data-thumb="down"]');
    form.remove();
    down.focus();
  }

  async #explain(form) {
    const { run } = form.closest("article").dataset;
    const given = new FormData(form);
    const reasons = given.getAll("reasons");
    if (await this.#send({ run, thumb: "down", reasons, note: given.get("note") })) this.close(form);
  }

  async #send({ run, thumb, reasons = [], note = "" }) {
    const body = new URLSearchParams({ run, thumb, note });
    for (const reason of reasons) body.append("reasons", reason);
    const headers = { "X-CSRFToken": this.#csrf };
    const response = await fetch(`${this.#address()}feedback/`, { method: "POST", body, headers }).catch(() => null);
    const kept = Boolean(response?.ok && !response.redirected);
    tell("told", kept ? (await response.json()).words : say("memoryFailed"));
    return kept;
  }
}

// Puts what a freshly fetched transcript says of thumbs and skills under the answers that stand on the page already.
export function graft(fresh) {
  for (const article of fresh.querySelectorAll(".msg-assistant")) {
    const { run } = article.dataset;
    const thumb = article.querySelector('[data-thumb][aria-pressed="true"]')?.dataset.thumb ?? "";
    if (pressed(run) !== thumb) press(run, thumb);
    const skill = article.querySelector("[data-slot=skill]");
    const old = articles(run).at(-1)?.querySelector("[data-slot=skill]"); // the last of the run comes last here too
    if (old && old.innerHTML !== skill.innerHTML) old.replaceChildren(...skill.cloneNode(true).childNodes);
  }
}

const articles = (run) => [...document.querySelectorAll(`#thread .msg-assistant[data-run="${CSS.escape(run)}"]`)];

const pressed = (run) => articles(run)[0]?.querySelector('[data-thumb][aria-pressed="true"]')?.dataset.thumb ?? "";

function press(run, thumb) {
  for (const article of articles(run)) {
    for (const button of article.querySelectorAll("[data-thumb]")) {
      button.setAttribute("aria-pressed", String(button.dataset.thumb === thumb));
    }
  }
}

function ask(button) {
  const form = document.getElementById("t-why").content.firstElementChild.cloneNode(true);
  button.closest(".msg-actions").after(form);
  form.querySelector("input").focus();
}

// Messages that wait for the run: the list above the composer. The server keeps it; all tabs show the same.
export class Queue {
  #csrf;
  #on;
  #timer = 0;

  // on: { now({ text, files }), edit({ text, files }) }
  constructor({ csrf, on }) {
    this.#csrf = csrf;
    this.#on = on;
    document.addEventListener("click", (e) => {
      const button = e.target.closest("#queue [data-act]");
      if (button) this.#act(button.closest(".queue-item"), button.dataset.act);
    });
  }

  get node() {
    return document.getElementById("queue");
  }

  // Asks the server again, soon; several reasons within a moment are one question.
  refresh() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#fetch(), 120);
  }

  forget(messageId) {
    const item = this.node.querySelector(`[data-message="${CSS.escape(messageId)}"]`);
    if (!item) return;
    const hadFocus = item.contains(document.activeElement);
    item.remove();
    this.node.hidden = !this.node.childElementCount;
    if (hadFocus) document.getElementById("composer-text").focus();
  }

  async #fetch() {
    const response = await fetch(this.node.dataset.address, { headers: { "HX-Request": "true" } }).catch(() => null);
    if (!response?.ok || response.redirected) return;
    const html = document.createElement("template");
    html.innerHTML = await response.text(); // our own template, escaped by the server
    const fresh = html.content.querySelector("#queue");
    if (fresh && !this.node.contains(document.activeElement)) this.node.replaceWith(fresh);
    else if (fresh) this.#keepFocused(fresh);
  }

  // The focused row is never remounted: rows that are gone leave, new ones come behind.
  #keepFocused(fresh) {
    const wanted = new Map([...fresh.children].map((item) => [item.dataset.message, item]));
    for (const item of [...this.node.children]) {
      if (!wanted.has(item.dataset.message)) this.forget(item.dataset.message);
      wanted.delete(item.dataset.message);
    }
    this.node.append(...wanted.values());
    this.node.hidden = !this.node.childElementCount;
  }

  async #act(item, act) {
    const id = item.dataset.message;
    const address = `${this.node.dataset.address}${encodeURIComponent(id)}/`;
    const response = await fetch(address, { method: "POST", headers: { "X-CSRFToken": this.#csrf } }).catch(() => null);
    if (response?.status === 404) this.forget(id); // a run has read it: it stands in the conversation
    if (!response?.ok) return;
    const taken = await response.json();
    this.forget(id);
    if (act === "queue-now") this.#on.now(taken);
    else if (act === "queue-edit") this.#on.edit(taken);
  }
}

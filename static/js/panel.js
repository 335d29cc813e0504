// A document beside the conversation. It has an address (?panel=…), closes with Back and Esc, and gives the focus back.
import { gone } from "cite";
import { forgetDraft, showDocument, watchDocument } from "docview";
import { clone, say, slot } from "words";

const SHEET = matchMedia("(max-width: 719px)");
const WIDE = matchMedia("(min-width: 1100px)");
const NARROW = matchMedia("(min-width: 1100px) and (max-width: 1439px)");

export class Panel {
  #node;
  #csrf;
  #hold;
  #opener = null;
  #asked = 0;
  #side = null; // how the sidebar was before it made room

  // hold(change): makes a change to the page's widths while what is read stays in place.
  constructor(node, { csrf, hold }) {
    this.#node = node;
    this.#csrf = csrf;
    this.#hold = hold;
    watchDocument(node, (address, data) => this.#go(address, data));
    document.addEventListener("click", (e) => this.#pressed(e));
    node.addEventListener("keydown", (e) => {
      if (e.key !== "Escape" || e.defaultPrevented || document.querySelector("dialog[open]")) return;
      e.preventDefault();
      e.stopPropagation();
      this.close();
    });
    addEventListener("popstate", () => this.#follow());
    SHEET.addEventListener("change", () => this.#alone());
    this.#follow();
  }

  get isOpen() {
    return document.body.classList.contains("has-panel");
  }

  // opener: what gets the focus back. quiet: nobody asked, so the focus stays where it is.
  async open(address, opener = null, { quiet = false } = {}) {
    if (!this.isOpen || opener) this.#opener = opener;
    const before = location.href;
    const shown = await this.#fetch(address, { opener });
    if (!shown) return;
    const here = new URL(location.href);
    here.searchParams.set("panel", short(address));
    if (quiet || here.href === before) history.replaceState({ panel: true }, "", here);
    else history.pushState({ panel: true }, "", here);
    if (!quiet) (this.#node.querySelector(".hit") ?? this.#node.querySelector(".panel-title"))?.focus({ preventScroll: true });
  }

  // The first file of a run shows itself, once, where there is room; of one whose newest version is shown, the next.
  artifact(ref, runId) {
    const key = `panel-run:${runId}`;
    const shown = this.#node.querySelector("[data-document]")?.dataset;
    const next = shown?.document === ref.artifactId && shown.view === "preview" && Number(shown.version) === ref.version - 1;
    if (!next && (!WIDE.matches || this.isOpen || sessionStorage.getItem(key))) return;
    sessionStorage.setItem(key, "1");
    this.open(`/library/${ref.artifactId}/?v=${ref.version}`, null, { quiet: true });
  }

  close() {
    if (!this.isOpen) return;
    const here = new URL(location.href);
    here.searchParams.delete("panel");
    history.replaceState(null, "", here);
    this.#shut();
  }

  #pressed(e) {
    if (e.target.closest("[data-act=close-panel]")) this.close();
    const link = e.target.closest("a[data-opens], a.artifact-card, .msg-files a.chip");
    if (!link || e.defaultPrevented || e.ctrlKey || e.metaKey || e.shiftKey || e.button) return;
    const file = /^\/files\/([0-9a-f-]{36})\/(\d+)\/$/.exec(link.pathname);
    if (!file && !link.pathname.startsWith("/library/")) return;
    e.preventDefault();
    this.open(file ? `/library/${file[1]}/?v=${file[2]}` : link.pathname + link.search, link);
  }

  // Back and forward, and an address that was opened with a panel.
  #follow() {
    const asked = new URL(location.href).searchParams.get("panel") ?? "";
    const address = long(asked);
    if (address) this.#fetch(address, {});
    else if (this.isOpen) this.#shut();
  }

  // What is pressed inside the panel: another view or version, an edit.
  async #go(address, data) {
    const shown = await this.#fetch(address, { data });
    if (!shown) return;
    const { document: id, version, view } = shown;
    const here = new URL(location.href);
    const { pathname, search } = new URL(address, location.href);
    here.searchParams.set("panel", short(data ? `/library/${id}/?v=${version}&view=${view}` : pathname + search));
    history.replaceState(history.state, "", here);
    this.#node.querySelector(".tab[aria-current]")?.focus({ preventScroll: true });
  }

  // Returns the data of what is shown now; null if it was overtaken or could not be fetched.
  async #fetch(address, { data = null, opener = null }) {
    const asked = ++this.#asked;
    this.#node.setAttribute("aria-busy", "true");
    const how = data ? { method: "POST", body: data, headers: { "HX-Request": "true", "X-CSRFToken": this.#csrf } } : { headers: { "HX-Request": "true" } };
    const response = await fetch(address, how).catch(() => null);
    const html = response && (response.ok || response.status === 409) && !response.redirected ? await response.text() : null;
    if (asked !== this.#asked) return null;
    this.#node.removeAttribute("aria-busy");
    if (response?.redirected) { location.reload(); return null; }
    if (html === null && data) {
      slot(this.#node, "kept")?.replaceChildren(say("panelFailed"));
      return null;
    }
    if (html === null) this.#missing(response?.status === 404, opener);
    else this.#put(html, response.ok && data);
    return this.#node.querySelector("[data-document]")?.dataset ?? {};
  }

  #put(html, saved) {
    this.#show(() => { this.#node.innerHTML = html; }); // our own template, escaped by the server
    const head = this.#node.querySelector("[data-document]").dataset;
    if (saved) forgetDraft(head);
    window.htmx.process(this.#node);
    this.#node.setAttribute("aria-label", head.name);
    showDocument(this.#node);
  }

  // A document that is not there any more: what was quoted of it still is.
  #missing(isGone, opener) {
    const node = clone("t-missing");
    slot(node, "why").textContent = say(isGone ? "citeGone" : "panelFailed");
    const chip = opener?.closest?.(".cite")?.querySelector(".cite-chip");
    const quote = chip?.parentElement.querySelector("[data-slot=quote]")?.textContent ?? "";
    slot(node, "quote").textContent = quote;
    slot(node, "quote").hidden = !quote;
    if (isGone && chip) gone(chip);
    this.#show(() => { this.#node.replaceChildren(...node.childNodes); });
    this.#node.setAttribute("aria-label", say("panelGone"));
  }

  #show(change) {
    const was = this.isOpen;
    if (!was) this.#hold(() => { document.body.classList.add("has-panel"); this.#fold(); });
    change();
    this.#alone();
  }

  #shut() {
    this.#asked += 1;
    this.#hold(() => { document.body.classList.remove("has-panel"); this.#unfold(); });
    this.#node.replaceChildren();
    this.#alone();
    const opener = this.#opener?.isConnected ? this.#opener : document.getElementById("composer-text");
    opener.focus({ preventScroll: this.#opener?.isConnected ?? false });
    opener.closest(".cite")?.setAttribute("data-shut", ""); // focus came by itself: no card over what is read now
    this.#opener = null;
  }

  // Where three panes do not fit, the sidebar is a rail as long as the panel stands beside the conversation.
  #fold() {
    if (!NARROW.matches) return;
    this.#side = document.body.dataset.side ?? "";
    document.body.dataset.side = "closed";
  }

  #unfold() {
    if (this.#side === null) return;
    if (document.body.dataset.side === "closed") document.body.dataset.side = this.#side; // else the person chose meanwhile
    if (!document.body.dataset.side) delete document.body.dataset.side;
    this.#side = null;
  }

  // As a sheet it stands alone: nothing behind it can be reached.
  #alone() {
    for (const id of ["main", "sidebar"]) document.getElementById(id).inert = this.isOpen && SHEET.matches;
  }
}

// "/library/ID/?v=2&at=1-9" <-> "ID?v=2&at=1-9"
const short = (address) => address.replace(/^\/library\/([^/]+)\//, "$1");

function long(text) {
  const found = /^([0-9a-f-]{36})(\?[\w=&-]*)?$/.exec(text);
  return found ? `/library/${found[1]}/${found[2] ?? ""}` : "";
}

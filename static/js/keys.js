// Shortcuts of the whole page. Single letters are never taken; what the browser needs is left alone.
import { toggleFind } from "find";
import { toggleSidebar } from "sidebar";

// on: { stop(), focusComposer(), copyLast() }; each may be missing on pages without a conversation.
export function watchKeys(on = {}) {
  document.addEventListener("keydown", (e) => {
    if (e.defaultPrevented || e.isComposing || e.keyCode === 229) return;
    const command = e.ctrlKey || e.metaKey;
    if (e.key === "Escape" && e.shiftKey) return take(e, on.focusComposer);
    if (e.key === "Escape" && !e.repeat && !command && !layerOpen()) return take(e, on.stop);
    if (command && !e.shiftKey && !e.altKey && e.code === "KeyK") return take(e, toggleFind);
    if (command && e.shiftKey && e.code === "KeyO") return take(e, () => document.querySelector(".row-new").click());
    if (command && e.shiftKey && e.code === "KeyS") return take(e, toggleSidebar);
    if (command && e.shiftKey && e.code === "Semicolon") return take(e, on.copyLast);
    if (command && e.code === "Slash") return take(e, showShortcuts);
    if (e.altKey && !command && (e.key === "ArrowUp" || e.key === "ArrowDown")) {
      return take(e, () => (e.shiftKey ? thread : message)(e.key === "ArrowDown" ? 1 : -1));
    }
    if (e.key === "F2" && !command) return take(e, () => document.querySelector("#title:not(:disabled)")?.click());
    return undefined;
  });
}

export function showShortcuts() {
  document.getElementById("shortcuts")?.showModal();
}

function take(e, act) {
  if (!act) return;
  if (act() !== false) e.preventDefault();
}

function layerOpen() {
  return Boolean(document.querySelector("dialog[open], .menu-of[open], .side-rename, .msg-edit, .bar-rename"));
}

function message(step) {
  const all = [...document.querySelectorAll("#thread article")];
  const box = document.getElementById("scroller");
  if (!all.length || !box) return;
  const top = box.getBoundingClientRect().top + 20;
  const here = document.activeElement.closest?.("#thread article");
  let at = here ? all.indexOf(here) + step : -1;
  if (!here) at = step > 0 ? all.findIndex((a) => a.getBoundingClientRect().top > top) : all.findLastIndex((a) => a.getBoundingClientRect().top < top - 24);
  const next = all[Math.min(all.length - 1, Math.max(0, at))];
  next.tabIndex = -1;
  next.focus({ preventScroll: true });
  next.scrollIntoView({ block: "start" });
}

function thread(step) {
  const rows = [...document.querySelectorAll("#side-list .side-item > .row")];
  const at = rows.findIndex((r) => r.hasAttribute("aria-current"));
  const next = rows[at < 0 ? 0 : at + step];
  if (next) location.assign(next.href);
}

// Toasts: 5 s, or 10 s with Undo; the time stands still while one is pointed at or focused.
import { clone, slot } from "words";

export function watchToasts(group) {
  const start = () => { for (const toast of group.querySelectorAll(".toast:not([data-left])")) run(toast); };
  new MutationObserver(start).observe(group, { childList: true });
  start();
  // what the toast tells happened once: loading the page again does not tell it again
  if (new URLSearchParams(location.search).has("deleted")) history.replaceState(history.state, "", location.pathname);
  group.addEventListener("click", (e) => { if (e.target.closest("[data-act=dismiss]")) close(e.target.closest(".toast")); });
  group.addEventListener("htmx:afterRequest", (e) => { if (e.detail.successful) close(e.target.closest(".toast")); });
}

function run(toast) {
  let left = Number(toast.dataset.time || 5);
  toast.dataset.left = String(left);
  const show = () => { const time = slot(toast, "left"); if (time) time.textContent = `${left}\u00a0s`; };
  show();
  const timer = setInterval(() => {
    if (!toast.isConnected) return clearInterval(timer);
    if (toast.matches(":hover, :focus-within")) return undefined;
    left -= 1;
    show();
    if (left <= 0) { clearInterval(timer); close(toast); }
    return undefined;
  }, 1000);
}

function close(toast) {
  if (!toast) return;
  const hadFocus = toast.contains(document.activeElement);
  toast.remove();
  if (hadFocus) (document.getElementById("composer-text") ?? document.getElementById("main"))?.focus();
}

// Shows words in place of what stands there. kind: progress stays until the next, told goes by itself.
export function tell(kind, words) {
  const toast = clone(`t-${kind}`);
  slot(toast, "text").textContent = words;
  document.getElementById("toasts").replaceChildren(toast);
}

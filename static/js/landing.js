// A message, or a tool's result, is brought into sight and marked: by the address (?at=) and by links to the same page.
const WAIT_MS = 10_000; // for the run going on to be shown again

let scroll = null;

// Once, on the page of a conversation. show(node): scrolls there. address(): the conversation's own.
export function watchLanding({ main, show, address }) {
  scroll = show;
  document.addEventListener("click", (e) => {
    const link = e.target.closest("a[href]");
    if (!link || e.defaultPrevented || e.ctrlKey || e.metaKey || e.shiftKey || e.altKey || e.button || link.target) return;
    const to = new URL(link.href);
    const id = to.searchParams.get("at");
    if (!id || to.origin !== location.origin || to.pathname !== new URL(address(), location.href).pathname) return;
    if (land(link.dataset.message ?? id)) e.preventDefault();
  });
  const { target = "", place = "" } = main.dataset;
  if (!("at" in main.dataset)) return false;
  if (land(target, place)) return true;
  landLater(target);
  return true;
}

// Shows the message of this id, or the result of this call, and returns whether it stands on the page. place: the id of
// the heading over it, where one call's id stands for several; without an id what stands under the heading is shown.
export function land(id, place = "") {
  const node = find(id, document.getElementById(place)?.closest("article"));
  if (!node) return false;
  for (let fold = node.closest("details"); fold; fold = fold.parentElement.closest("details")) fold.open = true;
  const own = node.querySelector(".step-fold");
  if (own && node.matches(".step")) own.open = true;
  scroll?.(node);
  mark(node);
  focus(node);
  return true;
}

function find(id, article) {
  if (id) {
    const named = CSS.escape(id);
    const known = `.msg-user[data-message="${named}"], .prose[data-message="${named}"], .step[data-call="${named}"]`;
    const found = (article?.matches(known) ? article : article?.querySelector(known)) ?? [...document.querySelectorAll(`#thread :is(${known})`)].at(-1);
    if (found) return found;
  }
  return article ?? null;
}

function landLater(id) {
  const live = document.getElementById("live");
  const watch = new MutationObserver(() => { if (land(id)) watch.disconnect(); });
  watch.observe(live, { childList: true, subtree: true });
  setTimeout(() => watch.disconnect(), WAIT_MS);
}

// The mark fades (message.css); marked again, it begins anew.
function mark(node) {
  for (const old of document.querySelectorAll("[data-landed]")) delete old.dataset.landed;
  void node.offsetWidth;
  node.dataset.landed = "";
}

// So that a screen reader reads on from there.
function focus(node) {
  const summary = node.matches(".step") ? node.querySelector("summary") : null;
  const article = node.closest("article") ?? node;
  if (!summary) article.tabIndex = -1;
  (summary ?? article).focus({ preventScroll: true });
}

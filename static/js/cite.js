// Citations of an answer: chips in the text with a card that quotes the passage or the message, the list of sources
// below. The same for live and stored answers: both carry data-citations on their prose.
import { source } from "items";
import { clone, icon, moment, say, slot } from "words";

const CHIP = "a.cite-chip";
const known = new WeakMap(); // prose -> [its data-citations, citation id -> citation]

// Turns what the server marked as citations into chips. May be called as often as there is new text.
export function chips(prose) {
  const citations = of(prose);
  for (const chip of prose.querySelectorAll(`${CHIP}:not([data-cited])`)) {
    const cited = citations.get(chip.hash.slice(3));
    if (cited) make(chip, cited);
  }
}

// Everything an answer shows about its sources, once its text is there.
export function sources(article) {
  const all = [...article.querySelectorAll(".prose")];
  for (const prose of all) chips(prose);
  const used = new Map(); // document or message -> its citations
  for (const prose of all) {
    const citations = of(prose);
    for (const chip of prose.querySelectorAll(`${CHIP}[data-cited]`)) {
      const cited = citations.get(chip.dataset.cited);
      const cites = used.get(source(cited)) ?? [];
      if (!cites.some((one) => address(one) === address(cited))) used.set(source(cited), [...cites, cited]);
    }
  }
  const list = slot(article, "used");
  if (!list) return;
  // what says nothing uses nothing; what only hands over a file leaves the sources to it
  const tells = all.length && (used.size || !article.querySelector(".artifact-card"));
  const left = tells ? JSON.parse(article.dataset.unused ?? "[]") : [];
  list.hidden = !used.size && !left.length;
  list.replaceChildren(...(list.hidden ? [] : [footer([...used.values()].sort((a, b) => a[0].number - b[0].number), left)]));
}

// A place in words; workbench/places.py says it the same way.
export function place({ page = 0, heading = [], sheet = "", rows = [0, 0], lines = [0, 0] }) {
  const found = page ? [say("placePage", { n: page })] : [];
  if (sheet) found.push(say("placeSheet", { name: sheet }));
  if (rows[0]) found.push(span("placeRow", rows));
  if (lines[0] && !page && !heading.length) found.push(span("placeLine", lines));
  if (heading.length) found.push(say("placeHeading", { name: heading.at(-1) }));
  return found.join(say("placeAnd"));
}

// Where what is cited stands, in words: the place in a document, or when a message was written. "" = it is not known.
export function where(cited) {
  return cited.message ? moment(cited.message.at) : place(cited.place);
}

export function named(cited) {
  return cited.name || say("citeConversation"); // one that has no title yet
}

// Where a citation leads: the document's page, or with the panel beside the conversation; or the message. Without a
// passage it leads to the document as a whole.
export function address({ documentId, version, start, end, message }) {
  if (message) return `/c/${inPath(message.threadId)}/?at=${encodeURIComponent(message.id)}`;
  return `/library/${documentId}/?v=${version}${end ? `&view=text&at=${start}-${end}` : ""}`;
}

// A thread's id as one piece of a path; workbench/addresses.py writes it the same way.
function inPath(id) {
  if (!/[/]|^~|^[.]{1,2}$/.test(id)) return encodeURIComponent(id);
  const bytes = String.fromCharCode(...new TextEncoder().encode(id));
  return `~${btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "")}`;
}

// Whether an answer on the page cites messages of this conversation, or names them as not used.
export function cites(threadId) {
  return Boolean(document.querySelector(`#thread a[data-thread="${CSS.escape(threadId)}"]`));
}

// Makes a link lead where the citation leads: what is deleted is named, and leads nowhere.
function lead(link, cited) {
  const { message } = cited;
  link.href = address(cited);
  if (!message) link.dataset.opens = "";
  else link.dataset.thread = message.threadId;
  if (!message?.gone) return;
  link.removeAttribute("href");
  link.dataset.state = "gone";
  link.tabIndex = 0;
  link.setAttribute("role", "link");
  link.setAttribute("aria-disabled", "true");
}

// The document behind a chip is gone: it is struck, and its card says why. The quote stays.
export function gone(chip) {
  chip.dataset.state = "gone";
  const why = chip.parentElement.querySelector("[data-slot=why]");
  if (why) why.textContent = say("citeGone");
}

function of(prose) {
  const json = prose.dataset.citations ?? "[]";
  if (known.get(prose)?.[0] !== json) known.set(prose, [json, new Map(JSON.parse(json).map((one) => [one.id, one]))]);
  return known.get(prose)[1];
}

function span(word, [first, last]) {
  return first >= last ? say(word, { n: first }) : say(`${word}s`, { n: first, m: last });
}

function make(chip, cited) {
  const at = where(cited);
  const version = cited.version > 1 ? say("citeVersion", { n: cited.version }) : "";
  const box = document.createElement("span");
  const card = clone("t-cite");
  box.className = "cite";
  chip.replaceWith(box);
  chip.dataset.cited = cited.id;
  lead(chip, cited);
  chip.removeAttribute("target");
  chip.setAttribute("aria-label", say(at ? "citeLabel" : "citeLabelBare", { n: cited.number, name: named(cited), place: at }));
  slot(card, "name").textContent = named(cited);
  slot(card, "where").textContent = [at, version].filter(Boolean).join(say("placeAnd"));
  slot(card, "quote").textContent = cited.quote;
  slot(card, "why").textContent = cited.message?.gone ? say("citeGoneMessage") : "";
  icon(card.querySelector(".icon"), cited.message ? "chat" : kind(cited.name));
  box.append(chip, card);
  chip.addEventListener("focus", () => describe(chip, card));
}

let unique = 0;
function describe(chip, card) {
  card.id ||= `cite-${++unique}`;
  chip.setAttribute("aria-describedby", card.id);
}

function kind(name) {
  const ending = /\.([^.]+)$/.exec(name)?.[1].toLowerCase() ?? "";
  if (["csv", "tsv", "xlsx"].includes(ending)) return "sheet";
  if (["html", "htm"].includes(ending)) return "web";
  return ["png", "jpg", "jpeg", "gif", "webp"].includes(ending) ? "image" : "file";
}

function footer(used, left) {
  const node = clone("t-sources");
  const count = { 0: "sourcesNone", 1: "sourcesOne" }[used.length] ?? "sources";
  const words = say(count, { n: used.length });
  slot(node, "count").textContent = left.length ? say("sourcesUnused", { sources: words, n: left.length }) : words;
  slot(node, "list").append(...used.map((citations) => {
    const line = clone("t-source");
    const [first] = citations;
    slot(line, "number").textContent = first.number;
    slot(line, "name").textContent = named(first);
    slot(line, "places").replaceChildren(...citations.flatMap((one, at) => {
      const link = document.createElement("a");
      link.className = "link link-quiet";
      lead(link, one);
      link.textContent = one.message?.gone ? say("sourceGone", { place: where(one) }).trim() : where(one) || say("sourceOpen");
      return at ? [say("placeAnd"), link] : [link];
    }));
    return line;
  }));
  if (left.length) slot(node, "list").append(notUsed(left));
  return node;
}

function notUsed(left) {
  const line = clone("t-unused");
  slot(line, "unused").append(...left.flatMap((one, at) => {
    const link = document.createElement("a");
    link.className = "link link-quiet";
    link.dir = "auto";
    lead(link, one);
    link.textContent = named(one);
    return at ? [say("unusedAnd"), link] : [link];
  }));
  return line;
}

// Esc closes the card that is open; pointing at another chip opens cards again.
document.addEventListener("keydown", (e) => {
  const open = document.querySelector(".cite:is(:hover, :focus-within):not([data-shut])");
  if (e.key !== "Escape" || !open) return;
  open.dataset.shut = "";
  e.preventDefault();
  e.stopImmediatePropagation();
}, true);
document.addEventListener("pointerover", (e) => { if (!e.target.closest?.(".cite")) unshut(); });
document.addEventListener("focusout", unshut);
function unshut() {
  for (const box of document.querySelectorAll(".cite[data-shut]")) delete box.dataset.shut;
}

// Citations of an answer: chips in the text with a card that quotes the passage, the list of sources below, the word
// that the documents do not answer. The same for live and stored answers: both carry data-citations on their prose.
import { clone, icon, say, slot } from "words";

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
  const used = new Map(); // document -> its citations, in the order of their numbers
  for (const prose of all) {
    const citations = of(prose);
    for (const chip of prose.querySelectorAll(`${CHIP}[data-cited]`)) {
      const cited = citations.get(chip.dataset.cited);
      const cites = used.get(cited.documentId) ?? [];
      if (!cites.some((one) => one.id === cited.id)) used.set(cited.documentId, [...cites, cited]);
    }
  }
  const list = slot(article, "used");
  if (!list) return;
  list.hidden = !used.size;
  list.replaceChildren(...(used.size ? [footer([...used.values()].sort((a, b) => a[0].number - b[0].number))] : []));
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

// Where a citation leads: the document's page, or with the panel beside the conversation.
function address({ documentId, version, start, end }) {
  return `/library/${documentId}/?v=${version}&view=text&at=${start}-${end}`;
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
  const where = place(cited.place);
  const box = document.createElement("span");
  const card = clone("t-cite");
  box.className = "cite";
  chip.replaceWith(box);
  chip.dataset.cited = cited.id;
  chip.dataset.opens = "";
  chip.href = address(cited);
  chip.removeAttribute("target");
  chip.setAttribute("aria-label", say(where ? "citeLabel" : "citeLabelBare", { n: cited.number, name: cited.name, place: where }));
  slot(card, "name").textContent = cited.name;
  slot(card, "where").textContent = [where, cited.version > 1 ? say("citeVersion", { n: cited.version }) : ""].filter(Boolean).join(say("placeAnd"));
  slot(card, "quote").textContent = cited.quote;
  icon(card.querySelector(".icon"), kind(cited.name));
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

function footer(documents) {
  const node = clone("t-sources");
  slot(node, "count").textContent = documents.length === 1 ? say("sourcesOne") : say("sources", { n: documents.length });
  slot(node, "list").append(...documents.map((citations) => {
    const line = clone("t-source");
    const [first] = citations;
    slot(line, "number").textContent = first.number;
    slot(line, "name").textContent = first.name;
    slot(line, "places").replaceChildren(...citations.flatMap((one, at) => {
      const link = document.createElement("a");
      link.className = "link link-quiet";
      link.href = address(one);
      link.dataset.opens = "";
      link.textContent = place(one.place) || say("sourceOpen");
      return at ? [say("placeAnd"), link] : [link];
    }));
    return line;
  }));
  return node;
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

// A person's message in the transcript. Used by view.js and runview.js.
import { download } from "parts";
import { put } from "steps";
import { clock, clone, say, slot, speak } from "words";

let unique = 0;

// Gives an article made from a template its heading, and says whose it is.
export function headed(node, key, at) {
  const heading = node.querySelector("h2");
  heading.id = `live-${++unique}`;
  node.setAttribute("aria-labelledby", heading.id);
  put(heading, say(key, { time: clock(at ?? Date.now()) }));
}

export function saidNode(item) {
  const node = clone("t-said");
  headed(node, "you", item.at);
  node.dataset.message = item.id;
  node.dataset.run = item.runId;
  node.querySelector("[data-act=edit]").hidden = Boolean(item.steer);
  fillSaid(node, item);
  return node;
}

export function fillSaid(node, item) {
  const body = slot(node, "text");
  put(body, item.text);
  speak(body, item.text);
  body.hidden = !item.text;
  const list = slot(node, "files");
  list.hidden = !item.files.length;
  if (list.childElementCount === item.files.length && list.dataset.named === String(item.files.every((f) => f.name))) return;
  list.dataset.named = String(item.files.every((f) => f.name));
  list.replaceChildren(...item.files.map((ref) => {
    const li = document.createElement("li");
    const chip = clone("t-chip");
    chip.href = download(ref);
    put(slot(chip, "name"), ref.name);
    li.append(chip);
    return li;
  }));
}

// The line in a conversation above which earlier messages are summarised for the model. The server renders it.
import { chips } from "cite";
import { copyButtons } from "parts";

const LINE = ".compaction";

// Makes the citations in the summaries of freshly rendered HTML what they are in answers.
export function readable(root) {
  for (const prose of root.querySelectorAll(`${LINE} .prose`)) {
    copyButtons(prose);
    chips(prose);
  }
}

// What is summarised stops to be so when the conversation goes on from before it: lines behind this node go.
export function cutAfter(node) {
  for (const line of document.querySelectorAll(`#thread ${LINE}`)) {
    if (node.compareDocumentPosition(line) & Node.DOCUMENT_POSITION_FOLLOWING) line.remove();
  }
}

// Puts the line of a freshly fetched transcript where it belongs among the messages that stand here already.
// fresh: a fragment with #transcript.
export function graft(fresh) {
  const root = fresh.querySelector("#transcript");
  const line = fresh.querySelector(LINE);
  const old = document.querySelector(`#thread ${LINE}`);
  if (!root || (line && old?.dataset.summary === line.dataset.summary)) return;
  if (!line) {
    if (old && !standsAbove(old, root)) old.remove();
    return;
  }
  readable(fresh);
  line.open = Boolean(old?.open);
  const focused = old?.contains(document.activeElement);
  old?.remove();
  if (!stand(line, root)) return;
  if (focused) line.querySelector("summary").focus({ preventScroll: true });
}

// The message on the page that is the same as this one of a fetched transcript; null if it is not here.
function here(article, root) {
  const { message, run } = article.dataset;
  const mine = article.matches(".msg-user")
    ? `.msg-user[data-message="${CSS.escape(message)}"]`
    : `.msg-assistant[data-run="${CSS.escape(run)}"]`;
  const at = [...root.querySelectorAll(mine)].indexOf(article);
  return document.querySelectorAll(`#thread ${mine}`)[at] ?? null;
}

// Puts the line before or behind the same message as in the fetched transcript, and returns whether that is here.
function stand(line, root) {
  const [next, last] = [line.nextElementSibling, line.previousElementSibling];
  const [before, behind] = [next && here(next, root), !next && last && here(last, root)];
  before?.before(line);
  if (behind) behind.after(line);
  return Boolean(before || behind);
}

// Whether a line stands above everything that was fetched: then the fetched part says nothing about it.
function standsAbove(line, root) {
  const first = root.querySelector("article");
  const same = root.querySelector(".older") && first && here(first, root);
  return Boolean(same) && Boolean(line.compareDocumentPosition(same) & Node.DOCUMENT_POSITION_FOLLOWING);
}

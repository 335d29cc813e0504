// Rows of a run: thoughts and tool calls. Used by view.js alone; model text goes in as textContent only.
import { clone, icon, say, seconds, sentence, size, slot, thought as thoughtTitle, ticking, toolFailure, toolNote } from "words";

export const BRIEF_MS = 50; // a shorter time is not worth a number
const STILL_MS = 30_000;
const STOP_MS = 5_000; // a step that takes so long can be stopped by itself
const BIG_ARGUMENTS = 2_000; // characters, from which their size is worth showing

export function row(item) {
  const node = clone(item.kind === "thought" ? "t-thought" : "t-step");
  if (item.kind === "tool") node.dataset.call = slot(node, "stop").dataset.call = item.id;
  const fold = node.querySelector(".step-fold");
  fold.addEventListener("toggle", () => { if (fold.dataset.byApp !== String(fold.open)) fold.dataset.touched = ""; });
  return node;
}

export function update(node, item, now) {
  if (item.kind === "thought") thought(node, item);
  else tool(node, item);
  tick(node, item, now);
}

// What changes with the clock alone.
export function tick(node, item, now) {
  const live = item.kind === "thought" ? item.open : isLive(item);
  const time = slot(node, "time");
  if (item.kind === "tool") slot(node, "stop").hidden = !(live && item.startedAt && now - item.startedAt >= STOP_MS);
  if (live && item.startedAt) {
    put(time, ticking(now - item.startedAt));
    if (item.kind === "tool") note(node, item, now);
  } else {
    put(time, item.ms >= BRIEF_MS ? seconds(item.ms) : "");
  }
}

export const isLive = (item) => item.kind === "tool" && (item.state === "running" || item.state === "preparing");

export function put(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Opens or closes a <details> for the person, who may overrule it for good.
export function unfold(details, open) {
  if ("touched" in details.dataset || details.open === open) return;
  details.dataset.byApp = String(open);
  details.open = open;
}

function thought(node, item) {
  mark(node, item.open ? "running" : "done", "thought");
  put(slot(node, "title"), item.open ? say("thinking") : thoughtTitle(item.ms ?? 0));
  append(slot(node, "text"), item.text);
  unfold(node.querySelector(".step-fold"), item.open);
}

function tool(node, item) {
  const done = !isLive(item);
  mark(node, item.state === "preparing" ? "running" : item.state, item.state === "done" ? "check" : "x");
  put(slot(node, "word"), item.state === "cancelled" ? say("cancelled") : item.state === "failed" ? say("failedCount", { n: 1 }) : "");
  title(slot(node, "title"), sentence(item.name, item.args, item.state), !done);
  put(slot(node, "arguments"), pretty(item.args, item.state !== "preparing"));
  put(slot(node, "result"), item.result);
  note(node, item, item.startedAt);
  bar(slot(node, "bar"), item.progress);
}

function title(node, [before, what, after], working) {
  node.classList.toggle("working", working);
  if (node.textContent === before + what + after) return;
  const bold = document.createElement("b");
  bold.dir = "auto";
  bold.textContent = what;
  node.replaceChildren(before, ...(what ? [bold] : []), after);
}

function note(node, item, now) {
  const line = slot(node, "note");
  const shown = noteWords(item, now);
  put(line, shown);
  line.hidden = !shown;
}

function noteWords(item, now) {
  switch (item.state) {
    case "preparing":
      return item.args.length > BIG_ARGUMENTS ? say("preparing", { size: size(item.args.length) }) : "";
    case "running": {
      const { text = "", done = null, total = null } = item.progress ?? {};
      const count = done !== null && total !== null ? say("outOf", { done, total }) : "";
      const shown = [text, count].filter(Boolean).join(", ");
      return shown || (now - item.startedAt > STILL_MS ? say("stillWorking") : "");
    }
    case "cancelled":
      return say("cancelled");
    case "failed":
      if (item.code === "lost" || item.code === "run_ended") return toolFailure(item.code, "");
      return say("wentOn", { reason: toolFailure(item.code, firstLine(item.summary || item.result)) });
    default:
      return toolNote(item.name, item.summary, item.data);
  }
}

function firstLine(text) {
  const line = text.split("\n").find((l) => l.trim())?.trim().replace(/^Error: /, "") ?? "";
  return line.length <= 160 ? line : `${line.slice(0, 159)}…`;
}

function bar(node, progress) {
  node.hidden = !progress || progress.total === null || progress.done === null;
  if (node.hidden) return;
  node.max = progress.total || 1;
  node.value = progress.done;
}

function mark(node, state, name) {
  if (node.dataset.state === state && node.dataset.marked) return;
  node.dataset.state = state;
  node.dataset.marked = "1";
  const svg = node.querySelector(".step-mark .icon");
  node.querySelector(".step-mark .ring").hidden = state !== "running";
  svg.toggleAttribute("hidden", state === "running");
  icon(svg, name);
}

// Text that only grows is appended to, so that a selection in it survives.
export function append(node, text) {
  const child = node.firstChild;
  if (child?.nodeType === Node.TEXT_NODE && text.startsWith(child.data)) {
    if (text.length > child.data.length) child.appendData(text.slice(child.data.length));
  } else {
    node.textContent = text;
  }
}

// What was asked: code as it runs, and below it the rest, if there is any. As in templatetags/transcript.py.
function pretty(args, complete) {
  if (!complete) return args;
  let asked;
  try {
    asked = JSON.parse(args);
  } catch {
    return args;
  }
  const { code, command, ...rest } = asked ?? {};
  const runs = [command, code].find((text) => typeof text === "string" && text);
  if (!runs) return JSON.stringify(asked, null, 2);
  return Object.keys(rest).length ? `${runs.trimEnd()}\n\n${JSON.stringify(rest, null, 2)}` : runs.trimEnd();
}

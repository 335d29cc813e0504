// The words over and under a run: what it does now, how it ended, what to do about it. Used by runview.js.
import { put } from "steps";
import { clone, failure, say, seconds, slot, steps, ticking } from "words";

const BRIEF_MS = 100; // of a run's time, which is not worth a number below

export function doing(state, now) {
  if (state.phase === "stopping") return say("stopping");
  if (state.waiting) return say("waiting", { time: ticking(Math.max(0, state.waiting.at + state.waiting.delayMs - now)) });
  if (state.summarising) return say("summarising");
  const last = state.items.findLast((i) => i.kind !== "note");
  if (last?.kind === "thought" && last.open) return say("thinking");
  if (last?.kind === "text" && last.open) return say("writing");
  if (!last || last.kind === "said") return say("starting");
  return say("working");
}

export function overWords(state, spent, count) {
  const key = { done: count ? "doneSteps" : "done", stopped: "stopped", lost: "interrupted" }[state.phase] ?? "failed";
  return say(spent < BRIEF_MS ? `${key}AtOnce` : key, { time: seconds(spent), steps: steps(count) });
}

export function ending(state) {
  const hasText = state.items.some((i) => i.kind === "text" && i.text.trim());
  const spent = state.startedAt && state.endedAt ? state.endedAt - state.startedAt : 0;
  if (state.phase === "stopped") {
    const note = clone("t-stopped");
    put(slot(note, "text"), overWords(state, spent, 0));
    note.querySelector("[data-act=continue]").hidden = !hasText;
    return [note];
  }
  if (state.phase !== "failed" && state.phase !== "lost") return state.early ? [clone("t-cut")] : [];
  const box = clone("t-error");
  const [title, text] = failure(state.error.code);
  put(slot(box, "title"), title);
  put(slot(box, "text"), text);
  box.setAttribute("aria-label", title);
  box.querySelector("[data-act=continue]").hidden = !hasText;
  const reference = slot(box, "reference");
  put(reference, state.error.reference);
  reference.hidden = !state.error.reference;
  return [box];
}

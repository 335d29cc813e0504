// Words in the person's language (one JSON script in the page), numbers, and the page's <template> elements.

const words = JSON.parse(document.getElementById("words")?.textContent ?? "{}");
const locale = document.documentElement.lang || "en";

export function say(key, values = {}) {
  return fill(words[key] ?? "", values);
}

export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

// A sentence of a table of them; "" for a key that is not there.
export function word(table, key) {
  return words[table]?.[key] ?? "";
}

export function failure(code) {
  return words.failures[code] ?? words.failures.other;
}

// Why a call failed. reason: the tool's own words, for what only it knows.
export function toolFailure(code, reason) {
  return fill(words.toolFailures[code] ?? words.toolFailures.tool_failed, { reason });
}

export function rejection(code) {
  return words.rejections[code] ?? words.rejections.other;
}

export function seconds(ms) {
  const whole = Math.round(ms / 1000);
  if (ms < 9950) return say("seconds", { n: (Math.max(ms, 0) / 1000).toFixed(1) });
  if (whole < 60) return say("seconds", { n: whole });
  return say("minutes", { m: Math.floor(whole / 60), s: whole % 60 });
}

// Live seconds count whole ones; a tenth that jumps is restless.
export function ticking(ms) {
  const whole = Math.max(0, Math.floor(ms / 1000));
  return whole < 60 ? say("seconds", { n: whole }) : say("minutes", { m: Math.floor(whole / 60), s: whole % 60 });
}

export function thought(ms) {
  return ms >= 1000 ? say("thought", { time: seconds(ms) }) : say("thoughtBriefly");
}

export function steps(count) {
  return say(count === 1 ? "step" : "steps", { n: count });
}

export function size(bytes) {
  if (bytes < 1024) return say("bytes", { n: bytes }).replace(" ", "\u00a0");
  const units = ["KB", "MB", "GB"];
  let n = bytes / 1024, unit = 0;
  for (; n >= 1024 && unit < 2; unit++) n /= 1024;
  return `${n.toLocaleString(locale, { maximumFractionDigits: 1 })}\u00a0${units[unit]}`;
}

export function number(n) {
  return n.toLocaleString(locale);
}

export function clock(at) {
  return new Date(at).toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit", hour12: false });
}

// A day and a time: "3 May, 14:02", of another year "3 May 2025, 14:02"; "" for none.
export function moment(at) {
  if (!at) return "";
  const day = new Date(at);
  const year = day.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  return day.toLocaleString(locale === "en" ? "en-GB" : locale, { day: "numeric", month: "short", year, hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
}

// A call's intent as [before, what, after]. args may be half a JSON object: what is there already is shown.
// state: of a step; what was cancelled was only begun.
export function sentence(name, args, state) {
  const own = words.tools[name];
  const tool = own ?? words.tools["*"];
  const what = own ? argument(args, own.argument) : name;
  const [whole, bare] = { done: [tool.done, tool.bareDone], failed: [tool.failed, tool.bareFailed] }[state] ?? [tool.running, tool.bareRunning];
  if (!what) return [bare, "", ""];
  const [before, after] = whole.split("{what}");
  return [before, what, after ?? ""];
}

// What a call brought: of a text the place, of a search the counts; else the tool's own summary. As in wording.py.
export function toolNote(name, summary, data) {
  const kinds = { search_knowledge: ["passage", "document"], session_search: ["message", "conversation"] }[name];
  if (kinds && data.hits) {
    const passages = counted(kinds[0], data.hits.length);
    const documents = counted(kinds[1], data[`${kinds[1]}s`] ?? 0);
    return data.hits.length ? say("found", { passages, documents }) : say("nothingFound");
  }
  if (name === "session_load" && "count" in data) return counted("message", data.count);
  if (["memory_search", "memory_load"].includes(name) && "count" in data) return data.count ? counted("memory", data.count, "memories") : say("nothingFound");
  if (["workspace_exec", "workspace_write_stdin", "skill_run"].includes(name) && "status" in data) return codeNote(data);
  if (name === "list_documents" && "documents" in data) return counted("document", data.documents);
  const pattern = /^(?:sheet (.*), )?(page|line|row)s? (\d+)(?:-(\d+))?(?:, under "(.*)")?$/s;
  const found = ["read_artifact", "read_document"].includes(name) && pattern.exec(data.anchor ?? "");
  if (!found) return summary;
  const [, sheet, kind, n, m, heading] = found;
  let place = m ? say(`${kind}s`, { n, m }) : say(kind, { n });
  if (sheet) place = say("inSheet", { sheet, place });
  return heading ? say("under", { place, heading }) : place;
}

// How code ended, if not well, and how many files it wrote. As in wording.py.
function codeNote({ status, exit_code: code, stopped, files = [] }) {
  if (status !== "exited") return status === "running" ? say("goesOn") : "";
  const ended = stopped ? say(`stopped_${stopped}`) : code ? say("exitStatus", { n: code }) : "";
  const wrote = files.length ? say(files.length === 1 ? "fileWritten" : "filesWritten", { n: files.length }) : "";
  return [ended, wrote].filter(Boolean).join(" · ");
}

function counted(word, n, many = `${word}s`) {
  return say(n === 1 ? word : many, { n });
}

// By what its calls did; if nothing was done, no more is said than that it was tried.
export function phaseName(calls) {
  const kinds = new Set(calls.filter((i) => i.state === "done").map((i) => (words.tools[i.name] ?? words.tools["*"]).phase));
  return kinds.size === 1 ? [...kinds][0] : words.tools["*"].phase;
}

// What a text is mostly written in, by its script: zh-CN, en, or "" if it is neither. As in wording.py.
export function language(text) {
  const said = text.replace(/```[\s\S]*?(?:```|$)|`[^`\n]*`/g, " ");
  const han = said.match(/[\u3400-\u9fff]/g)?.length ?? 0;
  const latin = said.match(/[A-Za-z\u00c0-\u024f]+/g)?.length ?? 0;
  if (!(han + latin) || /[\u3040-\u30ff\uac00-\ud7af]/.test(said)) return "";
  return han >= latin ? "zh-CN" : "en";
}

export function speak(node, text) {
  const lang = language(text);
  if (lang && node.lang !== lang) node.lang = lang;
}

export function clone(id) {
  return document.getElementById(id).content.firstElementChild.cloneNode(true);
}

export function slot(root, name) {
  return root.querySelector(`[data-slot="${name}"]`);
}

export function icon(svg, name) {
  svg.querySelector("use").setAttribute("href", `#i-${name}`);
}

export function uuid() {
  if (crypto.randomUUID) return crypto.randomUUID(); // only where the address is https or localhost
  const b = crypto.getRandomValues(new Uint8Array(16));
  b[6] = (b[6] & 0x0f) | 0x40;
  b[8] = (b[8] & 0x3f) | 0x80;
  const hex = [...b].map((x) => x.toString(16).padStart(2, "0")).join("");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
}

function argument(args, name) {
  const found = new RegExp(`"${name}"\\s*:\\s*"((?:[^"\\\\]|\\\\.)*)`).exec(args);
  if (!found) return "";
  let value = found[1];
  try {
    value = JSON.parse(`"${value}"`);
  } catch {
    return ""; // half an escape: the next piece brings the rest
  }
  if (value.startsWith("artifact://")) value = value.slice(11).replace(/@[^@]*$/, "");
  return value.slice(0, 120);
}

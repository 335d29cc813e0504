// Words in the person's language (one JSON script in the page), numbers, and the page's <template> elements.

const words = JSON.parse(document.getElementById("words")?.textContent ?? "{}");
const locale = document.documentElement.lang || "en";

export function say(key, values = {}) {
  return fill(words[key] ?? "", values);
}

export function fill(sentence, values) {
  return sentence.replace(/\{(\w+)\}/g, (whole, name) => values[name] ?? whole);
}

export function failure(code) {
  return words.failures[code] ?? words.failures.other;
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
  const units = ["bytes", "KB", "MB", "GB"];
  let n = bytes, unit = 0;
  for (; n >= 1024 && unit < 3; unit++) n /= 1024;
  return `${n.toLocaleString(locale, { maximumFractionDigits: unit ? 1 : 0 })}\u00a0${units[unit]}`;
}

export function clock(at) {
  return new Date(at).toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit", hour12: false });
}

// A call's intent as [before, what, after]. args may be half a JSON object: what is there already is shown.
export function sentence(name, args, done) {
  const own = words.tools[name];
  const tool = own ?? words.tools["*"];
  const what = own ? argument(args, own.argument) : name;
  if (!what) return [done ? tool.bareDone : tool.bareRunning, "", ""];
  const [before, after] = (done ? tool.done : tool.running).split("{what}");
  return [before, what, after ?? ""];
}

// What a call brought: for a file that was read the place, else the tool's own summary.
export function toolNote(name, summary, data) {
  const found = name === "read_artifact" && /^(page|line)s? (\d+)(?:-(\d+))?(?:, under "(.*)")?$/s.exec(data.anchor ?? "");
  if (!found) return summary;
  const [, kind, n, m, heading] = found;
  const place = m ? say(`${kind}s`, { n, m }) : say(kind, { n });
  return heading ? say("under", { place, heading }) : place;
}

export function phaseName(names) {
  const kinds = new Set(names.map((n) => (words.tools[n] ?? words.tools["*"]).phase));
  return kinds.size === 1 ? [...kinds][0] : words.tools["*"].phase;
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

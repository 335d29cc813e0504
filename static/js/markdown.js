// An answer as Markdown with footnotes, from the HTML our server made of it: what is copied can be pasted anywhere.
import { named, where } from "cite";
import { say } from "words";

// Returns the text of an answer's prose, its citations as [^1] and listed at the end.
export function answerMarkdown(article) {
  const notes = new Map(); // citation id -> its line
  const cite = (chip) => {
    const cited = JSON.parse(chip.closest(".prose").dataset.citations ?? "[]").find((one) => one.id === chip.dataset.cited);
    if (!cited) return chip.textContent;
    if (!notes.has(cited.id)) {
      const source = [named(cited), where(cited)].filter(Boolean).join(say("placeAnd"));
      notes.set(cited.id, `[^${notes.size + 1}]: ${source}: ${say("citeQuote", { quote: cited.quote.replace(/\s+/g, " ").trim() })}`);
    }
    return `[^${[...notes.keys()].indexOf(cited.id) + 1}]`;
  };
  const text = [...article.querySelectorAll(".prose")].map((prose) => blocks(prose, cite)).filter(Boolean).join("\n\n");
  return notes.size ? `${text}\n\n${[...notes.values()].join("\n")}` : text;
}

function blocks(node, cite) {
  return [...node.childNodes].map((child) => block(child, cite)).filter((text) => text.trim()).join("\n\n").trim();
}

function block(node, cite) {
  if (node.nodeType === Node.TEXT_NODE) return clean(node.textContent);
  const name = node.nodeName;
  if (/^H[3-6]$/.test(name)) return `${"#".repeat(Number(name[1]) - 2)} ${inline(node, cite)}`;
  if (name === "UL" || name === "OL") return list(node, cite);
  if (name === "BLOCKQUOTE") return blocks(node, cite).replace(/^/gm, "> ");
  if (name === "HR") return "---";
  if (node.matches(".code")) return code(node);
  if (node.matches(".table-scroll")) return table(node, cite);
  return inline(node, cite);
}

function list(node, cite) {
  const first = Number(node.getAttribute("start") ?? 1);
  return [...node.children].map((item, at) => {
    const mark = node.nodeName === "OL" ? `${first + at}. ` : "- ";
    const loose = item.querySelector(":scope > p");
    const parts = [];
    let run = "";
    for (const child of item.childNodes) {
      if (/^(UL|OL|P|BLOCKQUOTE|DIV)$/.test(child.nodeName)) {
        if (run.trim()) parts.push(run.trim());
        run = "";
        parts.push(block(child, cite));
      } else run += piece(child, cite);
    }
    if (run.trim()) parts.push(run.trim());
    return mark + parts.join(loose ? "\n\n" : "\n").replace(/\n(?=.)/g, `\n${" ".repeat(mark.length)}`);
  }).join("\n");
}

function code(node) {
  const text = node.querySelector("code").textContent.replace(/\n$/, "");
  const longest = Math.max(2, ...[...text.matchAll(/`+/g)].map((m) => m[0].length));
  const fence = "`".repeat(longest + 1);
  return `${fence}${node.querySelector(".code-head span")?.textContent ?? ""}\n${text}\n${fence}`;
}

function table(node, cite) {
  const rows = [...node.querySelectorAll("tr")].map((row) => [...row.children]);
  const line = (cells) => `| ${cells.join(" | ")} |`;
  const [head, ...rest] = rows;
  const words = (row) => line(row.map((cell) => inline(cell, cite).replaceAll("|", "\\|")));
  return [words(head), line(head.map((cell) => (cell.matches(".num-cell") ? "---:" : "---"))), ...rest.map(words)].join("\n");
}

function inline(node, cite) {
  return [...node.childNodes].map((child) => piece(child, cite)).join("").trim();
}

function piece(node, cite) {
  if (node.nodeType === Node.TEXT_NODE) return clean(node.textContent);
  if (node.matches(".cite")) return cite(node.querySelector(".cite-chip"));
  if (node.matches(".cite-card, .caret, .sr-only")) return "";
  const text = [...node.childNodes].map((child) => piece(child, cite)).join("");
  switch (node.nodeName) {
    case "STRONG": return `**${text}**`;
    case "EM": return `*${text}*`;
    case "S": return `~~${text}~~`;
    case "CODE": return `\`${node.textContent}\``;
    case "BR": return "\n";
    case "A": return node.getAttribute("href") === text ? text : `[${text}](${node.getAttribute("href")})`;
    default: return text;
  }
}

const clean = (text) => text.replaceAll("\u2060", "").replace(/\s*\n\s*/g, " ");

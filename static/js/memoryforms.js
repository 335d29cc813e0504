// Forms about memories: their counters, Ctrl Enter and Esc, and what the server sends back that it cannot take.
import { imeOf } from "ime";
import { say } from "words";

let most = 0;

// chars: how many a text may have.
export function watchForms(chars) {
  most = chars;
  document.addEventListener("input", (e) => { if (e.target.dataset.count) count(e.target); });
  document.addEventListener("keydown", keys);
  document.body.addEventListener("htmx:beforeSwap", refused);
  document.body.addEventListener("htmx:afterSwap", swapped);
}

export function counts() {
  for (const field of document.querySelectorAll("[data-count]")) count(field);
}

function count(field) {
  const n = [...field.value].length; // characters as the server counts them
  const shows = document.getElementById(field.dataset.count);
  shows.textContent = say("characters", { n: n.toLocaleString(), most: most.toLocaleString() });
  shows.toggleAttribute("data-over", n > most);
}

function keys(e) {
  const form = e.target.closest?.("form.memory-edit");
  if (!form || imeOf(e.target).owns(e)) return;
  if (e.key === "Enter" && (e.ctrlKey || e.metaKey) && e.target.matches("textarea")) {
    e.preventDefault();
    form.requestSubmit();
  } else if (e.key === "Escape" && !written(form)) { // what was written is not thrown away by a key
    e.preventDefault();
    form.querySelector("[data-cancel]").click();
  }
}

const written = (form) => [...form.querySelectorAll("textarea, input:not([type=hidden])")].some((field) => field.value !== field.defaultValue);

// A form that comes back with what was typed and why is shown; error pages are something else.
function refused(e) {
  if (e.detail.xhr.status < 400 || !e.detail.xhr.getResponseHeader("HX-Reswap")) return;
  e.detail.shouldSwap = true;
  e.detail.isError = false;
}

function swapped(e) {
  counts();
  const fresh = e.detail.elt;
  const edited = document.querySelector("#memories tr[data-editing]");
  const wrong = document.querySelector(".memory-edit [aria-invalid=true]");
  if (wrong) wrong.focus();
  else if (fresh.matches?.("tr") && edited && !edited.contains(document.activeElement)) edited.querySelector("textarea").focus();
  else if (document.activeElement === document.body) (fresh.querySelector?.("[data-key=edit]") ?? document.querySelector("[data-act=add-memory]")).focus();
}

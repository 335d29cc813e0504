// The conversation's title in the header: live, and renamed in place (click or F2).
import { refreshSidebar } from "sidebar";
import { say } from "words";

export function showTitle(title) {
  const button = document.getElementById("title");
  if (!title || button.textContent === title) return;
  button.textContent = title;
  document.title = `${title} · Workbench`;
}

export function renameHere(address, csrf) {
  const button = document.getElementById("title");
  if (button.hidden) return;
  const form = document.createElement("form");
  form.className = "bar-rename";
  const field = document.createElement("input");
  Object.assign(field, { className: "input", name: "title", value: button.textContent, maxLength: 200, required: true });
  field.dataset.ime = "";
  field.setAttribute("aria-label", button.title);
  form.append(field);
  button.hidden = true;
  button.after(form);
  field.focus();
  field.select();
  let open = true;
  const close = (focus) => {
    if (!open) return; // removing the field blurs it, which comes here again
    open = false;
    form.remove();
    button.hidden = false;
    if (focus) button.focus();
  };
  form.addEventListener("submit", (e) => {
    e.preventDefault();
    const before = button.textContent;
    const title = field.value.trim().replace(/\s+/g, " ");
    if (!title) return;
    showTitle(title); // at once; taken back if the server does not keep it
    close(true);
    store(address, csrf, title).then((kept) => { if (!kept) failed(button, before); });
  });
  field.addEventListener("keydown", (e) => {
    if (e.key !== "Escape") return;
    e.preventDefault();
    e.stopPropagation();
    close(true);
  });
  field.addEventListener("blur", () => close(false));
}

async function store(address, csrf, title) {
  const body = new URLSearchParams({ title });
  const headers = { "X-CSRFToken": csrf, "HX-Request": "true" };
  const response = await fetch(address, { method: "POST", body, headers }).catch(() => null);
  refreshSidebar();
  return response?.ok ?? false;
}

function failed(button, before) {
  showTitle(before);
  button.dataset.state = "failed";
  button.title = say("loadFailed");
  document.getElementById("shout").textContent = say("loadFailed");
}

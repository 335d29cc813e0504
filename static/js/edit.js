// Changing a message that was sent: its text becomes a field in its place. IME rules as everywhere (data-ime).
import { imeOf } from "ime";
import { clone, slot } from "words";

// Opens the field. done({ text, files }) is called once, on Send.
export function edit(article, done) {
  if (article.querySelector(".msg-edit")) return;
  const body = slot(article, "text");
  const form = clone("t-edit");
  const field = form.querySelector("textarea");
  field.value = body.textContent;
  const close = () => {
    form.remove();
    body.hidden = !body.textContent;
    article.classList.remove("is-editing");
    article.querySelector("[data-act=edit]")?.focus();
  };
  const submit = () => {
    const text = field.value.trim();
    const files = filesOf(article);
    if (!text && !files.length) return;
    form.remove();
    done({ text, files });
  };
  form.addEventListener("submit", (e) => { e.preventDefault(); submit(); });
  form.querySelector("[data-act=edit-cancel]").addEventListener("click", close);
  field.addEventListener("keydown", (e) => {
    if (imeOf(field).owns(e)) return;
    if (e.key === "Escape") {
      e.preventDefault();
      e.stopPropagation();
      close();
    } else if (e.key === "Enter" && !e.shiftKey && (e.ctrlKey || e.metaKey || !matchMedia("(pointer: coarse)").matches)) {
      e.preventDefault();
      submit();
    }
  });
  body.hidden = true;
  article.classList.add("is-editing");
  body.before(form);
  field.focus();
  field.setSelectionRange(field.value.length, field.value.length);
}

// The files of a message, from its chips.
export function filesOf(article) {
  return [...slot(article, "files").querySelectorAll("a.chip")].flatMap((chip) => {
    const found = /\/files\/([0-9a-f-]+)\/(\d+)\//i.exec(chip.getAttribute("href") ?? "");
    return found ? [{ artifactId: found[1], version: Number(found[2]), name: slot(chip, "name").textContent, mime: "", sizeBytes: 0 }] : [];
  });
}

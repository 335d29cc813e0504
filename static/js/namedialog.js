// The dialog that asks for a name: of a new collection, another one of a collection or of a document.
import { say } from "words";

// kind: new, rename or document (words of the title). done(): it is stored.
export function askName(kind, address, name, done) {
  const dialog = document.getElementById("name-dialog");
  const form = dialog.querySelector("form");
  const field = form.elements.name;
  const title = dialog.querySelector(".dialog-title");
  const before = document.activeElement;
  title.textContent = title.dataset[kind];
  field.value = name;
  field.maxLength = kind === "document" ? 255 : 120;
  complain(form, "");
  form.onsubmit = async (e) => {
    e.preventDefault();
    const response = await fetch(address, { method: "POST", body: new FormData(form), headers: { "HX-Request": "true" } }).catch(() => null);
    if (response?.ok && !response.redirected) {
      dialog.close();
      done();
    } else {
      complain(form, response?.status === 422 ? await response.text() : say("nameFailed"));
      field.focus();
    }
  };
  dialog.onclick = (e) => { if (e.target.closest("[data-act=close-dialog]")) dialog.close(); };
  dialog.onclose = () => before?.isConnected && before.focus();
  dialog.showModal();
  field.select();
}

function complain(form, words) {
  const error = form.querySelector(".field-error");
  error.textContent = words;
  error.hidden = !words;
  form.elements.name.toggleAttribute("aria-invalid", Boolean(words));
}

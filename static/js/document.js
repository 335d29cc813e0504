// A document's own page.
import { forgetDraft, showDocument, watchDocument } from "docview";

const main = document.getElementById("main");
const shown = main.querySelector("[data-document]").dataset;

if (sessionStorage.getItem("saving") === shown.document) {
  sessionStorage.removeItem("saving");
  if (shown.view !== "edit") forgetDraft(shown); // the server answered with the saved version, not with a conflict
}
watchDocument(main);
showDocument(main);
main.addEventListener("submit", (e) => { if (e.target.matches("[data-draft]")) sessionStorage.setItem("saving", shown.document); });
main.dataset.ready = "";

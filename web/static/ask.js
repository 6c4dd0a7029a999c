// Asks once more in a dialog what the page of the link would ask; without this file that page does. Esc closes, the focus returns.
"use strict";
(() => {
  async function ask(link) {
    const answer = await fetch(link.href, { headers: { Accept: "text/html" } });
    const next = new DOMParser().parseFromString(await answer.text(), "text/html");
    const part = next.getElementById("ask");
    if (!part) throw new Error("no question");
    if (document.querySelector("dialog.asking")) return; // pressed twice
    const dialog = document.createElement("dialog");
    const title = document.createElement("h2");
    title.id = "ask-heading";
    title.textContent = next.getElementById("ask-heading").textContent;
    dialog.setAttribute("aria-labelledby", title.id);
    dialog.className = "asking";
    dialog.append(title, part);
    document.body.append(dialog);
    dialog.querySelector("[data-cancel]").addEventListener("click", (event) => {
      event.preventDefault();
      dialog.close();
    });
    dialog.addEventListener("close", () => {
      dialog.remove();
      [...document.querySelectorAll("a[data-ask]")].find((a) => a.href === link.href)?.focus(); // the page may have changed meanwhile
    });
    dialog.showModal();
  }

  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-ask]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    event.preventDefault();
    ask(link).catch(() => { location.href = link.href; });
  });
})();

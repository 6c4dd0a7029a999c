// Keys for those who like them, and copy buttons. Nothing here is the only way to anything.
"use strict";
(() => {
  const help = document.getElementById("keys-help");
  for (const link of document.querySelectorAll(".keys-link")) {
    link.hidden = false;
    link.addEventListener("click", (event) => {
      event.preventDefault();
      help.showModal();
    });
  }
  // copy puts a text into the clipboard. A browser that does not let us (no https, no leave) has it selected for the reader to copy.
  async function copy(button) {
    const text = document.getElementById(button.dataset.copy);
    let words = "Copied";
    try {
      await navigator.clipboard.writeText(text.innerText);
    } catch {
      getSelection().selectAllChildren(text);
      words = "The text is selected: copy it";
    }
    button.textContent = words;
    document.getElementById("status").textContent = words;
  }
  for (const button of document.querySelectorAll("[data-copy]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }

  const rows = () => [...document.querySelectorAll("#rows tbody tr")];
  // The row one is in: where the focus is, else where j and k were last.
  const current = () => document.activeElement.closest("#rows tbody tr") || document.querySelector("#rows tr.current");
  function go(step) {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(current());
    const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
    all.forEach((row) => row.classList.toggle("current", row === next));
    next.querySelector("th a")?.focus();
    next.scrollIntoView({ block: "nearest" });
  }
  const follow = (rel) => document.querySelector(`.siblings a[rel="${rel}"]`)?.click();
  const actions = {
    "/": () => document.querySelector("[data-search]")?.focus(),
    j: () => go(1),
    k: () => go(-1),
    "[": () => follow("prev"),
    "]": () => follow("next"),
    c: () => {
      const box = current()?.querySelector("input[type=checkbox]");
      if (box) box.checked = !box.checked;
    },
    "?": () => help.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (event.target.closest("input:not([type=checkbox]), select, textarea, [contenteditable]")) return;
    const act = actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();

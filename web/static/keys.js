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
  for (const button of document.querySelectorAll("[data-copy]")) {
    if (!navigator.clipboard) continue;
    button.hidden = false;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).innerText);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Select the text and copy it";
      }
    });
  }

  const rows = () => [...document.querySelectorAll("#rows tbody tr")];
  function go(step) {
    const all = rows();
    if (!all.length) return;
    const at = all.findIndex((row) => row.classList.contains("current"));
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
      const box = document.querySelector("#rows tr.current input[type=checkbox]");
      if (box) box.checked = !box.checked;
    },
    "?": () => help.showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
    if (event.target.closest("input, select, textarea, [contenteditable]")) return;
    const act = actions[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
})();

// Checks a new study's text while it is written: the server reads it by the code of sgtune check and sends what it
// says. Without this file the button Check does the same.
"use strict";
(() => {
  const form = document.getElementById("draft");
  const text = document.getElementById("text");
  const gutter = document.getElementById("gutter");
  const spoken = document.getElementById("status");
  let due;
  let asking;
  let lines = 0;

  function number() {
    const now = text.value.split("\n").length;
    if (now === lines) return;
    lines = now;
    gutter.textContent = Array.from({ length: now }, (_, i) => i + 1).join("\n");
    text.rows = Math.max(now + 1, 12);
  }

  // place puts the cursor where a mistake is.
  function place(line, column) {
    const before = text.value.split("\n").slice(0, line - 1);
    const start = before.reduce((n, part) => n + part.length + 1, 0) + column - 1;
    text.focus();
    text.setSelectionRange(start, start);
  }

  function enliven() {
    for (const at of document.querySelectorAll("#checked .place")) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = at.textContent;
      button.addEventListener("click", () => place(Number(at.dataset.line), Number(at.dataset.col)));
      at.replaceChildren(button);
    }
    for (const button of document.querySelectorAll("#checked [data-copies]")) {
      if (!navigator.clipboard) continue;
      button.hidden = false;
      button.addEventListener("click", async () => {
        try {
          await navigator.clipboard.writeText(document.getElementById(button.dataset.copies).innerText);
          button.textContent = "Copied";
        } catch {
          button.textContent = "Select the text and copy it";
        }
      });
    }
  }

  function say(words) {
    if (spoken.textContent !== words) spoken.textContent = words;
  }

  // trouble tells that what is shown is of an older text.
  function trouble(words) {
    const old = document.getElementById("checked");
    const p = document.createElement("p");
    p.className = "mark alert trouble";
    p.textContent = words;
    old.querySelector(".trouble")?.remove();
    old.prepend(p);
    say(words);
  }

  async function check() {
    asking?.abort();
    const mine = new AbortController();
    asking = mine;
    try {
      const answer = await fetch(form.action, { method: "POST", body: new URLSearchParams({ text: text.value, do: "part" }), signal: mine.signal, headers: { Accept: "text/html" } });
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine.signal.aborted) return;
      const fresh = next.getElementById("checked");
      if (!answer.ok || !fresh) {
        trouble(`Not checked (${answer.status}). ${answer.status === 413 ? "The text is too long for a study file." : "Change the text to try again."}`);
        return;
      }
      const old = document.getElementById("checked");
      const open = old.querySelector("details")?.open;
      old.replaceWith(fresh);
      const details = fresh.querySelector("details");
      if (details && open) details.open = true;
      enliven();
      say(fresh.dataset.says);
    } catch {
      if (!mine.signal.aborted) trouble("Not checked: no connection to sgtune. Change the text to try again.");
    }
  }

  text.addEventListener("input", () => {
    number();
    document.getElementById("checked").dataset.stale = "";
    clearTimeout(due);
    due = setTimeout(check, 350);
  });
  number();
  enliven();
})();

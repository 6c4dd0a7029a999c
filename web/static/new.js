// Checks a new study while it is written: the server puts what changed in the form into the text, reads the text by the code of
// sgtune check, and sends what both are now. Without this file the buttons do the same.
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

  // show brings one half to the front of a narrow screen.
  function show(half) {
    form.dataset.half = half;
    document.getElementById("half").value = half;
    for (const button of form.querySelectorAll(".halves button")) button.setAttribute("aria-pressed", String(button.value === half));
  }

  // place puts the cursor where a mistake is.
  function place(line, column) {
    const before = text.value.split("\n").slice(0, line - 1);
    const start = before.reduce((n, part) => n + part.length + 1, 0) + column - 1;
    show("text");
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
      button.hidden = false;
      button.addEventListener("click", async () => {
        const text = document.getElementById(button.dataset.copies);
        try {
          await navigator.clipboard.writeText(text.innerText);
          button.textContent = "Copied";
        } catch { // no https, no leave
          getSelection().selectAllChildren(text);
          button.textContent = "The text is selected: copy it";
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

  // refill puts the fields of the text into the page. What is typed and not yet sent, which is in one field at most, stays.
  function refill(fresh) {
    const old = document.getElementById("fields");
    const here = old.contains(document.activeElement) ? document.activeElement : null;
    const entries = (fields) => [...fields.querySelectorAll(".entry")];
    const theirs = entries(fresh);
    if (!theirs.length || !entries(old).length) { // a text without a form, or no longer
      old.replaceWith(fresh);
      return;
    }
    const kept = new Set(theirs.map((entry) => entry.id));
    for (const entry of entries(old)) if (!kept.has(entry.id)) entry.remove();
    let last;
    for (const entry of theirs) {
      const now = document.getElementById(entry.id);
      if (!now) last.after(entry); // rows of knobs come behind others
      else if (now.contains(here) && alike(now, entry, here)) retell(now, entry);
      else now.replaceWith(entry);
      last = document.getElementById(entry.id);
    }
    if (here && !here.isConnected) document.getElementById(here.id)?.focus({ preventScroll: true });
  }

  const inputs = (entry) => [...entry.querySelectorAll("[name]:not([type=hidden])")];

  // alike tells whether a row is still that of the same knob: others may have moved into its place.
  function alike(now, fresh, here) {
    return inputs(fresh).length === inputs(now).length && inputs(fresh).every((field) => {
      const mine = form.elements[field.name];
      return mine === here || mine.value === field.value;
    });
  }

  // retell says of fields what is known now, and leaves what stands in them.
  function retell(now, fresh) {
    now.querySelector(".wrong")?.remove();
    const wrong = fresh.querySelector(".wrong");
    if (wrong) now.append(wrong);
    for (const words of ["legend", ".note"]) {
      const mine = now.querySelector(words);
      if (mine) mine.textContent = fresh.querySelector(words).textContent;
    }
    const was = fresh.querySelector("[type=hidden]");
    form.elements[was.name].value = was.value;
    for (const field of inputs(fresh)) {
      for (const name of ["aria-describedby", "aria-invalid"]) {
        if (field.hasAttribute(name)) form.elements[field.name].setAttribute(name, field.getAttribute(name));
        else form.elements[field.name].removeAttribute(name);
      }
    }
  }

  async function check() {
    const mine = new AbortController();
    asking = mine;
    const sent = new URLSearchParams(new FormData(form));
    sent.set("do", "part");
    try {
      const answer = await fetch(form.action, { method: "POST", body: sent, signal: mine.signal, headers: { Accept: "text/html" } });
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
      const written = next.getElementById("text").value;
      if (text.value !== written) text.value = written;
      number();
      refill(next.getElementById("fields"));
      enliven();
      say(fresh.dataset.says);
    } catch {
      if (!mine.signal.aborted) trouble("Not checked: no connection to sgtune. Change the text to try again.");
    }
  }

  // soon checks what was just changed; an answer about what was before comes too late.
  function soon(wait) {
    asking?.abort();
    document.getElementById("checked").dataset.stale = "";
    clearTimeout(due);
    due = setTimeout(check, wait);
  }

  text.addEventListener("input", () => {
    number();
    soon(350);
  });
  // A field counts when it is left: half a number is no mistake.
  form.addEventListener("change", (event) => {
    if (event.target !== text) soon(0);
  });
  for (const button of form.querySelectorAll(".halves button")) {
    button.addEventListener("click", (event) => {
      event.preventDefault();
      show(button.value);
    });
  }
  number();
  enliven();
})();

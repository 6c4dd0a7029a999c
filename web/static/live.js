// Follows a running study, or the list of studies while one runs: each message says that something changed. The page's own HTML is fetched again and
// the parts that are marked data-live take the place of the old ones; charts listen to sgtune:change and keep
// what they drew. Without this file the page reloads itself every 10 seconds.
"use strict";
(() => {
  const main = document.querySelector("main[data-study]");
  if (!main) return;
  const live = document.getElementById("live");
  const words = document.getElementById("live-words");
  const spoken = document.getElementById("status");
  let last = new Date();
  let said = 0;
  let busy = false;
  let again = false;
  let behind = false; // something changed that could not be fetched yet
  let late; // charts stand for some seconds on the server: after the last change their tables are fetched once more
  let source;
  let known = main.dataset.revision;
  let silent = main.dataset.silent; // nobody runs the study: the words say since when

  function state(name, text) {
    live.dataset.state = name;
    live.querySelector(".dot").textContent = name === "live" ? "●" : "○";
    words.textContent = text;
  }

  function say(text, now) {
    if (!now && Date.now() - said < 30000) return;
    said = Date.now();
    spoken.textContent = text;
  }

  // keyOf names an element of a live part, so that its like is found in the fresh one: by its row and by where it leads.
  const keyOf = (e) => [e.closest("tr")?.querySelector("th a")?.getAttribute("href"), e.tagName, e.getAttribute("href"), e.getAttribute("value")].join(" ");

  function replace(next) {
    const title = document.querySelector(".act");
    const before = title ? title.textContent : "";
    for (const part of document.querySelectorAll("[data-live][id]")) {
      const fresh = next.getElementById(part.id);
      if (!fresh || fresh.innerHTML === part.innerHTML) continue;
      const keys = (query) => new Set([...part.querySelectorAll(query)].map(keyOf));
      const opened = keys("details[open]");
      const marked = keys("input:checked");
      let held = part.contains(document.activeElement) ? keyOf(document.activeElement) : null;
      part.replaceWith(fresh);
      for (const e of fresh.querySelectorAll("details, summary, input, a")) {
        const key = keyOf(e);
        if (opened.has(key)) e.open = true;
        if (marked.has(key)) e.checked = true;
        if (key === held) {
          e.focus({ preventScroll: true });
          held = null;
        }
      }
    }
    const act = document.querySelector(".act");
    if (act && act.textContent !== before) say(act.textContent.replace(/\s+/g, " ").trim(), false);
  }

  function connected() {
    if (behind || source.readyState !== EventSource.OPEN) return;
    if (live.dataset.state === "lost") say("Connected again.", true);
    if (silent) state("silent", silent);
    else state("live", "live");
  }

  function lost() {
    if (live.dataset.state !== "lost") say("The connection was lost; reconnecting.", true);
    state("lost", `reconnecting, last update ${last.toTimeString().slice(0, 8)}`);
  }

  async function refresh(once) {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (!answer.ok) throw new Error(answer.statusText);
      const next = new DOMParser().parseFromString(await answer.text(), "text/html");
      last = new Date();
      if (!next.querySelector("main[data-study]")) { // it has ended: the page is another one now
        source.close();
        location.reload();
        return;
      }
      behind = false;
      replace(next);
      if ([...next.querySelectorAll("[data-live][id]")].some((part) => !document.getElementById(part.id))) { // the first row, level or event
        location.reload();
        return;
      }
      silent = next.querySelector("main[data-study]").dataset.silent;
      connected();
      if (once !== "more") document.dispatchEvent(new CustomEvent("sgtune:change"));
    } catch { // the stream tells of each change once, so it is for us to come back to this one
      behind = true;
      lost();
      setTimeout(refresh, 5000);
    }
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  }

  function open() {
    source = new EventSource(`/events?study=${encodeURIComponent(main.dataset.study)}&after=${known}`);
    source.onopen = connected;
    source.onerror = () => {
      lost();
      if (source.readyState === EventSource.CLOSED) setTimeout(open, 10000); // refused: the browser itself does not try again
    };
    source.onmessage = (event) => {
      known = event.lastEventId;
      refresh();
      clearTimeout(late);
      if (document.querySelector("[data-charts]")) late = setTimeout(refresh, 7000, "more");
    };
  }
  open();
})();

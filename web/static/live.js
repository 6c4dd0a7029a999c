// Follows a running study: each message says that something changed. The page's own HTML is fetched again and
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

  function replace(next) {
    const title = document.querySelector(".act");
    const before = title ? title.textContent : "";
    for (const part of document.querySelectorAll("[data-live][id]")) {
      const fresh = next.getElementById(part.id);
      if (!fresh || fresh.innerHTML === part.innerHTML) continue;
      const focus = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      const open = [...part.querySelectorAll("details")].map((d) => d.open);
      part.replaceWith(fresh);
      [...fresh.querySelectorAll("details")].forEach((d, i) => { if (open[i]) d.open = true; });
      if (focus) [...fresh.querySelectorAll("a")].find((a) => a.getAttribute("href") === focus)?.focus();
    }
    const act = document.querySelector(".act");
    if (act && act.textContent !== before) say(act.textContent.replace(/\s+/g, " ").trim(), false);
  }

  function connected() {
    if (silent) state("silent", silent);
    else state("live", "live");
  }

  async function refresh() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.ok) {
        const next = new DOMParser().parseFromString(await answer.text(), "text/html");
        last = new Date();
        if (!next.querySelector("main[data-study]")) { // it has ended: the page is another one now
          source.close();
          location.reload();
          return;
        }
        replace(next);
        silent = next.querySelector("main[data-study]").dataset.silent;
        connected();
        document.dispatchEvent(new CustomEvent("sgtune:change"));
      }
    } catch {
      state("lost", `reconnecting, last update ${last.toLocaleTimeString()}`);
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
      state("lost", `reconnecting, last update ${last.toLocaleTimeString()}`);
      say("The connection was lost; reconnecting.", true);
      if (source.readyState === EventSource.CLOSED) setTimeout(open, 10000); // refused: the browser itself does not try again
    };
    source.onmessage = (event) => {
      known = event.lastEventId;
      refresh();
    };
  }
  open();
})();

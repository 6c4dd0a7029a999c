// Follows a running study: each message says that something changed, and the page's own HTML is
// fetched again. Without this file the page reloads itself every 10 seconds.
"use strict";
(() => {
  const main = document.querySelector("main[data-study]");
  if (!main) return;
  const live = document.getElementById("live");
  let busy = false;
  let again = false;

  async function refresh() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
      if (answer.ok) {
        const next = new DOMParser().parseFromString(await answer.text(), "text/html").querySelector("main");
        if (next) main.replaceChildren(...next.childNodes);
        if (next && !next.dataset.study) {
          source.close();
          live.textContent = "ended";
        }
      }
    } catch {
      live.textContent = "reconnecting";
    }
    busy = false;
    if (again) {
      again = false;
      refresh();
    }
  }

  const source = new EventSource(`/events?study=${encodeURIComponent(main.dataset.study)}&after=${main.dataset.revision}`);
  source.onopen = () => { live.textContent = "live"; };
  source.onerror = () => { live.textContent = `reconnecting, last update ${new Date().toLocaleTimeString()}`; };
  source.onmessage = refresh;
})();

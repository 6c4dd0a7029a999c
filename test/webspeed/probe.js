// Runs in a page before anything of its own and notes when what a reader waits for has come, in ms since the navigation.
(want) => {
  const seen = { fcp: 0, verdict: 0, chart: 0, drawn: 0, changed: 0, shift: 0, tasks: [] };
  window.speedSeen = seen;
  const now = () => performance.now();
  const painted = (then) => requestAnimationFrame(() => requestAnimationFrame(then));
  const watch = (type, each) => new PerformanceObserver((list) => list.getEntries().forEach(each)).observe({ type, buffered: true });
  watch("longtask", (e) => { seen.tasks.push([e.startTime, e.duration]); });
  watch("layout-shift", (e) => { if (!e.hadRecentInput) seen.shift += e.value; });
  watch("paint", (e) => { if (e.name === "first-contentful-paint") seen.fcp = e.startTime; });
  let there = 0; // the verdict is in the document
  let done = 0; // the page says that all charts are drawn
  new MutationObserver(() => {
    seen.changed = now();
    if (want.verdict && !there && document.querySelector(want.verdict)) {
      there = now();
      const early = performance.getEntriesByName("first-contentful-paint").length > 0;
      if (early) painted(() => { seen.verdict = now(); });
      else watch("paint", (e) => { if (e.name === "first-contentful-paint") seen.verdict = e.startTime; });
    }
    if (!seen.chart && document.querySelector(want.chart)) {
      seen.chart = now();
      window.speedTold(String(seen.chart)); // a page that is blocked afterwards can't be asked
    }
    if (want.done && !done && document.querySelector(want.done)) {
      done = now();
      painted(() => { seen.drawn = Math.max(seen.drawn, now()); });
      for (const plot of document.querySelectorAll(".plot")) { // charts of many points are drawn in several frames
        window.echarts.getInstanceByDom(plot)?.on("finished", () => { seen.drawn = now(); });
      }
    }
  }).observe(document, { childList: true, subtree: true, attributes: true });
}

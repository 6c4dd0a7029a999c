// Draws the charts of a study or a trial from the columns the server sends. Without this file the drawings and tables
// of the page stand as they are.
import { life } from "./chart_life.js";
import { data, look, narrow, readLook, use } from "./chart_parts.js";
import { draw as ofStudy } from "./chart_study.js";

const draw = { ...ofStudy, life };
const echarts = window.echarts;
const root = document.querySelector("[data-charts]");
const study = root.dataset.charts.split("/")[4];
const figures = () => [...root.querySelectorAll("[data-chart]")];
const charts = new Map(); // name to instance

// locate keeps where each trial is drawn in a chart.
function locate(chart) {
  const where = new Map();
  chart.getOption().series.forEach((s, seriesIndex) => (s.data || []).forEach((d, dataIndex) => {
    if (d && d.number !== undefined) where.set(d.number, [...(where.get(d.number) || []), { seriesIndex, dataIndex }]);
  }));
  chart.where = where;
}

// One hover in all charts: the same trial stands out wherever it is drawn.
function link(name, chart) {
  const tell = (type) => (e) => {
    const n = e.data && e.data.number;
    if (n === undefined) return;
    for (const [other, c] of charts) if (other !== name) for (const at of c.where.get(n) || []) c.dispatchAction({ type, ...at });
  };
  chart.on("mouseover", tell("highlight"));
  chart.on("mouseout", tell("downplay"));
  chart.on("click", (e) => { if (e.data && e.data.number !== undefined) location.assign(`/studies/${study}/trials/${e.data.number}`); });
}

function drawOne(figure) {
  const name = figure.dataset.chart;
  const el = figure.querySelector(".plot");
  const chart = charts.get(name) || begin(name, figure, el);
  chart.setOption(draw[name](el), true);
  chart.resize();
  locate(chart);
  el.setAttribute("aria-label", `${figure.querySelector("h3").textContent}: ${figure.querySelector("figcaption").textContent}`);
}

// begin makes a chart in the place of its drawing. It is never disposed of: one that is still being painted, as thousands of points are
// over many frames, would throw.
function begin(name, figure, el) {
  const drawing = el.querySelector(".drawing");
  if (drawing) el.style.height = `${Math.max(drawing.clientHeight, 180)}px`;
  el.replaceChildren();
  const chart = echarts.init(el, null, { renderer: "canvas" });
  el.setAttribute("role", "img");
  charts.set(name, chart);
  link(name, chart);
  chart.on("datazoom", () => { if (el.follow) el.follow(chart); });
  const png = figure.querySelector("[data-png]");
  png.hidden = false;
  png.onclick = () => {
    const a = document.createElement("a");
    a.href = chart.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: look.ground });
    a.download = `${png.dataset.png}.png`;
    a.click();
  };
  new ResizeObserver(() => {
    const was = chart.wasNarrow;
    chart.wasNarrow = narrow(el);
    if (was !== undefined && was !== chart.wasNarrow) chart.setOption(draw[name](el), true);
    chart.resize();
  }).observe(el);
  return chart;
}

async function drawAll() {
  readLook();
  for (const figure of figures()) {
    drawOne(figure);
    await new Promise((next) => { setTimeout(next); }); // one chart, then the page again
  }
  document.body.dataset.chartsDone = "";
}

// failed says in each chart's place why it is not drawn. A drawing, or a chart that was drawn before, stays below.
function failed(status) {
  for (const figure of figures()) {
    const el = figure.querySelector(".plot");
    const p = document.createElement("p");
    p.className = "failed";
    p.textContent = `Chart data did not load (${status}). `;
    const again = document.createElement("button");
    again.type = "button";
    again.textContent = "Retry";
    again.onclick = load;
    p.append(again);
    if (el.querySelector(".drawing") || charts.has(figure.dataset.chart)) el.before(p);
    else el.replaceChildren(p);
  }
}

async function load() {
  let status = "no connection";
  try {
    const answer = await fetch(root.dataset.charts, { headers: { Accept: "application/json" } });
    status = answer.ok ? "" : answer.status;
    if (answer.ok) use(await answer.json());
  } catch {
    status ||= "the answer was cut off";
  }
  const pressed = document.activeElement?.closest(".failed"); // it goes, and the focus with it
  const figure = pressed && pressed.closest("[data-chart]");
  for (const p of root.querySelectorAll(".failed")) p.remove();
  if (status) failed(status);
  if (figure) {
    const heading = figure.querySelector("h3");
    heading.tabIndex = -1;
    (figure.querySelector(".failed button") || heading).focus({ preventScroll: true });
  }
  if (!status) await drawAll();
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (data) drawAll(); });
let due;
document.addEventListener("sgtune:change", () => { due ||= setTimeout(() => { due = undefined; load(); }, 6000); });
load();

// What all charts share: the data as it was sent, the colours of the page as it is now, and the parts of an option.
export let data;
export let look;

// use takes the columns of a study or a trial as the data to draw.
export function use(columns) {
  data = columns;
  if (!data.rows) return;
  data.void = new Set(data.rows.void || []);
  const failures = ["gpu", "host", "died", "refused", "quality", "innocent", "dirty", "unknown"];
  data.failure = data.classes.map((c) => failures.includes(c.key));
}

export const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
export const narrow = (el) => el.clientWidth < 600;
const digits = (v) => (v === 0 ? 0 : Math.max(0, Math.min(12, 3 - Math.floor(Math.log10(Math.abs(v))))));
export const number = (v) => (v === null || v === undefined || Number.isNaN(v) ? "–"
  : v.toLocaleString("en-US", { maximumFractionDigits: digits(v) }).replace("-", "−"));
export const wait = (s) => (s === null || s === undefined ? "–" : s < 1 ? `${Math.round(s * 1000)} ms` : `${number(s)} s`);
export const minutes = (s) => (s < 60 ? `${Math.round(s)} s` : `${Math.floor(s / 60)} min ${String(Math.round(s % 60)).padStart(2, "0")} s`);
export const clock = (ms) => new Date(ms).toISOString().slice(11, 16);
export const title = (name) => ({ text: name, left: 0, top: 0, textStyle: { color: look.muted, fontSize: 12, fontWeight: "normal" } });
const role = (i) => ["baseline", "", "confirm"][data.rows.role[i]] || "";

export function readLook() {
  look = { text: css("--chart-text"), muted: css("--chart-muted"), grid: css("--chart-grid"), line: css("--chart-line"), ground: css("--chart-ground"), box: css("--chart-box") };
  look.class = (data.classes || []).map((c) => css(`--c-${c.key}`));
  look.phase = (data.night ? data.night.keys : []).map((k) => css(`--p-${k}`));
  look.curves = [look.muted, css("--c-ok"), css("--c-host"), css("--c-quality")];
}

// Parts that every chart has.
export const shape = (c) => `path://${data.classes[c].path}`;
export const axis = (more) => ({
  axisLine: { onZero: false, lineStyle: { color: look.line } }, axisTick: { lineStyle: { color: look.line } }, axisLabel: { color: look.muted, hideOverlap: true },
  nameTextStyle: { color: look.muted }, splitLine: { lineStyle: { color: look.grid } }, ...more,
});
export const base = (more) => ({
  animation: false, useUTC: true, textStyle: { fontFamily: "system-ui, sans-serif", color: look.text },
  tooltip: { renderMode: "richText", confine: true, backgroundColor: look.box, borderColor: look.line, textStyle: { color: look.text, fontSize: 12 } },
  ...more,
});
export const legend = (names, more) => ({ data: names, top: 0, left: 0, itemWidth: 12, itemHeight: 12, itemGap: 14, textStyle: { color: look.muted }, inactiveColor: look.line, type: "scroll", pageTextStyle: { color: look.muted }, pageIconColor: look.text, ...more });

// linesOf is how many lines a legend of these names takes.
export function linesOf(names, width) {
  let lines = 1;
  let at = 0;
  for (const name of names) {
    const w = name.length * 6.8 + 32;
    if (at + w > width && at > 0) {
      lines++;
      at = 0;
    }
    at += w;
  }
  return lines;
}

// describe is a trial in a tooltip.
export function describe(i) {
  const r = data.rows;
  const lines = [`Trial ${r.number[i]}${role(i) ? `, ${role(i)}` : ""}: ${data.classes[r.class[i]].shape} ${data.classes[r.class[i]].word}${data.void.has(i) ? ", void" : ""}`];
  if (r.value[i] !== null) lines.push(`${number(r.value[i])} ${data.unit}${r.low[i] !== null ? ` (${number(r.low[i])} to ${number(r.high[i])})` : ""}`);
  if (r.ttft_s[i] !== null) lines.push(`TTFT p95 ${wait(r.ttft_s[i])} at ${r.clients[i]} clients`);
  return lines.join("\n");
}

// points are scatter series, one for each class there is: its shape and its colour.
export function points(rows, place, more) {
  const by = new Map();
  for (const i of rows) {
    const c = data.rows.class[i];
    if (!by.has(c)) by.set(c, []);
    by.get(c).push({ value: place(i), row: i, number: data.rows.number[i], itemStyle: data.rows.role[i] === 2 ? { color: "transparent", borderColor: look.class[c], borderWidth: 1.5 } : undefined });
  }
  return [...by].sort((a, b) => a[0] - b[0]).map(([c, items]) => ({
    type: "scatter", name: data.classes[c].word, symbol: shape(c), symbolSize: rows.length > 600 ? 5 : 9, itemStyle: { color: look.class[c], opacity: rows.length > 600 ? 0.7 : 0.95 },
    emphasis: { scale: 1.8, itemStyle: { borderColor: look.text, borderWidth: 2, opacity: 1 } }, tooltip: { formatter: (p) => describe(p.data.row) }, data: items, ...more,
  }));
}
export const all = () => data.rows.number.map((_, i) => i);
export const valued = () => all().filter((i) => data.rows.value[i] !== null && !data.void.has(i));

// whiskers are intervals: [x, low, high] each.
export const whiskers = (items, color, horizontal) => ({
  type: "custom", silent: true, tooltip: { show: false }, data: items, z: 1,
  encode: horizontal ? { x: [1, 2], y: 0 } : { x: 0, y: [1, 2] },
  renderItem: (_, api) => {
    const [a, b] = horizontal ? [api.coord([api.value(1), api.value(0)]), api.coord([api.value(2), api.value(0)])] : [api.coord([api.value(0), api.value(1)]), api.coord([api.value(0), api.value(2)])];
    const cap = horizontal ? (p) => ({ x1: p[0], y1: p[1] - 4, x2: p[0], y2: p[1] + 4 }) : (p) => ({ x1: p[0] - 3, y1: p[1], x2: p[0] + 3, y2: p[1] });
    const line = (s) => ({ type: "line", shape: s, style: { stroke: color, lineWidth: 1.2 } });
    return { type: "group", children: [line({ x1: a[0], y1: a[1], x2: b[0], y2: b[1] }), line(cap(a)), line(cap(b))] };
  },
});

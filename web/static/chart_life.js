// The chart of one trial over its time: panels above each other with one clock and one cursor.
import { axis, base, css, data, look, minutes, number, title } from "./chart_parts.js";

// broken is a series whose line stops where nothing was recorded for long.
function broken(s) {
  const gaps = s.t_s.slice(1).map((t, i) => t - s.t_s[i]).sort((a, b) => a - b);
  const long = Math.max(20, 10 * (gaps[gaps.length >> 1] || 0));
  return s.t_s.flatMap((t, i) => (i > 0 && t - s.t_s[i - 1] > long ? [[t - 1e-3, null], [t, s.v[i]]] : [[t, s.v[i]]]));
}

export const life = (el) => {
  const p = data.panels;
  const each = 118;
  const colors = [css("--c-ok"), css("--c-host"), css("--c-quality"), css("--c-gpu")];
  const types = ["solid", [6, 3], [2, 2], "solid"];
  const top = (i) => 26 + i * each;
  const xs = p.flatMap((q) => q.series.flatMap((s) => [s.t_s[0], s.t_s[s.t_s.length - 1]]));
  const ends = [...data.steps.map((s) => s.at_s[1]), ...xs];
  const [min, max] = [Math.min(0, ...data.steps.map((s) => s.at_s[0]), ...xs), Math.max(...ends)];
  el.style.height = `${top(p.length) - 8}px`;
  return base({
    title: p.map((q, i) => ({ ...title(`${q.title}${q.unit ? `, ${q.unit}` : ""}${q.series.length > 1 ? `: ${q.series.map((s, k) => `${["━", "╍", "┄", "━"][k]} ${s.name}`).join("  ")}` : ""}`), top: top(i) - 20 })),
    tooltip: { trigger: "axis", renderMode: "richText", confine: true, backgroundColor: look.box, borderColor: look.line, textStyle: { color: look.text, fontSize: 12 }, formatter: (all_) => [minutes(Math.max(0, all_[0].axisValue)), ...all_.map((s) => `${s.seriesName} ${number(s.value[1])}`)].join("\n") },
    axisPointer: { link: [{ xAxisIndex: "all" }], lineStyle: { color: look.text }, label: { show: false } },
    grid: p.map((_, i) => ({ outerBoundsMode: "none", left: 56, right: 16, top: top(i), height: each - 42 })),
    xAxis: p.map((_, i) => axis({ type: "value", gridIndex: i, min, max, splitLine: { show: false }, axisLabel: { show: i === p.length - 1, color: look.muted, formatter: (s) => (s < 0 ? "" : minutes(s)), hideOverlap: true, showMaxLabel: false }, axisTick: { show: i === p.length - 1 } })),
    yAxis: p.map((_, i) => axis({ type: "value", gridIndex: i, splitNumber: 2, scale: i > 2, axisLabel: { color: look.muted, formatter: number } })),
    dataZoom: [{ type: "inside", xAxisIndex: p.map((_, i) => i), zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none" }],
    series: p.flatMap((q, i) => q.series.map((s, k) => ({
      type: "line", name: s.name, xAxisIndex: i, yAxisIndex: i, symbol: "none", data: broken(s), lineStyle: { color: colors[k], width: 1.5, type: types[k] }, itemStyle: { color: colors[k] },
      markArea: k ? undefined : { silent: true, label: { show: i === 0, color: look.muted, fontSize: 11, position: "insideTop" }, data: data.steps.filter((_, n) => n % 2 === 0).map((a) => [{ name: a.at_s[1] - a.at_s[0] > (max - min) / 9 ? a.step : "", xAxis: a.at_s[0], itemStyle: { color: look.box } }, { xAxis: a.at_s[1] }]) },
    }))),
  });
};

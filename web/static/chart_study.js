// The charts of a study, each as an option of ECharts made from the data.
import { all, axis, base, clock, css, data, describe, legend, linesOf, look, minutes, narrow, number, points, shape, valued, wait, whiskers } from "./chart_parts.js";

const echarts = window.echarts;
const viridis = ["#440154", "#482878", "#3e4989", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725"];

export const draw = {};

draw.night = (el) => {
  const n = data.night;
  const ms = (s) => (n.start + s + data.offset_s) * 1000;
  const rows = n.number.length;
  const shown = rows > 60 ? 25 : rows; // as the drawing that stood here
  const took = (i) => n.spent.reduce((sum, s) => sum + s[i], 0);
  const clocks = (from, to) => {
    const seen = n.began.slice(from, to + 1).map((b, k) => [b, b + took(from + k)]);
    const low = Math.min(...seen.map((x) => x[0]));
    const high = Math.max(...seen.map((x) => x[1]));
    return { min: ms(low), max: ms(high + (high - low) * 0.02) };
  };
  el.follow = rows > shown ? (chart) => {
    const z = chart.getOption().dataZoom[0];
    chart.setOption({ xAxis: clocks(Math.max(0, Math.round(z.startValue)), Math.min(rows - 1, Math.round(z.endValue))) });
  } : null;
  const bars = n.phases.map((name, p) => ({
    type: "custom", name, encode: { x: [1, 2], y: 0 }, itemStyle: { color: look.phase[p] }, clip: true,
    data: n.number.map((number_, i) => {
      let at = n.began[i];
      for (let q = 0; q < p; q++) at += n.spent[q][i];
      return { value: [i, ms(at), ms(at + n.spent[p][i])], number: number_, phase: name, took: n.spent[p][i], c: n.class[i] };
    }).filter((d) => d.took > 0),
    renderItem: (params, api) => {
      const from = api.coord([api.value(1), api.value(0)]);
      const to = api.coord([api.value(2), api.value(0)]);
      const h = Math.max(3, Math.min(14, api.size([0, 1])[1] - 4));
      const rect = echarts.graphic.clipRectByRect({ x: from[0], y: from[1] - h / 2, width: Math.max(1, to[0] - from[0]), height: h }, params.coordSys);
      return rect && { type: "rect", shape: rect, style: { fill: look.phase[p] }, emphasis: { style: { stroke: look.text, lineWidth: 1.5 } } };
    },
    tooltip: { formatter: (p) => `Trial ${p.data.number}: ${data.classes[p.data.c].shape} ${data.classes[p.data.c].word}\n${p.data.phase} ${minutes(p.data.took)}, from ${clock(p.data.value[1])}` },
  }));
  const ends = new Map();
  n.number.forEach((number_, i) => {
    const c = n.class[i];
    if (!ends.has(c)) ends.set(c, []);
    ends.get(c).push({ value: [ms(n.began[i] + took(i)), i], number: number_ });
  });
  const outcomes = [...ends].map(([c, items]) => ({
    type: "scatter", name: data.classes[c].word, symbol: shape(c), symbolSize: 9, symbolOffset: [10, 0], itemStyle: { color: look.class[c], opacity: 1 }, data: items, z: 3,
    tooltip: { formatter: (p) => `Trial ${p.data.number}: ${data.classes[c].shape} ${data.classes[c].word}` }, emphasis: { scale: 1.6 },
  }));
  const marks = {
    type: "custom", name: "events", encode: { x: 0 }, data: (n.marks || []).map((m) => ({ value: [ms(m.at), rows - 1], text: `${clock(ms(m.at))} ${m.kind}: ${m.text}` })), z: 4,
    renderItem: (params, api) => {
      const x = api.coord([api.value(0), 0])[0];
      const { y, x: left, width } = params.coordSys;
      if (x < left || x > left + width) return null;
      return { type: "polygon", shape: { points: [[x - 4, y - 9], [x + 4, y - 9], [x, y - 1]] }, style: { fill: css("--c-died") } };
    },
    tooltip: { formatter: (p) => p.data.text.replace(/(.{60}\S*)\s/g, "$1\n") },
  };
  return base({
    legend: legend(n.phases),
    grid: { left: 44, right: rows > shown ? 44 : 24, top: 44, bottom: 28 },
    xAxis: axis({ type: "time", ...clocks(rows - shown, rows - 1), axisLabel: { color: look.muted, hideOverlap: true, formatter: (v) => clock(v) }, splitLine: { show: true, lineStyle: { color: look.grid } } }),
    yAxis: axis({ type: "category", data: n.number.map(String), inverse: true, axisTick: { show: false }, axisLine: { show: false } }),
    dataZoom: rows > shown ? [{ type: "slider", yAxisIndex: 0, startValue: rows - shown, endValue: rows - 1, right: 4, width: 18, showDetail: false, brushSelect: false, borderColor: look.line, fillerColor: look.grid, filterMode: "none" }] : [],
    series: [...bars, ...outcomes, marks],
  });
};

draw.best = (el) => {
  const r = data.rows;
  const ok = valued();
  const failed = all().filter((i) => r.value[i] === null && data.failure[r.class[i]]);
  const lanes = [...new Set(failed.map((i) => r.class[i]))].sort((a, b) => a - b);
  const strip = 16 * lanes.length;
  const last = r.number[r.number.length - 1];
  const steps = data.best.rows.map((i) => [r.number[i], r.value[i]]);
  if (steps.length) steps.push([last, steps[steps.length - 1][1]]);
  const b = data.best.baseline;
  const many = ok.length > 200 ? data.best.rows : ok;
  const named = [...data.best.rows.slice(-1), ...(data.best.verdict === null ? [] : [data.best.verdict])];
  const today = b ? `${b.label}: ${number(b.value[0])}` : "";
  const baseline = b && {
    type: "line", name: today, data: [[0, b.value[0]], [last, b.value[0]]], symbol: "none", lineStyle: { color: look.muted, type: [6, 4], width: 1.5 }, itemStyle: { color: look.muted }, tooltip: { show: false }, z: 1,
    markArea: b.value[1] === null ? undefined : { silent: true, itemStyle: { color: look.grid, opacity: 0.6 }, data: [[{ yAxis: b.value[1] }, { yAxis: b.value[2] }]] },
  };
  const names = [...new Set([...ok, ...failed].map((i) => data.classes[r.class[i]].word))];
  const lines = linesOf(["best so far", today, ...names], el.clientWidth);
  el.style.height = `${260 + 22 * lines + strip}px`;
  return base({
    legend: legend([{ name: "best so far", icon: "rect", itemStyle: { color: look.class[0] } }, ...(b ? [{ name: today, icon: "path://M0 6h4v3H0zM6 6h4v3H6zM12 6h4v3h-4z" }] : []), ...names], { type: "plain" }),
    grid: [{ left: 64, right: 20, top: 22 + 22 * lines, bottom: 46 + strip + (strip ? 10 : 0), outerBoundsMode: "none" }, { left: 64, right: 20, outerBoundsMode: "none", height: Math.max(strip, 1), bottom: 42 }],
    xAxis: [axis({ type: "value", min: 0, max: last, minInterval: 1, axisLabel: { show: !strip, color: look.muted }, splitLine: { show: false }, name: strip ? "" : "trial", nameLocation: "middle", nameGap: 26 }),
      axis({ type: "value", gridIndex: 1, min: 0, max: last, minInterval: 1, splitLine: { show: false }, name: "trial", nameLocation: "middle", nameGap: 26 })],
    yAxis: [axis({ type: "value", scale: true, name: "", axisLabel: { color: look.muted, formatter: number } }),
      axis({ type: "category", gridIndex: 1, data: lanes.map((c) => data.classes[c].shape), inverse: true, axisTick: { show: false }, splitLine: { show: true, lineStyle: { color: look.grid } } })],
    dataZoom: [{ type: "inside", xAxisIndex: [0, 1], zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false, filterMode: "none" }],
    series: [
      ...(baseline ? [baseline] : []),
      { type: "line", name: "best so far", step: "end", data: steps, symbol: "none", lineStyle: { color: look.class[0], width: 2.5 }, itemStyle: { color: look.class[0] }, z: 2, tooltip: { show: false } },
      whiskers(many.filter((i) => r.low[i] !== null).map((i) => [r.number[i], r.low[i], r.high[i]]), look.line),
      ...points(ok, (i) => [r.number[i], r.value[i]], { z: 3 }),
      { type: "scatter", silent: true, data: [...new Set(named)].map((i, k) => ({ value: [r.number[i], r.value[i]], label: { position: k ? "bottom" : "top", formatter: `#${r.number[i]}  ${number(r.value[i])}` } })), symbol: "circle", symbolSize: 15, itemStyle: { color: "transparent", borderColor: look.text, borderWidth: 1.5, opacity: 1 }, label: { show: true, distance: 4, color: look.text, fontWeight: 600, textBorderColor: look.ground, textBorderWidth: 3 }, z: 4 },
      ...points(failed, (i) => [r.number[i], lanes.indexOf(r.class[i])], { xAxisIndex: 1, yAxisIndex: 1 }),
    ],
  });
};

draw.area = (el) => {
  const a = data.area;
  const gap = (v, i, single) => {
    const below = i > 0 ? (v[i - 1] + v[i]) / 2 : v[i] - (v.length > 1 ? (v[1] - v[0]) / 2 : single);
    const above = i < v.length - 1 ? (v[i + 1] + v[i]) / 2 : v[i] + (v.length > 1 ? (v[i] - v[i - 1]) / 2 : single);
    return [below, above];
  };
  const cells = a.x.map((x, k) => [...gap(a.fractions, x, 0.005), ...gap(a.pools, a.y[k], 4), a.value[k], k]);
  const values = a.value.filter((v) => v !== null);
  const side = (v, single) => [gap(v, 0, single)[0], gap(v, v.length - 1, single)[1]];
  const [x0, x1] = side(a.fractions, 0.005);
  const [y0, y1] = side(a.pools, 4);
  const cell = (k) => `${a.fractions[a.x[k]]}, ${number(a.pools[a.y[k]])} GB a rank: ${a.trials[k]} tried, ${a.failures[k]} failed` + (a.value[k] === null ? "" : `\nhighest ${number(a.value[k])} ${data.unit} (trial ${a.best[k]})`);
  const style = { tokens: [look.muted, 1, "solid"], useless: [look.muted, 1, [2, 3]], ram: [css("--c-host"), 2, "solid"], limit: [css("--c-gpu"), 2, [6, 3]] };
  const lines = a.lines.filter((l) => l.kind !== "ram" || l.y[0] <= y1 * 1.25).map((l) => {
    const [color, width, type] = style[l.kind];
    const end = l.x.length - 1;
    return {
      type: "line", name: l.kind === "tokens" ? "KV tokens of a rank" : l.label, silent: true, symbol: "none", clip: true, lineStyle: { color, width, type, opacity: l.kind === "tokens" ? 0.75 : 1 }, z: 3,
      data: l.x.map((x, i) => [x, l.kind === "ram" ? Math.min(l.y[i], y1) : l.y[i]]),
      markPoint: l.kind !== "tokens" || l.x[end] > x1 - (x1 - x0) / 20 ? undefined : {
        silent: true, symbol: "circle", symbolSize: 0, data: [{ coord: [l.x[end], y1] }], label: { show: true, color, position: "top", distance: 3, formatter: l.label, fontSize: 11 },
      },
    };
  });
  const c = a.chosen;
  const chosen = c ? [{
    type: "scatter", silent: true, data: [{ value: [c.at[0], c.at[1]] }], symbol: "circle", symbolSize: 17, itemStyle: { color: "transparent", borderColor: look.text, borderWidth: 3, shadowColor: look.ground, shadowBlur: 4, opacity: 1 }, z: 6,
    label: { show: true, position: c.at[1] > (y0 + y1) / 2 ? "bottom" : "top", distance: 8, formatter: c.label + (c.at[3] === null ? "" : `\n${c.at[3].toFixed(1)} GiB margin`), color: look.text, fontWeight: 600, backgroundColor: look.ground, borderColor: look.line, borderWidth: 1, borderRadius: 4, padding: [3, 6], lineHeight: 15 },
  }, ...(c.at[2] === null ? [] : [{
    type: "scatter", silent: true, data: [], z: 5,
    markLine: { silent: true, symbol: ["none", "arrow"], symbolSize: 9, lineStyle: { color: look.text, width: 1.5, type: "solid" }, label: { show: false }, data: [[{ coord: [c.at[0], c.at[1]] }, { coord: [Math.min(c.at[2], x1), c.at[1]] }]] },
  }])] : [];
  const failed = a.worst.map((w, k) => (w < 0 ? null : { value: [a.fractions[a.x[k]], a.pools[a.y[k]]], symbol: shape(w), symbolSize: a.value[k] === null ? 13 : 9, itemStyle: { color: look.class[w], opacity: 1 }, k })).filter(Boolean);
  const icons = { tokens: "path://M0 7h16v1.5H0z", useless: "path://M0 7h3v1.5H0zM6 7h3v1.5H6zM12 7h3v1.5h-3z", ram: "path://M0 6h16v3H0z", limit: "path://M0 6h6v3H0zM10 6h6v3h-6z" };
  const keys = new Map(a.lines.map((l) => [l.kind === "tokens" ? "KV tokens of a rank" : l.label, { icon: icons[l.kind], itemStyle: { color: style[l.kind][0] } }]));
  const top = 42 + 20 * (el.clientWidth < 480 ? keys.size : Math.ceil(keys.size / 2));
  el.style.height = `${top + 250 + 92}px`;
  return base({
    legend: legend([...keys].map(([name, k]) => ({ name, ...k })), { type: "plain", selectedMode: false, itemWidth: 16 }),
    grid: { left: 56, right: 22, top, bottom: 92 },
    visualMap: values.length ? { type: "continuous", min: Math.min(...values), max: Math.max(...values), dimension: 4, seriesIndex: 0, inRange: { color: viridis }, orient: "horizontal", left: 50, bottom: 0, itemWidth: 12, itemHeight: 120, text: [`${number(Math.max(...values))} ${data.unit}`, number(Math.min(...values))], textStyle: { color: look.muted }, calculable: false } : undefined,
    xAxis: axis({ type: "value", min: x0, max: x1, name: "mem-fraction-static", nameLocation: "middle", nameGap: 26, axisLabel: { color: look.muted, showMinLabel: false, showMaxLabel: false, formatter: (v) => String(Math.round(v * 1000) / 1000) }, splitLine: { show: false } }),
    yAxis: axis({ type: "value", min: y0, max: y1, name: "host pool, GB a rank", nameLocation: "end", nameTextStyle: { align: "left", color: look.muted, padding: [0, 0, 4, -44] }, axisLabel: { color: look.muted, showMinLabel: false, showMaxLabel: false }, splitLine: { show: false } }),
    series: [{
      type: "custom", data: cells, encode: { x: [0, 1], y: [2, 3] }, z: 1, tooltip: { formatter: (p) => cell(p.data[5]) },
      renderItem: (params, api) => {
        const p = api.coord([api.value(0), api.value(3)]);
        const q = api.coord([api.value(1), api.value(2)]);
        const none = a.value[api.value(5)] === null;
        return { type: "rect", shape: { x: p[0] + 1, y: p[1] + 1, width: q[0] - p[0] - 2, height: q[1] - p[1] - 2, r: 2 }, style: none ? { fill: look.box, stroke: look.line } : { fill: api.visual("color") } };
      },
    }, ...lines,
    { type: "scatter", data: failed.map((f) => ({ ...f, itemStyle: { ...f.itemStyle, borderColor: look.ground, borderWidth: 1 } })), z: 4, tooltip: { formatter: (p) => cell(p.data.k) } },
    ...chosen],
  });
};

draw.matter = (el) => {
  const m = data.matter;
  return base({
    grid: { left: 8, right: 30, top: 8, bottom: 40, containLabel: true },
    xAxis: axis({ type: "value", name: "between worst and best value", nameLocation: "middle", nameGap: 26, axisLabel: { color: look.muted, formatter: (v) => `${Math.round(v * 1000) / 10}%` } }),
    yAxis: axis({ type: "category", data: m.knob, inverse: true, axisLabel: { color: look.text, width: el.clientWidth < 420 ? 120 : 175, overflow: "truncate" }, axisTick: { show: false } }),
    series: [{
      type: "bar", data: m.effect.map((v, i) => ({ value: v, itemStyle: { color: m.low[i] > 0 ? look.class[0] : look.line } })), barMaxWidth: 18,
      tooltip: { formatter: (p) => `${p.name}: ${number(100 * p.value)}%\n80% range ${number(100 * m.low[p.dataIndex])}% to ${number(100 * m.high[p.dataIndex])}%` },
    }, { ...whiskers(m.effect.map((_, i) => [i, m.low[i], m.high[i]]), look.text, true), z: 3 }],
  });
};

draw.levels = (el) => {
  const tall = narrow(el);
  const marks = ["circle", "triangle", "diamond", "rect"];
  const lines = (grid, values, name) => data.levels.map((c, k) => ({
    type: "line", name: c.label, xAxisIndex: grid, yAxisIndex: grid, data: c.clients.map((x, i) => [x, values(c)[i]]), symbol: marks[k], symbolSize: 9, lineStyle: { color: look.curves[k], width: 2, type: k === 0 ? [6, 4] : "solid" }, itemStyle: { color: look.curves[k] }, emphasis: { focus: "series" },
    tooltip: { formatter: (p) => `${p.seriesName} at ${p.value[0]} clients\n${name} ${grid ? wait(p.value[1]) : number(p.value[1])}` },
  }));
  const x = (grid) => axis({ type: "value", gridIndex: grid, name: tall && grid === 0 ? "" : "clients", nameLocation: "middle", nameGap: 26, scale: true, min: (v) => Math.max(0, Math.floor(v.min - (v.max - v.min || 20) * 0.08)), max: (v) => Math.ceil(v.max + (v.max - v.min || 20) * 0.08), splitLine: { show: false }, axisLabel: { color: look.muted, showMinLabel: false, showMaxLabel: false } });
  return base({
    legend: legend(data.levels.map((c) => c.label)),
    grid: tall ? [{ left: 56, right: 16, top: 54, height: 96 }, { left: 56, right: 16, top: 194, bottom: 42 }] : [{ left: 56, width: "38%", top: 54, bottom: 42 }, { right: 16, width: "38%", top: 54, bottom: 42 }],
    xAxis: [x(0), x(1)],
    yAxis: [axis({ type: "value", name: "output tok/s", nameTextStyle: { align: "left", padding: [0, 0, 0, -40], color: look.muted }, scale: true, axisLabel: { color: look.muted, formatter: number } }),
      axis({ type: "value", gridIndex: 1, name: "TTFT p95, s", nameTextStyle: { align: "left", padding: [0, 0, 0, -30], color: look.muted }, axisLabel: { color: look.muted, formatter: number } })],
    series: [...lines(0, (c) => c.tok_s, "output tok/s"), ...data.levels.map((c, k) => whiskers(c.clients.map((n, i) => [n, c.low[i], c.high[i]]).filter((w) => w[1] !== null), look.curves[k])), ...lines(1, (c) => c.ttft_s, "TTFT p95")],
  });
};

draw.tradeoff = () => {
  const r = data.rows;
  const rows = valued().filter((i) => r.ttft_s[i] !== null);
  const named = [...(data.best.verdict === null ? data.best.rows.slice(-1) : [data.best.verdict]), ...rows.filter((i) => r.role[i] === 0).slice(0, 1)].filter((i) => r.ttft_s[i] !== null);
  return base({
    grid: { left: 56, right: 24, top: 34, bottom: 42 },
    xAxis: axis({ type: "value", scale: true, name: "TTFT p95, s (less is better)", nameLocation: "middle", nameGap: 26, splitLine: { show: false } }),
    yAxis: axis({ type: "value", scale: true, name: data.unit, nameTextStyle: { align: "left", padding: [0, 0, 0, -40], color: look.muted }, axisLabel: { color: look.muted, formatter: number } }),
    series: [
      { type: "line", name: "unbeaten", silent: true, step: "end", symbol: "none", data: data.tradeoff.map((i) => [r.ttft_s[i], r.value[i]]).reverse(), lineStyle: { color: look.class[0], width: 2 }, z: 1 },
      ...points(rows, (i) => [r.ttft_s[i], r.value[i]], { z: 2 }),
      { type: "scatter", silent: true, symbol: "circle", symbolSize: 16, itemStyle: { color: "transparent", borderColor: look.text, borderWidth: 2, opacity: 1 }, z: 3, data: [...new Set(named)].map((i) => ({ value: [r.ttft_s[i], r.value[i]], label: { formatter: r.role[i] === 0 ? "baseline" : `#${r.number[i]}` } })), label: { show: true, position: "right", distance: 6, color: look.text, fontWeight: 600, textBorderColor: look.ground, textBorderWidth: 3 } },
    ],
  });
};

draw.knobs = (el) => {
  const k = data.knobs;
  const upright = narrow(el);
  const most = upright ? 5 : 11; // and the value
  const names = k.names.slice(0, most);
  const label = (name) => (upright || name.length < 17 ? name : name.replace(/-(?=[^-]*$)/, "-\n"));
  const lines = (rows, from) => rows.map((row, i) => ({ value: [...names.map((_, j) => { const v = k.index[j][from + i]; return v < 0 ? "not set" : k.values[j][v]; }), data.rows.value[row]], row, number: data.rows.number[row] }));
  const unset = (j) => (k.index[j].includes(-1) ? ["not set"] : []);
  const series = (name, rows, from, style) => ({ type: "parallel", name, lineStyle: style, inactiveOpacity: 0.03, data: lines(rows, from), tooltip: { formatter: (p) => `${describe(p.data.row)}\n${names.map((n, j) => `${n} ${p.data.value[j]}`).join("\n")}` } });
  return base({
    legend: legend(["best tenth", "other trials"]),
    parallel: upright ? { layout: "vertical", left: 20, right: 20, top: 64, bottom: 30 } : { left: 64, right: 60, top: 84, bottom: 24 },
    parallelAxis: [...names.map((name, dim) => ({ dim, name: label(name), type: "category", data: [...unset(dim), ...k.values[dim]] })), { dim: names.length, name: data.unit, type: "value", scale: true }].map((a) => ({
      ...a, nameLocation: "end", nameGap: upright ? 8 : 14, nameTextStyle: { color: look.text, fontSize: 12, lineHeight: 14, ...(upright ? { align: "right", verticalAlign: "bottom", padding: [0, 0, 20, 0] } : {}) }, axisLine: { lineStyle: { color: look.line } }, axisTick: { lineStyle: { color: look.line } }, axisLabel: { color: look.muted, hideOverlap: true, textBorderColor: look.ground, textBorderWidth: 3 },
    })),
    series: [series("other trials", k.rest, k.best.length, { color: look.line, width: 1, opacity: k.rest.length > 100 ? 0.18 : 0.35 }), series("best tenth", k.best, 0, { color: look.class[0], width: 2, opacity: k.best.length > 60 ? 0.35 : 0.9 })],
    color: [look.line, look.class[0]],
  });
};

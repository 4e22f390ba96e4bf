
// == interactive figures, drawn from the cells in the page ===========================================
// The tests call binsOf, eceOf, chanceOf, shownNumber and shownPercent by these names.

// -- numbers as base/numbers.py writes them ---------------------------------------------------------
function shownNumber(x) {
  if (x === null || Number.isNaN(x)) return x === null ? "" : "undefined";
  const size = Math.abs(x) < 1e-12 ? 0 : Math.abs(x);
  if (size === 0) return "0";
  if (size < 0.00995) return size >= 1e-6 ? x.toFixed(1 - Math.floor(Math.log10(size))).replace(/0+$/, "") : x.toExponential(1);
  if (size >= 1000) return Math.round(x).toLocaleString("en-US");
  return x.toFixed(size >= 100 ? 1 : 3);
}
function shownPercent(x) {
  const shown = 100 * x, away = Number(Math.min(Math.abs(shown), Math.abs(100 - shown)).toFixed(9));
  const digits = away ? Math.max(1, 1 - Math.floor(Math.log10(away))) : 0;
  const text = shown.toFixed(digits);
  return (digits ? text.replace(/0+$/, "").replace(/\.$/, "") : text) + "%";
}
const shownCount = n => (Math.round(n * 100) / 100).toLocaleString("en-US");

// -- from cells to bins, errors and values expected by chance -------------------------------------------------
// A confidence above one half is stored as minus its distance from 1.
const low = c => c < 0 ? 1 + c : c, up = c => c < 0 ? -c : 1 - c;
function binsOf(view, binning, count) {
  const start = count * (count - 1) / 2 - 1, sizes = view[binning].slice(start, start + count), bins = [];
  let cell = 0;
  for (let k = 0; k < count; k++) {
    const end = cell + sizes[k];
    if (end === cell) continue;
    const bin = { k, n: 0, y: 0, c: 0, q: 0, v: 0, from: low(view.c[cell]), to: low(view.c[end - 1]) };
    for (; cell < end; cell++) {
      const n = view.n[cell], c = low(view.c[cell]), q = up(view.c[cell]);
      bin.n += n; bin.y += view.y[cell]; bin.c += n * c; bin.q += n * q;
      bin.v += (view.v.length ? view.v[cell] : n) * c * q;
    }
    if (binning === "width") { bin.from = k / count; bin.to = (k + 1) / count; }
    bin.weighted = view.v.length > 0;
    bins.push(bin);
  }
  return bins;
}
const totalOf = bins => bins.reduce((sum, bin) => sum + bin.n, 0);
const eceOf = bins => bins.reduce((sum, bin) => sum + Math.abs(bin.y - bin.c), 0) / totalOf(bins);
// The first three moments of |events - expected| in a bin of a calibrated model. For few events they are those of the
// binomial distribution with the same mean and variance, for many those of the normal distribution.
function awayOf(bin) {
  const v = bin.v, normal = [Math.sqrt(2 * v / Math.PI), v, 2 * v * Math.sqrt(2 * v / Math.PI)];
  if (v === 0 || v > 40 || bin.weighted) return normal;
  const mean = Math.min(bin.c, bin.q), p = 1 - v / mean;
  if (!(p > 1e-9)) return poissonAway(mean);
  const n = mean / p, moments = [0, 0, 0];
  let mass = Math.exp(n * Math.log1p(-p)), total = 0;
  for (let k = 0; k <= n + 0.5 && k < 400; k++) {
    const away = Math.abs(k - mean);
    total += mass;
    for (let m = 0; m < 3; m++) moments[m] += mass * away ** (m + 1);
    mass *= Math.max(n - k, 0) / (k + 1) * p / (1 - p);
  }
  return moments.map(m => m / total);
}
function poissonAway(mean) {
  const moments = [0, 0, 0];
  let mass = Math.exp(-mean);
  for (let k = 0; k < mean + 12 * Math.sqrt(mean) + 20; k++) {
    for (let m = 0; m < 3; m++) moments[m] += mass * Math.abs(k - mean) ** (m + 1);
    mass *= mean / (k + 1);
  }
  return moments;
}
// The ECE of a calibrated model with these confidences: its mean, and the value that it exceeds in 5% of samples (from three
// moments, by Cornish and Fisher).
function chanceOf(bins) {
  const n = totalOf(bins);
  let mean = 0, variance = 0, third = 0;
  for (const [a, b, c] of bins.map(awayOf)) {
    mean += a; variance += b - a * a; third += c - 3 * a * b + 2 * a ** 3;
  }
  if (!(variance > 0)) return { mean: mean / n, high: mean / n };
  const z = 1.6448536269514722, skew = third / variance ** 1.5;
  const at = z + skew * (z * z - 1) / 6 - skew * skew * (2 * z ** 3 - 5 * z) / 36;
  return { mean: mean / n, high: (mean + at * Math.sqrt(variance)) / n };
}
const certain = bin => bin.y <= 0 || bin.y >= bin.n;
function wilsonOf(bin, z) {
  const n = bin.n, share = bin.y / n, z2 = z * z;
  const center = (share + z2 / (2 * n)) / (1 + z2 / n);
  const half = z * Math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n);
  return [Math.max(center - half, 0), Math.min(center + half, 1)];
}
// the quantile of the normal distribution (Acklam's approximation, off by less than 2e-9 relative)
function normalQuantile(p) {
  if (p < 0.5) return -normalQuantile(1 - p);
  const rational = (x, over, under) => over.reduce((s, a) => s * x + a, 0) / under.reduce((s, a) => s * x + a, 0);
  if (p > 0.97575) {
    const q = Math.sqrt(-2 * Math.log(1 - p));
    return -rational(q, [-0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783],
                     [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1]);
  }
  const q = p - 0.5, r = q * q;
  return q * rational(r, [-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716, 2.506628277459239],
                      [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1]);
}

// -- drawing ------------------------------------------------------------------------------------------
function svg(tag, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
function html(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) if (value !== null) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
const ENDS = [1e-6, 1 - 1e-6];
const AXES = {
  probability: { of: (c, q) => c, ticks: null },
  "log odds": { of: (c, q) => Math.log(Math.max(c, 1e-9) / Math.max(q, 1e-9)), ticks: null },
};
const logOdds = p => Math.log(p / (1 - p));
function linearTicks(from, to, named = String) {
  const step = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.25].find(s => (to - from) / s <= 6) ?? 0.25;
  const ticks = [];
  for (let k = Math.ceil(from / step - 1e-9); k * step <= to + 1e-9; k++) ticks.push(Number((k * step).toPrecision(6)));
  return ticks.map(p => ({ at: p, text: named(p) }));
}
function oddsTicks(from, to) {
  const coarse = [1e-6, 1e-5, 1e-4, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999];
  const fine = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999];
  const inside = list => list.filter(p => logOdds(p) >= from - 1e-9 && logOdds(p) <= to + 1e-9);
  const few = inside(coarse), many = inside(fine);
  const chosen = few.length >= 4 || many.length < few.length ? few : many;
  return chosen.map(p => ({ at: logOdds(p), text: shownPercent(p) }));
}

// whether a label at x does not overlap the last one that was drawn
function labelRoom() {
  let end = -Infinity;
  return (x, text) => {
    const half = 3.7 * text.length;
    if (x - half < end + 8) return false;
    end = x + half;
    return true;
  };
}

// -- the panel ------------------------------------------------------------------------------------------
const liveData = all("template.live-data").map(t => ({ id: t.dataset.model, name: t.dataset.name, ...JSON.parse(t.content.textContent) }));
const reliability = one("figure.live[data-figure=reliability]");
const seriesColor = i => `var(--f-c${i % 8})`;
const state = { model: 0, view: 0, off: new Set(["after"]), focus: 0, rebinned: false };

function chosenSeries() {
  const several = state.model === "all";
  const models = several ? liveData.map((data, i) => ({ data, i })) : [{ data: liveData[state.model], i: state.model }];
  const series = models.map(({ data, i }) => ({ data, key: "m" + i, color: i, name: several ? data.name : "not recalibrated", view: data.views[several ? 0 : state.view] ?? data.views[0] }));
  if (!several) {
    const after = series[0].data.views.find(v => v.kind === "after");
    if (after && state.view === 0) series.push({ ...series[0], key: "after", color: series[0].color + 1, name: after.name, view: after });
  }
  return series.filter(s => s.view);
}
function fillViews() {
  const select = document.getElementById("view"), data = liveData[state.model === "all" ? 0 : state.model];
  const groups = { all: [], class: [], segment: [] };
  data.views.forEach((view, i) => groups[view.kind]?.push(html("option", { value: i }, view.kind === "all" ? "all " + data.cases : view.name)));
  const children = [...groups.all];
  for (const [kind, title] of [["segment", "segments, worst first"], ["class", "classes, each against the rest"]]) {
    if (groups[kind].length) children.push(html("optgroup", { label: title }, ...groups[kind]));
  }
  select.replaceChildren(...children);
  select.closest("label").hidden = state.model === "all" || data.views.every(v => v.kind === "all" || v.kind === "after");
  state.view = 0;
}
function setLimits() {
  const bins = document.getElementById("bins");
  bins.max = Math.min(...chosenSeries().map(s => s.view.most));
}
function rangeOf(series, axis, position, z) {
  const at = [];
  for (const s of series) for (const bin of s.bins) {
    at.push(position(bin.c / bin.n, bin.q / bin.n));
    if (bin.y > 0 && bin.y < bin.n) {
      at.push(position(bin.y / bin.n, 1 - bin.y / bin.n));
      // the wide interval of a few cases would compress all the others
      if (axis === "log odds" && bin.n >= 5) for (const p of wilsonOf(bin, z)) if (p > ENDS[0] && p < ENDS[1]) at.push(position(p, 1 - p));
    } else if (axis === "probability") at.push(bin.y ? 1 : 0);
  }
  let from = Math.min(...at), to = Math.max(...at);
  if (axis === "probability") {
    if (to - from > 0.4) return [0, 1];
    const room = Math.max(0.08 * (to - from), 0.002);
    return [Math.max(from - room, 0), Math.min(to + room, 1)];
  }
  [from, to] = [Math.max(from, logOdds(ENDS[0])), Math.min(to, logOdds(ENDS[1]))];
  const room = Math.max(0.05 * (to - from), 0.3);
  return [from - room, to + room];
}
function binText(bin, s, count, binning) {
  const z = normalQuantile(0.5 + s.data.level / 2), [a, b] = wilsonOf(bin, z);
  const where = `${shownNumber(bin.from)} to ${shownNumber(bin.to)}`;
  return `${s.many ? s.name + ", " : ""}bin ${bin.k + 1} of ${count}, ${where}: ${shownCount(bin.n)} ${s.data.cases}\n` +
    `predicted ${shownPercent(bin.c / bin.n)}, observed ${shownPercent(bin.y / bin.n)}\n` +
    `${shownPercent(s.data.level)} interval ${shownPercent(a)} to ${shownPercent(b)}`;
}
function drawReliability() {
  const count = Math.min(Number(document.getElementById("bins").value), Number(document.getElementById("bins").max));
  const binning = document.getElementById("binning").value, axis = document.getElementById("axis").value;
  document.getElementById("bins-shown").textContent = count;
  const every = chosenSeries(), series = every.filter(s => !state.off.has(s.key));
  for (const s of every) { s.bins = binsOf(s.view, binning, count); s.many = series.length > 1; }
  const stage = one(".stage", reliability), data = every[0].data;
  const z = normalQuantile(0.5 + data.level / 2);
  const position = AXES[axis].of, [from, to] = rangeOf(series.length ? series : every, axis, position, z);
  const ticks = axis === "probability" ? linearTicks(from, to, to - from > 0.4 ? String : shownPercent) : oddsTicks(from, to);
  // the title of the vertical axis does not overlap its numbers
  const left = Math.max(58, 34 + 7 * Math.max(...ticks.map(tick => tick.text.length))), below = 64, top = 10;
  const wide = Math.max(Math.min(stage.clientWidth || 560, 640), 260), side = wide - left - 12, high = side + top + below;
  const inside = t => Math.max(from, Math.min(to, t));
  const x = t => left + side * (inside(t) - from) / (to - from), y = t => top + side * (1 - (inside(t) - from) / (to - from));
  const drawn = [], room = labelRoom();
  for (const { at, text } of ticks) {
    drawn.push(svg("path", { class: "grid", d: `M${x(at)} ${top}V${top + side}M${left} ${y(at)}H${left + side}` }),
      svg("text", { x: left - 7, y: y(at) + 4, "text-anchor": "end" }, text));
    if (room(x(at), text)) drawn.push(svg("text", { x: x(at), y: top + side + 18, "text-anchor": "middle" }, text));
  }
  drawn.push(svg("path", { class: "frame", d: `M${left} ${top}V${top + side}H${left + side}` }),
    svg("path", { class: "diagonal", d: `M${x(from)} ${y(from)}L${x(to)} ${y(to)}` }),
    svg("text", { class: "axis", x: left + side / 2, y: top + side + 40, "text-anchor": "middle" }, data.across + (axis === "log odds" ? " (log-odds scale)" : "")),
    svg("text", { class: "axis", transform: `translate(14 ${top + side / 2}) rotate(-90)`, "text-anchor": "middle" }, data.up));
  if (!state.off.has("histogram")) for (const s of series.length ? series : every.slice(0, 1)) drawn.push(histogram(s, series.length > 1, position, x, from, to, top + side, 0.14 * side));
  const points = [];
  for (const s of series) {
    const line = s.bins.map(bin => [x(position(bin.c / bin.n, bin.q / bin.n)), y(position(bin.y / bin.n, 1 - bin.y / bin.n))]);
    // no line crosses an empty bin, or leads to a bin in which nothing, or nothing else, was observed
    const joined = i => i > 0 && !certain(s.bins[i - 1]) && !certain(s.bins[i]) && (binning === "mass" || s.bins[i].k === s.bins[i - 1].k + 1);
    drawn.push(svg("path", { class: "trace", style: `stroke:${seriesColor(s.color)}`, d: line.map((p, i) => (joined(i) ? "L" : "M") + p.map(v => v.toFixed(1)).join(" ")).join("") }));
    s.bins.forEach((bin, i) => points.push(pointOf(bin, s, line[i], y, position, z, count, binning)));
  }
  drawn.push(...points);
  const again = stage.contains(document.activeElement) && document.activeElement.dataset.bin !== undefined;
  stage.replaceChildren(svg("svg", { viewBox: `0 0 ${wide} ${high}`, width: wide, height: high, class: "drawn", role: "group", "aria-label": alternative(series.length ? series : every.slice(0, 1)) }, ...drawn));
  state.focus = Math.min(state.focus, points.length - 1);
  points[state.focus]?.setAttribute("tabindex", "0");
  if (again) points[state.focus]?.focus({ preventScroll: true });
  drawLegend(every);
  sayLine(every, series, count, binning);
}
// the diagram in words: what was observed at what was predicted
function alternative(series) {
  const said = series.map(s => (series.length > 1 ? s.name + ", " : "") + s.bins.length + " bins: " +
    s.bins.map(bin => `predicted ${shownPercent(bin.c / bin.n)}, observed ${shownPercent(bin.y / bin.n)}`).join("; "));
  return "Reliability diagram; arrow keys go from bin to bin. " + said.join(". ");
}
function pointOf(bin, s, [px, py], y, position, z, count, binning) {
  const [a, b] = wilsonOf(bin, z), text = binText(bin, s, count, binning);
  const parts = [svg("circle", { class: "catch", cx: px, cy: py, r: 12 })];
  if (!state.off.has("intervals")) {
    const low = y(position(Math.max(a, 1e-9), 1 - a)), high = y(position(b, Math.max(1 - b, 1e-9)));
    parts.push(svg("path", { class: "interval", style: `stroke:${seriesColor(s.color)}`, d: `M${px} ${low.toFixed(1)}V${high.toFixed(1)}` }));
  }
  parts.push(svg("circle", { class: "dot", style: certain(bin) ? `fill:var(--f-paper);stroke:${seriesColor(s.color)};stroke-width:1.5` : `fill:${seriesColor(s.color)}`, cx: px, cy: py, r: 4.5 }));
  return svg("g", { class: "tip point" + (bin.n < 5 ? " faint" : ""), tabindex: "-1", role: "img", "data-bin": bin.k, "data-model": s.key,
    "data-tip": text, "aria-label": text.replaceAll("\n", "; ") }, ...parts);
}
// Of one model as bars, of several as lines in their colors.
function histogram(s, several, position, x, from, to, base, high) {
  const parts = 40, shares = new Array(parts).fill(0), { n, c } = s.view;
  for (let i = 0; i < n.length; i++) {
    const t = (position(low(c[i]), up(c[i])) - from) / (to - from);
    shares[Math.max(0, Math.min(parts - 1, Math.floor(t * parts)))] += n[i];
  }
  const most = Math.max(...shares), step = (x(to) - x(from)) / parts;
  if (several) return svg("path", { class: "histogram each", style: `stroke:${seriesColor(s.color)}`, d: `M${x(from)} ${base}` + shares.map((h, k) => `V${(base - high * h / most).toFixed(1)}H${(x(from) + (k + 1) * step).toFixed(1)}`).join("") + `V${base}` });
  return svg("path", { class: "histogram", d: shares.map((h, k) => h ? `M${(x(from) + k * step + 0.5).toFixed(1)} ${base}v${(-high * h / most).toFixed(1)}h${(step - 1).toFixed(1)}V${base}Z` : "").join("") });
}
function drawLegend(every) {
  const items = every.length > 1 ? every.map(s => [s.key, s.name, `background:${seriesColor(s.color)}`]) : [];
  items.push(["intervals", shownPercent(every[0].data.level) + " intervals", null], ["histogram", "distribution of confidences" + (state.model === "all" ? ", each model" : ""), null]);
  one(".legend", reliability).replaceChildren(...items.map(([key, name, style]) => {
    const button = html("button", { type: "button", "aria-pressed": String(!state.off.has(key)) }, ...(style ? [html("span", { class: "mark", style })] : []), name);
    button.addEventListener("click", () => {
      if (state.off.has(key)) state.off.delete(key); else state.off.add(key);
      drawReliability();
      all(".legend button", reliability)[items.findIndex(i => i[0] === key)].focus();
    });
    return button;
  }));
}
// For the bins of the page itself, the simulated numbers of its table are shown in place of computed ones.
function ownNumbers(s, count, binning) {
  return s.view.kind === "all" && binning === s.data.own_binning && count === s.data.own_bins ? s.data.shown : null;
}
// As opened, a page has one ECE: a diagram of all rows in other bins shows its own only after a change of the bins.
function eceWords(s, count, binning) {
  const own = ownNumbers(s, count, binning), { value, mean, high } = own ?? { value: eceOf(s.bins), ...chanceOf(s.bins) };
  if (!own && !state.rebinned && s.view.kind === "all") return [`${count} bins of equal ${binning}; change them to see the ${s.data.metric} of other bins.`, ...ownWords(s, count, binning)];
  return [html("b", {}, `${s.data.metric} ${shownNumber(value)}`),
    ` with ${count} bins of equal ${binning}. A calibrated model would show about ${shownNumber(mean)}, and up to ${shownNumber(high)} in 95% of samples. `,
    html("span", { class: "v " + (value > high ? "bad" : "unknown") }, value > high ? "larger than expected by chance" : "within the range expected by chance"), ...ownWords(s, count, binning)];
}
// with other bins, the number that the rest of the page gives
function ownWords(s, count, binning) {
  const d = s.data;
  if (!d.shown || s.view.kind !== "all" || (binning === d.own_binning && count === d.own_bins)) return [];
  return [` Elsewhere on this page: ${d.own_bins} bins of equal ${d.own_binning}, ${d.metric} ${shownNumber(d.shown.value)}.`];
}
function sayLine(every, series, count, binning) {
  const said = (series.length ? series : every.slice(0, 1)).map(s => {
    const where = s.view.kind === "class" || s.view.kind === "segment" ? s.view.name : series.length > 1 ? s.name : "";
    return html("p", { "data-series": s.key }, html("b", {}, where ? where + ": " : ""), ...eceWords(s, count, binning));
  });
  const note = every[0].data.note;
  one(".said", reliability).replaceChildren(...said, ...(note ? [html("p", { class: "hint" }, note)] : []));
  one(".numbers tbody", reliability).replaceChildren(...(series.length ? series : every.slice(0, 1)).flatMap(s => s.bins.map(bin =>
    html("tr", {}, ...binText(bin, s, count, binning).split("\n").map(line => html("td", {}, line))))));
}
function startReliability() {
  const first = liveData[0], models = document.getElementById("live-model");
  reliability.hidden = false;
  reliability.parentElement.classList.add("drawn-here");
  if (models) {
    state.model = liveData.length > 4 ? Math.max(0, liveData.findIndex(data => data.id === model.dataset.best)) : "all";
    models.value = String(state.model);
    models.addEventListener("change", () => { state.model = models.value === "all" ? "all" : Number(models.value); fillViews(); setLimits(); drawReliability(); drawDecision(); });
  }
  fillViews();
  document.getElementById("binning").value = first.binning;
  document.getElementById("axis").value = first.axis;
  setLimits();
  document.getElementById("bins").value = first.n_bins;
  document.getElementById("bins").addEventListener("input", () => { state.rebinned = true; drawReliability(); });
  document.getElementById("binning").addEventListener("change", () => { state.rebinned = true; });
  for (const id of ["binning", "axis"]) document.getElementById(id).addEventListener("change", drawReliability);
  document.getElementById("view").addEventListener("change", event => { state.view = Number(event.target.value); setLimits(); drawReliability(); });
  one(".stage", reliability).addEventListener("keydown", event => {
    state.focus = Math.max(0, goAlong(event, all("[data-bin]", reliability)));
  });
  let width = 0;
  new ResizeObserver(([entry]) => {
    if (Math.abs(entry.contentRect.width - width) > 1) { width = entry.contentRect.width; drawReliability(); drawDecision(); }
  }).observe(one(".stage", reliability));
}

// -- acting at or above a threshold --------------------------------------------------------------------------
const decision = one("figure.live[data-figure=decision]");
const perThousand = x => { const k = 1000 * x; return Math.abs(k) >= 10 || k === 0 ? Math.round(k).toLocaleString("en-US") : k.toFixed(1); };
const decisionOff = new Set(["after"]);
const decisionModel = () => liveData[state.model === "all" ? 0 : state.model];
function drawDecision() {
  const curve = decision && decisionModel().thresholds;
  if (decision) decision.hidden = !curve;
  if (!curve) return;
  const slider = document.getElementById("threshold"), last = curve.t.length - 1;
  if (Number(slider.max) !== last || slider.dataset.of !== decisionModel().id) {
    slider.max = last; slider.value = curve.start; slider.dataset.of = decisionModel().id;
  }
  const k = Number(slider.value), stage = one(".stage", decision);
  if (liveData.length > 1) one("figcaption b", decision).textContent = "Decisions at a threshold: " + decisionModel().name + (state.model === "all" ? " (choose another model above)" : "");
  document.getElementById("threshold-shown").textContent = curve.t[k];
  slider.setAttribute("aria-valuetext", "act from " + curve.t[k]);
  const whose = liveData.length > 1 ? decisionModel().name + ", " : "";
  const lines = [["before", whose + "not recalibrated", 0, curve.before]];
  if (curve.after) lines.push(["after", whose + "after " + curve.map, 1, curve.after]);
  stage.replaceChildren(decisionPicture(curve, lines.filter(l => !decisionOff.has(l[0])), k, stage.clientWidth));
  const items = [...lines.map(([key, name, color]) => [key, name, `background:${seriesColor(color)}`]), ["all", "acting on every row", "background:var(--soft)"]];
  one(".legend", decision).replaceChildren(...items.map(([key, name, style], i) => {
    const button = html("button", { type: "button", "aria-pressed": String(!decisionOff.has(key)) }, html("span", { class: "mark", style }), name);
    button.addEventListener("click", () => {
      if (decisionOff.has(key)) decisionOff.delete(key); else decisionOff.add(key);
      drawDecision();
      all(".legend button", decision)[i].focus();
    });
    return button;
  }));
  const shown = lines.filter(l => !decisionOff.has(l[0]));
  one(".said", decision).replaceChildren(...shown.map(l => decisionWords(curve, l, k, shown.length > 1)));
  const table = one(".segments", decision);
  table.hidden = !curve.segments.length;
  one("tbody", table).replaceChildren(...curve.segments.map(s => html("tr", {}, html("td", {}, s.name),
    html("td", { "data-key": s.alarms[k] }, perThousand(s.alarms[k])), html("td", { "data-key": s.found[k] }, perThousand(s.found[k])),
    html("td", { "data-key": s.events - s.found[k] }, perThousand(Math.max(s.events - s.found[k], 0))))));
}
function decisionWords(curve, [key, name, , acting], k, many) {
  const between = (x, se, floor) => `${perThousand(Math.max(x - curve.z * se, floor))} to ${perThousand(Math.min(x + curve.z * se, 1))}`;
  const level = shownPercent(decisionModel().level), t = curve.t[k], missed = Math.max(curve.events - acting.found[k], 0);
  const everyone = curve.events - (1 - curve.events) * t / (1 - t), best = Math.max(everyone, 0), gain = acting.net[k] - best;
  return html("p", { "data-series": key }, html("b", {}, `${many ? name + ": " : ""}${perThousand(acting.alarms[k])} alarms per 1,000 rows`),
    ` (${between(acting.alarms[k], acting.alarms_se[k], 0)}). Of those treated, ${perThousand(acting.found[k])} (${between(acting.found[k], acting.found_se[k], 0)}) have the event and ` +
    `${perThousand(acting.alarms[k] - acting.found[k])} do not; ${perThousand(missed)} with the event are not treated. Net benefit ${shownNumber(acting.net[k])} ` +
    `(${level} interval ${shownNumber(acting.net[k] - curve.z * acting.net_se[k])} to ${shownNumber(acting.net[k] + curve.z * acting.net_se[k])}), ` +
    `${gain >= 0 ? shownNumber(gain) + " more" : shownNumber(-gain) + " less"} than ${everyone > 0 ? "acting on every row" : "acting on none"}.`);
}
function decisionPicture(curve, lines, k, room) {
  const wide = Math.max(Math.min(room || 560, 640), 260), left = 58, top = 10, across = wide - left - 12, down = Math.max(0.55 * across, 200);
  const everyone = curve.t.map(t => curve.events - (1 - curve.events) * t / (1 - t));
  const at = t => logOdds(t), from = at(curve.t[0]), to = at(curve.t.at(-1));
  const most = Math.max(0.001, ...lines.flatMap(l => l[3].net.map((b, i) => b + curve.z * l[3].net_se[i])), curve.events);
  const least = Math.max(-0.6 * most, Math.min(0, ...lines.flatMap(l => l[3].net.map((b, i) => b - curve.z * l[3].net_se[i]))) - 0.04 * most);
  const x = t => left + across * (at(t) - from) / (to - from), y = b => top + down * (1 - (Math.max(least, Math.min(most, b)) - least) / (most - least));
  const path = values => "M" + values.map((b, i) => `${x(curve.t[i]).toFixed(1)} ${y(b).toFixed(1)}`).join("L");
  const drawn = [], clear = labelRoom();
  for (const t of [0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.99]) {
    drawn.push(svg("path", { class: "grid", d: `M${x(t)} ${top}v${down}` }));
    if (clear(x(t), shownPercent(t))) drawn.push(svg("text", { x: x(t), y: top + down + 18, "text-anchor": "middle" }, shownPercent(t)));
  }
  for (const { at: b, text } of linearTicks(least, most)) drawn.push(svg("path", { class: "grid", d: `M${left} ${y(b)}h${across}` }), svg("text", { x: left - 7, y: y(b) + 4, "text-anchor": "end" }, text));
  drawn.push(svg("path", { class: "frame", d: `M${left} ${top}v${down}h${across}M${left} ${y(0)}h${across}` }));
  if (!decisionOff.has("all")) drawn.push(svg("path", { class: "diagonal", d: path(everyone) }));
  for (const [, , color, acting] of lines) {
    const low = acting.net.map((b, i) => b - curve.z * acting.net_se[i]), high = acting.net.map((b, i) => b + curve.z * acting.net_se[i]);
    const back = low.map((b, i) => `${x(curve.t[i]).toFixed(1)} ${y(b).toFixed(1)}`).reverse().join("L");
    drawn.push(svg("path", { class: "band", style: `fill:${seriesColor(color)}`, d: path(high) + "L" + back + "Z" }), svg("path", { class: "trace", style: `stroke:${seriesColor(color)}`, d: path(acting.net) }));
  }
  drawn.push(svg("path", { class: "marker", d: `M${x(curve.t[k])} ${top}v${down}` }));
  for (const [, , color, acting] of lines) drawn.push(svg("circle", { style: `fill:${seriesColor(color)}`, cx: x(curve.t[k]), cy: y(acting.net[k]), r: 4.5 }));
  drawn.push(svg("text", { class: "axis", x: left + across / 2, y: top + down + 40, "text-anchor": "middle" }, "Threshold (log-odds scale)"),
    svg("text", { class: "axis", transform: `translate(14 ${top + down / 2}) rotate(-90)`, "text-anchor": "middle" }, "Net benefit"));
  return svg("svg", { viewBox: `0 0 ${wide} ${top + down + 54}`, width: wide, height: top + down + 54, class: "drawn", role: "img", "aria-label": "Net benefit against the threshold" }, ...drawn);
}

if (reliability && liveData.length) {
  startReliability();
  drawReliability();
  if (decision) document.getElementById("threshold").addEventListener("input", drawDecision);
  drawDecision();
}
reachScrollers();

"use strict";
const all = (selector, within = document) => [...within.querySelectorAll(selector)];
const one = (selector, within = document) => within.querySelector(selector);

// -- tables: sort by a heading, search, unfold a metric --------------------------------------------
const keyOf = cell => cell.dataset.key ?? cell.textContent.trim();
function compare(a, b, down) {
  if (a === b) return 0;
  if (a === "") return 1;
  if (b === "") return -1;
  const x = Number(a), y = Number(b);
  const order = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
  return down ? -order : order;
}
function unfold(row) {
  const entry = document.getElementById(row.dataset.about);
  const about = document.createElement("tr");
  const cell = document.createElement("td");
  about.className = "about";
  cell.colSpan = row.cells.length;
  cell.append(entry.content.cloneNode(true));
  if (row.dataset.note) {
    const note = document.createElement("p");
    note.className = "caution";
    note.textContent = row.dataset.note;
    cell.append(note);
  }
  if (row.dataset.study) {
    const found = document.createElement("p");
    found.textContent = row.dataset.study;
    cell.append(found);
  }
  about.append(cell);
  row.after(about);
}
function fold(row) {
  if (row.nextElementSibling?.classList.contains("about")) row.nextElementSibling.remove();
}
for (const table of all("table.sortable")) {
  const body = table.tBodies[0];
  const rows = all("tr:not(.group)", body);
  const groups = all("tr.group", body);
  const frame = table.closest(".filtered");
  const search = frame && one("input[type=search]", frame);
  const chosen = frame && one("select", frame);
  const texts = new Map();
  const textOf = row => {
    if (!texts.has(row)) {
      const about = row.dataset.about ? document.getElementById(row.dataset.about).content.textContent : "";
      texts.set(row, (row.textContent + " " + about).toLowerCase());
    }
    return texts.get(row);
  };
  let sorted = false;
  const filter = () => {
    const words = search ? search.value.toLowerCase().split(/\s+/).filter(Boolean) : [];
    for (const row of rows) {
      const inGroup = !chosen?.value || row.dataset.group === chosen.value;
      row.hidden = !(inGroup && words.every(word => textOf(row).includes(word)));
      if (row.hidden) { close(row); }
    }
    for (const head of groups) head.hidden = sorted || words.length > 0 || Boolean(chosen?.value);
  };
  const close = row => {
    one(".more", row)?.setAttribute("aria-expanded", "false");
    fold(row);
  };
  search?.addEventListener("input", filter);
  chosen?.addEventListener("change", filter);
  body.addEventListener("click", event => {
    const more = event.target.closest(".more");
    if (!more) return;
    const row = more.closest("tr");
    const open = more.getAttribute("aria-expanded") !== "true";
    more.setAttribute("aria-expanded", String(open));
    if (open) unfold(row); else fold(row);
  });
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => one("button", head)?.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach(h => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    rows.forEach(close);
    rows.sort((p, q) => compare(keyOf(p.cells[column]), keyOf(q.cells[column]), down));
    sorted = true;
    filter();
    body.append(...rows);
  }));
}

// -- tooltips of figures ------------------------------------------------------------
const tip = document.getElementById("tip");
// The selected point: the one under the pointer, or the nearest one on a curve.
const NEAR = 32;
function meant(event) {
  const spots = event.clientX === undefined ? [] : all("circle.tip:not([hidden])", event.target.closest?.("figure > svg") ?? tip);
  const away = spots.map(spot => {
    const box = spot.getBoundingClientRect();
    return Math.hypot(box.x + box.width / 2 - event.clientX, box.y + box.height / 2 - event.clientY);
  });
  const least = Math.min(...away);
  return least <= NEAR ? spots[away.indexOf(least)] : event.target.closest?.(".tip");
}
function showTip(event) {
  const place = meant(event);
  for (const lit of all("circle.lit")) lit.classList.toggle("lit", lit === place);
  if (!place) { tip.hidden = true; return; }
  if (place.matches("circle")) place.classList.add("lit");
  tip.textContent = place.dataset.tip;
  tip.hidden = false;
  const box = place.getBoundingClientRect();
  const x = event.clientX || box.x + box.width / 2, y = event.clientY || box.y;
  tip.style.left = Math.max(4, Math.min(x + 14, innerWidth - tip.offsetWidth - 4)) + "px";
  tip.style.top = Math.max(4, Math.min(y + 14, innerHeight - tip.offsetHeight - 4)) + "px";
}
const hideTip = () => { tip.hidden = true; for (const lit of all("circle.lit")) lit.classList.remove("lit"); };
for (const kind of ["pointerover", "pointermove", "focusin", "click"]) document.addEventListener(kind, showTip);
for (const kind of ["pointerout", "focusout"]) document.addEventListener(kind, hideTip);

// One of the points can be reached by Tab; the arrow keys move to the others.
function focusOn(places, k) {
  places.forEach((place, i) => place.setAttribute("tabindex", i === k ? "0" : "-1"));
  return places[k];
}
function goAlong(event, places) {
  const here = places.indexOf(event.target);
  const next = { ArrowRight: here + 1, ArrowUp: here + 1, ArrowLeft: here - 1, ArrowDown: here - 1, Home: 0, End: places.length - 1 }[event.key];
  if (here < 0 || next === undefined) return here;
  event.preventDefault();
  const k = Math.max(0, Math.min(places.length - 1, next));
  focusOn(places, k).focus();
  return k;
}
for (const picture of all("figure > svg")) {
  const spots = all("circle.tip", picture), shown = () => spots.filter(spot => !spot.hasAttribute("hidden"));
  const entries = new Map();
  for (const part of all("[data-key]", picture)) entries.set(part.dataset.key, [...(entries.get(part.dataset.key) ?? []), part]);
  if (spots.length || entries.size) picture.setAttribute("role", "group");
  if (spots.length) {
    for (const spot of spots) { spot.setAttribute("role", "img"); spot.setAttribute("aria-label", spot.dataset.tip.replaceAll("\n", "; ")); }
    focusOn(spots, 0);
    picture.setAttribute("aria-label", picture.getAttribute("aria-label") + "; arrow keys go from point to point");
    picture.addEventListener("keydown", event => goAlong(event, shown()));
  }
  for (const [key, parts] of entries) {
    const series = all(`[data-series="${key}"]`, picture), switched = parts.at(-1);
    const turn = () => {
      const on = switched.getAttribute("aria-pressed") !== "true";
      switched.setAttribute("aria-pressed", String(on));
      for (const part of series) part.toggleAttribute("hidden", !on);
      focusOn(shown(), 0);
    };
    switched.setAttribute("role", "button");
    switched.setAttribute("tabindex", "0");
    switched.setAttribute("aria-pressed", "true");
    for (const part of parts) part.addEventListener("click", turn);
    switched.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); turn(); } });
  }
}

// -- highlighting of curves --------------------------------------------------------------------------
const overlay = one(".overlay");
for (const element of overlay ? all("[data-curve]") : []) {
  const light = on => {
    overlay.classList.toggle("one", on);
    for (const same of all("[data-curve]")) same.classList.toggle("lit", on && same.dataset.curve === element.dataset.curve);
  };
  element.addEventListener("pointerenter", () => light(true));
  element.addEventListener("pointerleave", () => light(false));
}

// -- dark and light --------------------------------------------------------------------------------
const root = document.documentElement;
const remembered = { get() { try { return localStorage.getItem("calibrary-theme"); } catch { return null; } },
                     set(value) { try { localStorage.setItem("calibrary-theme", value); } catch { /* a file has no store */ } } };
const isDark = () => (root.dataset.theme || (matchMedia("(prefers-color-scheme:dark)").matches ? "dark" : "light")) === "dark";
const themeButton = document.getElementById("theme");
function setTheme(theme) {
  if (theme) root.dataset.theme = theme;
  themeButton.textContent = isDark() ? "light" : "dark";
  themeButton.setAttribute("aria-label", "show the page in " + themeButton.textContent + " colours");
}
const switchTheme = () => { setTheme(isDark() ? "light" : "dark"); remembered.set(root.dataset.theme); };
setTheme(remembered.get());
themeButton.addEventListener("click", switchTheme);

// -- parts and models ------------------------------------------------------------------------------
const jump = document.getElementById("jump");
const model = document.getElementById("model");
const shownParts = () => all(".part").filter(part => !part.closest("[hidden]"));
function goTo(part) {
  if (!part) return;
  part.open = true;
  part.scrollIntoView();
  one("summary", part).focus({ preventScroll: true });
}
function listParts() {
  const names = new Set();
  jump.replaceChildren(...shownParts().filter(part => {
    const name = one("h2", part).textContent;
    return !names.has(name) && names.add(name);
  }).map(part => {
    const link = document.createElement("a");
    link.href = "#" + part.id;
    link.textContent = one("h2", part).textContent.replace(/ \(.*/, "");
    link.addEventListener("click", event => { event.preventDefault(); goTo(part); });
    return link;
  }));
}
function showModel(id) {
  for (const article of all("article.model")) article.hidden = Boolean(id) && article.id !== id;
  listParts();
}
function nextModel(step) {
  if (!model) return;
  model.selectedIndex = (model.selectedIndex + step + model.length) % model.length;
  showModel(model.value);
}
if (model) {
  model.value = model.length > 3 ? model.dataset.best : "";
  model.addEventListener("change", () => showModel(model.value));
}
showModel(model?.value);
all("[data-model]").forEach(link => link.addEventListener("click", event => {
  event.preventDefault();
  model.value = link.dataset.model;
  showModel(model.value);
  document.getElementById(link.dataset.model).scrollIntoView();
}));
const place = () => {
  const parts = shownParts();
  return parts.findLastIndex(part => part.getBoundingClientRect().top < 80);
};
addEventListener("scroll", () => {
  const here = shownParts()[place()];
  for (const link of all("a", jump)) link.setAttribute("aria-current", String(here && link.hash === "#" + here.id));
}, { passive: true });

const foldButton = document.getElementById("fold");
foldButton.addEventListener("click", () => {
  const open = foldButton.textContent.startsWith("un");
  for (const part of all(".part")) part.open = open;
  foldButton.textContent = open ? "fold all" : "unfold all";
});
addEventListener("beforeprint", () => { for (const details of all("details")) { if (!details.open) { details.dataset.shut = ""; details.open = true; } } });
addEventListener("afterprint", () => { for (const details of all("details[data-shut]")) { details.open = false; delete details.dataset.shut; } });

// -- scrolling frames have a hint and can be scrolled by the keyboard ----------------------------------------------------
function reachScrollers() {
  for (const frame of all(".scroll, figure")) {
    const wide = frame.scrollWidth > frame.clientWidth + 1;
    frame.classList.toggle("wide", wide);
    const scrolls = wide || (frame.matches(".long, .segments, .numbers .scroll") && frame.scrollHeight > frame.clientHeight + 1);
    if (scrolls) frame.tabIndex = 0; else frame.removeAttribute("tabindex");
  }
}
addEventListener("resize", reachScrollers);
document.addEventListener("toggle", reachScrollers, true);

// -- keys ------------------------------------------------------------------------------------------
const keys = document.getElementById("keys");
const showKeys = () => keys.open ? keys.close() : keys.showModal();
document.getElementById("help").addEventListener("click", showKeys);
one(".close", keys).addEventListener("click", () => keys.close());
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  const parts = shownParts();
  const act = {
    j: () => goTo(parts[Math.min(place() + 1, parts.length - 1)]), k: () => goTo(parts[Math.max(place() - 1, 0)]),
    "/": () => { const part = parts.find(p => one("table.metrics", p)); goTo(part); one("input", part).focus(); },
    "[": () => nextModel(-1), "]": () => nextModel(1), d: switchTheme, "?": showKeys,
  }[event.key] ?? (/^[1-9]$/.test(event.key) ? () => goTo(parts[event.key - 1]) : null);
  if (act) { event.preventDefault(); act(); }
});

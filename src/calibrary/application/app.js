// The page of the app. Every text from a file is set as text, never as markup.
"use strict";
const $ = (id) => document.getElementById(id);
const NONE = "(none)", SEVERAL = "several columns …";
const ROLES = { label: "label", prob: "probability", by: "group", time: "time", unit: "unit", weight: "weight" };
const SELECTS = ["by", "time", "unit", "weight", "id_column", "class_column", "model_column"];
const SWITCHES = ["percent", "logits", "drop_missing", "drop_invalid", "rescale", "ordinal", "sampled"];

const make = (tag, text, attributes = {}) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
};
const show = (id, shown = true) => { $(id).hidden = !shown; };
const say = (id, text) => {
  $(id).textContent = text;
  $(id).classList.toggle("table", (text || "").includes("\n"));
  show(id, Boolean(text));
};

// The token comes after the # of the address, which is sent to no server; this tab keeps it and sends it as a header.
const KEY = "x-calibrary-key";
let key = new URLSearchParams(location.hash.slice(1)).get("token") || "";
try {
  if (key) sessionStorage.setItem(KEY, key);
  else key = sessionStorage.getItem(KEY) || "";
} catch { /* a frame may have no storage: the token then stays in this variable */ }
if (location.hash) history.replaceState(null, "", location.pathname); // so that it does not stay in the history
addEventListener("hashchange", () => location.reload()); // the address of a new app is opened in an old tab

async function ask(path, method = "GET", body) {
  const given = { method, credentials: "omit", headers: { [KEY]: key } };
  if (body !== undefined) { given.body = JSON.stringify(body); given.headers["content-type"] = "application/json"; }
  let answer;
  try { answer = await fetch(path, given); } catch { throw new Error("The app does not answer: it has ended, or this machine is busy."); }
  const text = await answer.text();
  let found = {};
  try { found = JSON.parse(text); } catch { found = { error: text }; }
  if (!answer.ok) throw new Error(found.error || `The app answered with status ${answer.status}.`);
  return found;
}

// -- files -----------------------------------------------------------------------------------------
let files = [];      // {id, name, said}, or {name, share} while a file is being uploaded
let most = Infinity; // the largest size of a file in bytes
let seen = null;     // the result of the preview
let current = null;  // the id of the report that is shown

function send(file) {
  if (file.size > most) {
    say("trouble", `${file.name} is larger than ${Math.round(most / 1e6).toLocaleString("en")} MB: start the app with a larger --most-mb.`);
    return Promise.resolve();
  }
  const entry = { name: file.name, share: 0 };
  files.push(entry);
  drawFiles();
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    entry.request = request;
    request.open("POST", "/files");
    request.setRequestHeader(KEY, key);
    request.setRequestHeader("x-file-name", encodeURIComponent(file.name.toWellFormed ? file.name.toWellFormed() : file.name));
    request.upload.onprogress = (event) => { entry.share = event.total ? event.loaded / event.total : 0; drawFiles(); };
    request.onloadend = () => {
      let found = {};
      try { found = JSON.parse(request.responseText); } catch { found = {}; }
      if (request.status === 201) Object.assign(entry, found, { share: 1 });
      else {
        files = files.filter((other) => other !== entry);
        if (!entry.dropped) say("trouble", `${file.name}: ${found.error || request.responseText || "the upload failed: the file may be too large"}`);
      }
      drawFiles();
      done();
    };
    request.send(file);
  });
}

async function take(list) {
  say("trouble", "");
  await Promise.all([...list].map(send));
  await look();
}

function drawFiles() {
  $("files").replaceChildren(...files.map((file) => {
    const row = make("li"), name = make("span", undefined, { class: "name" });
    name.append(make("b", file.name), make("span", file.id ? ` ${file.said}` : ` ${Math.round(100 * file.share)}%`, { class: "hint" }));
    const away = make("button", "Remove", { type: "button", "aria-label": `Remove ${file.name}` });
    away.onclick = async () => {
      files = files.filter((other) => other !== file);
      drawFiles();
      if (file.id) await ask(`/files/${file.id}`, "DELETE").catch(() => {});
      else { file.dropped = true; file.request.abort(); }
      await look();
    };
    row.append(name, away);
    return row;
  }));
}

// -- the roles of the columns ----------------------------------------------------------------------------
let looking = 0;
async function look() {
  const ready = files.filter((file) => file.id).map((file) => file.id), turn = ++looking;
  if (!ready.length) { show("preview", false); seen = null; return; }
  try {
    const found = await ask("/preview", "POST", { files: ready, scorer: $("scorer").value || null });
    if (turn !== looking) return;
    seen = found;
    say("trouble", "");
    drawPreview();
  } catch (error) {
    if (turn !== looking) return;
    say("trouble", error.message);
    show("preview", false);
  }
}

function fill(select, names, chosen, extra = []) {
  select.replaceChildren(...[...extra, ...names].map((name) => make("option", name)));
  select.value = names.includes(chosen) || extra.includes(chosen) ? chosen : extra[0] ?? names[0] ?? "";
}

function drawPreview() {
  const columns = seen.columns, table = seen.kind === "table" || seen.kind === "log";
  show("preview");
  show("choices", table);
  show("for-logs", seen.kind === "log");
  show("for-samples", seen.kind === "log");
  const rows = seen.rows === null || seen.rows === undefined ? "" : `${seen.rows.toLocaleString("en")} rows, `;
  const of = seen.files.length > 1 ? `${seen.name}: ` : ""; // its columns are those of the other files
  $("rows").textContent = table ? `${of}${rows}${seen.n_columns.toLocaleString("en")} columns. Correct any wrong guess.` : "";
  fill($("label"), columns, seen.label, [NONE]);
  const one = seen.prob.length === 1 ? seen.prob[0] : seen.prob.length ? SEVERAL : NONE;
  fill($("prob"), columns, one, [NONE, SEVERAL]);
  for (const id of SELECTS) fill($(id), columns, seen[id] || NONE, [NONE]);
  for (const id of ["percent", "logits"]) $(id).checked = seen.numbers === id;
  if (seen.kind === "log") for (const id of ["by", "unit"]) $(id).value = seen[id] || NONE;
  $("id_column").value = seen.files.length > 1 && seen.id ? seen.id : NONE;
  $("columns").replaceChildren(...columns.slice(0, 400).map((name) => {
    const label = make("label"), box = make("input", undefined, { type: "checkbox", value: name });
    box.checked = seen.prob.includes(name);
    label.append(box, name);
    return label;
  }));
  for (const id of Object.keys(ROLES)) {
    const guessed = $(id).value !== NONE;
    document.querySelector(`label[for=${id}] .guess`).hidden = !guessed;
  }
  drawRoles();
}

function probabilities() {
  if ($("prob").value === NONE) return [];
  if ($("prob").value !== SEVERAL) return [$("prob").value];
  return [...$("columns").querySelectorAll("input:checked")].map((box) => box.value);
}

function drawRoles() {
  const role = {}, probs = probabilities();
  for (const id of Object.keys(ROLES)) if (id !== "prob" && $(id).value !== NONE) role[$(id).value] = ROLES[id];
  for (const name of probs) role[name] = ROLES.prob;
  show("several", $("prob").value === SEVERAL);
  const left = parts("drop_label"), before = $("positive").value;
  const words = ((seen.values || {})[$("label").value] || []).filter((word) => !left.includes(word));
  const numbers = words.every((word) => ["0", "1", "-1"].includes(word));
  show("interest", words.length === 2 && !numbers && probs.length < 2);
  fill($("positive"), words, before, ["guess"]);
  const shown = seen.columns.slice(0, seen.first.length ? seen.first[0].length : 0), head = make("tr");
  for (const name of shown) {
    const cell = make("th", name, { scope: "col" });
    if (role[name]) cell.className = "used";
    cell.append(make("i", role[name] || ""), make("small", (seen.said || {})[name] || ""));
    head.append(cell);
  }
  $("table").tHead.replaceChildren(head);
  $("table").tBodies[0].replaceChildren(...seen.first.map((values) => {
    const row = make("tr");
    values.forEach((value, i) => row.append(make("td", value, role[shown[i]] ? { class: "used" } : {})));
    return row;
  }));
  $("table").parentElement.hidden = !shown.length;
  const unsure = (id, what) => ($(id).value === NONE && seen.kind === "table" ? [`Choose the ${what} column.`] : []);
  const said = seen.notes.filter((note) => !/guessed: [^(]*$/.test(note));
  $("measure").disabled = unsure("label", "label").length + unsure("prob", "probability").length > 0;
  const notes = seen.label && seen.prob.length ? said : said.filter((note) => !/^no column looks|^several columns may/.test(note));
  $("notes").replaceChildren(...[...unsure("label", "label"), ...unsure("prob", "probability"), ...notes].map((note) => make("li", note)));
}

const parts = (id) => $(id).value.split(",").map((part) => part.trim()).filter(Boolean);

function options() {
  const given = {}, chosen = (id) => ($(id).value === NONE ? "" : $(id).value), probs = probabilities();
  if (seen.kind === "report" || seen.kind === "state") return given;
  if (chosen("label") && !(seen.kind === "log" && chosen("label") === seen.label)) given.label = chosen("label");
  const models = probs.length > 1 && document.querySelector("input[name=meaning]:checked").value === "models";
  if (models) given.model = probs;
  else if (probs.length && !(seen.kind === "log" && probs.join() === seen.prob.join())) given.prob = probs;
  for (const id of SELECTS) if (chosen(id)) given[id] = id === "by" ? [chosen(id)] : chosen(id);
  if (!$("interest").hidden && $("positive").value !== "guess") given.positive = $("positive").value;
  for (const id of SWITCHES) if ($(id).checked) given[id] = true;
  for (const id of ["labels", "scorer", "title", "purpose", "author"]) if ($(id).value.trim()) given[id] = $(id).value.trim();
  if ($("resamples").value) given.resamples = Number($("resamples").value);
  if (parts("threshold").length) given.threshold = parts("threshold").map(Number);
  if (parts("drop_label").length) given.drop_label = parts("drop_label");
  return given;
}

// -- reports ---------------------------------------------------------------------------------------
const seconds = (left) => (left >= 90 ? `about ${Math.round(left / 60)} min left` : left >= 1 ? `about ${Math.round(left)} s left` : "nearly done");

async function measure() {
  say("trouble", "");
  $("measure").disabled = true;
  try {
    const run = await ask("/runs", "POST", { files: files.filter((file) => file.id).map((file) => file.id), options: options() });
    show("answer", false);
    show("working");
    $("working").scrollIntoView({ block: "center" });
    await follow(run.id);
    if (!$("finished").hidden) $("answer").scrollIntoView();
  } catch (error) { say("trouble", error.message); }
  drawRoles();
}

async function follow(id) {
  current = id;
  show("finished", false);
  $("page").removeAttribute("src");
  let shown = "";
  while (current === id) {
    let run;
    try { run = await ask(`/runs/${id}`); } catch (error) { say("trouble", error.message); show("working", false); return; }
    if (current !== id) return;
    draw(run);
    if (run.status !== shown) { shown = run.status; recent(); }
    if (["done", "failed", "cancelled"].includes(run.status)) return;
    await new Promise((later) => setTimeout(later, 400));
  }
}

function draw(run) {
  const busy = run.status === "waiting" || run.status === "running";
  show("working", busy);
  $("work-name").textContent = run.names.join(", ");
  $("progress").value = run.done;
  $("left").textContent = run.status === "waiting" ? `${run.before} ${run.before === 1 ? "report" : "reports"} before this one` : run.left === null ? "reading the file" : seconds(run.left);
  $("cancel").onclick = () => ask(`/runs/${run.id}/cancel`, "POST").catch((error) => say("trouble", error.message));
  show("answer", Boolean(run.headline) && run.status !== "cancelled" && run.status !== "failed");
  $("answer-name").textContent = run.names.join(", ");
  $("headline").textContent = run.headline;
  $("statements").replaceChildren(...run.statements.map((text) => make("li", text)));
  show("statements", run.status !== "done"); // the page of the report repeats them
  if (run.error) { // also of a finished report that could not be stored
    say("trouble", run.error);
    $("trouble").scrollIntoView({ block: "center" });
  }
  if (run.status === "cancelled") say("trouble", "The report was cancelled, and nothing was stored.");
  if (run.status === "done") finish(run);
}

function finish(run) {
  show("finished");
  $("command").textContent = run.command;
  $("python").textContent = run.python;
  $("page").src = `/runs/${run.id}/page`;
  $("alone").href = `/runs/${run.id}/page`;
  say("download-trouble", "");
  for (const link of document.querySelectorAll("#downloads [data-form]")) {
    link.href = `/runs/${run.id}/report.${link.dataset.form}`;
    link.onclick = link.dataset.form === "pdf" ? printed : null;
  }
}

// A PDF is printed by a browser of this machine on request; if that fails, show the reason.
async function printed(event) {
  event.preventDefault();
  const link = event.currentTarget, name = link.textContent;
  if (link.classList.contains("busy")) return;
  link.classList.add("busy");
  link.textContent = "PDF is being printed …";
  try {
    const answer = await fetch(link.href, { credentials: "omit" });
    if (!answer.ok) throw new Error((await answer.json()).error);
    const place = URL.createObjectURL(await answer.blob());
    const save = make("a", "", { href: place, download: "report.pdf" });
    save.click();
    setTimeout(() => URL.revokeObjectURL(place), 60000);
    say("download-trouble", "");
  } catch (error) { say("download-trouble", error.message); }
  link.classList.remove("busy");
  link.textContent = name;
}

async function recent() {
  const { runs, kept } = await ask("/runs").catch(() => ({ runs: [], kept: "" }));
  show("recent", runs.length > 0);
  if (kept) $("kept").textContent = `Finished reports are stored in ${kept}.`;
  $("runs").replaceChildren(...runs.map((run) => {
    const row = make("li"), name = make("span", undefined, { class: "name" });
    row.dataset.name = run.names.join(", ");
    const when = new Date(run.asked * 1000).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
    name.append(make("b", run.names.join(", ")), make("span", ` ${when}. ${run.status === "done" ? run.error || run.headline : run.status === "failed" ? run.error.split("\n")[0].replace(/ \(rows are counted.*/, "") : run.status}`, { class: "hint" }));
    const tick = make("input", undefined, { type: "checkbox", value: run.id, "aria-label": `Choose ${run.names.join(", ")}` });
    tick.onchange = () => show("beside", document.querySelectorAll("#runs input:checked").length === 2);
    const open = make("button", "Show", { type: "button" }), away = make("button", "Delete", { type: "button" });
    open.onclick = () => { say("trouble", ""); follow(run.id).then(() => $("answer").scrollIntoView()); };
    away.onclick = async () => {
      await ask(`/runs/${run.id}`, "DELETE").catch(() => {});
      if (current === run.id) { current = null; show("answer", false); show("working", false); }
      show("pair", false);
      recent();
    };
    row.append(...(run.status === "done" ? [tick, name, open] : [name]), away);
    return row;
  }));
  show("beside", false);
}

function besideEachOther() {
  const chosen = [...document.querySelectorAll("#runs input:checked")];
  $("pair").replaceChildren(...chosen.map((box) => {
    const name = box.closest("li").dataset.name, figure = make("figure");
    figure.append(make("figcaption", name), make("iframe", undefined, { src: `/runs/${box.value}/page`, title: `The report of ${name}`, sandbox: "allow-scripts allow-downloads allow-modals allow-popups" }));
    return figure;
  }));
  show("pair");
  $("pair").scrollIntoView();
}

// -- actions of the user ------------------------------------------------------------------------------
function begin() {
  $("file").onchange = () => { take($("file").files).then(() => { $("file").value = ""; }); };
  const drop = $("drop");
  for (const name of ["dragenter", "dragover"]) document.addEventListener(name, (event) => { event.preventDefault(); drop.classList.add("over"); });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) drop.classList.remove("over"); });
  document.addEventListener("drop", (event) => { event.preventDefault(); drop.classList.remove("over"); take(event.dataTransfer.files); });
  $("choices").onchange = (event) => {
    const mark = event.target.parentElement.querySelector(".guess");
    if (mark) mark.hidden = true;
    if (event.target.id === "scorer") look(); else drawRoles();
  };
  $("choices").onsubmit = (event) => event.preventDefault();
  $("measure").onclick = measure;
  $("beside").onclick = besideEachOther;
  ask("/files").then((found) => { files = found.files; most = found.most; drawFiles(); return look(); }).catch((error) => say("trouble", error.message));
  ask("/runs").then(({ runs }) => {
    const last = runs.find((run) => run.status === "running" || run.status === "waiting") || runs.find((run) => run.status === "done");
    recent();
    if (last) follow(last.id);
  }).catch(() => {});
}

function login() {
  $("login").onsubmit = async (event) => {
    event.preventDefault();
    try { location.replace(`/#token=${(await ask("/login", "POST", { password: $("password").value })).token}`); } catch (error) { say("wrong", error.message); }
  };
}

if (document.getElementById("login")) login(); else if (key) begin(); else location.replace("/enter");

// SPDX-License-Identifier: BSD-2-Clause
const data = JSON.parse(document.getElementById("data").textContent);
const MARKS = { fail: "✗", unchecked: "∅", unknown: "?", later: "◷", waived: "w", pass: "✓" };
const WORDS = {
  fail: "falls short", unchecked: "was not checked", unknown: "could not be seen",
  later: "right now, not after a restart or boot", waived: "waived", pass: "met",
};
const [STATUS, PLACE, ITEM, BOUND, REQUIRED, OBSERVED, HOW, REASON, WAIVER, OWNER, SESSION, RESTART, BOOT, CAUSES] =
  Array.from({ length: 14 }, (_, index) => index);
const [NAME, WORST, GROUPS, WHY, MEASURED, NOTE, CELLS] = Array.from({ length: 7 }, (_, index) => index);
const STEP = 50;
const byId = (id) => document.getElementById(id);
const text = (number) => (number < 0 ? null : data.texts[number]);
const rank = Object.fromEntries(data.statuses.map((status, index) => [status, index]));

const describeColumn = ([place, item, bound]) => (bound === "value" ? `${place} ${item}` : `${place} ${item} ${bound}`);

function make(name, attributes, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

// ---- findings -------------------------------------------------------------------------------
const statuses = data.findings.map((finding) => {
  const ahead = [SESSION, RESTART, BOOT].map((key) => text(finding[key]));
  const status = text(finding[STATUS]);
  return rank[status === "pass" && ahead.includes("fail") ? "later" : status];
});
const numbers = (cell) => (Array.isArray(cell) ? cell : cell ? [cell] : []).map((number) => number - 1);
const worst = (cell) => {
  if (!cell) return -1;
  return Array.isArray(cell) ? Math.min(...cell.map((number) => statuses[number - 1])) : statuses[cell - 1];
};
const causesOf = (host) => {
  const found = new Set();
  for (const cell of host[CELLS]) {
    for (const number of numbers(cell)) for (const cause of data.findings[number][CAUSES]) found.add(cause);
  }
  return found;
};

// ---- what filters look at -------------------------------------------------------------------
const causeTexts = data.causes.map(([, number]) => {
  const cause = JSON.parse(text(number));
  const at = cause.at ? `${cause.at.file}:${cause.at.line} ${cause.at.text}` : "";
  return `${cause.code} ${cause.text} ${at}`.toLowerCase();
});
const hay = data.hosts.map((host) => {
  const groups = host[GROUPS].map((number) => data.groups[number]).join(" ");
  return `${host[NAME]} ${groups} ${text(host[WHY])} ${text(host[NOTE])}`.toLowerCase();
});
const hostCauses = data.hosts.map((host) => [...causesOf(host)]);
const byName = [...data.hosts.keys()].sort((a, b) =>
  data.hosts[a][NAME].localeCompare(data.hosts[b][NAME], "en", { numeric: true }));
const bad = data.hosts.map((host) => {
  const counts = new Array(data.statuses.length).fill(0);
  for (const cell of host[CELLS]) for (const number of numbers(cell)) counts[statuses[number]] += 1;
  return counts;
});
const byWorst = [...byName].sort((a, b) => {
  if (data.hosts[a][WORST] !== data.hosts[b][WORST]) return data.hosts[a][WORST] - data.hosts[b][WORST];
  for (let status = 0; status < data.statuses.length; status += 1) {
    if (bad[a][status] !== bad[b][status]) return bad[b][status] - bad[a][status];
  }
  return 0;
});

// ---- the heat map ---------------------------------------------------------------------------
let visible = [];
let drawn = 0;
let focused = [0, 0];
const body = byId("map").tBodies[0];

// Columns in which every checked host has the same status, and no host lacks one.
const checked = data.hosts.filter((host) => data.statuses[host[WORST]] !== "unchecked");
const alike = data.columns.map((_column, index) => {
  const first = checked.length > 1 ? worst(checked[0][CELLS][index]) : -1;
  return checked.every((host) => worst(host[CELLS][index]) === first) ? first : -1;
});
const canFold = alike.filter((status) => status >= 0).length > 1;

// What is drawn: a column each, and one for all that are alike with the same status.
function listColumns() {
  const shown = data.columns.map((_column, index) => [index]);
  if (!canFold || state.columns === "all") return shown;
  const folds = data.statuses.map((_status, status) => data.columns.map((_column, index) => index).filter((index) => alike[index] === status))
    .filter((columns) => columns.length > 1);
  const folded = new Set(folds.flat());
  return [...shown.filter(([index]) => !folded.has(index)), ...folds];
}

let columns = [];

function filter() {
  const wanted = state.text.trim().toLowerCase();
  const group = state.group === "" ? -1 : data.groups.indexOf(state.group);
  const chosen = state.status.map((status) => rank[status]);
  const only = chosenHosts();
  const matching = new Set();
  if (wanted) causeTexts.forEach((one, index) => { if (one.includes(wanted)) matching.add(index); });
  const order = state.order === "name" ? byName : byWorst;
  visible = order.filter((index) =>
    (!only || only.has(index))
    && (group < 0 || data.hosts[index][GROUPS].includes(group))
    && (!chosen.length || chosen.includes(data.hosts[index][WORST]))
    && (!wanted || hay[index].includes(wanted) || hostCauses[index].some((cause) => matching.has(cause))));
  columns = listColumns();
  drawHead();
  body.replaceChildren();
  drawn = 0;
  focused = [0, 0];
  drawMore();
  byId("shown").textContent = `${visible.length} of ${data.hosts.length} hosts`;
}

function drawMore() {
  const rows = document.createDocumentFragment();
  for (const index of visible.slice(drawn, drawn + STEP)) rows.append(drawRow(index));
  drawn = Math.min(visible.length, drawn + STEP);
  body.append(rows);
  byId("more").hidden = drawn >= visible.length;
  byId("more").textContent = `Show more (${visible.length - drawn} left)`;
}

const nameColumns = (numbers) => (numbers.length === 1 ? describeColumn(data.columns[numbers[0]])
  : `${numbers.length} alike on all hosts`);

function drawRow(index) {
  const host = data.hosts[index];
  const row = make("tr", { "data-host": index });
  const status = data.statuses[host[WORST]];
  const mark = make("span", { class: `mark ${status}`, title: WORDS[status] }, MARKS[status]);
  const name = make("th", { scope: "row", title: host[NAME], tabindex: "-1" }, mark, host[NAME]);
  if (text(host[NOTE])) name.append(" ", make("span", { title: text(host[NOTE]) }, "⚠"));
  row.append(name);
  if (status === "unchecked") {
    row.append(make("td", { class: "unchecked wide", colspan: Math.max(1, columns.length) }, text(host[WHY])));
    return row;
  }
  columns.forEach((numbers, place) => {
    const found = worst(host[CELLS][numbers[0]]);
    const kind = found < 0 ? "none" : data.statuses[found];
    const label = found < 0 ? "not asked" : WORDS[kind];
    row.append(make("td", { class: kind, tabindex: "-1", title: `${host[NAME]}: ${nameColumns(numbers)}: ${label}`, "data-columns": place },
      found < 0 ? "" : MARKS[kind]));
  });
  return row;
}

function drawHead() {
  const row = make("tr", {}, make("th", { scope: "col" }, "host"));
  columns.forEach((numbers, index) => {
    const before = index ? data.columns[columns[index - 1][0]][0] : "";
    const first = numbers.length > 1 || before !== data.columns[numbers[0]][0];
    const words = nameColumns(numbers);
    const all = numbers.map((number) => describeColumn(data.columns[number])).join("\n");
    const kind = `${first ? "place" : ""} ${numbers.length > 1 ? "folded" : ""}`.trim();
    row.append(make("th", { scope: "col", class: kind, title: all }, make("span", {}, words)));
  });
  byId("map").tHead.replaceChildren(row);
}

function moveTo(row, column) {
  const rows = body.rows;
  if (!rows.length) return;
  const y = Math.max(0, Math.min(rows.length - 1, row));
  const x = Math.max(0, Math.min(rows[y].cells.length - 1, column));
  body.querySelectorAll('[tabindex="0"]').forEach((cell) => cell.setAttribute("tabindex", "-1"));
  focused = [y, x];
  rows[y].cells[x].setAttribute("tabindex", "0");
  rows[y].cells[x].focus();
}

const MOVES = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1], PageDown: [20, 0], PageUp: [-20, 0] };

function onKey(event) {
  if (event.key in MOVES) {
    event.preventDefault();
    const [down, right] = MOVES[event.key];
    if (focused[0] + down >= body.rows.length && drawn < visible.length) drawMore();
    moveTo(focused[0] + down, focused[1] + right);
  } else if (event.key === "Enter" || event.key === " ") {
    event.preventDefault();
    open(event.target.closest("td, th"));
  }
}

// ---- one finding ----------------------------------------------------------------------------
function open(cell) {
  const row = cell && cell.closest("tr[data-host]");
  if (!row) return;
  const host = data.hosts[row.dataset.host];
  const chosen = cell.dataset.columns === undefined ? null : columns[cell.dataset.columns];
  const found = (chosen ? chosen.map((column) => host[CELLS][column]) : host[CELLS]).flatMap(numbers)
    .sort((a, b) => statuses[a] - statuses[b]);
  if (!found.length && !text(host[WHY])) return;
  byId("detail-title").textContent = chosen ? `${host[NAME]}: ${nameColumns(chosen)}` : host[NAME];
  const parts = [text(host[WHY]), text(host[NOTE]), text(host[MEASURED]) && `measured ${text(host[MEASURED])}`];
  byId("detail-body").replaceChildren(
    ...parts.filter(Boolean).map((line) => make("p", {}, line)), ...found.map(describe));
  byId("detail").showModal();
  byId("detail").scrollTop = 0;
}

function describe(number) {
  const finding = data.findings[number];
  const status = data.statuses[statuses[number]];
  const bound = text(finding[BOUND]) === "value" ? "" : ` ${text(finding[BOUND])}`;
  const title = make("h3", {}, make("span", { class: `mark ${status}` }, MARKS[status]),
    `${text(finding[PLACE])}: ${text(finding[ITEM])}${bound}`);
  const list = make("dl", {});
  const add = (term, value) => { if (value) list.append(make("dt", {}, term), make("dd", {}, value)); };
  add("Status", `${status} (${WORDS[status]})`);
  add("Required", text(finding[REQUIRED]));
  add("Observed", text(finding[OBSERVED]) ?? text(finding[REASON]));
  add("Measured", text(finding[HOW]));
  add("Waiver", text(finding[WAIVER]));
  const owner = text(finding[OWNER]);
  if (owner) add("Who", `${owner}'s own file or process; the node is not at fault`);
  const ahead = [["next session", SESSION], ["next restart", RESTART], ["after boot", BOOT]]
    .filter(([, key]) => text(finding[key])).map(([name, key]) => `${name}: ${text(finding[key])}`);
  add("Outlook", ahead.join(", "));
  for (const cause of finding[CAUSES]) addCause(list, JSON.parse(text(data.causes[cause][1])));
  return make("article", {}, title, list);
}

function addCause(list, cause) {
  const add = (term, ...value) => list.append(make("dt", {}, term), make("dd", {}, ...value));
  add("Cause", cause.text, " ", make("code", {}, cause.code));
  if (cause.at) add("Line", make("code", {}, `${cause.at.file}:${cause.at.line}`), " ", make("code", {}, cause.at.text));
  if (cause.writer) add("Written by", cause.writer);
  const remedy = cause.remedy || {};
  if (!remedy.text) return;
  const commands = (remedy.commands || []).map(write).join("\n");
  const fix = remedy.then ? `${remedy.text}; then ${remedy.then}` : remedy.text;
  add("Fix", fix, ...(commands ? [make("pre", { tabindex: "0", role: "group", "aria-label": "Commands as root" }, commands)] : []));
}

const quote = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'"'"'`)}'`);
const isScript = (words) => words.length === 3 && words[0] === "sh" && words[1] === "-c";
const write = (words) => (isScript(words) ? words[2] : words.map(quote).join(" "));

// ---- drift ----------------------------------------------------------------------------------
function drawDrift() {
  if (!data.drift.length) byId("drifts").append(make("p", {}, "Every requirement has one value on all hosts, or no majority."));
  for (const [column, usual, hosts, others] of data.drift) {
    const rows = [[usual, `${hosts} hosts`], ...others.map(([value, which]) => [value, nameSome(which)])];
    const table = make("table", {}, make("tbody", {}, ...rows.map(([value, who]) =>
      make("tr", {}, make("th", { scope: "row" }, make("code", {}, value)), make("td", {}, who)))));
    byId("drifts").append(make("article", { class: "drift" }, make("h3", {}, describeColumn(data.columns[column])), table));
  }
}

function nameSome(which) {
  const names = which.slice(0, 50).map((index) => data.hosts[index][NAME]).join(", ");
  return `${which.length} host${which.length === 1 ? "" : "s"}: ${names}${which.length > 50 ? ", …" : ""}`;
}

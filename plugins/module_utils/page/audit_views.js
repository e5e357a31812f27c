
// ---- the address ----------------------------------------------------------------------------
// What is shown is what the address says: a view can be sent, and Back goes to the one before.
const VIEWS = [...document.querySelectorAll("[role=tab]")].map((tab) => tab.getAttribute("aria-controls"));
const FIRST = { view: "fixes", sort: "best", text: "", group: "", order: "worst", status: [], only: "", columns: "", open: [] };
let state = { ...FIRST };

function readAddress(hash) {
  const words = new URLSearchParams(hash.replace(/^#/, ""));
  const list = (name) => (words.get(name) || "").split(",").filter(Boolean);
  const found = { ...FIRST };
  for (const name of ["view", "sort", "text", "group", "order", "only", "columns"]) found[name] = words.get(name) ?? FIRST[name];
  found.status = list("status").filter((status) => status in rank);
  found.open = list("open").filter((id) => detailsOf(id));
  if (!words.has("view") && found.open.some((id) => id.startsWith("cause-"))) found.view = "causes";
  if (!VIEWS.includes(found.view)) found.view = FIRST.view;
  if (!data.groups.includes(found.group)) found.group = "";
  if (!hostsOf(found.only)) found.only = "";
  for (const [name, values] of [["sort", ["hosts", "cost"]], ["order", ["name"]], ["columns", ["all"]]]) {
    if (!values.includes(found[name])) found[name] = FIRST[name];
  }
  return found;
}

function writeAddress(change) {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...state, ...change })) {
    const told = Array.isArray(value) ? value.join(",") : value;
    if (told && String(FIRST[name]) !== told) words.set(name, told);
  }
  return `#${words.toString().replaceAll("%2C", ",")}`;
}

// Typing and opening replace the address; going to another view is a step that Back undoes.
function go(change, isStep) {
  const address = writeAddress(change);
  state = { ...state, ...change };
  if (address !== (location.hash || "#")) history[isStep ? "pushState" : "replaceState"](null, "", address);
  draw();
}

// ---- fixes and causes -----------------------------------------------------------------------
const fixes = [...document.querySelectorAll(".fix")];
const causes = [...document.querySelectorAll(".cause")];
const owners = Object.fromEntries([
  ...fixes.map((element, index) => [element.id, data.fix_hosts[index]]),
  ...causes.map((element, index) => [element.id, data.cause_hosts[index]]),
]);
const hostsOf = (id) => (Object.hasOwn(owners, id) ? owners[id] : null);
const chosenHosts = () => (state.only ? new Set(hostsOf(state.only)) : null);
const titleOf = (id) => byId(id).querySelector(".text, strong").textContent;

function detailsOf(id) {
  const element = hostsOf(id) && byId(id);
  return element && (element.matches("details") ? element : element.querySelector("details"));
}

// How many hosts are green after each fix, in the order that is shown.
function drawFixes() {
  const wide = (index) => data.fix_hosts[index].length;
  const weight = (index) => Number(fixes[index].dataset.weight);
  const orders = {
    best: (a, b) => a - b,
    hosts: (a, b) => wide(b) - wide(a) || a - b,
    cost: (a, b) => weight(a) - weight(b) || a - b,
  };
  const lacking = new Map();
  for (const host of data.stuck) lacking.set(host, 1);
  for (const hosts of data.fix_hosts) for (const host of hosts) lacking.set(host, (lacking.get(host) || 0) + 1);
  let green = 0;
  const total = lacking.size;
  fixes.map((_fix, index) => index).sort(orders[state.sort]).forEach((index, place) => {
    const fix = fixes[index];
    fix.querySelector(".before").setAttribute("width", Math.floor((1000 * green) / total));
    for (const host of data.fix_hosts[index]) {
      lacking.set(host, lacking.get(host) - 1);
      if (!lacking.get(host)) green += 1;
    }
    fix.querySelector(".rank").textContent = place + 1;
    fix.querySelector(".sum").setAttribute("width", Math.floor((1000 * green) / total));
    const told = fix.querySelector(".sofar");
    told.textContent = told.textContent.replace(/^\d+/, green);
    fix.parentElement.append(fix);
  });
}

// ---- what is shown --------------------------------------------------------------------------
const tabs = [...document.querySelectorAll("[role=tab]")];
let sorted = "best";
let mapped = "";

function draw() {
  for (const tab of tabs) {
    const chosen = tab.getAttribute("aria-controls") === state.view;
    tab.setAttribute("aria-selected", chosen);
    tab.tabIndex = chosen ? 0 : -1;
    byId(tab.getAttribute("aria-controls")).hidden = !chosen;
  }
  for (const link of document.querySelectorAll(".counts a")) {
    const mine = link.dataset.status;
    const isOn = state.view === "hosts" && state.status.includes(mine);
    const rest = state.view === "hosts" ? state.status.filter((status) => status !== mine) : [];
    link.setAttribute("aria-current", isOn);
    link.href = writeAddress({ view: "hosts", status: isOn ? rest : [...rest, mine] });
  }
  for (const id of Object.keys(owners)) {
    const details = detailsOf(id);
    if (details.open !== state.open.includes(id)) details.open = !details.open;
  }
  if (sorted !== state.sort) drawFixes();
  sorted = state.sort;
  for (const name of ["sort", "text", "group", "order"]) if (byId(name).value !== state[name]) byId(name).value = state[name];
  byId("only").hidden = !state.only;
  if (state.only) byId("only").textContent = `Only: ${titleOf(state.only).slice(0, 60)} ✕`;
  byId("fold").hidden = !canFold;
  const many = alike.filter((status) => status >= 0).length;
  byId("fold").textContent = state.columns === "all" ? `Fold ${many} columns that never differ` : `Show ${many} columns that never differ`;
  const wanted = JSON.stringify([state.text, state.group, state.order, state.status, state.only, state.columns]);
  if (state.view === "hosts" && mapped !== wanted) {
    mapped = wanted;
    filter();
  }
}

// ---- copying --------------------------------------------------------------------------------
async function copy(words, button) {
  try {
    await navigator.clipboard.writeText(words);
  } catch {
    const field = make("textarea", { class: "unseen" });
    field.value = words;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
    button.focus();
  }
  button.dataset.label ??= button.textContent;
  button.textContent = "Copied";
  byId("told").textContent = "Copied";
  setTimeout(() => { button.textContent = button.dataset.label; byId("told").textContent = ""; }, 1500);
}

function onClick(event) {
  const button = event.target.closest("button");
  if (!button) return;
  const owner = button.closest(".fix, .cause");
  if (button.matches(".copy")) copy(byId(button.dataset.copy).textContent, button);
  if (button.matches(".copy-names")) copy(hostsOf(owner.id).map((index) => data.hosts[index][NAME]).join("\n"), button);
  if (button.matches(".to-map")) {
    go({ view: "hosts", only: owner.id, status: [], text: "", group: "" }, true);
    byId("only").focus();
  }
}

// ---- start ----------------------------------------------------------------------------------
function onTabKey(event) {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = tabs[(tabs.indexOf(event.target.closest("button")) + step + tabs.length) % tabs.length];
  go({ view: next.getAttribute("aria-controls") }, true);
  next.focus();
}

function drawLegend() {
  for (const status of data.statuses) {
    byId("legend").append(make("span", {}, make("span", { class: `mark ${status}` }, MARKS[status]), WORDS[status]));
  }
}

function listen() {
  for (const tab of tabs) {
    tab.addEventListener("click", () => go({ view: tab.getAttribute("aria-controls") }, true));
    tab.addEventListener("keydown", onTabKey);
  }
  for (const name of ["text", "group", "order", "sort"]) byId(name).addEventListener("input", (event) => go({ [name]: event.target.value }));
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("only").addEventListener("click", () => { go({ only: "" }); byId("text").focus(); });
  byId("fold").addEventListener("click", () => go({ columns: state.columns === "all" ? "" : "all" }));
  byId("more").addEventListener("click", drawMore);
  body.addEventListener("click", (event) => open(event.target.closest("td, th")));
  body.addEventListener("keydown", onKey);
  document.querySelector(".map").addEventListener("focus", () => moveTo(...focused));
  document.querySelector(".map").tabIndex = 0;
  document.querySelector("main").addEventListener("click", onClick);
  // Toggles are told of later, so one that this script made is seen to be in the state already.
  for (const id of Object.keys(owners)) {
    detailsOf(id).addEventListener("toggle", (event) => {
      const rest = state.open.filter((one) => one !== id);
      if (event.target.open !== state.open.includes(id)) go({ open: event.target.open ? [...rest, id] : rest });
    });
  }
  window.addEventListener("hashchange", arrive);
}

function arrive() {
  state = readAddress(location.hash);
  draw();
  if (state.open.length) byId(state.open[0]).scrollIntoView({ block: "nearest" });
}

function start() {
  for (const element of document.querySelectorAll("nav, #sorting, main button[hidden]:not(#only, #fold, #more)")) element.hidden = false;
  data.groups.forEach((name) => byId("group").append(make("option", { value: name }, name)));
  drawLegend();
  drawDrift();
  listen();
  arrive();
}

start();

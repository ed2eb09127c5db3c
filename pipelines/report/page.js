"use strict";
// The list of documents, its search, filters and order; document.js has the details of
// a document. Texts are set as text, never as HTML.

const PAGE_ROWS = 50;
const byId = (id) => document.getElementById(id);
const state = { documents: [], order: [], page: 0, open: -1, mark: null };
const blocks = new Map();

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") made.className = value;
    else if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

async function unpack(id) {
  const packed = atob(byId(id).textContent);
  const bytes = Uint8Array.from(packed, (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function reasonOf(error) {
  if (typeof DecompressionStream === "undefined") return "this browser is too old to unpack it; a newer one shows it.";
  return `the data in this file is damaged (${error.message || error.name}); copy the file again, or write it again with precis report.`;
}

// ---------------------------------------------------------------- the theme

function startTheme() {
  const button = byId("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("precis-theme"); } catch { /* no storage */ }
  const show = () => {
    if (chosen) document.documentElement.dataset.theme = chosen;
    const isDark = chosen ? chosen === "dark" : system.matches;
    button.setAttribute("aria-pressed", String(isDark));
  };
  button.addEventListener("click", () => {
    chosen = button.getAttribute("aria-pressed") === "true" ? "light" : "dark";
    try { localStorage.setItem("precis-theme", chosen); } catch { /* no storage */ }
    show();
  });
  system.addEventListener("change", show);
  show();
  button.hidden = false;
}

// ---------------------------------------------------------------- the list

const ORDERS = {
  worst: ["worst first", null],
  confidence: ["least confident", (a, b) => low(a.confidence) - low(b.confidence)],
  rouge: ["lowest ROUGE-1", (a, b) => low(a.rouge) - low(b.rouge)],
  change: ["changed most", (a, b) => (b.change ?? -1) - (a.change ?? -1)],
  long: ["longest", (a, b) => b.words - a.words],
  short: ["shortest", (a, b) => a.words - b.words],
  id: ["by id", (a, b) => (a.id < b.id ? -1 : a.id > b.id ? 1 : 0)],
};
const low = (value) => value ?? Infinity;

function fill(select, options) {
  select.replaceChildren(
    ...options.map(([value, text]) => element("option", { value }, text)),
  );
}

function counted(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((a, b) => b[1] - a[1]);
}

function startList() {
  const { documents } = state;
  const flags = counted(documents.flatMap((each) => each.flags));
  const flagged = documents.filter((each) => each.flags.length).length;
  const choices = (name, all) => [
    ["", all],
    ...counted(documents.map((each) => each[name])).map(([value, count]) => [
      value, `${value} (${count.toLocaleString("en")})`,
    ]),
  ];
  fill(byId("flag"), [
    ["", "all documents"],
    ["+", `any flag (${flagged.toLocaleString("en")})`],
    ["-", `no flag (${(documents.length - flagged).toLocaleString("en")})`],
    ...flags.map(([flag, count]) => [flag, `${flag} (${count.toLocaleString("en")})`]),
  ]);
  fill(byId("split"), choices("split", "all splits"));
  fill(byId("method"), choices("method", "all methods"));
  const has = (name) => documents.some((each) => each[name] !== null && each[name] !== undefined);
  const orders = Object.entries(ORDERS).filter(
    ([name]) => !["confidence", "rouge", "change"].includes(name) || has(name),
  );
  fill(byId("sort"), orders.map(([name, [text]]) => [name, text]));
  byId("toolbar").hidden = byId("pager").hidden = false;
  byId("toolbar").addEventListener("submit", (event) => event.preventDefault());
  for (const id of ["flag", "split", "method", "sort"]) byId(id).addEventListener("change", update);
  byId("query").addEventListener("input", update);
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  byId("rows").addEventListener("keydown", moveInList);
  byId("rows").addEventListener("click", openClicked);
  update();
}

function haystack(each) {
  each.text ??= `${each.id}\n${each.summary}\n${each.reference}`.toLowerCase();
  return each.text;
}

function update() {
  const words = byId("query").value.toLowerCase().split(/\s+/).filter(Boolean);
  const [flag, split, method] = ["flag", "split", "method"].map((id) => byId(id).value);
  const hasFlag = (each) =>
    !flag || (flag === "+" ? each.flags.length > 0 : flag === "-" ? !each.flags.length : each.flags.includes(flag));
  const order = [];
  state.documents.forEach((each, number) => {
    if (!hasFlag(each) || (split && each.split !== split) || (method && each.method !== method)) return;
    if (words.every((word) => haystack(each).includes(word))) order.push(number);
  });
  const compare = ORDERS[byId("sort").value][1];
  if (compare) order.sort((a, b) => compare(state.documents[a], state.documents[b]) || a - b);
  state.order = order;
  state.page = 0;
  showPage();
}

function showPage() {
  const { order, page, documents } = state;
  const pages = Math.max(1, Math.ceil(order.length / PAGE_ROWS));
  const first = page * PAGE_ROWS;
  byId("rows").start = first + 1;
  byId("rows").replaceChildren(...order.slice(first, first + PAGE_ROWS).map(rowOf));
  const total = documents.length.toLocaleString("en");
  byId("count").textContent = order.length
    ? `${order.length.toLocaleString("en")} of ${total} documents`
    : `None of the ${total} documents matches`;
  byId("place").textContent = `Page ${page + 1} of ${pages}`;
  byId("previous").disabled = page === 0;
  byId("next").disabled = page >= pages - 1;
}

function rowOf(number) {
  const each = state.documents[number];
  const numbers = [`${each.words} words`];
  if (each.confidence !== null) numbers.push(`confidence ${each.confidence.toFixed(2)}`);
  if (each.rouge !== null) numbers.push(`ROUGE-1 ${(100 * each.rouge).toFixed(1)}`);
  if (each.change !== undefined) numbers.push(`changed ${(100 * each.change).toFixed(0)} %`);
  const chips = [
    ...each.flags.map((flag) => element("span", { class: "chip bad" }, flag)),
    each.drawn ? element("span", { class: "chip" }, "drawn at random") : null,
  ].filter(Boolean);
  const button = element(
    "button", { type: "button" },
    element("span", { class: "id" }, nameOf(each), element("small", {}, `${each.split}, ${each.method}`)),
    element("span", {},
      element("span", { class: "text" }, each.summary || "(no text)"),
      chips.length ? element("span", { class: "chips" }, ...chips) : null,
    ),
    element("span", { class: "numbers" }, ...numbers.map((text) => element("span", {}, text))),
  );
  button.dataset.number = number;
  return element("li", {}, button);
}

function nameOf(each) {
  return element("span", { class: "name", title: each.id }, each.id);
}

function turn(step) {
  state.page += step;
  showPage();
  byId("rows").querySelector("button")?.focus({ preventScroll: true });
  byId("count").scrollIntoView({ block: "center" });
}

function moveInList(event) {
  const buttons = [...byId("rows").querySelectorAll("button")];
  const place = buttons.indexOf(document.activeElement);
  const target = { ArrowDown: place + 1, ArrowUp: place - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (target === undefined || place < 0) return;
  event.preventDefault();
  buttons[Math.min(Math.max(target, 0), buttons.length - 1)].focus();
}

function openClicked(event) {
  const button = event.target.closest("button");
  if (button) openDocument(Number(button.dataset.number));
}

// ---------------------------------------------------------------- two runs

async function startComparison(other) {
  if (!other || !byId("changed")) return;
  const numbers = state.documents.map((_, number) => number).filter((number) => state.documents[number].change > 0);
  numbers.sort((a, b) => state.documents[b].change - state.documents[a].change);
  byId("changed-note").textContent =
    "A change is the share of words that the two texts do not have in common; “changed most” sorts the list below by it.";
  for (const number of numbers.slice(0, 10)) {
    const each = state.documents[number];
    const found = await detailsOf(number).catch(() => null); // Its block is damaged.
    if (!found) break;
    const button = element("button", { type: "button" },
      element("span", { class: "id" }, nameOf(each), element("small", {}, `changed ${(100 * each.change).toFixed(0)} %`)),
      element("span", { class: "text" }, element("small", {}, "this run"), each.summary),
      element("span", { class: "text" }, element("small", {}, "other run"), found.other.lines.map((line) => line.map(([text]) => text).join("")).join(" ")),
    );
    button.addEventListener("click", () => openDocument(number));
    byId("changed").append(element("li", {}, button));
  }
}

async function start() {
  startTheme();
  const { documents, other } = await unpack("list");
  state.documents = documents;
  startDialog();
  startList();
  await startComparison(other);
  const wanted = /^#document-(\d+)$/.exec(location.hash);
  if (wanted && Number(wanted[1]) < documents.length) await openDocument(Number(wanted[1]));
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  byId("toolbar").hidden = byId("pager").hidden = true;
  byId("failure").hidden = false;
  byId("failure").textContent = `The list of documents cannot be shown: ${reasonOf(error)}`;
});

"use strict";
// The list of documents, its search, filters and order; document.js has the details of
// a document. Texts are set as text, never as HTML.

const PAGE_ROWS = 20;
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
  if (typeof DecompressionStream === "undefined") return "this browser is too old; open the page in a newer one.";
  return `the data in this file is damaged (${error.message || error.name}); copy the file again, or run precis report again.`;
}

// ---------------------------------------------------------------- the theme

function startTheme() {
  const button = byId("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("precis-theme"); } catch { /* no storage */ }
  const other = () => ((chosen ?? (system.matches ? "dark" : "light")) === "dark" ? "light" : "dark");
  const show = () => {
    if (chosen) document.documentElement.dataset.theme = chosen;
    button.textContent = other() === "dark" ? "Use dark colours" : "Use light colours";
  };
  button.addEventListener("click", () => {
    chosen = other();
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
  flags: ["most flags", (a, b) => b.flags.length - a.flags.length],
  rouge: ["lowest ROUGE-1", (a, b) => low(a.rouge) - low(b.rouge)],
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
  const isScored = documents.some((each) => each.rouge !== null);
  const orders = Object.entries(ORDERS).filter(([name]) => name !== "rouge" || isScored);
  fill(byId("sort"), orders.map(([name, [text]]) => [name, text]));
  for (const id of ["toolbar", "pager", "export"]) byId(id).hidden = false;
  byId("toolbar").addEventListener("submit", (event) => event.preventDefault());
  for (const id of ["flag", "split", "method", "sort"]) byId(id).addEventListener("change", update);
  byId("query").addEventListener("input", update);
  byId("previous").addEventListener("click", () => turn(-1));
  byId("next").addEventListener("click", () => turn(1));
  byId("export").addEventListener("click", saveList);
  document.querySelector("main").addEventListener("click", (event) => {
    const button = event.target.closest("[data-number]");
    if (button) openDocument(Number(button.dataset.number));
  });
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
    : `None of ${total} documents match`;
  byId("place").textContent = `Page ${page + 1} of ${pages}`;
  byId("previous").disabled = page === 0;
  byId("next").disabled = page >= pages - 1;
}

function rowOf(number) {
  const each = state.documents[number];
  const numbers = [`${each.words} words`];
  if (each.rouge !== null) numbers.push(`ROUGE-1 ${(100 * each.rouge).toFixed(1)}`);
  const chips = each.flags.map((flag) => element("span", { class: "chip bad" }, flag));
  if (each.drawn) chips.push(element("span", { class: "chip" }, "drawn at random"));
  return element("li", {}, element(
    "button", { type: "button", "data-number": number },
    element("span", { class: "id" }, element("span", { class: "name", title: each.id }, each.id), element("small", {}, `${each.split}, ${each.method}`)),
    element("span", {},
      element("span", { class: "text" }, each.summary || "(no text)"),
      element("span", { class: "chips" }, ...chips, element("small", {}, each.reason)),
    ),
    element("span", { class: "numbers" }, ...numbers.map((text) => element("span", {}, text))),
  ));
}

// The filtered list in its order, as a file that spreadsheets open.
function saveList() {
  const names = ["id", "split", "method", "flags", "words", "expected", "log_prob", "rouge", "reason", "summary", "reference"];
  // A text that begins like a formula is none.
  const cell = (value) => (typeof value === "string" ? `"${value.replace(/^[=+\-@\t\r]/, "'$&").replaceAll('"', '""')}"` : value ?? "");
  const lines = state.order.map((number) => names.map((name) => {
    const value = state.documents[number][name];
    return cell(Array.isArray(value) ? value.join(" ") : value);
  }).join(","));
  const file = new Blob(["\ufeff", names.join(","), "\r\n", lines.join("\r\n"), "\r\n"], { type: "text/csv" });
  const link = element("a", { href: URL.createObjectURL(file), download: "documents.csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

function turn(step) {
  state.page += step;
  showPage();
  byId("rows").querySelector("button")?.focus({ preventScroll: true });
  byId("count").scrollIntoView({ block: "center" });
}

async function start() {
  startTheme();
  state.documents = await unpack("list");
  startDialog();
  startList();
  const wanted = /^#document-(\d+)$/.exec(location.hash);
  if (wanted && Number(wanted[1]) < state.documents.length) await openDocument(Number(wanted[1]));
  document.documentElement.dataset.ready = "true";
}

start().catch((error) => {
  for (const id of ["toolbar", "pager", "export"]) byId(id).hidden = true;
  byId("failure").hidden = false;
  byId("failure").textContent = `The list of documents cannot be shown: ${reasonOf(error)}`;
});

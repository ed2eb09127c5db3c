// The details of a document: its source with marked sentences, and its summaries.
// It is put behind page.js in one script.

async function detailsOf(number) {
  const size = Number(byId("dialog").dataset.block);
  const block = Math.floor(number / size);
  if (!blocks.has(block)) blocks.set(block, unpack(`block-${block}`));
  return (await blocks.get(block))[number % size];
}

async function openDocument(number) {
  state.open = number;
  const each = state.documents[number];
  let shown;
  try {
    const found = await detailsOf(number);
    shown = [left(found), right(each, found)];
  } catch (error) {
    shown = [element("p", { class: "warning", role: "alert" }, `This document cannot be shown: ${reasonOf(error)}`)];
  }
  if (state.open !== number) return; // Another document was opened meanwhile.
  byId("dialog-title").textContent = each.id;
  byId("dialog-body").replaceChildren(...shown);
  const place = state.order.indexOf(number);
  byId("dialog-previous").disabled = place <= 0;
  byId("dialog-next").disabled = place < 0 || place >= state.order.length - 1;
  if (!byId("dialog").open) byId("dialog").showModal();
  byId("dialog-body").scrollTop = 0;
  byId("dialog-title").focus();
  try { history.replaceState(null, "", `#document-${number}`); } catch { /* some viewers forbid it */ }
}

function left(found) {
  const source = found.source;
  const side = element("section", { class: "source", "aria-label": "Article" }, element("h3", {}, "Article"));
  if (!source.pieces) {
    const reason = `Missing: ${source.note}`;
    side.append(element("p", { class: "warning" }, reason));
    return side;
  }
  const text = element("div", { class: "article" });
  const marks = [...new Set(source.pieces.flatMap(([, of]) => of.map((mark) => (mark[0] === "s" ? "s" : mark))))];
  const rank = (mark) => (mark === "s" ? 0 : mark === `m:${found.extractive_method}` ? 1 : 2);
  marks.sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
  const preferred = [state.mark, "s", `m:${found.extractive_method}`, marks[0]].find((mark) => marks.includes(mark));
  if (marks.length) {
    const choice = element("fieldset", { class: "marks" }, element("legend", {}, "Highlight the sentences chosen by"));
    for (const mark of marks) {
      const input = element("input", { type: "radio", name: "mark", value: mark, checked: mark === preferred });
      input.addEventListener("change", () => { state.mark = mark; showMarks(text, source.pieces, mark); });
      choice.append(element("label", {}, input, mark === "s" ? "the writer, by line" : mark.slice(2)));
    }
    side.append(choice);
  }
  showMarks(text, source.pieces, preferred);
  side.append(text);
  if (source.note) side.append(element("p", { class: "note" }, source.note));
  return side;
}

function showMarks(target, pieces, mark) {
  target.replaceChildren(...pieces.map(([text, marks]) => {
    const lines = marks.filter((each) => each[0] === "s").map((each) => each.slice(2));
    if (mark === "s" && lines.length) {
      return element("mark", { title: `source of line ${lines.join(", ")}` }, text, element("sup", {}, lines.join(",")));
    }
    return mark && marks.includes(mark) ? element("mark", {}, text) : text;
  }));
}

function marked(lines, numbered = []) {
  return lines.map((pieces, place) => element(
    "p", { class: "lead" },
    numbered[place] ? element("sup", {}, String(place + 1), " ") : null,
    ...pieces.map(([text, marks]) => (marks.length
      ? element("mark", { class: "unsupported", title: `${marks.map((each) => each.slice(2)).join(", ")} not in the article` }, text)
      : text)),
  ));
}

function block(title, ...children) {
  return element("div", { class: "block" }, element("h3", {}, title), ...children);
}

function unsupported(summary) {
  if (!summary.unsupported.length) return null;
  const list = summary.unsupported.map(([kind, term]) => `${kind} ${term}`).join("; ");
  return element("p", {}, element("span", { class: "chip bad" }, "not in the article"), ` ${list}`);
}

function right(each, found) {
  const side = element("section", { class: "texts", "aria-label": "Summaries" });
  const flags = each.flags.map((flag) => element("span", { class: "chip bad" }, flag));
  // The lines of a summarizer have the sentences behind them.
  const isShortened = found.candidates.some((candidate) => candidate.support.length);
  const how = isShortened && each.method === "abstractive" ? ", sentences shortened" : "";
  side.append(block(
    `Shown: ${each.method}${how}`,
    flags.length ? element("p", {}, ...flags.flatMap((chip) => [chip, " "])) : null,
    ...marked(found.shown.lines), unsupported(found.shown),
  ));
  if (found.reference) side.append(block("Reference", ...marked(found.reference.lines), unsupported(found.reference)));
  if (found.candidates.length) {
    side.append(block(isShortened ? "Shortened sentences" : "Written candidates", ...found.candidates.flatMap((candidate) => [
      element("p", {}, element("small", {}, `${candidate.rank}. score ${candidate.score}`)),
      ...marked(candidate.lines, candidate.support),
    ])));
  }
  for (const [method, sentences] of Object.entries(found.extractive)) {
    const rouge = found.scores[method];
    side.append(element("details", { class: "block", open: method === found.extractive_method },
      element("summary", {}, `Extract by ${method}${rouge === undefined ? "" : `, ROUGE-1 ${(100 * rouge).toFixed(1)}`}`),
      ...sentences.map(([text, score, rank]) => element("p", {}, text, element("small", {}, ` rank ${rank}, score ${score}`))),
    ));
  }
  for (const [method, phrases] of Object.entries(found.keyphrases)) {
    side.append(block(`Keyphrases by ${method}`, element("ul", { class: "phrases" },
      ...phrases.map(([phrase, score]) => element("li", { class: "chip" }, `${phrase} `, element("small", {}, String(score)))))));
  }
  side.append(element("details", { class: "block", open: true }, element("summary", {}, "Measures"), measures(found.quality)));
  side.append(block("Document", facts(found.facts)));
  return side;
}

function measures(quality) {
  const cell = (value) => (value === null ? "–" : String(value));
  return element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Measures of the summaries" }, element("table", {},
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "measure"), ...quality.systems.map((name) => element("th", { scope: "col" }, name)))),
    element("tbody", {}, ...quality.rows.map(([title, ...values]) => element("tr", {}, element("th", { scope: "row" }, title), ...values.map((value) => element("td", {}, cell(value)))))),
  ));
}

function facts(items) {
  return element("dl", { class: "pairs" }, ...items.map(([name, value]) =>
    element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function startDialog() {
  const dialog = byId("dialog");
  const go = (step) => {
    const number = state.order[state.order.indexOf(state.open) + step];
    if (number !== undefined) openDocument(number);
  };
  byId("dialog-close").addEventListener("click", () => dialog.close());
  byId("dialog-previous").addEventListener("click", () => go(-1));
  byId("dialog-next").addEventListener("click", () => go(1));
  dialog.addEventListener("keydown", (event) => {
    if (event.target.matches("input, select") || event.altKey || event.ctrlKey || event.metaKey) return;
    if (event.key === "ArrowLeft") go(-1);
    if (event.key === "ArrowRight") go(1);
  });
  dialog.addEventListener("close", () => {
    try { history.replaceState(null, "", "#documents"); } catch { /* as above */ }
    const place = state.order.indexOf(state.open);
    if (place < 0) return;
    if (Math.floor(place / PAGE_ROWS) !== state.page) {
      state.page = Math.floor(place / PAGE_ROWS);
      showPage();
    }
    byId("rows").querySelector(`[data-number="${state.open}"]`)?.focus();
  });
}

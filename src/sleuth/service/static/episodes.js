// Episodes: a list that can be filtered and sorted, and one or two of them in full.
import { alertBox, counted, el, number, part, select } from "./dom.js";
import { episodeRows, episodeView, file } from "./source.js";

const FLAG_NAMES = {
  right: "right", wrong: "wrong", gold_shown: "gold shown", gold_missing: "gold not shown", refused: "refused", repeated: "repeated search",
  malformed: "bad format", failed: "failed", unscored: "no reward", truncated: "cut off", no_answer: "no answer", rewarded: "rewarded",
};
const SORT_NAMES = [
  ["", "in order"], ["-", "newest first"], ["-reward", "highest reward"], ["reward", "lowest reward"],
  ["-tokens", "longest"], ["tokens", "shortest"], ["-searches", "most searches"],
];
const PAGE = 50;

export function episodesView(sources) {
  const names = sources.map((source) => [source.name, source.name]);
  const query = { source: names.length ? names[0][0] : "", flags: "", sort: "", text: "", offset: 0, limit: PAGE };
  const state = el("p", { class: "soft", role: "status" });
  const list = el("div", { class: "scroll" });
  const more = el("button", { type: "button", onclick: () => load(true) }, "More");
  const opened = el("div", { class: "columns" });
  let timer = 0;
  let total = -1;

  async function load(isMore, isAgain = false) {
    window.clearTimeout(timer);
    if (!isAgain) query.offset = isMore ? query.offset + PAGE : 0;
    let found = null;
    try {
      // A list that is looked at again keeps its rows, and with them the focus, unless there are new ones.
      if (!isAgain || list.isConnected) found = await episodeRows(query);
      if (found && !(isAgain && found.total === total)) show(found, isMore);
    } catch (error) {
      total = -1;
      list.replaceChildren(alertBox(error.message, () => load(false)));
    }
    if (!file && query.offset === 0) timer = window.setTimeout(() => load(false, true), found && !found.done ? 500 : 2000);
  }

  function show(found, isMore) {
    total = found.total;
    state.textContent = `${counted(total, "episode")}${found.done ? "" : `, ${found.count.toLocaleString("en")} read so far`}`;
    const rows = found.rows.map((row) => rowOf(row, () => open(row)));
    if (isMore) list.querySelector("tbody").append(...rows);
    else list.replaceChildren(table(rows));
    more.hidden = query.offset + PAGE >= total;
  }

  async function open(row) {
    const card = await cardOf({ source: query.source, row: row.row });
    opened.replaceChildren(card);
    const others = names.filter(([name]) => name !== query.source);
    if (others.length) {
      const compare = async (source) => {
        if (source) opened.replaceChildren(chooser, card, await cardOf({ source, key: row.key }));
      };
      const chooser = el("p", { class: "wide" }, el("label", { htmlFor: "against" }, "The same question in "), select("against", [["", "…"], ...others], "", compare));
      opened.prepend(chooser);
    }
    opened.querySelector("h2").focus();
  }

  const flags = Object.entries(FLAG_NAMES).map(([flag, label]) => el("label", {}, el("input", { type: "checkbox", value: flag, onchange: choose }), ` ${label}`));
  function choose() {
    query.flags = [...box.querySelectorAll("input:checked")].map((input) => input.value).join(",");
    load(false);
  }
  const box = el("fieldset", {}, el("legend", {}, "Only episodes that are"), flags);
  const change = (name) => (value) => {
    query[name] = value;
    load(false);
  };
  const search = el("input", { type: "text", id: "words", oninput: (event) => change("text")(event.target.value) });
  const bar = el("div", { class: "bar" },
    el("label", { htmlFor: "source" }, "Episodes of"), select("source", names, query.source, change("source")),
    el("label", { htmlFor: "sort" }, "Order"), select("sort", SORT_NAMES, "", change("sort")),
    el("label", { htmlFor: "words" }, "Question contains"), search);
  load(false);
  return el("section", { "aria-label": "Episodes" }, bar, box, state, opened, list, more);
}

function table(rows) {
  const heads = ["Question", "Answer", "Gold", "Reward", "Searches", "Tokens", "Marks"];
  const head = el("tr", {}, heads.map((name, place) => el("th", { scope: "col", class: place > 2 && place < 6 ? "number" : "" }, name)));
  return el("table", { class: "list" }, el("thead", {}, head), el("tbody", {}, rows));
}

function rowOf(row, open) {
  const cell = (value, kind = "") => el("td", { class: kind }, value);
  const marks = row.flags.filter((flag) => !["gold_missing", "rewarded", "unscored"].includes(flag)).map((flag) => FLAG_NAMES[flag]);
  return el("tr", {},
    cell(el("button", { type: "button", class: "link", onclick: open }, row.question)), cell(row.answer ?? "none"), cell(row.gold.join(" / ")),
    cell(number(row.reward), "number"), cell(number(row.searches), "number"), cell(number(row.tokens, 6), "number"), cell(marks.join(", ")));
}

async function cardOf(query) {
  try {
    return episodeCard(await episodeView(query), query.source);
  } catch (error) {
    return el("article", { class: "card" }, el("h2", { tabIndex: -1 }, query.source), alertBox(error.message));
  }
}

function episodeCard(view, source) {
  const { episode, summary } = view;
  const gold = new Set(episode.question.gold_ids);
  const facts = [
    ["Answer", summary.answer ?? "none"], ["Right answer", summary.gold.join(" / ") || "unknown"], ["Ended", episode.ending],
    ["Marks", summary.flags.map((flag) => FLAG_NAMES[flag]).join(", ")], ["Format", episode.malformed || "kept"], ["From", `${source}, ${summary.file}`],
  ];
  const before = (episode.question.history || []).map(([asked, answer]) => `${asked} ${answer}`);
  if (before.length) facts.unshift(["Asked before", before.join("\n")]);
  if (episode.fault) facts.push(["Failed", episode.fault]);
  if (episode.score) {
    const parts = Object.entries(episode.score.parts).map(([name, value]) => `${name} ${number(value)}`);
    facts.push(["Reward", episode.score.invalid || `${number(episode.score.total)} (${parts.join(", ")})`]);
  }
  const rows = facts.map(([name, value]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", { class: "text" }, value)));
  const steps = episode.segments.map((segment, place) => segmentItem(segment, place, view, gold));
  return el("article", { class: "card" }, el("h2", { tabIndex: -1 }, episode.question.text),
    el("table", { class: "facts" }, el("tbody", {}, rows)), el("ol", { class: "steps" }, steps));
}

const AUTHORS = { prompt: ["prompt", "Prompt"], policy: ["turn", "Model"], world: ["search", "Environment"] };

function segmentItem(segment, place, view, gold) {
  const [kind, label] = AUTHORS[segment.author];
  const dropped = segment.until >= 0 ? ", dropped from the context later" : "";
  const head = el("p", { class: "soft" }, `${label}, ${segment.length} tokens${dropped}`);
  const hits = segment.hits.map((hit) => el("li", {},
    el("strong", {}, hit.passage.title || hit.passage.id), gold.has(hit.passage.id) ? el("span", { class: "badge good" }, "gold") : null,
    el("p", { class: "text" }, hit.passage.text)));
  if (segment.author === "policy") {
    const runs = (view.credit && view.credit[place]) || [];
    return el("li", { class: kind }, head, el("p", { class: "text" }, runs.length ? creditSpans(segment.text, runs) : segment.text));
  }
  const whole = el("details", {}, el("summary", {}, hits.length ? `${counted(hits.length, "passage")} shown` : "Text"),
    hits.length ? el("ol", {}, hits) : el("p", { class: "text" }, segment.text));
  return el("li", { class: kind }, head, whole);
}

// The text with the credit of its tokens: a shade and, for every run of equal credit, its value.
function creditSpans(text, runs) {
  return runs.map(({ start, end, value }) => {
    const kind = value > 0 ? "plus" : value < 0 ? "minus" : "";
    return [el("span", { class: kind, title: `credit ${number(value)}` }, part(text, start, end)), el("sub", { class: "soft" }, ` ${number(value)}`)];
  });
}

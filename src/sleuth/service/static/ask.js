// Ask: a conversation with one or two agents, and everything they do, as it happens.
import { alertBox, counted, el, marked, newId, select } from "./dom.js";
import { send } from "./source.js";

const JSON_TYPE = { "Content-Type": "application/json" };
const STATUS = {
  supported: ["good", "Supported by the documents"],
  unsupported: ["bad", "Unsupported: the documents do not show this"],
  not_found: ["warn", "Not in these documents"],
  no_answer: ["warn", "No answer: the model ended without one"],
  unchecked: ["warn", "Not checked: the judge gave no verdict"],
};

const MOST_ROUNDS = 20;  // of a conversation that are sent again; the server reads the latest that fit

export function askView(models) {
  const question = el("textarea", { id: "question", required: true, maxLength: 8000 });
  const first = select("model", models.map((name) => [name, name]), models[0]);
  const second = select("other", [["", "nothing"], ...models.map((name) => [name, name])], "");
  const button = el("button", { class: "main", type: "submit" }, "Ask");
  const stop = el("button", { type: "button", disabled: true }, "Stop");
  const restart = el("button", { type: "button", disabled: true, onclick: newConversation }, "New conversation");
  const rounds = [];  // { question, answers: model -> text }
  const conversation = el("div", {});
  const live = el("div", { class: "hidden", role: "status" });
  let running = null;

  function newConversation() {
    if (running) running.abort();
    rounds.length = 0;
    conversation.replaceChildren();
    restart.disabled = true;
    question.focus();
  }

  // Earlier questions and answers, then the question; a method that did not answer reads another one's answer.
  function inputFor(model, asked) {
    const answered = rounds.slice(-MOST_ROUNDS).filter((round) => round.answers.size);
    const before = answered.flatMap((round) => [
      { role: "user", content: round.question },
      { role: "assistant", content: round.answers.get(model) ?? [...round.answers.values()][0] },
    ]);
    return before.length ? [...before, { role: "user", content: asked }] : asked;
  }

  stop.addEventListener("click", () => running && running.abort());

  async function ask(event) {
    event.preventDefault();
    if (running || !question.value.trim()) return;
    running = new AbortController();
    button.disabled = true;
    stop.disabled = false;
    live.textContent = "Searching";
    const names = [...new Set([first.value, second.value])].filter(Boolean);
    const inputs = names.map((model) => ({ model, input: inputFor(model, question.value) }));
    const round = { question: question.value, answers: new Map() };
    const results = el("div", { class: "columns" });
    if (conversation.firstChild) conversation.firstChild.open = false;
    conversation.prepend(el("details", { class: "round", open: true }, el("summary", {}, el("h2", {}, round.question)), results));
    rounds.push(round);
    question.value = "";
    restart.disabled = false;
    await Promise.all(inputs.map((asked) => oneAnswer(asked, round, results, running.signal, live)));
    running = null;
    button.disabled = false;
    stop.disabled = true;
  }

  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey) ask(event);
  });
  const form = el(
    "form", { onsubmit: ask },
    el("label", { htmlFor: "question" }, "Your question"), question,
    el("div", { class: "bar" },
      el("label", { htmlFor: "model" }, "Method"), first,
      el("label", { htmlFor: "other" }, "Compare with"), second, button, stop, restart),
  );
  return el("section", { "aria-label": "Ask" }, form, live, conversation);
}

async function oneAnswer({ model, input }, round, results, signal, live) {
  const steps = el("ol", { class: "steps" });
  const answer = el("div", {});
  const title = newId("method");
  const card = el("article", { class: "card", "aria-labelledby": title }, el("h3", { id: title }, model), steps, answer);
  results.append(card);
  const show = { items: new Map(), steps, answer, live, text: "" };
  const retry = () => {
    card.remove();
    oneAnswer({ model, input }, round, results, new AbortController().signal, live);
  };
  try {
    const body = JSON.stringify({ model, input, stream: true });
    const response = await send("/v1/responses", { method: "POST", body, signal, headers: JSON_TYPE });
    for await (const event of eventsOf(response.body)) onEvent(event, show);
    if (!show.text) throw new Error("The connection broke before the answer was complete.");
    round.answers.set(model, show.text);
  } catch (error) {
    const message = error.name === "AbortError" ? "Stopped." : error.name === "TypeError" ? "The connection to the server broke." : error.message;
    answer.replaceChildren(alertBox(message, retry));
  }
}

// Server-sent events of a response body.
async function* eventsOf(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const line = block.split("\n").find((each) => each.startsWith("data: "));
      if (line) yield JSON.parse(line.slice(6));
    }
  }
}

function onEvent(event, show) {
  switch (event.type) {
    case "response.output_item.added": return begin(event.item, show);
    case "response.reasoning_text.delta": return show.items.get(event.item_id).raw.append(event.delta);
    case "response.output_text.delta": return show.items.get(event.item_id).text.append(event.delta);
    case "response.output_item.done": return finish(event.item, show);
    case "response.completed":
      show.text = event.response.output.at(-1).content[0].text;
      return complete(event.response, show);
    case "response.failed": throw new Error(event.response.error.message);
    case undefined: if (event.error) throw new Error(event.error.message);
  }
}

function begin(item, show) {
  if (item.type === "message") {
    const text = el("p", { class: "answer" });
    show.answer.replaceChildren(text);
    show.items.set(item.id, { text });
    return;
  }
  const isSearch = item.type === "file_search_call";
  const head = el("p", { class: "text busy" }, isSearch ? `Searching: ${item.queries.join("; ")}` : "Writing …");
  const raw = el("p", { class: "text soft" });
  const step = el("li", { class: isSearch ? "search" : "turn" }, head, raw);
  show.items.set(item.id, { head, raw, step });
  show.steps.append(step);
  if (isSearch) show.live.textContent = `Searching: ${item.queries.join("; ")}`;
}

function finish(item, show) {
  const { head, raw, step } = show.items.get(item.id);
  if (item.type === "file_search_call") {
    head.replaceChildren("Searched: ", el("strong", {}, item.queries.join("; ")));
    head.className = "text";
    raw.replaceWith(passageList(item.results));
  } else if (item.type === "reasoning") {
    head.remove();
    const notes = item.summary.map((note) => el("p", { class: "text" }, note.text));
    const whole = el("details", {}, el("summary", {}, "Turn as written"), el("p", { class: "text soft" }, item.content[0].text));
    step.replaceChildren(...notes, whole);
  }
}

// Passages found; more than five are folded.
export function passageList(results) {
  if (!results.length) return el("p", { class: "soft" }, "Found nothing");
  const list = el("ol", {}, results.map((hit) => el("li", {}, el("strong", {}, hit.filename || hit.file_id), " ", el("span", { class: "text" }, hit.text))));
  return el("details", { open: results.length <= 5 }, el("summary", {}, `Found ${counted(results.length, "passage")}`), list);
}

function complete(response, show) {
  const { status, statements, citations } = response.sleuth;
  const [kind, label] = STATUS[status];
  const badge = el("p", {}, el("span", { class: `badge ${kind}` }, label));
  const items = new Map(citations.map((citation) => [citation.number, evidenceItem(citation)]));
  const claims = statements.map((statement) => [claimSpan(statement, items), " "]);
  const text = el("p", { class: "answer" }, claims.length ? claims : `${label}.`);
  const heading = status === "unsupported" ? "Nearest passages" : "Evidence";
  const list = items.size ? [el("h4", {}, heading), el("ol", { class: "evidence" }, [...items.values()])] : [];
  show.answer.replaceChildren(text, badge, ...list, feedbackForm(response.id));
  show.live.textContent = `${label}. ${statements.map((each) => each.text).join(" ")}`;
}

function claimSpan(statement, items) {
  const isGood = statement.support === null || statement.support >= 0.5;
  const numbers = isGood ? statement.numbers : [];
  const light = (on) => () => statement.numbers.forEach((place) => items.get(place).classList.toggle("active", on));
  const go = (event) => {
    if (event.key === "Enter" && statement.numbers.length) items.get(statement.numbers[0]).scrollIntoView({ block: "nearest" });
  };
  const label = isGood ? `${statement.text}, evidence ${numbers.join(" and ") || "none"}` : `${statement.text}, unsupported`;
  const props = { class: isGood ? "claim" : "claim unsupported", tabIndex: 0, role: "button", "aria-label": label };
  const span = el("span", { ...props, onmouseenter: light(true), onmouseleave: light(false), onfocus: light(true), onblur: light(false), onkeydown: go });
  span.append(statement.text, ...numbers.map((place) => ` [${place}]`));
  return span;
}

function evidenceItem(citation) {
  const head = el("p", {}, `[${citation.number}] `, el("strong", {}, citation.title || citation.id), el("span", { class: "soft" }, ` ${citation.id}`));
  return el("li", {}, head, el("p", { class: "text" }, marked(citation.text, citation.start, citation.end)));
}

function feedbackForm(episode) {
  const thanks = el("span", { role: "status" });
  const right = el("input", { type: "text", id: newId("right"), maxLength: 4000 });
  let thumb = "";
  async function store(given) {
    thumb = given || thumb || "down";
    const body = JSON.stringify({ episode, thumb, correction: right.value });
    try {
      await send("/feedback", { method: "POST", body, headers: JSON_TYPE });
      thanks.textContent = "Stored.";
      up.setAttribute("aria-pressed", thumb === "up");
      down.setAttribute("aria-pressed", thumb === "down");
    } catch (error) {
      thanks.textContent = `Not stored: ${error.message}`;
    }
  }
  const up = el("button", { type: "button", "aria-pressed": "false", onclick: () => store("up") }, "Right");
  const down = el("button", { type: "button", "aria-pressed": "false", onclick: () => store("down") }, "Wrong");
  const correct = (event) => {
    event.preventDefault();
    store("");
  };
  return el("form", { class: "bar", onsubmit: correct }, up, down,
    el("label", { htmlFor: right.id }, "Right answer"), right, el("button", { type: "submit" }, "Correct it"), thanks);
}

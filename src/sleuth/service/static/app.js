// The page: which views there are, and which one is shown.
import { alertBox, el } from "./dom.js";
import { about } from "./source.js";
import { askView } from "./ask.js";
import { episodesView } from "./episodes.js";
import { curvesView } from "./curves.js";

async function start() {
  const main = document.getElementById("main");
  try {
    const found = await about();
    const views = {};
    if (found.models.length) views.ask = ["Ask", () => askView(found.models)];
    if (found.runs.length) views.training = ["Training", () => curvesView(found.runs)];
    if (found.sources.length) views.episodes = ["Episodes", () => episodesView(found.sources)];
    route(main, views);
    window.addEventListener("hashchange", () => route(main, views));
  } catch (error) {
    main.replaceChildren(alertBox(`The server does not answer: ${error.message}`, start));
  }
}

// Views are built once and kept, so that an answer is still there after a look at another view.
const built = {};

function route(main, views) {
  const asked = window.location.hash.slice(1);
  if (asked === "main") return;
  const name = views[asked] ? asked : Object.keys(views)[0];
  const links = Object.entries(views).map(([key, [label]]) => el("a", { href: `#${key}`, "aria-current": key === name ? "page" : null }, label));
  document.getElementById("views").replaceChildren(...links);
  if (!name) {
    main.replaceChildren(el("p", {}, "There is nothing to show yet."));
    return;
  }
  built[name] = built[name] || views[name][1]();
  main.replaceChildren(built[name]);
}

start();

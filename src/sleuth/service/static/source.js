// Data of the page: from the server, or from the file itself.
const embedded = document.getElementById("data");
export const file = embedded ? JSON.parse(embedded.textContent) : null;
const TOKEN = "sleuth-token";

export function headers(more = {}) {
  const token = sessionStorage.getItem(TOKEN);
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
}

// fetch with the token, which is asked for once if the server wants one.
export async function send(path, options = {}) {
  const request = () => fetch(path, { ...options, headers: headers(options.headers) });
  let response = await request();
  if (response.status === 401) {
    const token = window.prompt("This server needs a token:");
    if (token) {
      sessionStorage.setItem(TOKEN, token.trim());
      response = await request();
    }
  }
  if (!response.ok) throw new Error(await reason(response));
  return response;
}

async function reason(response) {
  try {
    const { error } = await response.json();
    return (error && error.message) || error || `status ${response.status}`;
  } catch {
    return `status ${response.status}`;
  }
}

async function get(path, query) {
  return (await send(`/api/${path}?${new URLSearchParams(query)}`)).json();
}

export async function about() {
  return file || get("about", {});
}

export async function metricsOf(run) {
  return file ? { rows: file.metrics[run], ...file.runs[run] } : get("metrics", { run });
}

export async function episodeRows(query) {
  if (!file) return get("episodes", query);
  const flags = query.flags.split(",").filter(Boolean);
  const text = query.text.toLowerCase();
  const has = (row) => flags.every((flag) => row.flags.includes(flag)) && row.question.toLowerCase().includes(text);
  const rows = file.episodes[query.source].map((view) => view.summary).filter(has);
  const name = query.sort.replace("-", "");
  const sign = query.sort.startsWith("-") ? -1 : 1;
  if (name) rows.sort((a, b) => sign * (a[name] - b[name]));
  else if (sign < 0) rows.reverse();
  const offset = Number(query.offset);
  return { total: rows.length, rows: rows.slice(offset, offset + Number(query.limit)), count: rows.length, done: true };
}

export async function episodeView(query) {
  if (!file) return get("episode", query);
  const views = file.episodes[query.source] || [];
  const found = views.find((view) => (query.key ? view.summary.key === query.key : view.row === Number(query.row)));
  if (!found) throw new Error("no episode of this question here");
  return found;
}

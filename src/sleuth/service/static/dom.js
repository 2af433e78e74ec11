// Elements from values. Text is always text: nothing here parses markup.
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "class") node.className = value;
    else if (name in node && !name.startsWith("aria")) node[name] = value;
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

export function svg(tag, props = {}, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(props)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export function select(id, options, value, onchange) {
  const items = options.map(([name, label]) => el("option", { value: name, selected: name === value }, label));
  return el("select", { id, onchange: (event) => onchange && onchange(event.target.value) }, items);
}

// Part of a text; the server counts characters, where JavaScript counts an emoji as two.
export function part(text, start, end) {
  return [...text].slice(start, end).join("");
}

// A text with its span [start, end) marked.
export function marked(text, start, end) {
  return [part(text, 0, start), el("mark", {}, part(text, start, end)), part(text, end)];
}

export function number(value, digits = 3) {
  if (!Number.isFinite(value)) return "–";
  // Zeros after the point would not fit next to a chart.
  return value && Math.abs(value) < 1e-3 ? value.toExponential(1) : String(+value.toPrecision(digits));
}

export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

export function alertBox(message, retry) {
  const again = retry ? el("button", { type: "button", onclick: retry }, "Try again") : null;
  return el("div", { class: "alert", role: "alert" }, el("p", {}, message), again);
}

let unique = 0;
export function newId(prefix) {
  unique += 1;
  return `${prefix}-${unique}`;
}

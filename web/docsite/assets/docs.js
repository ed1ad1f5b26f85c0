"use strict";
// What pages gain by a script: search as one types, and buttons that copy. Without it,
// search is a page and code is selected by hand.

// Old addresses of headings that have pages of their own now.
const gone = document.getElementById("moved")?.querySelector("#" + CSS.escape(decodeURIComponent(location.hash.slice(1)) || "none") + " a");
if (gone) location.replace(gone.href);

// The commands of a box that shows answers too: what comes after "$ ".
function commands(text) {
  if (!/^\$ /m.test(text)) return text;
  const kept = [];
  let goes = false;
  for (const line of text.split("\n")) {
    if (line.startsWith("$ ")) kept.push(line.slice(2));
    else if (goes) kept.push(line);
    goes = (line.startsWith("$ ") || goes) && line.endsWith("\\");
  }
  return kept.join("\n") + "\n";
}

for (const pre of document.querySelectorAll(".prose pre")) {
  if (!navigator.clipboard) break; // plain http, beyond this machine
  const box = document.createElement("div"), button = document.createElement("button");
  box.className = "box";
  button.className = "copy";
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(commands(pre.textContent));
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  pre.replaceWith(box);
  box.append(pre, button);
}

const field = document.getElementById("q"), results = document.getElementById("results"), shown = document.getElementById("shown");

function part(name, text, more = {}) {
  const node = Object.assign(document.createElement(name), more);
  node.append(text);
  return node;
}

function show(query, found) {
  const list = part("ol", "", { className: "found" });
  for (const r of found) {
    const about = part("p", ""), line = part("li", "");
    for (const p of r.snippet ?? []) about.append(p.marked ? part("mark", p.text) : p.text);
    line.append(part("a", r.title, { href: r.url }), " ", part("span", r.kind, { className: "chip" }), " ", part("span", r.page, { className: "dim small" }), about);
    list.append(line);
  }
  const told = part("p", found.length ? `${found.length} for “${query}”. Esc ends the search.` : `Nothing has “${query}” in it.`);
  told.setAttribute("role", "status");
  results.replaceChildren(part("h1", "Search"), told, list);
  results.hidden = false;
  shown.hidden = true;
}

function end() {
  results.hidden = true;
  shown.hidden = false;
}

let timer, asked;
field.addEventListener("input", () => {
  clearTimeout(timer);
  asked?.abort();
  const query = field.value.trim();
  if (query.length < 2) return end();
  timer = setTimeout(async () => {
    asked = new AbortController();
    try {
      const answer = await fetch("/docs/search?format=json&q=" + encodeURIComponent(query), { signal: asked.signal });
      if (answer.ok) show(query, (await answer.json()).data);
    } catch { /* the form still works */ }
  }, 150);
});
field.addEventListener("keydown", e => {
  if (e.key === "Escape") { field.value = ""; end(); }
  if (e.key === "ArrowDown" && !results.hidden) { e.preventDefault(); results.querySelector("li a")?.focus(); }
});
results.addEventListener("keydown", e => {
  if (e.key === "Escape") { field.value = ""; end(); field.focus(); }
  const step = { ArrowDown: 1, ArrowUp: -1 }[e.key];
  if (!step) return;
  e.preventDefault();
  const links = [...results.querySelectorAll("li a")];
  (links[links.indexOf(document.activeElement) + step] ?? (step < 0 ? field : links.at(-1))).focus();
});
document.addEventListener("keydown", e => {
  if (e.key === "/" && !e.target.closest("input, textarea, select") && !e.ctrlKey && !e.metaKey && !e.altKey) { e.preventDefault(); field.focus(); }
});

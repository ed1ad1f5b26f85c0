// Copies identifiers, writes times in the reader's zone if they want it, and has "/"
// lead to the search. Pages work without this script.
"use strict";
const root = document.documentElement;
root.classList.add("js");

const said = (text) => {
  document.getElementById("said").textContent = text;
};

// Browsers have a clipboard for scripts only on https and on this machine.
const copy = async (text) => {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
};

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy], [data-copy-from]");
  if (!button) return;
  try {
    await copy(button.dataset.copy ?? document.getElementById(button.dataset.copyFrom).textContent);
  } catch {
    said("The browser did not allow copying.");
    return;
  }
  button.classList.add("done");
  said("Copied");
  setTimeout(() => button.classList.remove("done"), 1500);
});

document.addEventListener("change", (event) => {
  const shows = event.target.dataset.show;
  if (shows) document.getElementById(shows).type = event.target.checked ? "text" : "password";
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
  const menu = document.querySelector(".menu");
  const find = document.getElementById("find");
  if (!find) return;
  event.preventDefault();
  if (menu && getComputedStyle(menu).display !== "none") menu.open = true;
  find.focus();
});

// Times are written in UTC by the server.
const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
const stored = () => {
  try {
    return localStorage.getItem("zone") === "local";
  } catch {
    return false;
  }
};
let local = stored();
const parts = { dateStyle: "short", timeStyle: "medium" };
const written = (at) => {
  const zone = local ? here : "UTC";
  const name = new Intl.DateTimeFormat("en", { timeZone: zone, timeZoneName: "short" }).formatToParts(at).find((p) => p.type === "timeZoneName").value;
  return new Intl.DateTimeFormat("sv-SE", { ...parts, timeZone: zone }).format(at) + " " + name;
};
const axis = (at, layout) => {
  const options = layout === "day" ? { month: "short", day: "numeric" } : { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  return new Intl.DateTimeFormat("en", { ...options, timeZone: local ? here : "UTC" }).format(at);
};
const rewrite = (part) => {
  for (const time of part.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    time.title = written(at);
    if (time.classList.contains("exact")) time.textContent = time.title;
    if (time.dataset.axis) time.textContent = axis(at, time.dataset.axis);
  }
  for (const zone of part.querySelectorAll("[data-zone-name]")) zone.textContent = local ? here : "UTC";
};
const toggle = document.querySelector("[data-zone]");
const show = () => {
  if (toggle) toggle.textContent = local ? here : "UTC";
  rewrite(document);
};
if (toggle) {
  toggle.addEventListener("click", () => {
    local = !local;
    try {
      localStorage.setItem("zone", local ? "local" : "utc");
    } catch {
      // It then holds for this page only.
    }
    show();
  });
}
document.addEventListener("swapped", (event) => {
  if (local) rewrite(event.target);
});
if (local) show();

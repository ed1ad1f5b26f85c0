// Keeps the parts of a page that have data-live up to date by server-sent events.
// Without this script a page shows what it was when it was made.
"use strict";
for (const part of document.querySelectorAll("[data-live]")) {
  const bar = document.getElementById(part.dataset.bar);
  const state = bar.querySelector("[data-state]");
  const button = bar.querySelector("button");
  let source = null;
  let paused = false;

  const say = (text, tone) => {
    if (state.textContent !== text) state.textContent = text;
    state.className = "chip " + tone;
  };
  // What somebody is using, by the keyboard or a selection, is not taken away from under
  // them: it is swapped when they have left it. What is unfolded stays so.
  let last = "";
  const busy = () => part.contains(document.activeElement) || (getSelection().toString() && part.contains(getSelection().anchorNode));
  const swap = () => {
    if (!last || busy()) return;
    const open = [...part.querySelectorAll("details[id][open]")].map((d) => d.id);
    part.innerHTML = last; // made and escaped by our server
    last = "";
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    part.dispatchEvent(new Event("swapped", { bubbles: true }));
  };
  part.addEventListener("focusout", () => setTimeout(swap));
  const close = () => {
    if (source) source.close();
    source = null;
  };
  const open = () => {
    if (source || paused || document.hidden) return;
    source = new EventSource(part.dataset.live);
    source.onmessage = (event) => {
      last = event.data;
      swap();
      say("Live", "good");
    };
    source.onerror = () => {
      say("Reconnecting", "busy");
      if (source && source.readyState === EventSource.CLOSED) {
        close();
        setTimeout(open, 10000);
      }
    };
  };

  bar.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume updates" : "Pause updates";
    if (paused) {
      close();
      say("Paused", "dim");
    } else {
      open();
    }
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  window.addEventListener("pagehide", close);
  open();
}

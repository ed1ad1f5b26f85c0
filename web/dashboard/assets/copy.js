// Copies what stands in the element that a button's data-copy names. Without this
// script the buttons stay hidden, and the text is selected by hand.
"use strict";
for (const button of document.querySelectorAll("[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const from = document.getElementById(button.dataset.copy);
    try {
      await navigator.clipboard.writeText(from.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(from); // without https a page may not copy: it is selected for the keyboard
      button.textContent = "Selected";
    }
  });
}

// Labelling by keyboard. Without it the same buttons and links are reached by Tab.
"use strict";
let gone = false;
window.addEventListener("pageshow", () => { gone = false; });
document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input[type=text]");
  if (event.key === "Escape" && typing) {
    event.target.blur();
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const wanted = {
    ArrowLeft: "a[rel=prev]", ArrowRight: "a[rel=next]", u: "[data-undo]", n: "[data-note]",
  }[event.key] || (/^[1-9]$/.test(event.key) ? `[data-key="${event.key}"]` : null);
  const found = wanted && document.querySelector(wanted);
  if (!found) return;
  event.preventDefault();
  if (event.key === "n") {
    found.focus();
  } else if (!gone) {
    // What is pressed before the next page is there is meant for that one.
    gone = true;
    found.click();
  }
});

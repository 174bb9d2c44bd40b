// Keeps what is typed into a form in this tab until the server has it. Without it these are plain forms.
"use strict";
for (const form of document.querySelectorAll("form[data-draft]")) {
  const key = `draft ${form.dataset.draft}`;
  const status = form.querySelector("[role=status]");
  const fields = [...form.querySelectorAll("[data-typed]")];
  const typed = () => JSON.stringify(fields.map((field) => (field.type === "checkbox" ? field.checked : field.value)));
  const draft = sessionStorage.getItem(key);
  if (draft === typed()) {
    sessionStorage.removeItem(key);
  } else if (draft !== null) {
    JSON.parse(draft).forEach((value, n) => {
      if (!fields[n]) return;
      fields[n][fields[n].type === "checkbox" ? "checked" : "value"] = value;
    });
    status.textContent = "Not saved yet.";
  }
  form.addEventListener("input", () => {
    status.textContent = "Not saved yet.";
    sessionStorage.setItem(key, typed());
  });
  if (!form.hasAttribute("data-review")) continue;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const sent = typed();
    sessionStorage.setItem(key, sent);
    status.textContent = "Saving …";
    try {
      const response = await fetch(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
      if (!response.ok) {
        const page = new DOMParser().parseFromString(await response.text(), "text/html");
        status.textContent = `Not saved: ${(page.querySelector("main .said") || page.querySelector("p")).textContent.trim()}`;
      } else if (typed() === sent) {
        sessionStorage.removeItem(key);
        location.reload();
      } else {
        status.textContent = "Saved, but for what you typed since.";
      }
    } catch {
      status.textContent = "Not saved: the server does not answer. What you typed stays here; try again later.";
    }
  });
}

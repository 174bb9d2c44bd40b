// Keeps what names a stream of events up to date. Without it such a page loads itself again now and then.
"use strict";
for (const part of document.querySelectorAll("[data-events]")) {
  const events = new EventSource(part.dataset.events);
  events.onmessage = (event) => {
    const told = JSON.parse(event.data);
    if (told.state !== "being written") {
      events.close();
      location.reload();
      return;
    }
    const show = (selector, change) => part.querySelectorAll(selector).forEach(change);
    show("[data-asked]", (element) => { element.textContent = told.asked.toLocaleString("en"); });
    show("[data-whole]", (element) => { element.value = told.asked; });
    show("[data-cell]", (element) => {
      element.textContent = (told.cells[element.dataset.cell] || 0).toLocaleString("en");
    });
    show("[data-bar]", (element) => { element.value = told.cells[element.dataset.bar] || 0; });
  };
}
for (const part of document.querySelectorAll("[data-all-events]")) {
  const events = new EventSource(part.dataset.allEvents);
  events.onmessage = (event) => {
    const told = JSON.parse(event.data);
    const rows = [...document.querySelectorAll("[data-run]")];
    const same = (row) => told[row.dataset.run] && told[row.dataset.run].state === row.dataset.state;
    if (rows.length !== Object.keys(told).length || !rows.every(same)) {
      events.close();
      location.reload();
      return;
    }
    for (const row of rows) {
      row.querySelectorAll("[data-asked]").forEach((element) => {
        element.textContent = told[row.dataset.run].asked.toLocaleString("en");
      });
    }
  };
}
for (const part of document.querySelectorAll("[data-reload-ms]")) {
  setTimeout(() => location.reload(), Number(part.dataset.reloadMs));
}

// Tables sort by a click on a column's title; a field filters rows and questions. Without this script the page is whole.
"use strict";
(() => {
  const make = (tag, properties) => Object.assign(document.createElement(tag), properties);

  function figure(cell) {
    const found = /-?\d[\d,]*(?:\.\d+)?/.exec(cell.textContent.replace("−", "-"));
    return found ? Number(found[0].replaceAll(",", "")) : NaN;
  }

  function sort(table, place, title) {
    const up = title.getAttribute("aria-sort") === "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    title.setAttribute("aria-sort", up ? "ascending" : "descending");
    const figures = title.classList.contains("n");
    const compare = (one, other) => {
      const [a, b] = [one.cells[place], other.cells[place]];
      if (!figures) return (up ? 1 : -1) * b.textContent.localeCompare(a.textContent);
      const [x, y] = [figure(a), figure(b)];
      if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y); // what has no figure stands last, either way
      return up ? x - y : y - x;
    };
    for (const body of table.tBodies) body.append(...[...body.rows].sort(compare));
  }

  for (const table of document.querySelectorAll("div.scroll > table")) {
    if (table.rows.length < 3) continue;
    [...table.tHead.rows[0].cells].forEach((title, place) => {
      const button = make("button", { type: "button", className: "sort", textContent: title.textContent });
      button.addEventListener("click", () => sort(table, place, title));
      title.replaceChildren(button);
    });
  }

  const field = make("input", { type: "search", id: "find", placeholder: "words, or right, wrong, failed" });
  const label = make("label", { htmlFor: "find", textContent: "Find" });
  const told = make("p", { className: "small" });
  told.setAttribute("aria-live", "polite");
  const box = make("div", { className: "find" });
  box.append(label, field, told);
  document.querySelector("nav").prepend(box);

  const traces = [...document.querySelectorAll("details.question-trace")];
  const rows = [...document.querySelectorAll("main div.scroll > table > tbody > tr")];
  const parts = [...document.querySelectorAll("main section.part")];
  const chapters = [...document.querySelectorAll("main details.chapter")];
  const text = new Map([...traces, ...rows].map((one) => [one, one.textContent.toLowerCase()]));
  let opened = [];

  // What rows of a site can be chosen by: columns that name them, and what their whole part shares.
  const facets = new Map(["data set", "reader", "budget", "memory", "version", "certified", "device"].map((n) => [n, new Set()]));
  const named = new Map();
  for (const row of rows) {
    const part = row.closest("[data-facets]");
    if (!part) continue;
    const own = JSON.parse(part.dataset.facets);
    [...row.closest("table").tHead.rows[0].cells].forEach((title, place) => {
      if (facets.has(title.textContent)) own[title.textContent] = row.cells[place].textContent;
    });
    named.set(row, own);
    for (const [name, value] of Object.entries(own)) facets.get(name).add(value);
  }
  const choices = new Map();
  for (const [name, values] of facets) {
    if (values.size < 2) continue;
    const select = make("select", { id: `facet-${choices.size}` });
    select.append(make("option", { value: "", textContent: "all" }));
    for (const value of [...values].sort()) select.append(make("option", { value, textContent: value }));
    select.addEventListener("change", find);
    const facet = make("div", { className: "facet" });
    facet.append(make("label", { htmlFor: select.id, textContent: name }), select);
    box.append(facet);
    choices.set(name, select);
  }
  const chosen = (row) => [...choices].every(([name, select]) => !select.value || named.get(row)?.[name] === select.value);

  function find() {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    const narrowed = words.length > 0 || [...choices.values()].some((select) => select.value);
    for (const [one, said] of text) one.hidden = !words.every((word) => said.includes(word)) || !chosen(one);
    const shown = (list) => list.filter((one) => !one.hidden).length;
    for (const part of parts) {
      const own = rows.filter((row) => part.contains(row));
      part.hidden = narrowed && shown(own) === 0;
    }
    for (const chapter of opened) chapter.open = false;
    opened = words.length ? chapters.filter((one) => !one.open && one.querySelector("section.part:not([hidden])")) : [];
    for (const chapter of opened) chapter.open = true;
    told.textContent = narrowed ? `${shown(traces)} questions, ${shown(rows)} rows` : "";
  }
  field.addEventListener("input", find);
})();

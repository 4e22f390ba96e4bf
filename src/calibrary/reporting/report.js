for (const table of document.querySelectorAll("table.metrics")) {
  const body = table.tBodies[0];
  const pairs = [...body.querySelectorAll("tr.row")].map(row => [row, row.nextElementSibling]);
  const families = [...body.querySelectorAll("tr.family")];
  const section = table.closest("section");
  const search = section.querySelector("input[type=search]");
  const family = section.querySelector("select");
  const shown = row => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const text = (row.textContent + " " + row.nextElementSibling.textContent).toLowerCase();
    return (!family.value || row.dataset.family === family.value) && words.every(w => text.includes(w));
  };
  const filter = () => {
    for (const head of families) head.hidden = search.value !== "" || family.value !== "" || sorted;
    for (const [row, about] of pairs) {
      row.hidden = !shown(row);
      about.hidden = row.hidden || row.querySelector(".more").getAttribute("aria-expanded") !== "true";
    }
  };
  let sorted = false;
  search.addEventListener("input", filter);
  family.addEventListener("change", filter);
  body.addEventListener("click", event => {
    const more = event.target.closest(".more");
    if (!more) return;
    const open = more.getAttribute("aria-expanded") !== "true";
    more.setAttribute("aria-expanded", open);
    more.closest("tr").nextElementSibling.hidden = !open;
  });
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach(h => h.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const key = row => row.cells[column].dataset.key;
    const compare = (a, b) => {
      if (a === b) return 0;
      if (a === "" || a === "nan") return 1;
      if (b === "" || b === "nan") return -1;
      const x = Number(a), y = Number(b);
      const order = Number.isNaN(x) || Number.isNaN(y) ? a.localeCompare(b) : x - y;
      return down ? -order : order;
    };
    pairs.sort((p, q) => compare(key(p[0]), key(q[0])));
    sorted = true;
    filter();
    for (const [row, about] of pairs) body.append(row, about);
  }));
}

"use strict";
// Without this script the page tells the same; with it, the table of clauses can be searched.
for (const input of document.querySelectorAll(".every #find")) {
  const section = input.closest(".every");
  const rows = [...section.querySelectorAll("tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
  const found = section.querySelector("#found");
  section.querySelector(".find").hidden = false;
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const [row, text] of rows) {
      row.hidden = !words.every((word) => text.includes(word));
      shown += !row.hidden;
    }
    found.textContent = words.length ? `${shown} of ${rows.length}` : "";
  });
}

"use strict";
// The reason of a cell by pointer or arrow keys, lint and difference of an edit while one types, commands to copy.
// Only text is put into the page, never markup.

const WAIT_MS = 250;
const byId = (id) => document.getElementById(id);

function matrix() {
  const grid = document.querySelector("table.matrix"), said = byId("cell");
  if (!grid) return;
  const heads = [...grid.tHead.rows[0].cells].map((head) => head.textContent.trim());
  const tell = (cell) => {
    said.textContent = `${cell.parentElement.querySelector(".name").textContent} on ${heads[cell.cellIndex]}: ${cell.querySelector(".sr").textContent}`;
  };
  const cellOf = (event) => event.target.closest("td.cell");
  grid.addEventListener("mouseover", (event) => cellOf(event) && tell(cellOf(event)));
  grid.addEventListener("focusin", (event) => cellOf(event) && tell(cellOf(event)));
  grid.addEventListener("click", (event) => cellOf(event) && go(cellOf(event)));
  const go = (cell) => {
    for (const other of grid.querySelectorAll('td.cell[tabindex="0"]')) other.tabIndex = -1;
    cell.tabIndex = 0;
    cell.focus();
  };
  grid.addEventListener("keydown", (event) => {
    const cell = cellOf(event);
    if (!cell || event.ctrlKey || event.altKey || event.metaKey) return;
    const row = cell.parentElement, rows = [...grid.tBodies[0].rows], at = cell.cellIndex;
    const next = {
      ArrowRight: row.cells[at + 1],
      ArrowLeft: row.cells[at - 1],
      ArrowDown: row.nextElementSibling?.cells[at],
      ArrowUp: row.previousElementSibling?.cells[at],
      Home: row.cells[1],
      End: row.cells[row.cells.length - 1],
      PageDown: rows[rows.length - 1].cells[at],
      PageUp: rows[0].cells[at],
    }[event.key];
    if (next?.matches("td.cell")) {
      go(next);
      event.preventDefault();
    }
  });
}

function editor() {
  const text = byId("text"), choice = byId("policy"), result = byId("result");
  const edited = new Map();
  let timer = 0, turn = 0;
  const put = (place, lines) =>
    place.replaceChildren(
      ...lines.map((line) =>
        Object.assign(document.createElement("div"), { className: `line ${line.kind.toLowerCase()}`, textContent: line.text || "\u00a0" }),
      ),
    );
  const ask = async (path) => {
    const reply = await fetch(path, { method: "POST", headers: { "Content-Type": "text/plain; charset=utf-8", "X-Fairlead": "page" }, body: text.value });
    if (reply.status === 409) return null;
    if (!reply.ok) return [{ kind: "Error", text: (await reply.text()).trim() }];
    return (await reply.json()).lines;
  };
  const look = async () => {
    const mine = ++turn;
    result.setAttribute("aria-busy", "true");
    try {
      const linted = await ask("/lint");
      if (mine !== turn || linted === null) return;
      put(byId("lint"), linted);
      put(byId("diff"), [{ kind: "Plain", text: "Comparing ..." }]);
      const differs = await ask("/diff");
      if (mine === turn && differs !== null) put(byId("diff"), differs);
    } catch {
      if (mine === turn) put(byId("diff"), [{ kind: "Error", text: "fairlead ui does not answer: is it still running?" }]);
    } finally {
      if (mine === turn) result.removeAttribute("aria-busy");
    }
  };
  const soon = () => {
    clearTimeout(timer);
    timer = setTimeout(look, WAIT_MS);
  };
  let name = choice.value;
  text.addEventListener("input", soon);
  choice.addEventListener("change", async () => {
    edited.set(name, text.value);
    name = choice.value;
    const wanted = name;
    if (edited.has(wanted)) {
      text.value = edited.get(wanted);
    } else {
      const reply = await fetch(`/policy?name=${encodeURIComponent(wanted)}`);
      if (name !== wanted) return;
      text.value = reply.ok ? await reply.text() : "";
    }
    look();
  });
}

function copies() {
  if (!navigator.clipboard) return;
  for (const run of document.querySelectorAll(".run")) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "copy" });
    const code = run.querySelector("code");
    button.setAttribute("aria-label", `copy ${code.textContent}`);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(code.textContent);
      button.textContent = "copied";
    });
    run.append(" ", button);
  }
}

matrix();
editor();
copies();

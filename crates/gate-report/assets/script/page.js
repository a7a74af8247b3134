// -------------------------------------------------------------------------------------------- shapes of the pictures

/** The gate and the row an element names with `data-r="GATE:INDEX"`. */
function named(gates, name) {
  const parts = /^(\d+):(\d+)$/.exec(name || '');
  const gate = parts && gates[Number(parts[1])];
  const row = gate && gate.rowOf.get(Number(parts[2]));
  return row === undefined || row === null ? null : { gate, row };
}

/** Every shape that stands for a request says so to pointer and keyboard; a picture is one stop of the Tab key. */
function joinShapes(gates) {
  // A picture may be made of others.
  const outermost = (shape) => (shape.ownerSVGElement ? outermost(shape.ownerSVGElement) : shape);
  const pictures = new Set([...document.querySelectorAll('svg [data-r]')].map(outermost));
  for (const picture of pictures) {
    const shapes = [...picture.querySelectorAll('[data-r]')];
    const about = picture.getAttribute('aria-label') || picture.querySelector('title')?.textContent || 'Requests';
    picture.setAttribute('role', 'group');
    picture.setAttribute('aria-label', `${about} (the arrows go from request to request)`);
    shapes.forEach((shape, place) => {
      shape.setAttribute('tabindex', place ? '-1' : '0');
      shape.setAttribute('role', 'img');
      const name = `Request ${shape.dataset.r.split(':')[1]}`;
      if (!shape.hasAttribute('aria-label')) shape.setAttribute('aria-label', name);
    });
    picture.addEventListener('keydown', (event) => {
      const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      const place = shapes.indexOf(event.target.closest('[data-r]'));
      const next = step && place >= 0 && shapes[place + step];
      if (!next) return;
      event.preventDefault();
      shapes[place].setAttribute('tabindex', '-1');
      next.setAttribute('tabindex', '0');
      next.focus();
    });
  }
  const shapeOf = (event) => (event.target.closest ? event.target.closest('svg [data-r]') : null);
  const show = (shape, x, y) => {
    const found = named(gates, shape.dataset.r);
    if (found) tip.showRequest(shape, found.gate, found.row, x, y);
  };
  const choose = (shape) => {
    const found = named(gates, shape.dataset.r);
    if (found) found.gate.choose(found.row);
  };
  document.addEventListener('pointermove', (event) => {
    const shape = shapeOf(event);
    if (shape) show(shape, event.clientX, event.clientY);
    else if (tip.owner && tip.owner.dataset.r && !tip.box.contains(event.target)) tip.leave();
  });
  document.addEventListener('focusin', (event) => {
    const shape = shapeOf(event);
    if (!shape || !shape.matches(':focus-visible')) return;
    // A focus that scrolls the page closes the tooltip, so it is shown in the frame after.
    requestAnimationFrame(() => requestAnimationFrame(() => {
      const { left, bottom } = shape.getBoundingClientRect();
      if (document.activeElement === shape) show(shape, Math.max(0, left), bottom);
    }));
  });
  document.addEventListener('focusout', (event) => shapeOf(event) && tip.hide());
  document.addEventListener('click', (event) => {
    const shape = shapeOf(event);
    if (shape) choose(shape);
  });
  document.addEventListener('keydown', (event) => {
    const shape = shapeOf(event);
    if (shape && (event.key === 'Enter' || event.key === ' ')) {
      event.preventDefault();
      choose(shape);
    }
  });
}

// ---------------------------------------------------------------------------------------------- theme, print, start

/** From the system's colours to light to dark, remembered where the browser lets a file remember. */
const theme = {
  order: ['auto', 'light', 'dark'],
  now: 'auto',

  start(redraw) {
    try {
      const kept = localStorage.getItem('gate-theme');
      if (this.order.includes(kept)) this.now = kept;
    } catch {
      // No storage for this page: the theme lasts as long as the page.
    }
    this.button = document.getElementById('theme');
    this.apply(this.now);
    this.button?.addEventListener('click', () => {
      this.now = this.order[(this.order.indexOf(this.now) + 1) % this.order.length];
      this.apply(this.now);
      redraw();
      try {
        localStorage.setItem('gate-theme', this.now);
      } catch {
        // As above.
      }
    });
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  },

  apply(name) {
    if (name === 'auto') delete root.dataset.theme;
    else root.dataset.theme = name;
    if (this.button) this.button.textContent = `Theme: ${this.now}`;
  },
};

/** Paper is light, and shows what is folded. */
function joinPrinter(redraw) {
  let folded = [];
  addEventListener('beforeprint', () => {
    folded = [...document.querySelectorAll('details:not([open])')];
    folded.forEach((details) => (details.open = true));
    theme.apply('light');
    redraw();
  });
  addEventListener('afterprint', () => {
    folded.forEach((details) => (details.open = false));
    theme.apply(theme.now);
    redraw();
  });
}

/** Chooses the request the address names, and goes to it. */
function followAddress(gates) {
  const parts = /^#request=(\d+:\d+)$/.exec(decodeURIComponent(location.hash));
  const found = parts && named(gates, parts[1]);
  if (!found || found.gate.chosen === found.row) return;
  found.gate.choose(found.row);
  found.gate.table?.section.scrollIntoView();
}

function start() {
  const holder = document.getElementById('gate-data');
  const raw = holder ? JSON.parse(holder.textContent) : { gates: [] };
  const gates = (raw.gates || []).map((gate, number) => new Gate(gate, number));
  tip.start();
  // Each plot and table in a task of its own: the page answers in between.
  const tasks = [...document.querySelectorAll('.plot[data-gate]')].map((box) => () => {
    const gate = gates[Number(box.dataset.gate)];
    const { scenario, plot } = box.dataset;
    if (gate && gate.count) gate.plots.push(new Plot(box, gate, Number(scenario), plot));
  });
  document.querySelectorAll('section.requests[data-gate]').forEach((section) => tasks.push(() => {
    const gate = gates[Number(section.dataset.gate)];
    if (gate && gate.count) gate.table = new Table(section, gate);
  }));
  tasks.push(() => joinShapes(gates));
  tasks.push(() => {
    followAddress(gates);
    addEventListener('hashchange', () => followAddress(gates));
    root.dataset.ready = 'true';
  });
  const next = () => {
    const task = tasks.shift();
    if (!task) return;
    // What fails in one place keeps nothing from the others.
    setTimeout(next);
    task();
  };
  next();
  return gates;
}

let gates = [];
const redraw = () => gates.forEach((gate) => gate.plots.forEach((plot) => plot.draw()));
theme.start(redraw);
joinPrinter(redraw);
addEventListener('keydown', (event) => {
  if (event.key === 'Escape') tip.hide();
});
// After the first paint: a frame, and the task behind it.
requestAnimationFrame(() => setTimeout(() => (gates = start())));

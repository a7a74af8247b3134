// ------------------------------------------------------------------------------------------------------ the filter

const COMPARE = {
  '>': (value, bound) => value > bound,
  '<': (value, bound) => value < bound,
  '>=': (value, bound) => value >= bound,
  '<=': (value, bound) => value <= bound,
  '=': (value, bound) => value === bound,
  '!=': (value, bound) => value !== bound,
};

/**
 * A test of rows from words such as `ttft>800 outcome:http_5xx -scenario:chat "connection reset"`: all must hold. A
 * number may say `ms` or `s`; a word alone is looked for in the texts of a row.
 */
function filterOf(gate, text) {
  const words = text.match(/-?[\w]*(?:[<>!=:]+)?"[^"]*"?|\S+/g) || [];
  const tests = words.map((word) => {
    const isNot = word.length > 1 && word.startsWith('-');
    const test = wordTest(gate, (isNot ? word.slice(1) : word).replaceAll('"', ''));
    return isNot ? (row) => !test(row) : test;
  });
  return (row) => tests.every((test) => test(row));
}

function wordTest(gate, word) {
  const parts = /^([a-z0-9_]+)(>=|<=|!=|=|>|<|:)(.*)$/i.exec(word);
  const column = parts && COLUMNS.find((one) => one.key === parts[1].toLowerCase());
  if (parts && !column && parts[2] !== ':') {
    throw new Error(`no column is named ${parts[1]}; there are ${COLUMNS.map((one) => one.key).join(', ')}`);
  }
  if (!column) return textTest(gate, COLUMNS.filter((one) => one.names), word);
  const [, , sign, wanted] = parts;
  if (column.names) {
    if (![':', '=', '!='].includes(sign)) throw new Error(`${column.key} is text: ask ${column.key}:${wanted}`);
    const test = textTest(gate, [column], wanted);
    return sign === '!=' ? (row) => !test(row) : test;
  }
  const number = /^(-?\d+(?:\.\d*)?|-?\.\d+)(ms|s)?$/.exec(wanted);
  if (!number) throw new Error(`${column.key}${sign} wants a number, not ${wanted || 'nothing'}`);
  // Only the send time is shown in seconds.
  const isSeconds = number[2] === 's' || (column.key === 'due' && !number[2]);
  const bound = Number(number[1]) * (isSeconds ? 1000 : 1);
  const compare = COMPARE[sign === ':' ? '=' : sign];
  const values = gate.columns[column.key] || [];
  return (row) => isNumber(values[row]) && compare(values[row], bound);
}

/** Whether one of these columns has the text: asked once for each name, not for each row. */
function textTest(gate, columns, text) {
  const wanted = text.toLowerCase();
  const sets = columns.map((column) => {
    const holds = (gate[column.names] || []).map((name) => String(name).toLowerCase().includes(wanted));
    return [gate.columns[column.key] || [], holds];
  });
  return (row) => sets.some(([values, holds]) => holds[values[row]]);
}

// ------------------------------------------------------------------------------------------------------- the table

/** A field of CSV: quoted where it must be, and never a formula to a spreadsheet. */
function csvField(value) {
  if (value === null || value === undefined) return '';
  if (typeof value === 'number') return String(value);
  const text = /^[=+\-@\t\r]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** All requests of a gate. Only the rows that are seen are in the document. */
class Table {
  constructor(section, gate) {
    Object.assign(this, { section, gate, sort: { key: 'index', isDown: false }, drawn: new Map() });
    this.shown = gate.shown;
    this.rows = [];
    this.build();
    this.refilter();
  }

  build() {
    const { gate } = this;
    const named = gate.name || 'the gate';
    const refilter = () => this.refilter();
    const select = (label, key, names) => {
      const present = names.filter((_, number) => (gate.columns[key] || []).includes(number));
      if (present.length < 2) return null;
      const options = present.map((name) => el('option', { value: names.indexOf(name) }, name));
      const all = el('option', { value: '' }, 'all');
      const chooser = el('select', { onchange: refilter, 'data-key': key }, all, ...options);
      return el('label', {}, `${label} `, chooser);
    };
    const id = `filter-${gate.number}`;
    this.text = el('input', {
      id,
      type: 'search',
      autocomplete: 'off',
      spellcheck: 'false',
      placeholder: 'ttft>800 outcome:http_5xx',
      'aria-describedby': `${id}-said`,
      oninput: oncePerFrame(refilter),
    });
    const selects = [
      select('Outcome', 'outcome', gate.outcomes),
      select('Scenario', 'scenario', gate.scenarios),
      select('Arm', 'arm', gate.arms),
    ].filter(Boolean);
    this.selects = selects.map((label) => label.querySelector('select'));
    this.said = el('span', { id: `${id}-said`, class: 'said', role: 'status' });
    const csv = el('button', { type: 'button', class: 'export', onclick: () => this.save() }, 'Export CSV');
    const label = el('label', { for: id }, 'Filter');
    const bar = el('div', { class: 'bar' }, label, this.text, ...selects, this.said, csv);

    const heads = this.shown.map((column) => {
      const button = el('button', { type: 'button', onclick: () => this.sortBy(column.key) }, column.head);
      return el('th', { scope: 'col', 'data-key': column.key, class: this.kind(column) }, button);
    });
    this.body = el('tbody', {
      onclick: (event) => this.clicked(event),
      onkeydown: (event) => this.keyPressed(event),
    });
    this.before = el('tr', { 'aria-hidden': 'true', class: 'space' }, el('td', { colspan: this.shown.length }));
    this.after = this.before.cloneNode(true);
    this.table = el('table', { class: 'all-requests' },
      el('caption', { class: 'unseen' }, `Every request of ${named}`),
      el('thead', {}, el('tr', { 'aria-rowindex': '1' }, ...heads)), this.body);
    this.body.append(this.before, this.after);
    this.scroller = el('div', {
      class: 'scroller',
      tabindex: '0',
      role: 'region',
      'aria-label': `Requests of ${named}`,
      onscroll: oncePerFrame(() => this.draw()),
    }, this.table);
    this.detail = el('div', { class: 'detail', hidden: true });
    this.host = this.section.querySelector('.table') || this.section.appendChild(el('div'));
    this.host.replaceChildren(bar, this.scroller, this.detail);
    this.host.classList.add('interactive');
    new ResizeObserver(oncePerFrame(() => this.draw())).observe(this.scroller);
  }

  kind(column) {
    return column.names ? `text ${column.key}` : 'number';
  }

  /** Sorts by a column, and the other way round the second time. */
  sortBy(key) {
    const isDown = this.sort.key === key && !this.sort.isDown;
    this.sort = { key, isDown };
    this.resort();
  }

  /** Takes the rows that pass, and says how many. */
  refilter() {
    const { gate } = this;
    let test;
    try {
      test = filterOf(gate, this.text.value);
    } catch (error) {
      this.text.setAttribute('aria-invalid', 'true');
      this.said.textContent = error.message;
      return;
    }
    this.text.removeAttribute('aria-invalid');
    const wanted = this.selects.filter((select) => select.value !== '')
      .map((select) => [gate.columns[select.dataset.key], Number(select.value)]);
    this.rows = [];
    for (let row = 0; row < gate.count; row += 1) {
      if (wanted.every(([values, value]) => values[row] === value) && test(row)) this.rows.push(row);
    }
    const total = gate.total > gate.count ? ` (of ${gate.total} sent, ${gate.count} are kept here)` : '';
    this.said.textContent = `${this.rows.length} of ${gate.count}${total}`;
    this.resort();
  }

  /** Orders the rows; those without a value are always last. */
  resort() {
    const column = COLUMNS.find((one) => one.key === this.sort.key);
    const values = this.gate.columns[column.key] || [];
    let rank = (row) => values[row];
    if (column.names) {
      const names = this.gate[column.names];
      const sorted = names.map((_, number) => number).sort((one, other) => (names[one] < names[other] ? -1 : 1));
      const ranks = [];
      sorted.forEach((number, place) => (ranks[number] = place));
      rank = (row) => ranks[values[row]];
    }
    const sign = this.sort.isDown ? -1 : 1;
    const keys = new Float64Array(this.gate.count).fill(Infinity);
    for (const row of this.rows) {
      const key = rank(row);
      if (isNumber(key)) keys[row] = key * sign;
    }
    const order = (one, other) => (keys[one] === keys[other] ? one - other : keys[one] - keys[other]);
    this.rows.sort(order);
    for (const head of this.table.querySelectorAll('th')) {
      const isSorted = head.dataset.key === column.key;
      if (isSorted) head.setAttribute('aria-sort', this.sort.isDown ? 'descending' : 'ascending');
      else head.removeAttribute('aria-sort');
    }
    this.table.setAttribute('aria-rowcount', this.rows.length + 1);
    this.clear();
    this.scroller.scrollTop = 0;
    this.draw();
  }

  clear() {
    this.drawn.forEach((line) => line.remove());
    this.drawn.clear();
  }

  /** Puts the rows that are seen into the document; those that stay keep their element and so the focus. */
  draw() {
    const seen = Math.ceil(this.scroller.clientHeight / ROW_HEIGHT) || 20;
    const top = Math.floor(this.scroller.scrollTop / ROW_HEIGHT);
    const first = Math.max(0, Math.min(top - ROWS_AROUND, this.rows.length - seen));
    const last = Math.min(this.rows.length, top + seen + ROWS_AROUND);
    const isFocused = this.body.contains(document.activeElement);
    for (const [place, line] of this.drawn) {
      if (place < first || place >= last) {
        line.remove();
        this.drawn.delete(place);
      }
    }
    let next = this.after;
    for (let place = last - 1; place >= first; place -= 1) {
      let line = this.drawn.get(place);
      if (!line) {
        line = this.line(place);
        this.drawn.set(place, line);
        this.body.insertBefore(line, next);
      }
      next = line;
    }
    this.before.firstChild.style.height = `${first * ROW_HEIGHT}px`;
    this.after.firstChild.style.height = `${(this.rows.length - last) * ROW_HEIGHT}px`;
    // A focused row that was scrolled away leaves the focus to the table.
    if (isFocused && !this.body.contains(document.activeElement)) this.scroller.focus({ preventScroll: true });
  }

  line(place) {
    const row = this.rows[place];
    const cells = this.shown.map((column) => {
      const value = this.gate.value(column.key, row);
      if (column.key === 'index') {
        const button = el('button', { type: 'button', title: 'Show this request' }, whole(value));
        return el('td', { class: 'number' }, button);
      }
      if (column.names) {
        const text = this.gate.nameOf(column, row);
        return el('td', { class: this.kind(column), title: column.key === 'message' && text ? text : null }, text);
      }
      const show = column.cell || (column.show === whole ? whole : decimal);
      return el('td', { class: 'number' }, value === null ? '–' : show(value));
    });
    const classes = [row === this.gate.chosen && 'chosen', this.gate.hasFailed(row) && 'failed'].filter(Boolean);
    return el('tr', {
      'aria-rowindex': place + 2,
      'data-row': row,
      class: classes.join(' ') || null,
      'aria-current': row === this.gate.chosen ? 'true' : null,
    }, ...cells);
  }

  clicked(event) {
    const line = event.target.closest('tr[data-row]');
    if (line && !String(getSelection())) this.gate.choose(Number(line.dataset.row), { from: 'table' });
  }

  /** The arrows go from row to row. */
  keyPressed(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const line = event.target.closest('tr[data-row]');
    if (!step || !line) return;
    event.preventDefault();
    const place = this.rows.indexOf(Number(line.dataset.row)) + step;
    if (place < 0 || place >= this.rows.length) return;
    this.reveal(place);
    this.drawn.get(place).querySelector('button').focus({ preventScroll: true });
  }

  /** Scrolls the table, not the page, so that a row is seen. */
  reveal(place) {
    const top = place * ROW_HEIGHT;
    const height = this.scroller.clientHeight - 2 * ROW_HEIGHT;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + height) this.scroller.scrollTop = top - height;
    this.draw();
  }

  showChosen(isRevealed) {
    const { chosen } = this.gate;
    this.body.querySelectorAll('tr[data-row]').forEach((line) => {
      const isChosen = Number(line.dataset.row) === chosen;
      line.classList.toggle('chosen', isChosen);
      if (isChosen) line.setAttribute('aria-current', 'true');
      else line.removeAttribute('aria-current');
    });
    const place = this.rows.indexOf(chosen);
    if (isRevealed && place >= 0) this.reveal(place);
    this.detail.hidden = chosen === null;
    if (chosen !== null) this.showDetail(chosen);
  }

  /** Everything that is known of the chosen request. */
  showDetail(row) {
    const facts = this.gate.facts(row).map(([term, text]) => el('div', {}, el('dt', {}, term), el('dd', {}, text)));
    const close = el('button', { type: 'button', class: 'close', onclick: () => this.gate.choose(null) }, 'Close');
    const title = `Request ${this.gate.value('index', row)}`;
    this.detail.replaceChildren(el('div', { class: 'bar' }, el('strong', {}, title), close), el('dl', {}, ...facts));
    const times = this.gate.tokenTimes(row);
    this.detail.append(times && times.length
      ? timeline(times, this.gate.value('e2e', row))
      : el('p', { class: 'note' }, 'The times of its tokens were not kept (`journal: {tokens: N}` keeps more).'));
  }

  /** Gives the rows that are shown as a file. */
  save() {
    const { gate } = this;
    const field = (column, row) => (column.names ? gate.nameOf(column, row) : gate.value(column.key, row));
    const line = (row) => COLUMNS.map((column) => csvField(field(column, row)));
    const lines = [COLUMNS.map((column) => column.csv), ...this.rows.map(line)];
    const text = lines.map((fields) => `${fields.join(',')}\r\n`).join('');
    const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }));
    const name = String(gate.name || 'gate').replace(/[^\w.-]+/g, '-');
    const link = el('a', { href: url, download: `${name}-requests.csv` });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  }
}

/** The tokens of one request on its own axis: the wait, then a line for each token. */
function timeline(times, endToEnd) {
  const end = Math.max(endToEnd || 0, times[times.length - 1]) || 1;
  const x = (at) => (at / end) * 1000;
  const gaps = times.slice(1).map((at, place) => at - times[place]);
  const longest = highest(gaps, 0);
  const said = `${times.length} tokens: the first after ${millis(times[0])}, the longest gap ${millis(longest)}, `
    + `the last at ${millis(times[times.length - 1])}`;
  const path = times.map((at) => `M${x(at).toFixed(2)} 6V34`).join('');
  const shapes = [
    svg('rect', { class: 'wait', x: 0, y: 14, width: Math.max(1, x(times[0])), height: 12 }),
    svg('path', { class: 'tokens', d: path, 'vector-effect': 'non-scaling-stroke' }),
  ];
  if (gaps.length && longest > 0) {
    const from = times[gaps.indexOf(longest)];
    shapes.splice(1, 0, svg('rect', { class: 'stall', x: x(from), y: 14, width: x(longest), height: 12 }));
  }
  const picture = svg('svg', {
    class: 'timeline', viewBox: '0 0 1000 40', preserveAspectRatio: 'none', role: 'img', 'aria-label': said,
  }, ...shapes);
  return el('figure', {}, picture, el('figcaption', {}, said));
}

// ----------------------------------------------------------------------------------------------------- the columns

/** What is known of a request, in the order of table and export. `names`: the list a column's numbers point into. */
const COLUMNS = [
  { key: 'index', head: '#', label: 'Request', show: whole, csv: 'index' },
  { key: 'scenario', head: 'Scenario', label: 'Scenario', names: 'scenarios', csv: 'scenario', needs: 2 },
  { key: 'arm', head: 'Arm', label: 'Arm', names: 'arms', csv: 'arm', needs: 2 },
  { key: 'turn', head: 'Turn', label: 'Turn', show: whole, csv: 'turn', needs: 2 },
  { key: 'due', head: 'Due, s', label: 'Due', cell: (value) => decimal(value / 1000), show: seconds, csv: 'due_ms' },
  { key: 'lag', head: 'Late, ms', label: 'Sent late by', show: millis, csv: 'lag_ms' },
  { key: 'connect', head: 'Connect, ms', label: 'Connected in', show: millis, csv: 'connect_ms' },
  { key: 'ttft', head: 'TTFT, ms', label: 'TTFT', show: millis, csv: 'ttft_ms' },
  { key: 'tpot', head: 'TPOT, ms', label: 'TPOT', show: millis, csv: 'tpot_ms' },
  { key: 'e2e', head: 'End to end, ms', label: 'End to end', show: millis, csv: 'e2e_ms' },
  { key: 'stall', head: 'Stall, ms', label: 'Longest gap', show: millis, csv: 'stall_ms' },
  { key: 'input', head: 'Input', label: 'Input tokens', show: whole, csv: 'input_tokens' },
  { key: 'cached', head: 'Cached', label: 'Cached tokens', show: whole, csv: 'cached_tokens' },
  { key: 'output', head: 'Output', label: 'Output tokens', show: whole, csv: 'output_tokens' },
  { key: 'outcome', head: 'Outcome', label: 'Outcome', names: 'outcomes', csv: 'outcome' },
  { key: 'status', head: 'Status', label: 'Status', show: whole, csv: 'status' },
  { key: 'message', head: 'Message', label: 'Message', names: 'messages', csv: 'message' },
];

/** One gate: its requests by column, and what is looked at. */
class Gate {
  constructor(raw, number) {
    Object.assign(this, { scenarios: [], outcomes: [], messages: [], slo: [], limits: [], load: [], server: [] });
    Object.assign(this, { marks: [], arms: ARMS }, raw, { number });
    this.columns = raw.requests || {};
    this.count = (this.columns.index || []).length;
    this.plots = [];
    this.chosen = null;
    this.shown = this.shownColumns();
    this.rowOf = new Map((this.columns.index || []).map((index, row) => [index, row]));
  }

  /** The value of a column: a number, or `null`. */
  value(key, row) {
    const column = this.columns[key];
    const value = column ? column[row] : null;
    return value === undefined ? null : value;
  }

  /** The value of a column whose numbers point into a list of names. */
  nameOf(column, row) {
    const names = this[column.names];
    return names[this.value(column.key, row)] || '';
  }

  text(column, row) {
    return column.names ? this.nameOf(column, row) : column.show(this.value(column.key, row));
  }

  hasFailed(row) {
    return this.outcomes[this.value('outcome', row)] !== 'ok';
  }

  /** The columns that say something in this gate. */
  shownColumns() {
    return COLUMNS.filter((column) => {
      const values = this.columns[column.key] || [];
      if (column.needs) return values.some((value) => value !== values[0]);
      return column.key === 'index' || values.some((value) => value !== null && value !== -1);
    });
  }

  /** What a tooltip says of a request. */
  facts(row) {
    const known = this.shown.filter((column) => {
      const value = this.value(column.key, row);
      return value !== null && value !== -1 && !(column.key === 'turn' && value === 0);
    });
    return known.map((column) => [column.label, this.text(column, row)]).filter(([, text]) => text !== '');
  }

  /** The moments of a request's tokens in ms after it was due, where they were kept. */
  tokenTimes(row) {
    const index = this.value('index', row);
    if (this.tokens && this.tokens[index]) return this.tokens[index];
    const gaps = this.token_gaps && this.token_gaps[index];
    if (!gaps) return null;
    let at = this.value('ttft', row) || 0;
    return [at, ...gaps.map((gap) => (at += gap))];
  }

  /** Shows this range of seconds in every plot of the gate; `null`: everything. */
  look(range) {
    this.plots.forEach((plot) => plot.look(range));
  }

  /** Makes a request the chosen one everywhere. */
  choose(row, { from } = {}) {
    this.chosen = row;
    const name = row === null ? null : `${this.number}:${this.value('index', row)}`;
    document.querySelectorAll('[data-r].chosen').forEach((shape) => shape.classList.remove('chosen'));
    if (name) document.querySelectorAll(`[data-r="${name}"]`).forEach((shape) => shape.classList.add('chosen'));
    this.plots.forEach((plot) => plot.redraw());
    if (this.table) this.table.showChosen(from !== 'table');
    try {
      history.replaceState(null, '', name ? `#request=${name}` : '#');
    } catch {
      // A page inside another may not have a say in its address.
    }
  }
}

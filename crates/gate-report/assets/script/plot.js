// -------------------------------------------------------------------------------------------------------- the plots

/** The colours of the page as they are now. */
const colour = (name) => getComputedStyle(root).getPropertyValue(`--plot-${name}`).trim() || 'gray';

/** A value of every request of a scenario by the time it was due. */
class Plot {
  constructor(box, gate, scenario, key) {
    Object.assign(this, { box, gate, scenario, key, isLog: false, hidden: new Set(), view: null, server: null });
    const due = (row) => gate.value('due', row);
    const isHere = (row) => gate.value('scenario', row) === scenario && isNumber(due(row));
    this.rows = Array.from({ length: gate.count }, (_, row) => row).filter(isHere);
    this.rows.sort((one, other) => due(one) - due(other));
    this.x = Float64Array.from(this.rows, (row) => due(row) / 1000);
    this.y = Float64Array.from(this.rows, (row) => (gate.hasFailed(row) ? NaN : gate.value(key, row) ?? NaN));
    this.arm = Uint8Array.from(this.rows, (row) => gate.value('arm', row) || 0);
    this.failed = Uint8Array.from(this.rows, (row) => (gate.hasFailed(row) ? 1 : 0));
    this.hasFailed = this.failed.includes(1);
    const name = gate.scenarios[scenario];
    const of = (list) => list.filter((one) => [undefined, null, scenario, name].includes(one.scenario));
    this.limits = of(gate.limits).filter((limit) => limit.plot === key && isNumber(limit.value));
    const slo = gate.slo[scenario] && gate.slo[scenario][key];
    if (isNumber(slo)) this.limits.push({ value: slo, label: `slo: ${key} ≤ ${millis(slo)}` });
    this.load = of(gate.load).flatMap((load) => load.points || []).map(([at, rate]) => [at / 1000, rate]);
    this.marks = of(gate.marks);
    const last = this.x.length ? this.x[this.x.length - 1] : 1;
    const margin = Math.max((last - (this.x[0] || 0)) * 0.015, 0.01);
    this.whole = [(this.x[0] || 0) - margin, last + margin];
    this.label = key.toUpperCase();
    this.build();
  }

  /** The frame around the canvas: buttons, legend, the place of the plot. */
  build() {
    const button = (text, act, more) => el('button', { type: 'button', onclick: act, ...more }, text);
    const log = button('Log', () => {
      this.isLog = !this.isLog;
      log.setAttribute('aria-pressed', this.isLog);
      this.draw();
    }, { 'aria-pressed': 'false', title: 'A logarithmic axis of the values' });
    this.reset = button('Reset zoom', () => this.gate.look(null), { class: 'reset', disabled: true });
    this.stage = el('div', {
      class: 'stage',
      tabindex: '0',
      role: 'group',
      'aria-label': `${this.label} by send time: + and - zoom, the arrows move, 0 shows everything`,
      onkeydown: (event) => this.keyPressed(event),
      onpointermove: (event) => this.pointAt(event),
      onpointerleave: () => tip.leave(),
      onpointerdown: (event) => (this.pressed = event.clientX),
      onclick: (event) => this.clicked(event),
    });
    this.legend = el('div', { class: 'legend' });
    const tools = el('span', { class: 'tools' }, log, this.reset);
    this.box.replaceChildren(el('div', { class: 'bar' }, this.legend, tools), this.stage);
    this.buildLegend();
    this.draw();
    const resized = oncePerFrame(() => {
      const width = this.stage.clientWidth;
      if (this.u && width && width !== this.u.width) this.u.setSize({ width, height: this.height() });
    });
    new ResizeObserver(resized).observe(this.stage);
  }

  buildLegend() {
    const series = [];
    const hasReference = this.arm.includes(1);
    if (this.arm.includes(0)) series.push(['target', 'circle', hasReference ? 'target' : 'requests']);
    if (hasReference) series.push(['reference', 'square', 'reference']);
    if (this.hasFailed) series.push(['failed', 'cross', 'failed']);
    this.topRate = highest(this.load.map(([, rate]) => rate), 1e-9);
    if (this.load.length) series.push(['load', 'area', `planned rate (up to ${decimal(this.topRate)}/s)`]);
    const toggles = series.map(([name, shape, text]) => this.toggle(shape, name, text, true, (isOn) => {
      if (isOn) this.hidden.delete(name);
      else this.hidden.add(name);
      this.redraw();
    }));
    const isHere = ({ scenarios }) => !scenarios || scenarios.includes(this.scenario);
    const choose = (metric) => (isOn, self) => {
      servers.forEach((other) => other.setAttribute('aria-pressed', isOn && other === self));
      this.server = isOn ? metric : null;
      this.draw();
    };
    const metrics = this.gate.server.filter(isHere);
    const servers = metrics.map((metric) => this.toggle('line', 'server', metric.name, false, choose(metric)));
    this.legend.replaceChildren(...toggles, ...servers);
  }

  /** A button of the legend that shows or hides a series. */
  toggle(shape, name, text, isOn, act) {
    const shapes = {
      circle: ['circle', { cx: 7, cy: 7, r: 4, class: 'fill' }],
      square: ['rect', { x: 3, y: 3, width: 8, height: 8, class: 'line' }],
      cross: ['path', { d: 'M3 3L11 11M11 3L3 11', class: 'line' }],
      area: ['path', { d: 'M0 12V6H7V3H14V12Z', class: 'fill' }],
      line: ['path', { d: 'M0 10L5 5L9 8L14 2', class: 'line' }],
    };
    const picture = svg('svg', { viewBox: '0 0 14 14', 'aria-hidden': 'true' }, svg(...shapes[shape]));
    picture.style.color = `var(--plot-${name})`;
    const self = el('button', { type: 'button', 'aria-pressed': String(isOn), onclick: () => {
      const isOnNow = self.getAttribute('aria-pressed') !== 'true';
      self.setAttribute('aria-pressed', isOnNow);
      act(isOnNow, self);
    } }, picture, text);
    return self;
  }

  height() {
    return this.stage.clientWidth < 500 ? 220 : 280;
  }

  range() {
    return this.view || this.whole;
  }

  /** The places in view, as a half-open range. */
  inView() {
    const [from, to] = this.range();
    return [lowerBound(this.x, from), lowerBound(this.x, to + 1e-9)];
  }

  /** From the lowest to the highest value in view, with the limits that are near. */
  yRange() {
    let [low, high] = [Infinity, 0];
    const [from, to] = this.inView();
    for (let at = from; at < to; at += 1) {
      const value = this.y[at];
      if (value > high) high = value;
      if (value > 0 && value < low) low = value;
    }
    const near = this.limits.map((limit) => limit.value).filter((value) => !high || value <= high * 2.5);
    high = Math.max(high, ...near) || 1;
    // Failed requests have the upper edge to themselves.
    const room = this.hasFailed ? 1.2 : 1.1;
    if (!this.isLog) return [0, high * room];
    low = Math.min(low, high / 2, ...near.filter((value) => value > 0)) * 0.8;
    return [low, high * (high / low) ** (room - 1)];
  }

  /** Draws everything anew: at first, and where axes or colours change. */
  draw() {
    if (this.u) this.u.destroy();
    this.bins = null;
    const axis = {
      stroke: () => colour('axis'),
      grid: { stroke: () => colour('grid'), width: 1 },
      ticks: { stroke: () => colour('grid'), width: 1 },
      font: '12px system-ui, sans-serif',
      labelFont: '12px system-ui, sans-serif',
      labelSize: 18,
    };
    const short = (_, values) => values.map((value) => (value === null ? '' : String(+value.toPrecision(6))));
    const decades = { splits: (u, _, low, high) => roundNumbers(low, high), filter: (u, splits) => splits };
    const server = this.server && this.server.points.map(([, value]) => value).filter(isNumber);
    const top = server ? highest(server, 1e-9) * 1.1 : 1;
    const options = {
      width: this.stage.clientWidth || 600,
      height: this.height(),
      padding: [10, this.server ? 0 : 14, 0, 0],
      legend: { show: false },
      cursor: {
        y: false,
        points: { show: false },
        drag: { x: true, y: false, setScale: false },
        bind: { dblclick: () => () => this.gate.look(null) },
        sync: {
          key: `gate-${this.gate.number}`,
          filters: { pub: (type) => type === 'mousemove' || type === 'mouseleave' },
        },
      },
      scales: {
        x: { time: false, range: () => this.range() },
        y: { distr: this.isLog ? 3 : 1, range: () => this.yRange() },
        server: { range: () => [0, top] },
      },
      axes: [
        { ...axis, label: 'send time, s', size: 34, values: short },
        { ...axis, label: `${this.label}, ms`, scale: 'y', size: 58, values: short, ...(this.isLog ? decades : {}) },
        {
          ...axis,
          label: this.server ? this.server.name + (this.server.unit ? `, ${this.server.unit}` : '') : '',
          scale: 'server',
          side: 1,
          size: 54,
          show: Boolean(this.server),
          grid: { show: false },
          stroke: () => colour('server'),
        },
      ],
      // The axes are uPlot's; what stands between them is drawn below.
      series: [{}, ...['y', 'server'].map((scale) => ({ scale, paths: () => null, points: { show: false } }))],
      hooks: {
        drawClear: [() => this.inside(() => this.drawLoad())],
        draw: [() => this.inside(() => this.drawRequests())],
        setSelect: [(u) => this.selected(u)],
      },
    };
    this.u = new uPlot(options, [this.whole, [1, 1], [1, 1]], this.stage);
    this.look(this.view);
  }

  redraw() {
    if (this.u) this.u.redraw(false, false);
  }

  look(range) {
    this.view = range;
    this.bins = null;
    this.reset.disabled = !range;
    this.box.dataset.view = this.range().map((bound) => bound.toFixed(4)).join(' ');
    if (this.u) this.u.batch(() => {
      const [min, max] = this.range();
      this.u.setScale('x', { min, max });
      const [low, high] = this.yRange();
      this.box.dataset.values = `${low} ${high}`;
      this.u.setScale('y', { min: low, max: high });
    });
  }

  selected(u) {
    const { left, width } = u.select;
    if (width > 4) {
      tip.hide();
      this.gate.look([u.posToVal(left, 'x'), u.posToVal(left + width, 'x')]);
    }
    if (width > 0) u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  }

  keyPressed(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const [from, to] = this.range();
    const [middle, half] = [(from + to) / 2, (to - from) / 2];
    const around = (centre, reach) => {
      const [first, last] = this.whole;
      const range = [Math.max(first, centre - reach), Math.min(last, centre + reach)];
      this.gate.look(range[0] <= first && range[1] >= last ? null : range);
    };
    const acts = {
      '+': () => around(middle, half / 2),
      '=': () => around(middle, half / 2),
      '-': () => around(middle, half * 2),
      ArrowLeft: () => around(Math.max(middle - half / 2, this.whole[0] + half), half),
      ArrowRight: () => around(Math.min(middle + half / 2, this.whole[1] - half), half),
      0: () => this.gate.look(null),
      Escape: () => this.gate.look(null),
    };
    // The first Escape closes the tooltip, as it does everywhere.
    if (!acts[event.key] || (event.key === 'Escape' && !tip.box.hidden)) return;
    event.preventDefault();
    acts[event.key]();
  }

  // Drawing, in the canvas's own pixels.

  inside(draw) {
    const { ctx, bbox } = this.u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    draw(ctx, bbox);
    ctx.restore();
  }

  px(seconds) {
    return this.u.valToPos(seconds, 'x', true);
  }

  py(value, scale) {
    return this.u.valToPos(value, scale || 'y', true);
  }

  /** The planned rate: a faint shape behind everything, from point to point. */
  drawLoad() {
    if (!this.load.length || this.hidden.has('load')) return;
    const { ctx, bbox } = this.u;
    const bottom = bbox.top + bbox.height;
    const height = (rate) => bottom - (rate / this.topRate) * bbox.height * 0.5;
    ctx.beginPath();
    ctx.moveTo(this.px(this.load[0][0]), bottom);
    this.load.forEach(([at, rate]) => ctx.lineTo(this.px(at), height(rate)));
    ctx.lineTo(this.px(this.load[this.load.length - 1][0]), bottom);
    ctx.closePath();
    ctx.globalAlpha = 0.4;
    ctx.fillStyle = colour('load');
    ctx.fill();
  }

  drawRequests() {
    const [from, to] = this.inView();
    this.drawServer();
    if (to - from > POINTS_IN_VIEW) this.drawBands();
    else this.drawPoints(from, to);
    this.drawLimits();
    this.drawMarks();
    this.drawChosen();
  }

  drawPoints(from, to) {
    const { ctx } = this.u;
    const unit = devicePixelRatio || 1;
    const size = (to - from > 1000 ? 2 : 3.2) * unit;
    const colours = ARMS.map(colour);
    ctx.lineWidth = 1.5 * unit;
    for (let at = from; at < to; at += 1) {
      const arm = this.arm[at];
      if (this.failed[at] || Number.isNaN(this.y[at]) || this.hidden.has(ARMS[arm])) continue;
      const [x, y] = [this.px(this.x[at]), this.py(this.y[at])];
      ctx.beginPath();
      if (arm) {
        ctx.strokeStyle = colours[arm];
        ctx.strokeRect(x - size, y - size, size * 2, size * 2);
      } else {
        ctx.fillStyle = colours[arm];
        ctx.arc(x, y, size, 0, 2 * Math.PI);
        ctx.fill();
      }
    }
    const crosses = [];
    for (let at = from; at < to; at += 1) if (this.failed[at]) crosses.push(this.x[at]);
    this.drawCrosses(crosses);
  }

  /** Failed requests: crosses along the upper edge, wherever their times would be. */
  drawCrosses(places) {
    if (this.hidden.has('failed')) return;
    const { ctx } = this.u;
    const size = 4 * (devicePixelRatio || 1);
    const y = this.failedY();
    ctx.strokeStyle = colour('failed');
    ctx.lineWidth = size / 2;
    ctx.beginPath();
    for (const place of places) {
      const x = this.px(place);
      ctx.moveTo(x - size, y - size);
      ctx.lineTo(x + size, y + size);
      ctx.moveTo(x + size, y - size);
      ctx.lineTo(x - size, y + size);
    }
    ctx.stroke();
  }

  failedY() {
    return this.u.bbox.top + 8 * (devicePixelRatio || 1);
  }

  /** What lies in each slice of the view: by arm the sorted values, and how many failed. */
  binned() {
    if (this.bins) return this.bins;
    const [from, to] = this.inView();
    const [start, end] = this.range();
    const count = Math.max(40, Math.min(240, Math.floor(this.u.bbox.width / (devicePixelRatio || 1) / 5)));
    const width = (end - start) / count;
    const values = Array.from({ length: count }, () => [[], []]);
    const failed = new Array(count).fill(0);
    for (let at = from; at < to; at += 1) {
      const bin = Math.min(count - 1, Math.floor((this.x[at] - start) / width));
      if (this.failed[at]) failed[bin] += 1;
      else if (!Number.isNaN(this.y[at])) values[bin][this.arm[at]].push(this.y[at]);
    }
    this.bins = values.map((arms, bin) => ({
      from: start + bin * width,
      to: start + (bin + 1) * width,
      failed: failed[bin],
      arms: arms.map((arm) => {
        const sorted = Float64Array.from(arm).sort();
        const { length } = sorted;
        if (!length) return null;
        return { n: length, p50: quantile(sorted, 0.5), p95: quantile(sorted, 0.95), max: sorted[length - 1] };
      }),
    }));
    return this.bins;
  }

  /** The median, the 95th percentile and the maximum of each slice. */
  drawBands() {
    const { ctx } = this.u;
    const unit = devicePixelRatio || 1;
    const bins = this.binned();
    ARMS.forEach((name, arm) => {
      if (this.hidden.has(name)) return;
      const full = bins.filter((bin) => bin.arms[arm]);
      if (!full.length) return;
      const middle = (bin) => this.px((bin.from + bin.to) / 2);
      const line = (key, list, isStart) => list.forEach((bin, place) => {
        const to = [middle(bin), this.py(bin.arms[arm][key])];
        if (isStart && !place) ctx.moveTo(...to);
        else ctx.lineTo(...to);
      });
      ctx.fillStyle = ctx.strokeStyle = colour(name);
      ctx.globalAlpha = 0.25;
      ctx.beginPath();
      line('p50', full, true);
      line('p95', [...full].reverse(), false);
      ctx.fill();
      ctx.globalAlpha = 1;
      ctx.setLineDash(arm ? [5 * unit, 3 * unit] : []);
      for (const [key, width] of [['p50', 2], ['p95', 1]]) {
        ctx.lineWidth = width * unit;
        ctx.beginPath();
        line(key, full, true);
        ctx.stroke();
      }
      ctx.setLineDash([]);
      for (const bin of full) {
        const [x, y] = [middle(bin), this.py(bin.arms[arm].max)];
        ctx.fillRect(x - 2 * unit, y - unit, 4 * unit, 2 * unit);
      }
    });
    this.drawCrosses(bins.filter((bin) => bin.failed).map((bin) => (bin.from + bin.to) / 2));
  }

  /** Text with a rim of the page's colour, so that it is read over points and lines. */
  write(text, x, y, ink) {
    const { ctx } = this.u;
    ctx.lineJoin = 'round';
    ctx.textBaseline = 'alphabetic';
    ctx.lineWidth = 4 * (devicePixelRatio || 1);
    ctx.strokeStyle = colour('surface');
    ctx.strokeText(text, x, y);
    ctx.fillStyle = ink;
    ctx.fillText(text, x, y);
  }

  drawLimits() {
    const { ctx, bbox } = this.u;
    const unit = devicePixelRatio || 1;
    ctx.font = `${12 * unit}px system-ui, sans-serif`;
    ctx.textAlign = 'right';
    // The highest first; a label that would cover another goes below its line.
    let taken = -Infinity;
    for (const limit of [...this.limits].sort((one, other) => other.value - one.value)) {
      const y = this.py(limit.value);
      const isOutside = y < bbox.top;
      const ink = colour(limit.broken ? 'failed' : 'limit');
      if (!isOutside) {
        ctx.strokeStyle = ink;
        ctx.lineWidth = (limit.broken ? 2 : 1.5) * unit;
        ctx.setLineDash(limit.required ? [] : [6 * unit, 4 * unit]);
        ctx.beginPath();
        ctx.moveTo(bbox.left, y);
        ctx.lineTo(bbox.left + bbox.width, y);
        ctx.stroke();
        ctx.setLineDash([]);
      }
      const text = `${isOutside ? '↑ ' : ''}${limit.label}${limit.broken ? ' (broken)' : ''}`;
      const ceiling = bbox.top + (this.hasFailed ? 30 : 14) * unit;
      let base = isOutside ? ceiling : y - 5 * unit;
      if (base < ceiling) base = Math.max(y + 14 * unit, ceiling);
      if (base < taken + 14 * unit) base = taken + 14 * unit;
      if (base > y - 4 * unit && base < y + 14 * unit) base = y + 14 * unit;
      taken = base;
      this.write(text, bbox.left + bbox.width - 6 * unit, base, ink);
    }
  }

  /** Where a pattern was found: a knee, a recovery, a drift. */
  drawMarks() {
    const { ctx, bbox } = this.u;
    const unit = devicePixelRatio || 1;
    for (const mark of this.marks) {
      const x = this.px(mark.at / 1000);
      ctx.strokeStyle = colour('mark');
      ctx.lineWidth = 1.5 * unit;
      ctx.setLineDash([2 * unit, 3 * unit]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.setLineDash([]);
      const isLeft = x < bbox.left + bbox.width / 2;
      ctx.font = `${12 * unit}px system-ui, sans-serif`;
      ctx.textAlign = isLeft ? 'left' : 'right';
      this.write(mark.label, x + (isLeft ? 5 : -5) * unit, bbox.top + bbox.height - 8 * unit, colour('mark'));
    }
  }

  drawServer() {
    if (!this.server) return;
    const { ctx } = this.u;
    ctx.strokeStyle = colour('server');
    ctx.lineWidth = 1.5 * (devicePixelRatio || 1);
    ctx.beginPath();
    let isDown = false;
    for (const [at, value] of this.server.points) {
      if (!isNumber(value)) isDown = false;
      else {
        const to = [this.px(at / 1000), this.py(value, 'server')];
        if (isDown) ctx.lineTo(...to);
        else ctx.moveTo(...to);
        isDown = true;
      }
    }
    ctx.stroke();
  }

  drawChosen() {
    const row = this.gate.chosen;
    if (row === null || this.gate.value('scenario', row) !== this.scenario) return;
    const value = this.gate.value(this.key, row);
    const y = this.gate.hasFailed(row) ? this.failedY() : isNumber(value) ? this.py(value) : null;
    if (y === null) return;
    const { ctx } = this.u;
    const unit = devicePixelRatio || 1;
    ctx.strokeStyle = colour('chosen');
    ctx.lineWidth = 2.5 * unit;
    ctx.beginPath();
    ctx.arc(this.px(this.gate.value('due', row) / 1000), y, 8 * unit, 0, 2 * Math.PI);
    ctx.stroke();
  }

  // The pointer.

  /** The place of the nearest request within reach of a point of the canvas, or -1. */
  nearest(x, y) {
    const unit = devicePixelRatio || 1;
    const reach = 24 * unit;
    const second = (left) => this.u.posToVal(left, 'x', true);
    const last = lowerBound(this.x, second(x + reach));
    let [found, distance] = [-1, reach * reach];
    for (let at = lowerBound(this.x, second(x - reach)); at < last; at += 1) {
      const isFailed = this.failed[at];
      if (this.hidden.has(isFailed ? 'failed' : ARMS[this.arm[at]])) continue;
      const top = isFailed ? this.failedY() : this.py(this.y[at]);
      const apart = (this.px(this.x[at]) - x) ** 2 + (top - y) ** 2;
      if (apart < distance) [found, distance] = [at, apart];
    }
    return found;
  }

  /** What is under the pointer: `{row}`, `{bin}` or nothing. */
  under(event) {
    const canvas = this.u.ctx.canvas.getBoundingClientRect();
    const unit = devicePixelRatio || 1;
    const [x, y] = [(event.clientX - canvas.left) * unit, (event.clientY - canvas.top) * unit];
    const { left, top, width, height } = this.u.bbox;
    if (x < left || x > left + width || y < top || y > top + height) return {};
    const [from, to] = this.inView();
    if (to - from > POINTS_IN_VIEW) {
      const at = this.u.posToVal(x, 'x', true);
      return { bin: this.binned().find((bin) => at >= bin.from && at < bin.to) };
    }
    const at = this.nearest(x, y);
    return at < 0 ? {} : { row: this.rows[at] };
  }

  pointAt(event) {
    if (event.buttons) return;
    const { row, bin } = this.under(event);
    if (row !== undefined) tip.showRequest(this.stage, this.gate, row, event.clientX, event.clientY);
    else if (bin) {
      const facts = bin.arms.flatMap((arm, number) => (arm ? [
        [`${ARMS[number]} requests`, whole(arm.n)],
        ['p50', millis(arm.p50)],
        ['p95', millis(arm.p95)],
        ['max', millis(arm.max)],
      ] : []));
      facts.push(['failed', whole(bin.failed)]);
      const title = `${bin.from.toFixed(2)} to ${bin.to.toFixed(2)} s`;
      tip.show(this.stage, title, facts, event.clientX, event.clientY, `bin ${bin.from}`);
    } else if (tip.owner === this.stage) tip.leave();
  }

  clicked(event) {
    if (Math.abs(event.clientX - (this.pressed ?? event.clientX)) > 4) return;
    const { row } = this.under(event);
    if (row !== undefined) this.gate.choose(row);
  }
}

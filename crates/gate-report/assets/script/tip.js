// ----------------------------------------------------------------------------------------------------- the tooltip

/** One tooltip for the page: it stays while the pointer is on it, and Escape closes it (WCAG 1.4.13). */
const tip = {
  box: el('div', { id: 'tip', role: 'tooltip', hidden: true }),
  owner: null,
  timer: 0,

  start() {
    document.body.append(this.box);
    this.box.addEventListener('pointerenter', () => clearTimeout(this.timer));
    this.box.addEventListener('pointerleave', () => this.leave());
    addEventListener('scroll', () => this.hide(), { passive: true, capture: true });
  },

  /** Says this beside a point of the window. */
  show(owner, title, facts, x, y, about) {
    clearTimeout(this.timer);
    const list = el('dl', {}, ...facts.flatMap(([term, text]) => [el('dt', {}, term), el('dd', {}, text)]));
    this.box.replaceChildren(el('strong', {}, title), list);
    this.box.dataset.about = about || '';
    this.box.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = this.box;
    const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
    const top = y + 14 + height > innerHeight ? y - 14 - height : y + 14;
    this.box.style.left = `${Math.max(4, Math.min(left, root.clientWidth - width - 4))}px`;
    this.box.style.top = `${Math.max(4, top)}px`;
    if (this.owner !== owner) this.release();
    this.owner = owner;
    if (owner) owner.setAttribute('aria-describedby', 'tip');
  },

  showRequest(owner, gate, row, x, y) {
    const index = gate.value('index', row);
    const [, ...facts] = gate.facts(row);
    this.show(owner, `Request ${index}`, facts, x, y, `${gate.number}:${index}`);
  },

  release() {
    if (this.owner) this.owner.removeAttribute('aria-describedby');
    this.owner = null;
  },

  /** The pointer went elsewhere: it may be on its way to the tooltip. */
  leave() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.hide(), 200);
  },

  hide() {
    clearTimeout(this.timer);
    this.box.hidden = true;
    this.release();
  },
};

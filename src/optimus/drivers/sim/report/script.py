"""What the page does by itself: numbers under the pointer, schedulers that can be hidden, and one report at a time.

Without it everything is still there, one report below the other."""

from __future__ import annotations

SCRIPT = """
(() => {
const tip = document.getElementById('tip');
const trim = v => +v.toPrecision(3) >= 1000 ? Math.round(v).toLocaleString('en') : String(+v.toPrecision(3));
const time = ms => ms < 1e3 ? trim(ms) + ' ms' : ms < 6e4 ? trim(ms / 1e3) + ' s' : ms < 36e5 ? trim(ms / 6e4) + ' min'
  : ms < 1728e5 ? trim(ms / 36e5) + ' h' : trim(ms / 864e5) + ' d';
const show = {time, percent: v => (100 * v).toFixed(1) + ' %', number: trim, ratio: v => trim(v) + ' ×'};
const read = (xs, ys, x) => {
  let a = 0, b = xs.length - 1;
  if (x < xs[0] || x > xs[b]) return x < xs[0] ? 0 : ys[b];
  while (b - a > 1) { const m = (a + b) >> 1; xs[m] <= x ? a = m : b = m; }
  return ys[a] + (xs[b] > xs[a] ? (ys[b] - ys[a]) * (x - xs[a]) / (xs[b] - xs[a]) : 0);
};
for (const svg of document.querySelectorAll('svg[data-chart]')) {
  const d = JSON.parse(svg.dataset.chart), cross = document.createElementNS(svg.namespaceURI, 'line');
  cross.setAttribute('class', 'cross'); cross.setAttribute('y1', d.px[2]); cross.setAttribute('y2', d.px[3]);
  cross.style.display = 'none'; svg.append(cross);
  svg.addEventListener('pointermove', e => {
    const box = svg.getBoundingClientRect(), px = (e.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
    if (px < d.px[0] || px > d.px[1]) { tip.style.display = cross.style.display = 'none'; return; }
    const part = (px - d.px[0]) / (d.px[1] - d.px[0]), [low, high, log] = d.x;
    const x = log ? low * Math.pow(high / low, part) : low + (high - low) * part;
    cross.setAttribute('x1', px); cross.setAttribute('x2', px); cross.style.display = '';
    tip.replaceChildren(); const head = document.createElement('b');
    head.textContent = show[d.k[0]](x); tip.append(head);
    for (const s of d.s[0] && d.s[0].m[0] === 'q' ? [...d.s].reverse() : d.s) {
      if (s.m[0] === 's' && svg.closest('.report').classList.contains('hide' + s.m.slice(1))) continue;
      const [row, name, dot] = ['div', 'span', 'i'].map(kind => document.createElement(kind));
      dot.className = s.m; name.append(dot, s.n);
      row.append(name, show[d.k[1]](read(s.x || d.xs, s.y, x))); tip.append(row);
    }
    tip.style.display = 'block';
    const right = e.clientX + 18 + tip.offsetWidth > innerWidth;
    tip.style.left = (right ? e.clientX - 18 - tip.offsetWidth : e.clientX + 18) + 'px';
    tip.style.top = Math.min(e.clientY + 12, innerHeight - tip.offsetHeight - 8) + 'px';
  });
  svg.addEventListener('pointerleave', () => { tip.style.display = cross.style.display = 'none'; });
}
for (const chip of document.querySelectorAll('button.chip')) chip.addEventListener('click', () => {
  const on = chip.getAttribute('aria-pressed') === 'true';
  chip.setAttribute('aria-pressed', String(!on));
  chip.closest('.report').classList.toggle('hide' + chip.dataset.mark, on);
});
const reports = [...document.querySelectorAll('.report')];
const turn = () => {
  const shown = reports.find(one => '#' + one.id === decodeURIComponent(location.hash)) || reports[0];
  for (const one of reports) one.hidden = one !== shown;
  scrollTo(0, 0);
};
if (reports.length > 1) { addEventListener('hashchange', turn); turn(); }
})();
"""

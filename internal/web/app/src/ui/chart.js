// Chart draws a curve over time.
import uPlot from 'uplot';
import { html, useEffect, useRef } from '../lib/html.js';
import { hour } from '../lib/format.js';
import { scheme } from '../lib/theme.js';

// Chart shows y over x (seconds). text says the same for who does not see it; unit makes a text of a value; ink is a variable of
// the style.
export function Chart({ title, text, x, y, unit, ink, height = 96 }) {
  const box = useRef(), plot = useRef();
  const colours = scheme.value;
  useEffect(() => {
    const el = box.current;
    const style = getComputedStyle(el);
    const colour = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: colour('--soft'), font: '11px system-ui', grid: { stroke: colour('--faint'), width: 1 }, ticks: { show: false } };
    plot.current = new uPlot({
      width: el.clientWidth || 300, height,
      legend: { show: false }, cursor: { show: false }, padding: [6, 8, 0, 0],
      scales: { y: { range: (_, lo, hi) => [0, hi > 0 ? hi * 1.1 : 1] } },
      axes: [{ ...axis, size: 20, space: 70, values: (_, ticks) => ticks.map((t) => hour(new Date(t * 1000))) },
        { ...axis, size: 52, space: 28, values: (_, ticks) => ticks.map(unit) }],
      series: [{}, { stroke: colour(ink), width: 1.5, fill: colour(ink) + '22', points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) }],
    }, [x, y], el);
    const sizes = new ResizeObserver(() => plot.current?.setSize({ width: el.clientWidth, height }));
    sizes.observe(el);
    return () => { sizes.disconnect(); plot.current?.destroy(); plot.current = null; };
  }, [colours, height]);
  useEffect(() => plot.current?.setData([x, y]), [x, y]);
  return html`<figure class="chart"><figcaption>${title} <small>${text}</small></figcaption><div ref=${box} role="img" aria-label=${`${title}: ${text}`}></div></figure>`;
}

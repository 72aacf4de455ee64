// Rows is a long list of which only what is seen exists: ten thousand rows cost as much as forty.
import { html, useEffect, useRef, useState } from '../lib/html.js';

// Rows shows count rows of a height in pixels; draw(i, place) returns the one at i, whose style must be place. at is the row that has
// the keyboard, and is kept in sight. seen, if given, is told which rows are drawn, from one to before another.
export function Rows({ count, height, draw, at = -1, seen: tell, class: cls = '', ...rest }) {
  const ref = useRef();
  const [view, setView] = useState({ top: 0, tall: 800 });
  useEffect(() => {
    const el = ref.current;
    const look = () => { // on a phone the page scrolls, and not the list
      const page = getComputedStyle(el).overflowY === 'visible';
      const top = page ? Math.max(0, -el.getBoundingClientRect().top) : el.scrollTop, tall = page ? innerHeight : el.clientHeight;
      setView((v) => (v.top === top && v.tall === tall ? v : { top, tall }));
    };
    const sizes = new ResizeObserver(look);
    sizes.observe(el);
    const heard = [[el, 'scroll'], [window, 'scroll'], [window, 'resize']];
    for (const [of, kind] of heard) of.addEventListener(kind, look, { passive: true });
    return () => { sizes.disconnect(); for (const [of, kind] of heard) of.removeEventListener(kind, look); };
  }, []);
  useEffect(() => {
    const el = ref.current;
    if (at < 0 || !el) return;
    if (at * height < el.scrollTop) el.scrollTop = at * height;
    else if ((at + 1) * height > el.scrollTop + el.clientHeight) el.scrollTop = (at + 1) * height - el.clientHeight;
  }, [at, height]);
  const from = Math.max(0, Math.floor(view.top / height) - 6);
  const to = Math.min(count, Math.ceil((view.top + view.tall) / height) + 6);
  useEffect(() => tell?.(from, to), [from, to, count > 0]);
  const seen = [];
  for (let i = from; i < to; i++) seen.push(draw(i, { position: 'absolute', top: i * height + 'px', height: height + 'px', left: 0, right: 0 }));
  return html`<div ref=${ref} class=${'rows ' + cls} ...${rest}><div class="all" role="presentation" style=${{ height: count * height + 'px' }}>${seen}</div></div>`;
}

// Small previews of images and PDFs. A click shows them larger. A PDF is not drawn: what it holds would have to run.
import { html, useEffect, useRef, useState } from '../lib/html.js';
import { known, label, saved } from '../lib/attach.js';
import { fit, loader, paint } from '../lib/picture.js';
import { line } from '../lib/visible.js';
import { failed } from './toast.js';
import { Line } from './text.js';

// usePicture draws f on the canvas that it returns, when that is in sight. why says why it is not drawn.
function usePicture(f, load, wide, high, id) {
  const canvas = useRef(), [why, setWhy] = useState('');
  useEffect(() => {
    if (!canvas.current) return undefined;
    const over = new AbortController();
    const sight = new IntersectionObserver((seen) => {
      if (!seen.some((e) => e.isIntersecting)) return;
      sight.disconnect();
      paint(canvas.current, load, wide(), high(), over.signal).then((w) => { if (!over.signal.aborted) setWhy(w); });
    }, { rootMargin: '200px' });
    sight.observe(canvas.current);
    return () => { over.abort(); sight.disconnect(); };
  }, [id]);
  return [canvas, why];
}

// save hands a file to the person, and forgets its address when the browser has it.
async function save(f, load) {
  try {
    const blob = await load();
    const a = document.createElement('a');
    a.href = URL.createObjectURL(blob);
    a.download = saved(f.name, blob.type);
    a.click();
    setTimeout(() => URL.revokeObjectURL(a.href), 10000);
  } catch (err) {
    failed(err);
  }
}

function Larger({ f, load, id, own, close }) {
  const box = useRef();
  const [canvas, why] = usePicture(f, load, () => innerWidth - 64, () => innerHeight - 160, id);
  useEffect(() => {
    box.current.showModal();
    addEventListener('hashchange', close);
    return () => { removeEventListener('hashchange', close); box.current?.close(); };
  }, []);
  const end = () => { box.current.close(); close(); }; // gives the focus back
  return html`<dialog ref=${box} class="larger" aria-label=${line(label(f), 160)} onCancel=${(e) => { e.preventDefault(); e.stopPropagation(); end(); }} onClick=${(e) => { if (e.target === box.current) end(); }}>
    <h2><${Line} value=${label(f)} most=${160} /></h2>
    ${f.what === 'PDF' ? html`<p>Pages of a PDF are not drawn here.${own ? '' : ' Save it, and open it with a program of yours.'}</p>` : html`<canvas ref=${canvas} role="img" aria-label=${line(label(f), 160)} hidden=${Boolean(why)} width="1" height="1"></canvas>${why && html`<p class="problem" role="alert"><${Line} value=${why} most=${400} /></p>`}`}
    <div class="buttons">${!own && html`<button type="button" onClick=${() => save(f, load)}>Save</button>`}<button type="button" autofocus onClick=${end}>Close</button></div>
  </dialog>`;
}

// Preview is one file that a click shows larger. load gives its bytes; id is another one for another file; own says that it is still the person's, who has it.
export function Preview({ f, load, id, own = false }) {
  const [open, setOpen] = useState(false);
  const [wide, high] = own ? [56, 40] : [180, 120];
  const [canvas, why] = usePicture(f, load, () => wide, () => high, id);
  const [w, h] = fit(f.width || wide, f.height || high, wide, high); // its place, before it is drawn: nothing moves then
  const shows = f.what !== 'PDF' && !why;
  return html`<button type="button" class="preview" aria-haspopup="dialog" aria-label=${`Show ${line(label(f), 160)}`} title=${line(why ? `${label(f)}: ${why}` : label(f), 400)} onClick=${() => setOpen(true)}>
      ${f.what !== 'PDF' && html`<canvas ref=${canvas} aria-hidden="true" hidden=${!shows} width="1" height="1" style=${{ width: `${w}px`, aspectRatio: `${w} / ${h}` }}></canvas>`}${!shows && html`<span aria-hidden="true">${f.what === 'PDF' ? 'PDF' : 'image'}</span>`}</button>
    ${open && html`<${Larger} f=${f} load=${load} id=${id} own=${own} close=${() => setOpen(false)} />`}`;
}

// Previews are the images and PDFs of a message of a process.
export function Previews({ of, id }) {
  if (!of?.length) return null;
  return html`<ul class="previews" aria-label="Attached">${of.map((a, i) => html`<li key=${i + a.sha256}><${Preview} f=${known(a)} id=${id + a.sha256} load=${loader(id, a.sha256)} /></li>`)}</ul>`;
}

// The images and PDFs that a person attaches to a message: chosen, dropped, or pasted from the clipboard. What cannot go along is said at once, and not taken.
import { html, useRef, useState } from '../lib/html.js';
import { accept, headBytes, label, limits, look, size, together } from '../lib/attach.js';
import { Line } from './text.js';

// encoded reads a file in base64.
const encoded = (file) => new Promise((done, fail) => {
  const r = new FileReader();
  r.onload = () => done(r.result.slice(r.result.indexOf(',') + 1));
  r.onerror = () => fail(new Error(`${file.name} cannot be read any more: attach it again`));
  r.readAsDataURL(file);
});

// useAttach returns what is attached. on are handlers of the element onto which files may be dropped, pasted those of the field into which they may be
// pasted; request() reads them for a request, and throws if one cannot be read. changed is called when something else goes along.
export function useAttach(changed = () => {}) {
  const [files, setFiles] = useState([]);
  const [problems, setProblems] = useState([]);
  const [over, setOver] = useState(false);
  const now = useRef(files); // files may come while others are looked at
  const set = (list) => {
    now.current = list;
    setFiles(list);
    changed();
  };
  const add = async (list) => {
    const wrong = [];
    for (const file of list) {
      try {
        const f = { ...look(file.name || 'pasted.png', file.size, new Uint8Array(await file.slice(0, headBytes).arrayBuffer())), file };
        const why = f.problem || together([...now.current, f]);
        if (why) wrong.push(`${f.name} is not attached: ${why}`);
        else set([...now.current, f]);
      } catch { // a directory, or a file that is gone
        wrong.push(`${file.name} is not attached: it cannot be read`);
      }
    }
    setProblems(wrong);
  };
  const filesOf = (e) => [...(e.dataTransfer || e.clipboardData)?.files || []];
  return {
    files, problems, over, add,
    clear: () => { set([]); setProblems([]); },
    remove: (f) => { set(now.current.filter((x) => x !== f)); setProblems([]); },
    request: async () => {
      const out = [];
      for (const f of now.current) out.push({ name: f.name, data: await encoded(f.file) });
      return out.length ? { attachments: out } : {};
    },
    on: {
      onDragOver: (e) => { if (e.dataTransfer?.types.includes('Files')) { e.preventDefault(); setOver(true); } },
      onDragLeave: () => setOver(false),
      onDrop: (e) => { if (filesOf(e).length) { e.preventDefault(); setOver(false); add(filesOf(e)); } },
    },
    pasted: { onPaste: (e) => { if (filesOf(e).length) { e.preventDefault(); add(filesOf(e)); } } },
  };
}

// Attached shows what goes along, with the bounds, and lets a person choose more. id is that of the field in the page.
export function Attached({ at, id }) {
  const field = useRef();
  return html`<div class=${'attached' + (at.over ? ' over' : '')}>
    <input type="file" id=${id} ref=${field} class="sr" multiple accept=${accept} tabindex="-1" aria-label="Images and PDFs" onChange=${(e) => { at.add([...e.target.files]); e.target.value = ''; }} />
    <button type="button" onClick=${() => field.current.click()}>Attach…</button>
    ${at.files.map((f) => html`<span class="chip" key=${label(f)}><${Line} value=${label(f)} most=${120} /> <button type="button" class="quiet" aria-label=${'Do not attach ' + f.name} onClick=${() => at.remove(f)}>×</button></span>`)}
    <small>${at.files.length ? 'The model is shown it, if it takes images and PDFs.' : `Images (${size(limits.image)} each, ${limits.side}×${limits.side} pixels) and PDFs, ${limits.files} files and ${size(limits.all)} together; also dropped or pasted.`}</small>
    ${at.problems.length > 0 && html`<div class="error" role="alert">${at.problems.map((p) => html`<p key=${p}><${Line} value=${p} most=${400} /></p>`)}</div>`}
  </div>`;
}

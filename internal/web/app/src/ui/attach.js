// The images and PDFs that a person attaches to a message: chosen, dropped, or pasted from the clipboard. What cannot go along is said at once, and not taken.
import { html, signal, useRef, useState } from '../lib/html.js';
import { accept, distinct, given, label, limits, meansText, size, together } from '../lib/attach.js';
import { examine } from '../lib/picture.js';
import { shared } from '../lib/shared.js';
import { line } from '../lib/visible.js';
import { Preview } from './preview.js';
import { Line } from './text.js';

const few = 5; // problems that are told one by one

// encoded reads a file in base64.
const encoded = (file, name) => new Promise((done, fail) => {
  const r = new FileReader();
  r.onload = () => done(r.result.slice(r.result.indexOf(',') + 1));
  r.onerror = () => fail(new Error(`${name} cannot be read any more: take it away, and attach it again`));
  r.readAsDataURL(file);
});

const memory = (name) => 'rnix-attached-' + name;

// newBox holds what is attached. What was attached to name before the page was loaded again is gone, and is said to be.
function newBox(name) {
  let lost = [];
  try {
    lost = JSON.parse(sessionStorage.getItem(memory(name))) || [];
    sessionStorage.removeItem(memory(name));
  } catch { /* it is said of no file */ }
  const told = lost.length ? [`${lost.join(', ')} ${lost.length === 1 ? 'was' : 'were'} attached before this page was loaded again: attach ${lost.length === 1 ? 'it' : 'them'} again`] : [];
  return { name, files: signal([]), problems: signal(told), last: Promise.resolve(), waiting: 0, number: 0 };
}

// put attaches files, one after another, as long as there is room.
async function put(box, { files, folders }, set) {
  const wrong = folders.map((name) => `${name} is not attached: it is a folder; choose the files in it`);
  let over = 0;
  for (const file of files) {
    const now = box.files.peek();
    if (now.length >= limits.files) {
      over++;
      continue;
    }
    if (now.some((f) => f.file.name === file.name && f.file.size === file.size && f.file.lastModified === file.lastModified)) continue; // the same again
    try {
      const f = await examine(file, file.name || 'pasted.png');
      const why = f.problem || together([...box.files.peek(), f]);
      if (why) wrong.push(`${f.name} is not attached: ${why}`);
      else set([...box.files.peek(), { ...f, name: distinct(f.name, box.files.peek().map((x) => x.name)), file, key: ++box.number }]);
    } catch { // it is gone, or is a folder after all
      wrong.push(`${file.name} is not attached: it cannot be read`);
    }
  }
  if (over) wrong.push(`${over} more ${over === 1 ? 'file is' : 'files are'} not attached: a message takes at most ${limits.files}`);
  box.problems.value = [...box.problems.peek(), ...(wrong.length > few + 1 ? [...wrong.slice(0, few), `and ${wrong.length - few} more are not attached`] : wrong)];
}

// useAttach returns what is attached to name; with '' it lives no longer than its component. on are handlers of the element onto which files may be dropped, pasted those of
// the field into which they may be pasted; gather() reads them, and returns {files, request} with what a request has of them, or throws if one cannot be read.
// changed is called when something else goes along.
export function useAttach(name, changed = () => {}) {
  const own = useRef();
  const box = name ? shared(memory(name), () => newBox(name)) : (own.current ??= newBox(''));
  const [over, setOver] = useState(false);
  const set = (list) => {
    box.files.value = list;
    try {
      if (box.name && list.length) sessionStorage.setItem(memory(box.name), JSON.stringify(list.map((f) => f.name)));
      else sessionStorage.removeItem(memory(box.name));
    } catch { /* there is no room */ }
    changed();
  };
  const take = (what) => {
    if (!box.waiting++) box.problems.value = [];
    box.last = box.last.then(() => put(box, what, set)).finally(() => { box.waiting--; });
  };
  const without = (list) => { set(box.files.peek().filter((f) => !list.includes(f))); box.problems.value = []; };
  return {
    files: box.files.value, problems: box.problems.value, over,
    add: (list) => take({ files: list, folders: [] }),
    remove: (f) => without([f]),
    sent: without, // what was attached meanwhile stays
    gather: async () => {
      await box.last;
      const files = box.files.peek(), attachments = [];
      for (const f of files) attachments.push({ name: f.name, data: await encoded(f.file, f.name) });
      return { files, request: files.length ? { attachments } : {} };
    },
    on: {
      onDragOver: (e) => { if (e.dataTransfer?.types.includes('Files')) { e.preventDefault(); setOver(true); } },
      onDragLeave: (e) => { if (!e.currentTarget.contains(e.relatedTarget)) setOver(false); },
      onDrop: (e) => { if (e.dataTransfer?.types.includes('Files')) { e.preventDefault(); setOver(false); take(given(e.dataTransfer)); } },
    },
    pasted: { onPaste: (e) => { if (e.clipboardData?.files.length && !meansText([...e.clipboardData.types])) { e.preventDefault(); take(given(e.clipboardData)); } } },
  };
}

// startDrops keeps a file that misses its place from taking the place of the page.
export function startDrops() {
  const away = (e) => {
    if (e.defaultPrevented || !e.dataTransfer?.types.includes('Files')) return;
    e.preventDefault();
    e.dataTransfer.dropEffect = 'none';
  };
  addEventListener('dragover', away);
  addEventListener('drop', away);
}

// Attached shows what goes along, with the bounds, and lets a person choose more. id is that of the field in the page.
export function Attached({ at, id }) {
  const field = useRef(), button = useRef();
  const remove = (f) => { at.remove(f); button.current.focus(); }; // what had the focus is gone
  return html`<div class=${'attached' + (at.over ? ' over' : '')}>
    <input type="file" id=${id} ref=${field} class="sr" multiple accept=${accept} tabindex="-1" aria-label="Images and PDFs" onChange=${(e) => { at.add([...e.target.files]); e.target.value = ''; }} />
    <button type="button" ref=${button} aria-describedby=${id + '-bounds'} onClick=${() => field.current.click()}>Attach…</button>
    ${at.files.map((f) => html`<span class="chip" key=${f.key}><${Preview} f=${f} id=${f.key} load=${async () => f.file} own=${true} /> <${Line} value=${label(f)} most=${120} /> <button type="button" class="quiet" aria-label=${'Do not attach ' + line(f.name, 120)} onClick=${() => remove(f)}>×</button></span>`)}
    <small id=${id + '-bounds'}>${at.files.length ? 'The model is shown it, if it takes images and PDFs.' : `Images (${size(limits.image)} each, ${limits.side}×${limits.side} pixels) and PDFs, ${limits.files} files and ${size(limits.all)} together; also dropped or pasted.`}</small>
    <span class="sr" role="status">${at.files.length ? `${at.files.length === 1 ? '1 file is' : at.files.length + ' files are'} attached, the last one ${line(at.files.at(-1).name, 120)}` : ''}</span>
    ${at.problems.length > 0 && html`<div class="error" role="alert">${at.problems.map((p, i) => html`<p key=${i}><${Line} value=${p} most=${400} /></p>`)}</div>`}
  </div>`;
}

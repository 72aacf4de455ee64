// Questions: one real <dialog> at a time. The browser keeps the focus within it and gives it back.
import { html, signal, useEffect, useRef, useState } from '../lib/html.js';
import { Attached, useAttach } from './attach.js';
import { Line } from './text.js';

const asked = signal(null);

// ask asks a question and returns a promise of what was filled in, by the names of the fields, or null if the person would
// rather not. body is text or html; fields are {name, label, type: text | area | number | check | choice | files, value, options, hint,
// required, min, step, mono}; one of type files, whose value is what a request has of them, goes with the text of the area. tag is a name by which drop takes it back. run, if
// given, does what is asked with what was filled in: the question stays with all that was filled in if it throws, and else its answer is what run returns.
export function ask({ title, body, fields = [], yes = 'OK', danger = false, tag = '', run }) {
  asked.value?.done(null);
  return new Promise((done) => { asked.value = { number: ++last, title, body, fields, yes, danger, tag, run, done }; });
}
let last = 0;

// drop gives up the question with a tag, if that is open: what it was about is over.
export function drop(tag) {
  const q = asked.value;
  if (!q || q.tag !== tag) return;
  asked.value = null;
  q.done(null);
}

// A question is about what was on the page: it is given up when the address changes.
export function startDialogs() {
  addEventListener('hashchange', () => {
    const q = asked.value;
    asked.value = null;
    q?.done(null);
  });
}

// tell shows something until it is closed.
export const tell = (title, body) => ask({ title, body, yes: null });

export function Dialogs() {
  const q = asked.value;
  return q && html`<${Dialog} key=${q.number} q=${q} />`;
}

function Dialog({ q }) {
  const ref = useRef();
  useEffect(() => {
    ref.current.showModal();
    return () => ref.current?.close();
  }, []);
  const at = useAttach('');
  const files = q.fields.some((f) => f.type === 'files');
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState('');
  const end = (answer) => {
    ref.current?.close(); // gives the focus back
    if (asked.peek() === q) asked.value = null;
    q.done(answer);
  };
  const submit = async (e) => {
    e.preventDefault();
    if (busy) return;
    const answer = {};
    for (const f of q.fields) {
      if (f.type === 'files') continue;
      const input = e.target.elements.namedItem(f.name);
      answer[f.name] = f.type === 'check' ? input.checked : f.type === 'number' ? (input.value === '' ? null : Number(input.value)) : input.value;
    }
    setBusy(true);
    try {
      for (const f of q.fields) {
        if (f.type !== 'files') continue;
        const got = await at.gather(); // what is still being read belongs to it, too
        if (asked.peek() !== q) return; // it was cancelled
        if (got.files.length && !q.fields.some((f) => f.type === 'area' && answer[f.name].trim())) throw new Error('Say what it should do with what is attached.');
        answer[f.name] = got.request;
      }
      end(q.run ? await q.run(answer) : answer);
    } catch (err) {
      setProblem(err.message);
      setBusy(false);
    }
  };
  return html`<dialog ref=${ref} aria-labelledby="dialog-title" onCancel=${(e) => { e.preventDefault(); end(null); }}>
    <form onSubmit=${submit} ...${files ? at.on : {}}>
      <h2 id="dialog-title">${q.title}</h2>
      ${q.body && html`<div class="body">${q.body}</div>`}
      ${q.fields.map((f) => (f.type === 'files' ? html`<${Attached} key=${f.name} at=${at} id=${'field-' + f.name} />` : html`<${Field} key=${f.name} f=${f} more=${files && f.type === 'area' ? at.pasted : {}} />`))}
      ${problem && html`<p class="problem" role="alert"><${Line} value=${problem} most=${1000} /></p>`}
      <div class="buttons">
        <button type="button" onClick=${() => end(null)} autofocus=${!q.fields.length}>${q.yes ? 'Cancel' : 'Close'}</button>
        ${q.yes && html`<button type="submit" class=${q.danger ? 'danger' : 'main'} aria-disabled=${busy ? 'true' : undefined}>${busy && q.run ? 'Sending …' : q.yes}</button>`}
      </div>
    </form>
  </dialog>`;
}

function Field({ f, more }) {
  const id = 'field-' + f.name, hint = f.hint && id + '-hint';
  const same = { id, name: f.name, 'aria-describedby': hint, required: f.required };
  if (f.type === 'check') {
    return html`<label class="check"><input type="checkbox" ...${same} defaultChecked=${f.value} /> ${f.label}</label>`;
  }
  return html`<div class="field"><label for=${id}>${f.label}</label>
    ${f.type === 'area' ? html`<textarea rows=${f.mono ? 10 : 5} class=${f.mono ? 'mono' : ''} spellcheck=${!f.mono} ...${same} defaultValue=${f.value} ...${more} autofocus></textarea>`
      : f.type === 'choice' ? html`<select ...${same}>${f.options.map((o) => html`<option value=${o.value} selected=${o.value === f.value}>${o.text}</option>`)}</select>`
      : html`<input type=${f.type || 'text'} ...${same} defaultValue=${f.value} min=${f.min} step=${f.step} autofocus />`}
    ${f.hint && html`<small id=${hint}>${f.hint}</small>`}</div>`;
}

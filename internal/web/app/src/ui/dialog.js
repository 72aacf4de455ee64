// Questions: one real <dialog> at a time. The browser keeps the focus within it and gives it back.
import { html, signal, useEffect, useRef } from '../lib/html.js';

const asked = signal(null);

// ask asks a question and returns a promise of what was filled in, by the names of the fields, or null if the person would
// rather not. body is text or html; fields are {name, label, type: text | area | number | check | choice, value, options, hint,
// required, min, step, mono}. tag is a name by which drop takes it back.
export function ask({ title, body, fields = [], yes = 'OK', danger = false, tag = '' }) {
  asked.value?.done(null);
  return new Promise((done) => { asked.value = { title, body, fields, yes, danger, tag, done }; });
}

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
  return q && html`<${Dialog} key=${q.title} q=${q} />`;
}

function Dialog({ q }) {
  const ref = useRef();
  useEffect(() => {
    ref.current.showModal();
    return () => ref.current?.close();
  }, []);
  const end = (answer) => {
    ref.current.close(); // gives the focus back
    asked.value = null;
    q.done(answer);
  };
  const submit = (e) => {
    e.preventDefault();
    const answer = {};
    for (const f of q.fields) {
      const input = e.target.elements.namedItem(f.name);
      answer[f.name] = f.type === 'check' ? input.checked : f.type === 'number' ? (input.value === '' ? null : Number(input.value)) : input.value;
    }
    end(answer);
  };
  return html`<dialog ref=${ref} aria-labelledby="dialog-title" onCancel=${(e) => { e.preventDefault(); end(null); }}>
    <form onSubmit=${submit}>
      <h2 id="dialog-title">${q.title}</h2>
      ${q.body && html`<div class="body">${q.body}</div>`}
      ${q.fields.map((f) => html`<${Field} key=${f.name} f=${f} />`)}
      <div class="buttons">
        <button type="button" onClick=${() => end(null)} autofocus=${!q.fields.length}>${q.yes ? 'Cancel' : 'Close'}</button>
        ${q.yes && html`<button type="submit" class=${q.danger ? 'danger' : 'main'}>${q.yes}</button>`}
      </div>
    </form>
  </dialog>`;
}

function Field({ f }) {
  const id = 'field-' + f.name, hint = f.hint && id + '-hint';
  const same = { id, name: f.name, 'aria-describedby': hint, required: f.required };
  if (f.type === 'check') {
    return html`<label class="check"><input type="checkbox" ...${same} defaultChecked=${f.value} /> ${f.label}</label>`;
  }
  return html`<div class="field"><label for=${id}>${f.label}</label>
    ${f.type === 'area' ? html`<textarea rows=${f.mono ? 10 : 5} class=${f.mono ? 'mono' : ''} spellcheck=${!f.mono} ...${same} defaultValue=${f.value} autofocus></textarea>`
      : f.type === 'choice' ? html`<select ...${same}>${f.options.map((o) => html`<option value=${o.value} selected=${o.value === f.value}>${o.text}</option>`)}</select>`
      : html`<input type=${f.type || 'text'} ...${same} defaultValue=${f.value} min=${f.min} step=${f.step} autofocus />`}
    ${f.hint && html`<small id=${hint}>${f.hint}</small>`}</div>`;
}

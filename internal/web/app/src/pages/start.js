// Starts agents: one, or one of each model with the same task.
import { html, signal, useEffect, useRef, useState } from '../lib/html.js';
import { call } from '../lib/api.js';
import { useCall } from '../lib/ask.js';
import { useDraft } from '../lib/draft.js';
import { go, href } from '../lib/router.js';
import { belongs, plain, requests, suggestions } from '../lib/start.js';
import { shared } from '../lib/shared.js';
import { procs, wire } from '../lib/store.js';
import { line } from '../lib/visible.js';
import { Attached, useAttach } from '../ui/attach.js';
import { failed, said } from '../ui/toast.js';
import { Line, Text } from '../ui/text.js';

const kept = 'rnix-start'; // what was chosen last, but for the task
const once = { name: '', tree: false, branch: '', base: '' }; // what counts for one start
function load() {
  try {
    return { ...JSON.parse(localStorage.getItem(kept)), ...once };
  } catch {
    return {};
  }
}

const mark = 'rnix-starting'; // that a start has no answer yet
const left = 'This page was loaded again while an agent was being started. It may have been started: look at the overview before you start it again.';

// A browser gives calls up when the page is about to go: that is no answer.
let leaving = false;
addEventListener('beforeunload', () => {
  leaving = true;
  setTimeout(() => { leaving = false; }, 5000); // if it stays after all
});

const levels = [['', 'as configured'], ['auto', 'auto: what works here'], ['bwrap', 'bwrap'], ['landlock', 'landlock'], ['off', 'off: not confined']];
const nets = [['', 'as configured'], ['none', 'none'], ['hosts', 'hosts: only those allowed'], ['open', 'open']];
const seldom = ['name', 'effort', 'steps', 'timeout', 'sandbox', 'net', 'hosts']; // stand behind More
const efforts = ['low', 'medium', 'high'];

function Field({ name, label, hint, error, children }) {
  return html`<div class=${'field' + (error ? ' wrong' : '')} data-field=${name}><label for=${'start-' + name}>${label}</label>${children}
    ${error && html`<p class="error" id=${'start-' + name + '-error'} role="alert"><${Line} value=${error} most=${600} /></p>`}${hint && html`<small id=${'start-' + name + '-hint'}>${hint}</small>`}</div>`;
}

function Start() {
  const [intent, setIntent, sent] = useDraft('start');
  const [v, setV] = useState(load);
  const now = useRef(v);
  const starting = shared('starting', () => signal(false)), busy = starting.value; // also when a person was elsewhere meanwhile
  const [errors, setErrors] = useState(() => (!starting.peek() && sessionStorage.getItem(mark) ? { '': left } : {}));
  useEffect(() => { if (!starting.peek()) sessionStorage.removeItem(mark); }, []);
  const [more, setMore] = useState(() => seldom.some((n) => v[n]));
  const form = useRef();
  const at = useAttach('start');
  const here = useRef(true); // else the person is elsewhere by now, and stays there
  useEffect(() => () => { here.current = false; }, []);
  const place = useCall('place', {});
  const dir = (v.cwd || '').trim();
  const [near, setNear] = useState(dir); // whose choices are shown: asked for when a person stops typing
  useEffect(() => { const t = setTimeout(() => setNear(dir), 500); return () => clearTimeout(t); }, [dir]);
  const agents = useCall('list_agents', near ? { cwd: near } : {});
  const providers = useCall('providers', near ? { cwd: near } : {});
  const set = (name, value) => {
    const next = (now.current = { ...now.current, [name]: value }); // two changes may come before the next drawing
    setV(next);
    localStorage.setItem(kept, JSON.stringify({ ...next, ...once }));
    setErrors(({ [name]: _, '': __, ...rest }) => rest);
  };
  const same = (name, more = {}) => ({
    id: 'start-' + name, name, value: v[name] || '', 'aria-invalid': errors[name] ? 'true' : undefined, onInput: (e) => set(name, e.target.value),
    'aria-describedby': [errors[name] && `start-${name}-error`, `start-${name}-hint`].filter(Boolean).join(' '), autocomplete: 'off', spellcheck: false, ...more,
  });
  const fail = (found) => {
    setErrors(found);
    if (seldom.some((n) => found[n])) setMore(true);
    setTimeout(() => (form.current?.querySelector('[aria-invalid=true]') || form.current?.querySelector('.problem'))?.focus());
  };
  const submit = async (e) => {
    e.preventDefault();
    if (starting.peek()) return;
    const { requests: all, errors: wrong } = requests({ ...now.current, intent });
    if (Object.keys(wrong).length) return fail(wrong);
    starting.value = true;
    sessionStorage.setItem(mark, '1');
    const ids = [];
    try {
      const shown = await at.gather();
      for (const r of all) {
        const p = await call('spawn', { ...r, ...shown.request });
        ids.push(p.uuid);
        if (p.warnings?.length) said(`PID ${p.pid}: ${p.warnings.join('; ')}`);
      }
      sent(intent);
      if (shown.files.length) at.sent(shown.files);
      if (here.current) go(ids.length > 1 ? href('compare', {}, { of: ids.join(',') }) : href('process', { id: ids[0] }));
    } catch (err) {
      const text = plain(err) + (ids.length ? ` (${ids.length} of ${all.length} were started: see the overview)` : err.code === 'DOWN' ? ' It may have been started: look at the overview.' : '');
      if (here.current) fail({ [belongs(err, now.current)]: text });
      else failed(new Error('Not started: ' + text));
    }
    starting.value = false;
    if (!leaving) sessionStorage.removeItem(mark);
  };
  const dirs = [...new Set([place.data?.dir, ...[...procs.value.rows.values()].filter((p) => !p.parent_uuid).map((p) => p.work_dir)])].filter(Boolean).slice(0, 30);
  const ready = (providers.data?.providers || []).filter((p) => p.available);
  const agent = (agents.data?.agents || []).find((a) => a.name === v.agent);
  const many = (v.model || '').split(/[\s,]+/).filter(Boolean).length;
  const problems = [...(agents.data?.problems || []), ...(providers.data?.mistakes || [])];
  return html`<h1>Start an agent</h1><p><a href=${href('compare')}>Side by side</a>: agents that had the same task.</p>
    <form class="start" ref=${form} ...${at.on} onSubmit=${submit} novalidate>
      ${errors[''] && html`<div class="problem" role="alert" tabindex="-1"><${Text} value=${errors['']} /></div>`}
      ${problems.map((t) => html`<p class="problem"><${Line} value=${t} most=${600} /></p>`)}
      <${Field} name="intent" label="What is to be done" error=${errors.intent}>
        <textarea rows="5" ...${same('intent', { value: intent, spellcheck: true, onInput: (e) => { setIntent(e.target.value); setErrors({}); } })}
          ...${at.pasted} onKeyDown=${(e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) submit(e); }}></textarea>
        <${Attached} at=${at} id="start-files" /><//>
      <div class="two">
        <${Field} name="agent" label="Agent" error=${errors.agent} hint=${agent ? line(agent.description || '', 200) : ''}>
          <select ...${same('agent')}><option value="">as configured</option>${(agents.data?.agents || []).map((a) => html`<option key=${a.name} value=${a.name} selected=${a.name === v.agent}>${line(a.name, 60)}</option>`)}
            ${v.agent && !agent && html`<option value=${v.agent} selected>${line(v.agent, 60)}</option>`}</select><//>
        <${Field} name="model" label="Model" error=${errors.model} hint=${many > 1 ? `${many} agents with the same task, side by side${v.tree ? '' : '; in one directory they meet: a work tree keeps them apart'}` : 'Empty: as configured. Several, with commas, start one agent each.'}>
          <input type="text" list="start-models" placeholder=${providers.data ? line([providers.data.chosen, ready.find((p) => p.name === providers.data.chosen)?.model].filter(Boolean).join('/'), 80) : ''} ...${same('model')} />
          <datalist id="start-models">${suggestions(ready).map((m) => html`<option key=${m} value=${m}></option>`)}</datalist><//>
        <${Field} name="tokens" label="Budget in tokens" error=${errors.tokens} hint="With its descendants, such as 200k. Empty: as configured; 0: no limit."><input type="text" inputmode="decimal" ...${same('tokens')} /><//>
        <${Field} name="usd" label="Budget in US dollars" error=${errors.usd} hint="With its descendants, such as 2.50."><input type="text" inputmode="decimal" ...${same('usd')} /><//>
      </div>
      <${Field} name="cwd" label="Directory" error=${errors.cwd}>
        <input type="text" class="mono" list="start-dirs" placeholder=${place.data?.dir || ''} ...${same('cwd')} /><datalist id="start-dirs">${dirs.map((d) => html`<option key=${d} value=${d}></option>`)}</datalist><//>
      <div class=${'field' + (errors.tree ? ' wrong' : '')} data-field="tree"><label class="check"><input type="checkbox" name="tree" checked=${Boolean(v.tree)} aria-invalid=${errors.tree ? 'true' : undefined} onChange=${(e) => set('tree', e.target.checked)} /> in its own git work tree, on its own branch</label>
        ${errors.tree && html`<p class="error" role="alert"><${Line} value=${errors.tree} most=${600} /></p>`}</div>
      ${v.tree && html`<div class="two">
        <${Field} name="branch" label="Branch" error=${errors.branch} hint="Empty: a new one, rnix/NAME."><input type="text" class="mono" ...${same('branch')} /><//>
        <${Field} name="base" label="Begins at" error=${errors.base} hint="A commit or a branch. Empty: what is checked out."><input type="text" class="mono" ...${same('base')} /><//></div>`}
      <details open=${more} onToggle=${(e) => setMore(e.target.open)}><summary>More</summary><div class="two">
        <${Field} name="name" label="Name" error=${errors.name}><input type="text" ...${same('name')} /><//>
        <${Field} name="effort" label="Effort" error=${errors.effort} hint="How long the model thinks."><input type="text" list="start-efforts" ...${same('effort')} /><datalist id="start-efforts">${efforts.map((x) => html`<option key=${x} value=${x}></option>`)}</datalist><//>
        <${Field} name="steps" label="Steps at most" error=${errors.steps}><input type="text" inputmode="numeric" ...${same('steps')} /><//>
        <${Field} name="timeout" label="Time at most" error=${errors.timeout} hint="Such as 10m."><input type="text" ...${same('timeout')} /><//>
        <${Field} name="sandbox" label="Sandbox of its commands" error=${errors.sandbox}><select ...${same('sandbox')}>${levels.map(([x, t]) => html`<option key=${x} value=${x} selected=${x === (v.sandbox || '')}>${t}</option>`)}</select><//>
        <${Field} name="net" label="Network of its commands" error=${errors.net}><select ...${same('net')}>${nets.map(([x, t]) => html`<option key=${x} value=${x} selected=${x === (v.net || '')}>${t}</option>`)}</select><//>
        <${Field} name="hosts" label="Hosts that they may reach" error=${errors.hosts} hint="Such as npm or api.example.com:443; several with commas."><input type="text" ...${same('hosts')} /><//>
      </div></details>
      <div class="buttons"><button type="submit" class="main" disabled=${busy || wire.value.word !== 'live'}>${busy ? 'Starting …' : many > 1 ? `Start ${many} agents` : 'Start'}</button></div>
    </form>`;
}

export default { name: 'start', path: '/start', title: 'Start', nav: 'Start', Page: Start };

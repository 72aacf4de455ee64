// The steps of a process as somebody looks at them: their end is kept fresh, what comes into sight is read, and all are searched.
import { useEffect, useRef, useState } from './html.js';
import { call } from './api.js';
import { found, missing, newBook, newest, newHunt, quest, take } from './stepbook.js';

const every = 2000, still = 60; // milliseconds: between looks at the end; that a list has to stand still before its entries are read

class Reading {
  constructor(id, changed) {
    Object.assign(this, { id, changed, book: newBook(), read: false, error: null, loading: true, hunting: null, said: '' });
    Object.assign(this, { over: new AbortController(), view: [0, 0], busy: false, tailing: false, stale: false, last: -every, timer: 0, sight: 0 });
  }

  async ask(req) {
    try {
      take(this.book, req, await call('list_steps', req, { signal: this.over.signal }));
      Object.assign(this, { error: null, read: true });
      return true;
    } catch (err) {
      if (this.over.signal.aborted) return false;
      this.error = err;
      return false;
    }
  }

  // fresh looks at the end, not more often than every ms.
  fresh() {
    if (this.tailing) { this.stale = true; return; }
    this.tailing = true;
    this.timer = setTimeout(async () => {
      this.last = performance.now();
      this.stale = false;
      await this.ask(newest(this.book, this.id));
      this.tailing = this.loading = false;
      if (this.over.signal.aborted) return;
      this.changed();
      this.fill();
      if (this.stale) this.fresh();
    }, Math.max(0, this.last + every - performance.now()));
  }

  // see says which entries are in sight, from one to before another.
  see(from, to) {
    this.view = [from, to];
    clearTimeout(this.sight);
    this.sight = setTimeout(() => this.fill(), still);
  }

  // fill reads what is in sight and is not known, part by part.
  async fill() {
    if (this.busy) return;
    this.busy = true;
    for (let was = ''; ;) {
      const req = missing(this.book, this.id, ...this.view);
      if (!req || JSON.stringify(req) === was) break; // an answer that answers nothing is not asked for again
      was = JSON.stringify(req);
      if (!(await this.ask(req)) || this.over.signal.aborted) break;
      this.changed();
    }
    this.busy = false;
    if (!this.over.signal.aborted) this.changed();
  }

  again() {
    Object.assign(this, { loading: true, last: -every });
    this.changed();
    this.fresh();
  }

  // find looks for a text, and has go called with the number of the step that has it.
  async find(text, from, by, go) {
    this.hunting?.abort();
    const mine = (this.hunting = new AbortController());
    const h = newHunt(text, from, by);
    const signal = AbortSignal.any([mine.signal, this.over.signal]);
    for (;;) {
      this.said = `Looking at step ${Math.max(h.at, 1)} of ${this.book.last} …`;
      this.changed();
      try {
        const n = found(h, await call('list_steps', quest(h, this.id), { signal }));
        if (n === 0) continue;
        this.said = n < 0 ? 'No step has it.' : n === from ? 'Only this step has it.' : '';
        if (n > 0 && n !== from) go(n);
      } catch (err) {
        if (signal.aborted) return;
        this.said = err.message;
      }
      this.hunting = null;
      return this.changed();
    }
  }

  // quiet gives a search up, and takes back what was said of it.
  quiet() {
    this.hunting?.abort();
    this.hunting = null;
    if (!this.said) return;
    this.said = '';
    this.changed();
  }

  end() {
    clearTimeout(this.timer);
    clearTimeout(this.sight);
    this.over.abort();
  }
}

// useReading returns a Reading of a process as long as the component is there. turn changes when there may be new steps.
export function useReading(id, turn) {
  const [, draw] = useState(0);
  const ref = useRef();
  ref.current ??= new Reading(id, () => draw((n) => n + 1));
  useEffect(() => () => ref.current.end(), []);
  useEffect(() => ref.current.fresh(), [turn]);
  return ref.current;
}


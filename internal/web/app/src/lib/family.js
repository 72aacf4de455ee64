// What processes have used together, in words. The daemon adds it up (families). Pure.
import { age, cost, count } from './format.js';

const many = (n, one, more) => `${n} ${n === 1 ? one : more}`;

// sumParts says what a sum is of: processes, tokens, cost, failed calls and work, each a text. What is not known is said so.
export function sumParts(l) {
  return [
    many(l.processes, 'process', 'processes'), `${l.estimated ? '~' : ''}${count(l.tokens)} tokens`,
    `cost ${cost(l)}` + (l.unpriced_tokens > 0 ? ` (${count(l.unpriced_tokens)} tokens have an unknown price)` : ''),
    l.failed_calls > 0 && many(l.failed_calls, 'failed call', 'failed calls'),
    l.failed_calls_unknown > 0 && `failed calls of ${many(l.failed_calls_unknown, 'process', 'processes')} unknown`,
    l.active_ms > 0 && `${age(l.active_ms)} of work`,
  ].filter(Boolean);
}

// short is a sum where there is little room.
export const short = (l) => [`${l.estimated ? '~' : ''}${count(l.tokens)}`, cost(l), l.failed_calls > 0 && `${l.failed_calls} failed`].filter(Boolean).join(' · ');

// byUUID are the families of an answer by the process that they are of.
export const byUUID = (data) => new Map((data?.families || []).map((f) => [f.uuid, f]));

// What outlives a component, as long as the page is loaded: an answer that comes after its component is gone is there for the next one.
const all = new Map();

// shared returns what make has made for a name, the same every time.
export function shared(name, make) {
  if (!all.has(name)) all.set(name, make());
  return all.get(name);
}

// The form of a stream: server-sent events. Pure.

// frames returns a function that takes the next piece of text of a stream and calls each with {id, kind, data} for every
// event that is complete. It looks at each character once, however long a line is.
export function frames(each) {
  let parts = []; // of the line in hand
  let id = '', kind = '', data = [];
  const line = (text) => {
    if (text.endsWith('\r')) text = text.slice(0, -1);
    if (text === '') {
      if (data.length) each({ id, kind, data: data.join('\n') });
      id = kind = '';
      data = [];
      return;
    }
    const at = text.indexOf(':');
    if (at === 0) return; // a sign of life
    const field = at < 0 ? text : text.slice(0, at);
    const value = at < 0 ? '' : text.slice(text[at + 1] === ' ' ? at + 2 : at + 1);
    if (field === 'id') id = value;
    else if (field === 'event') kind = value;
    else if (field === 'data') data.push(value);
  };
  return (text) => {
    let from = 0;
    for (let at; (at = text.indexOf('\n', from)) >= 0; from = at + 1) {
      parts.push(text.slice(from, at));
      line(parts.length === 1 ? parts[0] : parts.join(''));
      parts = [];
    }
    if (from < text.length) parts.push(text.slice(from));
  };
}

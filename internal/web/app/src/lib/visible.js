// Text of agents, made visible: what would steer a terminal, turn the direction of writing or hide is shown as what it is.
// Pure. The result is still only text, and only ever becomes a text node.

const pictures = /[\u0000-\u0008\u000b-\u001f\u007f]/g; // all control characters but tab and newline
const unseen = /[\u0080-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;
const alone = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

export function visible(s) {
  return s
    .replaceAll('\r\n', '\n')
    .replace(alone, '\ufffd')
    .replace(pictures, (c) => String.fromCharCode(c === '\u007f' ? 0x2421 : 0x2400 + c.charCodeAt(0)))
    .replace(unseen, (c) => '‹U+' + c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0') + '›');
}

// head returns the first n characters of s, or one less where a character of two units would be cut in half.
export function head(s, n) {
  if (s.length <= n) return s;
  const c = s.charCodeAt(n - 1);
  return s.slice(0, c >= 0xd800 && c < 0xdc00 ? n - 1 : n);
}

// line returns s on one line, at most n characters long, visible.
export function line(s, n = 300) {
  const cut = head(s, n);
  return visible(cut.replace(/\s+/g, ' ').trim()) + (cut.length < s.length ? '…' : '');
}

// Images and PDFs that go along with a message: what they are by their content, and what is taken of them. Pure. The daemon looks once more, and counts the pages of a PDF.

// limits are those of internal/media and of the wire (TestThePageKnowsTheLimitsOfAttachments).
export const limits = { image: 3932160, pdf: 20971520, side: 8000, files: 20, all: 5242880 };

// accept is what the file picker offers.
export const accept = 'image/png,image/jpeg,image/gif,image/webp,application/pdf';

// headBytes is how much of a file tells its kind and its size in pixels: a photo may have much before it.
export const headBytes = 1 << 18;

const text = (b, from, to) => String.fromCharCode(...b.subarray(from, to));

// kind returns what a file is that begins with b, by its content; '' = it is none that is taken.
export function kind(b) {
  if (text(b, 0, 8) === '\x89PNG\r\n\x1a\n') return 'PNG image';
  if (text(b, 0, 3) === '\xff\xd8\xff') return 'JPEG image';
  if (/^GIF8[79]a/.test(text(b, 0, 6))) return 'GIF image';
  if (text(b, 0, 4) === 'RIFF' && text(b, 8, 12) === 'WEBP') return 'WebP image';
  return text(b, 0, 5) === '%PDF-' ? 'PDF' : '';
}

const big = (b, at, n) => b.subarray(at, at + n).reduce((v, x) => v * 256 + x, 0);
const little = (b, at, n) => b.slice(at, at + n).reverse().reduce((v, x) => v * 256 + x, 0);

// pixels reads the size of a picture, as [width, height]; [0, 0] = its beginning does not tell it.
export function pixels(what, b) {
  switch (what) {
    case 'PNG image':
      return [big(b, 16, 4), big(b, 20, 4)];
    case 'GIF image':
      return [little(b, 6, 2), little(b, 8, 2)];
    case 'WebP image':
      switch (text(b, 12, 16)) {
        case 'VP8 ': return [little(b, 26, 2) & 0x3fff, little(b, 28, 2) & 0x3fff];
        case 'VP8L': return [(little(b, 21, 2) & 0x3fff) + 1, ((little(b, 21, 4) >>> 14) & 0x3fff) + 1];
        case 'VP8X': return [little(b, 24, 3) + 1, little(b, 27, 3) + 1];
        default: return [0, 0];
      }
    case 'JPEG image':
      for (let at = 2; at + 8 < b.length && b[at] === 0xff;) { // from segment to segment
        const mark = b[at + 1];
        if (mark >= 0xc0 && mark <= 0xcf && mark !== 0xc4 && mark !== 0xc8 && mark !== 0xcc) return [big(b, at + 7, 2), big(b, at + 5, 2)];
        at += 2 + big(b, at + 2, 2);
      }
  }
  return [0, 0];
}

// size writes a number of bytes as the conversation has it.
export const size = (n) => (n === 1 ? '1 byte' : n < 1000 ? `${n} bytes` : n < 999500 ? `${Math.floor((n + 500) / 1000)} kB` : `${(n / 1e6).toFixed(1)} MB`);

// look returns what is known of a file, or its problem: why no model could be shown it. b is its beginning.
export function look(name, bytes, b) {
  const what = kind(b), most = what === 'PDF' ? limits.pdf : limits.image;
  const [width, height] = pixels(what, b);
  const f = { name, bytes, what, width, height };
  if (!bytes) f.problem = 'the file is empty';
  else if (!what) f.problem = 'its content is no PNG, JPEG, GIF or WebP image and no PDF, whatever the name says';
  else if (bytes > most) f.problem = `the ${what} has ${size(bytes)}, and models take at most ${size(most)}: make it smaller first`;
  else if (width > limits.side || height > limits.side) f.problem = `the ${what} has ${width}×${height} pixels, and models take at most ${limits.side}×${limits.side}: make it smaller first`;
  return f;
}

// media are the types of the kinds.
const media = { 'PNG image': 'image/png', 'JPEG image': 'image/jpeg', 'GIF image': 'image/gif', 'WebP image': 'image/webp', PDF: 'application/pdf' };

// mediaOf returns the type of what begins with b, by its content; '' = it is none that is taken.
export const mediaOf = (b) => media[kind(b)] || '';

// drawable reports whether a browser may decode a picture: its header says that it is none of those that fill the memory.
export const drawable = (f) => f.what !== 'PDF' && !f.problem && f.width > 0 && f.height > 0;

// given returns what is dropped or pasted, as {files, folders}: a browser gives a folder as a file that cannot be read.
export function given(transfer) {
  const files = [...transfer?.files || []], folders = [...transfer?.items || []].filter((i) => i.kind === 'file' && i.webkitGetAsEntry?.()?.isDirectory).map((i) => i.webkitGetAsEntry().name);
  return { files: files.filter((f) => !folders.includes(f.name)), folders };
}

// meansText reports whether what is pasted is a text of which a picture is only another form, as tables and documents have it.
export const meansText = (types) => types.includes('text/plain') && (types.includes('text/html') || types.includes('text/rtf'));

// distinct returns a name that is not among others: the clipboard calls every picture the same.
export function distinct(name, taken) {
  const dot = name.lastIndexOf('.') > 0 ? name.lastIndexOf('.') : name.length;
  let out = name;
  for (let n = 2; taken.includes(out); n++) out = `${name.slice(0, dot)}-${n}${name.slice(dot)}`;
  return out;
}

// saved is the name under which a file is saved: that of its content, whatever the name says, and of plain characters.
export function saved(name, type) {
  const plain = name.replace(/[^\p{L}\p{N} ._()-]/gu, '_').replace(/^\.+/, ''), ends = { 'image/jpeg': /\.jpe?g$/i, 'application/pdf': /\.pdf$/i }[type] || new RegExp(`\\.${type.split('/')[1]}$`, 'i');
  return ends.test(plain) ? plain : `${plain || 'unnamed'}.${type === 'image/jpeg' ? 'jpg' : type.split('/')[1]}`;
}

// label names a file as the conversation will.
export const label = (f) => (f.what === 'PDF' ? `PDF ${f.name}${f.pages ? `, ${f.pages} ${f.pages === 1 ? 'page' : 'pages'}` : ''}, ${size(f.bytes)}` : `image ${f.name}${f.width ? ` ${f.width}×${f.height}` : ''}, ${size(f.bytes)}`);

// known is a file as the daemon names it.
export const known = (a) => ({ ...a, what: a.media === 'application/pdf' ? 'PDF' : 'image' });

// together returns why files cannot go along with one message; '' = they can.
export function together(files) {
  const all = files.reduce((n, f) => n + f.bytes, 0);
  if (files.length > limits.files) return `${files.length} files are attached, and at most ${limits.files} are taken`;
  if (all > limits.all) return `the files have ${size(all)} together, and a message takes at most ${size(limits.all)}: name one in the text, and the agent reads it`;
  return '';
}

import assert from 'node:assert/strict';
import test from 'node:test';
import { distinct, drawable, given, kind, label, limits, look, meansText, mediaOf, pixels, saved, size, together } from '../src/lib/attach.js';
import { fit } from '../src/lib/picture.js';
import { unsent } from '../src/lib/draft.js';
import { belongs } from '../src/lib/start.js';

const b = (s) => Uint8Array.from(s, (c) => c.charCodeAt(0));

test('a file is what its content says, with its size in pixels', () => {
  for (const [what, bytes, want] of [
    ['PNG image', b('\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x02\x80\0\0\x01\xe0'), [640, 480]],
    ['GIF image', b('GIF89a\x07\x00\x02\x01'), [7, 258]],
    ['JPEG image', b('\xff\xd8\xff\xe0\x00\x04ab\xff\xc0\x00\x0b\x08\x00\x05\x00\x03'), [3, 5]],
    ['WebP image', b('RIFF\x1a\x00\x00\x00WEBPVP8L\x0d\x00\x00\x00\x2f\x00\x00\x00\x10\x07\x10\x11\x11\x88\x88\xfe\x07\x00'), [1, 1]],
    ['WebP image', b('RIFF\x16\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x30\x01\x00\x9d\x01\x2a\x40\x01\xf0\x00'), [320, 240]],
    ['WebP image', b('RIFF\x16\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x10\x00\x00\x00\x1f\x03\x00\x57\x02\x00'), [800, 600]],
    ['PDF', b('%PDF-1.7\n'), [0, 0]],
    ['', b('no picture'), [0, 0]],
    ['', b(''), [0, 0]],
    ['JPEG image', b('\xff\xd8\xff\xe0\x00\x00'), [0, 0]],
  ]) {
    assert.equal(kind(bytes), what);
    assert.deepEqual(pixels(what, bytes), want);
  }
});

test('what models do not take is refused with a reason', () => {
  const png = (w) => b(`\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0${String.fromCharCode(w >> 8, w & 255)}\0\0\0\x01`);
  assert.equal(look('a.png', 70, png(9)).problem, undefined);
  assert.match(look('a.png', 0, b('')).problem, /is empty/);
  assert.match(look('a.png', 4, b('text')).problem, /whatever the name says/);
  assert.match(look('a.png', limits.image + 1, png(9)).problem, /3\.9 MB, and models take at most 3\.9 MB/);
  assert.match(look('a.png', 70, png(8001)).problem, /8001×1 pixels, and models take at most 8000×8000/);
  assert.equal(look('a.pdf', limits.image + 1, b('%PDF-1.7')).problem, undefined);
  assert.equal(label(look('a.png', 12345, png(9))), 'image a.png 9×1, 12 kB');
  assert.equal(label(look('a.pdf', 999, b('%PDF-1.7'))), 'PDF a.pdf, 999 bytes');
  assert.deepEqual([1, 999499, 999500].map(size), ['1 byte', '999 kB', '1.0 MB']);
});

test('what the daemon refuses of them stands beside the task', () => {
  for (const message of ['Spawn cut.png: cannot be attached: the content is no image, whatever the name says', 'Spawn: the attached files have 5.3 MB together, and at most 5.2 MB are taken', 'Spawn: 21 files are attached and at most 20 are taken']) {
    assert.equal(belongs({ message }, {}), 'intent');
  }
});

test('one message takes so many files and bytes', () => {
  const of = (n, bytes) => Array.from({ length: n }, () => ({ bytes }));
  assert.equal(together(of(20, 10)), '');
  assert.match(together(of(21, 10)), /21 files are attached, and at most 20/);
  assert.equal(together(of(2, limits.all / 2)), '');
  assert.match(together(of(2, limits.all / 2 + 1)), /5\.2 MB together/);
});

test('a folder is told from files', () => {
  const file = (name) => ({ name }), item = (name, isDirectory) => ({ kind: 'file', webkitGetAsEntry: () => ({ name, isDirectory }) });
  const [a, b] = [file('a.png'), file('pictures')];
  assert.deepEqual(given({ files: [a, b], items: [item('a.png', false), item('pictures', true)] }), { files: [a], folders: ['pictures'] });
  assert.deepEqual(given({ files: [a], items: [{ kind: 'string' }, { kind: 'file' }] }), { files: [a], folders: [] });
  assert.deepEqual(given(null), { files: [], folders: [] });
});

test('a table that is pasted is a text, and a picture is a picture', () => {
  assert.equal(meansText(['text/plain', 'text/html', 'Files']), true);
  assert.equal(meansText(['text/plain', 'text/rtf', 'Files']), true);
  for (const types of [['Files'], ['text/html', 'Files'], ['text/plain', 'Files']]) assert.equal(meansText(types), false, types.join());
});

test('files of one name get names of their own', () => {
  assert.equal(distinct('image.png', []), 'image.png');
  assert.equal(distinct('image.png', ['image.png', 'image-2.png']), 'image-3.png');
  assert.equal(distinct('.png', ['.png']), '.png-2');
  assert.equal(distinct('none', ['none']), 'none-2');
});

test('a file is saved as what its content is, under a plain name', () => {
  assert.equal(saved('a.png', 'image/png'), 'a.png');
  assert.equal(saved('photo.JPEG', 'image/jpeg'), 'photo.JPEG');
  assert.equal(saved('bill.pdf.exe', 'application/pdf'), 'bill.pdf.exe.pdf');
  assert.equal(saved('gnp\u202e.exe', 'image/png'), 'gnp_.exe.png');
  assert.equal(saved('../<b>&".html', 'image/gif'), '__b___.html.gif');
  assert.equal(saved('', 'image/webp'), 'unnamed.webp');
  assert.equal(mediaOf(b('<svg xmlns="http://www.w3.org/2000/svg">')), '');
  assert.equal(mediaOf(b('%PDF-1.7')), 'application/pdf');
});

test('only what a browser can bear is drawn', () => {
  const png = (w) => b(`\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0${String.fromCharCode(w >> 8, w & 255)}\0\0\0\x01`);
  assert.equal(drawable(look('a.png', 70, png(8000))), true);
  for (const [what, f] of [['too wide', look('a.png', 70, png(8001))], ['none', look('a.svg', 70, b('<svg>'))], ['a PDF', look('a.pdf', 70, b('%PDF-1.7'))], ['of unknown size', look('a.jpg', 70, b('\xff\xd8\xff\xe0\0\0'))], ['empty', look('a.png', 70, png(0))]]) assert.equal(drawable(f), false, what);
  assert.deepEqual([fit(8000, 4000, 180, 120), fit(3, 2, 180, 120), fit(1, 8000, 180, 120)], [[180, 90], [3, 2], [1, 120]]);
});

test('what was typed while a message was sent stays', () => {
  assert.deepEqual([unsent('a', 'a'), unsent('a b', 'a'), unsent('other', 'a')], ['', 'b', 'other']);
});

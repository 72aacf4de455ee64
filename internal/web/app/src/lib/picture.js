// Pictures, drawn on a canvas: they need no address that a page could forget, and nothing of them but their pixels gets into the page.
import { call } from './api.js';
import { drawable, headBytes, kind, look, mediaOf } from './attach.js';

// fit returns the size of a picture that is at most so large, and never larger than it is.
export function fit(width, height, wide, high) {
  const by = Math.min(1, wide / width, high / height);
  return [Math.max(1, Math.round(width * by)), Math.max(1, Math.round(height * by))];
}

// examine returns what is known of a file: of a photo, the size may stand behind much else.
export async function examine(file, name = '') {
  const head = new Uint8Array(await file.slice(0, headBytes).arrayBuffer());
  const f = look(name, file.size, head);
  if (f.width || f.problem || kind(head) !== 'JPEG image') return f;
  return look(name, file.size, new Uint8Array(await file.arrayBuffer()));
}

let last = Promise.resolve(); // they are read and decoded one after another: each may take 256 MB for a moment

// paint draws a picture on a canvas, in a box of wide × high pixels of the screen, and returns why it could not; '' = it is drawn. load gives its bytes as a Blob.
export function paint(canvas, load, wide, high, signal) {
  const mine = last.then(async () => {
    if (signal.aborted) return 'left';
    try {
      const blob = await load(signal);
      if (!drawable(await examine(blob))) return 'it is no picture that is drawn here';
      const picture = await createImageBitmap(blob);
      try {
        if (signal.aborted) return 'left';
        const dots = Math.min(devicePixelRatio || 1, 2);
        [canvas.width, canvas.height] = fit(picture.width, picture.height, wide * dots, high * dots);
        canvas.style.aspectRatio = `${canvas.width} / ${canvas.height}`;
        canvas.style.width = `${canvas.width / dots}px`;
        const on = canvas.getContext('2d');
        on.imageSmoothingQuality = 'high';
        on.drawImage(picture, 0, 0, canvas.width, canvas.height);
      } finally {
        picture.close();
      }
      return '';
    } catch (err) {
      return err.name === 'InvalidStateError' || err.name === 'EncodingError' ? 'its content cannot be drawn' : err.message;
    }
  });
  last = mine;
  return mine;
}

// blobOf returns bytes in base64 as a Blob, whose type is that of its content.
export function blobOf(base64) {
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return new Blob([bytes], { type: mediaOf(bytes) || 'application/octet-stream' });
}

// loader returns what reads an attachment of a process.
export const loader = (id, sum) => async (signal) => blobOf((await call('read_attachment', { target: id, sha256: sum }, { signal })).data);

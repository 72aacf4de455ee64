// Markdown of models as a tree of what the page may show: no HTML, no images, no link that leads anywhere. Pure.
import MarkdownIt from 'markdown-it';

const md = new MarkdownIt({ html: false, linkify: false, typographer: false, maxNesting: 30 });

// kinds are the elements that there are; headings begin below those of the page.
const kinds = {
  paragraph: 'p', bullet_list: 'ul', ordered_list: 'ol', list_item: 'li', blockquote: 'blockquote', strong: 'strong', em: 'em', s: 's',
  table: 'table', thead: 'thead', tbody: 'tbody', tr: 'tr', th: 'th', td: 'td',
};
const headings = { h1: 'h3', h2: 'h4', h3: 'h5', h4: 'h6', h5: 'h6', h6: 'h6' };

// markdown returns a text as nodes: each is a string, or {tag, kids, ...} with a tag of kinds or headings, or one of hr, br, code (in a line), block (of
// code: lang, text), link (to) and image (to).
export function markdown(text) {
  return tree(md.parse(text, {}));
}

function tree(tokens) {
  const root = { kids: [] }, stack = [root];
  const add = (n) => {
    const { kids } = stack.at(-1);
    if (typeof n === 'string' && typeof kids.at(-1) === 'string') kids[kids.length - 1] += n;
    else if (n !== '') kids.push(n);
  };
  for (const t of tokens) {
    if (t.nesting > 0) {
      const n = opened(t);
      if (n.tag) add(n);
      else n.kids = stack.at(-1).kids; // what stands for nothing passes on what is in it
      stack.push(n);
    } else if (t.nesting < 0) {
      stack.pop();
    } else if (t.type === 'inline') tree(t.children).forEach(add);
    else add(leaf(t));
  }
  return root.kids;
}

function opened(t) {
  const name = t.type.replace(/_open$/, '');
  if (name === 'heading') return { tag: headings[t.tag] || 'h6', kids: [] };
  if (name === 'link') return { tag: 'link', to: t.attrGet('href') || '', kids: [] };
  const n = { tag: t.hidden ? '' : kinds[name] || '', kids: [] };
  if (n.tag === 'ol') n.start = Number(t.attrGet('start') ?? 1);
  return n;
}

function leaf(t) {
  switch (t.type) {
    case 'fence': return { tag: 'block', lang: t.info.trim().split(/\s+/)[0], text: t.content.replace(/\n$/, '') };
    case 'code_block': return { tag: 'block', lang: '', text: t.content.replace(/\n$/, '') };
    case 'code_inline': return { tag: 'code', text: t.content };
    case 'hr': return { tag: 'hr' };
    case 'softbreak': return ' ';
    case 'hardbreak': return { tag: 'br' };
    case 'image': return { tag: 'image', text: t.content, to: t.attrGet('src') || '' };
  }
  return t.content;
}

// Light or dark: as the system says, until a person says otherwise.
import { signal, effect } from './html.js';

const name = 'rnix-theme';
export const theme = signal(localStorage.getItem(name) || 'auto');

effect(() => {
  const t = theme.value;
  if (t === 'auto') {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(name);
  } else {
    document.documentElement.dataset.theme = t;
    localStorage.setItem(name, t);
  }
});

export function nextTheme() {
  theme.value = { auto: 'light', light: 'dark', dark: 'auto' }[theme.value] || 'auto';
}

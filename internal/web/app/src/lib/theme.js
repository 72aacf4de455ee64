// Light or dark: as the system says, until a person says otherwise.
import { signal, computed, effect } from './html.js';

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

// scheme changes whenever the colours do, for what has to take them out of the style.
const dark = matchMedia('(prefers-color-scheme: dark)');
const system = signal(dark.matches);
dark.addEventListener('change', (e) => { system.value = e.matches; });
export const scheme = computed(() => (theme.value === 'auto' ? (system.value ? 'dark' : 'light') : theme.value));

export function nextTheme() {
  theme.value = { auto: 'light', light: 'dark', dark: 'auto' }[theme.value] || 'auto';
}

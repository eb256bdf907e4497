import { useState } from 'preact/hooks'

/** The theme follows the system until the user chooses light or dark. */
export type Theme = 'system' | 'light' | 'dark'

const NAME = 'tollgate-theme'
const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' }

export function storedTheme(): Theme {
  const value = localStorage.getItem(NAME)
  return value === 'light' || value === 'dark' ? value : 'system'
}

export function showTheme(theme: Theme): void {
  document.documentElement.style.colorScheme = theme === 'system' ? '' : theme
}

export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState(storedTheme)
  function showNext(): void {
    const next = NEXT[theme]
    localStorage.setItem(NAME, next)
    showTheme(next)
    setTheme(next)
  }
  return [theme, showNext]
}

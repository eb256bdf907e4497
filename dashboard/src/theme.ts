import { useEffect, useState } from 'preact/hooks'

/** The theme follows the system until the reader chooses light or dark. */
export type Theme = 'system' | 'light' | 'dark'

const NAME = 'tollgate-theme'
const NEXT: Record<Theme, Theme> = { system: 'light', light: 'dark', dark: 'system' }

function kept(): Theme {
  const value = localStorage.getItem(NAME)
  return value === 'light' || value === 'dark' ? value : 'system'
}

export function useTheme(): [Theme, () => void] {
  const [theme, setTheme] = useState<Theme>(kept)
  useEffect(() => {
    document.documentElement.style.colorScheme = theme === 'system' ? '' : theme
    localStorage.setItem(NAME, theme)
  }, [theme])
  return [theme, () => setTheme(NEXT[theme])]
}

import { render } from 'preact'
import { App } from './app.tsx'
import { showTheme, storedTheme } from './theme.ts'
import './styles/tokens.css'
import './styles/base.css'
import './styles/words.css'

showTheme(storedTheme())
const root = document.getElementById('app')
root?.replaceChildren()
if (root !== null) render(<App />, root)

// First, because the first style sheet names the order of the layers.
import './styles/tokens.css'
import './styles/base.css'
import './styles/words.css'
import { render } from 'preact'
import { App } from './app.tsx'
import { showTheme, storedTheme } from './theme.ts'

showTheme(storedTheme())
const root = document.getElementById('app')
root?.replaceChildren()
if (root !== null) render(<App />, root)

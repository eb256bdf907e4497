import { useEffect, useState } from 'preact/hooks'
import { Button } from './parts/button.tsx'
import { Dialog } from './parts/dialog.tsx'
import { Fact, Facts } from './parts/figures.tsx'

function focusRow(step: 1 | -1): void {
  const rows = [...document.querySelectorAll('main tbody tr:has(a, button)')].filter((row) =>
    row.checkVisibility(),
  )
  const at = rows.findIndex((row) => row.contains(document.activeElement))
  const next = rows[at === -1 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step))]
  next?.querySelector<HTMLElement>('a, button')?.focus()
}

/** A click on a row, but not on one of its links, opens the row's record, unless the click ends a selection of text. */
function openRow(event: MouseEvent): void {
  const target = event.target as HTMLElement
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  if (target.closest('a, button, input, label, select') !== null || getSelection()?.isCollapsed === false)
    return
  target.closest('tr')?.querySelector<HTMLAnchorElement>('a.opens')?.click()
}

const KEYS = [
  ['Ctrl K', 'Go to a page, key, person, model or request'],
  ['/', 'Search this page'],
  ['j', 'Next row'],
  ['k', 'Previous row'],
  ['Esc', 'Close a dialog'],
  ['?', 'Show this list'],
] as const

export function KeyboardShortcuts() {
  const [isShown, setShown] = useState(false)
  useEffect(() => {
    function onKeyDown(event: KeyboardEvent): void {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      const target = event.target as HTMLElement
      if (target.closest('input, textarea, select, dialog') !== null) return
      if (event.key === '/') {
        const search = document.querySelector<HTMLInputElement>('input[type=search]')
        if (search === null) return
        event.preventDefault()
        search.focus()
        search.select()
      } else if (event.key === '?') setShown(true)
      else if (event.key === 'j') focusRow(1)
      else if (event.key === 'k') focusRow(-1)
    }
    addEventListener('keydown', onKeyDown)
    addEventListener('click', openRow)
    return () => {
      removeEventListener('keydown', onKeyDown)
      removeEventListener('click', openRow)
    }
  }, [])

  if (!isShown) return null
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => setShown(false)}>
      <Facts>
        {KEYS.map(([key, words]) => (
          <Fact key={key} title={<kbd>{key}</kbd>} value={words} />
        ))}
      </Facts>
      <div class="actions">
        <Button title="Close" kind="primary" onClick={() => setShown(false)} />
      </div>
    </Dialog>
  )
}

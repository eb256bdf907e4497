import { useEffect, useState } from 'preact/hooks'
import { go } from './router.tsx'
import { Button } from './ui/button.tsx'
import { Dialog } from './ui/dialog.tsx'
import { Fact, Facts } from './ui/facts.tsx'

/** The pages after `g`. */
const PAGES: Readonly<Record<string, string>> = {
  o: '/',
  k: '/keys',
  u: '/usage',
  r: '/requests',
  c: '/credits',
  a: '/activity',
  w: '/webhooks',
  p: '/prices',
  s: '/settings',
}

/** Moves the focus to the first link of the next row, or of the one before. */
function moveByRows(step: 1 | -1): void {
  const rows = [...document.querySelectorAll('main tbody tr:has(a, button)')].filter((row) =>
    row.checkVisibility(),
  )
  const at = rows.findIndex((row) => row.contains(document.activeElement))
  const next = rows[at === -1 ? 0 : Math.max(0, Math.min(rows.length - 1, at + step))]
  next?.querySelector<HTMLElement>('a, button')?.focus()
}

/** A click beside the links of a row opens what the row is about, unless text was selected. */
function openRow(event: MouseEvent): void {
  const target = event.target as HTMLElement
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return
  if (target.closest('a, button, input, label, select') !== null || getSelection()?.isCollapsed === false)
    return
  target.closest('tr')?.querySelector<HTMLAnchorElement>('a.opens')?.click()
}

/**
 * Keys that work on every page, except while a field has the focus: `/`, `?`, `j` and `k`, and `g` with the letter of a
 * page.
 */
export function Habits() {
  const [isShown, show] = useState(false)
  useEffect(() => {
    let isGoing = false
    function pressed(event: KeyboardEvent): void {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      const target = event.target as HTMLElement
      if (target.closest('input, textarea, select, dialog') !== null) return
      if (event.key === '/') {
        const search = document.querySelector<HTMLInputElement>('input[type=search]')
        if (search === null) return
        event.preventDefault()
        search.focus()
        search.select()
      } else if (event.key === '?') show(true)
      else if (event.key === 'j') moveByRows(1)
      else if (event.key === 'k' && !isGoing) moveByRows(-1)
      else if (event.key === 'g') isGoing = true
      else if (isGoing && event.key in PAGES) go(PAGES[event.key] ?? '/')
      if (event.key !== 'g') isGoing = false
    }
    addEventListener('keydown', pressed)
    addEventListener('click', openRow)
    return () => {
      removeEventListener('keydown', pressed)
      removeEventListener('click', openRow)
    }
  }, [])

  if (!isShown) return null
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => show(false)}>
      <Facts>
        <Fact title={<kbd>/</kbd>} value="Search this page" />
        <Fact
          title={
            <>
              <kbd>j</kbd> <kbd>k</kbd>
            </>
          }
          value="Next row, previous row"
        />
        <Fact title={<kbd>Esc</kbd>} value="Close a dialog" />
        <Fact title={<kbd>?</kbd>} value="Show this list" />
        {Object.entries(PAGES).map(([letter, path]) => (
          <Fact
            key={letter}
            title={
              <>
                <kbd>g</kbd> <kbd>{letter}</kbd>
              </>
            }
            value={`Go to ${path.slice(1) || 'overview'}`}
          />
        ))}
      </Facts>
      <div class="actions">
        <Button title="Close" kind="primary" onClick={() => show(false)} />
      </div>
    </Dialog>
  )
}

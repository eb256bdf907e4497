import { useEffect, useState } from 'preact/hooks'
import { go } from './router.tsx'
import { Button } from './ui/button.tsx'
import { Dialog } from './ui/dialog.tsx'
import { Fact, Facts } from './ui/facts.tsx'

/** The pages after `g`. */
const PAGES: Readonly<Record<string, string>> = { o: '/', k: '/keys', u: '/usage', r: '/requests' }

/** Keys that work on every page, except while a field has the focus: `/`, `?`, and `g` with the letter of a page. */
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
      else if (event.key === 'g') isGoing = true
      else if (isGoing && event.key in PAGES) go(PAGES[event.key] ?? '/')
      if (event.key !== 'g') isGoing = false
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])

  if (!isShown) return null
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => show(false)}>
      <Facts>
        <Fact title="/" value="search" />
        <Fact title="Esc" value="closes a dialog" />
        <Fact title="g, then o k u r" value="goes to overview, keys, usage, requests" />
        <Fact title="?" value="this list" />
      </Facts>
      <div class="actions">
        <Button title="Close" kind="primary" onClick={() => show(false)} />
      </div>
    </Dialog>
  )
}

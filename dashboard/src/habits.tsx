import { useEffect, useState } from 'preact/hooks'
import { go } from './router.tsx'
import { Dialog } from './ui/dialog.tsx'

interface Destination {
  readonly path: string
  readonly title: string
  readonly letter: string
}

/** How long after `g` a letter counts as the second of the chord, as in `g k`. */
const CHORD_MS = 1_500

/** Keys that work on every page, except while a field has the focus: `/`, `g` with a letter, `?`. */
export function Habits({ pages }: { readonly pages: readonly Destination[] }) {
  const [isShown, show] = useState(false)
  useEffect(() => {
    let chordUntilMs = 0
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
      else if (event.key === 'g') chordUntilMs = Date.now() + CHORD_MS
      else if (Date.now() < chordUntilMs) {
        chordUntilMs = 0
        const page = pages.find(({ letter }) => letter === event.key)
        if (page !== undefined) go(page.path)
      }
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [pages])

  if (!isShown) return null
  return (
    <Dialog title="Keys" onClose={() => show(false)}>
      <dl class="facts">
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>search</dd>
        {pages.map(({ letter, title }) => [
          <dt key={`${letter}-key`}>
            <kbd>g</kbd> <kbd>{letter}</kbd>
          </dt>,
          <dd key={letter}>{title}</dd>,
        ])}
        <dt>
          <kbd>Esc</kbd>
        </dt>
        <dd>closes a dialog</dd>
        <dt>
          <kbd>?</kbd>
        </dt>
        <dd>this list</dd>
      </dl>
      <div class="actions">
        <button type="button" class="primary" onClick={() => show(false)}>
          Close
        </button>
      </div>
    </Dialog>
  )
}

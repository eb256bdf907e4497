import { useEffect, useState } from 'preact/hooks'
import { Dialog } from './ui/dialog.tsx'

/** Keys that work on every page, except while a field has the focus: `/` and `?`. */
export function Habits() {
  const [isShown, show] = useState(false)
  useEffect(() => {
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
    }
    addEventListener('keydown', pressed)
    return () => removeEventListener('keydown', pressed)
  }, [])

  if (!isShown) return null
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => show(false)}>
      <dl class="facts">
        <dt>
          <kbd>/</kbd>
        </dt>
        <dd>search</dd>
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

import { useEffect, useState } from 'preact/hooks'
import s from './command-menu.module.css'
import { usePermissions, useResource } from './data.ts'
import { Dialog } from './parts/dialog.tsx'
import { navigate, withQuery } from './router.tsx'

/** An entry of the menu: a page, a record, or an action. */
export interface Command {
  readonly title: string
  readonly kind: string
  run(): void
}

const SHOWN_MAX = 9
const RECORD_PAGES: Readonly<Record<string, string>> = {
  req: '/requests/',
  key: '/keys/',
  acct: '/accounts/',
  per: '/people/',
  wh: '/webhooks?id=',
}

const go = (kind: string, title: string, to: string): Command => ({ kind, title, run: () => navigate(to) })

/** The record of an id, whatever its kind. */
function recordOf(text: string): readonly Command[] {
  const [, prefix = ''] = /^([a-z]+)_[0-9A-Z]{26}$/.exec(text) ?? []
  const page = RECORD_PAGES[prefix]
  return page === undefined ? [] : [go('Open', text, page + text)]
}

/** Every word of the search is in the title, in any order. */
function matches({ title, kind }: Command, search: string): boolean {
  const text = `${kind} ${title}`.toLowerCase()
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

/** Ctrl-K or ⌘K opens a menu of all pages, keys, people, models and actions, and of every record by its id. */
export function CommandMenu({ commands }: { readonly commands: readonly Command[] }) {
  const [isOpen, setOpen] = useState(false)
  useEffect(() => {
    function onKeyDown(event: KeyboardEvent): void {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey) return
      // A second dialog would hide the first one, which may show a secret.
      if (document.querySelector('dialog') !== null) return
      event.preventDefault()
      setOpen(true)
    }
    addEventListener('keydown', onKeyDown)
    return () => removeEventListener('keydown', onKeyDown)
  }, [])
  return (
    <>
      <button type="button" onClick={() => setOpen(true)}>
        Go to <kbd>Ctrl K</kbd>
      </button>
      {isOpen && <Menu commands={commands} onClose={() => setOpen(false)} />}
    </>
  )
}

const COMBOBOX = {
  role: 'combobox',
  list: undefined,
  'aria-controls': 'commands',
  'aria-expanded': true,
} as const

interface MenuProps {
  readonly commands: readonly Command[]
  onClose(): void
}

function Menu({ commands, onClose }: MenuProps) {
  const { isDeveloper, maySeeAll } = usePermissions()
  const [typed, setTyped] = useState('')
  const [at, setAt] = useState(0)
  const search = typed.trim()
  const asksApi = search.length > 1 && !isDeveloper
  const found = { search, limit: SHOWN_MAX }
  const keys = useResource('/v1/keys', asksApi ? found : null)
  const people = useResource('/gateway/v1/people', asksApi && maySeeAll ? found : null)
  const book = useResource('/gateway/v1/prices', asksApi ? {} : null)
  const models = (book.value?.models ?? []).filter(({ id }) => id.includes(search.toLowerCase()))
  const shown = [
    ...recordOf(search),
    ...commands.filter((command) => matches(command, search)),
    ...(asksApi ? (keys.value?.data ?? []) : []).map(({ id, name }) => go('Key', name, `/keys/${id}`)),
    ...(asksApi ? (people.value?.data ?? []) : []).map(({ id, name, email }) =>
      go('Person', name || email || id, `/people/${id}`),
    ),
    ...(asksApi ? models : []).map(({ id }) => go('Calls of', id, withQuery('/requests', { model: id }))),
  ].slice(0, SHOWN_MAX)
  const chosen = Math.min(at, shown.length - 1)
  function run(command: Command | undefined): void {
    if (command === undefined) return
    onClose()
    command.run()
  }
  function onKeyDown(event: KeyboardEvent): void {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (step === undefined && event.key !== 'Enter') return
    event.preventDefault()
    if (step === undefined) run(shown[chosen])
    else setAt((chosen + step + shown.length) % Math.max(1, shown.length))
  }
  return (
    <Dialog title="Go to" onClose={onClose}>
      <input
        type="search"
        class={s.field}
        {...COMBOBOX}
        aria-label="Page, key, person, model, id or action"
        aria-activedescendant={shown.length === 0 ? undefined : `command-${chosen}`}
        placeholder="Page, key, person, model, id or action"
        value={typed}
        onInput={(event) => {
          setTyped(event.currentTarget.value)
          setAt(0)
        }}
        onKeyDown={onKeyDown}
      />
      <div id="commands" class={s.commands} role="listbox" aria-label="Results">
        {shown.map((command, i) => (
          // The keyboard stays in the field, which names the chosen option.
          <div
            key={`${command.kind} ${command.title} ${i}`}
            id={`command-${i}`}
            role="option"
            tabIndex={-1}
            aria-selected={i === chosen}
            onPointerMove={() => setAt(i)}
            onClick={() => run(command)}
            onKeyDown={onKeyDown}
          >
            <span class="name">{command.title}</span> <small class="quiet">{command.kind}</small>
          </div>
        ))}
      </div>
      {shown.length === 0 && <p class="quiet">{keys.isLoading ? 'Searching…' : 'Nothing has that name.'}</p>}
    </Dialog>
  )
}

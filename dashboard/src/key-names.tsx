import { useEffect, useState } from 'preact/hooks'
import { fetchAnswer, type Key } from './api.ts'
import { Link } from './router.tsx'

/** Names of keys by id: calls carry the id, people know the name. Each name is read once and kept while the page is open. */
const names = new Map<string, Promise<string>>()

function nameOf(id: string): Promise<string> {
  let name = names.get(id)
  if (name === undefined) {
    name = fetchAnswer<Key>('GET', `/v1/keys/${id}`).then(
      (answer) => answer?.value.name ?? id,
      () => {
        names.delete(id)
        return id
      },
    )
    names.set(id, name)
  }
  return name
}

export function rememberNames(keys: readonly { readonly id: string; readonly name: string }[]): void {
  for (const { id, name } of keys) names.set(id, Promise.resolve(name))
}

export function useKeyName(id: string | null): string | null {
  const [name, setName] = useState<string | null>(null)
  useEffect(() => {
    let isGone = false
    if (id !== null)
      void nameOf(id).then((name) => {
        if (!isGone) setName(name)
      })
    return () => {
      isGone = true
    }
  }, [id])
  return id === null ? null : name
}

export function KeyLink({ id }: { readonly id: string }) {
  const name = useKeyName(id)
  return (
    <Link to={`/keys/${id}`} class="name" title={id}>
      {name ?? `${id.slice(0, 8)}…`}
    </Link>
  )
}

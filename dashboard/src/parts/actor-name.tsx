import type { ActivityEvent } from '../api.ts'
import { Link, withQuery } from '../router.tsx'
import { KeyLink } from './figures.tsx'

const BY: Readonly<Record<string, string>> = {
  session: 'in the dashboard',
  admin_key: 'over the API',
  api_key: 'by a call',
  command_line: 'command line',
  system: 'Tollgate',
}

/** The actor of a change. The name of an admin key links to all changes that it made. */
export function ActorName({ actor: { kind, id, name } }: { readonly actor: ActivityEvent['actor'] }) {
  if (id === null) return <span class="quiet">{BY[kind]}</span>
  return (
    <>
      {kind === 'api_key' ? (
        <KeyLink id={id} name={name ?? id} />
      ) : (
        <Link to={withQuery('/activity', { actor: id })} class="name" title={id}>
          {name ?? id}
        </Link>
      )}{' '}
      <small class="quiet">{BY[kind]}</small>
    </>
  )
}

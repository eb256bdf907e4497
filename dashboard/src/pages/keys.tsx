import { useState } from 'preact/hooks'
import type { Key, ListOf, NewKey } from '../api.ts'
import { useResource } from '../data.ts'
import { rememberNames } from '../key-names.tsx'
import { go, Link, setQuery, withQuery } from '../router.tsx'
import { Choices } from '../ui/choices.tsx'
import { BudgetBar, When } from '../ui/figures.tsx'
import { Empty, Show, Tag } from '../ui/states.tsx'
import { type Column, Pages, Table } from '../ui/table.tsx'
import { KeyForm, SecretDialog } from './key-form.tsx'

const ROWS = 100
const STATUSES = ['usable', 'revoked', 'expired'] as const
const SOON_MS = 7 * 86_400_000

/** Which keys can spend, how much is left of each, and which are dead? */
export function KeysPage({ query }: { readonly query: URLSearchParams }) {
  const [isCreating, setCreating] = useState(false)
  const [made, setMade] = useState<NewKey | null>(null)
  const status = query.get('status') ?? 'usable'
  const search = query.get('search') ?? ''
  const after = query.get('after')
  const keys = useResource<ListOf<Key>>(
    withQuery('/v1/keys', {
      limit: ROWS,
      status: status === 'all' ? null : status,
      search,
      after,
      sort: search === '' ? 'attention' : null,
    }),
    5_000,
  )
  if (keys.value !== null) rememberNames(keys.value.data)
  return (
    <>
      <header class="page">
        <h1>Keys</h1>
        <button type="button" class="primary" onClick={() => setCreating(true)}>
          New key
        </button>
      </header>
      <div class="filters">
        <input
          type="search"
          aria-label="Search keys"
          placeholder="Name, id, prefix or last four  /"
          value={search}
          onInput={(event) => setQuery({ search: event.currentTarget.value, after: null }, 'replace')}
        />
        <Choices
          title="Status"
          options={[...STATUSES, 'all']}
          isChosen={(each) => each === status}
          onChoose={(each) => setQuery({ status: each === 'usable' ? null : each, after: null })}
        />
      </div>
      <Show resource={keys} lines={8}>
        {({ data, next }) =>
          data.length === 0 && after === null ? (
            <NoKeys isFiltered={search !== '' || status !== 'usable'} onCreate={() => setCreating(true)} />
          ) : (
            <>
              <Table
                caption="Keys"
                columns={COLUMNS}
                rows={data}
                keyOf={({ id }) => id}
                rowClass={({ status }) => (status === 'usable' ? undefined : 'dead')}
              />
              <Pages after={after} next={next} />
            </>
          )
        }
      </Show>
      {isCreating && (
        <KeyForm
          edited={null}
          onClose={() => setCreating(false)}
          onDone={(key) => {
            setCreating(false)
            setMade(key as NewKey)
            keys.refresh()
          }}
        />
      )}
      {made !== null && (
        <SecretDialog
          title={`The key ${made.name}`}
          secret={made.key}
          hint="Put it where your client reads its API key."
          onClose={() => go(`/keys/${made.id}`)}
        />
      )}
    </>
  )
}

const COLUMNS: readonly Column<Key>[] = [
  {
    title: 'Name',
    isWide: true,
    lead: 'left',
    cell: ({ id, name, status }) => (
      <>
        <Link to={`/keys/${id}`} class="name">
          {name}
        </Link>
        {status !== 'usable' && <Tag kind="plain">{status}</Tag>}
      </>
    ),
  },
  { title: 'This month', cell: (key) => <BudgetBar budget={key} /> },
  { title: 'Last used', lead: 'right', cell: ({ last_used_at }) => <When at={last_used_at} /> },
  {
    title: 'Models',
    isMinor: true,
    cell: ({ allowed_models: models }) =>
      models === null ? (
        <span class="quiet">all</span>
      ) : models.length === 1 ? (
        models[0]
      ) : (
        <span title={models.join('\n')}>{models.length} models</span>
      ),
  },
  { title: 'Expires', isMinor: true, cell: (key) => <Expiry of={key} /> },
  {
    title: 'Key',
    isMinor: true,
    cell: ({ prefix, last4 }) => <code class="quiet">{`${prefix.slice(0, 12)}…${last4}`}</code>,
  },
]

function Expiry({ of: { expires_at, status } }: { readonly of: Key }) {
  const isSoon = status === 'usable' && expires_at !== null && Date.parse(expires_at) - Date.now() < SOON_MS
  return (
    <span class={isSoon ? 'high' : undefined}>
      <When at={expires_at} />
    </span>
  )
}

function NoKeys({ isFiltered, onCreate }: { readonly isFiltered: boolean; onCreate(): void }) {
  if (isFiltered)
    return (
      <Empty>
        <p>No key matches.</p>
        <p>
          <Link to="/keys?status=all">Show all keys</Link>
        </p>
      </Empty>
    )
  return (
    <Empty>
      <p>A key is what a client sends instead of the provider's. Each has its own cap, models and expiry.</p>
      <p>
        <button type="button" class="primary" onClick={onCreate}>
          Make the first key
        </button>
      </p>
    </Empty>
  )
}

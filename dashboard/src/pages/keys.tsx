import { useState } from 'preact/hooks'
import type { Key, ListOf, NewKey } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { go, Link, setQuery, withQuery } from '../router.tsx'
import { Choices } from '../ui/choices.tsx'
import { BudgetBar, When } from '../ui/figures.tsx'
import { Empty, Show, Tag } from '../ui/states.tsx'
import { type Column, Table } from '../ui/table.tsx'
import { KeyForm, SecretDialog } from './key-form.tsx'

/** As many keys are read at once, and as many rows shown. Only if all keys are read can the page sort them. */
const READ = 1_000
const ROWS = 100
const STATUSES = ['usable', 'revoked', 'expired'] as const
const SOON_MS = 7 * 86_400_000

/** Which keys can spend, how much is left of each, and which are dead? */
export function KeysPage({ query }: { readonly query: URLSearchParams }) {
  const { mayManage } = usePermissions()
  const [isCreating, setCreating] = useState(false)
  const [made, setMade] = useState<NewKey | null>(null)
  const status = query.get('status') ?? 'usable'
  const search = query.get('search') ?? ''
  const after = query.get('after')
  const page = Number(query.get('page') ?? 0)
  const keys = useResource<ListOf<Key>>(
    withQuery('/v1/keys', {
      limit: READ,
      status: status === 'all' ? null : status,
      search,
      after,
    }),
    5_000,
  )
  return (
    <>
      <header class="page">
        <h1>Keys</h1>
        {mayManage && (
          <button type="button" class="primary" onClick={() => setCreating(true)}>
            New key
          </button>
        )}
      </header>
      <div class="filters">
        <input
          type="search"
          aria-label="Search keys"
          placeholder="Name, id, prefix or last four  /"
          value={search}
          onInput={(event) => setQuery({ search: event.currentTarget.value, ...FIRST_PAGE }, 'replace')}
        />
        <Choices
          title="Status"
          options={[...STATUSES, 'all']}
          isChosen={(each) => each === status}
          onChoose={(each) => setQuery({ status: each === 'usable' ? null : each, ...FIRST_PAGE })}
        />
      </div>
      <Show resource={keys} lines={8}>
        {({ data, next }) =>
          data.length === 0 && after === null ? (
            <NoKeys
              isFiltered={search !== '' || status !== 'usable'}
              onCreate={mayManage ? () => setCreating(true) : null}
            />
          ) : (
            <>
              <Table
                caption="Keys"
                columns={COLUMNS}
                rows={(after === null && next === null ? byAttention(data) : data).slice(
                  page * ROWS,
                  (page + 1) * ROWS,
                )}
                keyOf={({ id }) => id}
                rowClass={({ status }) => (status === 'usable' ? undefined : 'dead')}
              />
              <KeyPages page={page} after={after} next={next} read={data.length} />
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

const FIRST_PAGE = { after: null, page: null }

interface Pages {
  readonly page: number
  readonly after: string | null
  readonly next: string | null
  /** The number of keys that were read. */
  readonly read: number
}

/** The pages of the keys that were read, then those after them. */
function KeyPages({ page, after, next, read }: Pages) {
  const isLast = (page + 1) * ROWS >= read
  const isFirst = page === 0 && after === null
  if (isFirst && isLast && next === null) return null
  return (
    <nav class="pages" aria-label="More rows">
      {!isFirst && (
        <button type="button" onClick={() => setQuery(FIRST_PAGE)}>
          First page
        </button>
      )}
      {!(isLast && next === null) && (
        <button
          type="button"
          onClick={() => setQuery(isLast ? { after: next, page: null } : { page: page + 1 })}
        >
          Next page
        </button>
      )}
    </nav>
  )
}

/** Spent caps first, then caps that are nearly spent, keys that expire within a week, the rest by the part of the cap spent. */
function byAttention(keys: readonly Key[]): readonly Key[] {
  const rank = ({ status, monthly_budget_usd: cap, month_spend_usd: spent, expires_at }: Key): number => {
    if (status !== 'usable') return -1
    const part = cap === null || cap === 0 ? 0 : spent / cap
    if (part >= 1) return 4
    if (part >= 0.8) return 2 + part
    const leftMs = expires_at === null ? Infinity : Date.parse(expires_at) - Date.now()
    return leftMs < SOON_MS ? 2 - leftMs / SOON_MS / 10 : part
  }
  return keys.toSorted((one, other) => rank(other) - rank(one))
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

function NoKeys({
  isFiltered,
  onCreate,
}: {
  readonly isFiltered: boolean
  readonly onCreate: (() => void) | null
}) {
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
      {onCreate !== null && (
        <p>
          <button type="button" class="primary" onClick={onCreate}>
            Create the first key
          </button>
        </p>
      )}
    </Empty>
  )
}

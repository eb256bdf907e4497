import { useState } from 'preact/hooks'
import type { Key, ListOf } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { capitalize, dayOf, money, plural } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { Choices, Search } from '../parts/choices.tsx'
import { DialogButton } from '../parts/dialog.tsx'
import { Budget, Figure, RelativeTime, tightestCap } from '../parts/figures.tsx'
import { Empty, Heading, Loaded, Tag } from '../parts/states.tsx'
import { type Column, nameColumn, Pages, shortList, Table } from '../parts/table.tsx'
import { Link, navigate, setQuery, withQuery } from '../router.tsx'
import { BulkForm } from './bulk-form.tsx'
import { KeyForm } from './key-form.tsx'

/** Keys per request, and rows per page. The page can sort the keys only if one request has read all of them. */
const READ = 1_000
const ROWS = 100
const STATUSES = ['usable', 'revoked', 'expired'] as const
const SOON_MS = 7 * 86_400_000
const FIRST_PAGE = { after: null, page: null }

const showKey = ({ id }: Key) => navigate(`/keys/${id}`)

/** Lists keys with their spend, budget and state. */
export function KeysPage({ query }: { readonly query: URLSearchParams }) {
  const { mayManage } = usePermissions()
  // Here and not in the empty list, which disappears when the list is read again: the new secret must stay visible.
  // The parameter `new` comes from the command menu.
  const isCreating = query.get('new') !== null
  const setCreating = (isOn: boolean) => setQuery({ new: isOn ? 1 : null }, 'replace')
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set())
  const status = query.get('status') ?? 'usable'
  const search = query.get('search') ?? ''
  const after = query.get('after')
  const sorted = query.get('sort') ?? undefined
  const page = Number(query.get('page') ?? 0)
  const keys = useResource<ListOf<Key>>(
    withQuery('/v1/keys', { limit: READ, status: status === 'all' ? null : status, search, after }),
    5_000,
  )
  function toggle(ids: readonly string[], isChosen: boolean): void {
    const next = new Set(chosen)
    for (const id of ids) isChosen ? next.add(id) : next.delete(id)
    setChosen(next)
  }
  function finishBulk(): void {
    setChosen(new Set())
    keys.refresh()
  }
  const create = (title: string) =>
    mayManage && <Button title={title} kind="primary" onClick={() => setCreating(true)} />
  return (
    <>
      <Heading title="Keys">{create('New key')}</Heading>
      <div class="filters">
        <Search title="Search keys" placeholder="Name, id, last four or metadata.team:web" value={search} />
        <Choices
          title="Status"
          options={[...STATUSES, 'all']}
          nameOf={capitalize}
          isChosen={(each) => each === status}
          onChoose={(each) => setQuery({ status: each === 'usable' ? null : each, ...FIRST_PAGE })}
        />
      </div>
      <Loaded resource={keys} lines={8}>
        {({ data, next }) => {
          if (data.length === 0 && after === null)
            return search !== '' || status !== 'usable' ? (
              <Empty title="No key matches." action={<Link to="/keys?status=all">Show all keys</Link>} />
            ) : (
              <Empty
                title="No key yet."
                words="A client sends a key of this gateway instead of the provider's. Each key has its own budget, models and expiry."
                action={create('Create the first key')}
              />
            )
          const isAll = after === null && next === null
          const shown = (isAll ? inOrder(data, sorted) : data).slice(page * ROWS, (page + 1) * ROWS)
          const selected = data.filter(({ id, status }) => chosen.has(id) && status === 'usable')
          return (
            <>
              <p class="sum-line">
                {selected.length === 0 ? (
                  <KeysTotal of={data} isAll={isAll} />
                ) : (
                  <span class="buttons">
                    <b>{plural(selected.length, 'key')} selected</b>
                    <DialogButton title="Change budget or expiry" onDone={finishBulk}>
                      {(callbacks) => <BulkForm keys={selected} {...callbacks} />}
                    </DialogButton>
                    <Button title="Clear selection" kind="link" onClick={() => setChosen(new Set())} />
                  </span>
                )}
              </p>
              <Table
                caption="Keys"
                columns={[
                  ...(mayManage ? [selectColumn(shown, chosen, toggle)] : []),
                  ...columnsOf(data).map(({ sort, ...column }) => (isAll ? { ...column, sort } : column)),
                ]}
                rows={shown}
                sorted={sorted}
                rowClass={({ status }) => (status === 'usable' ? undefined : 'dead')}
              />
              <Pages
                first={page === 0 && after === null ? null : FIRST_PAGE}
                next={
                  (page + 1) * ROWS < data.length
                    ? { page: page + 1 }
                    : next === null
                      ? null
                      : { after: next, page: null }
                }
              />
            </>
          )
        }}
      </Loaded>
      {isCreating && <KeyForm edited={null} onClose={() => setCreating(false)} onDone={showKey} />}
    </>
  )
}

/** Counts the spend of a budget once: the keys of a rotation share it. */
function KeysTotal({ of: keys, isAll }: { readonly of: readonly Key[]; readonly isAll: boolean }) {
  const budgets = new Map(keys.map((key) => [key.budget_id, key.month_spend_usd]))
  const spent = [...budgets.values()].reduce((sum, usd) => sum + usd, 0)
  return (
    <>
      <b>{isAll ? plural(keys.length, 'key') : `more than ${plural(READ, 'key')}`}</b>{' '}
      {isAll && <span class="quiet">· {money(spent)} this month</span>}
    </>
  )
}

function selectColumn(
  shown: readonly Key[],
  chosen: ReadonlySet<string>,
  toggle: (ids: readonly string[], isChosen: boolean) => void,
): Column<Key> {
  const ids = shown.filter(({ status }) => status === 'usable').map(({ id }) => id)
  return {
    title: (
      <input
        type="checkbox"
        aria-label="Select all"
        checked={ids.length > 0 && ids.every((id) => chosen.has(id))}
        onChange={(event) => toggle(ids, event.currentTarget.checked)}
      />
    ),
    isMinor: true,
    cell: ({ id, name, status }) =>
      status === 'usable' && (
        <input
          type="checkbox"
          aria-label={`Select ${name}`}
          checked={chosen.has(id)}
          onChange={(event) => toggle([id], event.currentTarget.checked)}
        />
      ),
  }
}

/** Ranks exhausted budgets first, then budgets from 80 % on, keys that expire soon, and the others by spent share. */
function attentionRank(key: Key): number {
  if (key.status !== 'usable') return -1
  const { share = 0, isSpent = false } = tightestCap(key) ?? {}
  if (isSpent) return 4
  if (share >= 0.8) return 2 + share
  const leftMs = key.expires_at === null ? Infinity : Date.parse(key.expires_at) - Date.now()
  return leftMs < SOON_MS ? 2 - leftMs / SOON_MS / 10 : share
}

const timeOf = (at: string | null, never: number) => (at === null ? never : Date.parse(at))

const SORTS: Readonly<Record<string, (key: Key) => number | string>> = {
  name: ({ name }) => name.toLowerCase(),
  spend: ({ month_spend_usd }) => month_spend_usd,
  budget: (key) => tightestCap(key)?.share ?? -1,
  used: ({ last_used_at }) => timeOf(last_used_at, 0),
  expires: ({ expires_at }) => timeOf(expires_at, Number.MAX_SAFE_INTEGER),
  models: ({ allowed_models }) => allowed_models?.length ?? Number.MAX_SAFE_INTEGER,
}

/** Sorts keys. Keys that share a budget stay together, the newest first. */
function inOrder(keys: readonly Key[], sorted = ''): readonly Key[] {
  const by = SORTS[sorted.replace('-', '')] ?? attentionRank
  const sign = sorted !== '' && !sorted.startsWith('-') ? 1 : -1
  const compare = (a: Key, b: Key) => {
    const [one, other] = [by(a), by(b)]
    return one === other ? 0 : one < other ? -sign : sign
  }
  const best = new Map<string, Key>()
  for (const key of keys) {
    const known = best.get(key.budget_id)
    if (known === undefined || compare(key, known) < 0) best.set(key.budget_id, key)
  }
  const leader = (key: Key) => best.get(key.budget_id) ?? key
  return keys.toSorted(
    (a, b) =>
      compare(leader(a), leader(b)) ||
      a.budget_id.localeCompare(b.budget_id) ||
      Date.parse(b.created_at) - Date.parse(a.created_at),
  )
}

const columnsOf = (keys: readonly Key[]): readonly Column<Key>[] => [
  nameColumn<Key>({
    sort: 'name',
    name: ({ name }) => name,
    to: ({ id }) => `/keys/${id}`,
    tag: ({ status, rotated_from }) => {
      const old = keys.find(({ id }) => id === rotated_from)
      if (status !== 'usable') return <Tag kind="plain">{status}</Tag>
      return old !== undefined && <Tag kind="plain">rotated from …{old.last4}</Tag>
    },
  }),
  {
    title: 'This month, USD',
    sort: 'spend',
    isFigure: true,
    cell: (key) => (
      <Figure usd={key.month_spend_usd} to={sharesBudget(key, keys) ? undefined : callsOf(key)} />
    ),
  },
  { title: 'Budget', sort: 'budget', cell: (key) => <Budget of={key} /> },
  {
    title: 'Last used',
    sort: 'used',
    lead: 'right',
    cell: ({ last_used_at }) => <RelativeTime at={last_used_at} />,
  },
  {
    title: 'Models',
    sort: 'models',
    isMinor: true,
    cell: ({ allowed_models }) => shortList(allowed_models, 'models'),
  },
  { title: 'Expires', sort: 'expires', isMinor: true, cell: (key) => <Expiry of={key} /> },
  {
    title: 'Key',
    isLeast: true,
    cell: ({ prefix, last4 }) => <code class="quiet">{`${prefix.slice(0, 12)}…${last4}`}</code>,
  },
]

/** Without a rotation, the spend of a budget is the cost of one key's calls, so it can link to them. */
const sharesBudget = (key: Key, keys: readonly Key[]) =>
  key.rotated_from !== null || keys.some(({ id, budget_id }) => id !== key.id && budget_id === key.budget_id)

function callsOf({ id }: Key): string {
  const today = dayOf(Date.now())
  return withQuery('/requests', { key: id, start: `${today.slice(0, 8)}01`, end: today })
}

function Expiry({ of: { expires_at, status } }: { readonly of: Key }) {
  const isSoon = status === 'usable' && expires_at !== null && Date.parse(expires_at) - Date.now() < SOON_MS
  return (
    <span class={isSoon ? 'high' : undefined}>
      <RelativeTime at={expires_at} />
    </span>
  )
}

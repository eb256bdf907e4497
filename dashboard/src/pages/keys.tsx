import type { Key, Person } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { dayOf, money, plural } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { Budget, Figure, RelativeTime, tightestCap } from '../parts/figures.tsx'
import { comparison, filterOf, Listed, ListFilter, usePages } from '../parts/listed.tsx'
import { TopSpend } from '../parts/spend-charts.tsx'
import { Empty, Heading, Tag } from '../parts/states.tsx'
import { type Column, nameColumn, shortList, timeColumn } from '../parts/table.tsx'
import { Link, navigate, setQuery, withQuery } from '../router.tsx'
import { KeyForm } from './key-form.tsx'
import { NeedsAttention, noticesOf } from './notices.tsx'

const SOON_MS = 7 * 86_400_000

const showKey = ({ id }: Key) => navigate(`/keys/${id}`)

/** Lists keys with their spend, budget and state. */
export function KeysPage({ query }: { readonly query: URLSearchParams }) {
  const { mayManage } = usePermissions()
  // Here and not in the empty list, which disappears when the list is read again: the new secret must stay visible.
  // The parameter `new` comes from the command menu.
  const isCreating = query.get('new') !== null
  const setCreating = (isOn: boolean) => setQuery({ new: isOn ? 1 : null }, 'replace')
  const sorted = query.get('sort') ?? undefined
  const keys = usePages('/v1/keys', query, filterOf(query, 'usable'))
  const list = keys.value
  const isAll = list !== null && keys.after === null && list.next === null
  const isOfPeople = list?.data.some(({ person_id }) => person_id !== null) ?? false
  const people = useResource('/gateway/v1/people', isOfPeople ? { limit: 1_000 } : null).value?.data
  const isFiltered = query.get('search') !== null || query.get('status') !== null
  const create = (title: string) =>
    mayManage && <Button title={title} kind="primary" onClick={() => setCreating(true)} />
  return (
    <>
      <Heading title="Keys">{create('New key')}</Heading>
      <ListFilter
        title="Search keys"
        placeholder="Name, id, last four or metadata.team:web"
        statuses={['usable', 'revoked', 'expired', 'all']}
        query={query}
      />
      {list !== null && !isAll && !isFiltered && <KeysInNeed />}
      {list !== null && list.data.length > 0 && (
        <p class="sum-line">
          <KeysTotal of={list.data} isAll={isAll} />
        </p>
      )}
      <Listed
        of={keys}
        lines={8}
        caption="Keys"
        columns={columnsOf(list?.data ?? [], people ?? [])}
        sorted={sorted}
        order={inOrder}
        rowClass={({ status }) => (status === 'usable' ? undefined : 'dead')}
        empty={
          isFiltered ? (
            <Empty title="No key matches." action={<Link to="/keys?status=all">Show all keys</Link>} />
          ) : (
            <Empty
              title="No key yet."
              words="A client sends a key of this gateway instead of the provider's. Each key has its own budget, models and expiry."
              action={create('Create the first key')}
            />
          )
        }
      />
      {isCreating && <KeyForm edited={null} onClose={() => setCreating(false)} onDone={showKey} />}
    </>
  )
}

/** The keys that need attention, and those that spend most, of a list that is too long to begin with them. */
function KeysInNeed() {
  const { value } = useResource('/gateway/v1/overview', {}, 10_000)
  const notices = value === null ? [] : noticesOf(value, null).filter(({ to }) => to.startsWith('/keys'))
  return (
    <div class="beside">
      <NeedsAttention notices={notices} />
      <TopSpend by="key" />
    </div>
  )
}

/** Counts the spend of a budget once: the keys of a rotation share it. */
function KeysTotal({ of: keys, isAll }: { readonly of: readonly Key[]; readonly isAll: boolean }) {
  const budgets = new Map(keys.map((key) => [key.budget_id, key.month_spend_usd]))
  const spent = [...budgets.values()].reduce((sum, usd) => sum + usd, 0)
  return (
    <>
      <b>{isAll ? plural(keys.length, 'key') : `${keys.length} keys of more`}</b>{' '}
      <span class="quiet">
        · {isAll ? `${money(spent)} this month` : 'newest first. Search to find others.'}
      </span>
    </>
  )
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
function inOrder(keys: readonly Key[], sorted?: string): readonly Key[] {
  const compare = comparison(SORTS, attentionRank, sorted)
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

const columnsOf = (keys: readonly Key[], people: readonly Person[]): readonly Column<Key>[] => [
  nameColumn<Key>({
    sort: 'name',
    name: ({ name }) => name,
    to: ({ id }) => `/keys/${id}`,
    tag: ({ status, rotated_from, person_id }) => {
      const old = keys.find(({ id }) => id === rotated_from)
      const person = people.find(({ id }) => id === person_id)
      return (
        <>
          {person !== undefined && <span class="quiet"> of {person.name || person.email}</span>}
          {status !== 'usable' && <Tag kind="plain">{status}</Tag>}
          {status === 'usable' && old !== undefined && <Tag kind="plain">rotated from …{old.last4}</Tag>}
        </>
      )
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
  timeColumn('Last used', ({ last_used_at }) => last_used_at, { sort: 'used', lead: 'right' }),
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

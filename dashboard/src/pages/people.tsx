import { get, type Members, type Person, send } from '../api.ts'
import { usePermissions, useResource } from '../data.ts'
import { count, dayOf, money, plural } from '../format.ts'
import { given, readCount } from '../forms/readings.ts'
import { useForm } from '../forms/use-form.ts'
import { DialogButton, type FormCallbacks, FormDialog } from '../parts/dialog.tsx'
import { CheckField, TextField } from '../parts/fields.tsx'
import { Budget, Figure, tightestCap } from '../parts/figures.tsx'
import { LimitFields, limitFieldsOf, readLimits } from '../parts/limit-fields.tsx'
import { comparison, filterOf, Listed, ListFilter, usePages } from '../parts/listed.tsx'
import { ModelsField } from '../parts/models-field.tsx'
import { Empty, Heading, Tag } from '../parts/states.tsx'
import { type Column, nameColumn, timeColumn } from '../parts/table.tsx'
import { Link, withQuery } from '../router.tsx'

/** Lists the people who signed in, with their spend and budget. */
export function PeoplePage({ query }: { readonly query: URLSearchParams }) {
  const { mayManage } = usePermissions()
  const members = useResource('/gateway/v1/members', {})
  const people = usePages('/gateway/v1/people', query, filterOf(query))
  const sorted = query.get('sort') ?? undefined
  const isFiltered = query.get('search') !== null || query.get('status') !== null
  return (
    <>
      <Heading title="People">
        {mayManage && members.value !== null && (
          <DialogButton title="Change what new people get" onDone={members.refresh}>
            {(callbacks) => <MembersForm of={members.value as Members} {...callbacks} />}
          </DialogButton>
        )}
      </Heading>
      {members.value !== null && <p class="quiet">{inWords(members.value)}</p>}
      <ListFilter
        title="Search people"
        placeholder="Name, email or id"
        statuses={['all', 'active', 'blocked']}
        query={query}
      />
      <Listed
        of={people}
        lines={8}
        caption="People"
        columns={COLUMNS}
        sorted={sorted}
        order={(rows) => rows.toSorted(comparison(SORTS, shareOf, sorted))}
        rowClass={({ status }) => (status === 'active' ? undefined : 'dead')}
        empty={
          isFiltered ? (
            <Empty title="No person matches." action={<Link to="/people">Show all people</Link>} />
          ) : (
            <Empty
              title="Nobody has signed in yet."
              words={
                <>
                  People appear here when they first sign in at your identity provider, each with a budget of
                  their own. To connect it, set <code>sign_in</code> in tollgate.json.
                </>
              }
            />
          )
        }
      />
    </>
  )
}

/** What a new person gets: "A new person gets $50 a month, and at most 5 keys for 90 days each." */
function inWords({ monthly_budget_usd: monthly, daily_budget_usd: daily, ...members }: Members): string {
  const budgets = [
    ...(monthly === null ? [] : [`${money(monthly)} a month`]),
    ...(daily === null ? [] : [`${money(daily)} a day`]),
  ]
  const { allowed_models: models } = members
  return [
    `A new person gets ${budgets.join(', ') || 'no budget'}, and at most ${plural(members.keys_max, 'key')}`,
    ` for ${plural(members.key_days_max, 'day')} each`,
    models === null ? '.' : `, for ${plural(models.length, 'model or pattern', 'models and patterns')}.`,
  ].join('')
}

export function callsOfMonth(person: string): string {
  const today = dayOf(Date.now())
  return withQuery('/requests', { person, start: `${today.slice(0, 8)}01`, end: today })
}

/** Who has spent the largest part of a budget comes first, then who has spent most. */
const shareOf = (person: Person) =>
  (tightestCap(person)?.share ?? 0) + person.month_spend_usd / 1e12 - (person.status === 'active' ? 0 : 1e3)

const SORTS = {
  name: ({ name, email }: Person) => (name || email).toLowerCase(),
  spend: ({ month_spend_usd }: Person) => month_spend_usd,
  budget: shareOf,
  keys: ({ keys }: Person) => keys,
  seen: ({ last_seen_at }: Person) => last_seen_at,
}

const COLUMNS: readonly Column<Person>[] = [
  nameColumn<Person>({
    sort: 'name',
    name: ({ name, email, id }) => name || email || id,
    to: ({ id }) => `/people/${id}`,
    tag: ({ status, role }) =>
      status === 'blocked' ? (
        <Tag kind="bad">blocked</Tag>
      ) : (
        role !== 'member' && <Tag kind="plain">{role}</Tag>
      ),
  }),
  { title: 'Email', isMinor: true, cell: ({ email }) => <span class="name">{email}</span> },
  {
    title: 'This month, USD',
    sort: 'spend',
    isFigure: true,
    cell: ({ id, month_spend_usd: usd }) => <Figure usd={usd} to={callsOfMonth(id)} />,
  },
  { title: 'Budget', sort: 'budget', cell: (person) => <Budget of={person} /> },
  { title: 'Keys', sort: 'keys', isFigure: true, isMinor: true, cell: ({ keys }) => count(keys) },
  timeColumn('Last seen', ({ last_seen_at }) => last_seen_at, { sort: 'seen', lead: 'right' }),
]

const fieldsOf = (members: Members | null) => ({
  ...limitFieldsOf(members),
  keys_max: String(members?.keys_max ?? ''),
  key_days_max: String(members?.key_days_max ?? ''),
  allowed_models: members?.allowed_models ?? [],
  log_requests: members?.log_requests ?? false,
  apply: false,
})

const read = (fields: ReturnType<typeof fieldsOf>) => ({
  ...readLimits(fields),
  keys_max: readCount(fields.keys_max),
  key_days_max: readCount(fields.key_days_max),
  allowed_models: given(fields.allowed_models.length === 0 ? null : fields.allowed_models),
  log_requests: given(fields.log_requests),
  apply: given(fields.apply ? 'all' : undefined),
})

/** What a new person of the account gets. */
export function MembersForm({ of, ...callbacks }: FormCallbacks<unknown> & { readonly of: Members }) {
  const { bind, submit } = useForm({
    edited: of,
    fieldsOf,
    read,
    reread: () => get('/gateway/v1/members', {}),
    save: (changes) => send('PATCH /gateway/v1/members', {}, changes),
  })
  return (
    <FormDialog title="What new people get" submit="Save" isWide {...callbacks} onSubmit={submit}>
      <div class="columns">
        <LimitFields bind={bind} />
        <TextField label="Keys of a person" hint="Signed-in devices do not count." {...bind('keys_max')} />
        <TextField label="Days until a key expires" hint="From 1 to 400." {...bind('key_days_max')} />
      </div>
      <ModelsField {...bind('allowed_models')} />
      <CheckField label="Log the bodies of calls" {...bind('log_requests')} />
      <CheckField
        label="Make the same changes for the people and keys that exist. No key is revoked or expires earlier."
        {...bind('apply')}
      />
    </FormDialog>
  )
}

import { useState } from 'preact/hooks'
import { type Account, type ListOf, send } from '../api.ts'
import { useCommand, usePermissions, useResource } from '../data.ts'
import { amountOf, count, plural } from '../format.ts'
import { go, Link, setQuery, withQuery } from '../router.tsx'
import { Choices } from '../ui/choices.tsx'
import { AmountField, ConfirmByName, Field, FormDialog } from '../ui/dialog.tsx'
import { Fact, Facts } from '../ui/facts.tsx'
import { BudgetBar, Id, Money, When } from '../ui/figures.tsx'
import { Empty, Failure, Show, Tag } from '../ui/states.tsx'
import { Pages, Table } from '../ui/table.tsx'

const BASE = '/gateway/v1/accounts'
const STATUSES = ['all', 'active', 'suspended'] as const

type AccountList = ListOf<Account> & {
  readonly total: {
    readonly month_spend_usd: number
    readonly month_held_usd: number
    readonly balance_usd: number
  }
}

/** Accounts belong to operators. Others see a page that says so. */
export function AccountsPage({ id, query }: { readonly id: string; readonly query: URLSearchParams }) {
  const { isOperator } = usePermissions()
  if (isOperator) return id === '' ? <List query={query} /> : <One key={id} id={id} />
  return (
    <>
      <header class="page">
        <h1>Accounts</h1>
      </header>
      <Empty>
        <p>Only operators manage accounts. Your key acts in one account.</p>
      </Empty>
    </>
  )
}

/** What does each customer or team spend, and what is left? */
function List({ query }: { readonly query: URLSearchParams }) {
  const [isCreating, setCreating] = useState(false)
  const search = query.get('search') ?? ''
  const status = query.get('status') ?? 'all'
  const after = query.get('after')
  const accounts = useResource<AccountList>(
    withQuery(BASE, { limit: 100, search, status: status === 'all' ? null : status, after }),
    5_000,
  )
  return (
    <>
      <header class="page">
        <h1>Accounts</h1>
        <button type="button" class="primary" onClick={() => setCreating(true)}>
          New account
        </button>
      </header>
      <div class="filters">
        <input
          type="search"
          aria-label="Search accounts"
          placeholder="Name or id  /"
          value={search}
          onInput={(event) => setQuery({ search: event.currentTarget.value, after: null }, 'replace')}
        />
        <Choices
          title="Status"
          options={STATUSES}
          isChosen={(each) => each === status}
          onChoose={(each) => setQuery({ status: each === 'all' ? null : each, after: null })}
        />
      </div>
      <Show resource={accounts} lines={5}>
        {({ data, next, total }) =>
          data.length === 0 && after === null ? (
            <Empty>
              <p>No account matches.</p>
              <p>
                <Link to="/accounts">Show all accounts</Link>
              </p>
            </Empty>
          ) : (
            <>
              <Table
                caption="Accounts"
                rows={data}
                keyOf={({ id }) => id}
                rowClass={({ status }) => (status === 'active' ? undefined : 'dead')}
                columns={[
                  {
                    title: 'Name',
                    isWide: true,
                    lead: 'left',
                    cell: ({ id, name, status }) => (
                      <>
                        <Link to={`/accounts/${id}`} class="name">
                          {name}
                        </Link>
                        {status === 'suspended' && <Tag kind="bad">suspended</Tag>}
                      </>
                    ),
                  },
                  { title: 'This month', cell: (account) => <BudgetBar budget={account} /> },
                  {
                    title: 'Discount',
                    isFigure: true,
                    isMinor: true,
                    cell: ({ discount }) =>
                      discount === null ? <span class="quiet">–</span> : `${percentOf(discount)} %`,
                  },
                  {
                    title: 'Created',
                    isMinor: true,
                    cell: (account) => <When at={createdAt(account)} never="–" />,
                  },
                  {
                    title: 'Balance',
                    isFigure: true,
                    lead: 'right',
                    cell: ({ balance_usd }) => <Money usd={balance_usd} decimals={2} />,
                  },
                ]}
                footer={[
                  next === null && after === null ? plural(data.length, 'account') : 'All that match',
                  <Money key="spend" usd={total.month_spend_usd} decimals={2} />,
                  '',
                  '',
                  <Money key="balance" usd={total.balance_usd} decimals={2} />,
                ]}
              />
              <Pages after={after} next={next} />
            </>
          )
        }
      </Show>
      {isCreating && (
        <AccountForm
          edited={null}
          onClose={() => setCreating(false)}
          onDone={({ id }) => go(`/accounts/${id}`)}
        />
      )}
    </>
  )
}

const PARTS = [
  ['Overview', '/'],
  ['Keys', '/keys'],
  ['Usage', '/usage'],
  ['Requests', '/requests'],
  ['Credits', '/credits'],
  ['Activity', '/activity'],
  ['Webhooks', '/webhooks'],
  ['Admin keys', '/settings'],
] as const

/** One account: its limits, and the pages of what belongs to it. */
function One({ id }: { readonly id: string }) {
  const [dialog, setDialog] = useState<'edit' | 'suspend' | null>(null)
  const account = useResource<Account>(`${BASE}/${id}`, 5_000)
  const command = useCommand()
  return (
    <>
      <p>
        <Link to="/accounts">Accounts</Link>
      </p>
      <Show resource={account} lines={6}>
        {(value) => (
          <>
            <header class="page">
              <h1 class="name">{value.name}</h1>
              {value.status === 'suspended' && <Tag kind="bad">suspended</Tag>}
              <span class="buttons">
                <button type="button" onClick={() => setDialog('edit')}>
                  Change limits
                </button>
                {value.status === 'active' ? (
                  <button type="button" class="danger" onClick={() => setDialog('suspend')}>
                    Suspend
                  </button>
                ) : (
                  <button
                    type="button"
                    disabled={command.isBusy}
                    onClick={() =>
                      void command.run(async () => {
                        await send('POST', `${BASE}/${id}/resume`)
                        account.refresh()
                      })
                    }
                  >
                    Resume
                  </button>
                )}
              </span>
            </header>
            {command.error !== null && <Failure error={command.error} />}
            <Facts>
              <Fact title="This month">
                <BudgetBar budget={value} />
              </Fact>
              <Fact title="Resets">
                <When at={value.budget_resets_at} />
              </Fact>
              <Fact title="Balance">
                <Money usd={value.balance_usd} />{' '}
                <span class="quiet">
                  {value.credit_enforced ? 'calls are refused at $0' : 'not enforced'}
                </span>
              </Fact>
              <Fact title="Discount">
                {value.discount === null ? 'as the installation has it' : `${percentOf(value.discount)} %`}
              </Fact>
              {(['messages', 'chat'] as const).map((surface) => {
                const own = value.upstreams[surface]
                return (
                  <Fact key={surface} title={`Upstream of ${surface}`}>
                    {own === null ? 'shared' : `${own.url}, ${own.has_key ? 'own key' : 'no key'}`}
                  </Fact>
                )
              })}
              <Fact title="Created">
                <When at={createdAt(value)} never="with the installation" />
              </Fact>
              <Fact title="Id">
                <Id id={value.id} />
              </Fact>
              {Object.entries(value.metadata).map(([name, text]) => (
                <Fact key={name} title={name}>
                  {text}
                </Fact>
              ))}
            </Facts>
            <h2>In this account</h2>
            <ul class="doors">
              {PARTS.map(([title, to]) => (
                <li key={to}>
                  <Link to={withQuery(to, { account: id })}>
                    <span>{title}</span>
                  </Link>
                </li>
              ))}
            </ul>
            {dialog === 'edit' && (
              <AccountForm
                edited={value}
                onClose={() => setDialog(null)}
                onDone={() => {
                  setDialog(null)
                  account.refresh()
                }}
              />
            )}
            {dialog === 'suspend' && (
              <ConfirmByName
                title="Suspend this account"
                name={value.name}
                submit="Suspend"
                onClose={() => setDialog(null)}
                onSubmit={async () => {
                  await send('POST', `${BASE}/${id}/suspend`)
                  setDialog(null)
                  account.refresh()
                }}
              >
                <p>
                  Every new call with its keys is refused until the account is resumed. Streams that run come
                  to their end.
                </p>
              </ConfirmByName>
            )}
          </>
        )}
      </Show>
    </>
  )
}

/** The first account has no time of its own. */
const createdAt = ({ created_at }: Account) => (Date.parse(created_at) === 0 ? null : created_at)

const percentOf = (fraction: number) => count(Number((fraction * 100).toFixed(7)))

function AccountForm({
  edited,
  onClose,
  onDone,
}: {
  readonly edited: Account | null
  onClose(): void
  onDone(account: Account): void
}) {
  const [name, setName] = useState(edited?.name ?? '')
  const [budget, setBudget] = useState(edited?.monthly_budget_usd?.toString() ?? '')
  const [discount, setDiscount] = useState(edited?.discount == null ? '' : percentOf(edited.discount))
  const [isEnforced, setEnforced] = useState(edited?.credit_enforced ?? false)
  const body = () => ({
    name,
    monthly_budget_usd: amountOf(budget),
    discount: discount === '' ? null : Number((Number(discount) / 100).toFixed(9)),
    credit_enforced: isEnforced,
  })
  return (
    <FormDialog
      title={edited === null ? 'New account' : 'Limits'}
      submit={edited === null ? 'Create account' : 'Save'}
      isReady={name.trim() !== ''}
      onClose={onClose}
      onSubmit={async () =>
        onDone(
          edited === null
            ? await send<Account>('POST', BASE, body())
            : await send<Account>('PATCH', `${BASE}/${edited.id}`, body()),
        )
      }
    >
      <Field label="Name">
        {(id) => (
          <input
            id={id}
            value={name}
            maxLength={120}
            required
            onInput={(event) => setName(event.currentTarget.value)}
          />
        )}
      </Field>
      <AmountField
        label="Budget per month, USD"
        hint="The most that all of its keys may spend in a month, UTC. Empty: no cap."
        value={budget}
        onInput={setBudget}
      />
      <Field label="Discount, %" hint="Of the list price, for calls from now on. Empty: the installation's.">
        {(id) => (
          <input
            id={id}
            inputMode="decimal"
            pattern="[0-9]{1,3}(\.[0-9]{1,7})?"
            title="A percentage such as 15 or 12.5"
            value={discount}
            onInput={(event) => setDiscount(event.currentTarget.value.trim())}
          />
        )}
      </Field>
      <label class="check">
        <input
          type="checkbox"
          checked={isEnforced}
          onChange={(event) => setEnforced(event.currentTarget.checked)}
        />{' '}
        Refuse calls once its credit is used up
      </label>
    </FormDialog>
  )
}

import { Fragment } from 'preact'
import { useState } from 'preact/hooks'
import { type Account, type ListOf, send } from '../api.ts'
import { useCommand, usePermissions, useResource } from '../data.ts'
import { amountOf, capital, count, plural } from '../format.ts'
import { go, Link, setQuery, withQuery } from '../router.tsx'
import { Button } from '../ui/button.tsx'
import { Choices, Search } from '../ui/choices.tsx'
import { ConfirmByName, type Ends, FormDialog } from '../ui/dialog.tsx'
import { Fact, Facts, Metadata } from '../ui/facts.tsx'
import { AmountField, CheckField, MetadataField, metadataOf, pairsOf, TextField } from '../ui/fields.tsx'
import { BudgetBar, Id, Money, MoneyLink, Raw, Spent, When } from '../ui/figures.tsx'
import { Crumbs, Empty, Failure, Heading, Show, Tag } from '../ui/states.tsx'
import { nameColumn, Table } from '../ui/table.tsx'
import { Spend } from './key.tsx'

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
      <Heading title="Accounts" />
      <Empty title="Only operators manage accounts." words="Your key acts in one account." />
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
      <Heading title="Accounts">
        <Button title="New account" kind="primary" onClick={() => setCreating(true)} />
      </Heading>
      <div class="filters">
        <Search title="Search accounts" placeholder="Name or id" value={search} />
        <Choices
          title="Status"
          options={STATUSES}
          nameOf={capital}
          isChosen={(each) => each === status}
          onChoose={(each) => setQuery({ status: each === 'all' ? null : each, after: null })}
        />
      </div>
      <Show resource={accounts} lines={5}>
        {({ data, next, total }) =>
          data.length === 0 && after === null ? (
            <Empty title="No account matches." action={<Link to="/accounts">Show all accounts</Link>} />
          ) : (
            <Table
              caption="Accounts"
              rows={data}
              after={after}
              next={next}
              rowClass={({ status }) => (status === 'active' ? undefined : 'dead')}
              columns={[
                nameColumn<Account>({
                  name: ({ name }) => name,
                  to: ({ id }) => `/accounts/${id}`,
                  tag: ({ status }) => status === 'suspended' && <Tag kind="bad">suspended</Tag>,
                }),
                { title: 'This month', cell: (account) => <BudgetBar budget={account} /> },
                {
                  title: 'Discount',
                  isFigure: true,
                  isMinor: true,
                  cell: ({ discount }) =>
                    discount === null ? <span class="quiet">–</span> : `${percentOf(discount)}%`,
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
                  cell: ({ id, balance_usd }) => (
                    <MoneyLink to={withQuery('/credits', { account: id })} usd={balance_usd} />
                  ),
                },
              ]}
              footer={[
                next === null && after === null ? plural(data.length, 'account') : 'All that match',
                <Spent key="spend" usd={total.month_spend_usd} />,
                '',
                '',
                <Money key="balance" usd={total.balance_usd} />,
              ]}
            />
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

const ACCOUNTS = { to: '/accounts', title: 'Accounts' }

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
  const resume = async () => {
    await send('POST', `${BASE}/${id}/resume`)
    account.refresh()
  }
  return (
    <Show resource={account} lines={6} of={ACCOUNTS}>
      {(value) => (
        <>
          <Crumbs of={ACCOUNTS} name={value.name} />
          <Heading title={value.name} state={value.status === 'suspended' && <Tag kind="bad">suspended</Tag>}>
            <Button title="Change account" onClick={() => setDialog('edit')} />
            {value.status === 'active' ? (
              <Button title="Suspend" kind="danger" onClick={() => setDialog('suspend')} />
            ) : (
              <Button title="Resume" isDisabled={command.isBusy} onClick={() => void command.run(resume)} />
            )}
          </Heading>
          {command.error !== null && <Failure error={command.error} />}
          <Facts>
            <Fact title="This month" value={<BudgetBar budget={value} />} />
            <Fact title="Resets" value={<When at={value.budget_resets_at} />} />
            <Fact title="Balance">
              <MoneyLink to={withQuery('/credits', { account: id })} usd={value.balance_usd} />{' '}
              <span class="quiet">{value.credit_enforced ? 'calls are refused at $0' : 'not enforced'}</span>
            </Fact>
            <Fact
              title="Discount"
              value={value.discount === null ? 'installation default' : `${percentOf(value.discount)}%`}
            />
            {(['messages', 'chat'] as const).map((surface) => {
              const own = value.upstreams[surface]
              return (
                <Fact key={surface} title={`${capital(surface)} upstream`}>
                  {own === null ? 'shared' : `${own.url}, ${own.has_key ? 'own key' : 'no key'}`}
                </Fact>
              )
            })}
            <Fact title="Created" value={<When at={createdAt(value)} never="with the installation" />} />
            <Fact title="Id" value={<Id id={value.id} />} />
            <Metadata of={value.metadata} />
          </Facts>
          <h2>In this account</h2>
          <p class="buttons">
            {PARTS.map(([title, to]) => (
              <Link key={to} to={withQuery(to, { account: id })} class="button">
                {title}
              </Link>
            ))}
          </p>
          <Spend asked={{ account: id }} by="key" shown={{ account: id }} />
          <Raw of={value} />
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
                Every new call with its keys is refused until the account is resumed. Running streams finish.
              </p>
            </ConfirmByName>
          )}
        </>
      )}
    </Show>
  )
}

/** The first account has no time of its own. */
const createdAt = ({ created_at }: Account) => (Date.parse(created_at) === 0 ? null : created_at)

const percentOf = (fraction: number) => count(Number((fraction * 100).toFixed(7)))

const SURFACES = ['messages', 'chat'] as const
type Surface = (typeof SURFACES)[number]

interface UpstreamText {
  readonly url: string
  readonly key: string
}

function AccountForm({ edited, onClose, onDone }: Ends<Account> & { readonly edited: Account | null }) {
  const [name, setName] = useState(edited?.name ?? '')
  const [budget, setBudget] = useState(edited?.monthly_budget_usd?.toString() ?? '')
  const [discount, setDiscount] = useState(edited?.discount == null ? '' : percentOf(edited.discount))
  const [isEnforced, setEnforced] = useState(edited?.credit_enforced ?? false)
  const [isForced, setForced] = useState(false)
  const [metadata, setMetadata] = useState(pairsOf(edited?.metadata))
  const urlOf = (surface: Surface) => edited?.upstreams[surface]?.url ?? ''
  const [upstreams, setUpstreams] = useState<Readonly<Record<Surface, UpstreamText>>>({
    messages: { url: urlOf('messages'), key: '' },
    chat: { url: urlOf('chat'), key: '' },
  })
  const setUpstream = (surface: Surface, change: Partial<UpstreamText>) =>
    setUpstreams((before) => ({ ...before, [surface]: { ...before[surface], ...change } }))
  const mustForce = isEnforced && !edited?.credit_enforced && (edited?.balance_usd ?? 0) <= 0
  /** An upstream without URL and key is removed; one that was not changed is not sent. */
  const changed = SURFACES.filter(
    (surface) => upstreams[surface].key !== '' || upstreams[surface].url !== urlOf(surface),
  )
  const upstreamOf = ({ url, key }: UpstreamText) =>
    url === '' && key === '' ? null : { ...(url === '' ? {} : { url }), ...(key === '' ? {} : { key }) }
  const body = () => ({
    name,
    monthly_budget_usd: amountOf(budget),
    discount: discount === '' ? null : Number((Number(discount) / 100).toFixed(9)),
    credit_enforced: isEnforced,
    metadata: metadataOf(metadata),
    ...(mustForce && isForced ? { force: true } : {}),
    ...(changed.length === 0
      ? {}
      : {
          upstreams: Object.fromEntries(changed.map((surface) => [surface, upstreamOf(upstreams[surface])])),
        }),
  })
  return (
    <FormDialog
      title={edited === null ? 'New account' : 'Change account'}
      submit={edited === null ? 'Create account' : 'Save'}
      isReady={name.trim() !== '' && !Number.isNaN(amountOf(budget))}
      isWide
      onClose={onClose}
      onSubmit={async () =>
        onDone(
          edited === null
            ? await send<Account>('POST', BASE, body())
            : await send<Account>('PATCH', `${BASE}/${edited.id}`, body()),
        )
      }
    >
      <TextField label="Name" value={name} maxLength={120} isRequired onInput={setName} />
      <div class="columns">
        <AmountField
          label="Budget per month, USD"
          hint="The most that all of its keys may spend in a month, UTC. Empty: no cap."
          value={budget}
          onInput={setBudget}
        />
        <TextField
          label="Discount, %"
          hint="Of the list price, for calls from now on. Empty: the installation's."
          value={discount}
          onInput={(text) => setDiscount(text.trim())}
        />
        {SURFACES.map((surface) => (
          <Fragment key={surface}>
            <TextField
              label={`Upstream URL of ${surface}`}
              type="url"
              placeholder="empty: the installation's"
              value={upstreams[surface].url}
              onInput={(url) => setUpstream(surface, { url: url.trim() })}
            />
            <TextField
              label={`Upstream key of ${surface}`}
              type="password"
              placeholder={edited?.upstreams[surface]?.has_key ? 'unchanged' : 'of the provider'}
              value={upstreams[surface].key}
              onInput={(key) => setUpstream(surface, { key: key.trim() })}
            />
          </Fragment>
        ))}
        <MetadataField pairs={metadata} onInput={setMetadata} />
      </div>
      <CheckField
        label="Refuse calls once its credit is used up"
        isChecked={isEnforced}
        onChange={setEnforced}
      />
      {mustForce && (
        <CheckField
          label="Even though it has no credit: its next call is refused"
          isChecked={isForced}
          onChange={setForced}
        />
      )}
    </FormDialog>
  )
}

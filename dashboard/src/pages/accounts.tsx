import { type Account, send } from '../api.ts'
import { useCommand, useResource } from '../data.ts'
import { capitalize, fractionInPercent, plural } from '../format.ts'
import { Button } from '../parts/button.tsx'
import { Id, JsonDetails } from '../parts/copy.tsx'
import { DangerButton, DialogButton } from '../parts/dialog.tsx'
import { Balance, Budget, Fact, Facts, Metadata, Money, RelativeTime } from '../parts/figures.tsx'
import { filterOf, Listed, ListFilter, usePages } from '../parts/listed.tsx'
import { SpendCharts } from '../parts/spend-charts.tsx'
import { Empty, Failure, Heading, Loaded, Tag } from '../parts/states.tsx'
import { type Column, nameColumn, timeColumn, usdColumn } from '../parts/table.tsx'
import { Link, navigate, withQuery } from '../router.tsx'
import { AccountForm, SURFACES } from './account-form.tsx'

const showAccount = ({ id }: Account) => navigate(`/accounts/${id}`)

/** Lists the spend and the balance of each customer or team. */
export function AccountsPage({ query }: { readonly query: URLSearchParams }) {
  const accounts = usePages('/gateway/v1/accounts', query, filterOf(query))
  return (
    <>
      <Heading title="Accounts">
        <DialogButton<Account> title="New account" kind="primary" onDone={showAccount}>
          {(callbacks) => <AccountForm edited={null} {...callbacks} />}
        </DialogButton>
      </Heading>
      <ListFilter
        title="Search accounts"
        placeholder="Name, id or metadata.team:web"
        statuses={['all', 'active', 'suspended']}
        query={query}
      />
      <Listed
        of={accounts}
        caption="Accounts"
        empty={<Empty title="No account matches." action={<Link to="/accounts">Show all accounts</Link>} />}
        rowClass={({ status }) => (status === 'active' ? undefined : 'dead')}
        columns={COLUMNS}
        totalOf={(rows, isAll) =>
          rows[0] && [
            isAll ? plural(rows.length, 'account') : 'All matches',
            { ...rows[0], ...accounts.value?.total, id: '', discount: null },
          ]
        }
      />
    </>
  )
}

/** Null for the first account, which was created with the installation. */
const createdAt = ({ created_at }: Account) => (Date.parse(created_at) === 0 ? null : created_at)

const COLUMNS: readonly Column<Account>[] = [
  nameColumn<Account>({
    name: ({ name }) => name,
    to: ({ id }) => `/accounts/${id}`,
    tag: ({ status }) => status === 'suspended' && <Tag kind="bad">suspended</Tag>,
  }),
  usdColumn<Account>('This month, USD', ({ month_spend_usd }) => month_spend_usd),
  { title: 'Budget', cell: (account) => <Budget of={account} /> },
  {
    title: 'Discount',
    isFigure: true,
    isMinor: true,
    cell: ({ id, discount }) =>
      discount === null ? id !== '' && <span class="quiet">–</span> : fractionInPercent(discount),
  },
  timeColumn('Created', createdAt, { isMinor: true, never: '–' }),
  usdColumn<Account>('Balance, USD', ({ balance_usd }) => balance_usd, {
    lead: 'right',
    cell: ({ id, balance_usd: usd }) => (
      <Balance isFigure usd={usd} to={id === '' ? undefined : withQuery('/credits', { account: id })} />
    ),
  }),
]

const ACCOUNTS = { to: '/accounts', title: 'Accounts' }

/** Shows limits and spend of one account. Its keys, calls and credit are on the pages that every account has. */
export function AccountPage({ id }: { readonly id: string }) {
  const account = useResource('/gateway/v1/accounts/{id}', { id }, 5_000)
  const command = useCommand()
  const resume = async () => {
    await send('POST /gateway/v1/accounts/{id}/resume', { id })
    account.refresh()
  }
  return (
    <Loaded resource={account} lines={6} of={ACCOUNTS}>
      {(value) => (
        <>
          <Heading
            of={ACCOUNTS}
            title={value.name}
            state={value.status === 'suspended' && <Tag kind="bad">suspended</Tag>}
          >
            <Link to={withQuery('/', { account: id })} class="button">
              Switch to this account
            </Link>
            <DialogButton title="Change account" onDone={account.refresh}>
              {(callbacks) => <AccountForm edited={value} {...callbacks} />}
            </DialogButton>
            {value.status === 'active' ? (
              <DangerButton
                verb="Suspend"
                noun="this account"
                name={value.name}
                run={() => send('POST /gateway/v1/accounts/{id}/suspend', { id })}
                onDone={account.refresh}
              >
                Every new call with its keys is refused until the account is resumed.
              </DangerButton>
            ) : (
              <Button title="Resume" isDisabled={command.isBusy} onClick={() => void command.run(resume)} />
            )}
          </Heading>
          {command.error !== null && <Failure error={command.error} />}
          <Facts>
            <Fact title="This month">
              <Money usd={value.month_spend_usd} /> <Budget of={value} />
            </Fact>
            <Fact
              title="Resets"
              value={value.monthly_budget_usd !== null && <RelativeTime at={value.budget_resets_at} />}
            />
            <Fact title="Balance">
              <Balance to={withQuery('/credits', { account: id })} usd={value.balance_usd} />{' '}
              <span class="quiet">{value.credit_enforced ? 'calls are refused at $0' : 'not enforced'}</span>
            </Fact>
            <Fact
              title="Discount"
              value={value.discount === null ? 'installation default' : fractionInPercent(value.discount)}
            />
            {SURFACES.map((surface) => {
              const own = value.upstreams[surface]
              return (
                <Fact key={surface} title={`${capitalize(surface)} upstream`}>
                  {own === null ? 'shared' : `${own.url}, ${own.has_key ? 'own key' : 'no key'}`}
                </Fact>
              )
            })}
            <Fact title="Created" value={<RelativeTime at={createdAt(value)} never="at installation" />} />
            <Fact title="Id" value={<Id id={value.id} />} />
            <Metadata of={value.metadata} />
          </Facts>
          <SpendCharts asked={{ account: id }} by="key" shown={{ account: id }} />
          <JsonDetails of={value} />
        </>
      )}
    </Loaded>
  )
}

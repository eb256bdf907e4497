import type { Credit, Balance as CurrentBalance, ListOf } from '../api.ts'
import { useAccountId, usePermissions, useResource } from '../data.ts'
import { ActorName } from '../parts/actor-name.tsx'
import { DialogButton } from '../parts/dialog.tsx'
import { Stat, Sums } from '../parts/facts.tsx'
import { Balance, exactFigure, Money, Timestamp } from '../parts/figures.tsx'
import { Empty, Heading, Loaded } from '../parts/states.tsx'
import { type Column, Table } from '../parts/table.tsx'
import { withQuery } from '../router.tsx'
import { CreditForm } from './credit-form.tsx'

const ROWS = 100

/** Shows the balance, and the ledger entries that changed it. */
export function CreditsPage({ query }: { readonly query: URLSearchParams }) {
  const { isOperator } = usePermissions()
  const account = useAccountId()
  const after = query.get('after')
  const balance = useResource<CurrentBalance>('/gateway/v1/balance', 5_000)
  const credits = useResource<ListOf<Credit>>(
    withQuery('/gateway/v1/credits', { limit: ROWS, after }),
    after === null ? 5_000 : null,
  )
  function refresh(): void {
    balance.refresh()
    credits.refresh()
  }
  return (
    <>
      <Heading title="Credits">
        {isOperator && (
          <>
            <DialogButton title="Deduct credit" onDone={refresh}>
              {(callbacks) => (
                <CreditForm isCorrection accountId={account} balance={balance.value} {...callbacks} />
              )}
            </DialogButton>
            <DialogButton title="Top up" kind="primary" onDone={refresh}>
              {(callbacks) => <CreditForm accountId={account} balance={balance.value} {...callbacks} />}
            </DialogButton>
          </>
        )}
      </Heading>
      <Loaded resource={balance} lines={3}>
        {(value) => <Stats of={value} />}
      </Loaded>
      <h2>Ledger</h2>
      <Loaded resource={credits} lines={5}>
        {({ data, next }) =>
          data.length === 0 && after === null ? (
            <Empty
              title="No credit yet."
              words={`Top-ups, corrections and calls credited back are listed here, with the balance after each.${isOperator ? '' : ' Operators add credit.'}`}
            />
          ) : (
            <Table caption="Ledger" columns={COLUMNS} rows={data} after={after} next={next} />
          )
        }
      </Loaded>
    </>
  )
}

function Stats({ of: balance }: { readonly of: CurrentBalance }) {
  const { balance_usd: usd, enforced } = balance
  return (
    <Sums>
      <Stat
        title="Balance"
        value={
          <span class={usd <= 0 && enforced ? 'bad' : undefined}>
            <Balance usd={usd} />
          </span>
        }
        note={enforced ? 'calls are refused at $0' : 'not enforced: calls continue below $0'}
      />
      <Stat
        title="Reserved"
        value={<Money to="/requests?state=in_flight" usd={balance.held_usd} />}
        note="by calls in flight"
      />
      <Stat title="Added" value={<Money usd={balance.credited_usd} />} note="in total" />
      <Stat title="Charged" value={<Money to="/usage" usd={balance.charged_usd} />} note="in total" />
    </Sums>
  )
}

const KINDS = { top_up: 'Top-up', correction: 'Correction', credit_back: 'Credit back' } as const

const COLUMNS: readonly Column<Credit>[] = [
  { title: 'Time, UTC', cell: ({ created_at }) => <Timestamp at={created_at} /> },
  { title: 'Kind', lead: 'left', cell: ({ kind }) => KINDS[kind] },
  {
    title: 'Reason',
    isWide: true,
    cell: ({ reason }) => (
      <span class="name" title={reason}>
        {reason}
      </span>
    ),
  },
  { title: 'By', isMinor: true, cell: ({ actor }) => <ActorName actor={actor} /> },
  { title: 'Amount, USD', isFigure: true, lead: 'right', cell: (entry) => exactFigure(entry.amount_usd) },
  { title: 'Balance after, USD', isFigure: true, cell: (entry) => exactFigure(entry.balance_after_usd) },
]

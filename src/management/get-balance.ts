import type { Balance } from '../ledger/ledger-store.ts'
import { type Route, replyJson } from './route.ts'
import { usd } from './usd.ts'

export const getBalance: Route = {
  method: 'GET',
  template: '/gateway/v1/balance',
  access: 'admin',
  async handle(request, { store }) {
    return replyJson(200, balanceObject(await store.getBalance(request.caller.accountId)))
  },
}

export function balanceObject(balance: Balance): Record<string, unknown> {
  return {
    object: 'balance',
    balance_usd: usd(balance.creditedNanos - balance.chargedNanos),
    held_usd: usd(balance.heldNanos),
    credited_usd: usd(balance.creditedNanos),
    charged_usd: usd(balance.chargedNanos),
    enforced: balance.enforced,
  }
}

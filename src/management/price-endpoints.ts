import type { OwnEndpoint } from './endpoint.ts'
import { listMissingPrices } from './missing-prices.ts'
import * as prices from './prices.ts'

export const PRICE_ENDPOINTS: readonly OwnEndpoint[] = [
  {
    id: 'get_prices',
    method: 'GET',
    path: '/gateway/v1/prices',
    role: 'member',
    account: 'one',
    route: prices.getPrices,
  },
  {
    id: 'list_missing_prices',
    method: 'GET',
    path: '/gateway/v1/prices/missing',
    role: 'operator',
    account: 'none',
    route: listMissingPrices,
  },
  {
    id: 'set_price',
    method: 'PUT',
    path: '/gateway/v1/prices/{model}',
    role: 'operator',
    account: 'none',
    route: prices.setPrice,
  },
  {
    id: 'unset_price',
    method: 'DELETE',
    path: '/gateway/v1/prices/{model}',
    role: 'operator',
    account: 'none',
    nouns: ['set price'],
    route: prices.unsetPrice,
  },
  {
    id: 'push_prices',
    method: 'POST',
    path: '/gateway/v1/prices/push',
    role: 'operator',
    account: 'none',
    route: prices.pushPrices,
  },
]

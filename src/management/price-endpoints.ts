import { endpoint, type OwnEndpoint } from './endpoint.ts'
import { listMissingPrices } from './missing-prices.ts'
import * as prices from './prices.ts'

export const PRICE_ENDPOINTS: readonly OwnEndpoint[] = [
  endpoint('GET', '/gateway/v1/prices', 'get_prices', 'member', 'one', prices.getPrices),
  endpoint('GET', '/gateway/v1/prices/missing', 'list_missing_prices', 'operator', 'none', listMissingPrices),
  endpoint('PUT', '/gateway/v1/prices/{model}', 'set_price', 'operator', 'none', prices.setPrice),
  endpoint('DELETE', '/gateway/v1/prices/{model}', 'unset_price', 'operator', 'none', prices.unsetPrice, {
    nouns: ['set price'],
  }),
  endpoint('POST', '/gateway/v1/prices/push', 'push_prices', 'operator', 'none', prices.pushPrices),
]

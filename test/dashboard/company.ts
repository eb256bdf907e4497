import { startBillingBench } from '../billing/bench-of-one.ts'
import { signInPerson } from '../support/sign-in-person.ts'
import { atEnd } from '../support/suite.ts'
import { openBrowser } from './browser.ts'
import { seedYear } from './seed-year.ts'

/** Test files of one process share one company with a year of data, one gateway and one browser. */

export const bench = await startBillingBench({
  env: { TOLLGATE_DISCOUNT: '0.2' },
  settings: { webhooksAllowPrivate: true },
})
atEnd(() => bench.close())
export const { gateway } = bench
export const person = await openBrowser(gateway, /40[09]/)
export const { keys, callId } = await seedYear(bench)
const { manage } = gateway

const idOf = async (path: string, body?: object) => String((await manage('POST', path, body))['id'])

export const rotated = keys.get('support-agent')?.id ?? ''
export const successor = await idOf(`/v1/keys/${rotated}/rotate`)
export const webhook = await idOf('/gateway/v1/webhooks', {
  url: 'http://127.0.0.1:9/hooks/tollgate',
  events: ['key.budget.threshold', 'key.budget.exceeded', 'key.created'],
  description: 'pages the team',
})
await manage('POST', `/gateway/v1/webhooks/${webhook}/test`)
await manage('POST', '/gateway/v1/webhooks', { url: 'https://example.com/slack', events: ['*'] })
export const account = await idOf('/gateway/v1/accounts', {
  name: 'Acme',
  monthly_budget_usd: 500,
  discount: 0.15,
  metadata: { plan: 'gold' },
})
for (const [name, tokens] of [
  ['acme-web', 41_200],
  ['acme-batch', 12_800],
] as const) {
  const { key } = await manage('POST', `/v1/keys?account=${account}`, { name })
  const simulate = `usage=${JSON.stringify({ input_tokens: tokens, output_tokens: 2_400 })}`
  const messages = [{ role: 'user', content: 'x'.repeat(tokens) }]
  const question = { model: 'claude-opus-5-5', max_tokens: 4_096, messages }
  await bench.call('/v1/messages', question, { key: String(key), simulate })
}
await manage('POST', '/gateway/v1/accounts', { name: 'Globex', discount: 0.1 })
await manage('POST', '/gateway/v1/admin-keys', { name: 'auditor', role: 'viewer', account_id: 'default' })
await manage('POST', '/gateway/v1/credits', { amount_usd: -12.5, reason: 'booked twice' })

/** People: a member with a key, and an admin. */
const ada = await signInPerson(gateway, 'Ada Lovelace')
await signInPerson(gateway, 'Grace Hopper', 'admin')
const laptop = await fetch(`${gateway.url}/v1/keys`, {
  method: 'POST',
  headers: ada.headers,
  body: JSON.stringify({ name: 'laptop, Claude Code' }),
}).then(async (response) => (await response.json()) as { key: string })
await manage('PATCH', `/gateway/v1/people/${ada.id}`, { monthly_budget_usd: 50, daily_budget_usd: 10 })
const bug = [{ role: 'user', content: 'x'.repeat(61_000) }]
await bench.call('/v1/messages', { model: 'claude-opus-5-5', max_tokens: 512, messages: bug }, laptop)
const unpriced = { model: 'gpt-7-sol', messages: bug, max_completion_tokens: 64 }
await bench.call('/v1/chat/completions', unpriced, { ...laptop, surface: 'chat' })

/** Every page with data: its path, a text that only its data contains, and whose session opens it. */
export const PAGES: Readonly<Record<string, readonly [path: string, text: string, as?: string]>> = {
  overview: ['/dashboard', 'code-review-ci'],
  keys: ['/dashboard/keys?status=all', 'intern-sandbox'],
  key: [`/dashboard/keys/${keys.get('code-review-ci')?.id}`, 'claude-cli/3.2.0'],
  rotation: [`/dashboard/keys/${rotated}?successor=${successor}`, 'Wait until the old key is unused'],
  usage: ['/dashboard/usage?by=model,key', 'Cost per day by model'],
  requests: ['/dashboard/requests', 'settled calls'],
  request: [`/dashboard/requests/${callId}`, 'cache read tokens'],
  people: ['/dashboard/people', 'Grace Hopper'],
  person: [`/dashboard/people/${ada.id}`, 'laptop, Claude Code'],
  me: ['/dashboard/me', 'laptop, Claude Code', ada.headers.cookie],
  device: ['/dashboard/device?user_code=BCDF-GHJK', 'Compare the code', ada.headers.cookie],
  activity: ['/dashboard/activity', 'Key prototype revoked'],
  credits: ['/dashboard/credits', 'booked twice'],
  settings: ['/dashboard/settings', 'auditor'],
  accounts: ['/dashboard/accounts', 'Acme'],
  account: [`/dashboard/accounts/${account}`, 'gold'],
  webhooks: [`/dashboard/webhooks?id=${webhook}`, 'pages the team'],
  prices: ['/dashboard/prices?search=-5', 'gpt-7-sol'],
}

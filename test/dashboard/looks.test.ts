import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { startBillingBench } from '../billing/bench-of-one.ts'
import { after, before, test } from '../support/suite.ts'
import {
  BUILT_DIR,
  DESKTOP,
  openBrowser,
  type Person,
  signIn,
  takePicture,
  untilShown,
  violationsOf,
} from './browser.ts'
import { seedYear } from './seed-year.ts'

const bench = await startBillingBench({
  env: { TOLLGATE_DISCOUNT: '0.2' },
  settings: { webhooksAllowPrivate: true },
})
const { gateway } = bench
const { keys, callId } = await seedYear(bench)
const replaced = keys.get('support-agent')?.id
const { id: successor } = (await gateway.manage('POST', `/v1/keys/${replaced}/rotate`)) as { id: string }
const { id: webhook } = (await gateway.manage('POST', '/gateway/v1/webhooks', {
  url: 'http://127.0.0.1:9/hooks/tollgate',
  events: ['key.budget.threshold', 'key.budget.exceeded', 'key.created'],
  description: 'pages the team',
})) as { id: string }
await gateway.manage('POST', `/gateway/v1/webhooks/${webhook}/test`)
await gateway.manage('POST', '/gateway/v1/webhooks', { url: 'https://example.com/slack', events: ['*'] })

const { id: account } = (await gateway.manage('POST', '/gateway/v1/accounts', {
  name: 'Acme',
  monthly_budget_usd: 500,
  discount: 0.15,
  metadata: { plan: 'gold' },
})) as { id: string }
await gateway.manage('POST', '/gateway/v1/admin-keys', { name: 'auditor', role: 'viewer' })
await gateway.manage('POST', '/gateway/v1/credits', { amount_usd: -12.5, reason: 'booked twice' })

let person: Person
before(async () => {
  person = await openBrowser(gateway)
})
after(async () => {
  await person?.close()
  await bench.close()
})

const PAGES = {
  overview: '/dashboard',
  keys: '/dashboard/keys?status=all',
  key: `/dashboard/keys/${keys.get('code-review-ci')?.id}`,
  rotation: `/dashboard/keys/${replaced}?successor=${successor}`,
  usage: '/dashboard/usage?by=model,key',
  requests: '/dashboard/requests',
  request: `/dashboard/requests/${callId}`,
  activity: '/dashboard/activity',
  credits: '/dashboard/credits',
  settings: '/dashboard/settings',
  accounts: '/dashboard/accounts',
  account: `/dashboard/accounts/${account}`,
  webhooks: `/dashboard/webhooks?id=${webhook}`,
  prices: '/dashboard/prices?search=-5',
}

test('all of it is at most 70 kB gzipped, under names that change with the content', async () => {
  const page = await person.open('/dashboard')
  const loaded = new Map<string, Record<string, string>>()
  page.on('response', (response) => loaded.set(new URL(response.url()).pathname, response.headers()))
  await page.reload()
  await signIn(page, gateway.adminKey)
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  await untilShown(page)
  const assets = [...loaded].filter(([path]) => path.startsWith('/dashboard/assets/'))
  assert.ok(assets.length >= 4, 'script, style, and both of the charts')
  for (const [path, headers] of assets) {
    assert.match(path, /-[\w-]{8}\.(?:js|css|svg)$/)
    assert.match(headers['cache-control'] ?? '', /immutable/, path)
    assert.equal(headers['content-encoding'], 'br', path)
  }
  const zippedBytes = (names: readonly string[]) =>
    names.reduce((sum, name) => sum + gzipSync(readFileSync(join(BUILT_DIR, 'assets', name))).length, 0)
  const all = zippedBytes(readdirSync(join(BUILT_DIR, 'assets')).filter((name) => /\.(?:js|css)$/.test(name)))
  assert.ok(all <= 70_000, `${all} bytes in all`)
})

const widthOf = (page: Page) => page.evaluate<number>('document.documentElement.scrollWidth')

for (const [name, path] of Object.entries(PAGES)) {
  test(`${name}: opens directly, fits three widths in light and dark, and axe finds nothing in it`, async () => {
    const page = await person.visit(path)
    const found: string[] = []
    const note = (screen: string, violations: readonly string[]) =>
      found.push(...violations.map((violation) => `${screen}: ${violation}`))

    await takePicture(page, `${name}-1440-light`)
    note('1440 light', await violationsOf(page))
    await page.emulateMedia({ colorScheme: 'dark' })
    await takePicture(page, `${name}-1440-dark`)
    note('1440 dark', await violationsOf(page, 'color-contrast'))
    for (const width of [768, 390]) {
      await page.setViewportSize({ width, height: 844 })
      const shown = await widthOf(page)
      if (shown > width) found.push(`${width}: scrolls sideways (${shown})`)
    }
    // The overview reads fewer days on a phone, and is dimmed while they are on their way.
    await page.reload()
    await untilShown(page)
    await takePicture(page, `${name}-390-dark`)
    note('390 dark', await violationsOf(page, 'color-contrast', 'scrollable-region-focusable', 'target-size'))
    await page.emulateMedia({ colorScheme: 'light' })
    await takePicture(page, `${name}-390-light`)
    assert.deepEqual(found, [])
    await page.context().close()
  })
}

test('the theme is chosen against the system, and stays chosen', async () => {
  const page = await person.visit('/dashboard/prices')
  const paper = () => page.evaluate<string>('getComputedStyle(document.body).backgroundColor')
  const light = await paper()
  await page.getByRole('button', { name: 'Theme: system' }).click()
  await page.getByRole('button', { name: 'Theme: light' }).click()
  await page.getByRole('button', { name: 'Theme: dark' }).waitFor()
  const dark = await paper()
  assert.notEqual(dark, light)
  await page.reload()
  await untilShown(page)
  assert.equal(await paper(), dark)
})

test('the frame of a dialog is as wide as a phone lets it be, and axe finds nothing in it', async () => {
  for (const screen of [DESKTOP, { width: 390, scheme: 'dark' } as const]) {
    const page = await person.visit('/dashboard/keys', screen)
    await page.getByRole('button', { name: 'New key' }).click()
    await page.getByRole('dialog').waitFor()
    await takePicture(page, `new-key-${screen.width}-${screen.scheme}`)
    assert.deepEqual(await violationsOf(page), [])
    assert.equal(await widthOf(page), screen.width)
    await page.context().close()
  }
})

test('no window has complained: no error, no violation of the policy, no request to another host', () => {
  assert.deepEqual(person.complaints(), [])
})

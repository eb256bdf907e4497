import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import type { Page } from 'playwright-core'
import { test } from '../support/suite.ts'
import { BUILT_DIR, DESKTOP, signIn, untilShown, violationsOf } from './browser.ts'
import { gateway, PAGES, person } from './company.ts'

test('the dashboard is at most 80 kB gzipped, with content hashes in its file names', async () => {
  const page = await person.open('/dashboard')
  const loaded = new Map<string, Record<string, string>>()
  page.on('response', (response) => loaded.set(new URL(response.url()).pathname, response.headers()))
  await page.reload()
  await signIn(page, gateway.adminKey)
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  await untilShown(page)
  const assets = [...loaded].filter(([path]) => path.startsWith('/dashboard/assets/'))
  const kinds = new Set(assets.map(([path]) => path.slice(path.lastIndexOf('.') + 1)))
  assert.deepEqual([...kinds].sort(), ['css', 'js', 'svg', 'woff2'])
  for (const [path, headers] of assets) {
    assert.match(path, /-[\w-]{8}\.(?:js|css|svg|woff2)$/)
    assert.match(headers['cache-control'] ?? '', /immutable/, path)
    assert.equal(headers['content-encoding'], path.endsWith('woff2') ? undefined : 'br', path)
  }
  assert.equal(await page.evaluate<boolean>('document.fonts.check(\'13px "Inter Variable"\')'), true)
  const zippedBytes = (names: readonly string[]) =>
    names.reduce((sum, name) => sum + gzipSync(readFileSync(join(BUILT_DIR, 'assets', name))).length, 0)
  const all = zippedBytes(readdirSync(join(BUILT_DIR, 'assets')).filter((name) => /\.(?:js|css)$/.test(name)))
  assert.ok(all <= 80_000, `${all} bytes in all`)
})

const widthOf = (page: Page) => page.evaluate<number>('document.documentElement.scrollWidth')

for (const [name, [path, text, as]] of Object.entries(PAGES)) {
  test(`${name}: opens by URL, fits three widths in light and dark, and passes axe`, async () => {
    const page = await person.visit(path, DESKTOP, as)
    await page.getByRole('main').getByText(text).first().waitFor()
    const found: string[] = []
    const note = (screen: string, violations: readonly string[]) =>
      found.push(...violations.map((violation) => `${screen}: ${violation}`))
    note('1440 light', await violationsOf(page))
    await page.emulateMedia({ colorScheme: 'dark' })
    note('1440 dark', await violationsOf(page, 'color-contrast'))
    for (const width of [1024, 768, 390]) {
      await page.setViewportSize({ width, height: 844 })
      const shown = await widthOf(page)
      if (shown > width) found.push(`${width}: scrolls sideways (${shown})`)
    }
    note('390 dark', await violationsOf(page, 'scrollable-region-focusable', 'target-size'))
    assert.deepEqual(found, [])
    await page.context().close()
  })
}

test("the theme can differ from the system's, and is remembered", async () => {
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
  await page.evaluate("localStorage.removeItem('tollgate-session')")
  await page.context().clearCookies()
  await page.reload()
  await page.getByLabel('Admin key or API key').waitFor()
  assert.equal(await paper(), dark, 'the sign-in page')
})

/** The dialogs of each page, by the buttons that open them. */
const DIALOGS: readonly (readonly [path: string, ...buttons: readonly string[]])[] = [
  ['/dashboard/keys', 'New key'],
  [PAGES['key']?.[0] ?? '', 'Change limits', 'Rotate', 'Revoke'],
  [PAGES['request']?.[0] ?? '', 'Credit back'],
  [PAGES['webhooks']?.[0] ?? '', 'New webhook', 'Edit', 'Delete', 'View webhook.test'],
  ['/dashboard/credits', 'Top up', 'Deduct credit'],
  ['/dashboard/accounts', 'New account'],
  [PAGES['account']?.[0] ?? '', 'Change account', 'Suspend'],
  ['/dashboard/settings', 'New admin key', 'Revoke auditor'],
  ['/dashboard/people', 'Change what new people get'],
  [PAGES['person']?.[0] ?? '', 'Change limits', 'Move', 'Block'],
  ['/dashboard/prices', 'Push a list', 'Set price of gpt-7-sol'],
]

test('every dialog opens and closes by keyboard, fits a phone, and passes axe', async () => {
  for (const [path, ...buttons] of DIALOGS) {
    const page = await person.visit(path)
    for (const name of buttons) {
      const button = page.getByRole('button', { name, exact: true })
      await button.focus()
      await page.keyboard.press('Enter')
      await page.getByRole('dialog').waitFor()
      assert.deepEqual(await violationsOf(page), [], `${path} ${name}`)
      await page.emulateMedia({ colorScheme: 'dark' })
      await page.setViewportSize({ width: 390, height: 844 })
      const rules = ['color-contrast', 'scrollable-region-focusable']
      assert.deepEqual(await violationsOf(page, ...rules), [], `${path} ${name} on a phone`)
      assert.equal(await widthOf(page), 390, `${path} ${name}`)
      await page.keyboard.press('Escape')
      await page.getByRole('dialog').waitFor({ state: 'detached' })
      await page
        .locator('button:focus', { hasText: name.replace(/^View /, '').split(' ')[0] ?? '' })
        .waitFor()
      await page.emulateMedia({ colorScheme: 'light' })
      await page.setViewportSize({ width: DESKTOP.width, height: 900 })
    }
    await page.context().close()
  }
})

test('no window had an error, a policy violation or a request to another host', () => {
  assert.deepEqual(person.complaints(), [])
})

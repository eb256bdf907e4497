import assert from 'node:assert/strict'
import type { Page } from 'playwright-core'
import { signInPerson } from '../support/sign-in-person.ts'
import { test } from '../support/suite.ts'
import { DESKTOP, signIn, untilShown } from './browser.ts'
import { gateway, keys, PAGES, person } from './company.ts'

/** No page offers what the role of its session may not do, and none asks for what the role may not read. */

const OF_OPERATORS =
  /^(Top up|Deduct|Credit back|Suspend|Move|Push a list|Set price|Use as fallback|New account|Change account)/
const OF_ADMINS =
  /^(New|Create|Change|Rename|Rotate|Revoke|Block|Unblock|Edit|Turn|Send a test|Delete|Retry|Approve)(?![a-z])/

const ALL = Object.keys(PAGES)
const NOT_OF_KEYS = ['me', 'device', 'account', 'accounts']

async function visitAll(page: Page, names: readonly string[], refused: readonly RegExp[]): Promise<void> {
  const forbidden: string[] = []
  page.on('response', (response) => {
    if (response.status() === 403) forbidden.push(`${response.request().method()} ${response.url()}`)
  })
  for (const name of names) {
    await page.goto(gateway.url + (PAGES[name]?.[0] ?? ''))
    await untilShown(page)
    const offered = await page.getByRole('main').getByRole('button').allTextContents()
    const wrong = offered.filter((title) => refused.some((each) => each.test(title)))
    assert.deepEqual([wrong, await page.getByRole('alert').allTextContents()], [[], []], name)
  }
  assert.deepEqual(forbidden, [])
  await page.context().close()
}

async function withKey(key: unknown): Promise<Page> {
  const page = await person.open('/dashboard')
  await signIn(page, String(key))
  await page.getByRole('navigation', { name: 'Pages' }).waitFor()
  return page
}

for (const [role, refused] of [
  ['viewer', [OF_OPERATORS, OF_ADMINS]],
  ['admin', [OF_OPERATORS]],
] as const)
  test(`the key of ${role === 'admin' ? 'an' : 'a'} ${role} reads every page of its account`, async () => {
    const fields = { name: `${role} of pages`, role, account_id: 'default' }
    const { key } = await gateway.manage('POST', '/gateway/v1/admin-keys', fields)
    const pages = ALL.filter((name) => !NOT_OF_KEYS.includes(name))
    await visitAll(await withKey(key), pages, refused)
  })

test('an API key reads its own record, usage and calls', async () => {
  const page = await withKey(keys.get('nightly-report')?.key)
  await visitAll(page, ['overview', 'usage', 'requests'], [OF_OPERATORS, OF_ADMINS])
})

test('a member reads the own pages, and a viewer who signed in has keys too', async () => {
  const member = await signInPerson(gateway, 'Mary Member')
  const page = await person.visit('/dashboard/me', DESKTOP, member.headers.cookie)
  await visitAll(
    page,
    ['overview', 'usage', 'requests', 'prices'],
    [OF_OPERATORS, /^(Change|Set|Block)(?![a-z])/],
  )
  const viewer = await signInPerson(gateway, 'Vera Viewer', 'viewer')
  const other = await person.visit('/dashboard/me', DESKTOP, viewer.headers.cookie)
  await other.getByRole('button', { name: 'Create your first key' }).waitFor()
  await visitAll(other, ['keys', 'key', 'people', 'person'], [OF_OPERATORS, OF_ADMINS])
})

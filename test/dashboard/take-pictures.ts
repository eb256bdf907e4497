import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { monthOf } from '../../src/ledger/calendar.ts'
import { changeDatabase } from '../support/read-database.ts'
import { signInPerson } from '../support/sign-in-person.ts'
import { runEnds } from '../support/suite.ts'
import { PICTURES_DIR, takePicture } from './browser.ts'
import { callId, gateway, PAGES, person, rotated } from './company.ts'

/** `npm run pictures [-- page …]`: screenshots at three widths, light and dark; one goes to docs/pictures. */

const DOCS_DIR = fileURLToPath(new URL('../../docs/pictures/', import.meta.url))

const TEAMS = ['checkout', 'search', 'fraud', 'ads', 'mobile', 'payroll', 'catalog', 'growth']
const FIRST = 'Alan Barbara Claude Dorothy Edsger Frances Gottfried Hedy Ivan Joan'.split(' ')
const LAST = ['Turing', 'Liskov', 'Shannon', 'Vaughan', 'Dijkstra', 'Allen']

const named = process.argv.slice(2)
const pages = Object.entries(PAGES).filter(([name]) => named.length === 0 || named.includes(name))
await addCrowd()
for (const [name, [path, , as]] of pages)
  for (const scheme of ['light', 'dark'] as const)
    for (const width of [1440, 1024, 390]) {
      const page = await person.visit(path.replace('?status=all', ''), { width, scheme }, as)
      const picture = `${name}-${width}-${scheme}`
      await takePicture(page, picture)
      if (picture === 'overview-1440-light')
        copyFileSync(join(PICTURES_DIR, `${picture}.png`), join(DOCS_DIR, 'overview.png'))
      await page.context().close()
    }
await runEnds()

/** As many keys and people as a company of 60 developers has. They are in pictures only, because tests count. */
async function addCrowd(): Promise<void> {
  await gateway.manage('PATCH', '/gateway/v1/members', { monthly_budget_usd: 100 })
  for (let n = 0; n < 240; n++)
    await gateway.createKey(`${TEAMS[n % 8]}-${TEAMS[(n >> 3) % 8]}-${1 + (n >> 6)}`, {
      ...(n % 3 === 0 ? { monthly_budget_usd: 20 + n } : {}),
    })
  let blocked = ''
  for (const first of FIRST)
    for (const [n, last] of LAST.entries()) {
      const { id, headers } = await signInPerson(gateway, `${first} ${last}`, 'member')
      for (const name of ['laptop, Claude Code', 'scripts', 'Codex'].slice(0, n % 4))
        await fetch(`${gateway.url}/v1/keys`, { method: 'POST', headers, body: JSON.stringify({ name }) })
      blocked = id
    }
  await gateway.manage('POST', `/gateway/v1/people/${blocked}/block`)
  await gateway.manage('POST', '/gateway/v1/credits', { amount_usd: 250, reason: 'invoice 2026-118' })
  const request_ids = [callId]
  await gateway.manage('POST', '/gateway/v1/credits', { request_ids, reason: 'an answer that was cut off' })
  await gateway.manage('PATCH', `/v1/keys/${rotated}`, { monthly_budget_usd: 40, log_requests: true })
  await changeDatabase(
    gateway,
    `UPDATE budget SET month = '${monthOf(Date.now())}', spent_nanos = abs(random() % 93) * 850000000
     WHERE spent_nanos = 0 AND id IN (SELECT budget_id FROM person);
     UPDATE person SET last_seen_at_ms = last_seen_at_ms - abs(random() % 2000000000)`,
  )
}

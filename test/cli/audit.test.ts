import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from '../support/suite.ts'
import type { ServingProcess } from '../support/tollgate-process.ts'
import { startSmallGateway } from './small-gateway.ts'

/** The database URL as the audit prints it, without a password. */
function placeOf({ dataDir, databaseUrl }: ServingProcess): string {
  if (databaseUrl === null) return dataDir
  const { host, pathname } = new URL(databaseUrl)
  return `postgres://${host}${pathname}`
}

test('audit passes while a gateway runs, reports the first difference, and passes after the repair', async () => {
  await using gateway = await startSmallGateway()
  await gateway.call(1_000)
  await gateway.call(0)
  await gateway.call(90_000)
  const counted = '3 calls and 0 credits'
  const clean = await gateway.run(['audit'])
  const database = placeOf(gateway.tollgate)
  const where = `Database: ${database}\n`
  const inOrder = `No difference in ${counted}.\n${where}`
  assert.deepEqual(clean, { code: 0, signal: null, stdout: inOrder, stderr: '' })

  const asJson = async () => JSON.parse((await gateway.run(['audit', '--json'])).stdout)
  const report = { object: 'audit', database, calls: 3, credits: 0, removed_months: [] }
  assert.deepEqual(await asJson(), { ...report, difference: null })

  await gateway.tamper('UPDATE account SET charged_nanos = charged_nanos + 1')
  const difference = { what: 'account.charged_nanos', where: 'id default' }
  const amounts = { stored: '0.009100001 USD', derived: '0.0091 USD' }
  assert.deepEqual(await asJson(), { ...report, difference: { ...difference, ...amounts } })
  const wrong = await gateway.run(['audit'])
  assert.deepEqual(wrong, {
    code: 1,
    signal: null,
    stdout:
      'Difference: account.charged_nanos\n  where    id default\n  stored   0.009100001 USD\n' +
      `  derived  0.0091 USD\nThis is the first difference. There may be others in ${counted}.\n${where}`,
    stderr: '',
  })

  await gateway.tamper('UPDATE account SET charged_nanos = charged_nanos - 1')
  await gateway.call(1_000)
  assert.match((await gateway.run(['audit'])).stdout, /^No difference in 4 calls /)
})

test('audit reads the ledger of a killed gateway and changes nothing', async () => {
  await using gateway = await startSmallGateway()
  await gateway.call(1_000)
  gateway.tollgate.signal('SIGKILL')
  await gateway.tollgate.finished
  const first = await gateway.run(['audit'])
  assert.match(first.stdout, /^No difference in 1 call /)
  assert.deepEqual(await gateway.run(['audit']), first)
})

test('audit warns of a missing or different pepper, with which no key works', async () => {
  await using gateway = await startSmallGateway()
  const { code, stderr } = await gateway.run(['audit'], {
    TOLLGATE_PEPPER: 'another-pepper-of-32-characters!',
  })
  assert.equal(code, 0)
  assert.match(
    stderr,
    /^Warning: TOLLGATE_PEPPER is not the pepper .* no key is recognised\. Restore the file/,
  )
  rmSync(join(gateway.tollgate.dataDir, 'pepper'))
  assert.match((await gateway.run(['audit'])).stderr, /^Warning: .*pepper is missing/)
})

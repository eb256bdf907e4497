import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from '../support/suite.ts'
import { startSmallGateway } from './small-gateway.ts'

/** The listed price is 0.1 USD per million input tokens. */
const folder = mkdtempSync(join(tmpdir(), 'tollgate-rerate-'))
const CHEAPER = overlayOf({ 'claude-haiku-5-5': '0.04' })
const DEARER = overlayOf({ 'claude-haiku-5-5': '0.3' })

function overlayOf(inputs: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const file = join(folder, `${Object.values(inputs).join('-')}.json`)
  const models = Object.entries(inputs).map(([id, input]) => ({
    id,
    rates: { standard: { input, output: '0' } },
  }))
  writeFileSync(file, JSON.stringify({ models }))
  return { TOLLGATE_PRICES: file }
}

/** Captured once, so that midnight during the test changes nothing. */
const DAY = new Date().toISOString().slice(0, 10)

const gateway = await startSmallGateway()
await gateway.call(10_000)
await gateway.call(50_000)
after(async () => {
  await gateway.close()
  rmSync(folder, { recursive: true })
})

const FROM = ['rerate', '--start', '2026-01-01'] as const
const auditLine = async (): Promise<string> => (await gateway.run(['audit'])).stdout

test('rerate shows, credits and charges calls while the gateway runs, each once', async () => {
  const shown = await gateway.run(FROM, CHEAPER)
  assert.deepEqual(shown, {
    code: 0,
    signal: null,
    stdout: [
      'model             calls  old cost  new cost  difference',
      'claude-haiku-5-5      2     0.006    0.0024     -0.0036',
      'total                 2     0.006    0.0024     -0.0036',
      'To credit: 0.0036 USD for 2 calls.',
      'This was a dry run. To apply it, add --apply --yes.',
      '',
    ].join('\n'),
    stderr: '',
  })
  const rerated = { requests: 2, old_usd: 0.006, new_usd: 0.0024, difference_usd: -0.0036 }
  assert.deepEqual(JSON.parse((await gateway.run([...FROM, '--json'], CHEAPER)).stdout), {
    object: 'rerate',
    models: [{ model: 'claude-haiku-5-5', ...rerated }],
    total: { model: 'total', ...rerated },
    to_credit: 2,
    to_charge: 0,
    unchanged: {},
    applied: null,
  })
  assert.match(await auditLine(), /^No difference in .* 0 credits/)

  const booked = await gateway.run([...FROM, '--apply', '--yes'], CHEAPER)
  assert.equal(booked.code, 0)
  assert.match(booked.stdout, /\nApplied to 2 calls: 0\.0036 USD credited in all\.\n$/)
  assert.match(await auditLine(), /^No difference in .* 1 credit/)

  const again = await gateway.run([...FROM, '--apply', '--yes'], CHEAPER)
  assert.equal(again.stdout, 'No cost changes.\nUnchanged: 2 calls.\n')
  assert.equal(again.code, 0)

  // Calls that would cost more are only reported; --raise charges them.
  const dearer = await gateway.run([...FROM, '--apply', '--yes'], DEARER)
  assert.match(
    dearer.stdout,
    /\nNot charged: 0\.0156 USD for 2 calls that cost more now\. Add --raise to charge the difference\.\n$/,
  )
  assert.match(await auditLine(), /^No difference in .* 1 credit/)

  const charged = await gateway.run([...FROM, '--apply', '--raise', '--yes', '--json'], DEARER)
  assert.deepEqual(JSON.parse(charged.stdout).applied, { requests: 2, credited_usd: -0.0156 })
  assert.match(await auditLine(), /^No difference in 2 calls and 2 credits/)
})

test('calls are selected by date, instant and model', async () => {
  const today = new Date().toISOString().slice(0, 10)
  // These prices were not applied before: a version applies to a call only once.
  const prices = overlayOf({ 'claude-haiku-5-5': '0.05' })
  const counted = async (...args: string[]): Promise<boolean> =>
    (await gateway.run(['rerate', ...args], prices)).stdout.includes('claude-haiku-5-5      2 ')
  assert.equal(await counted('--start', DAY, '--end', today), true)
  assert.equal(await counted('--start', '2026-01-01', '--end', `${DAY}T00:00:00Z`), false)
  assert.equal(await counted('--start', DAY, '--model', 'claude-haiku-5-5'), true)
  assert.equal(await counted('--start', DAY, '--model', 'claude-haiku'), false)
  assert.equal(await counted('--start', DAY, '--unpriced-only'), false)

  const { stdout } = await gateway.run(['requests', '--format', 'ndjson'])
  const starts = stdout
    .trim()
    .split('\n')
    .map((line) => String(JSON.parse(line).started_at))
  const [first = ''] = starts.sort()
  const before = await gateway.run(['rerate', '--start', '2026-01-01', '--end', first], prices)
  assert.equal(before.stdout, 'No cost changes.\n', 'the end is exclusive')
  assert.equal(await counted('--start', first), true, 'the start is inclusive')

  // A call may start long after its id was created: a slow body, a wait for budget.
  const later = (ms: number) => new Date(Date.parse(first) + ms).toISOString()
  const move = (by: string) =>
    gateway.tamper(
      `UPDATE call SET started_at_ms = started_at_ms ${by} WHERE id = (SELECT min(id) FROM call)`,
    )
  await move('+ 3600000')
  const moved = await gateway.run(['rerate', '--start', later(1_800_000), '--end', later(7_200_000)], prices)
  assert.match(moved.stdout, /claude-haiku-5-5 {6}1 /)
  await move('- 3600000')
})

test('without --raise only the calls that would cost less are credited', async () => {
  await gateway.call(10_000, 'claude-opus-4-8')
  const prices = overlayOf({ 'claude-haiku-5-5': '0.01', 'claude-opus-4-8': '1000' })
  const { stdout } = await gateway.run([...FROM, '--apply', '--yes'], prices)
  assert.match(
    stdout,
    /\nTo credit: \S+ USD for 2 calls\.\nNot charged: \S+ USD for 1 call that cost more now\./,
  )
  assert.match(stdout, /\nApplied to 2 calls: \S+ USD credited in all\.\n$/)
})

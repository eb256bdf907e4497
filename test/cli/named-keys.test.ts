import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type CommandBench, startCommandBench, WAYS, type Way } from './command-bench.ts'

let bench: CommandBench
before(async () => {
  bench = await startCommandBench()
})
after(() => bench.close())

interface Made {
  readonly id: string
  readonly key: string
  readonly prefix: string
  readonly last4: string
}

async function make(name: string): Promise<Made> {
  const { stdout } = await bench.run('locally', ['keys', 'create', '--name', name, '--json'])
  return JSON.parse(stdout)
}

const show = (way: Way, named: string) => bench.run(way, ['keys', 'show', named, '--json'])

for (const way of WAYS) {
  test(`a key is found by its name, its beginning, its end and as lists show it, ${way}`, async () => {
    const made = await make(`service, ${way}`)
    await make(`another service, ${way}`)
    const { id, key, prefix, last4 } = made
    for (const named of [
      id,
      `service, ${way}`,
      prefix,
      prefix.slice(0, 14),
      last4,
      `${prefix}…${last4}`,
      key,
    ]) {
      const { code, stdout, stderr } = await show(way, named)
      assert.deepEqual([code, stderr], [0, ''], named)
      assert.equal(JSON.parse(stdout).id, id, named)
    }
    // A part of a name names no key, and another case is another name.
    for (const named of ['service', `SERVICE, ${way.toUpperCase()}`])
      assert.equal((await show(way, named)).code, 1)
  })

  test(`every command that is about one key takes its name, ${way}`, async () => {
    const { id } = await make(`all, ${way}`)
    const name = `all, ${way}`
    const updated = await bench.run(way, ['keys', 'update', name, '--monthly-budget', '5', '--json'])
    assert.equal(JSON.parse(updated.stdout).id, id)
    const log = await bench.run(way, ['requests', '--key', name, '--json'])
    assert.deepEqual([log.code, log.stdout], [0, ''])
    const rotated = await bench.run(way, ['keys', 'rotate', name, '--json'])
    assert.equal(JSON.parse(rotated.stdout).rotated_from, id)
    // Two keys have that name now.
    const ambiguous = await bench.run(way, ['keys', 'revoke', name])
    assert.deepEqual([ambiguous.code, ambiguous.stdout], [1, ''])
    assert.match(
      ambiguous.stderr,
      /^tollgate keys revoke: "all, .*" could be several keys\. Name one by its id:\n(?: {2}key_\w{26} .* usable, created [-\d]+ [:\d]+ UTC .*\n){2}$/,
    )
    assert.ok(ambiguous.stderr.includes(id) && ambiguous.stderr.includes(JSON.parse(rotated.stdout).id))
    for (const each of [id, JSON.parse(rotated.stdout).id])
      assert.equal(JSON.parse((await show(way, each)).stdout).status, 'usable', 'nothing was done')
    const revoked = await bench.run(way, ['keys', 'revoke', id])
    assert.match(revoked.stdout, new RegExp(`^Revoked ${id} `))
  })
}

test('what no key is called fails, names those that are near, and does not repeat a whole key', async () => {
  await make('checkout production')
  const near = await show('locally', 'checkout')
  assert.deepEqual([near.code, near.stdout], [1, ''])
  assert.match(
    near.stderr,
    /There is no key "checkout"\. Did you mean:\n {2}key_\w{26} .*checkout production\n$/,
  )
  const none = await show('locally', '../usage')
  assert.match(
    none.stderr,
    /^tollgate keys show: There is no key "\.\.\/usage"\. `tollgate keys list` shows them all\.\n$/,
  )
  const whole = `svc_live_${'Q'.repeat(49)}`
  const unknown = await show('locally', whole)
  assert.equal(unknown.code, 1)
  assert.ok(!unknown.stderr.includes('Q'.repeat(8)), unknown.stderr)
  for (const beginning of ['svc_live_', 'svc'])
    assert.match((await show('locally', beginning)).stderr, /several keys/)
})

test('a name wins over what another key begins or ends with', async () => {
  const { last4, id } = await make('ends')
  const named = await make(last4)
  assert.equal(JSON.parse((await show('locally', last4)).stdout).id, named.id)
  assert.notEqual(named.id, id)
})

import assert from 'node:assert/strict'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { whyNotSimulated } from '../../src/config/simulator.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { closeAfter, test } from '../support/suite.ts'
import { type ServingProcess, serveTollgate } from '../support/tollgate-process.ts'

const upstream = await startSimulator()
closeAfter(upstream)

async function statusOf({ url, environment }: ServingProcess, path: string, headers = {}): Promise<number> {
  assert.equal(environment['TOLLGATE_URL'], url)
  const response = await fetch(url + path, { headers })
  await response.body?.cancel()
  return response.status
}

/** The statuses of a call and of the readiness check. */
async function answers(serving: ServingProcess): Promise<readonly number[]> {
  const headers = { 'x-api-key': await serving.createKey(), 'anthropic-version': '2023-06-01' }
  return [await statusOf(serving, '/v1/models', headers), await statusOf(serving, '/readyz')]
}

async function stop(serving: ServingProcess): Promise<void> {
  serving.signal('SIGTERM')
  await serving.finished
}

test('the simulator never answers where a real upstream has answered, unless it is forced', async () => {
  await using first = await serveTollgate({ TOLLGATE_DATABASE_URL: '' })
  assert.match(first.banner, /THE BUILT-IN SIMULATOR/)
  assert.deepEqual(await answers(first), [200, 200])
  await stop(first)
  // Its own simulator's answers leave no trace; this start has the same data and a real upstream.
  const data = { TOLLGATE_DATA_DIR: first.dataDir, TOLLGATE_DATABASE_URL: '' }
  await using again = await serveTollgate(data)
  assert.deepEqual(await answers(again), [200, 200])
  await stop(again)
  await using real = await serveTollgate({ ...data, TOLLGATE_MESSAGES_URL: upstream.messagesUrl })
  assert.deepEqual(await answers(real), [200, 200])
  await stop(real)

  await using lost = await serveTollgate(data)
  const why = /The built-in simulator is off: a real upstream has answered calls of this database/
  assert.match(lost.banner, why)
  assert.doesNotMatch(lost.banner, /THE BUILT-IN SIMULATOR/)
  assert.match(await lost.printedToStderr(/"simulator":"off: .*not ready/), /surface_not_configured/)
  assert.deepEqual(await answers(lost), [503, 503])
  await stop(lost)
  await using forced = await serveTollgate({ ...data, TOLLGATE_SIMULATOR: 'true' })
  assert.match(forced.banner, /THE BUILT-IN SIMULATOR \*\*\* TOLLGATE_SIMULATOR is true/)
  assert.deepEqual(await answers(forced), [200, 200])
})

test('the reasons against the simulator', () => {
  const databaseUrl = new Secret('postgres://127.0.0.1/tollgate')
  const none = { hasOwnUpstreams: false, hasRealUpstream: false }
  const why = (simulator: boolean | null, onPostgres: boolean, facts = none) =>
    whyNotSimulated({ simulator, databaseUrl: onPostgres ? databaseUrl : null }, facts)
  assert.equal(why(null, false), null)
  assert.match(String(why(null, true)), /^on PostgreSQL/)
  assert.match(String(why(false, false)), /^TOLLGATE_SIMULATOR is false/)
  assert.match(String(why(null, false, { ...none, hasOwnUpstreams: true })), /own upstream/)
  assert.match(String(why(null, false, { ...none, hasRealUpstream: true })), /real upstream/)
  for (const onPostgres of [true, false])
    assert.equal(why(true, onPostgres, { hasOwnUpstreams: true, hasRealUpstream: true }), null)
})

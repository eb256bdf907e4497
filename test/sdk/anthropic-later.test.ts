import assert from 'node:assert/strict'
import Anthropic from '@anthropic-ai/sdk'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { startGateway } from '../support/gateway.ts'
import { closeAfter, test } from '../support/suite.ts'
import { until } from '../support/until.ts'
import { collect, startBothWays, type Way } from './both-ways.ts'

const ways = await startBothWays()
closeAfter(ways)

const clientOf = ({ messagesUrl: baseURL, messagesKey: apiKey }: Pick<Way, 'messagesUrl' | 'messagesKey'>) =>
  new Anthropic({ baseURL, apiKey, maxRetries: 0 })

const requests = ['a', 'b'].map((custom_id) => ({
  custom_id,
  params: {
    model: 'claude-haiku-5-5',
    max_tokens: 100,
    messages: [{ role: 'user' as const, content: `Tell me about ${custom_id}.` }],
  },
}))

test('a batch is created, polled, listed, read and deleted alike', async () => {
  const seen = await ways.compare(async (way) => {
    const { batches } = clientOf(way).messages
    const { id, ...made } = await batches.create({ requests })
    const { results_url, ...ended } = await batches.retrieve(id)
    const listed = await collect(batches.list())
    // The results URL points upstream, for which the client has no key; its path works at the gateway too.
    const path = new URL(results_url ?? '').pathname
    const headers = { 'x-api-key': way.messagesKey, 'anthropic-version': '2023-06-01' }
    const results = await (await fetch(`${way.messagesUrl}${path}`, { headers })).text()
    return { made, ended, count: listed.length, results, deleted: await batches.delete(id) }
  })
  assert.equal(seen.ended.processing_status, 'ended')
  assert.equal(seen.results.trim().split('\n').length, requests.length)
})

test('with results_url rewritten, the SDK reads the results here, in any coding of the batch', async () => {
  const simulator = await startSimulator({ messagesKey: 'pm', hurry: Number.POSITIVE_INFINITY })
  const gateway = await startGateway({
    ...{ messagesUrl: simulator.messagesUrl, messagesKey: 'pm', settings: { rewriteResultsUrl: true } },
  })
  try {
    const { id: keyId, key } = await gateway.createKey('capped', { monthly_budget_usd: 1 })
    const { batches } = clientOf({ messagesUrl: gateway.url, messagesKey: key }).messages
    const { id } = await batches.create({ requests })
    const { results_url } = await batches.retrieve(id)
    assert.equal(results_url, `${gateway.url}/v1/messages/batches/${id}/results`)
    const [listed] = await collect(batches.list())
    assert.equal((listed as { results_url: string }).results_url, results_url)
    const lines = await collect(await batches.results(id))
    assert.deepEqual(
      lines.map((line) => (line as { result: { type: string } }).result.type),
      ['succeeded', 'succeeded'],
    )
    await until('the call is billed', async () => {
      const { month_spend_usd, month_held_usd } = await gateway.manage('GET', `/v1/keys/${keyId}`)
      return Number(month_spend_usd) > 0 && month_held_usd === 0
    })
  } finally {
    await gateway.close()
    await simulator.close()
  }
})

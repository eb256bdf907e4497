import assert from 'node:assert/strict'
import { startSimulator } from '../../simulator/start-simulator.ts'
import type { Config, Environment } from '../../src/config/read-config.ts'
import { runInThread } from '../support/command-thread.ts'
import { startGateway } from '../support/gateway.ts'
import { type CommandOptions, startCommand } from '../support/tollgate-process.ts'

export async function startCommandGateway(settings: Partial<Config> = {}) {
  const simulator = await startSimulator()
  const gateway = await startGateway({ messagesUrl: simulator.messagesUrl, settings })
  const environment = { TOLLGATE_URL: gateway.url, TOLLGATE_DATA_DIR: gateway.dataDir }
  /** Runs a command in a thread. */
  const run = (...args: readonly string[]) => runInThread(args, environment)
  return {
    gateway,
    environment,
    run,
    /** Runs a command that must succeed; returns its standard output. */
    async done(...args: readonly string[]) {
      const { code, stdout, stderr } = await run(...args)
      assert.equal(code, 0, `tollgate ${args.join(' ')}: ${stderr}`)
      return stdout
    },
    /** Starts a command in its own process: for terminals, pipes, input and signals. */
    start: (args: readonly string[], options: CommandOptions = {}, more: Environment = {}) =>
      startCommand(args, { ...environment, ...more }, options),
    /** Resolves with the request id of the call, which has settled. */
    async call(key: string, inputTokens: number, model?: string) {
      const response = await callMessages(gateway.url, key, inputTokens, model)
      const id = String(response.headers.get('x-svc-request-id'))
      await gateway.manage('GET', `/gateway/v1/requests/${id}`)
      return id
    },
    async close() {
      await gateway.close()
      await simulator.close()
    },
  }
}

/** A Messages call for which upstream reports this many input tokens. */
export async function callMessages(url: string, key: string, tokens: number, model = 'claude-haiku-5-5') {
  const response = await fetch(`${url}/v1/messages`, {
    method: 'POST',
    headers: {
      'x-api-key': key,
      'anthropic-version': '2023-06-01',
      'x-simulator': `usage={"input_tokens":${tokens},"output_tokens":0}`,
    },
    body: JSON.stringify({ model, max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }),
  })
  await response.text()
  return response
}

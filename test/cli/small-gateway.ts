import assert from 'node:assert/strict'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { runCommand } from '../support/command-thread.ts'
import { changeDatabase } from '../support/read-database.ts'
import { type Finished, type ServingProcess, serveTollgate } from '../support/tollgate-process.ts'

export interface SmallGateway extends AsyncDisposable {
  readonly tollgate: ServingProcess
  /** A Messages call for which upstream reports this many input tokens. */
  call(inputTokens: number, model?: string): Promise<void>
  /** Runs a command on this gateway's data: the first of each name in a process, later ones in a thread. */
  run(args: readonly string[], environment?: Readonly<Record<string, string>>): Promise<Finished>
  /** Changes the database directly, bypassing all constraints. */
  tamper(sql: string): Promise<void>
  close(): Promise<void>
}

export async function startSmallGateway(): Promise<SmallGateway> {
  const simulator = await startSimulator()
  const tollgate = await serveTollgate({ TOLLGATE_MESSAGES_URL: simulator.messagesUrl })
  const key = await tollgate.createKey()
  return {
    tollgate,
    async call(inputTokens, model = 'claude-haiku-5-5') {
      const response = await fetch(`${tollgate.url}/v1/messages`, {
        method: 'POST',
        headers: {
          'x-api-key': key,
          'anthropic-version': '2023-06-01',
          'x-simulator': `usage={"input_tokens":${inputTokens},"output_tokens":0}`,
        },
        body: JSON.stringify({ model, max_tokens: 9, messages: [{ role: 'user', content: 'Hi' }] }),
      })
      await response.text()
      assert.equal(response.status, 200)
    },
    run: (args, environment = {}) => runCommand(args, { ...tollgate.environment, ...environment }),
    tamper: (sql) => changeDatabase(tollgate, sql),
    async close() {
      await tollgate.dispose()
      await simulator.close()
    },
    [Symbol.asyncDispose](this: SmallGateway) {
      return this.close()
    },
  }
}

import assert from 'node:assert/strict'
import { startSimulator } from '../../simulator/start-simulator.ts'
import { runCommand } from '../support/command-thread.ts'
import { changeDatabase } from '../support/read-database.ts'
import { type Finished, type ServingProcess, serveTollgate } from '../support/tollgate-process.ts'
import { callMessages } from './command-gateway.ts'

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
    async call(inputTokens, model) {
      assert.equal((await callMessages(tollgate.url, key, inputTokens, model)).status, 200)
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

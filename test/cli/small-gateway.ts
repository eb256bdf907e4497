import assert from 'node:assert/strict'
import { startSimulator } from '../../simulator/start-simulator.ts'
import type { Environment } from '../../src/config/read-config.ts'
import { runCommand } from '../support/command-thread.ts'
import { changeDatabase } from '../support/read-database.ts'
import { serveTollgate } from '../support/tollgate-process.ts'
import { callMessages } from './command-gateway.ts'

export async function startSmallGateway() {
  const simulator = await startSimulator()
  const tollgate = await serveTollgate({ TOLLGATE_MESSAGES_URL: simulator.messagesUrl })
  const key = await tollgate.createKey()
  const close = async () => {
    await tollgate.dispose()
    await simulator.close()
  }
  return {
    tollgate,
    /** A Messages call for which upstream reports this many input tokens. */
    async call(inputTokens: number, model?: string) {
      assert.equal((await callMessages(tollgate.url, key, inputTokens, model)).status, 200)
    },
    /** Runs a command on this gateway's data: the first of each name in a process, later ones in a thread. */
    run: (args: readonly string[], environment: Environment = {}) =>
      runCommand(args, { ...tollgate.environment, ...environment }),
    /** Changes the database directly, bypassing all constraints. */
    tamper: (sql: string) => changeDatabase(tollgate, sql),
    close,
    [Symbol.asyncDispose]: close,
  }
}

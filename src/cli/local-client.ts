import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type Config, ConfigError } from '../config.ts'
import { InstallationError, openStore } from '../installation.ts'
import { systemClock } from '../kernel/clock.ts'
import { createUlidSource } from '../kernel/ids.ts'
import type { Caller } from '../keys/recognition.ts'
import { createSettlementWatch } from '../ledger/settlement-watch.ts'
import { answerInProcess } from '../management/answer-in-process.ts'
import type { Management } from '../management/route.ts'
import { type Asked, type ManagementClient, queryText } from './management-client.ts'
import { Failure } from './run-command.ts'

/** Whoever can write to the data directory is the operator. */
const OPERATOR: Caller = { kind: 'admin_key', keyId: 'command line', accountId: 'default' }

/** The management API in this process, on the data directory: beside a running gateway or without one. */
export async function openLocalClient(config: Config): Promise<ManagementClient> {
  const { dataDir } = config
  // A command in the wrong folder must not make books of its own there, and show them as if they were the right ones.
  if (!existsSync(join(dataDir, 'tollgate.db'))) {
    throw new ConfigError([
      `TOLLGATE_DATA_DIR: there are no books in ${dataDir}; name the right folder, or a running gateway with --url`,
    ])
  }
  const { store, digestKey } = await openOrExplain(config)
  const management: Management = {
    clock: systemClock,
    nextUlid: createUlidSource(systemClock),
    digestKey,
    servicePrefix: config.prefix,
    store,
    settlements: createSettlementWatch(),
    // Calls wait in another process, which looks again by itself.
    limitsMoved() {},
  }
  const answer = (method: string, path: string, { query, body, idempotencyKey }: Asked = {}) =>
    answerInProcess(
      {
        method,
        target: { path, query: queryText(query) },
        body: Buffer.from(body === undefined ? '' : JSON.stringify(body)),
        onceName: idempotencyKey ?? null,
      },
      OPERATOR,
      management,
    )

  return {
    place: dataDir,
    async ask(method, path, asked) {
      const answered = await answer(method, path, asked)
      if (answered.kind === 'stream') throw new Error(`${path} is answered as a stream`)
      const { status, headers, body } = answered.reply
      return { status, headers: headersOf(headers), text: body.toString() }
    },
    async stream(path, query) {
      const { kind, reply } = await answer('GET', path, { query })
      return { status: reply.status, chunks: kind === 'stream' ? reply.chunks : once(reply.body) }
    },
    close: () => store.close(),
  }
}

async function openOrExplain(config: Config) {
  try {
    // Whatever is asked of a store that failed is refused, and that is how the command learns of it.
    return await openStore(config, () => {})
  } catch (error) {
    if (error instanceof InstallationError || !(error instanceof Error)) throw error
    throw new Failure(`The books in ${config.dataDir} cannot be opened: ${error.message}`)
  }
}

function headersOf(flat: readonly string[]): Headers {
  const headers = new Headers()
  for (let at = 0; at < flat.length; at += 2) headers.append(flat[at] ?? '', flat[at + 1] ?? '')
  return headers
}

async function* once(body: Buffer): AsyncGenerator<Buffer> {
  yield body
}

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type RunningPostgres, startPostgres } from '../postgres.ts'
import { freePort } from '../start-process.ts'
import type { RunningSubject, Subject } from './subject.ts'
import { giveKey, running, serve, type TollgateParts } from './tollgate.ts'

export interface RunningNodes extends RunningSubject {
  readonly database: RunningPostgres
}

/** Nodes of Tollgate on one PostgreSQL, all with everything on. The nodes share the core of one subject. */
export function nodesOnPostgres(
  parts: TollgateParts,
  count: number,
  { onOnePort = false } = {},
): Subject<RunningNodes> {
  const nodesText = count === 1 ? 'one node' : `${count} nodes`
  return {
    name: onOnePort ? `${nodesText} on one port` : `PostgreSQL, ${nodesText}`,
    async start(setting) {
      const port = onOnePort ? await freePort() : 0
      const database = await startPostgres(setting.folder)
      const nodes: RunningSubject[] = []
      const stop = async (): Promise<void> => {
        await Promise.all(nodes.map((node) => node.stop()))
        await database.stop()
      }
      try {
        for (let n = 1; n <= count; n += 1) {
          const dataDir = join(setting.folder, `data-${n}`)
          mkdirSync(dataDir)
          const { started, url } = await serve(parts, setting, dataDir, port, {
            TOLLGATE_DATABASE_URL: database.url,
            ...(onOnePort ? { TOLLGATE_REUSE_PORT: 'true' } : {}),
          })
          nodes.push(running(started, url, n === 1 ? await giveKey(url) : ''))
        }
      } catch (error) {
        await stop()
        throw error
      }
      return {
        database,
        urls: [...new Set(nodes.flatMap((node) => node.urls))],
        headers: (surface) => nodes[0]?.headers(surface) ?? [],
        pids: () => nodes.flatMap((node) => node.pids()),
        stop,
      }
    },
  }
}

import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { type RunningPostgres, startPostgres } from '../postgres.ts'
import type { RunningSubject, Subject } from './subject.ts'
import { giveKey, running, serve, type TollgateParts } from './tollgate.ts'

export interface RunningNodes extends RunningSubject {
  readonly database: RunningPostgres
}

/** Nodes of Tollgate on one PostgreSQL, all with everything on. The nodes share the core of one subject. */
export function nodesOnPostgres(parts: TollgateParts, count: number): Subject<RunningNodes> {
  return {
    name: `PostgreSQL, ${count === 1 ? 'one node' : `${count} nodes`}`,
    async start(setting) {
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
          const { started, url } = await serve(parts, setting, dataDir, {
            TOLLGATE_DATABASE_URL: database.url,
          })
          nodes.push(running(started, url, n === 1 ? await giveKey(url) : ''))
        }
      } catch (error) {
        await stop()
        throw error
      }
      return {
        database,
        urls: nodes.flatMap((node) => node.urls),
        headers: (surface) => nodes[0]?.headers(surface) ?? [],
        pids: () => nodes.flatMap((node) => node.pids()),
        stop,
      }
    },
  }
}

import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startProcess } from '../start-process.ts'
import type { Subject } from './subject.ts'

/** A bare pipe on the same Node. */
export const pipe: Subject = {
  name: 'pipe',
  async start({ upstreamUrl, folder, core }) {
    const started = startProcess({
      command: process.execPath,
      args: [fileURLToPath(new URL('bare-pipe.ts', import.meta.url)), upstreamUrl],
      core,
      errors: { file: join(folder, 'stderr.log') },
    })
    const [, port] = await started.printed(/^listening (\d+)$/m)
    return {
      urls: [`http://127.0.0.1:${port}`],
      headers: () => [],
      pids: () => [started.pid],
      stop: () => started.stop(),
    }
  },
}

import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startProcess } from '../start-process.ts'
import type { Subject } from './subject.ts'

export const pipe: Subject = pipeOf('bare-pipe.ts')

/** The pipe for WebSockets, which needs to know nothing of their protocol. */
export const bytePipe = (nodeArgs: readonly string[]): Subject => pipeOf('byte-pipe.ts', nodeArgs)

function pipeOf(file: string, nodeArgs: readonly string[] = []): Subject {
  const program = fileURLToPath(new URL(file, import.meta.url))
  return {
    name: 'pipe',
    async start({ upstreamUrl, folder, core }) {
      const started = startProcess({
        command: process.execPath,
        args: [...nodeArgs, program, upstreamUrl],
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
}

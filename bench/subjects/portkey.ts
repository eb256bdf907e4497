import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort, startProcess } from '../start-process.ts'
import type { Subject } from './subject.ts'
import { untilAnswers } from './until-answers.ts'

const program = fileURLToPath(
  new URL('../node_modules/@portkey-ai/gateway/build/start-server.js', import.meta.url),
)

export const isPortkeyInstalled = (): boolean => existsSync(program)

/** A request to Portkey names its provider and the provider's URL; 127.0.0.1 is trusted without a setting. */
export const portkey: Subject = {
  name: 'portkey',
  async start({ upstreamUrl, folder, core }) {
    const port = await freePort()
    const started = startProcess({
      command: process.execPath,
      args: [program, `--port=${port}`, '--headless'],
      core,
      env: { NODE_ENV: 'production' },
      cwd: folder,
      errors: { file: join(folder, 'stderr.log') },
    })
    const url = `http://127.0.0.1:${port}`
    await untilAnswers(url)
    // Portkey shows a turning wheel for a second after it has begun to serve.
    await started.printed(/Ready for connections/)
    return {
      urls: [url],
      headers: (surface) => [
        ['x-portkey-provider', surface === 'messages' ? 'anthropic' : 'openai'],
        ['x-portkey-custom-host', `${upstreamUrl}/v1`],
        surface === 'messages' ? ['x-api-key', 'bench'] : ['authorization', 'Bearer bench'],
      ],
      pids: () => [started.pid],
      stop: () => started.stop(),
    }
  },
}

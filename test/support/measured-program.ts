import { readConfig } from '../../src/config.ts'
import { createLog } from '../../src/kernel/log.ts'
import { startTollgate } from '../../src/main.ts'

/** A gateway that tells its parent process how much memory it has, whenever asked. Configured by the environment. */

const tell = (what: unknown) => process.send?.(what)
const config = readConfig(process.env)
const running = await startTollgate(config, {
  log: createLog(config.logLevel),
  onFatal(error) {
    process.stderr.write(`${error.message}\n`, () => process.exit(1))
  },
})
process.on('message', (asked) => {
  if (asked === 'held') globalThis.gc?.()
  const { rss, heapUsed, external } = process.memoryUsage()
  tell(asked === 'held' ? heapUsed + external : rss)
})
process.once('disconnect', () => process.exit(0))
tell({ port: running.port })

import { startTollgate } from '../../src/app/main.ts'
import { readConfig } from '../../src/config/read-config.ts'
import { createLog } from '../../src/kernel/log.ts'

/** A gateway that reports its memory to its parent process on request. Configured by the environment. */

const report = (what: unknown) => process.send?.(what)
const config = { ...readConfig(process.env), doctorProbe: false }
const running = await startTollgate(config, {
  log: createLog(config.logLevel),
  onFatal(error) {
    process.stderr.write(`${error.message}\n`, () => process.exit(1))
  },
})
process.on('message', (asked) => {
  if (asked === 'held') globalThis.gc?.()
  const { rss, heapUsed, external } = process.memoryUsage()
  report(asked === 'held' ? heapUsed + external : rss)
})
process.once('disconnect', () => process.exit(0))
report({ port: running.port })

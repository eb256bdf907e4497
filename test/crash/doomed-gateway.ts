import { startTollgate } from '../../src/app/main.ts'
import { readConfig } from '../../src/config/read-config.ts'
import type { CallPoint } from '../../src/http-calls/gateway.ts'
import { createLog } from '../../src/kernel/log.ts'

/** `doomed-gateway.ts <point|never> <n>`: kills itself when a call reaches the point for the n-th time. */
const [point = 'never', nth = '1'] = process.argv.slice(2)
let left = Number(nth)

const config = { ...readConfig(process.env), doctorProbe: false }
const running = await startTollgate(config, {
  log: createLog(config.logLevel),
  reached(at: CallPoint) {
    if (at !== point) return
    left -= 1
    if (left <= 0) process.kill(process.pid, 'SIGKILL')
  },
  onFatal(error) {
    process.stderr.write(`${error.message}\n`, () => process.exit(1))
  },
})
process.stdout.write(`${JSON.stringify({ port: running.port })}\n`)
process.once('SIGTERM', async () => {
  await running.stop()
  process.exit(0)
})

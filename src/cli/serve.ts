import { flushCompileCache } from 'node:module'
import type { Command } from 'commander'
import { type RunningTollgate, startTollgate } from '../app/main.ts'
import { type Config, ConfigError, readConfig } from '../config/read-config.ts'
import { whyNotSimulated } from '../config/simulator.ts'
import type { Finding } from '../doctor/check.ts'
import { runChecks } from '../doctor/run-checks.ts'
import { systemClock } from '../kernel/clock.ts'
import { InstallationError } from '../kernel/errors.ts'
import { createLog, droppingStream, type Log, type LogStream, writeLast } from '../kernel/log.ts'
import { isLogged } from '../kernel/log-levels.ts'
import { tuneHeap, VERSION } from '../kernel/runtime.ts'
import { Secret } from '../kernel/secret.ts'
import { createCallLog, type ObserveCall } from '../telemetry/call-log.ts'
import { ENVIRONMENT_HELP, examples } from './command.ts'
import { banner, callLine } from './serve-output.ts'
import { type TerminalStyle, terminalStyle } from './terminal.ts'

/** The provider key of the simulator, which checks credentials like a real upstream. */
const SIMULATOR_KEY = 'simulator-provider-key'

const STARTED_AFTER_MS = 2_000

export function register(command: Command): void {
  command
    .option('--maintenance', 'serve only management requests, on 127.0.0.1')
    .addHelpText('after', SIGNALS_HELP)
    .action(serve)
}

const SIGNALS_HELP = `
Signals:
  SIGTERM, SIGINT   stop: running streams may finish for 30 s (shutdown.drain_seconds); a second signal stops at once
  SIGHUP            reload the files of TOLLGATE_PRICES and TOLLGATE_TLS_CERT; a bad file changes nothing

${ENVIRONMENT_HELP}
${examples(
  'npm start                                       try it with the simulator',
  'ANTHROPIC_API_KEY=sk-ant-… tollgate serve       the Messages surface',
  'TOLLGATE_CHAT_URL=http://127.0.0.1:11434/v1 tollgate serve',
)}`

async function serve({ maintenance = false }: { readonly maintenance?: boolean }): Promise<void> {
  const read = readConfig(process.env)
  const config = maintenance ? { ...read, host: '127.0.0.1' } : read
  const logStream = droppingStream(2)
  const log = createLog(config.logLevel, logStream)
  if (!(await passesChecks(config, log))) return
  const simulated = !maintenance && maySimulate(config)
  const simulator = simulated ? await startBuiltInSimulator() : null
  const served: Config = simulator === null ? config : { ...config, ...simulator.upstreams }

  try {
    const terminal = terminalStyle(process.stdout, process.env, false)
    const observeCall = isLogged(config.logLevel, 'info') ? createCallObserver(terminal, logStream) : null
    const running = await startTollgate(served, {
      log,
      maintenance,
      simulator: simulated,
      ...(observeCall === null ? {} : { observeCall }),
      onFatal(error) {
        // Without its database, the gateway cannot admit calls. Exit, so that a supervisor restarts it.
        log.fatal({ cause: error.message }, 'the database failed')
        process.stderr.write(`tollgate: ${error.message}\n`, () => process.exit(1))
      },
    })
    // Listen for signals before printing the banner: its reader may send one at once.
    const stop = Promise.race([stopSignal(), npmExited()])
    reloadOnHangup(running, config, log)
    const { certificate, firstAdminKey } = running
    const scheme = certificate === null ? 'http' : 'https'
    const url = `${scheme}://${shownHost(running.host)}:${running.port}`
    const { isTerminal } = terminal
    process.stdout.write(
      maintenance
        ? `Tollgate ${VERSION} in maintenance on ${url}: management requests only, no model calls, polls or webhooks.\n`
        : banner({
            url,
            config,
            firstAdminKey,
            isTerminal,
            certificate,
            isSimulated: running.isSimulated,
            reasonNotSimulated: running.reasonNotSimulated,
          }),
    )
    setTimeout(finishStartup, STARTED_AFTER_MS).unref()
    if (!maintenance) void runLateChecks(config, log)
    await stop
    process.stdout.write('Stopping. Running streams may finish. Send the signal again to stop at once.\n')
    stopSignal(performance.now() + (isUnderNpm() ? SAME_SIGNAL_MS : 0)).then(() => process.exit(1))
    const { cutStreams } = await running.stop()
    await simulator?.close()
    process.stdout.write(cutStreams === 0 ? 'Stopped.\n' : `Stopped. Streams cut: ${cutStreams}.\n`)
    process.exit(0)
  } catch (error) {
    await simulator?.close()
    process.stderr.write(`tollgate: ${explainStartFailure(error, config)}\n`)
    // process.exit, not exitCode: open handles would keep the process alive.
    process.exit(error instanceof ConfigError ? 2 : 1)
  }
}

/** Runs the startup checks. Returns false if it has printed a problem. */
async function passesChecks(config: Config, log: Log): Promise<boolean> {
  const problems: Finding[] = []
  for await (const finding of runChecks(config, 'before_listening', systemClock.nowMs())) {
    if (finding.state === 'problem') problems.push(finding)
    else if (finding.state === 'warning') logWarning(finding, log)
  }
  for (const { found, todo } of problems)
    process.stderr.write(`tollgate: ${found}\n${todo === null ? '' : `  ${todo}\n`}`)
  if (problems.length > 0)
    process.exitCode = problems.some(({ name }) => name === 'configuration' || name === 'certificate') ? 2 : 1
  return problems.length === 0
}

/** Runs checks that may take seconds, while the gateway already serves. */
async function runLateChecks(config: Config, log: Log): Promise<void> {
  try {
    for await (const finding of runChecks(config, 'after_listening', systemClock.nowMs()))
      if (finding.state === 'warning' || finding.state === 'problem') logWarning(finding, log)
  } catch (error) {
    log.warn({ cause: (error as Error).message }, 'the startup checks failed')
  }
}

function logWarning({ name, found, todo }: Finding, log: Log): void {
  log.warn({ check: name, todo }, found)
}

function createCallObserver(terminal: TerminalStyle, logStream: LogStream): ObserveCall {
  if (terminal.isTerminal) {
    // Not process.stdout: a paused terminal (Ctrl+S) would block the thread, and every call with it.
    const lines = droppingStream(1)
    return (call) => lines.write(`${callLine(call, terminal)}\n`)
  }
  const calls = createCallLog(logStream)
  // Write pending lines however the process exits: they may be the last trace of a failure.
  process.on('exit', () => writeLast(2, calls.take()))
  return calls.observe
}

function finishStartup(): void {
  // Do not wait for the exit: V8 may then have discarded code of the start, or the process may be killed.
  flushCompileCache()
  tuneHeap()
}

/** Whether to start the simulator. What the database knows may keep it from answering calls. */
function maySimulate(config: Config): boolean {
  const isUnconfigured = config.messages === null && config.chat === null
  const facts = { hasOwnUpstreams: false, hasRealUpstream: false }
  return (isUnconfigured || config.simulator === true) && whyNotSimulated(config, facts) === null
}

async function startBuiltInSimulator() {
  // Load the simulator only here: a gateway with real upstreams never runs it.
  const { startSimulator } = await import('../../simulator/start-simulator.ts')
  const simulator = await startSimulator({
    messagesKey: SIMULATOR_KEY,
    chatKey: SIMULATOR_KEY,
    pace: 'realistic',
  })
  const key = new Secret(SIMULATOR_KEY)
  return {
    upstreams: {
      messages: { url: new URL(simulator.messagesUrl), key },
      chat: { url: new URL(simulator.chatUrl), key },
    },
    close: () => simulator.close(),
  }
}

/** SIGHUP reads the price overlay and the certificate again. A bad file changes nothing. */
function reloadOnHangup(running: RunningTollgate, { prices, tls }: Config, log: Log): void {
  process.on('SIGHUP', async () => {
    if (prices === null && tls === null)
      log.info(
        'SIGHUP: there is no file to read again, because neither TOLLGATE_PRICES nor TOLLGATE_TLS_CERT is set',
      )
    if (tls !== null) await running.reloadCertificate(tls.certFile)
    if (prices !== null) await running.reloadPrices(prices.file)
  })
}

/** Signals before `notBeforeMs` are duplicates. */
function stopSignal(notBeforeMs = 0): Promise<void> {
  return new Promise((resolve) => {
    const onSignal = () => {
      if (performance.now() >= notBeforeMs) resolve()
    }
    for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, onSignal)
  })
}

/** Signals within this time count once, because a Ctrl-C comes from the terminal and from npm. */
const SAME_SIGNAL_MS = 500

function isUnderNpm(): boolean {
  const { npm_package_name: name, npm_lifecycle_event: event, npm_lifecycle_script: script } = process.env
  if (event === 'npx') return script?.includes('tollgate') === true
  return name === 'tollgate' && (event === 'start' || event === 'tollgate')
}

const PARENT_CHECK_MS = 500

/** Resolves when npm, which started this process, was killed. A killed npm forwards no signal. */
function npmExited(): Promise<void> {
  return new Promise((resolve) => {
    if (!isUnderNpm()) return
    const parent = process.ppid
    const check = () => {
      if (process.ppid !== parent) resolve()
    }
    setInterval(check, PARENT_CHECK_MS).unref()
  })
}

function shownHost(host: string): string {
  if (host === '0.0.0.0' || host === '::') return '127.0.0.1'
  return host.includes(':') ? `[${host}]` : host
}

function explainStartFailure(error: unknown, config: Config): string {
  const isExplained = error instanceof InstallationError || error instanceof ConfigError
  if (isExplained) return error.message
  if (!(error instanceof Error)) return String(error)
  const code = 'code' in error ? error.code : undefined
  if (code === 'EADDRINUSE') {
    const { port = config.port } = error as { readonly port?: number }
    const setting = port === config.port ? 'TOLLGATE_PORT' : 'metrics.port'
    return `Port ${port} on ${config.host} is already in use. Stop the process that uses it, or set ${setting}.`
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return `${config.host} is not an address of this machine. Set TOLLGATE_HOST.`
  }
  return error.stack ?? error.message
}

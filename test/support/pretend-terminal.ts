/**
 * Loaded before a command, which then takes its output, a pipe, for a terminal. Like a terminal the pipe is written to
 * synchronously: a write waits until there is room.
 */
const { columns, only } = JSON.parse(process.env['PRETEND_TERMINAL'] ?? '{}')
for (const stream of only === 'stderr' ? [process.stderr] : [process.stdout, process.stderr]) {
  Object.defineProperties(stream, { isTTY: { value: true }, columns: { value: columns } })
  const { _handle: handle } = stream as { _handle?: { setBlocking?(blocking: boolean): void } }
  handle?.setBlocking?.(true)
}

/**
 * Loaded before a command: its output is a pipe, and it takes it for a terminal. Like one it is written to at once: whoever
 * writes waits until there is room.
 */
const { columns, only } = JSON.parse(process.env['PRETEND_TERMINAL'] ?? '{}')
for (const stream of only === 'stderr' ? [process.stderr] : [process.stdout, process.stderr]) {
  Object.defineProperties(stream, { isTTY: { value: true }, columns: { value: columns } })
  const { _handle: handle } = stream as { _handle?: { setBlocking?(blocking: boolean): void } }
  handle?.setBlocking?.(true)
}

/** Preloaded into a command, which then treats its piped output as a terminal: writes are synchronous. */
const { columns, only } = JSON.parse(process.env['PRETEND_TERMINAL'] ?? '{}')
for (const stream of only === 'stderr' ? [process.stderr] : [process.stdout, process.stderr]) {
  Object.defineProperties(stream, { isTTY: { value: true }, columns: { value: columns } })
  const { _handle: handle } = stream as { _handle?: { setBlocking?(blocking: boolean): void } }
  handle?.setBlocking?.(true)
}

import { Provider } from './provider.ts'

/** Starts the provider by hand: node test/reconcile/start-provider.ts [port]. The first day of its calls is two days ago. */
const DAY_MS = 86_400_000
const provider = new Provider(() => Date.now() - 2 * DAY_MS)
const url = await provider.listen(Number(process.argv[2] ?? 8788))
provider.book({ model: 'claude-haiku-5-5', input: 8_000, output: 800 }, 'key_elsewhere')
process.stdout.write(`Reports of a made-up provider: ${url}\n`)

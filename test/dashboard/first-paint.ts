import { runEnds } from '../support/suite.ts'
import { DESKTOP, untilShown } from './browser.ts'
import { PAGES, person } from './company.ts'

/** `node test/dashboard/first-paint.ts`: the median time until a page is painted, and until its data is there, without a cache. */

const VISITS = 9
const median = (times: readonly number[]) =>
  Math.round(times.toSorted((a, b) => a - b)[times.length >> 1] ?? 0)

const FIRST_PAINT = `performance.getEntriesByName('first-paint')[0]?.startTime ?? performance.now()`

for (const name of ['overview', 'keys', 'usage', 'requests', 'request'] as const) {
  const [path = '', text = ''] = PAGES[name] ?? []
  const painted: number[] = []
  const shown: number[] = []
  for (let visit = 0; visit < VISITS; visit++) {
    const page = await person.visit(path, DESKTOP)
    await page.getByRole('main').getByText(text).first().waitFor()
    await untilShown(page)
    shown.push(await page.evaluate<number>('performance.now()'))
    painted.push(await page.evaluate<number>(FIRST_PAINT))
    await page.context().close()
  }
  process.stdout.write(`${name}: painted after ${median(painted)} ms, complete after ${median(shown)} ms\n`)
}
await runEnds()

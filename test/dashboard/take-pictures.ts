import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { runEnds } from '../support/suite.ts'
import { PICTURES_DIR, takePicture } from './browser.ts'
import { PAGES, person } from './company.ts'

/** `npm run pictures [-- page …]`: screenshots at three widths, light and dark; some go to docs/pictures. */

const DOCS_DIR = fileURLToPath(new URL('../../docs/pictures/', import.meta.url))
const SHOWN: Readonly<Record<string, string>> = {
  'overview-1440-light': 'overview',
}

const named = process.argv.slice(2)
const pages = Object.entries(PAGES).filter(([name]) => named.length === 0 || named.includes(name))
for (const [name, [path, text]] of pages)
  for (const scheme of ['light', 'dark'] as const)
    for (const width of [1440, 1024, 390]) {
      const page = await person.visit(path, { width, scheme })
      await page.getByRole('main').getByText(text).first().waitFor()
      const picture = `${name}-${width}-${scheme}`
      await takePicture(page, picture)
      const shown = SHOWN[picture]
      if (shown !== undefined)
        copyFileSync(join(PICTURES_DIR, `${picture}.png`), join(DOCS_DIR, `${shown}.png`))
      await page.context().close()
    }
await runEnds()
